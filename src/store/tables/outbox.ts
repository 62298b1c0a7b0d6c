import type { Database, Nullable, Run } from '../engine/database.ts';
import { NIL_UUID, onlyRow } from '../engine/rows.ts';

/** SQL for a UUIDv7 by the database's clock. Not a subquery, which would give all rows of a statement the same id. */
export const UUID_V7 = 'uuid_v7_1()';

const METHOD_EVENT = `
  INSERT INTO event (account_id, id, type, payment_id, sequence, record)
  SELECT $1::uuid, ${UUID_V7}, $2::text, '${NIL_UUID}', 0, $3::bytea
  WHERE EXISTS (SELECT FROM webhook w WHERE w.account_id = $1::uuid AND w.active AND $2::text = ANY (w.events))`;

/** Writes the event of a stored method, if a webhook subscribes to it, in the transaction that changes the method. */
export async function insertMethodEvent(
  run: Run,
  event: { readonly accountId: string; readonly type: string; readonly record: Uint8Array },
): Promise<void> {
  await run(METHOD_EVENT, [event.accountId, event.type, event.record]);
}

/** Identifies a webhook. */
export type WebhookName = { readonly accountId: string; readonly webhookId: string };

// Events locked by another replica are skipped.
const RELAY = {
  name: 'relay_events',
  text: `
    WITH open AS (
      SELECT account_id, id FROM event WHERE relayed_at IS NULL
      ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
    ), relayed AS (
      UPDATE event e SET relayed_at = now() FROM open o
      WHERE e.account_id = o.account_id AND e.id = o.id
      RETURNING e.account_id, e.id, e.type
    ), made AS (
      INSERT INTO delivery (account_id, id, webhook_id, event_id)
      SELECT r.account_id, ${UUID_V7}, w.id, r.id
      FROM relayed r JOIN webhook w ON w.account_id = r.account_id AND w.active AND r.type = ANY (w.events)
      RETURNING account_id, webhook_id
    )
    SELECT (SELECT count(*) FROM relayed)::integer AS relayed,
      made.account_id AS "accountId", made.webhook_id AS "webhookId"
    FROM (VALUES (1)) AS always (n) LEFT JOIN (SELECT DISTINCT account_id, webhook_id FROM made) made ON true`,
};

/** Turns up to `limit` events into deliveries. @returns the number of events, and the webhooks to wake. */
export async function relayEvents(
  database: Database,
  limit: number,
): Promise<{ relayed: number; webhooks: WebhookName[] }> {
  const { rows } = await database.query<{ relayed: number } & Nullable<WebhookName>>(RELAY, [limit]);
  const webhooks = rows.flatMap(({ accountId, webhookId }) =>
    accountId !== null && webhookId !== null ? [{ accountId, webhookId }] : [],
  );
  return { relayed: rows[0]?.relayed ?? 0, webhooks };
}

// Hops from webhook to webhook in the index of open deliveries, so that a webhook with a million deliveries costs one
// step.
const OVERDUE = {
  name: 'list_overdue_webhooks',
  text: `
    WITH RECURSIVE first_due AS (
      (SELECT account_id, webhook_id, due_at FROM delivery WHERE due_at IS NOT NULL
       ORDER BY account_id, webhook_id, due_at LIMIT 1)
      UNION ALL
      SELECT next.* FROM first_due f CROSS JOIN LATERAL (
        SELECT account_id, webhook_id, due_at FROM delivery d
        WHERE due_at IS NOT NULL AND (d.account_id, d.webhook_id) > (f.account_id, f.webhook_id)
        ORDER BY account_id, webhook_id, due_at LIMIT 1
      ) next
    )
    SELECT account_id AS "accountId", webhook_id AS "webhookId" FROM first_due
    WHERE due_at < now() - make_interval(secs => $1)`,
};

/** Lists webhooks with a delivery over `lateS` seconds late, since no replica was woken or the woken one died. */
export async function listOverdueWebhooks(database: Database, lateS: number): Promise<WebhookName[]> {
  return (await database.query<WebhookName>(OVERDUE, [lateS])).rows;
}

const TEST_EVENT = {
  name: 'insert_test_event',
  text: `
    WITH event AS (
      INSERT INTO event (account_id, id, type, payment_id, sequence, record, relayed_at)
      SELECT $1, ${UUID_V7}, 'webhook.test', '${NIL_UUID}', 0, '', now()
      RETURNING id
    )
    INSERT INTO delivery (account_id, id, webhook_id, event_id)
    SELECT $1, ${UUID_V7}, $2, id FROM event RETURNING id`,
};

/** Adds a delivery of a webhook.test event. @returns its id. */
export async function insertTestDelivery(database: Database, webhook: WebhookName): Promise<string> {
  const values = [webhook.accountId, webhook.webhookId];
  return onlyRow(await database.query<{ id: string }>(TEST_EVENT, values)).id;
}
