import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { isTextLike } from '#src/connectors/provider-answer.ts';
import type { Secret } from '#src/secret.ts';

/** Settings of a connection to a PayPal account. */
export type PayPalSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** For one attempt with all of its requests. */
  readonly timeoutMs: number;
  /** The merchant's id at PayPal: says which account the credentials belong to, so that they may be exchanged. */
  readonly accountId: string | undefined;
  readonly clientId: Secret;
  readonly clientSecret: Secret;
  /** Ids of the webhook whose notifications are ours; two while it is exchanged, none where no notifications are read. */
  readonly webhookIds: readonly string[];
  /** Shown to the payer at PayPal, in place of the account's name. */
  readonly brandName: string | undefined;
  /** The language of PayPal's pages, as in `es-CO`; by default the payer's own. */
  readonly locale: string | undefined;
  /** The payer's shipping address is given to PayPal, which checks it and may refuse it. */
  readonly sendsShippingAddress: boolean;
};

const NAMES: ReadonlySet<string> = new Set([
  'base_url',
  'timeout_ms',
  'account_id',
  'webhook_ids',
  'brand_name',
  'locale',
  'send_shipping_address',
]);
const SECRETS: ReadonlySet<string> = new Set(['client_id', 'client_secret']);
const DEFAULT_TIMEOUT_MS = 20_000;
const MIN_TIMEOUT_MS = 100;
const MAX_TIMEOUT_MS = 60_000;
const MAX_WEBHOOKS = 2;
const ACCOUNT_ID = /^[2-9A-HJ-NP-Z]{13}$/;
const WEBHOOK_ID = /^[A-Za-z0-9]{1,50}$/;
const BRAND_NAME = /^.{1,127}$/u;
const LOCALE = /^[a-z]{2}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|[0-9]{3}))?$/;
/** Printable, and without the colon that parts the two in Basic authentication. */
const CREDENTIAL = /^[\x21-\x39\x3b-\x7e]{1,255}$/;

/**
 * Reads a connection's settings: `base_url` (https://api-m.paypal.com by default), `timeout_ms` (100 to 60000, 20000 by
 * default), `account_id`, `webhook_ids`, `brand_name`, `locale`, `send_shipping_address` (all optional); and the secrets
 * `client_id` and `client_secret`.
 *
 * @throws Error naming the setting at fault, without its value.
 */
export function readSettings(
  settings: JsonObject,
  secrets: Readonly<Record<string, Secret>>,
): PayPalSettings {
  refuseOthers(settings, NAMES, 'setting');
  refuseOthers(secrets, SECRETS, 'secret');
  const { timeout_ms: timeoutMs = DEFAULT_TIMEOUT_MS, webhook_ids: webhookIds = [] } = settings;
  const { send_shipping_address: sendsShippingAddress = false } = settings;
  if (
    typeof timeoutMs !== 'number' ||
    !Number.isInteger(timeoutMs) ||
    timeoutMs < MIN_TIMEOUT_MS ||
    timeoutMs > MAX_TIMEOUT_MS
  ) {
    throw new Error(`timeout_ms must be an integer from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`);
  }
  if (!isWebhookIds(webhookIds)) throw new Error('webhook_ids must list one or two ids of PayPal webhooks');
  if (typeof sendsShippingAddress !== 'boolean') {
    throw new Error('send_shipping_address must be true or false');
  }
  return {
    origin: readOrigin(settings.base_url ?? 'https://api-m.paypal.com'),
    timeoutMs,
    accountId: readText(settings.account_id, ACCOUNT_ID, "account_id must be a merchant's id, 13 characters"),
    clientId: readCredential(secrets, 'client_id'),
    clientSecret: readCredential(secrets, 'client_secret'),
    webhookIds,
    brandName: readText(settings.brand_name, BRAND_NAME, 'brand_name must be 1 to 127 characters'),
    locale: readText(settings.locale, LOCALE, 'locale must be a language tag such as es-CO'),
    sendsShippingAddress,
  };
}

function refuseOthers(given: object, known: ReadonlySet<string>, what: string): void {
  const other = Object.keys(given).find((name) => !known.has(name));
  if (other !== undefined) throw new Error(`the paypal connector has no ${what} ${other}`);
}

function isWebhookIds(value: JsonValue): value is string[] {
  return (
    Array.isArray(value) && value.length <= MAX_WEBHOOKS && value.every((id) => isTextLike(id, WEBHOOK_ID))
  );
}

function readText(value: JsonValue | undefined, pattern: RegExp, otherwise: string): string | undefined {
  if (value === undefined || isTextLike(value, pattern)) return value;
  throw new Error(otherwise);
}

function readCredential(secrets: Readonly<Record<string, Secret>>, name: string): Secret {
  const secret = secrets[name];
  if (secret && CREDENTIAL.test(secret.reveal())) return secret;
  throw new Error(`the secret ${name} must be that of a PayPal REST app: printable ASCII without a colon`);
}

function readOrigin(baseUrl: unknown): string {
  const url = typeof baseUrl === 'string' ? URL.parse(baseUrl) : null;
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || `${url.origin}/` !== url.href) {
    throw new Error('base_url must be an http or https URL without user, path, query or fragment');
  }
  return url.origin;
}
