import type { JsonObject } from '@bufbuild/protobuf';
import {
  readExchangedSecrets,
  readFlag,
  readOptionalText,
  readOrigin,
  readSecret,
  readTexts,
  readTimeoutMs,
  refuseOthers,
  type Secrets,
} from '#src/connectors/provider-settings.ts';
import type { Secret } from '#src/secret.ts';

/** Settings of a connection to a Mercado Pago account. */
export type MercadoPagoSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Deadline of one call with all its requests. */
  readonly timeoutMs: number;
  /** The account's only currency, which its country determines. */
  readonly currency: string;
  /** The account's number (`collector_id`): identifies the account, so that the token may be renewed. */
  readonly accountId: string | undefined;
  readonly accessToken: Secret;
  /** Secrets of the application's webhooks: two while one is renewed, none if notifications are not read. */
  readonly webhookSecrets: readonly Secret[];
  /** Payments are approved or rejected at once, never pending. */
  readonly binaryMode: boolean;
  /** Shown on the payer's statement; '' for the account's own. */
  readonly statementDescriptor: string;
  /** Payment types that are not offered, such as `ticket` and `atm`. */
  readonly excludedPaymentTypes: readonly string[];
};

/** Each account has one site, and each site one currency. */
const CURRENCY_BY_COUNTRY: ReadonlyMap<unknown, string> = new Map(
  Object.entries({ AR: 'ARS', BR: 'BRL', CL: 'CLP', CO: 'COP', MX: 'MXN', PE: 'PEN', UY: 'UYU' }),
);
const KNOWN = {
  settings: [
    'base_url',
    'timeout_ms',
    'country',
    'account_id',
    'binary_mode',
    'statement_descriptor',
    'excluded_payment_types',
  ],
  secrets: ['access_token', 'webhook_secret', 'webhook_secret_next'],
};
const ACCOUNT_ID = /^\d{1,20}$/;
const ACCESS_TOKEN = /^(APP_USR|TEST)-[\x21-\x7e]{1,240}$/;
const WEBHOOK_SECRET = /^[\x21-\x7e]{16,255}$/;
/** Matches a descriptor of up to the shortest documented limit. */
const STATEMENT_DESCRIPTOR = /^[A-Za-z0-9 .*-]{0,13}$/;
const PAYMENT_TYPE = /^[a-z_]{1,32}$/;

/**
 * Reads a connection's settings: `country` (AR, BR, CL, CO, MX, PE or UY), `base_url` (https://api.mercadopago.com by
 * default), `timeout_ms` (100 to 60000, 20000 by default), `account_id`, `binary_mode`, `statement_descriptor`,
 * `excluded_payment_types` (all optional); and the secrets `access_token`, `webhook_secret` and `webhook_secret_next`
 * (the last two optional).
 *
 * @throws Error that names the setting at fault, without its value.
 */
export function readSettings(settings: JsonObject, secrets: Secrets): MercadoPagoSettings {
  refuseOthers('mercado-pago', { settings, secrets }, KNOWN);
  const currency = CURRENCY_BY_COUNTRY.get(settings.country);
  if (currency === undefined) {
    throw new Error(`country must be the account's: ${[...CURRENCY_BY_COUNTRY.keys()].join(', ')}`);
  }
  const descriptor = 'at most 13 letters, digits, spaces, ".", "*" or "-"';
  return {
    origin: readOrigin(settings, 'https://api.mercadopago.com'),
    timeoutMs: readTimeoutMs(settings),
    currency,
    accountId: readOptionalText(settings, 'account_id', ACCOUNT_ID, "the account's number, as a text"),
    accessToken: readSecret(
      secrets,
      'access_token',
      ACCESS_TOKEN,
      'an access token of Mercado Pago (APP_USR-… or TEST-…)',
    ),
    webhookSecrets: readExchangedSecrets(
      secrets,
      ['webhook_secret', 'webhook_secret_next'],
      WEBHOOK_SECRET,
      "the secret signature of an application's webhooks",
    ),
    binaryMode: readFlag(settings, 'binary_mode'),
    statementDescriptor:
      readOptionalText(settings, 'statement_descriptor', STATEMENT_DESCRIPTOR, descriptor) ?? '',
    excludedPaymentTypes: readTexts(
      settings,
      'excluded_payment_types',
      PAYMENT_TYPE,
      'a list of payment types, such as ticket',
    ),
  };
}
