import type { JsonObject } from '@bufbuild/protobuf';
import type { Secret } from '#src/secret.ts';

/** Settings of a connection to a Stripe account. */
export type StripeSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** For one attempt with all of its requests. */
  readonly timeoutMs: number;
  /** `acct_…`: says which account the key belongs to, so that the key may be rolled. */
  readonly accountId: string | undefined;
  readonly apiKey: Secret;
  readonly isLive: boolean;
  /** Secrets of the notification endpoint; two while it is rolled, none where no notifications are read. */
  readonly webhookSecrets: readonly Secret[];
  /** The account can pay by installments (accounts in Mexico, and some in Japan). */
  readonly installments: boolean;
  /** Occasions on which Stripe asks for 3-D Secure: where the law or its rules want it, or with every card that can. */
  readonly requestThreeDSecure: 'automatic' | 'any';
};

const NAMES: ReadonlySet<string> = new Set([
  'base_url',
  'timeout_ms',
  'account_id',
  'installments',
  'request_three_d_secure',
]);
const SECRETS: ReadonlySet<string> = new Set(['api_key', 'webhook_secret', 'webhook_secret_next']);
const DEFAULT_TIMEOUT_MS = 20_000;
const MIN_TIMEOUT_MS = 100;
const MAX_TIMEOUT_MS = 60_000;
const ACCOUNT_ID = /^acct_[A-Za-z0-9]{1,64}$/;
/** A secret key, or a restricted one. Publishable keys (`pk_`) charge nobody. */
const API_KEY = /^[sr]k_(test|live)_[\x21-\x7e]{1,240}$/;
const WEBHOOK_SECRET = /^whsec_[\x21-\x7e]{1,249}$/;

/**
 * Reads a connection's settings: `base_url` (https://api.stripe.com by default), `timeout_ms` (100 to 60000, 20000 by
 * default), `account_id`, `installments`, `request_three_d_secure` (all optional); and the secrets `api_key`,
 * `webhook_secret` and `webhook_secret_next` (the last two optional).
 *
 * @throws Error naming the setting at fault, without its value.
 */
export function readSettings(
  settings: JsonObject,
  secrets: Readonly<Record<string, Secret>>,
): StripeSettings {
  refuseOthers(settings, NAMES, 'setting');
  refuseOthers(secrets, SECRETS, 'secret');
  const { timeout_ms = DEFAULT_TIMEOUT_MS, account_id, installments = false } = settings;
  const { request_three_d_secure: threeDSecure = 'automatic' } = settings;
  if (
    typeof timeout_ms !== 'number' ||
    !Number.isInteger(timeout_ms) ||
    timeout_ms < MIN_TIMEOUT_MS ||
    timeout_ms > MAX_TIMEOUT_MS
  ) {
    throw new Error(`timeout_ms must be an integer from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`);
  }
  if (account_id !== undefined && !(typeof account_id === 'string' && ACCOUNT_ID.test(account_id))) {
    throw new Error('account_id must be the id of a Stripe account, acct_ and letters or digits');
  }
  if (typeof installments !== 'boolean') throw new Error('installments must be true or false');
  if (threeDSecure !== 'automatic' && threeDSecure !== 'any') {
    throw new Error('request_three_d_secure must be automatic or any');
  }
  const apiKey = secrets.api_key;
  const mode = apiKey && API_KEY.exec(apiKey.reveal())?.[1];
  if (!apiKey || !mode) {
    throw new Error('the secret api_key must be a secret or restricted key of Stripe (sk_… or rk_…)');
  }
  return {
    origin: readOrigin(settings.base_url ?? 'https://api.stripe.com'),
    timeoutMs: timeout_ms,
    accountId: account_id,
    apiKey,
    isLive: mode === 'live',
    webhookSecrets: readWebhookSecrets(secrets),
    installments,
    requestThreeDSecure: threeDSecure,
  };
}

function refuseOthers(given: object, known: ReadonlySet<string>, what: string): void {
  const other = Object.keys(given).find((name) => !known.has(name));
  if (other !== undefined) throw new Error(`the stripe connector has no ${what} ${other}`);
}

function readWebhookSecrets(secrets: Readonly<Record<string, Secret>>): readonly Secret[] {
  return ['webhook_secret', 'webhook_secret_next'].flatMap((name) => {
    const secret = secrets[name];
    if (!secret) return [];
    if (WEBHOOK_SECRET.test(secret.reveal())) return [secret];
    throw new Error(`the secret ${name} must be the signing secret of a Stripe endpoint (whsec_…)`);
  });
}

function readOrigin(baseUrl: unknown): string {
  const url = typeof baseUrl === 'string' ? URL.parse(baseUrl) : null;
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || `${url.origin}/` !== url.href) {
    throw new Error('base_url must be an http or https URL without user, path, query or fragment');
  }
  return url.origin;
}
