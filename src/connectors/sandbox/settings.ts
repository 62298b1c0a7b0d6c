import type { JsonObject } from '@bufbuild/protobuf';
import {
  readBaseUrl,
  readExchangedSecrets,
  readOptionalText,
  readSecret,
  readTimeoutMs,
  refuseOthers,
  type Secrets,
} from '#src/connectors/provider-settings.ts';
import type { Secret } from '#src/secret.ts';

/** Settings of a connection to the sandbox provider. */
export type SandboxSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Prefix of the provider's API paths: "" or "/sandbox". */
  readonly basePath: string;
  /** Deadline from the call to the answer's last byte. */
  readonly timeoutMs: number;
  readonly acquirer: 'ONE' | 'TWO';
  /** The account at the provider; the provider has a default. */
  readonly accountId: string | undefined;
  readonly apiKey: Secret;
  /** Any of them verifies a notification. Empty: no notifications. */
  readonly notificationSecrets: readonly Secret[];
};

const KNOWN = {
  settings: ['base_url', 'timeout_ms', 'acquirer', 'account_id'],
  secrets: ['api_key', 'notification_secret', 'previous_notification_secret'],
};
const DEFAULT_TIMEOUT_MS = 10_000;
const ACCOUNT_ID = /^[A-Za-z0-9_-]{1,64}$/;
const NOTIFICATION_SECRET = /^.{16,}$/s;
/** Matches a valid header value. */
const API_KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Reads a connection's settings: `base_url` (http or https), `timeout_ms` (100 to 60000, 10000 by default), `acquirer`
 * (ONE or TWO, ONE by default), `account_id` (optional); the secret `api_key`; and, for signed notifications, the
 * secrets `notification_secret` and, while it is being replaced, `previous_notification_secret`.
 *
 * @throws Error that names the setting at fault, without its value.
 */
export function readSettings(settings: JsonObject, secrets: Secrets): SandboxSettings {
  refuseOthers('sandbox', { settings, secrets }, KNOWN);
  const { acquirer = 'ONE' } = settings;
  if (acquirer !== 'ONE' && acquirer !== 'TWO') throw new Error('acquirer must be ONE or TWO');
  return {
    ...readBaseUrl(settings),
    timeoutMs: readTimeoutMs(settings, DEFAULT_TIMEOUT_MS),
    acquirer,
    accountId: readOptionalText(settings, 'account_id', ACCOUNT_ID, '1 to 64 letters, digits, - or _'),
    apiKey: readSecret(secrets, 'api_key', API_KEY, '1 to 255 printable ASCII characters'),
    notificationSecrets: readExchangedSecrets(
      secrets,
      ['notification_secret', 'previous_notification_secret'],
      NOTIFICATION_SECRET,
      '16 characters or more',
    ),
  };
}
