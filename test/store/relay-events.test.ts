import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { relayEvents } from '#src/store/tables/outbox.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'webhook, event, delivery' });

async function addWebhook({ account = ACCOUNT_ONE, active = true, events = '{payment.purchase}' } = {}) {
  const id = randomUUID();
  await tables.query(
    `INSERT INTO webhook (account_id, id, url, description, active, events, secret) VALUES ($1, $2, '', '', $3, $4, '')`,
    [account, id, active, events],
  );
  return id;
}

async function addEvent(): Promise<string> {
  const id = randomUUID();
  await tables.query(
    `INSERT INTO event (account_id, id, type, payment_id, sequence, record)
     VALUES ($1, $2, 'payment.purchase', $2, 1, '')`,
    [ACCOUNT_ONE, id],
  );
  return id;
}

const deliveries = () =>
  tables.query('SELECT account_id, webhook_id, event_id FROM delivery ORDER BY webhook_id');
const deliveryTo = (webhook: string, event: string) => ({
  ...{ account_id: ACCOUNT_ONE, webhook_id: webhook, event_id: event },
});

it('an event is relayed once, to every active webhook of its account that subscribes to it', async () => {
  const webhooks = [await addWebhook(), await addWebhook()].toSorted();
  await addWebhook({ active: false });
  await addWebhook({ events: '{payment.refund}' });
  await addWebhook({ account: ACCOUNT_TWO });
  const event = await addEvent();
  const { relayed, webhooks: woken } = await relayEvents(database, 10);
  expect([relayed, woken.map(({ webhookId }) => webhookId).toSorted()]).toEqual([1, webhooks]);
  expect(await deliveries()).toEqual(webhooks.map((id) => deliveryTo(id, event)));
  const again = await database.query(
    { name: 'again', text: 'SELECT * FROM relay_events_1($1::uuid, $2::uuid[])' },
    [ACCOUNT_ONE, [event]],
  );
  expect(again.rows).toEqual([{ relayed: 0, webhooks: [] }]);
  expect(await deliveries()).toHaveLength(2);
});

it('an event that another replica holds is left to it, and the others are relayed', async () => {
  const webhook = await addWebhook();
  const [held, free] = [await addEvent(), await addEvent()];
  await tables.query('BEGIN');
  await tables.query('SELECT 1 FROM event WHERE account_id = $1 AND id = $2 FOR UPDATE', [ACCOUNT_ONE, held]);
  const named = { name: 'both', text: 'SELECT * FROM relay_events_1($1::uuid, $2::uuid[])' };
  const { rows } = await database.query(named, [ACCOUNT_ONE, [held, free]]);
  await tables.query('COMMIT');
  expect(rows).toEqual([{ relayed: 1, webhooks: [webhook] }]);
  expect(await deliveries()).toEqual([deliveryTo(webhook, free)]);
});
