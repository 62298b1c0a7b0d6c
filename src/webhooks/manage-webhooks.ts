import { isIP } from 'node:net';
import { isPublicAddress } from '#src/public-address.ts';
import { type FieldError, invalidParameters, ServiceError, unknownId } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import type { WebhookName } from '#src/store/tables/outbox.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import {
  deleteWebhook,
  getWebhook,
  insertWebhook,
  listWebhooks,
  rotateWebhookSecret,
  type StoredWebhook,
  updateWebhook,
  type WebhookChange,
} from '#src/store/tables/webhooks.ts';
import { EVENT_TYPES } from './events.ts';
import {
  type Credentials,
  newSigningSecret,
  openSecret,
  type SecretVault,
  sealCredentials,
} from './signing-secret.ts';

/** Dependencies of the webhook functions. */
export type ManageDeps = {
  readonly database: Database;
  readonly vault: SecretVault;
  readonly allowPrivate: boolean;
  readonly newId: () => string;
  /** Sends a webhook's due deliveries now. */
  readonly wake: (webhook: WebhookName) => void;
};

/** A webhook with its new secret, which is shown only once. */
export type WebhookWithSecret = { readonly webhook: StoredWebhook; readonly secret: string };

/** Maximum number of webhooks per account. */
export const MAX_WEBHOOKS = 16;

/**
 * Adds a webhook to an account.
 *
 * @throws ServiceError INVALID_PARAMETERS, WEBHOOK_LIMIT_REACHED.
 */
export async function addWebhook(
  deps: ManageDeps,
  accountId: string,
  request: {
    readonly url: string;
    readonly events: readonly string[];
    readonly description: string;
    readonly credentials?: Credentials | undefined;
  },
): Promise<WebhookWithSecret> {
  requireValidChange(deps, request);
  const id = deps.newId();
  const { shown, sealed } = await newSigningSecret(deps.vault, id);
  const { description, credentials } = request;
  const stored = {
    accountId,
    id,
    url: new URL(request.url).href,
    events: [...new Set(request.events)],
    description,
    secret: sealed,
    credentials: credentials && (await sealCredentials(deps.vault, id, credentials)),
  };
  const webhook = await insertWebhook(deps.database, stored, MAX_WEBHOOKS);
  if (webhook) return { webhook, secret: shown };
  throw new ServiceError(
    'WEBHOOK_LIMIT_REACHED',
    `an account can have at most ${MAX_WEBHOOKS} webhooks; delete one first`,
  );
}

/** Returns one of an account's webhooks. @throws ServiceError WEBHOOK_NOT_FOUND, even for another account's webhook. */
export async function requireWebhook(
  database: Database,
  accountId: string,
  id: string,
): Promise<StoredWebhook> {
  const webhook = isUuid(id) ? await getWebhook(database, accountId, id) : undefined;
  if (!webhook) throw webhookNotFound();
  return webhook;
}

/** Lists an account's webhooks, oldest first. */
export function listOwnWebhooks(database: Database, accountId: string): Promise<StoredWebhook[]> {
  return listWebhooks(database, accountId);
}

/** A requested change to a webhook. */
type Change = Omit<WebhookChange, 'credentials'> & { readonly credentials?: Credentials | undefined };

/** Changes the given fields of a webhook. @throws ServiceError INVALID_PARAMETERS, WEBHOOK_NOT_FOUND. */
export async function changeWebhook(
  deps: ManageDeps,
  accountId: string,
  id: string,
  change: Change,
): Promise<StoredWebhook> {
  requireValidChange(deps, change);
  if (!isUuid(id)) throw webhookNotFound();
  const url = change.url === undefined ? undefined : new URL(change.url).href;
  const events = change.events && [...new Set(change.events)];
  // In lower case, like the stored id, since the ciphertext is bound to it.
  const credentials =
    change.credentials && (await sealCredentials(deps.vault, id.toLowerCase(), change.credentials));
  const stored = { ...change, url, events, credentials };
  const updated = await updateWebhook(deps.database, accountId, id, stored);
  if (!updated) throw webhookNotFound();
  return updated;
}

/** Deletes a webhook. @throws ServiceError WEBHOOK_NOT_FOUND. */
export async function removeWebhook(database: Database, accountId: string, id: string): Promise<void> {
  const removed = isUuid(id) && (await deleteWebhook(database, accountId, id));
  if (!removed) throw webhookNotFound();
}

/** Returns a webhook's current signing secret, for a repeat of the call that showed it; '' if the webhook is gone. */
export async function currentSecret(
  { database, vault }: Pick<ManageDeps, 'database' | 'vault'>,
  accountId: string,
  id: string,
): Promise<string> {
  const webhook = await getWebhook(database, accountId, id);
  return webhook ? openSecret(vault, id, webhook.secret) : '';
}

/** Time for which the previous secret still signs after a rotation. */
const BOTH_SECRETS_S = 86_400;

/** Replaces a webhook's secret. The previous secret also signs for a day. @throws ServiceError WEBHOOK_NOT_FOUND. */
export async function rotateSecret(
  deps: ManageDeps,
  accountId: string,
  id: string,
): Promise<WebhookWithSecret> {
  const found = await requireWebhook(deps.database, accountId, id);
  const { shown, sealed: secret } = await newSigningSecret(deps.vault, found.id);
  const rotated = rotateWebhookSecret(deps.database, { accountId, id, secret }, BOTH_SECRETS_S);
  const webhook = await rotated;
  if (!webhook) throw webhookNotFound();
  return { webhook, secret: shown };
}

function webhookNotFound(): ServiceError {
  return unknownId('WEBHOOK_NOT_FOUND', 'id');
}

/** Checks that a webhook is on. @throws ServiceError WEBHOOK_OFF if nothing can be sent to it. */
export function requireActive(webhook: StoredWebhook): void {
  if (webhook.active) return;
  throw new ServiceError('WEBHOOK_OFF', 'the webhook is off; nothing was sent; turn it on first');
}

/**
 * Checks a webhook's new settings.
 *
 * @throws ServiceError INVALID_PARAMETERS.
 */
function requireValidChange({ allowPrivate }: Pick<ManageDeps, 'allowPrivate'>, change: Change): void {
  const faults: FieldError[] = [];
  const urlFault = change.url === undefined ? undefined : faultOfUrl(change.url, allowPrivate);
  if (urlFault) faults.push({ field: 'url', ...urlFault });
  const known: readonly string[] = EVENT_TYPES;
  for (const [i, event] of (change.events ?? []).entries()) {
    if (known.includes(event)) continue;
    const message = `must be one of ${EVENT_TYPES.join(', ')}`;
    faults.push({ field: `events[${i}]`, code: 'NOT_ALLOWED', message });
  }
  const { apiKey = '', secret = '', hmacKey = '' } = change.credentials ?? {};
  for (const [name, text] of Object.entries({ api_key: apiKey, secret, hmac_key: hmacKey })) {
    if (CREDENTIAL.test(text)) continue;
    const message = 'must be printable ASCII characters without leading or trailing spaces';
    faults.push({ field: `credentials.${name}`, code: 'INVALID_FORMAT', message });
  }
  if (faults.length > 0) throw invalidParameters(faults);
}

/** A value that a header can carry unchanged; may be empty. */
const CREDENTIAL = /^(?:[!-~](?:[ -~]*[!-~])?)?$/;

function faultOfUrl(text: string, allowPrivate: boolean): Omit<FieldError, 'field'> | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || url.hostname === '' || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return { code: 'INVALID_FORMAT', message: 'must be an https URL' };
  }
  if (url.username !== '' || url.password !== '') {
    return { code: 'NOT_ALLOWED', message: 'must not contain a user name or password' };
  }
  if (allowPrivate) return undefined;
  if (url.protocol !== 'https:') return { code: 'NOT_ALLOWED', message: 'must be an https URL' };
  // A host name is checked when connecting, with the address that it has then.
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) === 0 || isPublicAddress(host)) return undefined;
  return { code: 'NOT_ALLOWED', message: 'must be a public address' };
}
