import {
  clearField,
  type DescMessage,
  getOption,
  type JsonObject,
  type MessageShape,
} from '@bufbuild/protobuf';
import { reflect } from '@bufbuild/protobuf/reflect';
import { sensitive } from '#gen/payments/v1/json_options_pb.js';
import type { Secret } from '#src/secret.ts';
import { validate } from '#src/wire/validate.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { SecretMissingError } from '../port/secret-missing.ts';

/** A connection's secrets by name. */
export type Secrets = Readonly<Record<string, Secret>>;

/** Default deadline of a call, including all of its requests, in milliseconds. */
export const DEFAULT_TIMEOUT_MS = 20_000;

/**
 * Reads a connection's settings into the connector's message of connector_settings.proto, and checks settings and
 * secrets against the message's rules.
 *
 * @returns the message without its secrets, which stay in `secrets`.
 * @throws Error that names the invalid setting or secret, without its value; SecretMissingError.
 */
export function checkSettings<Desc extends DescMessage>(
  schema: Desc,
  settings: JsonObject,
  secrets: Secrets,
): MessageShape<Desc> {
  const isSecret = new Map(schema.fields.map((field) => [field.name, getOption(field, sensitive)] as const));
  refuseOthers('setting', settings, (name) => isSecret.get(name) === false);
  refuseOthers('secret', secrets, (name) => isSecret.get(name) === true);
  const config = jsonDecoder(schema, { unknownFields: 'reject' })(settings);
  const secretFields = schema.fields.filter(({ name }) => isSecret.get(name));
  for (const field of secretFields) {
    const secret = secrets[field.name];
    if (secret) reflect(schema, config).set(field, secret.reveal());
  }
  const [fault] = validate(schema)(config);
  for (const field of secretFields) clearField(config, field);
  if (!fault) return config;
  if (isSecret.get(fault.field) && !secrets[fault.field]) throw new SecretMissingError(fault.field);
  throw new Error(`${isSecret.get(fault.field) ? 'the secret ' : ''}${fault.field} ${fault.message}`);
}

/** Rejects names that the message does not have: a misspelt name would otherwise be ignored. */
function refuseOthers(kind: string, given: object, isKnown: (name: string) => boolean): void {
  const other = Object.keys(given).find((name) => !isKnown(name));
  if (other !== undefined) throw new Error(`the connector has no ${kind} ${other}`);
}

/** Returns the parts of a `base_url`. Its path is a prefix ("" or "/checkout") of the API's own paths. */
export function baseUrl(text: string): { readonly origin: string; readonly basePath: string } {
  const url = URL.parse(text);
  if (!url) throw new Error('base_url must be an http or https URL');
  return { origin: url.origin, basePath: url.pathname.replace(/\/+$/, '') };
}

/** Returns a secret that the message requires. @throws SecretMissingError. */
export function requiredSecret(secrets: Secrets, name: string): Secret {
  const secret = secrets[name];
  if (!secret) throw new SecretMissingError(name);
  return secret;
}

/** Returns the named secrets that are set: two during a rotation. */
export function currentSecrets(secrets: Secrets, names: readonly string[]): readonly Secret[] {
  return names.flatMap((name) => secrets[name] ?? []);
}
