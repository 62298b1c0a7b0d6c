import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import type { ConnectorField, ConnectorForm } from '#gen/payments/v1/configuration_service_pb.js';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { areaField, choiceField, type Fields, textField, wrongField } from './form-fields.ts';

/** Limit on the length of a text in settings, of a list or map as text, and of a secret. */
const MAX_TEXT_LENGTH = 2_000;
const MAX_LIST_LENGTH = 20_000;
const MAX_SECRET_LENGTH = 8_192;
/** A pattern that lists all values, such as ^(ONE|TWO)$. */
const CLOSED_LIST = /^\^\(([\w|-]+)\)\$$/;

const nameOf = ({ name }: ConnectorField) => `s_${name}`;
/** Returns the name of the field of a secret. */
export const secretFieldOf = (name: string): string => `secret_${name}`;

/** Returns the fields of a connector that are not secrets. */
function settingsOf({ fields }: ConnectorForm): ConnectorField[] {
  return fields.filter(({ kind }) => kind !== 'SECRET');
}

/** Returns the fields of a connector that are secrets. */
export function secretsOf({ fields }: ConnectorForm): ConnectorField[] {
  return fields.filter(({ kind }) => kind === 'SECRET');
}

/** Renders the settings of a connector. */
export function settingFields(fields: Fields, form: ConnectorForm): Html {
  return html`${settingsOf(form).map((field) => settingField(fields, field))}`;
}

function settingField(fields: Fields, field: ConnectorField): Html {
  const { kind, required, pattern, max } = field;
  const [name, label, help] = [nameOf(field), labelOf(field), field.help.replaceAll('`', '')];
  const standard = field.default && toJson(ValueSchema, field.default);
  const hint = standard === undefined || standard === null ? '' : String(standard);
  switch (kind) {
    case 'FLAG':
      return choiceField(fields, name, label, [...UNSET, ['true', 'yes'], ['false', 'no']], help);
    case 'LIST':
      return areaField(fields, name, label, { help: `${help} One per line.`, maxLength: MAX_LIST_LENGTH });
    case 'MAP':
      return areaField(fields, name, label, {
        help: `${help} One per line, as NAME: value.`,
        maxLength: MAX_LIST_LENGTH,
      });
    default: {
      const values = CLOSED_LIST.exec(pattern)?.[1]?.split('|');
      if (values) {
        const options = values.map((value) => [value, value] as const);
        return choiceField(fields, name, label, [...UNSET, ...options], help);
      }
      const maxLength = kind === 'TEXT' ? (max ?? MAX_TEXT_LENGTH) : 20;
      return textField(fields, name, label, { hint, help, maxLength, isRequired: required });
    }
  }
}

const UNSET = [['', '–']] as const;

function labelOf({ label, required }: ConnectorField): string {
  return required ? label : `${label} (optional)`;
}

/** Renders fields for secrets. They are never filled in, so that no page shows a secret. */
export function secretFields(secrets: readonly ConnectorField[]): Html {
  return html`${secrets.map((secret) => {
    const name = secretFieldOf(secret.name);
    return html`<div><label for="${name}">${labelOf(secret)}</label><input id="${name}" name="${name}" type="password" autocomplete="new-password" maxlength="${secret.max ?? MAX_SECRET_LENGTH}" aria-describedby="${name}-help">${secret.help === '' ? html`<p class="quiet help" id="${name}-help">Never shown again.</p>` : html`<p class="quiet help" id="${name}-help">${secret.help.replaceAll('`', '')}</p>`}</div>`;
  })}`;
}

/** Reads the secrets that were entered, by name. */
export function secretsIn(fields: Fields, form: ConnectorForm | undefined): Record<string, string> {
  const entered = (form ? secretsOf(form) : []).map(({ name }) => [name, fields(secretFieldOf(name))]);
  return Object.fromEntries(entered.filter(([, value]) => value !== '')) as Record<string, string>;
}

/** Returns the fields of stored settings. */
export function fieldsOfSettings(settings: JsonObject, form: ConnectorForm): Record<string, string> {
  return Object.fromEntries(settingsOf(form).map((field) => [nameOf(field), asText(settings[field.name])]));
}

function asText(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  if (Array.isArray(value)) return value.map(String).join('\n');
  if (typeof value !== 'object') return String(value);
  return Object.entries(value)
    .map(([name, one]) => `${name}: ${String(one)}`)
    .join('\n');
}

/**
 * Reads settings.
 *
 * @param before settings that the form does not show stay as they are there.
 * @throws ServiceError INVALID_PARAMETERS.
 */
export function settingsIn(fields: Fields, form: ConnectorForm, before: JsonObject): JsonObject {
  const settings = { ...before };
  for (const field of settingsOf(form)) {
    const text = fields(nameOf(field));
    if (text === '') delete settings[field.name];
    else settings[field.name] = settingOf(field, text);
  }
  return settings;
}

function settingOf({ kind, label }: ConnectorField, text: string): JsonValue {
  const lines = () => text.split('\n').flatMap((line) => line.trim() || []);
  switch (kind) {
    case 'FLAG':
      return text === 'true';
    case 'LIST':
      return lines();
    case 'MAP':
      return Object.fromEntries(lines().map((line) => pairOf(line, label)));
    case 'NUMBER':
      // The name of a variable, such as $TIMEOUT, stands for its value.
      if (text.startsWith('$')) return text;
      if (!/^-?\d{1,9}$/.test(text)) throw wrongField(label, 'must be a whole number');
      return Number(text);
    default:
      return text;
  }
}

function pairOf(line: string, label: string): [string, string] {
  const [, name, value] = /^([^:]+):(.+)$/.exec(line) ?? [];
  if (name === undefined || value === undefined) throw wrongField(label, 'must have lines as NAME: value');
  return [name.trim(), value.trim()];
}

/** Renders the hosts of a connector's provider. */
export function hostsOf({ testHosts, liveHosts }: ConnectorForm): Html {
  if (testHosts.length === 0 && liveHosts.length === 0) return NOTHING;
  return html`<p class="quiet">Hosts: ${[...new Set([...testHosts, ...liveHosts])].join(', ')}.</p>`;
}
