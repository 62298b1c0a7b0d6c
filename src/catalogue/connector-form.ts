import { create, type DescField, type DescMessage, getOption, ScalarType } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { type FieldRules, field as fieldRules } from '#gen/buf/validate/validate_pb.js';
import {
  type ConnectorField,
  ConnectorFieldSchema,
  type ConnectorForm,
  ConnectorFormSchema,
} from '#gen/payments/v1/configuration_service_pb.js';
import { sensitive } from '#gen/payments/v1/json_options_pb.js';
import helps from '#gen/setting-helps.json' with { type: 'json' };
import type { Connector } from '#src/connectors/port/connector.ts';

/** Describes a connector: its form from the message of its settings, whose comments are the explanations. */
export function connectorForm({ name, hosts, settings, capabilities }: Connector): ConnectorForm {
  const { schema, defaults } = settings;
  const fields = schema.fields.map((field) => formField(schema, field, defaults[field.name]));
  const isSecret = ({ kind }: ConnectorField) => kind === 'SECRET';
  return create(ConnectorFormSchema, {
    name,
    fields: [...fields.filter((field) => !isSecret(field)), ...fields.filter(isSecret)],
    testHosts: [...hosts.TEST],
    liveHosts: [...hosts.LIVE],
    capabilities: capabilityNames(capabilities),
  });
}

/** Returns the names of a connector's secrets. */
export function secretNames({ settings }: Pick<Connector, 'settings'>): readonly string[] {
  return settings.schema.fields.filter((field) => getOption(field, sensitive)).map(({ name }) => name);
}

function formField(
  { name: message }: DescMessage,
  field: DescField,
  value: string | number | undefined,
): ConnectorField {
  const rules = getOption(field, fieldRules);
  const help = (helps as Readonly<Record<string, Readonly<Record<string, string>>>>)[message]?.[field.name];
  return create(ConnectorFieldSchema, {
    ...{ name: field.name, label: labelOf(field.name), help: help ?? '', kind: kindOf(field) },
    required: rules.required,
    pattern: patternOf(rules),
    ...(value !== undefined && { default: create(ValueSchema, { kind: protoValue(value) }) }),
    ...limitsOf(rules),
  });
}

function protoValue(value: string | number) {
  return typeof value === 'string'
    ? ({ case: 'stringValue', value } as const)
    : ({ case: 'numberValue', value } as const);
}

function kindOf(field: DescField): string {
  if (getOption(field, sensitive)) return 'SECRET';
  if (field.fieldKind === 'map') return 'MAP';
  if (field.fieldKind === 'list') return 'LIST';
  if (field.scalar === ScalarType.BOOL) return 'FLAG';
  return field.scalar === ScalarType.INT32 ? 'NUMBER' : 'TEXT';
}

/** Words of names that are written otherwise. */
const WORDS: Readonly<Record<string, string>> = {
  ...{ api: 'API', hmac: 'HMAC', id: 'ID', ids: 'IDs', url: 'URL', ms: '(ms)' },
};

/** Returns a name in words: "merchant_account" becomes "Merchant account". */
function labelOf(name: string): string {
  const words = name.split('_').map((word) => WORDS[word] ?? word);
  const label = words.join(' ');
  return label.charAt(0).toUpperCase() + label.slice(1);
}

const MATCHES = /\.?matches\((r?)'((?:[^'\\]|\\.)*)'\)|\] in \[([^\]]*)\]|^this in \[([^\]]*)\]/;

/** Returns the pattern of a rule: the one that it matches first, or its closed list of values. */
function patternOf({ cel }: FieldRules): string {
  const [, raw, pattern, ...lists] = MATCHES.exec(cel[0]?.expression ?? '') ?? [];
  if (pattern !== undefined) return raw === 'r' ? pattern : pattern.replaceAll(/\\(.)/g, '$1');
  const values = lists.find((list) => list !== undefined)?.match(/[^',\s]+/g);
  return values ? `^(${values.join('|')})$` : '';
}

function limitsOf({ type }: FieldRules): { min?: number; max?: number } {
  switch (type.case) {
    case 'int32': {
      const { greaterThan, lessThan } = type.value;
      return {
        ...(greaterThan.case === 'gte' && { min: greaterThan.value }),
        ...(lessThan.case === 'lte' && { max: lessThan.value }),
      };
    }
    case 'string': {
      const { minLen, maxLen } = type.value;
      return { ...(minLen > 0n && { min: Number(minLen) }), ...(maxLen > 0n && { max: Number(maxLen) }) };
    }
    case 'repeated':
      return { ...(type.value.maxItems > 0n && { max: Number(type.value.maxItems) }) };
    default:
      return {};
  }
}

function capabilityNames(can: Connector['capabilities']): string[] {
  const has: readonly (readonly [name: string, has: boolean])[] = [
    ['AUTHORIZATION', can.authorization],
    ['SEVERAL_CAPTURES', can.captures > 1],
    ['CANCEL', can.cancel],
    ['REFUND', can.refunds !== 'none'],
    ['SEVERAL_REFUNDS', can.refunds === 'several'],
    ['CLOSE', can.close],
    ['VERIFICATION', can.verify],
    ['INSTALLMENTS', can.installments],
    ['CHALLENGE', can.challenge],
    ['EXTERNAL_THREE_D_SECURE', can.externalThreeDSecure],
    ['STORED_CREDENTIALS', can.storedCredentials],
    ['SOFT_DESCRIPTOR', can.softDescriptor],
  ];
  return [...can.methods, ...has.filter(([, is]) => is).map(([name]) => name)];
}
