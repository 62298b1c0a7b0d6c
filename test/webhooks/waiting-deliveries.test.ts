import { expect, it, vi } from 'vitest';
import { relayEvents } from '#src/store/tables/outbox.ts';
import { deliveriesPage, redeliverAllFailed } from '#src/webhooks/manage-deliveries.ts';
import { openTestDatabase } from '../support/database.ts';
import { earlier } from '../support/tables.ts';
import { status } from './receiver.ts';
import {
  account,
  countDeliveries,
  hasDelivered,
  onWebhookWorld,
  shop,
  webhookId,
  world,
} from './webhook-world.ts';

onWebhookWorld();

it('a retry is sent when due, even while a later retry of the same webhook waits', async () => {
  shop.answer(status(500));
  await world.start({ retryScheduleS: [0.05, 3_600], overdueIntervalMs: 600_000 });
  await world.change(account);
  await shop.has(2);
  await vi.waitFor(async () => expect(await countDeliveries(IN_AN_HOUR)).toBe(1));
  await world.change(account);
  await shop.has(4);
});

const IN_AN_HOUR = "due_at > now() + interval '1 minute'";

it('a delivery whose event is gone becomes FAILED with that reason, and deliveries that wait behind it are sent', async () => {
  for (let i = 0; i < 3; i++) await world.change(account);
  const database = openTestDatabase(world.databaseUrl, 1);
  await relayEvents(database, 3);
  await database.close();
  await world.tables.query(
    'DELETE FROM event WHERE id IN (SELECT event_id FROM delivery ORDER BY id LIMIT 2)',
  );
  await world.tables.query(`UPDATE delivery SET due_at = ${earlier('due_at', '1 minute')}
    WHERE event_id NOT IN (SELECT id FROM event)`);
  await world.start({ perWebhook: 2 });
  await hasDelivered(1);
  expect(await countDeliveries('due_at IS NOT NULL')).toBe(0);
  const { deliveries } = await deliveriesPage(world.deps.database, account, {
    webhookId,
    pageSize: 0,
    pageToken: '',
  });
  const gone = { status: 'FAILED', error: 'EVENT_GONE', type: '', attempts: 0 };
  expect(deliveries).toMatchObject([{ status: 'DELIVERED' }, gone, gone]);
  expect(await redeliverAllFailed(world.deps, account, webhookId, new Date(0))).toBe(0);
});
