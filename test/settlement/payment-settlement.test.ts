import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE, cardPayment, headersOne } from '../support/payment-requests.ts';
import { wantEveryEvent } from '../support/tables.ts';

onService();

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the response.
async function send(verb: string, path: string, body?: object): Promise<any> {
  const response = await fetch(server.url + path, {
    method: verb,
    headers: { ...headersOne(), 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return response.json();
}

/** Stores what matching a report stores. */
async function settle(
  { id, transactions }: { id: string; transactions: { id: string } },
  line: {
    report?: string;
    fee: number;
    net: number;
    tax?: number;
    currency?: string;
    payout?: string;
    day: number;
  },
): Promise<void> {
  const { report = '', fee, net, tax = 0, currency = 'USD', payout = null, day } = line;
  await tables.query(
    `INSERT INTO settlement_match (account_id, transaction_id, connection_identity, line_key, payment_id, report, kind,
       payout_reference, gross, fee, tax, net, settlement_currency, occurred_at)
     VALUES ($1, $2, 'the sandbox', $3, $4, $5, 'payment', $6, 0, $7, $8, $9, $10, $11)`,
    [
      ...[ACCOUNT_ONE, transactions.id, randomUUID(), id, report, payout, fee, tax, net, currency],
      `2026-09-0${day}T10:00:00Z`,
    ],
  );
}

it('a payment that is read shows the sum of its lines and its first payout, and no other response has them', async () => {
  await wantEveryEvent(tables);
  const payment = await send('POST', '/v1/payments', cardPayment('4111111111111111'));
  expect((await send('GET', `/v1/payments/${payment.id}`)).transactions).not.toHaveProperty('settlement');
  await settle(payment, { fee: -200, tax: -5, net: 5370, day: 2, payout: 'po_2' });
  await settle(payment, { fee: 0, net: -1000, day: 1, payout: 'po_1' });
  const { transactions, transactions_history } = await send('GET', `/v1/payments/${payment.id}`);
  const settlement = { fee: -2.05, net: 43.7, currency: 'USD', payout_reference: 'po_1' };
  expect([transactions.settlement, transactions_history[0].settlement]).toEqual([settlement, settlement]);

  const path = `/v1/payments/${payment.id}/transactions/${payment.transactions.id}/refund`;
  const refunded = await send('POST', path, {
    merchant_reference: 'r',
    amount: { currency: 'USD', value: 1 },
  });
  expect(refunded.transactions).toMatchObject({ type: 'REFUND', status: 'SUCCEEDED' });
  const listed = await send('GET', `/v1/payments?merchant_order_id=${payment.merchant_order_id}`);
  const events = await tables.query('SELECT encode(record, $1) AS text FROM event', ['escape']);
  expect(events).toHaveLength(2);
  expect(JSON.stringify([refunded, listed, events])).not.toMatch(/settlement|po_1/);
  const { transactions: refund, transactions_history: both } = await send(
    'GET',
    `/v1/payments/${payment.id}`,
  );
  expect(refund).not.toHaveProperty('settlement');
  expect(both.map((one: { settlement?: object }) => one.settlement)).toEqual([settlement, undefined]);
});

it('of two reports about the same money one is shown, and sums in several currencies are not', async () => {
  const twice = await send('POST', '/v1/payments', cardPayment('4111111111111111'));
  await settle(twice, { report: 'settlement', fee: -100, net: 900, day: 1 });
  await settle(twice, { report: 'release', fee: -90, net: 910, day: 3 });
  expect((await send('GET', `/v1/payments/${twice.id}`)).transactions.settlement).toEqual({
    ...{ fee: -0.9, net: 9.1, currency: 'USD', payout_reference: null },
  });
  const mixed = await send('POST', '/v1/payments', cardPayment('4111111111111111'));
  await settle(mixed, { fee: -100, net: 900, day: 1 });
  await settle(mixed, { fee: -90, net: 910, day: 3, currency: 'EUR' });
  expect((await send('GET', `/v1/payments/${mixed.id}`)).transactions).not.toHaveProperty('settlement');
});
