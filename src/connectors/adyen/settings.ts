import type { JsonObject } from '@bufbuild/protobuf';
import { AdyenConfigSchema } from '#gen/payments/config/connector_settings_pb.js';
import {
  baseUrl,
  checkSettings,
  currentSecrets,
  DEFAULT_TIMEOUT_MS,
  requiredSecret,
  type Secrets,
} from '#src/connectors/provider-settings.ts';
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
  /** Time after which a payment without any report gets its technical cancel. */
  readonly technicalCancelAfterMs: number;
  readonly apiKey: Secret;
  /** Keys for Adyen's signatures of notifications, in hex; two while one replaces the other. */
  readonly hmacKeys: readonly Secret[];
};

/** Adyen repeats a notification that was not accepted, first within minutes, then for hours. */
const DEFAULT_CANCEL_MINUTES = 60;

/**
 * Reads a connection's settings and secrets, which AdyenConfig describes.
 *
 * @throws Error that names the setting at fault, without its value.
 */
export function readSettings(settings: JsonObject, secrets: Secrets): AdyenSettings {
  const config = checkSettings(AdyenConfigSchema, settings, secrets);
  return {
    ...baseUrl(config.baseUrl),
    timeoutMs: config.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    merchantAccount: config.merchantAccount,
    installments: config.installments,
    redirectMethods: new Map(Object.entries(config.redirectMethods)),
    technicalCancelAfterMs: (config.technicalCancelMinutes ?? DEFAULT_CANCEL_MINUTES) * 60_000,
    apiKey: requiredSecret(secrets, 'api_key'),
    hmacKeys: currentSecrets(secrets, 'hmac_key', 'hmac_key_next'),
  };
}
