import { type DescField, getOption, hasOption, ScalarType } from '@bufbuild/protobuf';
import { reflect } from '@bufbuild/protobuf/reflect';
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt';
import { type FieldRules, FieldRulesSchema, field as fieldRules } from '#gen/buf/validate/validate_pb.js';
import { FieldBehavior, field_behavior } from '#gen/google/api/field_behavior_pb.js';
import { requires } from '#gen/payments/v1/json_options_pb.js';
import { EVENT_TYPES } from '#src/webhooks/events.ts';

/** A JSON Schema, or any other part of the document. */
export type Json = { readonly [name: string]: unknown };

/** The name of an event that a webhook can receive. */
export const EVENT: Json = { type: 'string', enum: EVENT_TYPES };

/** Returns the keyword for the members that the message in a field must have; none if it needs no more than always. */
export function requiredMembers(field: DescField): Json {
  const required = getOption(field, requires);
  return required.length > 0 ? { required } : {};
}

/** Reports whether a request must contain the field with a nonempty value. */
export function isRequired(field: DescField): boolean {
  return (
    getOption(field, field_behavior).includes(FieldBehavior.REQUIRED) ||
    (hasOption(field, fieldRules) && getOption(field, fieldRules).required)
  );
}

/**
 * Returns the JSON Schema keywords for a request field's rules (buf.validate). @throws Error for a rule without a
 * keyword.
 */
export function ruleKeywords(field: DescField): Json {
  const rules = hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
  const keywords = rules ? keywordsOf(rules, String(field)) : {};
  // None of our patterns matches an empty string.
  return { ...(isRequired(field) && !('pattern' in keywords) && notEmpty(field)), ...keywords };
}

function notEmpty(field: DescField): Json {
  if (field.fieldKind === 'list') return { minItems: 1 };
  const isText = field.fieldKind === 'scalar' && field.scalar === ScalarType.STRING;
  return isText && field.presence === FeatureSet_FieldPresence.IMPLICIT ? { minLength: 1 } : {};
}

type Keyword = (value: unknown) => Json;

const same =
  (keyword: string): Keyword =>
  (value) => ({ [keyword]: typeof value === 'bigint' ? Number(value) : value });

/** Keywords by the name of the rule, for all types. */
const KEYWORDS: Readonly<Record<string, Keyword>> = {
  const: same('const'),
  gt: same('exclusiveMinimum'),
  gte: same('minimum'),
  lt: same('exclusiveMaximum'),
  lte: same('maximum'),
  min_len: same('minLength'),
  max_len: same('maxLength'),
  pattern: same('pattern'),
  in: (values) => ({ enum: [...(values as Iterable<unknown>)] }),
  email: () => ({ format: 'email' }),
  ip: () => ({ anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] }),
  uuid: () => ({ format: 'uuid' }),
  uri: () => ({ format: 'uri' }),
  min_items: same('minItems'),
  max_items: same('maxItems'),
  min_pairs: same('minProperties'),
  max_pairs: same('maxProperties'),
  // Every enum is closed in REST JSON.
  defined_only: () => ({}),
};

function keywordsOf({ type }: FieldRules, name: string): Json {
  if (type.case === undefined) return {};
  const member = FieldRulesSchema.fields.find(({ localName }) => localName === type.case);
  if (!member?.message) throw new Error(`${name}: rules of an unknown type`);
  const rules = reflect(member.message, type.value);
  const found: Json[] = rules.fields
    .filter((rule) => rules.isSet(rule))
    .map((rule) => {
      if (rule.name === 'items') return { items: keywordsOf(itemRules(type.value), `${name}[]`) };
      const keyword = KEYWORDS[rule.name];
      if (!keyword) throw new Error(`${name}: the rule ${rule.name} has no keyword in field-rules.ts`);
      return keyword(rules.get(rule));
    });
  return Object.assign({}, ...found);
}

function itemRules(rules: object): FieldRules {
  return (rules as { items: FieldRules }).items;
}
