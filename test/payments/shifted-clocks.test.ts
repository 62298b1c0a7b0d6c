import { create } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { RefundPaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { systemClock } from '#src/clock.ts';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { refundPayment } from '#src/payments/operate/payment-operations.ts';
import { UNKNOWN } from '../support/outcomes.ts';
import { withClockAhead } from '../support/process-clock.ts';
import { older } from '../support/tables.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Every look-up, in order. */
let asked: LookUp[];

onOperatedPayments({ empties: 'payment, transaction' });
beforeEach(() => {
  asked = [];
});

/** Has a process with a fast clock look up all open outcomes. */
async function checkedBy(aheadMs: number, lookUp = payments.provider.connection.lookUp): Promise<void> {
  const connection: ProviderConnection = {
    ...payments.provider.connection,
    lookUp: async (query) => {
      asked.push(query);
      return (await lookUp?.(query)) ?? UNKNOWN;
    },
  };
  await payments.makeDue();
  await withClockAhead(aheadMs, () =>
    checkDue({
      ...payments.deps,
      now: systemClock(),
      connections: () => new Map([['ledger', connection]]),
    }),
  );
}

const age = (hours: number) => payments.tables.query(`UPDATE transaction SET ${older(`${hours} hours`)}`);
const paidBy = (aheadMs: number, options?: Parameters<typeof payments.pay>[0]): Promise<Payment> =>
  withClockAhead(aheadMs, () => payments.pay(options));

describe.each([
  ['26 hours behind', -26 * HOUR_MS],
  ['right', 0],
  ['10 days ahead', 10 * DAY_MS],
])('a process whose clock is %s', (_what, aheadMs) => {
  it('a shifted clock does not change the age at which a payment with an unknown outcome is looked up', async () => {
    payments.provider.next.push('never hears of it');
    await paidBy(-aheadMs);
    await age(26);
    await checkedBy(aheadMs, async () => UNKNOWN);
    expect(asked).toHaveLength(1);
    expect(Math.floor(Number(asked[0]?.ageMs) / HOUR_MS)).toBe(26);
  });

  it('a shifted clock does not change the age at which a lost refund is looked up', async () => {
    const payment = await payments.pay();
    await age(26);
    payments.provider.next.push('never hears of it');
    const request = create(RefundPaymentRequestSchema, { paymentId: payment.id });
    await refundPayment(payments.deps, request, payments.caller());
    await checkedBy(aheadMs, async () => UNKNOWN);
    expect(asked).toMatchObject([{ of: { kind: 'refund' } }]);
    expect(Math.floor(Number(asked[0]?.ageMs) / HOUR_MS)).toBe(0);
  });

  it.each([true, false])(
    'a shifted clock closes no redirect or challenge before its term ends (wallet: %j)',
    async (wallet) => {
      if (!wallet) payments.provider.next.push('sends the payer away');
      const payment = await paidBy(-aheadMs, { wallet });
      await age(23);
      await checkedBy(aheadMs);
      expect(asked).toMatchObject([{ close: false }]);
      payments.provider.payerPays(payment.transactions?.id ?? '');
      await checkedBy(aheadMs);
      expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    },
  );

  it('a shifted clock closes a redirect once its term ends', async () => {
    const payment = await paidBy(-aheadMs, { wallet: true });
    await age(25);
    await checkedBy(aheadMs);
    expect([asked.map(({ close }) => close), await payments.stateOf(payment)]).toEqual([
      [true],
      'EXPIRED/EXPIRED',
    ]);
  });

  it('with a shifted clock, an authorization still expires at the end of its term, and not before', async () => {
    const payment = await paidBy(-aheadMs, { capture: false });
    await age(6 * 24);
    await checkedBy(aheadMs);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    await age(25);
    await checkedBy(aheadMs);
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
  });
});
