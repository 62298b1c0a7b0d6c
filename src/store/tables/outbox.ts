import type { Due } from '../engine/checks.ts';
import type { Database, Run } from '../engine/database.ts';
import { DUE, takeDueRows } from '../engine/due-work.ts';
import { NIL_UUID, onlyRow } from '../engine/rows.ts';
import { IN_ACCOUNTS, inAccountsOf, searchAccounts } from '../engine/search-accounts.ts';

/**
 * SQL for a UUIDv7 with the time of the database's clock. Not a subquery, which would give all rows of a statement the
 * same id.
 */
export const UUID_V7 = 'uuid_v7_1()';

const METHOD_EVENT = `
  INSERT INTO event (account_id, id, type, payment_id, sequence, record)
  SELECT $1::uuid, ${UUID_V7}, $2::text, '${NIL_UUID}', 0, $3::bytea
  WHERE EXISTS (SELECT 1 FROM webhook w WHERE w.account_id = $1::uuid AND w.active AND $2::text = ANY (w.events))`;

/** Writes the event of a stored method, if a webhook subscribes to it, in the transaction that changes the method. */
export async function insertMethodEvent(
  run: Run,
  event: { readonly accountId: string; readonly type: string; readonly record: Uint8Array },
): Promise<void> {
  await run(METHOD_EVENT, [event.accountId, event.type, event.record]);
}

/** Identifies a webhook. */
export type WebhookName = { readonly accountId: string; readonly webhookId: string };

const RELAY = {
  name: 'relay_events',
  text: 'SELECT * FROM relay_events_1($1::uuid, $2::uuid[])',
};

/**
 * Turns up to `limit` events into deliveries, account by account. Events locked by another replica are skipped.
 *
 * @returns the number of events, and the webhooks to wake.
 */
export async function relayEvents(
  database: Database,
  limit: number,
): Promise<{ relayed: number; webhooks: WebhookName[] }> {
  let relayed = 0;
  const search = { values: [limit], limit };
  const relay = async (accountId: string, own: readonly Due[]) => {
    type Row = { relayed: number; webhooks: string[] };
    const row = onlyRow(await database.query<Row>(RELAY, [accountId, own.map(({ id }) => id)]));
    relayed += row.relayed;
    return [...new Set(row.webhooks)].map((webhookId) => ({ accountId, webhookId }));
  };
  const webhooks = await takeDueRows<Due, WebhookName>(database, DUE.events.find, search, relay);
  return { relayed, webhooks };
}

// Looks in the index for one late delivery per webhook, so that a webhook with a million deliveries costs one step. The
// deliveries of a webhook that was deleted are closed with it.
const OVERDUE = {
  name: 'list_overdue_webhooks',
  text: `
    SELECT w.account_id AS "accountId", w.id AS "webhookId" FROM webhook w
    WHERE ${IN_ACCOUNTS} EXISTS (
      SELECT 1 FROM delivery d
      WHERE ${inAccountsOf('d')} d.account_id = w.account_id AND d.webhook_id = w.id AND d.due_at < now() - make_interval(secs => $1)
    )`,
};

/** Lists webhooks with a delivery over `lateS` seconds late: no replica was woken, or the woken replica died. */
export async function listOverdueWebhooks(
  database: Database,
  lateS: number,
): Promise<readonly WebhookName[]> {
  return searchAccounts<WebhookName>(database, OVERDUE, [lateS]);
}

const TEST_EVENT = `
  INSERT INTO event (account_id, id, type, payment_id, sequence, record, relayed_at)
  VALUES ($1, ${UUID_V7}, 'webhook.test', '${NIL_UUID}', 0, '', now()) RETURNING id`;
const TEST_DELIVERY = `
  INSERT INTO delivery (account_id, id, webhook_id, event_id) VALUES ($1, ${UUID_V7}, $2, $3) RETURNING id`;

/** Adds a delivery of a webhook.test event. @returns its id. */
export function insertTestDelivery(
  database: Database,
  { accountId, webhookId }: WebhookName,
): Promise<string> {
  type Row = { id: string };
  return database.transaction(async (run) => {
    const event = onlyRow(await run<Row>(TEST_EVENT, [accountId]));
    return onlyRow(await run<Row>(TEST_DELIVERY, [accountId, webhookId, event.id])).id;
  });
}
