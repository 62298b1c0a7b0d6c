import type { JsonObject } from '@bufbuild/protobuf';
import { PayPalConfigSchema } from '#gen/payments/config/connector_settings_pb.js';
import type { Secret } from '#src/secret.ts';
import { environmentAt } from '../kit/account-report.ts';
import {
  baseUrl,
  checkSettings,
  DEFAULT_TIMEOUT_MS,
  requiredSecret,
  type Secrets,
} from '../kit/provider-settings.ts';
import type { Environment, ProviderHosts } from '../port/account-report.ts';

/** Settings of a connection to a PayPal account. */
export type PayPalSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** undefined: the account is at no address of PayPal's own. */
  readonly environment: Environment | undefined;
  /** Time limit for an attempt, including all its requests. */
  readonly timeoutMs: number;
  /** The merchant's id at PayPal, which identifies the account so that its credentials may change. */
  readonly accountId: string | undefined;
  readonly clientId: Secret;
  readonly clientSecret: Secret;
  /**
   * Ids of the webhook that delivers our notifications: two during a replacement, none if notifications are not used.
   */
  readonly webhookIds: readonly string[];
  /** Shown to the payer at PayPal, instead of the account's name. */
  readonly brandName: string | undefined;
  /** Language of PayPal's pages, such as `es-CO`; by default, the payer's. */
  readonly locale: string | undefined;
  /** Sends the payer's shipping address to PayPal, which validates it and may refuse it. */
  readonly sendsShippingAddress: boolean;
};

/** PayPal's own hosts. */
export const HOSTS: ProviderHosts = { TEST: ['api-m.sandbox.paypal.com'], LIVE: ['api-m.paypal.com'] };

/** The form of the settings: their message, and the values of absent ones. */
export const FORM = {
  schema: PayPalConfigSchema,
  defaults: {
    base_url: 'https://api-m.paypal.com',
    timeout_ms: DEFAULT_TIMEOUT_MS,
  },
} as const;

/**
 * Reads a connection's settings and secrets, which PayPalConfig describes.
 *
 * @throws Error that names the invalid setting, without its value.
 */
export function readSettings(settings: JsonObject, secrets: Secrets): PayPalSettings {
  const { defaults } = FORM;
  const config = checkSettings(FORM.schema, settings, secrets);
  const { origin } = baseUrl(config.baseUrl ?? defaults.base_url);
  return {
    ...{ origin, environment: environmentAt(HOSTS, origin) },
    timeoutMs: config.timeoutMs ?? defaults.timeout_ms,
    accountId: config.accountId,
    clientId: requiredSecret(secrets, 'client_id'),
    clientSecret: requiredSecret(secrets, 'client_secret'),
    webhookIds: config.webhookIds,
    brandName: config.brandName,
    locale: config.locale,
    sendsShippingAddress: config.sendShippingAddress,
  };
}
