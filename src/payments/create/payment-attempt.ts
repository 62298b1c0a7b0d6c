import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import {
  type AttemptCard,
  type AttemptFacts,
  kindOf,
  type Method,
  type PaymentAttempt,
} from '#src/connectors/port/attempt.ts';
import type { Capabilities } from '#src/connectors/port/capabilities.ts';
import { parseMoney } from '#src/money.ts';
import type { RequestedMethod } from '#src/payments/method/payment-method.ts';

/** The term of a connection that limits its payers. */
type PayerTerms = Pick<Capabilities, 'redirectValidMinutes'>;

/**
 * Builds the first attempt of a payment, and the columns of its row that say how the payer pays.
 *
 * @param card the card in the clear, for a card payment.
 */
export function firstAttempt(
  record: Payment,
  method: RequestedMethod,
  card: AttemptCard | undefined,
  { publicUrl, terms }: { readonly publicUrl: string; readonly terms: PayerTerms },
) {
  const attempt: PaymentAttempt = {
    ...attemptFacts(record, publicUrl, terms),
    method: sentMethod(method, card),
  };
  return { attempt, way: wayOfPayer(method, terms) };
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
    description: record.description,
    merchantOrderId: record.merchantOrderId,
    merchantReference: transaction.merchantReference,
    country: record.country,
    returnUrl: `${publicUrl}/v1/payments/${record.id}/return`,
    cancelUrl: `${publicUrl}/v1/payments/${record.id}/return/canceled`,
    notificationUrl: `${publicUrl}/v1/providers/${encodeURIComponent(connectionId)}/notifications`,
    expiresAtMs: timestampMs(createdAt) + terms.redirectValidMinutes * 60_000,
    customerPayer,
    additionalData: record.additionalData,
    taxes: record.taxes,
    metadata: record.metadata.map(({ key, value }) => ({ key: String(key), value: String(value) })),
  };
}

/** Returns how the payer pays an attempt, and the time to act, for the attempt's row. */
export function wayOfPayer(method: Pick<Method, 'by'>, { redirectValidMinutes }: PayerTerms) {
  return { methodKind: kindOf(method), payerDueInS: redirectValidMinutes * 60 };
}
