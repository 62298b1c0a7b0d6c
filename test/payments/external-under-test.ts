import { create } from '@bufbuild/protobuf';
import { beforeEach } from 'vitest';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import {
  CapturePaymentRequestSchema,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import { followUpNow } from '#src/payments/check/follow-up.ts';
import { capturePayment, refundPayment } from '#src/payments/operate/payment-operations.ts';
import { type OperatedPayments, onOperatedPayments, payments } from './operated-payments.ts';

/*
 * Payments on which something is done at their provider itself.
 */

/** The alarms so far, in order. */
export let alarms: unknown[];
export let deps: OperatedPayments['deps'];

/** Opens them for a file's tests: there are none before each. */
export function onPaymentsElsewhere(): void {
  onOperatedPayments({ empties: 'payment, transaction, webhook, event' });
  beforeEach(() => {
    payments.setAhead(0);
    alarms = [];
    const followedUp = (_about: unknown, result: unknown) => {
      if (typeof result === 'string' && result !== 'lapsed') alarms.push(result);
    };
    deps = { ...payments.deps, recovery: { ...payments.deps.recovery, followedUp } };
  });
}

export const idOf = ({ transactions }: Payment) => transactions?.id ?? '';
export const state = (payment: Payment) => payments.stateOf(payment);
const moneyOf = (value?: string) => value !== undefined && { amount: { currency: 'USD', value: { value } } };

/** A notification has the provider asked. */
export const news = (payment: Payment, connection: ProviderConnection = payments.provider.connection) =>
  followUpNow(deps, connection, idOf(payment), { hint: {} });

export const refund = ({ id: paymentId }: Payment, value?: string) =>
  refundPayment(
    deps,
    create(RefundPaymentRequestSchema, { paymentId, ...moneyOf(value) }),
    payments.caller(),
  );

export const capture = ({ id: paymentId }: Payment, value?: string) =>
  capturePayment(
    deps,
    create(CapturePaymentRequestSchema, { paymentId, ...moneyOf(value) }),
    payments.caller(),
  );

/** The transactions that a payment has beside its own: type, status and minor units. */
export async function others({ id }: Payment): Promise<string[]> {
  const rows = await payments.tables.query(
    `SELECT type, status, amount_minor_units::integer AS units FROM transaction
     WHERE payment_id = $1 AND parent_id IS NOT NULL ORDER BY created_at, id`,
    [id],
  );
  return rows.map(({ type, status, units }) => `${type} ${status} ${units}`);
}
