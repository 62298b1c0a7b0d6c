import { create } from '@bufbuild/protobuf';
import { beforeAll, beforeEach } from 'vitest';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import {
  CancelOrRefundPaymentRequestSchema,
  CancelPaymentRequestSchema,
  CapturePaymentRequestSchema,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { CheckerDeps } from '#src/payments/check/checker.ts';
import {
  cancelOrRefundPayment,
  cancelPayment,
  capturePayment,
  refundPayment,
} from '#src/payments/operate/payment-operations.ts';
import { notified } from '../support/news.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { type OperatedPayments, openOperatedPayments } from './open-operated-payments.ts';

/* Payments at a provider with books: their merchant's requests, their provider's news, and what became of them. */

export let payments: OperatedPayments;
/** The alarms that checks raised so far in a test, in order. */
export let alarms: string[];

/**
 * Opens `payments`, on a database of its own, for the tests of one file. Each test starts at the actual time, without
 * alarms.
 *
 * @param options.empties comma-separated names of tables that are emptied before each test.
 */
export function onOperatedPayments({ empties }: { empties?: string } = {}): void {
  onOwnDatabase({ empties, maxConnections: 8 });
  beforeAll(async () => {
    const opened = await openOperatedPayments(database, tables);
    const checked = { ...opened.deps.checked, learned: keepAlarm };
    payments = { ...opened, deps: { ...opened.deps, checked } };
  });
  beforeEach(() => {
    payments.setAhead(0);
    alarms = [];
  });
}

const keepAlarm: CheckerDeps['checked']['learned'] = (_about, result) => {
  if (typeof result === 'string' && result !== 'lapsed') alarms.push(result);
};

/**
 * Fields of a request besides the payment's ID, and the service that receives it if it differs from
 * that of `payments`. A null key means none; the default is a fresh one.
 */
type Asked = {
  deps?: OperatedPayments['deps'];
  amount?: string;
  reference?: string;
  transactionId?: string;
  key?: string | null;
  currency?: string;
  isFinal?: boolean;
};

const namesOf = (payment: Payment, { reference, transactionId }: Asked) => ({
  paymentId: payment.id,
  ...(transactionId !== undefined && { transactionId }),
  ...(reference !== undefined && { merchantReference: reference }),
});
const fieldsOf = (payment: Payment, asked: Asked) => ({
  ...namesOf(payment, asked),
  ...(asked.amount !== undefined && {
    amount: { currency: asked.currency ?? 'USD', value: { value: asked.amount } },
  }),
});
/** Captures, cancels and refunds a payment at the merchant's request. */
export const capture = (payment: Payment, asked: Asked = {}) =>
  capturePayment(
    asked.deps ?? payments.deps,
    create(CapturePaymentRequestSchema, {
      ...fieldsOf(payment, asked),
      ...(asked.isFinal !== undefined && { finalCapture: asked.isFinal }),
    }),
    payments.caller(asked.key),
  );
export const refund = (payment: Payment, asked: Asked = {}) =>
  refundPayment(
    asked.deps ?? payments.deps,
    create(RefundPaymentRequestSchema, fieldsOf(payment, asked)),
    payments.caller(asked.key),
  );
export const cancel = (payment: Payment, asked: Asked = {}) =>
  cancelPayment(
    asked.deps ?? payments.deps,
    create(CancelPaymentRequestSchema, namesOf(payment, asked)),
    payments.caller(asked.key),
  );
export const undo = (payment: Payment, asked: Asked = {}) =>
  cancelOrRefundPayment(
    asked.deps ?? payments.deps,
    create(CancelOrRefundPaymentRequestSchema, fieldsOf(payment, asked)),
    payments.caller(asked.key),
  );
export const idOf = ({ transactions }: Payment) => transactions?.id ?? '';

/** Delivers a notification that prompts a look-up. @returns the result of the last notification settled. */
export const news = (payment: Payment, connection: ProviderConnection = payments.provider.connection) =>
  notified({ ...payments.deps, connections: () => new Map([['ledger', connection]]) }, 'ledger', {
    transactionId: idOf(payment),
  });

/** The other transactions of a payment: type, status and minor units. */
export async function others({ id }: Payment): Promise<string[]> {
  const rows = await payments.tables.query(
    `SELECT type, status, amount_minor_units::integer AS units FROM transaction
     WHERE payment_id = $1 AND parent_id IS NOT NULL ORDER BY created_at, id`,
    [id],
  );
  return rows.map(({ type, status, units }) => `${type} ${status} ${units}`);
}
