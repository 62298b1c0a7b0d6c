import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import {
  type AttemptCard,
  type AttemptFacts,
  isLocalMethod,
  kindOf,
  type Method,
  type PaymentAttempt,
} from '#src/connectors/port/attempt.ts';
import type { Capabilities } from '#src/connectors/port/capabilities.ts';
import { parseMoney } from '#src/money.ts';
import { expiryOf } from '#src/payments/method/local-method.ts';
import type { RequestedMethod } from '#src/payments/method/payment-method.ts';
import { localDetailOf } from '../model/record.ts';

/** The terms of a connection that limit its payers. */
type PayerTerms = Pick<Capabilities, 'redirectValidMinutes' | 'localMethods'>;

/**
 * Returns the first attempt of a payment.
 *
 * @param record the record whose `transactions` field is the attempt.
 * @param card the card in the clear, for a card payment.
 */
export function firstAttempt(
  record: Payment,
  method: RequestedMethod,
  card: AttemptCard | undefined,
  { publicUrl, terms }: { readonly publicUrl: string; readonly terms: PayerTerms },
): PaymentAttempt {
  return { ...attemptFacts(record, publicUrl, terms), method: sentMethod(method, card) };
}

/**
 * Returns when a local method's code is to expire at a connection; undefined for other methods, whose term is the
 * connection's.
 *
 * @param createdAt when the payment was made.
 */
export function expiryAt(
  method: Method<unknown>,
  { localMethods }: PayerTerms,
  createdAt: Timestamp,
): Timestamp | undefined {
  const local = isLocalMethod(method) ? localMethods[method.type] : undefined;
  if (!local || !isLocalMethod(method)) return undefined;
  const ms = expiryOf(local, method.wantedExpiryMs, timestampMs(createdAt));
  if (ms === undefined) throw new Error(`${method.type} cannot expire as asked, although it was checked`);
  return timestampFromMs(ms);
}

function sentMethod(method: RequestedMethod, card: AttemptCard | undefined): Method {
  if (method.by !== 'card') return method;
  if (!card) throw new Error('the card payment has no card');
  return { ...method, card };
}

/**
 * Builds the fields of an attempt other than its payment method, from the record alone, so that a look-up days later
 * sends the same fields.
 *
 * @param record the record whose `transactions` field is the attempt.
 * @param publicUrl the service's URL for providers and payers, without a trailing slash.
 * @param terms capabilities of the attempt's connection.
 */
export function attemptFacts(record: Payment, publicUrl: string, terms: PayerTerms): AttemptFacts {
  const { transactions: transaction, customerPayer, createdAt } = record;
  const money = parseMoney(transaction?.amount?.value ?? '', record.amount?.currency ?? '');
  if (!transaction || !customerPayer || !createdAt || !money)
    throw new Error(`record ${record.id} is incomplete`);
  const connectionId = transaction.connectionData?.id ?? '';
  return {
    transactionId: transaction.id,
    paymentId: record.id,
    money,
    createdAtMs: timestampMs(transaction.createdAt ?? createdAt),
    description: record.description,
    merchantOrderId: record.merchantOrderId,
    merchantReference: transaction.merchantReference,
    country: record.country,
    returnUrl: `${publicUrl}/v1/payments/${record.id}/return`,
    cancelUrl: `${publicUrl}/v1/payments/${record.id}/return/canceled`,
    notificationUrl: `${publicUrl}/v1/providers/${encodeURIComponent(connectionId)}/notifications`,
    expiresAtMs: payerUntilMs(record, createdAt, terms),
    customerPayer,
    additionalData: record.additionalData,
    taxes: record.taxes,
    metadata: record.metadata.map(({ key, value }) => ({ key: String(key), value: String(value) })),
  };
}

/** Returns when a payer can no longer pay: at the recorded expiry of a local method, or at the end of a redirect's term. */
function payerUntilMs(
  { paymentMethod }: Pick<Payment, 'paymentMethod'>,
  createdAt: Timestamp,
  { redirectValidMinutes }: PayerTerms,
): number {
  const { expiresAt } = localDetailOf(paymentMethod?.paymentMethodDetail) ?? {};
  return expiresAt ? timestampMs(expiresAt) : timestampMs(createdAt) + redirectValidMinutes * 60_000;
}

/** Returns how the payer pays an attempt, and the time to act, for the attempt's row. */
export function wayOfPayer(method: Method<unknown>, { expiresAtMs }: AttemptFacts, createdAt: Timestamp) {
  return { methodKind: kindOf(method), payerDueInS: (expiresAtMs - timestampMs(createdAt)) / 1_000 };
}
