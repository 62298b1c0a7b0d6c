import type { JsonObject } from '@bufbuild/protobuf';
import type { Secret } from '#src/secret.ts';

/** Settings of a connection to a Mercado Pago account. */
export type MercadoPagoSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** For one call with all of its requests. */
  readonly timeoutMs: number;
  /** The account's only currency, which its country decides. */
  readonly currency: string;
  /** The account's number (`collector_id`): says which account the token belongs to, so that the token may be renewed. */
  readonly accountId: string | undefined;
  readonly accessToken: Secret;
  /** Secrets of the application's webhooks; two while one is renewed, none where no notifications are read. */
  readonly webhookSecrets: readonly Secret[];
  /** Payments are approved or rejected at once, never pending. */
  readonly binaryMode: boolean;
  /** Shown on the payer's statement; '' for the account's own. */
  readonly statementDescriptor: string;
  /** Ways of paying that are not offered, such as `ticket` and `atm`. */
  readonly excludedPaymentTypes: readonly string[];
};

/** One account has one site, and one site has one currency. */
const CURRENCY_BY_COUNTRY: ReadonlyMap<unknown, string> = new Map(
  Object.entries({ AR: 'ARS', BR: 'BRL', CL: 'CLP', CO: 'COP', MX: 'MXN', PE: 'PEN', UY: 'UYU' }),
);
const NAMES: ReadonlySet<string> = new Set([
  'base_url',
  'timeout_ms',
  'country',
  'account_id',
  'binary_mode',
  'statement_descriptor',
  'excluded_payment_types',
]);
const SECRETS: ReadonlySet<string> = new Set(['access_token', 'webhook_secret', 'webhook_secret_next']);
const DEFAULT_TIMEOUT_MS = 20_000;
const MIN_TIMEOUT_MS = 100;
const MAX_TIMEOUT_MS = 60_000;
const ACCOUNT_ID = /^\d{1,20}$/;
const ACCESS_TOKEN = /^(APP_USR|TEST)-[\x21-\x7e]{1,240}$/;
const WEBHOOK_SECRET = /^[\x21-\x7e]{16,255}$/;
/** The shortest limit that is told of statements. */
const STATEMENT_DESCRIPTOR = /^[A-Za-z0-9 .*-]{0,13}$/;
const PAYMENT_TYPE = /^[a-z_]{1,32}$/;

/**
 * Reads a connection's settings: `country` (AR, BR, CL, CO, MX, PE or UY), `base_url` (https://api.mercadopago.com by
 * default), `timeout_ms` (100 to 60000, 20000 by default), `account_id`, `binary_mode`, `statement_descriptor`,
 * `excluded_payment_types` (all optional); and the secrets `access_token`, `webhook_secret` and `webhook_secret_next` (the
 * last two optional).
 *
 * @throws Error naming the setting at fault, without its value.
 */
export function readSettings(
  settings: JsonObject,
  secrets: Readonly<Record<string, Secret>>,
): MercadoPagoSettings {
  refuseOthers(settings, NAMES, 'setting');
  refuseOthers(secrets, SECRETS, 'secret');
  const { timeout_ms = DEFAULT_TIMEOUT_MS, account_id, binary_mode = false } = settings;
  const { statement_descriptor = '', excluded_payment_types = [] } = settings;
  if (
    typeof timeout_ms !== 'number' ||
    !Number.isInteger(timeout_ms) ||
    timeout_ms < MIN_TIMEOUT_MS ||
    timeout_ms > MAX_TIMEOUT_MS
  ) {
    throw new Error(`timeout_ms must be an integer from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`);
  }
  const currency = CURRENCY_BY_COUNTRY.get(settings.country);
  if (currency === undefined) {
    throw new Error(`country must be the account's: ${[...CURRENCY_BY_COUNTRY.keys()].join(', ')}`);
  }
  if (account_id !== undefined && !(typeof account_id === 'string' && ACCOUNT_ID.test(account_id))) {
    throw new Error("account_id must be the account's number, as a text");
  }
  if (typeof binary_mode !== 'boolean') throw new Error('binary_mode must be true or false');
  if (typeof statement_descriptor !== 'string' || !STATEMENT_DESCRIPTOR.test(statement_descriptor)) {
    throw new Error('statement_descriptor must be at most 13 letters, digits, spaces, ".", "*" or "-"');
  }
  return {
    origin: readOrigin(settings.base_url ?? 'https://api.mercadopago.com'),
    timeoutMs: timeout_ms,
    currency,
    accountId: account_id,
    accessToken: readAccessToken(secrets),
    webhookSecrets: readWebhookSecrets(secrets),
    binaryMode: binary_mode,
    statementDescriptor: statement_descriptor,
    excludedPaymentTypes: readPaymentTypes(excluded_payment_types),
  };
}

function refuseOthers(given: object, known: ReadonlySet<string>, what: string): void {
  const other = Object.keys(given).find((name) => !known.has(name));
  if (other !== undefined) throw new Error(`the mercado-pago connector has no ${what} ${other}`);
}

function readAccessToken({ access_token: token }: Readonly<Record<string, Secret>>): Secret {
  if (token && ACCESS_TOKEN.test(token.reveal())) return token;
  throw new Error('the secret access_token must be an access token of Mercado Pago (APP_USR-… or TEST-…)');
}

function readWebhookSecrets(secrets: Readonly<Record<string, Secret>>): readonly Secret[] {
  return ['webhook_secret', 'webhook_secret_next'].flatMap((name) => {
    const secret = secrets[name];
    if (!secret) return [];
    if (WEBHOOK_SECRET.test(secret.reveal())) return [secret];
    throw new Error(`the secret ${name} must be the secret signature of an application's webhooks`);
  });
}

function readPaymentTypes(types: unknown): readonly string[] {
  const isType = (type: unknown) => typeof type === 'string' && PAYMENT_TYPE.test(type);
  if (Array.isArray(types) && types.every(isType)) return types;
  throw new Error('excluded_payment_types must be a list of payment types, such as ticket');
}

function readOrigin(baseUrl: unknown): string {
  const url = typeof baseUrl === 'string' ? URL.parse(baseUrl) : null;
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || `${url.origin}/` !== url.href) {
    throw new Error('base_url must be an http or https URL without user, path, query or fragment');
  }
  return url.origin;
}
