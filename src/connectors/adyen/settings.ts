import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { isJsonObject } from '#src/connectors/provider-answer.ts';
import type { Secret } from '#src/secret.ts';

/** Settings of a connection to an Adyen merchant account. */
export type AdyenSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** The part of the API's paths before its version: "" at the test system, "/checkout" at the live one. */
  readonly basePath: string;
  readonly timeoutMs: number;
  readonly merchantAccount: string;
  /** The account can pay by installments (Brazil, Mexico, Turkey and others). */
  readonly installments: boolean;
  /** Adyen's payment method by the type that merchants name: `{ IDEAL: ideal }`. */
  readonly redirectMethods: ReadonlyMap<string, string>;
  readonly apiKey: Secret;
  /** Keys that Adyen signs its notifications with, in hex; two while one replaces the other. */
  readonly hmacKeys: readonly Secret[];
};

const NAMES: ReadonlySet<string> = new Set([
  'base_url',
  'timeout_ms',
  'merchant_account',
  'installments',
  'redirect_methods',
]);
const SECRETS: ReadonlySet<string> = new Set(['api_key', 'hmac_key', 'hmac_key_next']);
const DEFAULT_TIMEOUT_MS = 20_000;
const MIN_TIMEOUT_MS = 100;
const MAX_TIMEOUT_MS = 60_000;
/** No colon: the signature of a notification joins its fields with colons. */
const MERCHANT_ACCOUNT = /^[A-Za-z0-9_.-]{1,100}$/;
const METHOD_TYPE = /^[a-z0-9_]{1,64}$/;
/** Matches texts that a header can carry. */
const API_KEY = /^[\x21-\x7e]{1,1024}$/;
const HMAC_KEY = /^[0-9A-Fa-f]{64}$/;

/**
 * Reads a connection's settings: `base_url` (required), `merchant_account` (required), `timeout_ms` (100 to 60000, 20000
 * by default), `installments`, `redirect_methods`; and the secrets `api_key`, `hmac_key` and, while that is exchanged for
 * another, `hmac_key_next`. A connection without `hmac_key` is refused: only notifications tell what became of captures,
 * cancels, refunds and lost answers.
 *
 * @throws Error naming the setting at fault, without its value.
 */
export function readSettings(settings: JsonObject, secrets: Readonly<Record<string, Secret>>): AdyenSettings {
  refuseOthers(settings, NAMES, 'setting');
  refuseOthers(secrets, SECRETS, 'secret');
  const { timeout_ms = DEFAULT_TIMEOUT_MS, merchant_account, installments = false } = settings;
  if (
    typeof timeout_ms !== 'number' ||
    !Number.isInteger(timeout_ms) ||
    timeout_ms < MIN_TIMEOUT_MS ||
    timeout_ms > MAX_TIMEOUT_MS
  ) {
    throw new Error(`timeout_ms must be an integer from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`);
  }
  if (typeof merchant_account !== 'string' || !MERCHANT_ACCOUNT.test(merchant_account)) {
    throw new Error('merchant_account must be the name of an Adyen merchant account');
  }
  if (typeof installments !== 'boolean') throw new Error('installments must be true or false');
  const apiKey = secrets.api_key;
  if (!apiKey || !API_KEY.test(apiKey.reveal())) {
    throw new Error('the secret api_key must be an Adyen API key: printable ASCII characters');
  }
  return {
    ...readBaseUrl(settings.base_url),
    timeoutMs: timeout_ms,
    merchantAccount: merchant_account,
    installments,
    redirectMethods: readRedirectMethods(settings.redirect_methods),
    apiKey,
    hmacKeys: readHmacKeys(secrets),
  };
}

function refuseOthers(given: object, known: ReadonlySet<string>, what: string): void {
  const other = Object.keys(given).find((name) => !known.has(name));
  if (other !== undefined) throw new Error(`the adyen connector has no ${what} ${other}`);
}

function readRedirectMethods(methods: JsonValue = {}): ReadonlyMap<string, string> {
  const entries = isJsonObject(methods) ? Object.entries(methods) : [['', '']];
  return new Map(
    entries.map(([type = '', method]) => {
      if (type !== '' && typeof method === 'string' && METHOD_TYPE.test(method)) return [type, method];
      throw new Error("redirect_methods must map payment_method types to Adyen's, such as IDEAL: ideal");
    }),
  );
}

function readHmacKeys({ hmac_key, hmac_key_next }: Readonly<Record<string, Secret>>): readonly Secret[] {
  if (!hmac_key) throw new Error('the secret hmac_key is missing: notifications could not be verified');
  const keys = [hmac_key, ...(hmac_key_next ? [hmac_key_next] : [])];
  if (keys.every((key) => HMAC_KEY.test(key.reveal()))) return keys;
  throw new Error('the secrets hmac_key and hmac_key_next must be HMAC keys of Adyen: 64 hexadecimal digits');
}

function readBaseUrl(baseUrl: unknown): { origin: string; basePath: string } {
  const url = typeof baseUrl === 'string' ? URL.parse(baseUrl) : null;
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new Error('base_url must be an http or https URL');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new Error('base_url must have no user, password, query or fragment');
  }
  const basePath = url.pathname.replace(/\/+$/, '');
  if (/\/v\d+$/.test(basePath)) throw new Error('base_url must end before the version of the API');
  return { origin: url.origin, basePath };
}
