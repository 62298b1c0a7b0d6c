import type { JsonObject } from '@bufbuild/protobuf';
import type { Secret } from '#src/secret.ts';

/** Settings of a connection to the sandbox provider. */
export type SandboxSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Prefix of the provider's API paths: "" or "/sandbox". */
  readonly basePath: string;
  /** For everything between the call and the answer's last byte. */
  readonly timeoutMs: number;
  readonly acquirer: 'ONE' | 'TWO';
  /** The account at the provider; the provider has a default. */
  readonly accountId: string | undefined;
  readonly apiKey: Secret;
  /** Any of them verifies a notification. None: no notifications. */
  readonly notificationSecrets: readonly Secret[];
};

const NAMES: ReadonlySet<string> = new Set(['base_url', 'timeout_ms', 'acquirer', 'account_id']);
const DEFAULT_TIMEOUT_MS = 10_000;
const MIN_TIMEOUT_MS = 100;
const MAX_TIMEOUT_MS = 60_000;
const ACCOUNT_ID = /^[A-Za-z0-9_-]{1,64}$/;
const MIN_SECRET_LENGTH = 16;
/** Matches a valid header value. */
const API_KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Reads a connection's settings: `base_url` (http or https), `timeout_ms` (100 to 60000, 10000 by default), `acquirer`
 * (ONE or TWO, ONE by default), `account_id` (optional); the secret `api_key`; and, for signed notifications, the secrets
 * `notification_secret` and, while that is exchanged for another, `previous_notification_secret`.
 *
 * @throws Error naming the setting at fault, without its value.
 */
export function readSettings(
  settings: JsonObject,
  secrets: Readonly<Record<string, Secret>>,
): SandboxSettings {
  for (const name of Object.keys(settings)) {
    if (!NAMES.has(name)) throw new Error(`the sandbox connector has no setting ${name}`);
  }
  const { base_url, timeout_ms = DEFAULT_TIMEOUT_MS, acquirer = 'ONE', account_id } = settings;
  if (
    typeof timeout_ms !== 'number' ||
    !Number.isInteger(timeout_ms) ||
    timeout_ms < MIN_TIMEOUT_MS ||
    timeout_ms > MAX_TIMEOUT_MS
  ) {
    throw new Error(`timeout_ms must be an integer from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`);
  }
  if (acquirer !== 'ONE' && acquirer !== 'TWO') throw new Error('acquirer must be ONE or TWO');
  if (account_id !== undefined && !(typeof account_id === 'string' && ACCOUNT_ID.test(account_id))) {
    throw new Error('account_id must be 1 to 64 letters, digits, - or _');
  }
  const apiKey = secrets.api_key;
  if (!apiKey || !API_KEY.test(apiKey.reveal())) {
    throw new Error('the secret api_key must be 1 to 255 printable ASCII characters');
  }
  const notificationSecrets = [secrets.notification_secret, secrets.previous_notification_secret].filter(
    (secret) => secret !== undefined,
  );
  if (notificationSecrets.some((secret) => secret.reveal().length < MIN_SECRET_LENGTH)) {
    throw new Error(`a notification secret must have ${MIN_SECRET_LENGTH} characters or more`);
  }
  return {
    ...readBaseUrl(base_url),
    timeoutMs: timeout_ms,
    acquirer,
    accountId: account_id,
    apiKey,
    notificationSecrets,
  };
}

function readBaseUrl(baseUrl: unknown): { origin: string; basePath: string } {
  const url = typeof baseUrl === 'string' ? URL.parse(baseUrl) : null;
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new Error('base_url must be an http or https URL');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new Error('base_url must have no user, password, query or fragment');
  }
  return { origin: url.origin, basePath: url.pathname.replace(/\/+$/, '') };
}
