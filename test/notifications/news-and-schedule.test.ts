import { create } from '@bufbuild/protobuf';
import { beforeEach, expect, it } from 'vitest';
import { type Payment, Payment_Status, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { RefundPaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { refundPayment } from '#src/payments/operate/payment-operations.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import type { Behaviour } from '../payments/ledger-provider.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';
import { notified } from '../support/news.ts';
import { UNKNOWN } from '../support/outcomes.ts';

const REDIRECT: Outcome = {
  ...{
    kind: 'awaits_payer',
    show: { page: 'https://issuer.example' },
    providerData: create(ProviderDataSchema),
  },
};

/** Every look-up, in order. */
let asked: LookUp[];

onOperatedPayments({ empties: 'payment, transaction, notification' });
beforeEach(() => {
  asked = [];
});

type Says = (query: LookUp) => Promise<Outcome>;
const AS_KNOWN: Says = async (query) => (await payments.provider.connection.lookUp?.(query)) ?? UNKNOWN;

/** Delivers a notification that prompts a look-up. Earlier notifications that wait become due. */
async function bringNews(
  { transactions }: Payment,
  lookUp = AS_KNOWN,
  deps = payments.deps,
): Promise<string> {
  await payments.makeDue();
  const connection: ProviderConnection = {
    ...payments.provider.connection,
    lookUp: (query) => {
      asked.push(query);
      return lookUp(query);
    },
  };
  const connections = () => new Map([['ledger', connection]]);
  return notified({ ...deps, connections }, 'ledger', { transactionId: transactions?.id });
}

const statusOf = async ({ id }: Payment) =>
  Payment_Status[(await getPayment(payments.deps, id, payments.caller())).status];

const dueInS = async ({ id }: Payment) =>
  (
    await payments.tables.query(
      'SELECT extract(epoch FROM check_at - now())::float8 AS in_s FROM transaction WHERE payment_id = $1',
      [id],
    )
  )[0]?.in_s;

it.each<[string, Behaviour, Outcome, string, number]>([
  ['whose outcome is unknown keeps the notification waiting', 'never hears of it', UNKNOWN, 'waiting', 2],
  ['whose payer was redirected settles the notification', 'sends the payer away', REDIRECT, 'unchanged', 60],
])(
  'a look-up that a notification prompts does not postpone the scheduled one: a payment %s',
  async (_what, behaviour, says, result, longestS) => {
    payments.provider.next.push(behaviour);
    const payment = await payments.pay();
    for (let news = 1; news <= 10; news++) {
      expect(await bringNews(payment, async () => says)).toBe(result);
      expect(asked).toHaveLength(news);
      // The longest pause is the one after a scheduled check at this age.
      expect(await dueInS(payment)).toBeGreaterThan(0);
      expect(await dueInS(payment)).toBeLessThanOrEqual(longestS);
    }
  },
);

it('a payment unknown to its provider is closed when it is old enough, even if notifications keep coming', async () => {
  const deps = { ...payments.deps, schedule: { ...payments.deps.schedule, closingMarginMs: 10_000 } };
  payments.provider.next.push('never hears of it');
  const payment = await payments.pay();
  // The payment may still be in progress, so no notification closes it.
  for (let news = 0; news < 10; news++) {
    await bringNews(payment, AS_KNOWN, deps);
  }
  expect([asked.map(({ close }) => close), await statusOf(payment)]).toEqual([
    Array(10).fill(false),
    'PENDING',
  ]);
  await payments.tables.query("UPDATE transaction SET created_at = now() - interval '12 seconds'");
  await bringNews(payment, AS_KNOWN, deps);
  expect([asked.at(-1)?.close, await statusOf(payment)]).toEqual([true, 'ERROR']);
});

it('a burst of notifications does not close an operation that may be in progress', async () => {
  const deps = { ...payments.deps, schedule: { ...payments.deps.schedule, closingMarginMs: 60_000 } };
  const payment = await payments.pay();
  payments.provider.next.push('never hears of it');
  const request = create(RefundPaymentRequestSchema, { paymentId: payment.id });
  const { record } = await refundPayment(payments.deps, request, payments.caller());
  for (let news = 0; news < 10; news++) {
    await bringNews(record, AS_KNOWN, deps);
  }
  expect(asked.map(({ close }) => close)).toEqual(Array(10).fill(false));
});
