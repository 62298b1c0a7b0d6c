import type { JsonObject } from '@bufbuild/protobuf';
import {
  readExchangedSecrets,
  readFlag,
  readOptionalText,
  readOrigin,
  readSecret,
  readTimeoutMs,
  refuseOthers,
  type Secrets,
} from '#src/connectors/provider-settings.ts';
import type { Secret } from '#src/secret.ts';

/** Settings of a connection to a Stripe account. */
export type StripeSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Deadline of one attempt with all its requests. */
  readonly timeoutMs: number;
  /** `acct_…`: identifies the account, so that the key may be rolled. */
  readonly accountId: string | undefined;
  readonly apiKey: Secret;
  readonly isLive: boolean;
  /** Secrets of the notification endpoint: two while one is rolled, none if notifications are not read. */
  readonly webhookSecrets: readonly Secret[];
  /** The account can pay by installments (accounts in Mexico, and some in Japan). */
  readonly installments: boolean;
  /** 'automatic': Stripe asks for 3-D Secure where laws or scheme rules demand it; 'any': with every capable card. */
  readonly requestThreeDSecure: 'automatic' | 'any';
};

const KNOWN = {
  settings: ['base_url', 'timeout_ms', 'account_id', 'installments', 'request_three_d_secure'],
  secrets: ['api_key', 'webhook_secret', 'webhook_secret_next'],
};
const ACCOUNT_ID = /^acct_[A-Za-z0-9]{1,64}$/;
/** A secret key or a restricted key. Publishable keys (`pk_`) cannot charge. */
const API_KEY = /^[sr]k_(test|live)_[\x21-\x7e]{1,240}$/;
const WEBHOOK_SECRET = /^whsec_[\x21-\x7e]{1,249}$/;

/**
 * Reads a connection's settings: `base_url` (https://api.stripe.com by default), `timeout_ms` (100 to 60000, 20000 by
 * default), `account_id`, `installments`, `request_three_d_secure` (all optional); and the secrets `api_key`,
 * `webhook_secret` and `webhook_secret_next` (the last two optional).
 *
 * @throws Error that names the setting at fault, without its value.
 */
export function readSettings(settings: JsonObject, secrets: Secrets): StripeSettings {
  refuseOthers('stripe', { settings, secrets }, KNOWN);
  const { request_three_d_secure: threeDSecure = 'automatic' } = settings;
  if (threeDSecure !== 'automatic' && threeDSecure !== 'any') {
    throw new Error('request_three_d_secure must be automatic or any');
  }
  const apiKey = readSecret(
    secrets,
    'api_key',
    API_KEY,
    'a secret or restricted key of Stripe (sk_… or rk_…)',
  );
  return {
    origin: readOrigin(settings, 'https://api.stripe.com'),
    timeoutMs: readTimeoutMs(settings),
    accountId: readOptionalText(settings, 'account_id', ACCOUNT_ID, 'the id of a Stripe account (acct_…)'),
    apiKey,
    isLive: API_KEY.exec(apiKey.reveal())?.[1] === 'live',
    webhookSecrets: readExchangedSecrets(
      secrets,
      ['webhook_secret', 'webhook_secret_next'],
      WEBHOOK_SECRET,
      'the signing secret of a Stripe endpoint (whsec_…)',
    ),
    installments: readFlag(settings, 'installments'),
    requestThreeDSecure: threeDSecure,
  };
}
