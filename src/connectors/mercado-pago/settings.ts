import type { JsonObject } from '@bufbuild/protobuf';
import { MercadoPagoConfigSchema } from '#gen/payments/config/connector_settings_pb.js';
import type { Secret } from '#src/secret.ts';
import {
  baseUrl,
  checkSettings,
  currentSecrets,
  DEFAULT_TIMEOUT_MS,
  requiredSecret,
  type Secrets,
} from '../kit/provider-settings.ts';

/** Names of the secrets that verify notifications: a second one while it replaces the first. */
export const NOTIFICATION_SECRETS = ['webhook_secret', 'webhook_secret_next'];

/** Settings of a connection to a Mercado Pago account. */
export type MercadoPagoSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Deadline of a call with all its requests. */
  readonly timeoutMs: number;
  /** The account's country (ISO 3166-1 alpha-2). */
  readonly country: string;
  /** The account's only currency, which its country determines. */
  readonly currency: string;
  /** The account's number (`collector_id`), which identifies the account so that its token may change. */
  readonly accountId: string | undefined;
  readonly accessToken: Secret;
  /** Secrets of the application's webhooks: two during a rotation, none if notifications are not used. */
  readonly webhookSecrets: readonly Secret[];
  /** Payments are approved or rejected at once, never pending. */
  readonly binaryMode: boolean;
  /** Shown on the payer's statement; '' for the account's default. */
  readonly statementDescriptor: string;
  /** Payment types to exclude, such as `ticket` and `atm`. */
  readonly excludedPaymentTypes: readonly string[];
  /** Mercado Pago's names of payment methods, by payment_method.type, in addition to those that the connector knows. */
  readonly methods: Readonly<Record<string, string>>;
  /** Mercado Pago has enabled payments without a security code. */
  readonly withoutSecurityCode: boolean;
  /** Mercado Pago has enabled the results of external 3-D Secure. */
  readonly externalThreeDSecure: boolean;
};

/** Each account has one site, and each site one currency. */
const CURRENCY_BY_COUNTRY: ReadonlyMap<string, string> = new Map(
  Object.entries({ AR: 'ARS', BR: 'BRL', CL: 'CLP', CO: 'COP', MX: 'MXN', PE: 'PEN', UY: 'UYU' }),
);

/** The form of the settings: their message, and the values of absent ones. */
export const FORM = {
  schema: MercadoPagoConfigSchema,
  defaults: {
    base_url: 'https://api.mercadopago.com',
    timeout_ms: DEFAULT_TIMEOUT_MS,
  },
} as const;

/**
 * Reads a connection's settings and secrets, which MercadoPagoConfig describes.
 *
 * @throws Error that names the invalid setting, without its value.
 */
export function readSettings(settings: JsonObject, secrets: Secrets): MercadoPagoSettings {
  const { defaults } = FORM;
  const config = checkSettings(FORM.schema, settings, secrets);
  const currency = CURRENCY_BY_COUNTRY.get(config.country);
  if (currency === undefined) throw new Error('country has no currency');
  return {
    origin: baseUrl(config.baseUrl ?? defaults.base_url).origin,
    timeoutMs: config.timeoutMs ?? defaults.timeout_ms,
    country: config.country,
    currency,
    accountId: config.accountId,
    accessToken: requiredSecret(secrets, 'access_token'),
    webhookSecrets: currentSecrets(secrets, NOTIFICATION_SECRETS),
    binaryMode: config.binaryMode,
    statementDescriptor: config.statementDescriptor ?? '',
    excludedPaymentTypes: config.excludedPaymentTypes,
    methods: config.methods,
    withoutSecurityCode: config.withoutSecurityCode,
    externalThreeDSecure: config.externalThreeDSecure,
  };
}
