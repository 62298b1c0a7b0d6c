import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { type Payment, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { CancelPaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { cancelPayment } from '#src/payments/operate/payment-operations.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { forgetNews, notified, signed } from '../support/news.ts';
import { wantEveryEvent } from '../support/tables.ts';
import { alarms, capture, onOperatedPayments, others, payments, refund } from './operated-payments.ts';

/* A provider reports an operation with another amount than was requested: in a signed report, or in a look-up. */

onOperatedPayments({ empties: 'payment, transaction, notification, webhook, event' });

const DAY_MS = 86_400_000;
const CORRECTS = { approved: ['declined', ''], declined: ['approved', ''] };

/** Applies the signed report about an operation of 25.00 USD. */
async function sign(
  { transactions }: Payment,
  kind: 'approved' | 'declined',
  minorUnits: bigint,
  { currency = 'USD', day = 1 } = {},
) {
  const told = { providerData: create(ProviderDataSchema, { status: kind }), corrects: CORRECTS[kind] };
  const outcome = {
    approved: { kind: 'approved', ...told, authorizationCode: '', retrievalReferenceNumber: '' },
    declined: { kind: 'declined', ...told, iso8583Code: '05', advice: 'NONE' },
  } as const;
  const report = { outcome: outcome[kind], minorUnits, currency, at: new Date(day * DAY_MS) };
  await forgetNews();
  return signed(payments.deps, 'ledger', payments.provider.connection, transactions?.id ?? '', report);
}

/** A payment of 100.00 USD, and its open operation of 25.00 USD. */
async function operated(type: 'CAPTURE' | 'REFUND'): Promise<{ payment: Payment; operation: Payment }> {
  const payment = await payments.pay({ capture: type === 'REFUND' });
  payments.provider.next.push('delays it');
  const operation = (await (type === 'REFUND' ? refund : capture)(payment, { amount: '25' })).record;
  return { payment, operation };
}

const amountsOf = async (payment: Payment) => {
  const { amount, transactions } = await getPayment(payments.deps, payment.id, payments.caller());
  return [amount?.captured?.value, amount?.refunded?.value, transactions?.amount?.value];
};

it.each(['CAPTURE', 'REFUND'] as const)(
  'a %s that is declined is over, whatever amount the provider names, and raises an alarm',
  async (type) => {
    const { payment, operation } = await operated(type);
    expect(await sign(operation, 'declined', 10_000n)).toBe('applied');
    expect([await payments.stateOf(payment), await others(payment), alarms]).toEqual([
      ...['SUCCEEDED/APPROVED', [`${type} DECLINED 2500`], ['mismatch']],
    ]);
    expect(
      (await (type === 'REFUND' ? refund : capture)(payment, { amount: '25' })).record.transactions?.id,
    ).toBeTruthy();
  },
);

it.each([
  ['CAPTURE', 2_000n, 'USD', 2_000n],
  ['CAPTURE', 3_000n, 'USD', 3_000n],
  ['CAPTURE', 10_001n, 'USD', 10_000n],
  ['CAPTURE', 2_500n, 'EUR', 2_500n],
  ['CAPTURE', 0n, 'USD', 2_500n],
  ['REFUND', 2_000n, 'USD', 2_000n],
  ['REFUND', 3_000n, 'USD', 3_000n],
  ['REFUND', 10_001n, 'USD', 10_000n],
  ['REFUND', 2_500n, 'EUR', 2_500n],
] as const)(
  'a %s that succeeds with %d %s has the amount %d, and raises an alarm',
  async (type, minorUnits, currency, taken) => {
    await wantEveryEvent(payments.tables);
    const { payment, operation } = await operated(type);
    expect(await sign(operation, 'approved', minorUnits, { currency })).toBe('applied');
    const value = (Number(taken) / 100).toFixed(2);
    const books = type === 'REFUND' ? ['0.00', value, value] : [value, '0.00', value];
    expect([await others(payment), await amountsOf(payment), alarms]).toEqual([
      ...[[`${type} SUCCEEDED ${taken}`], books, ['mismatch']],
    ]);
    const [stored] = await payments.tables.query(
      'SELECT captured_minor_units + refunded_minor_units AS moved, open_operation FROM payment WHERE id = $1',
      [payment.id],
    );
    expect(stored).toEqual({ moved: String(taken), open_operation: null });
  },
);

it('a refund that a look-up reports with another amount takes it, and blocks no other', async () => {
  const { payment, operation } = await operated('REFUND');
  const other: Outcome = {
    ...{
      kind: 'approved',
      authorizationCode: '',
      retrievalReferenceNumber: '',
      reference: 'r-1',
      alarm: true,
    },
    ...{ providerData: create(ProviderDataSchema), money: { minorUnits: 2_000n, currency: 'USD' } },
  };
  const connection = { ...payments.provider.connection, lookUp: async () => other };
  const at = { ...payments.deps, connections: () => new Map([['ledger', connection]]) };
  expect(await notified(at, 'ledger', { transactionId: operation.transactions?.id })).toBe('applied');
  expect([await others(payment), await amountsOf(payment)]).toEqual([
    ...[['REFUND SUCCEEDED 2000'], ['0.00', '20.00', '20.00']],
  ]);
  await refund(payment, { amount: '80' });
  expect(await others(payment)).toEqual(['REFUND SUCCEEDED 2000', 'REFUND SUCCEEDED 8000']);
});

it('an operation that succeeded with another amount is corrected with that amount, in any order', async () => {
  const { payment, operation } = await operated('CAPTURE');
  await sign(operation, 'approved', 2_000n);
  await sign(operation, 'declined', 2_000n, { day: 3 });
  expect([await others(payment), await payments.stateOf(payment)]).toEqual([
    ...[['CAPTURE DECLINED 2000'], 'SUCCEEDED/APPROVED'],
  ]);
  expect(await sign(operation, 'approved', 2_500n, { day: 2 })).toBe('unchanged');
  expect(await sign(operation, 'approved', 2_500n, { day: 4 })).toBe('applied');
  expect([await others(payment), (await amountsOf(payment))[0]]).toEqual([
    ...[['CAPTURE SUCCEEDED 2500'], '25.00'],
  ]);
});

it('an operation that fails after it succeeded leaves the books, whatever amount the failure names', async () => {
  const { payment, operation } = await operated('CAPTURE');
  await sign(operation, 'approved', 2_500n);
  expect(await sign(operation, 'declined', 9_999n, { day: 2 })).toBe('applied');
  expect([await others(payment), (await amountsOf(payment))[0], alarms]).toEqual([
    ...[['CAPTURE DECLINED 2500'], '0.00', ['mismatch']],
  ]);
});

it('a correction with more than the payment can hold waits, with an alarm', async () => {
  const { payment, operation } = await operated('REFUND');
  await sign(operation, 'declined', 2_500n);
  await refund(payment, { amount: '90' });
  expect(await sign(operation, 'approved', 2_000n, { day: 2 })).toBe('waiting');
  expect([await others(payment), alarms]).toEqual([
    ['REFUND DECLINED 2500', 'REFUND SUCCEEDED 9000'],
    ['contradiction'],
  ]);
});

it('a cancel is done whatever amount the provider names, without an alarm', async () => {
  const payment = await payments.pay({ capture: false });
  await capture(payment, { amount: '40' });
  payments.provider.next.push('delays it');
  const request = create(CancelPaymentRequestSchema, { paymentId: payment.id });
  const { record } = await cancelPayment(payments.deps, request, payments.caller());
  expect(await sign(record, 'approved', 10_000n)).toBe('applied');
  expect([await others(payment), alarms]).toEqual([['CAPTURE SUCCEEDED 4000', 'CANCEL SUCCEEDED 6000'], []]);
});

it('a report of a payment with another amount changes nothing, and raises an alarm', async () => {
  payments.provider.next.push('does it, unanswered');
  const payment = await payments.pay();
  expect(await sign(payment, 'approved', 9_999n)).toBe('unchanged');
  expect([await payments.stateOf(payment), alarms]).toEqual([
    'PENDING/PENDING_PROVIDER_CONFIRMATION',
    ['mismatch'],
  ]);
});
