import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Secret } from '#src/secret.ts';
import { isTextLike } from './provider-answer.ts';

/*
 * Common parts of connections' settings. Each function throws an Error that names the setting at fault and says what it
 * must be, but never contains its value.
 */

/** A connection's secrets by name. */
export type Secrets = Readonly<Record<string, Secret>>;

const DEFAULT_TIMEOUT_MS = 20_000;
const MIN_TIMEOUT_MS = 100;
const MAX_TIMEOUT_MS = 60_000;

/** Refuses settings and secrets that a connector does not have: a misspelt one would otherwise be ignored. */
export function refuseOthers(
  connector: string,
  given: { readonly settings: JsonObject; readonly secrets: Secrets },
  known: { readonly settings: readonly string[]; readonly secrets: readonly string[] },
): void {
  for (const kind of ['settings', 'secrets'] as const) {
    const other = Object.keys(given[kind]).find((name) => !known[kind].includes(name));
    if (other !== undefined) {
      throw new Error(`the ${connector} connector has no ${kind.slice(0, -1)} ${other}`);
    }
  }
}

/** Reads `timeout_ms`, the deadline of a call with all its requests. */
export function readTimeoutMs(
  { timeout_ms: timeoutMs }: JsonObject,
  defaultMs: number = DEFAULT_TIMEOUT_MS,
): number {
  if (timeoutMs === undefined) return defaultMs;
  const isInteger = typeof timeoutMs === 'number' && Number.isInteger(timeoutMs);
  if (isInteger && timeoutMs >= MIN_TIMEOUT_MS && timeoutMs <= MAX_TIMEOUT_MS) return timeoutMs;
  throw new Error(`timeout_ms must be an integer from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`);
}

/** Reads `base_url`, whose path is a prefix ("" or "/checkout") of the API's own paths. */
export function readBaseUrl({ base_url: baseUrl }: JsonObject): {
  readonly origin: string;
  readonly basePath: string;
} {
  const url = typeof baseUrl === 'string' ? URL.parse(baseUrl) : null;
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new Error('base_url must be an http or https URL');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new Error('base_url must have no user, password, query or fragment');
  }
  return { origin: url.origin, basePath: url.pathname.replace(/\/+$/, '') };
}

/** Reads a `base_url` without a path; by default the provider's own. */
export function readOrigin(settings: JsonObject, defaultUrl: string): string {
  const { origin, basePath } = readBaseUrl({ base_url: settings.base_url ?? defaultUrl });
  if (basePath === '') return origin;
  throw new Error('base_url must have no path');
}

/** Reads a setting that is true or false; false by default. */
export function readFlag(settings: JsonObject, name: string): boolean {
  const value = settings[name] ?? false;
  if (typeof value === 'boolean') return value;
  throw new Error(`${name} must be true or false`);
}

/** Reads a text that `pattern` matches. @param otherwise what it must be, after "must be". */
export function readText(settings: JsonObject, name: string, pattern: RegExp, otherwise: string): string {
  const value = settings[name];
  if (isTextLike(value, pattern)) return value;
  throw new Error(`${name} must be ${otherwise}`);
}

/** Reads a text that may be absent. */
export function readOptionalText(
  settings: JsonObject,
  name: string,
  pattern: RegExp,
  otherwise: string,
): string | undefined {
  return settings[name] === undefined ? undefined : readText(settings, name, pattern, otherwise);
}

/** Reads a list of texts; empty by default. */
export function readTexts(
  settings: JsonObject,
  name: string,
  pattern: RegExp,
  otherwise: string,
): readonly string[] {
  const list: JsonValue = settings[name] ?? [];
  if (Array.isArray(list) && list.every((value): value is string => isTextLike(value, pattern))) return list;
  throw new Error(`${name} must be ${otherwise}`);
}

/** Reads a secret that `pattern` matches. */
export function readSecret(secrets: Secrets, name: string, pattern: RegExp, otherwise: string): Secret {
  const secret = secrets[name];
  if (secret && pattern.test(secret.reveal())) return secret;
  throw new Error(`the secret ${name} must be ${otherwise}`);
}

/** Reads an optional secret and its successor: both are valid while one replaces the other. */
export function readExchangedSecrets(
  secrets: Secrets,
  names: readonly [name: string, next: string],
  pattern: RegExp,
  otherwise: string,
): readonly Secret[] {
  return names.flatMap((name) => (secrets[name] ? [readSecret(secrets, name, pattern, otherwise)] : []));
}
