import type { JsonObject } from '@bufbuild/protobuf';
import { AdyenConfigSchema } from '#gen/payments/config/connector_settings_pb.js';
import type { Secret } from '#src/secret.ts';
import {
  baseUrl,
  checkSettings,
  currentSecrets,
  DEFAULT_TIMEOUT_MS,
  requiredSecret,
  type Secrets,
} from '../kit/provider-settings.ts';
import { type OfferedMethods, offeredMethods } from './methods.ts';

/** Names of the secrets that verify notifications: a second one while it replaces the first. */
export const NOTIFICATION_SECRETS = ['hmac_key', 'hmac_key_next'];

/** Settings of a connection to an Adyen merchant account. */
export type AdyenSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Prefix of the API's paths before the version: "" in the test system, "/checkout" in the live system. */
  readonly basePath: string;
  readonly timeoutMs: number;
  readonly merchantAccount: string;
  /** The account supports installments (Brazil, Mexico, Turkey and others). */
  readonly installments: boolean;
  /** Everything that the connection offers besides cards. */
  readonly methods: OfferedMethods;
  /** Time after which a payment without a notification gets a technical cancel. */
  readonly technicalCancelAfterMs: number;
  readonly apiKey: Secret;
  /** HMAC keys of Adyen's notifications, in hex; two during a rotation. */
  readonly hmacKeys: readonly Secret[];
};

/** The form of the settings: their message, and the values of absent ones. */
export const FORM = {
  schema: AdyenConfigSchema,
  defaults: {
    timeout_ms: DEFAULT_TIMEOUT_MS,
    // Adyen repeats a rejected notification, first within minutes, then for hours.
    technical_cancel_minutes: 60,
  },
} as const;

/**
 * Reads a connection's settings and secrets, which AdyenConfig describes.
 *
 * @throws Error that names the invalid setting, without its value.
 */
export function readSettings(settings: JsonObject, secrets: Secrets): AdyenSettings {
  const { defaults } = FORM;
  const config = checkSettings(FORM.schema, settings, secrets);
  return {
    ...baseUrl(config.baseUrl),
    timeoutMs: config.timeoutMs ?? defaults.timeout_ms,
    merchantAccount: config.merchantAccount,
    installments: config.installments,
    methods: offeredMethods(config.redirectMethods, config.methods),
    technicalCancelAfterMs: (config.technicalCancelMinutes ?? defaults.technical_cancel_minutes) * 60_000,
    apiKey: requiredSecret(secrets, 'api_key'),
    hmacKeys: currentSecrets(secrets, NOTIFICATION_SECRETS),
  };
}
