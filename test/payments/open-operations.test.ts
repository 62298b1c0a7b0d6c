import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import {
  CapturePaymentRequestSchema,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { checkDue } from '#src/payments/check/checker.ts';
import { type OpenOutcomes, watchOpenOutcomes } from '#src/payments/check/open-outcomes.ts';
import { capturePayment, refundPayment } from '#src/payments/operate/payment-operations.ts';
import { earlier } from '../support/tables.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction' });

async function followUps(): Promise<OpenOutcomes['followUps']> {
  const counted: OpenOutcomes[] = [];
  const watch = watchOpenOutcomes({
    ...payments.deps,
    openOutcomes: {
      counted: (outcomes) => counted.push(outcomes),
      unaskable: () => {},
      failed: (error) => {
        throw error;
      },
    },
  });
  await watch.look();
  await watch.stop();
  return counted[0]?.followUps ?? [];
}

const openOf = async () => Object.fromEntries((await followUps()).map(({ kind, open }) => [kind, open]));

it('the watch over open outcomes counts open operations and redirected payers, by kind, with their age', async () => {
  expect(await openOf()).toEqual({ capture: 0, cancel: 0, refund: 0, payer: 0 });
  const [purchase, authorization] = [await payments.pay(), await payments.pay({ capture: false })];
  // An authorization that waits for its capture is checked after a day, and is not open.
  await payments.pay({ capture: false });
  await payments.pay({ wallet: true });
  payments.provider.next.push('sends the payer away', 'does it, unanswered', 'never hears of it');
  await payments.pay();
  const refund = create(RefundPaymentRequestSchema, { paymentId: purchase.id });
  await refundPayment(payments.deps, refund, payments.caller());
  const capture = create(CapturePaymentRequestSchema, { paymentId: authorization.id });
  await capturePayment(payments.deps, capture, payments.caller());
  await payments.tables.query(
    `UPDATE transaction SET created_at = ${earlier('created_at', '1 hour')} WHERE type = 'REFUND'`,
  );

  const counted = await followUps();
  expect(counted.map(({ kind, open }) => `${kind} ${open}`)).toEqual([
    'capture 1',
    'cancel 0',
    'refund 1',
    'payer 2',
  ]);
  const ages = new Map(counted.map(({ kind, oldestS }) => [kind, oldestS]));
  expect(ages.get('refund')).toBeGreaterThan(3_599);
  expect(ages.get('payer')).toBeLessThan(3_599);
  expect(ages.get('cancel')).toBe(0);

  for (let round = 0; round < 2; round++) {
    await payments.makeDue();
    await checkDue(payments.deps);
  }
  expect(await openOf()).toEqual({ capture: 0, cancel: 0, refund: 0, payer: 2 });
});
