import type { Database, Nullable } from '../engine/database.ts';
import { firstRow, withoutNulls } from '../engine/rows.ts';
import type { WebhookName } from './outbox.ts';

/** A stored webhook. */
export type StoredWebhook = {
  readonly accountId: string;
  readonly id: string;
  readonly url: string;
  readonly description: string;
  readonly events: readonly string[];
  readonly active: boolean;
  readonly disabledReason: string | undefined;
  /** The signing secret as a JWE bound to `id`. */
  readonly secret: string;
  /** The previous secret, while it still signs. */
  readonly previousSecret: string | undefined;
  readonly previousSecretUntil: Date | undefined;
  /** The receiver's credentials as a JWE bound to `id`. */
  readonly credentials: string | undefined;
  /** Names of the headers derived from the credentials. */
  readonly credentialHeaders: readonly string[];
  readonly failingSince: Date | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

type Row = Nullable<StoredWebhook>;

const COLUMNS = `account_id AS "accountId", id, url, description, events, active,
  disabled_reason AS "disabledReason", secret,
  CASE WHEN previous_secret_until > now() THEN previous_secret END AS "previousSecret",
  CASE WHEN previous_secret_until > now() THEN previous_secret_until END AS "previousSecretUntil",
  credentials, credential_headers AS "credentialHeaders", failing_since AS "failingSince", created_at AS "createdAt", updated_at AS "updatedAt"`;

const INSERT = `
  INSERT INTO webhook (account_id, id, url, description, events, secret, credentials, credential_headers)
  SELECT $1, $2, $3, $4, $5, $6, $8, $9 WHERE (SELECT count(*) FROM webhook WHERE account_id = $1) < $7
  RETURNING id`;

/** A receiver's stored credentials; `sealed` is undefined if there are none. */
export type SealedCredentials = { readonly sealed: string | undefined; readonly headers: readonly string[] };

const NO_CREDENTIALS: SealedCredentials = { sealed: undefined, headers: [] };

/**
 * Adds a webhook.
 *
 * @returns undefined if the account has reached `limit`, in which case nothing is added.
 */
export function insertWebhook(
  database: Database,
  webhook: Pick<StoredWebhook, 'accountId' | 'id' | 'url' | 'description' | 'events' | 'secret'> & {
    readonly credentials?: SealedCredentials | undefined;
  },
  limit: number,
): Promise<StoredWebhook | undefined> {
  const { accountId, id, url, description, events, secret, credentials = NO_CREDENTIALS } = webhook;
  const { sealed = null, headers } = credentials;
  return database.transaction(async (run) => {
    // Locks the account's row, so that no other call counts at the same time.
    await run('SELECT id FROM account WHERE id = $1 FOR NO KEY UPDATE', [accountId]);
    const values = [accountId, id, url, description, events, secret, limit, sealed, headers];
    await run(INSERT, values);
    return firstRow(await run<Row>(GET.text, [accountId, id]));
  });
}

const LIST = {
  name: 'list_webhooks',
  text: `SELECT ${COLUMNS} FROM webhook WHERE account_id = $1 ORDER BY created_at, id`,
};
const GET = {
  name: 'get_webhook',
  text: `SELECT ${COLUMNS} FROM webhook WHERE account_id = $1 AND id = $2`,
};

/** Lists an account's webhooks, oldest first. */
export async function listWebhooks(database: Database, accountId: string): Promise<StoredWebhook[]> {
  return (await database.query<Row>(LIST, [accountId])).rows.map(withoutNulls);
}

/** Returns a webhook of an account. @param id a UUID. */
export async function getWebhook(
  database: Database,
  accountId: string,
  id: string,
): Promise<StoredWebhook | undefined> {
  return firstRow(await database.query<Row>(GET, [accountId, id]));
}

/** The fields to change; undefined fields keep their value. */
export type WebhookChange = {
  readonly url?: string | undefined;
  readonly description?: string | undefined;
  readonly events?: readonly string[] | undefined;
  readonly active?: boolean | undefined;
  readonly credentials?: SealedCredentials | undefined;
};

const UPDATE = {
  name: 'update_webhook',
  text: `
    UPDATE webhook SET url = coalesce($3, url), description = coalesce($4, description),
      events = coalesce($5::text[], events),
      credentials = CASE WHEN $8::text[] IS NULL THEN credentials ELSE $7 END,
      credential_headers = coalesce($8, credential_headers), active = coalesce($6::boolean, active), disabled_reason = CASE WHEN $6 IS NULL THEN disabled_reason END,
      failing_since = CASE WHEN $3::text IS NULL AND $6 IS NOT TRUE THEN failing_since END, updated_at = now()
    WHERE account_id = $1 AND id = $2`,
};

/**
 * Changes a webhook. Turning a webhook off marks its open deliveries FAILED, so that nothing old is sent unexpectedly
 * when the webhook is turned on again.
 *
 * @returns undefined if there is no such webhook.
 */
export async function updateWebhook(
  database: Database,
  accountId: string,
  id: string,
  change: WebhookChange,
): Promise<StoredWebhook | undefined> {
  const { url = null, description = null, events = null, active = null, credentials } = change;
  const { sealed = null, headers = null } = credentials ?? {};
  const name = { accountId, webhookId: id };
  // The process that turned the webhook off may have died before closing its deliveries.
  if (active === true) await closeDeliveries(database, name);
  const values = [accountId, id, url, description, events, active, sealed, headers];
  await database.query(UPDATE, values);
  if (active === false) await closeDeliveries(database, name);
  return getWebhook(database, accountId, id);
}

const TURN_OFF = {
  name: 'turn_off_gone_webhook',
  text: `
    UPDATE webhook SET active = false, disabled_reason = 'GONE', updated_at = now()
    WHERE account_id = $1 AND id = $2 AND url = $3 AND active RETURNING id`,
};

/**
 * Turns off a webhook whose receiver is gone. The caller closes its open deliveries.
 *
 * @param url the URL that is gone. The webhook stays on if its URL has changed.
 * @returns false if the webhook stays on or was already off.
 */
export async function turnOffGoneWebhook(
  database: Database,
  { accountId, webhookId }: WebhookName,
  url: string,
): Promise<boolean> {
  return (await database.query(TURN_OFF, [accountId, webhookId, url])).rowCount === 1;
}

/** Maximum number of deliveries that one statement closes, so that it stays within its time limit. */
const CLOSED_AT_ONCE = 10_000;

// Locked in the order of their ids, like all locks on several deliveries, since any other order could deadlock.
const CLOSE = {
  name: 'close_deliveries_of_no_webhook',
  text: `
    WITH due AS (
      SELECT id FROM delivery WHERE account_id = $1 AND webhook_id = $2 AND due_at IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM webhook WHERE account_id = $1 AND id = $2 AND active)
      ORDER BY due_at LIMIT $3
    ), open AS (
      SELECT d.id FROM delivery d JOIN due ON due.id = d.id WHERE d.account_id = $1 AND d.due_at IS NOT NULL
      ORDER BY d.id FOR NO KEY UPDATE OF d
    )
    UPDATE delivery d SET status = 'FAILED', due_at = NULL, error = 'WEBHOOK_OFF' FROM open
    WHERE d.account_id = $1 AND d.id = open.id`,
};

/** Marks the open deliveries of a webhook FAILED if the webhook is off or deleted. */
export async function closeDeliveries(
  database: Database,
  { accountId, webhookId }: WebhookName,
): Promise<void> {
  const values = [accountId, webhookId, CLOSED_AT_ONCE];
  while ((await database.query(CLOSE, values)).rowCount);
}

const ROTATE = {
  name: 'rotate_webhook_secret',
  text: `
    UPDATE webhook SET secret = $3, previous_secret = secret,
      previous_secret_until = now() + make_interval(secs => $4), updated_at = now()
    WHERE account_id = $1 AND id = $2`,
};

/** Replaces a webhook's secret. The previous secret also signs for `bothForS` seconds; older secrets no longer sign. */
export async function rotateWebhookSecret(
  database: Database,
  webhook: { readonly accountId: string; readonly id: string; readonly secret: string },
  bothForS: number,
): Promise<StoredWebhook | undefined> {
  const { accountId, id, secret } = webhook;
  await database.query(ROTATE, [accountId, id, secret, bothForS]);
  return getWebhook(database, accountId, id);
}

const DELETE = {
  name: 'delete_webhook',
  text: 'DELETE FROM webhook WHERE account_id = $1 AND id = $2 RETURNING id',
};
const TURN_OFF_DELETED = {
  name: 'turn_off_deleted_webhook',
  text: 'UPDATE webhook SET active = false WHERE account_id = $1 AND id = $2',
};

/**
 * Deletes a webhook and ends its open deliveries, which are deleted when old. @returns false if there is no such
 * webhook.
 */
export async function deleteWebhook(database: Database, accountId: string, id: string): Promise<boolean> {
  const name = { accountId, webhookId: id };
  // While the webhook's row exists, the search for overdue deliveries finds those that a killed process left open.
  await database.query(TURN_OFF_DELETED, [accountId, id]);
  await closeDeliveries(database, name);
  const { rows } = await database.query(DELETE, [accountId, id]);
  await closeDeliveries(database, name);
  return rows.length === 1;
}
