import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { type Payment, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { NotificationSubject, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { writeReport } from '#src/payments/write-change.ts';
import { bringNews } from '../support/bring-news.ts';
import { interleave } from '../support/interleave.ts';
import { APPROVED } from '../support/outcomes.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { ledgerReference } from './ledger-provider.ts';
import { alarms, idOf, onOperatedPayments, others, payments, refund } from './operated-payments.ts';

/* Captures and refunds made at a provider without look-up, as its notifications report them. */

onOperatedPayments({ empties: 'payment, transaction, notification, webhook, event' });

/** The signed outcomes, keyed by the number in the notification's body. */
const signed: NotificationSubject[] = [];

/**
 * Delivers a notification, and checks open outcomes. @returns the results of the settled
 * notifications.
 */
async function sign(
  payment: Payment,
  operation: 'CAPTURE' | 'REFUND',
  {
    minorUnits = 2_500n,
    providerPaymentId = 'psp-1',
    currency = 'USD',
    paid = ledgerReference(idOf(payment)),
  } = {},
  on = payments.deps,
): Promise<string> {
  const outcome: Outcome = {
    ...{ kind: 'approved', providerData: create(ProviderDataSchema), providerPaymentId },
    ...{ authorizationCode: '', retrievalReferenceNumber: '' },
  };
  const transactionId = idOf(payment);
  const told = { outcome, minorUnits, currency, operation, paidReference: paid };
  const body = Buffer.from(`${signed.push({ transactionId, signed: told }) - 1}`);
  await bringNews(on, 'ledger', { transactionId }, { body });
  return check(on);
}

/** Checks open outcomes. @returns the results of the settled notifications. */
async function check(on = payments.deps): Promise<string> {
  const results: string[] = [];
  const connection: ProviderConnection = {
    ...payments.provider.connection,
    lookUp: undefined,
    readNotification: async ({ body }) => ({
      ...{ kind: 'about', deduplicationKey: '' },
      subjects: signed.slice(Number(Buffer.from(body)), Number(Buffer.from(body)) + 1),
    }),
  };
  await payments.makeDue();
  await checkDue({
    ...on,
    connections: () => new Map([['ledger', connection]]),
    settled: (_connectionId, result) => results.push(result),
  });
  return results.join(', ') || 'waiting';
}

it('a signed refund at a provider without look-up is recorded once for each provider id', async () => {
  const payment = await payments.pay();
  const told = [await sign(payment, 'REFUND'), await sign(payment, 'REFUND')];
  expect([...told, await sign(payment, 'REFUND', { providerPaymentId: 'psp-2' })]).toEqual([
    'applied',
    'unchanged',
    'applied',
  ]);
  expect(await others(payment)).toEqual(['REFUND SUCCEEDED 2500', 'REFUND SUCCEEDED 2500']);
  expect([await payments.stateOf(payment), alarms]).toEqual(['SUCCEEDED/PARTIALLY_REFUNDED', []]);
});

it('a signed refund waits while our own is in flight, and is recognized as ours by the provider’s id', async () => {
  const payment = await payments.pay();
  payments.provider.next.push('delays it');
  await refund(payment, { amount: '25' });
  expect(await sign(payment, 'REFUND')).toBe('waiting');
  await payments.tables.query("UPDATE transaction SET provider_payment_id = 'psp-1' WHERE type = 'REFUND'");
  expect(await check()).toBe('unchanged');
  expect(await others(payment)).toEqual(['REFUND PENDING 2500']);
});

it('a signed refund waits if its payment was approved just after the payment was read', async () => {
  payments.provider.next.push('does it, unanswered');
  const payment = await payments.pay();
  const approve = async (nth: number) => {
    if (nth > 1) return;
    const transactionId = idOf(payment);
    const other = { accountId: ACCOUNT_ONE, paymentId: payment.id, transactionId, fence: 0 };
    await writeReport(payments.deps, other, {
      kind: 'outcome',
      transactionId,
      outcome: APPROVED,
      pauseS: 60,
    });
  };
  const racing = {
    ...payments.deps,
    database: interleave(payments.database, { after: { read_payment_state: approve } }),
  };
  expect(await sign(payment, 'REFUND', { paid: '' }, racing)).toBe('waiting');
  expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  expect(await check()).toBe('applied');
  expect([await payments.stateOf(payment), alarms]).toEqual(['SUCCEEDED/PARTIALLY_REFUNDED', []]);
});

it('a signed capture is recorded for an authorization, and ignored for a purchase', async () => {
  const [authorized, purchased] = [await payments.pay({ capture: false }), await payments.pay()];
  expect(await sign(authorized, 'CAPTURE', { minorUnits: 10_000n })).toBe('applied');
  expect(await sign(purchased, 'CAPTURE', { minorUnits: 10_000n })).toBe('unchanged');
  expect([await payments.stateOf(authorized), await payments.stateOf(purchased), alarms]).toEqual([
    'SUCCEEDED/CAPTURED',
    'SUCCEEDED/APPROVED',
    [],
  ]);
});

it.each([
  ['more than was paid', true, 'REFUND', { minorUnits: 10_001n }],
  ['in another currency', true, 'REFUND', { currency: 'EUR' }],
  ['more than was authorized', false, 'CAPTURE', { minorUnits: 10_001n }],
  ['of a zero amount', true, 'REFUND', { minorUnits: 0n }],
] as const)(
  'a signed operation raises an alarm and changes nothing if it is %s',
  async (_what, isPurchase, operation, over) => {
    const payment = await payments.pay({ capture: isPurchase });
    expect(await sign(payment, operation, over)).toBe('unchanged');
    expect([await payments.stateOf(payment), await others(payment), alarms]).toEqual([
      'SUCCEEDED/APPROVED',
      [],
      ['mismatch'],
    ]);
  },
);

it('a signed operation of another charge under our reference raises an alarm and changes nothing', async () => {
  const payment = await payments.pay();
  const authorized = await payments.pay({ capture: false });
  expect(await sign(payment, 'REFUND', { paid: 'paid-2' })).toBe('unchanged');
  expect(await sign(authorized, 'CAPTURE', { paid: 'paid-2' })).toBe('unchanged');
  expect([await others(payment), await others(authorized), alarms]).toEqual([
    [],
    [],
    ['mismatch', 'mismatch'],
  ]);
  expect(await sign(payment, 'REFUND')).toBe('applied');
});

it('a signed refund waits for its capture, whose notification may come later', async () => {
  const payment = await payments.pay({ capture: false });
  expect([await sign(payment, 'REFUND'), alarms]).toEqual(['waiting', []]);
  expect(await sign(payment, 'CAPTURE', { minorUnits: 4_000n, providerPaymentId: 'psp-2' })).toBe(
    'applied, applied',
  );
  expect(await others(payment)).toEqual(['CAPTURE SUCCEEDED 4000', 'REFUND SUCCEEDED 2500']);
});

it('a signed refund waits for a capture while even one minor unit is left to capture', async () => {
  const payment = await payments.pay({ capture: false });
  expect(await sign(payment, 'CAPTURE', { minorUnits: 9_999n, providerPaymentId: 'psp-2' })).toBe('applied');
  expect([await sign(payment, 'REFUND', { minorUnits: 10_000n }), alarms]).toEqual(['waiting', []]);
});

it('a signed refund raises an alarm if its payment can no longer be captured', async () => {
  const payment = await payments.pay({ capture: false });
  await payments.tables.query('UPDATE payment SET released = true');
  expect([await sign(payment, 'REFUND'), alarms]).toEqual(['unchanged', ['mismatch']]);
});

it('a signed refund raises an alarm if the payment was declined, and waits if the payment is open', async () => {
  payments.provider.next.push('declines it');
  const declined = await payments.pay();
  expect([await sign(declined, 'REFUND'), alarms]).toEqual(['unchanged', ['mismatch']]);
  payments.provider.next.push('declines it');
  expect(await sign(await payments.pay({ capture: false }), 'REFUND')).toBe('unchanged');
  payments.provider.next.push('never hears of it');
  expect(await sign(await payments.pay(), 'REFUND')).toBe('waiting');
  alarms.length = 0;
  expect([await sign(await payments.pay({ wallet: true }), 'REFUND'), alarms]).toEqual(['waiting', []]);
});
