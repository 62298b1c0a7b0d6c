import type { JsonObject } from '@bufbuild/protobuf';
import {
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

/** Settings of a connection to a PayPal account. */
export type PayPalSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Deadline of one attempt with all its requests. */
  readonly timeoutMs: number;
  /** The merchant's id at PayPal: identifies the account, so that the credentials may be replaced. */
  readonly accountId: string | undefined;
  readonly clientId: Secret;
  readonly clientSecret: Secret;
  /** Ids of the webhook that delivers our notifications: two while one replaces the other, none if they are unread. */
  readonly webhookIds: readonly string[];
  /** Shown to the payer at PayPal, instead of the account's name. */
  readonly brandName: string | undefined;
  /** Language of PayPal's pages, such as `es-CO`; by default the payer's own. */
  readonly locale: string | undefined;
  /** Sends the payer's shipping address to PayPal, which checks it and may refuse it. */
  readonly sendsShippingAddress: boolean;
};

const KNOWN = {
  settings: [
    'base_url',
    'timeout_ms',
    'account_id',
    'webhook_ids',
    'brand_name',
    'locale',
    'send_shipping_address',
  ],
  secrets: ['client_id', 'client_secret'],
};
const MAX_WEBHOOKS = 2;
const ACCOUNT_ID = /^[2-9A-HJ-NP-Z]{13}$/;
const WEBHOOK_ID = /^[A-Za-z0-9]{1,50}$/;
const BRAND_NAME = /^.{1,127}$/u;
const LOCALE = /^[a-z]{2}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|[0-9]{3}))?$/;
/** Printable, and without the colon that separates the two in Basic authentication. */
const CREDENTIAL = /^[\x21-\x39\x3b-\x7e]{1,255}$/;

/**
 * Reads a connection's settings: `base_url` (https://api-m.paypal.com by default), `timeout_ms` (100 to 60000, 20000 by
 * default), `account_id`, `webhook_ids`, `brand_name`, `locale`, `send_shipping_address` (all optional); and the
 * secrets `client_id` and `client_secret`.
 *
 * @throws Error that names the setting at fault, without its value.
 */
export function readSettings(settings: JsonObject, secrets: Secrets): PayPalSettings {
  refuseOthers('paypal', { settings, secrets }, KNOWN);
  const webhookIds = readTexts(settings, 'webhook_ids', WEBHOOK_ID, 'one or two ids of PayPal webhooks');
  if (webhookIds.length > MAX_WEBHOOKS) throw new Error('webhook_ids must be one or two ids');
  const credential = (name: string) =>
    readSecret(secrets, name, CREDENTIAL, 'that of a PayPal REST app: printable ASCII without a colon');
  return {
    origin: readOrigin(settings, 'https://api-m.paypal.com'),
    timeoutMs: readTimeoutMs(settings),
    accountId: readOptionalText(settings, 'account_id', ACCOUNT_ID, "a merchant's id, 13 characters"),
    clientId: credential('client_id'),
    clientSecret: credential('client_secret'),
    webhookIds,
    brandName: readOptionalText(settings, 'brand_name', BRAND_NAME, '1 to 127 characters'),
    locale: readOptionalText(settings, 'locale', LOCALE, 'a language tag such as es-CO'),
    sendsShippingAddress: readFlag(settings, 'send_shipping_address'),
  };
}
