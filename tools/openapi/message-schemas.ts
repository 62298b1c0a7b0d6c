import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescService,
  getOption,
  ScalarType,
} from '@bufbuild/protobuf';
import { FieldBehavior, field_behavior } from '#gen/google/api/field_behavior_pb.js';
import {
  done_anyway,
  names_events,
  not_supported,
  null_when_empty,
  omit_when_empty,
  omit_when_unset,
  or_boolean,
} from '#gen/payments/v1/json_options_pb.js';
import { MAX_DECIMAL_LENGTH } from '#src/money.ts';
import { maxItems } from '#src/wire/list-limits.ts';
import { memberOf } from '#src/wire/wire-json-encode.ts';
import { commentOf } from './descriptors.ts';
import { EVENT, isRequired, type Json, requiredMembers, ruleKeywords } from './field-rules.ts';

/** Direction of a message. A request may omit fields and contain unknown ones; a response is complete. */
export type Direction = 'request' | 'response';

/** Writes the schemas of messages in REST JSON, and collects the referenced schemas. */
export type MessageSchemas = {
  /** A field's schema. */
  field(field: DescField, direction: Direction): Json;
  /** The schema of a request's field in a path or query string, where nothing is null. */
  parameter(field: DescField): Json;
  /** A reference to a message's schema. */
  message(desc: DescMessage, direction: Direction): Json;
  /** The schema of a request's body, without the fields of its path. */
  body(desc: DescMessage, inPath: ReadonlySet<DescField>): Json;
  /** All referenced schemas, by name. */
  readonly components: Readonly<Record<string, Json>>;
};

/** Creates the writer. @param services all services to describe. A message used in both directions gets two schemas. */
export function messageSchemas(services: readonly DescService[]): MessageSchemas {
  const methods = services.flatMap((service) => service.methods);
  const told = reachable(methods.map((method) => method.output));
  const { refer, components } = collectComponents();

  function message(desc: DescMessage, direction: Direction): Json {
    const isEcho = direction === 'request' && told.has(desc.typeName);
    return refer(nameOf(desc) + (isEcho ? 'Input' : ''), `${desc.typeName} ${direction}`, () =>
      object(desc, desc.fields, direction),
    );
  }

  function object(desc: DescMessage, fields: readonly DescField[], direction: Direction): Json {
    const shown = fields.filter((field) => isShown(field, direction));
    const required = shown.filter((one) => isAlwaysPresent(one, direction));
    const notes = direction === 'request' ? notesOnRequest(desc, fields) : [];
    return {
      type: 'object',
      ...descriptionOf(desc, ...notes),
      properties: Object.fromEntries(shown.map((one) => [one.name, field(one, direction)])),
      ...(required.length > 0 && { required: required.map(({ name }) => name) }),
    };
  }

  function field(desc: DescField, direction: Direction): Json {
    const { description, ...schema } = direction === 'request' ? parameter(desc) : described(desc, direction);
    return {
      ...(isNullable(desc, direction) ? orNull(schema) : schema),
      ...(description !== undefined && { description }),
    };
  }

  function parameter(desc: DescField): Json {
    return withRules(described(desc, 'request'), ruleKeywords(desc));
  }

  function described(desc: DescField, direction: Direction): Json {
    return { ...valueSchema(desc, direction), ...descriptionOf(desc) };
  }

  function valueSchema(desc: DescField, direction: Direction): Json {
    const element = getOption(desc, names_events) ? EVENT : elementSchema(desc, direction);
    if (desc.fieldKind === 'map') return { type: 'object', additionalProperties: element };
    if (desc.fieldKind !== 'list') return element;
    const limit = direction === 'request' ? { maxItems: maxItems(desc) } : {};
    const notEmpty = direction === 'response' && getOption(desc, null_when_empty) ? { minItems: 1 } : {};
    return { type: 'array', items: element, ...limit, ...notEmpty };
  }

  /** Returns the schema of a field's value, or of an element of a list or map. */
  function elementSchema(desc: DescField, direction: Direction): Json {
    const other = otherOf(desc);
    if (other?.message?.typeName === 'google.protobuf.ListValue') {
      return { anyOf: [desc, other].map(({ message }) => message && wellKnown(message, direction)) };
    }
    const { message: inner, enum: values } = desc;
    if (inner)
      return wellKnown(inner, direction) ?? { ...message(inner, direction), ...requiredMembers(desc) };
    if (values) return refer(nameOf(values), values.typeName, () => enumeration(values));
    return scalarSchema(desc, direction);
  }

  return {
    field,
    parameter,
    message,
    body(desc, inPath) {
      if (inPath.size === 0) return message(desc, 'request');
      const rest = desc.fields.filter((one) => !inPath.has(one));
      return refer(nameOf(desc), `${desc.typeName} body`, () => object(desc, rest, 'request'));
    },
    components,
  };
}

/** Collects the document's components, each written when it is first referenced. */
function collectComponents() {
  const components: Record<string, Json> = {};
  const owners = new Map<string, string>();

  /** Returns a reference to a component, registered before it is written: a message may contain itself. */
  function refer(name: string, owner: string, write: () => Json): Json {
    const other = owners.get(name);
    if (other !== undefined && other !== owner)
      throw new Error(`${owner} and ${other} are both named ${name}`);
    if (other === undefined) {
      owners.set(name, owner);
      components[name] = {};
      components[name] = write();
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  return { refer, components };
}

/** Returns every message that the roots contain, directly or indirectly. */
function reachable(roots: readonly DescMessage[]): Set<string> {
  const found = new Map<string, DescMessage>(roots.map((root) => [root.typeName, root]));
  // The iteration also visits the entries that are added during it.
  for (const desc of found.values()) {
    for (const { message } of desc.fields) if (message) found.set(message.typeName, message);
  }
  return new Set(found.keys());
}

/** Returns the name of a schema: `Payment.SubStatus.Value` of a package becomes PaymentSubStatusValue. */
function nameOf(desc: DescMessage | DescEnum): string {
  const { package: prefix } = desc.file.proto;
  return desc.typeName.slice(prefix.length + 1).replaceAll('.', '');
}

/** Returns a descriptor's comment and its notes as the keyword `description`; none if both are empty. */
function descriptionOf(
  desc: DescField | DescMessage | DescEnum,
  ...notes: readonly string[]
): { readonly description?: string } {
  const description = [commentOf(desc), ...notes].filter((text) => text !== '').join('\n\n');
  return description === '' ? {} : { description };
}

/** Returns notes for a request about rules that the schema cannot express. */
function notesOnRequest(desc: DescMessage, fields: readonly DescField[]): string[] {
  const oneofs = desc.oneofs.filter((one) => one.fields.length > 1);
  const refused = fields.filter((field) => getOption(field, not_supported));
  return [
    ...oneofs.map((one) => `One of ${names(one.fields)}.`),
    ...(refused.length > 0
      ? [`Refused with \`NOT_SUPPORTED\` when set: ${refused.map(refusedName).join(', ')}.`]
      : []),
  ];
}

function names(fields: readonly DescField[]): string {
  return fields.map(({ name }) => `\`${name}\``).join(', ');
}

function refusedName(field: DescField): string {
  const doneAnyway = getOption(field, done_anyway);
  return `\`${field.name}\`${doneAnyway && ` (but to \`${doneAnyway}\`)`}`;
}

function isShown(field: DescField, direction: Direction): boolean {
  const behavior = getOption(field, field_behavior);
  if (memberOf(field) !== field.name) return false;
  // REST derives the field mask from the members of the body.
  if (field.message?.typeName === 'google.protobuf.FieldMask') return false;
  if (direction === 'response') return !behavior.includes(FieldBehavior.INPUT_ONLY);
  return !behavior.includes(FieldBehavior.OUTPUT_ONLY) && !getOption(field, not_supported);
}

function isAlwaysPresent(field: DescField, direction: Direction): boolean {
  if (direction === 'request') return isRequired(field);
  return !getOption(field, omit_when_empty) && !getOption(field, omit_when_unset);
}

/** Null means absent in a request. In a response, `optional` fields and members of a oneof can be null. */
function isNullable(field: DescField, direction: Direction): boolean {
  if (direction === 'request') return !isRequired(field);
  if (field.fieldKind === 'list') return getOption(field, null_when_empty);
  return field.proto.proto3Optional || field.oneof !== undefined;
}

function orNull(schema: Json): Json {
  const { type, enum: values } = schema;
  // A schema without keywords allows null already.
  if (Object.keys(schema).length === 0) return schema;
  if (type === undefined) {
    const { anyOf = [schema], ...rest } = schema;
    return { ...(schema.anyOf ? rest : {}), anyOf: [...(anyOf as Json[]), { type: 'null' }] };
  }
  return {
    ...schema,
    type: [type, 'null'].flat(),
    ...(values !== undefined && { enum: [...(values as unknown[]), null] }),
  };
}

/** Adds a field's rules to its schema. Keywords for list elements and for numbers go into the inner schemas. */
function withRules(schema: Json, { items, ...rules }: Json): Json {
  if (items !== undefined)
    return { ...schema, ...rules, items: { ...(schema.items as Json), ...(items as Json) } };
  const [first, ...others] = (schema.anyOf ?? []) as readonly Json[];
  return first ? { ...schema, anyOf: [{ ...first, ...rules }, ...others] } : { ...schema, ...rules };
}

/**
 * In requests, uses `anyOf`: given a list of types, many generators use only the first, or apply the pattern to all.
 */
function decimal(direction: Direction): Json {
  const number = { type: 'number' };
  const text = { type: 'string', pattern: '^-?[0-9]+(\\.[0-9]+)?$', maxLength: MAX_DECIMAL_LENGTH };
  return direction === 'response' ? number : { anyOf: [number, text] };
}

function wellKnown(desc: DescMessage, direction: Direction): Json | undefined {
  switch (desc.typeName) {
    case 'google.type.Decimal':
      return decimal(direction);
    case 'google.protobuf.Timestamp':
      return { type: 'string', format: 'date-time' };
    case 'google.protobuf.Struct':
      return { type: 'object', additionalProperties: true };
    case 'google.protobuf.ListValue':
      return { type: 'array', items: {} };
    case 'google.protobuf.Value':
      return {};
    default:
      return undefined;
  }
}

function enumeration(desc: DescEnum): Json {
  const values = desc.values.filter(({ number }) => number !== 0);
  const meanings = values
    .map((value) => [value.name, commentOf(value)])
    .filter(([, meaning]) => meaning !== '')
    .map(([name, meaning]) => `- \`${name}\`: ${meaning}`);
  return {
    type: 'string',
    enum: values.map(({ name }) => name),
    ...descriptionOf(desc, meanings.join('\n')),
  };
}

function scalarSchema(desc: DescField, direction: Direction): Json {
  if (direction === 'request' && getOption(desc, or_boolean)) return { type: ['string', 'boolean'] };
  return otherOf(desc) ? decimal(direction) : scalar(desc.scalar, direction);
}

/** Returns the field that shares a field's JSON member, if any. */
function otherOf(desc: DescField): DescField | undefined {
  return desc.parent.fields.find((one) => one !== desc && memberOf(one) === desc.name);
}

function scalar(type: ScalarType | undefined, direction: Direction): Json {
  switch (type) {
    case ScalarType.STRING:
      return { type: 'string' };
    case ScalarType.BOOL:
      return { type: 'boolean' };
    case ScalarType.BYTES:
      return { type: 'string', contentEncoding: 'base64' };
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return { type: 'number' };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { type: 'integer', format: 'int32' };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 };
    default:
      return direction === 'response'
        ? { type: 'string', pattern: '^-?[0-9]+$' }
        : { type: ['string', 'integer'], pattern: '^-?[0-9]+$' };
  }
}
