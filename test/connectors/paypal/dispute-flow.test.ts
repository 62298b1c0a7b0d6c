import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tell } from '../../support/fake-providers.ts';
import { onService, server, tables } from '../../support/on-service.ts';
import { headersOne, walletPayment } from '../../support/payment-requests.ts';
import { untilNewsIsSettled } from '../../support/settled-news.ts';
import { wantEveryEvent } from '../../support/tables.ts';
import { disputeEvent, resolved, reversalEvent, usd } from './fake-disputes.ts';
import type { Json } from './fake-ledger.ts';
import { FAKE_CLIENT_ID, FAKE_CLIENT_SECRET, FAKE_WEBHOOK_ID, startFakePayPal } from './fake-paypal.ts';

/* Disputes through the whole service: the fake of PayPal posts its notifications to the connection's URL. */

let fake: Awaited<ReturnType<typeof startFakePayPal>>;

beforeAll(async () => {
  fake = await startFakePayPal();
});
onService(() => ({
  catalogue: `payment_method_types:
  - { type: PAYPAL, category: WALLET, workflows: [REDIRECT] }
connections:
  - id: paypal
    name: PayPal
    provider_id: PAYPAL
    connector: paypal
    settings: { base_url: '${fake.url}', webhook_ids: [${FAKE_WEBHOOK_ID}] }
    secrets_from_environment: { client_id: ID, client_secret: SECRET }
routes:
  - { id: 1, targets: [{ connection: paypal }] }
`,
  config: { environment: (name: string) => ({ ID: FAKE_CLIENT_ID, SECRET: FAKE_CLIENT_SECRET })[name] },
}));
beforeAll(() => wantEveryEvent(tables));
afterAll(() => fake?.close());

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the record.
type Record = any;

async function call(path: string, body?: object): Promise<Record> {
  const response = await fetch(`${server.url}/v1/payments${path}`, {
    headers: { ...headersOne(body && randomUUID()), 'content-type': 'application/json' },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
  return response.json();
}

async function stateOf(id: string): Promise<string> {
  const { status, sub_status } = await call(`/${id}`);
  return `${status}/${sub_status}`;
}

/** A payment of 30.00 USD that PayPal has captured. */
async function pay(): Promise<{ id: string; captureId: string }> {
  const request = { ...walletPayment(), amount: { currency: 'USD', value: 30 }, country: 'US' };
  const { id } = await call('', { ...request, payment_method: { type: 'PAYPAL' } });
  const order = [...fake.ledger.orders.values()].at(-1);
  fake.approve(order?.id ?? '');
  await fetch(`${server.url}/v1/payments/${id}/return`, { redirect: 'manual' });
  expect(await stateOf(id)).toBe('SUCCEEDED/APPROVED');
  return { id, captureId: order?.captures[0]?.id ?? '' };
}

/** Posts events of a payment's dispute, each as a separate event, and waits until they are settled. */
async function dispute({ captureId }: { captureId: string }, ...told: readonly Json[]): Promise<void> {
  for (const over of told) {
    const disputed_transactions = [{ seller_transaction_id: captureId }];
    const type = `CUSTOMER.DISPUTE.${over.status ?? 'CREATED'}`;
    await post(disputeEvent({ disputed_transactions, ...over }, type, `WH-${randomUUID()}`));
  }
}

async function post(event: Json): Promise<void> {
  expect(await tell(server.url, 'paypal', fake.notify(event))).toBe(200);
  await untilNewsIsSettled(tables);
}

const refund = (id: string) =>
  call(`/${id}/refund`, { merchant_reference: randomUUID(), amount: { currency: 'USD', value: 5 } });
/** The events of a successful payment: one for the redirect, and one for the money taken. */
const MADE = ['payment.purchase', 'payment.purchase'];
const events = async (id: string) =>
  (
    await tables.query(
      "SELECT type FROM event WHERE payment_id = $1 AND type LIKE 'payment.%' ORDER BY sequence",
      [id],
    )
  ).map(({ type }) => type);
const disputesOf = async (id: string) =>
  (await call(`/${id}`)).transactions_history
    .filter(({ type }: Record) => type === 'CHARGEBACK')
    .map(({ amount, status }: Record) => [amount, status]);

it('a payment is IN_DISPUTE, then CHARGEBACK if PayPal decides for the payer, with an event for each', async () => {
  const payment = await pay();
  await dispute(payment, {});
  expect(await stateOf(payment.id)).toBe('IN_DISPUTE/RECEIVED');
  expect((await refund(payment.id)).code).toBe('INVALID_STATUS');
  await dispute(payment, { status: 'UNDER_REVIEW', dispute_life_cycle_stage: 'CHARGEBACK' });
  expect(await stateOf(payment.id)).toBe('IN_DISPUTE/RECEIVED');
  await dispute(payment, resolved('RESOLVED_BUYER_FAVOUR', { amount_refunded: usd('30.00') }));
  expect(await stateOf(payment.id)).toBe('CHARGEBACK/LOST');
  expect((await refund(payment.id)).code).toBe('INVALID_STATUS');
  expect([...fake.ledger.orders.values()].flatMap(({ refunds }) => refunds)).toEqual([]);
  expect(await events(payment.id)).toEqual([...MADE, 'payment.chargeback', 'payment.chargeback']);
  expect(await disputesOf(payment.id)).toEqual([[30, 'SUCCEEDED']]);
});

it.each(['RESOLVED_SELLER_FAVOUR', 'CANCELED_BY_BUYER', 'DENIED', 'RESOLVED_WITH_PAYOUT'])(
  'a dispute that ends with %s restores the earlier status and allows refunds again',
  async (outcome) => {
    const payment = await pay();
    await refund(payment.id);
    await dispute(payment, {}, resolved(outcome));
    expect(await stateOf(payment.id)).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
    expect((await refund(payment.id)).transactions.status).toBe('SUCCEEDED');
  },
);

it('a partly lost dispute shows the lost amount', async () => {
  const payment = await pay();
  await dispute(payment, { dispute_amount: usd('20.00') });
  expect(await disputesOf(payment.id)).toEqual([[20, 'PENDING']]);
  const partly = resolved('RESOLVED_BUYER_FAVOUR', { amount_refunded: usd('7.50') });
  await dispute(payment, { ...partly, dispute_amount: usd('20.00') });
  expect(await stateOf(payment.id)).toBe('CHARGEBACK/LOST');
  expect(await disputesOf(payment.id)).toEqual([[7.5, 'SUCCEEDED']]);
});

it.each([
  ['twice', [{}, {}, resolved('DENIED'), resolved('DENIED')], 'SUCCEEDED/APPROVED'],
  ['the outcome first', [resolved('ACCEPTED'), { status: 'UNDER_REVIEW' }, {}], 'CHARGEBACK/LOST'],
  ['an outcome before the opening', [resolved('DENIED'), {}], 'SUCCEEDED/APPROVED'],
  ['an appeal by the payer', [{}, resolved('DENIED'), resolved('RESOLVED_BUYER_FAVOUR')], 'CHARGEBACK/LOST'],
  ['an unknown outcome', [{}, resolved('A_NEW_ONE')], 'IN_DISPUTE/RECEIVED'],
])(
  'late, repeated and unordered events do not undo later stages of a dispute: %s',
  async (_how, told, state) => {
    const payment = await pay();
    for (let i = 0; i < 2; i++) {
      await dispute(payment, ...told);
      expect(await stateOf(payment.id)).toBe(state);
      await tables.query('DELETE FROM notification');
    }
    expect(await disputesOf(payment.id)).toHaveLength(1);
  },
);

it('an event that PayPal delivers twice is processed once', async () => {
  const payment = await pay();
  const event = disputeEvent({ disputed_transactions: [{ seller_transaction_id: payment.captureId }] });
  await post(event);
  await post(event);
  expect(
    await tables.query("SELECT result FROM notification WHERE deduplication_key = 'WH-dispute-1'"),
  ).toEqual([{ result: 'applied' }]);
  expect(await events(payment.id)).toEqual([...MADE, 'payment.chargeback']);
});

it('a payment whose dispute was closed in favor of another dispute follows the other dispute', async () => {
  const payment = await pay();
  await dispute(payment, {}, { dispute_id: 'PP-R-7' }, resolved('NONE'));
  expect(await stateOf(payment.id)).toBe('IN_DISPUTE/RECEIVED');
  await dispute(payment, { dispute_id: 'PP-R-7', ...resolved('RESOLVED_SELLER_FAVOUR') });
  expect(await stateOf(payment.id)).toBe('SUCCEEDED/APPROVED');
});

it('a dispute of several payments affects each with its whole amount, and no others', async () => {
  const [one, two, other] = [await pay(), await pay(), await pay()];
  const disputed_transactions = [one, two].map(({ captureId }) => ({ seller_transaction_id: captureId }));
  disputed_transactions.push({ seller_transaction_id: '00D10444LD479031K' });
  await dispute(one, { disputed_transactions, dispute_amount: usd('12.00') });
  for (const { id } of [one, two]) {
    expect(await stateOf(id)).toBe('IN_DISPUTE/RECEIVED');
    expect(await disputesOf(id)).toEqual([[30, 'PENDING']]);
  }
  expect(await stateOf(other.id)).toBe('SUCCEEDED/APPROVED');
});

it('a capture that PayPal holds because of a dispute changes nothing by itself', async () => {
  const payment = await pay();
  const capture = [...fake.ledger.orders.values()].at(-1)?.captures[0];
  if (!capture) throw new Error('no capture');
  Object.assign(capture, { status: 'PENDING', status_details: { reason: 'BUYER_COMPLAINT' } });
  const pending = () => ({
    id: `WH-${randomUUID()}`,
    event_type: 'PAYMENT.CAPTURE.PENDING',
    resource: { ...capture },
  });
  await post(pending());
  expect(await stateOf(payment.id)).toBe('SUCCEEDED/APPROVED');
  await dispute(payment, {});
  await post(pending());
  expect(await stateOf(payment.id)).toBe('IN_DISPUTE/RECEIVED');
  expect(await events(payment.id)).toEqual([...MADE, 'payment.chargeback']);
});

it('a reversal without a dispute leaves the payment IN_DISPUTE and blocks refunds', async () => {
  const payment = await pay();
  await post(reversalEvent(payment.captureId, {}, `WH-${randomUUID()}`));
  expect(await stateOf(payment.id)).toBe('IN_DISPUTE/RECEIVED');
  expect((await refund(payment.id)).code).toBe('INVALID_STATUS');
  expect(await events(payment.id)).toEqual([...MADE, 'payment.chargeback']);
});

it.each([0, 1, 2])('a reversal is part of its dispute, whichever comes first (%i)', async (at) => {
  for (const [outcome, state] of [
    ['DENIED', 'SUCCEEDED/APPROVED'],
    ['RESOLVED_BUYER_FAVOUR', 'CHARGEBACK/LOST'],
  ] as const) {
    const payment = await pay();
    const told = [() => dispute(payment, {}), () => dispute(payment, resolved(outcome))];
    told.splice(at, 0, () => post(reversalEvent(payment.captureId, {}, `WH-${randomUUID()}`)));
    for (const one of told) await one();
    expect(await stateOf(payment.id)).toBe(state);
    expect(await disputesOf(payment.id)).toHaveLength(1);
  }
});

it('a reversal is part of only one dispute: a second dispute continues when the first is closed', async () => {
  const payment = await pay();
  await post(reversalEvent(payment.captureId, {}, `WH-${randomUUID()}`));
  await dispute(payment, {}, { dispute_id: 'PP-R-7' }, resolved('NONE'));
  expect(await stateOf(payment.id)).toBe('IN_DISPUTE/RECEIVED');
  expect((await refund(payment.id)).code).toBe('INVALID_STATUS');
  await dispute(payment, { dispute_id: 'PP-R-7', ...resolved('RESOLVED_BUYER_FAVOUR') });
  expect(await stateOf(payment.id)).toBe('CHARGEBACK/LOST');
});
