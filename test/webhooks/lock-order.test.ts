import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { redeliverFailed } from '#src/store/tables/deliveries.ts';
import { relayEvents } from '#src/store/tables/outbox.ts';
import { closeDeliveries, updateWebhook } from '#src/store/tables/webhooks.ts';
import { lockWaits } from '../support/tables.ts';
import { openWebhookWorld, type WebhookWorld } from './webhook-world.ts';

const URL = 'http://127.0.0.1:9/';
let world: WebhookWorld;
let account: string;
let webhookId: string;
let held: pg.Client;

beforeEach(async () => {
  world = await openWebhookWorld();
  account = await world.addAccount();
  webhookId = (await world.addWebhook(account, URL)).webhook.id;
  held = new pg.Client(world.databaseUrl);
  await held.connect();
});
afterEach(async () => {
  await held.end();
  await world.close();
});

/** Makes two deliveries; the one with the lower id comes last, both in the table and in the order of due times. */
async function twoDeliveries(): Promise<string[]> {
  for (let i = 0; i < 2; i++) await world.change(account);
  await relayEvents(world.deps.database, 2);
  const ids = (await world.tables.query('SELECT id FROM delivery ORDER BY id')).map(({ id }) => String(id));
  await world.tables.query("UPDATE delivery SET due_at = now() + interval '1 hour' WHERE id = $1", [ids[0]]);
  return ids;
}

const name = () => ({ accountId: account, webhookId });
it.each([
  [
    'a merchant’s call that turns the webhook off',
    '',
    () => updateWebhook(world.deps.database, account, webhookId, { active: false }),
  ],
  [
    'a worker that finds the webhook off',
    'UPDATE webhook SET active = false',
    () => closeDeliveries(world.deps.database, name()),
  ],
  [
    'a redelivery of all failed deliveries',
    "UPDATE delivery SET status = 'FAILED'",
    () => redeliverFailed(world.deps.database, name(), new Date(0), 10),
  ],
])('%s locks the deliveries of the webhook in the order of their ids', async (_who, before, change) => {
  const [first, second] = await twoDeliveries();
  if (before) await world.tables.query(before);
  await held.query('BEGIN');
  await held.query('SELECT 1 FROM delivery WHERE account_id = $1 AND id = $2 FOR UPDATE', [account, first]);
  const changed = change();
  await expect.poll(() => lockWaits(world.tables)).toBe(1);
  const { rows } = await held.query('SELECT id FROM delivery WHERE account_id = $1 FOR UPDATE SKIP LOCKED', [
    account,
  ]);
  await held.query('COMMIT');
  await changed;
  expect(rows.map(({ id }) => id).sort()).toEqual([first, second]);
});
