import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { beforeEach, expect, it } from 'vitest';
import { type Payment, Payment_Status, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { RefundPaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { processDue } from '#src/payments/check/process-notifications.ts';
import { refundPayment } from '#src/payments/operate/payment-operations.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { insertNotification } from '#src/store/tables/notifications.ts';
import type { Behaviour } from '../payments/ledger-provider.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';

const UNKNOWN: Outcome = { kind: 'unknown', detail: 'silence', providerData: undefined };
const REDIRECT: Outcome = {
  ...{ kind: 'redirect', redirectUrl: 'https://issuer.example', providerData: create(ProviderDataSchema) },
};

/** Every look-up, in order. */
let asked: LookUp[];

onOperatedPayments({ empties: 'payment, transaction, notification' });
beforeEach(() => {
  asked = [];
});

type Says = (query: LookUp) => Promise<Outcome>;
const AS_KNOWN: Says = async (query) => (await payments.provider.connection.lookUp?.(query)) ?? UNKNOWN;

/** Brings news of a payment, and has the provider asked because of it. */
async function bringNews({ transactions }: Payment, lookUp = AS_KNOWN, deps = payments.deps): Promise<void> {
  await insertNotification(payments.database, {
    connectionId: 'ledger',
    deduplicationKey: randomUUID(),
    subjects: [{ transactionId: transactions?.id }],
    ...{ body: Buffer.alloc(0), query: '', headers: '{}' },
  });
  // What waits is due, and two look-ups that news prompts are two seconds apart.
  await payments.tables.query("UPDATE transaction SET notified_look_up_at = now() - interval '2 seconds'");
  await payments.tables.query('UPDATE notification SET process_at = now() WHERE process_at IS NOT NULL');
  const connection: ProviderConnection = {
    ...payments.provider.connection,
    lookUp: (query) => {
      asked.push(query);
      return lookUp(query);
    },
  };
  await processDue({
    ...deps,
    connections: () => new Map([['ledger', connection]]),
    processed: { settled: () => {}, failed: (error) => Promise.reject(error) },
  });
}

const statusOf = async ({ id }: Payment) =>
  Payment_Status[(await getPayment(payments.deps, id, payments.caller())).status];

const scheduleOf = async ({ id }: Payment) =>
  (
    await payments.tables.query(
      'SELECT look_up_at::text, follow_up_at::text FROM transaction WHERE payment_id = $1',
      [id],
    )
  )[0];

it.each<[string, Behaviour]>([
  ['whose outcome is unknown', 'never hears of it'],
  ['whose payer was sent away', 'sends the payer away'],
])('news of a payment %s never postpones its scheduled check', async (_what, behaviour) => {
  payments.provider.next.push(behaviour);
  const payment = await payments.pay();
  await payments.tables.query(
    `UPDATE transaction SET look_up_at = now() + interval '90 seconds' WHERE look_up_at IS NOT NULL`,
  );
  const before = await scheduleOf(payment);
  const says = behaviour === 'never hears of it' ? UNKNOWN : REDIRECT;
  for (let news = 1; news <= 10; news++) {
    await bringNews(payment, async () => says);
    expect([asked.length, await scheduleOf(payment)]).toEqual([news, before]);
  }
});

it('a payment that its provider never heard of is closed once it is old enough, although news keeps coming', async () => {
  const deps = { ...payments.deps, schedule: { ...payments.deps.schedule, closingMarginMs: 10_000 } };
  payments.provider.next.push('never hears of it');
  const payment = await payments.pay();
  // A burst of news closes nothing that may be under way still.
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

it('a burst of news does not close an operation that may be under way', async () => {
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
