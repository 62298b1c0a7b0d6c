import type { JsonObject } from '@bufbuild/protobuf';
import { StripeConfigSchema } from '#gen/payments/config/connector_settings_pb.js';
import type { Secret } from '#src/secret.ts';
import {
  baseUrl,
  checkSettings,
  currentSecrets,
  DEFAULT_TIMEOUT_MS,
  requiredSecret,
  type Secrets,
} from '../kit/provider-settings.ts';
import { methodsOf, type StripeMethod } from './local-methods.ts';

/** Names of the secrets that verify notifications: a second one while it replaces the first. */
export const NOTIFICATION_SECRETS = ['webhook_secret', 'webhook_secret_next'];

/** Settings of a connection to a Stripe account. */
export type StripeSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Deadline of an attempt with all its requests. */
  readonly timeoutMs: number;
  /** `acct_…`, which identifies the account so that its key may be rolled. */
  readonly accountId: string | undefined;
  readonly apiKey: Secret;
  readonly isLive: boolean;
  /** Secrets of the notification endpoint: two during a rotation, none if notifications are not used. */
  readonly webhookSecrets: readonly Secret[];
  /** The account supports installments (accounts in Mexico, and some in Japan). */
  readonly installments: boolean;
  /**
   * 'automatic': Stripe requests 3-D Secure if laws or scheme rules require it; 'any': for every card that supports it.
   */
  readonly requestThreeDSecure: 'automatic' | 'any';
  /** Accepts tokens of Apple Pay, with a request that Stripe does not publish. */
  readonly applePayTokens: boolean;
  /** The service fetches the account's settlement reports daily. */
  readonly fetchesSettlement: boolean;
  /** The local methods, by payment_method.type. */
  readonly localMethods: ReadonlyMap<string, StripeMethod>;
};

/** The form of the settings: their message, and the values of absent ones. */
export const FORM = {
  schema: StripeConfigSchema,
  defaults: {
    base_url: 'https://api.stripe.com',
    timeout_ms: DEFAULT_TIMEOUT_MS,
    request_three_d_secure: 'automatic',
  },
} as const;

/**
 * Reads a connection's settings and secrets, which StripeConfig describes.
 *
 * @throws Error that names the invalid setting, without its value.
 */
export function readSettings(settings: JsonObject, secrets: Secrets): StripeSettings {
  const { defaults } = FORM;
  const config = checkSettings(FORM.schema, settings, secrets);
  const apiKey = requiredSecret(secrets, 'api_key');
  return {
    origin: baseUrl(config.baseUrl ?? defaults.base_url).origin,
    timeoutMs: config.timeoutMs ?? defaults.timeout_ms,
    accountId: config.accountId,
    apiKey,
    isLive: /^[sr]k_live_/.test(apiKey.reveal()),
    webhookSecrets: currentSecrets(secrets, NOTIFICATION_SECRETS),
    installments: config.installments,
    requestThreeDSecure: config.requestThreeDSecure === 'any' ? 'any' : defaults.request_three_d_secure,
    applePayTokens: config.applePayTokens,
    fetchesSettlement: config.fetchSettlement,
    localMethods: methodsOf(config.methods),
  };
}
