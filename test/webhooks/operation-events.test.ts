import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import {
  CapturePaymentRequestSchema,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { capturePayment, refundPayment } from '#src/payments/operate/payment-operations.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';
import { wantEveryEvent } from '../support/tables.ts';

onOperatedPayments();

it('each change of a payment writes one numbered event, and the last has the current record', async () => {
  await wantEveryEvent(payments.tables);
  let written = 0;
  const deps = { ...payments.deps, eventWritten: () => void written++ };
  const payment = await payments.pay({ capture: false });
  const amount = (value: string) => ({ currency: 'USD', value: { value } });
  const capture = (value: string) =>
    capturePayment(
      deps,
      create(CapturePaymentRequestSchema, { paymentId: payment.id, amount: amount(value) }),
      payments.caller(),
    );
  const refund = (value: string) =>
    refundPayment(
      deps,
      create(RefundPaymentRequestSchema, { paymentId: payment.id, amount: amount(value) }),
      payments.caller(),
    );
  await capture('40.00');
  await capture('60.00');
  await refund('30.00');
  await refund('70.00');
  expect(written).toBe(4);
  const events = await payments.tables.query(
    'SELECT type, sequence, record FROM event WHERE payment_id = $1 ORDER BY sequence',
    [payment.id],
  );
  expect(events.map(({ type, sequence }) => [sequence, type])).toEqual([
    [1, 'payment.purchase'],
    [2, 'payment.capture'],
    [3, 'payment.capture'],
    [4, 'payment.refund'],
    [5, 'payment.refund'],
  ]);
  expect(decodeRecord(events[4]?.record as Uint8Array).status).toBe(Payment_Status.REFUNDED);
  const [row] = await payments.tables.query('SELECT record, event_sequence FROM payment WHERE id = $1', [
    payment.id,
  ]);
  expect(row).toEqual({ record: events[4]?.record, event_sequence: 5 });
  // A refused call writes no event.
  await expect(refund('1.00')).rejects.toThrow();
  expect(await payments.tables.query('SELECT count(*)::int AS n FROM event')).toEqual([{ n: 5 }]);
});
