import fc from 'fast-check';
import { beforeEach, expect, it } from 'vitest';
import { insertWebhook } from '#src/store/tables/webhooks.ts';
import { EVENT_TYPES } from '#src/webhooks/events.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { ORDERS, PLANS, play } from './interleavings.ts';

/** Number of orders to try; `npm run interleave` can try more, with other seeds. */
const RUNS = Number(process.env.FAST_CHECK_RUNS ?? 300);

onOperatedPayments({ empties: 'payment, transaction, notification, webhook, event' });

beforeEach(() =>
  insertWebhook(
    payments.database,
    {
      accountId: ACCOUNT_ONE,
      id: ACCOUNT_ONE,
      url: 'http://127.0.0.1:9/',
      description: '',
      events: EVENT_TYPES,
      secret: '',
    },
    1,
  ),
);

it('in every tried order of steps and process deaths, a payment’s books match its provider’s ledger', async () => {
  await fc.assert(
    fc.asyncProperty(ORDERS, PLANS, async (order, plan) => {
      await payments.tables.query('TRUNCATE payment, transaction, notification, event');
      await play(payments, order, plan);
    }),
    { numRuns: RUNS },
  );
  expect.assertions(0);
});
