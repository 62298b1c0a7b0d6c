import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { isJsonObject, isTextLike } from '#src/connectors/provider-answer.ts';
import {
  readBaseUrl,
  readExchangedSecrets,
  readFlag,
  readSecret,
  readText,
  readTimeoutMs,
  refuseOthers,
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

const KNOWN = {
  settings: [
    'base_url',
    'timeout_ms',
    'merchant_account',
    'installments',
    'redirect_methods',
    'technical_cancel_minutes',
  ],
  secrets: ['api_key', 'hmac_key', 'hmac_key_next'],
};
/** No colon, since the signature of a notification joins its fields with colons. */
const MERCHANT_ACCOUNT = /^[A-Za-z0-9_.-]{1,100}$/;
const METHOD_TYPE = /^[a-z0-9_]{1,64}$/;
/** Matches texts that a header can carry. */
const API_KEY = /^[\x21-\x7e]{1,1024}$/;
const HMAC_KEY = /^[0-9A-Fa-f]{64}$/;
const HMAC_KEY_FORM = 'an HMAC key of Adyen: 64 hexadecimal digits';
/** Adyen repeats a notification that was not accepted, first within minutes, then for hours. */
const DEFAULT_CANCEL_MINUTES = 60;
/** A request on its way to Adyen must not arrive after its cancel. */
const MIN_CANCEL_MINUTES = 5;
const MAX_CANCEL_MINUTES = 7 * 1_440;

/**
 * Reads a connection's settings: `base_url` (required), `merchant_account` (required), `timeout_ms` (100 to 60000,
 * 20000 by default), `installments`, `redirect_methods`, `technical_cancel_minutes` (5 to 10080, 60 by default); and
 * the secrets `api_key`, `hmac_key` and, while it is being replaced, `hmac_key_next`. A connection without `hmac_key`
 * is refused: only notifications report the outcomes of captures, cancels, refunds and lost answers.
 *
 * @throws Error that names the setting at fault, without its value.
 */
export function readSettings(settings: JsonObject, secrets: Secrets): AdyenSettings {
  refuseOthers('adyen', { settings, secrets }, KNOWN);
  const { origin, basePath } = readBaseUrl(settings);
  if (/\/v\d+$/.test(basePath)) throw new Error('base_url must end before the version of the API');
  const hmacKeys = readExchangedSecrets(secrets, ['hmac_key', 'hmac_key_next'], HMAC_KEY, HMAC_KEY_FORM);
  if (!secrets.hmac_key)
    throw new Error('the secret hmac_key is missing: notifications could not be verified');
  return {
    origin,
    basePath,
    timeoutMs: readTimeoutMs(settings),
    merchantAccount: readText(
      settings,
      'merchant_account',
      MERCHANT_ACCOUNT,
      'the name of an Adyen merchant account',
    ),
    installments: readFlag(settings, 'installments'),
    redirectMethods: readRedirectMethods(settings.redirect_methods),
    technicalCancelAfterMs: readCancelMinutes(settings) * 60_000,
    apiKey: readSecret(secrets, 'api_key', API_KEY, 'an Adyen API key: printable ASCII characters'),
    hmacKeys,
  };
}

function readCancelMinutes({
  technical_cancel_minutes: minutes = DEFAULT_CANCEL_MINUTES,
}: JsonObject): number {
  const isInteger = typeof minutes === 'number' && Number.isInteger(minutes);
  if (isInteger && minutes >= MIN_CANCEL_MINUTES && minutes <= MAX_CANCEL_MINUTES) return minutes;
  throw new Error(
    `technical_cancel_minutes must be an integer from ${MIN_CANCEL_MINUTES} to ${MAX_CANCEL_MINUTES}`,
  );
}

function readRedirectMethods(methods: JsonValue = {}): ReadonlyMap<string, string> {
  const entries = isJsonObject(methods) ? Object.entries(methods) : [['', '']];
  return new Map(
    entries.map(([type = '', method]) => {
      if (type !== '' && isTextLike(method, METHOD_TYPE)) return [type, method];
      throw new Error("redirect_methods must map payment_method types to Adyen's, such as IDEAL: ideal");
    }),
  );
}
