import pg from 'pg';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Database } from '#src/store/engine/database.ts';
import { takeDueDeliveries } from '#src/store/tables/deliveries.ts';
import { relayEvents } from '#src/store/tables/outbox.ts';
import {
  closeDeliveries,
  getWebhook,
  turnOffGoneWebhook,
  updateWebhook,
} from '#src/store/tables/webhooks.ts';
import { redeliverAllFailed, redeliverOne } from '#src/webhooks/manage-deliveries.ts';
import { rotateSecret } from '#src/webhooks/manage-webhooks.ts';
import { lockWaits } from '../support/tables.ts';
import { type Receiver, startReceiver, status } from './receiver.ts';
import { account, onWebhookWorld, shop, webhookId, world } from './webhook-world.ts';

// A merchant may change a webhook or a delivery between a worker's read and its write.
onWebhookWorld();
let moved: Receiver;
let database: Database;

beforeEach(async () => {
  moved = await startReceiver();
  ({ database } = world.deps);
});
afterEach(() => moved.close());

const deliveries = () =>
  world.tables.query('SELECT status, error, attempts, due_at IS NOT NULL AS open FROM delivery ORDER BY id');
const idOfDelivery = async () => String((await world.tables.query('SELECT id FROM delivery'))[0]?.id);
const move = () => updateWebhook(database, account, webhookId, { url: moved.url });
const oneWaits = () => expect.poll(() => lockWaits(world.tables)).toBe(1);

it('a webhook that is turned on just as a worker finds it turned off stays on', async () => {
  await world.tables.query('UPDATE webhook SET active = false');
  const wasOff = Promise.withResolvers<void>();
  let isFound = false;
  const query: Database['query'] = async (statement, values) => {
    const result = await database.query(statement, values);
    if (isFound && values?.[1] === webhookId) wasOff.resolve();
    if (statement.name === 'get_webhook') {
      isFound = true;
      await updateWebhook(database, account, webhookId, { active: true });
    }
    return result as never;
  };
  const worker = await world.start({}, { database: { ...database, query } });
  worker.wake({ accountId: account, webhookId });
  await wasOff.promise;
  await worker.stop();
  expect(await world.tables.query('SELECT active FROM webhook')).toEqual([{ active: true }]);
});

it('a webhook that gets another URL while the old one answers 410 stays on and uses the new one', async () => {
  shop.answer(async (response) => {
    await move();
    response.writeHead(410).end();
  });
  await world.start();
  await world.change(account);
  await moved.has(1);
  await world.change(account);
  await moved.has(2);
  const [first, second] = moved.received.map(({ json }) => json.id);
  expect([shop.received.map(({ json }) => json.id), first === second]).toEqual([[first], false]);
});

it('pending deliveries go to the new URL as soon as a webhook gets one', async () => {
  shop.answer(async (response) => {
    await move();
    response.writeHead(204).end();
  });
  for (let i = 0; i < 3; i++) await world.change(account);
  await world.start({ perWebhook: 1, timeoutMs: 10_000, leaseS: 30 });
  const all = [1, 2, 3].map(() => ({ status: 'DELIVERED' }));
  await vi.waitFor(async () => expect(await deliveries()).toMatchObject(all), 60_000);
  expect([shop.received.length, moved.received.length]).toEqual([1, 2]);
  expect(world.errors).toEqual([]);
});

it('pending deliveries are also signed with the new secret as soon as it exists', async () => {
  shop.answer(async (response) => {
    if (shop.received.length === 1) await rotateSecret(world.deps, account, webhookId);
    response.writeHead(204).end();
  });
  for (let i = 0; i < 2; i++) await world.change(account);
  await world.start({ perWebhook: 1, timeoutMs: 10_000, leaseS: 30 });
  await shop.has(2);
  const signatures = shop.received.map(({ headers }) => headers['webhook-signature']?.split(' ').length);
  expect(signatures).toEqual([1, 2]);
});

it('pending deliveries are signed only with the new secret as soon as the previous one expires', async () => {
  await rotateSecret(world.deps, account, webhookId);
  shop.answer(async (response) => {
    await world.tables.query('UPDATE webhook SET previous_secret_until = now()');
    response.writeHead(204).end();
  });
  for (let i = 0; i < 2; i++) await world.change(account);
  await world.start({ perWebhook: 1, timeoutMs: 10_000, leaseS: 30 });
  await shop.has(2);
  const signatures = shop.received.map(({ headers }) => headers['webhook-signature']?.split(' ').length);
  expect(signatures).toEqual([2, 1]);
});

it('a failure at the old URL does not mark the webhook with a new URL as failing', async () => {
  shop.answer(async (response) => {
    await move();
    response.writeHead(500).end();
  });
  await world.change(account);
  await world.start({ retryScheduleS: [] });
  await vi.waitFor(async () => expect(await deliveries()).toMatchObject([{ status: 'FAILED' }]), 60_000);
  expect(await world.tables.query('SELECT failing_since FROM webhook')).toEqual([{ failing_since: null }]);
});

it.each([[204], [500]])(
  'a delivery that is redelivered while an attempt is in progress is sent again after the attempt ends with %i',
  async (code) => {
    shop.answer(async (response, _received, nth) => {
      if (nth > 1) return void response.writeHead(204).end();
      const again = await redeliverOne({ ...world.deps, wake: () => {} }, account, await idOfDelivery(), '');
      expect(again.status).toBe('PENDING');
      response.writeHead(code).end();
    });
    await world.change(account);
    await world.start({ retryScheduleS: [], perWebhook: 1, timeoutMs: 10_000, leaseS: 30 });
    await shop.has(2);
    await vi.waitFor(
      async () => expect(await deliveries()).toMatchObject([{ status: 'DELIVERED', attempts: 2 }]),
      60_000,
    );
  },
);

it('redelivering failed deliveries skips a delivery that has just been delivered', async () => {
  shop.answer(status(500));
  await world.change(account);
  const worker = await world.start({ retryScheduleS: [] });
  await vi.waitFor(async () => expect(await deliveries()).toMatchObject([{ status: 'FAILED' }]), 60_000);
  await worker.stop();
  const deps = { ...world.deps, wake: () => {} };
  const again = await database.transaction(async (run) => {
    await run("UPDATE delivery SET status = 'DELIVERED', due_at = NULL");
    const all = redeliverAllFailed(deps, account, webhookId, new Date(0));
    await oneWaits();
    return { all };
  });
  expect(await again.all).toBe(0);
  expect(await deliveries()).toMatchObject([{ status: 'DELIVERED', open: false }]);
});

it('a 410 from the old URL leaves the deliveries open if the webhook gets a new URL at that moment', async () => {
  await world.change(account);
  await relayEvents(database, 1);
  const held = new pg.Client(world.databaseUrl);
  await held.connect();
  await held.query('BEGIN');
  await held.query('UPDATE webhook SET url = $1', [moved.url]);
  const turned = turnOffGoneWebhook(database, { accountId: account, webhookId }, shop.url);
  await oneWaits();
  await held.query('COMMIT');
  expect(await turned).toBe(false);
  await held.end();
  expect(await deliveries()).toMatchObject([{ status: 'PENDING', open: true }]);
});

it('a worker takes no delivery of a webhook that was turned off since the worker read it', async () => {
  await world.change(account);
  await relayEvents(database, 1);
  const read = await getWebhook(database, account, webhookId);
  if (!read) throw new Error('there is no webhook');
  await closeDeliveries(database, { accountId: account, webhookId });
  await world.tables.query('UPDATE webhook SET active = false');
  expect(await takeDueDeliveries(database, read, 1, 1)).toEqual([]);
  expect(await deliveries()).toMatchObject([{ status: 'PENDING', attempts: 0, open: true }]);
});

it('a webhook that its merchant turned off before the 410 is not reported as gone', async () => {
  await updateWebhook(database, account, webhookId, { active: false });
  expect(await turnOffGoneWebhook(database, { accountId: account, webhookId }, shop.url)).toBe(false);
  expect(await getWebhook(database, account, webhookId)).toMatchObject({ disabledReason: undefined });
});

it('a webhook that is turned on and woken while a worker finds it turned off is drained', async () => {
  await world.change(account);
  await relayEvents(database, 1);
  await world.tables.query('UPDATE webhook SET active = false');
  let isFound = false;
  const query: Database['query'] = async (statement, values) => {
    const result = await database.query(statement, values);
    if (statement.name === 'close_deliveries_of_no_webhook' && !isFound) {
      isFound = true;
      await updateWebhook(database, account, webhookId, { active: true });
      await redeliverOne(world.deps, account, await idOfDelivery(), '');
    }
    return result as never;
  };
  const settings = { overdueIntervalMs: 3_600_000 };
  const worker = await world.start(settings, { database: { ...database, query } });
  worker.wake({ accountId: account, webhookId });
  await shop.has(1);
});
