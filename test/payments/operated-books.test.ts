import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { checkDue } from '#src/payments/check/checker.ts';
import { createPayment } from '#src/payments/create/create-payment.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { runs } from '../support/fixed-seed.ts';
import { restBody } from '../support/stored-responses.ts';
import type { Behaviour } from './ledger-provider.ts';
import { cancel, capture, onOperatedPayments, payments, refund } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction' });
afterEach(() => {
  payments.provider.next.length = 0;
});

const standing = (payment: Payment) => getPayment(payments.deps, payment.id, payments.caller());

/** Checks the open outcomes until the provider has reported everything. */
async function checkAll(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await payments.makeDue();
    await checkDue(payments.deps);
  }
}

it('an operation never changes the response to the creation of its payment', async () => {
  const caller = payments.caller();
  const { request, payment, body } = await payments.payAs(caller);
  await refund(payment, { amount: '10' });
  const again = await createPayment(payments.deps, request, caller);
  expect(again.replayed).toBe(true);
  expect(Buffer.compare(restBody(again), body)).toBe(0);
  expect(again.record.amount?.refunded?.value).toBe('0.00');
});

const arbBehaviour = fc.constantFrom<Behaviour>(
  'does it',
  'does it',
  'does it, unanswered',
  'never hears of it',
  'declines it',
  'refuses it',
  'delays it',
);
const arbStep = fc.record({
  operate: fc.constantFrom(capture, refund, cancel),
  amount: fc.option(fc.integer({ min: 1, max: 12_000 }), { nil: undefined }),
  behaviour: arbBehaviour,
  checks: fc.boolean(),
});

it('any sequence of operations keeps the amounts of the record, the columns and the provider equal', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      fc.array(arbStep, { minLength: 1, maxLength: 7 }),
      async (isPurchase, steps) => {
        const payment = await payments.pay({ capture: isPurchase });
        for (const { operate, amount, behaviour, checks } of steps) {
          payments.provider.next.push(behaviour);
          const asked = amount === undefined ? {} : { amount: (amount / 100).toFixed(2) };
          await operate(payment, asked).catch((error) => {
            payments.provider.next.length = 0;
            expect(error).toMatchObject({
              reason: expect.stringMatching(/^(INVALID_AMOUNT|INVALID_STATUS|OPERATION_IN_PROGRESS)$/),
            });
          });
          if (checks) await checkAll();
        }
        payments.provider.settleDelayed();
        await checkAll();

        const record = await standing(payment);
        const [row] = await payments.tables.query(
          'SELECT captured_minor_units AS captured, refunded_minor_units AS refunded, open_operation FROM payment WHERE id = $1',
          [payment.id],
        );
        const book = payments.provider.bookOf(payment.transactionsHistory[0]?.id ?? '');
        const units = (decimal?: { value: string }) => BigInt((decimal?.value ?? '').replace('.', ''));
        expect(row?.open_operation).toBeNull();
        expect(units(record.amount?.refunded)).toBe(book.refunded);
        expect(BigInt(`${row?.refunded}`)).toBe(book.refunded);
        expect(units(record.amount?.captured)).toBe(isPurchase ? 0n : book.captured);
        expect(BigInt(`${row?.captured}`)).toBe(isPurchase ? 0n : book.captured);
        expect(book.refunded <= book.captured && book.captured <= book.authorized).toBe(true);
      },
    ),
    { numRuns: runs(20) },
  );
});
