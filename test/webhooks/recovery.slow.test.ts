import { expect, it, vi } from 'vitest';
import { ageOut } from '#src/server/age-out.ts';
import type { Database } from '#src/store/engine/database.ts';
import { finishDelivery, takeDueDeliveries } from '#src/store/tables/deliveries.ts';
import { relayEvents } from '#src/store/tables/outbox.ts';
import {
  closeDeliveries,
  deleteWebhook,
  turnOffGoneWebhook,
  updateWebhook,
} from '#src/store/tables/webhooks.ts';
import { redeliverAllFailed, redeliverOne } from '#src/webhooks/manage-deliveries.ts';
import { openTestDatabase } from '../support/database.ts';
import { interleave } from '../support/interleave.ts';
import { lockWaits } from '../support/tables.ts';
import { status } from './receiver.ts';
import {
  account,
  countDeliveries,
  hasDelivered,
  onWebhookWorld,
  shop,
  webhook,
  webhookId,
  world,
} from './webhook-world.ts';

onWebhookWorld();

it('events are delivered once, although two replicas look for work', async () => {
  await world.start();
  await world.start();
  for (let i = 0; i < 50; i++) await world.change(account);
  await hasDelivered(50);
  expect(shop.received).toHaveLength(50);
  expect(new Set(shop.received.map(({ json }) => json.id)).size).toBe(50);
  expect(world.errors).toEqual([]);
});

it('events written before a worker started, and events without a wake-up, are delivered', async () => {
  await world.change(account);
  const first = await world.start({ overdueIntervalMs: 60_000 });
  await hasDelivered(1);
  await first.stop();
  await world.change(account);
  expect(await world.tables.query('SELECT id FROM event WHERE relayed_at IS NULL')).toHaveLength(1);
  // This is the state that a replica leaves if it dies between the relay and its wake-up.
  await world.tables.query(`
    WITH e AS (UPDATE event SET relayed_at = now() WHERE relayed_at IS NULL RETURNING account_id, id)
    INSERT INTO delivery (account_id, id, webhook_id, event_id)
    SELECT account_id, gen_random_uuid(), '${webhookId}', id FROM e`);
  await world.start();
  await hasDelivered(2);
});

it('one delivery, or all that failed since a time, can be redelivered', async () => {
  shop.answer(status(500));
  await world.start({ retryScheduleS: [] });
  await world.change(account);
  await vi.waitFor(async () => expect(await countDeliveries("status = 'FAILED'")).toBe(1), 60_000);
  const since = new Date(Date.now() + 1);
  await new Promise((resolve) => setTimeout(resolve, 5));
  for (let i = 0; i < 3; i++) await world.change(account);
  await vi.waitFor(async () => expect(await countDeliveries("status = 'FAILED'")).toBe(4), 60_000);
  shop.answer(status(200));
  expect(await redeliverAllFailed(world.deps, account, webhookId, since)).toBe(3);
  await hasDelivered(3);
  const [failed] = await world.tables.query("SELECT id FROM delivery WHERE status = 'FAILED'");
  const again = await redeliverOne(world.deps, account, String(failed?.id), '');
  expect(again).toMatchObject({ status: 'PENDING', webhookId });
  await hasDelivered(4);
  const redelivered = await redeliverOne(world.deps, account, again.id, webhookId);
  expect(redelivered.status).toBe('PENDING');
  await shop.has(9);
  await hasDelivered(4);
  const other = await world.addAccount();
  await expect(redeliverOne(world.deps, other, again.id, '')).rejects.toMatchObject({
    reason: 'DELIVERY_NOT_FOUND',
  });
});

it('a redelivery returns the delivery as PENDING, even if another replica delivers it at once', async () => {
  await world.change(account);
  await world.start();
  await hasDelivered(1);
  const [{ id } = { id: '' }] = await world.tables.query('SELECT id FROM delivery');
  const deliver = () => world.tables.query("UPDATE delivery SET status = 'DELIVERED', due_at = NULL");
  const woken: unknown[] = [];
  const wake = (name: unknown) => woken.push(name);
  const racing = interleave(world.deps.database, { after: { redeliver: deliver } });
  const deps = { ...world.deps, wake, database: racing };
  expect(await redeliverOne(deps, account, String(id), '')).toMatchObject({ status: 'PENDING' });
  expect(woken).toEqual([{ accountId: account, webhookId }]);
});

it('a deleted delivery, or one of a webhook that is off, cannot be redelivered', async () => {
  await world.change(account);
  await world.start();
  await hasDelivered(1);
  const [{ id } = { id: '' }] = await world.tables.query('SELECT id FROM delivery');
  await world.tables.query('UPDATE webhook SET active = false');
  const again = (deps = world.deps) => redeliverOne(deps, account, String(id), '');
  await expect(again()).rejects.toMatchObject({ reason: 'WEBHOOK_OFF' });
  await world.tables.query('UPDATE webhook SET active = true');
  const before = { redeliver: () => world.tables.query('DELETE FROM delivery') };
  const refused = again({ ...world.deps, database: interleave(world.deps.database, { before }) });
  await expect(refused).rejects.toMatchObject({ reason: 'DELIVERY_NOT_FOUND' });
});

it('open deliveries of a deleted webhook are not sent', async () => {
  await world.change(account);
  const worker = await world.start();
  await hasDelivered(1);
  await worker.stop();
  await world.change(account);
  await world.tables.query('DELETE FROM webhook');
  await world.start();
  await vi.waitFor(
    async () => expect(await world.tables.query('SELECT id FROM event WHERE relayed_at IS NULL')).toEqual([]),
    60_000,
  );
  expect(await countDeliveries('due_at IS NOT NULL')).toBe(0);
  expect(shop.received).toHaveLength(1);
});

const ends: readonly (readonly [string, (database: Database) => Promise<unknown>])[] = [
  [
    'turned off by the service',
    async (database) => {
      await turnOffGoneWebhook(database, { accountId: account, webhookId }, shop.url);
      await closeDeliveries(database, { accountId: account, webhookId });
    },
  ],
  [
    'turned off by its merchant',
    (database) => updateWebhook(database, account, webhookId, { active: false }),
  ],
  ['deleted', (database) => deleteWebhook(database, account, webhookId)],
];

it.each(ends)('finishing a delivery while its webhook is %s causes no deadlock', async (_what, end) => {
  await world.change(account);
  const database = openTestDatabase(world.databaseUrl, 4);
  await relayEvents(database, 1);
  const [delivery] = await takeDueDeliveries(database, webhook, 1, 30);
  if (!delivery) throw new Error('nothing is due');
  const waiting = (n: number) => expect.poll(() => lockWaits(world.tables)).toBe(n);
  const { results } = await database.transaction(async (run) => {
    await run('SELECT 1 FROM delivery WHERE account_id = $1 FOR UPDATE', [account]);
    const result = { responseStatus: 500, error: 'HTTP_STATUS', retryInS: 60 };
    const finished = finishDelivery(database, webhook, delivery, result);
    await waiting(1);
    const ended = end(database);
    await waiting(2);
    return { results: Promise.allSettled([finished, ended]) };
  });
  expect((await results).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
  await database.close();
  expect(await countDeliveries('due_at IS NOT NULL')).toBe(0);
});

it.each(ends)('a webhook that is %s ends only its own deliveries', async (_what, end) => {
  const other = await world.addAccount();
  const second = (await world.addWebhook(account, shop.url)).webhook.id;
  await world.tables.query(
    `INSERT INTO webhook (account_id, id, url, description, events, secret)
     SELECT $1, id, url, description, events, secret FROM webhook WHERE id = $2`,
    [other, webhookId],
  );
  await world.change(account);
  await world.change(other);
  const database = openTestDatabase(world.databaseUrl, 1);
  await relayEvents(database, 2);
  expect(await countDeliveries('due_at IS NOT NULL')).toBe(3);
  await end(database);
  await database.close();
  const left = [[account, second].join(), [other, webhookId].join()].sort();
  for (const open of [
    "SELECT account_id || ',' || webhook_id AS name FROM delivery WHERE due_at IS NOT NULL",
    "SELECT account_id || ',' || id AS name FROM webhook WHERE active",
  ]) {
    expect((await world.tables.query(open)).map(({ name }) => name).sort()).toEqual(left);
  }
});

it.each(ends)('a webhook that is %s ends its deliveries in batches of at most 10,000', async (_what, end) => {
  await world.tables.query(
    `INSERT INTO delivery (account_id, id, webhook_id, event_id)
     SELECT $1, gen_random_uuid(), $2, gen_random_uuid() FROM generate_series(1, 20001)`,
    [account, webhookId],
  );
  const sizes: number[] = [];
  const database = openTestDatabase(world.databaseUrl, 1);
  const query: Database['query'] = async (statement, values) => {
    const result = await database.query<never>(statement, values);
    if (/UPDATE delivery/.test(statement.text)) sizes.push(result.rowCount ?? 0);
    return result;
  };
  await end({ ...database, query });
  await database.close();
  expect(await countDeliveries('due_at IS NOT NULL')).toBe(0);
  expect(sizes.filter((size) => size > 0)).toEqual([10_000, 10_000, 1]);
});

it('the remaining open deliveries end when a webhook is turned on again', async () => {
  await world.change(account);
  const database = openTestDatabase(world.databaseUrl, 1);
  await relayEvents(database, 1);
  // This is the state that a process leaves if it dies before it ends the deliveries.
  await world.tables.query('UPDATE webhook SET active = false');
  await updateWebhook(database, account, webhookId, { active: true });
  await database.close();
  expect(await countDeliveries('due_at IS NOT NULL')).toBe(0);
});

it('old events and deliveries are deleted, and newer ones are kept', async () => {
  await world.change(account);
  const worker = await world.start();
  await hasDelivered(1);
  await worker.stop();
  for (const table of ['event', 'delivery']) {
    await world.tables.query(`UPDATE ${table} SET created_at = now() - interval '31 days'`);
  }
  await world.change(account);
  const database = openTestDatabase(world.databaseUrl, 1);
  await ageOut(database);
  await database.close();
  expect(await world.tables.query('SELECT relayed_at FROM event')).toEqual([{ relayed_at: null }]);
  expect(await countDeliveries('true')).toBe(0);
});

it('an event is deleted only after its deliveries', async () => {
  await world.change(account);
  const worker = await world.start();
  await hasDelivered(1);
  await worker.stop();
  const database = openTestDatabase(world.databaseUrl, 1);
  const leftAt = async (eventAge: string, deliveryAge: string) => {
    await world.tables.query(`UPDATE event SET created_at = now() - interval '${eventAge}'`);
    await world.tables.query(`UPDATE delivery SET created_at = now() - interval '${deliveryAge}'`);
    await ageOut(database);
    const [left] = await world.tables.query(`SELECT (SELECT count(*) FROM event)::int AS events,
      (SELECT count(*) FROM delivery)::int AS deliveries`);
    return left;
  };
  expect(await leftAt('30 days 1 minute', '29 days 23 hours')).toEqual({ events: 1, deliveries: 1 });
  await world.tables.query('UPDATE delivery SET due_at = now()');
  expect(await leftAt('31 days 1 minute', '30 days 23 hours')).toEqual({ events: 1, deliveries: 1 });
  await world.tables.query('UPDATE delivery SET due_at = NULL');
  expect(await leftAt('31 days 1 minute', '30 days 23 hours')).toEqual({ events: 0, deliveries: 0 });
  await database.close();
});
