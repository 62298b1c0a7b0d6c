import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import {
  type Payment,
  Payment_Status,
  PaymentSchema,
  ProviderDataSchema,
} from '#gen/payments/v1/payment_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { type Checker, checkDue, type Handed } from '#src/payments/check/checker.ts';
import { callbackAddress, closePayment, returnPayer } from '#src/payments/check/payer-return.ts';
import { UNKNOWN } from '../support/outcomes.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { startSearchingChecker } from '../support/searching-checker.ts';
import { earlier } from '../support/tables.ts';
import { idOf, onOperatedPayments, payments } from './operated-payments.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Every look-up that a return prompted, in order. */
let asked: LookUp[];
/** The provider, as the checker calls it. */
let connection: ProviderConnection;
let checker: Pick<Checker, 'wake' | 'stop'>;

onOperatedPayments({ empties: 'payment, transaction, event, notification' });
beforeAll(async () => {
  await payments.tables.query(
    `INSERT INTO webhook (account_id, id, url, description, events, secret) VALUES ($1, $2, '', '', $3, '')`,
    [ACCOUNT_ONE, randomUUID(), ['payment.expired', 'payment.purchase']],
  );
});
beforeEach(() => {
  asked = [];
  at({ lookUp: async (query) => (await payments.provider.connection.lookUp?.(query)) ?? UNKNOWN });
  checker = start();
});
afterEach(() => checker.stop());

const start = () => startSearchingChecker({ ...payments.deps, connections }, { intervalMs: HOUR_MS });
const connections = () => new Map([['ledger', connection]]);

/** Sets the provider's answer from now on. */
function at({ lookUp, complete }: Pick<Partial<ProviderConnection>, 'lookUp' | 'complete'>) {
  const noted = (ask: typeof lookUp) =>
    ask &&
    ((query: LookUp) => {
      asked.push(query);
      return ask(query);
    });
  connection = { ...payments.provider.connection, lookUp: noted(lookUp), complete: noted(complete) };
}

/** Brings the payer of a payment back. @returns the status that the payer is shown. */
async function comeBack({ id }: Payment, query = '', waitMs = 8_000): Promise<string> {
  const patience = { ...payments.deps.patience, waitMs };
  const deps = { ...payments.deps, connections, patience, wake: checker.wake };
  const { status } = await returnPayer(deps, id, query);
  return Payment_Status[status];
}

/** Lets the term of open transactions pass, so that they expire here. */
async function expire() {
  payments.setAhead(8 * DAY_MS);
  await payments.makeDue();
  await checkDue(payments.deps);
  // The checker in the background may have taken the check first.
  await expect
    .poll(() => payments.tables.query('SELECT status FROM payment'))
    .toEqual([{ status: 'EXPIRED' }]);
}

/** Lets the pause before the next look-up pass. */
const pass = () =>
  payments.tables.query(`UPDATE notification SET settled_at = ${earlier('settled_at', '1 hour')}`);

/** Counts the writes of the one transaction: each stored return adds one. */
const fence = async () => Number((await payments.tables.query('SELECT fence FROM transaction'))[0]?.fence);

/** Lets the pause before the next look-up of the one transaction pass. */
async function passWaiting(): Promise<void> {
  const [row] = await payments.tables.query(
    `UPDATE transaction SET check_at = now()
     RETURNING account_id AS "accountId", id, connection_id AS "connectionId", connection_identity AS identity`,
  );
  checker.wake({ ...row, inS: 0 } as Handed);
}

const eventsOf = ({ id }: Payment) =>
  payments.tables.query('SELECT type FROM event WHERE payment_id = $1 ORDER BY sequence', [id]);

it('a payer who pays an expired payment and returns is shown SUCCEEDED, and an event tells the merchant', async () => {
  const payment = await payments.pay({ wallet: true });
  await expire();
  expect(await comeBack(payment)).toBe('EXPIRED');
  await pass();
  payments.provider.payerPays(idOf(payment));
  expect(await comeBack(payment)).toBe('SUCCEEDED');
  expect(asked).toHaveLength(2);
  expect(await eventsOf(payment)).toEqual([
    { type: 'payment.purchase' },
    { type: 'payment.expired' },
    { type: 'payment.purchase' },
  ]);
  // Final payments are not looked up again.
  expect(await comeBack(payment)).toBe('SUCCEEDED');
  expect(asked).toHaveLength(2);
});

it('an authorization that lapsed is not looked up again, whoever opens its return URL', async () => {
  const payment = await payments.pay({ capture: false });
  await expire();
  expect(await comeBack(payment)).toBe('EXPIRED');
  expect(asked).toEqual([]);
});

it('a payer who has paid is shown SUCCEEDED, even if somebody opened the return URL just before', async () => {
  const payment = await payments.pay({ wallet: true });
  expect(await comeBack(payment)).toBe('READY_TO_PAY');
  payments.provider.payerPays(idOf(payment));
  const before = await fence();
  const back = [comeBack(payment), comeBack(payment)];
  await expect.poll(fence).toBe(before + 2);
  await passWaiting();
  expect(await Promise.all(back)).toEqual(['SUCCEEDED', 'SUCCEEDED']);
  expect(asked).toHaveLength(2);
});

it('repeated visits to a return URL cause look-ups at most every two seconds', async () => {
  const payment = await payments.pay({ wallet: true });
  await comeBack(payment);
  await checker.stop();
  const [settled] = await payments.tables.query('SELECT settled_at AS at FROM notification');
  for (let i = 0; i < 5; i++) await Promise.all([comeBack(payment, '', 20), comeBack(payment, '', 20)]);
  const apart = 'SELECT extract(epoch FROM check_at - $1)::float8 AS seconds FROM transaction';
  expect(await payments.tables.query(apart, [settled?.at])).toEqual([{ seconds: expect.closeTo(2, 2) }]);
  expect(asked).toHaveLength(1);
});

it('a payer who comes back during a look-up is shown the result of the next look-up', async () => {
  const payment = await payments.pay({ wallet: true });
  const answer = Promise.withResolvers<void>();
  let [atOnce, most] = [0, 0];
  at({
    lookUp: async (query) => {
      most = Math.max(most, ++atOnce);
      const told = (await payments.provider.connection.lookUp?.(query)) ?? UNKNOWN;
      if (asked.length === 1) await answer.promise;
      atOnce -= 1;
      return told;
    },
  });
  const first = comeBack(payment);
  await expect.poll(() => asked.length).toBe(1);
  payments.provider.payerPays(idOf(payment));
  const before = await fence();
  const second = comeBack(payment);
  await expect.poll(fence).toBe(before + 1);
  setTimeout(answer.resolve, 200);
  await expect.poll(() => atOnce).toBe(0);
  await checker.stop();
  await passWaiting();
  checker = start();
  expect(await Promise.all([first, second])).toEqual(['SUCCEEDED', 'SUCCEEDED']);
  expect([asked.length, most]).toEqual([2, 1]);
});

it('a payer whose provider is silent waits for a limited time, and is shown the known state', async () => {
  const payment = await payments.pay({ wallet: true });
  const answer = Promise.withResolvers<Outcome>();
  at({ lookUp: () => answer.promise });
  expect(await comeBack(payment, '', 400)).toBe('READY_TO_PAY');
  answer.resolve(UNKNOWN);
});

it('each distinct piece of evidence that payers bring prompts its own look-up, one after the other', async () => {
  const payment = await payments.pay({ wallet: true });
  at({ complete: async () => ({ kind: 'pending', providerData: create(ProviderDataSchema) }) });
  await checker.stop();
  const before = await fence();
  const back = ['a', 'b', 'b'].map((query) => comeBack(payment, query));
  await expect.poll(fence).toBe(before + 3);
  checker = start();
  await expect.poll(() => asked.length).toBe(1);
  const isApart = `SELECT bool_or(t.check_at >= n.settled_at + interval '2 s') AS "isApart"
    FROM notification n JOIN transaction t ON t.account_id = n.account_id AND t.id = n.transaction_id`;
  // The news is settled before the check ends, and the lease looks like a pause until then.
  await checker.stop();
  expect(await payments.tables.query(isApart)).toEqual([{ isApart: true }]);
  await passWaiting();
  checker = start();
  await expect.poll(() => asked.length).toBe(2);
  await Promise.all(back);
  expect(asked.map(({ hint }) => hint)).toHaveLength(2);
  expect(asked.map(({ hint }) => hint)).toEqual(
    expect.arrayContaining([{ returnQuery: 'a' }, { returnQuery: 'b' }]),
  );
});

it('a flood of evidence queues five pieces for a payment, and further payers see the known state at once', async () => {
  const [payment, other] = [await payments.pay({ wallet: true }), await payments.pay({ wallet: true })];
  const answer = Promise.withResolvers<Outcome>();
  at({ complete: () => answer.promise });
  const five = Array.from({ length: 5 }, (_, i) => comeBack(payment, `r=${i}`, 500));
  const stored = () => payments.tables.query('SELECT transaction_id AS id FROM notification');
  await expect.poll(stored).toHaveLength(5);
  const begunMs = performance.now();
  expect(await comeBack(payment, 'r=5', 60_000)).toBe('READY_TO_PAY');
  expect(performance.now() - begunMs).toBeLessThan(2_000);
  expect(await stored()).toHaveLength(5);
  // Payers of other payments are not affected.
  const elsewhere = comeBack(other, 'r=0', 100);
  await expect.poll(stored).toHaveLength(6);
  answer.resolve(UNKNOWN);
  await Promise.all([...five, elsewhere]);
});

it('a payer who has paid is shown SUCCEEDED, even if somebody forged five returns before', async () => {
  const payment = await payments.pay({ wallet: true });
  const codes = { authorizationCode: '', retrievalReferenceNumber: '' };
  at({
    complete: async ({ hint }) =>
      hint?.returnQuery === 'true'
        ? { kind: 'approved', providerData: create(ProviderDataSchema), ...codes }
        : { kind: 'not_sent', because: 'turned_away', detail: 'forged' },
  });
  for (let i = 0; i < 5; i++) {
    expect(await comeBack(payment, `forged=${i}`, 500)).toBe('READY_TO_PAY');
    await pass();
  }
  expect(await comeBack(payment, 'true')).toBe('SUCCEEDED');
});

it.each([
  ['a wallet', 'READY_TO_PAY/CREATED', true],
  ['a challenge', 'PENDING/WAITING_ADDITIONAL_STEP', true],
  ['an unknown outcome', 'PENDING/PENDING_PROVIDER_CONFIRMATION', false],
  ['an approval', 'SUCCEEDED/APPROVED', false],
])(
  'a payer who pays another way closes only a payment that waits for its payer: %s',
  async (what, state, closes) => {
    if (what === 'a challenge') payments.provider.next.push('sends the payer away');
    if (what === 'an unknown outcome') payments.provider.next.push('does it, unanswered');
    const payment = await payments.pay({ wallet: what === 'a wallet' });
    expect(await payments.stateOf(payment)).toBe(state);
    at({ lookUp: async () => ({ kind: 'expired', providerData: create(ProviderDataSchema) }) });
    const patience = { ...payments.deps.patience, waitMs: 8_000 };
    await closePayment({ ...payments.deps, connections, patience, wake: checker.wake }, payment.id);
    const closings = await payments.tables.query('SELECT kind FROM notification');
    expect(closings).toEqual(closes ? [{ kind: 'close' }] : []);
    if (!closes) return;
    expect(asked.map(({ close }) => close)).toEqual([true]);
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
  },
);

it.each([
  [undefined, undefined],
  ['', undefined],
  ['shop.example/back?a=1#end', 'https://shop.example/back?a=1&payment_id=p-1&status=SUCCEEDED#end'],
  ['shop.example:8443/back', 'https://shop.example:8443/back?payment_id=p-1&status=SUCCEEDED'],
  ['http://shop.example', 'http://shop.example/?payment_id=p-1&status=SUCCEEDED'],
  ['shop.app://paid', 'shop.app://paid?payment_id=p-1&status=SUCCEEDED'],
])(
  'a payer who has paid goes on to the callback_url %s with the payment and its status',
  (callbackUrl, address) => {
    const payment = create(PaymentSchema, { id: 'p-1', status: Payment_Status.SUCCEEDED, callbackUrl });
    expect(callbackAddress(payment)).toBe(address);
  },
);
