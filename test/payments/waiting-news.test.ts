import { expect, it } from 'vitest';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { Dispute } from '#src/connectors/port/dispute-report.ts';
import { lookAgain, notified } from '../support/news.ts';
import { earlier } from '../support/tables.ts';
import { alarms, idOf, onOperatedPayments, payments, refund } from './operated-payments.ts';

/* Signed notifications that cannot be applied yet: they wait, but not in silence. */

onOperatedPayments({ empties: 'payment, transaction, notification, webhook, event' });

const OPENED: Dispute = { stage: 'opened', reference: 'dp_1', money: undefined };

const dispute = (transactionId: string, of: Dispute = OPENED) =>
  notified(payments.deps, 'ledger', { transactionId, dispute: of });

/** A payment that its provider declined, with this status of its only attempt. */
async function failed(status: string): Promise<Payment> {
  payments.provider.next.push('declines it');
  const payment = await payments.pay();
  await payments.tables.query('UPDATE transaction SET status = $2 WHERE id = $1', [idOf(payment), status]);
  return payment;
}

/** Lets the waiting notifications grow older. */
const age = (by: string) =>
  payments.tables.query(
    `UPDATE notification SET received_at = ${earlier('received_at', by)} WHERE settled_at IS NULL`,
  );

it.each(['DECLINED', 'ERROR', 'EXPIRED'])(
  'a dispute of a payment that is %s raises an alarm, again after an hour, and is recorded once the payment is paid',
  async (status) => {
    const payment = await failed(status);
    const id = idOf(payment);
    expect([await dispute(id), alarms]).toEqual(['waiting', ['contradiction']]);
    expect([await lookAgain(payments.deps), alarms]).toEqual(['waiting', ['contradiction']]);
    await age('1 hour');
    expect([await lookAgain(payments.deps), alarms]).toEqual(['waiting', ['contradiction', 'contradiction']]);
    await payments.tables.query("UPDATE transaction SET status = 'SUCCEEDED' WHERE id = $1", [id]);
    expect([await lookAgain(payments.deps), await payments.stateOf(payment)]).toEqual([
      'applied',
      'IN_DISPUTE/RECEIVED',
    ]);
  },
);

it('a signed notification that has waited for an hour raises an alarm, whatever it waits for', async () => {
  const payment = await payments.pay();
  payments.provider.next.push('delays it');
  await refund(payment, { amount: '60' });
  expect([await dispute(idOf(payment)), alarms]).toEqual(['waiting', []]);
  await age('59 minutes');
  expect([await lookAgain(payments.deps), alarms]).toEqual(['waiting', []]);
  await age('1 minute');
  expect([await lookAgain(payments.deps), alarms]).toEqual(['waiting', ['overdue']]);
});

it('thirty waiting notifications of a transaction do not hide newer ones', async () => {
  const id = idOf(await failed('DECLINED'));
  for (let i = 0; i < 30; i++) await dispute(id, { ...OPENED, reference: `dp_${i}` });
  for (let i = 0; i < 2; i++) await lookAgain(payments.deps);
  const tried = await payments.tables.query('SELECT 1 FROM notification WHERE tried_at IS NOT NULL');
  expect(tried).toHaveLength(30);
  await dispute(id, { ...OPENED, reference: 'newest' });
  await lookAgain(payments.deps);
  const [newest] = await payments.tables.query(
    "SELECT tried_at IS NOT NULL AS tried FROM notification WHERE dispute_reference = 'newest'",
  );
  expect(newest?.tried).toBe(true);
});
