import { ApiError } from './api-error.ts';
import { type Behaviour, readOrder } from './behaviour.ts';
import { MAX_CAPTURES } from './charges.ts';
import { codeOf, isClosable } from './code-states.ts';
import { type Call, changedEntry, newEntry } from './entries.ts';
import { dueOf, readCommonDetails, readMoney } from './entry-details.ts';
import type { EntryDetails, LedgerEntry, Sums } from './ledger-entry.ts';
import { movedTo } from './payment-states.ts';
import { type JsonRecord, optionalBoolean, optionalText, text } from './request-body.ts';

/** Kinds of operations on a payment. */
export type OperationKind = 'capture' | 'cancellation' | 'refund' | 'completion';

/** An operation as requested. */
export type OperationRequest = {
  readonly kind: OperationKind;
  /** The payment's id at the provider, or its idempotency key. */
  readonly payment: string;
  /** Integer minor units; absent for a cancellation or completion. */
  readonly amount?: number;
  readonly currency?: string;
  /** true if the capture releases the rest of the authorization. */
  readonly isFinal: boolean;
  readonly reference: string | undefined;
  readonly behaviour: Behaviour;
  readonly details: EntryDetails;
};

/** Reason why an operation failed, in the field `failure_code`. */
export type FailureCode =
  | 'declined'
  | 'amount_too_large'
  | 'currency_differs'
  | 'too_many'
  | 'not_capturable'
  | 'not_refundable'
  | 'not_cancelable'
  | 'not_completable'
  | 'already_captured'
  | 'expired';

/** ISO 8583 response codes: transaction not permitted, and amount limit exceeded. */
const NOT_PERMITTED = '57';
const AMOUNT_LIMIT = '61';

/**
 * Reads POST /v1/captures, /v1/cancellations, /v1/refunds or /v1/completions.
 *
 * @throws ApiError naming the field at fault.
 */
export function readOperation(kind: OperationKind, body: JsonRecord): OperationRequest {
  const order = readOrder(optionalText(body, 'description'));
  const hasAmount = kind === 'capture' || kind === 'refund';
  return {
    kind,
    payment: text(body, 'payment', /^[\x21-\x7e]{1,255}$/),
    ...(hasAmount && readMoney(body)),
    isFinal: kind === 'capture' && (optionalBoolean(body, 'final') ?? false),
    reference: optionalText(body, 'reference'),
    behaviour: order.behaviour ?? { kind: 'approve' },
    details: readCommonDetails(body, order),
  };
}

/**
 * Decides an operation on a payment in its current state. An impossible operation is recorded as failed, with the
 * reason, so that a look-up agrees with the response.
 *
 * @returns the operation's entry, and the payment after the operation.
 * @throws ApiError 422 for the completion of an order that its payer has not approved yet.
 */
export function decideOperation(
  payment: LedgerEntry,
  request: OperationRequest,
  call: Call,
): readonly [operation: LedgerEntry, payment: LedgerEntry] {
  if (request.kind === 'completion' && payment.status === 'created') {
    // Not recorded, so that the same call can be repeated once the payer has approved.
    throw new ApiError(422, 'payer_has_not_approved', 'the payer has not approved it yet', 'payment');
  }
  const failure = failureOf(payment, request);
  const due = failure ? undefined : dueOf(request.behaviour, 'succeeded', 'failed');
  const status = failure ? 'failed' : due ? 'pending' : 'succeeded';
  const responseCode = failure?.responseCode ?? '00';
  const operation = newEntry({
    kind: request.kind,
    call,
    status,
    responseCode,
    parentId: payment.id,
    amount: request.amount ?? leftOf(payment),
    currency: request.currency ?? payment.currency,
    fields: {
      payment: payment.id,
      response_code: responseCode,
      failure_code: failure?.code ?? null,
      reference: request.reference ?? null,
    },
    due,
    details: { ...inheritedDetails(payment), ...request.details, ...released(payment, request) },
  });
  if (failure) return [operation, payment];
  const reserved = changedEntry(payment, { sums: sumsWith(payment, operation, 1) });
  return [operation, due ? reserved : withOperationDone(reserved, operation)];
}

/** Completes a pending operation. @returns the operation and its payment afterwards. */
export function settleOperation(
  operation: LedgerEntry,
  payment: LedgerEntry,
): readonly [operation: LedgerEntry, payment: LedgerEntry] {
  if (operation.due?.status !== 'failed') {
    return [
      changedEntry(operation, { status: 'succeeded', due: null }),
      withOperationDone(payment, operation),
    ];
  }
  const fields = { response_code: '05', failure_code: 'declined' satisfies FailureCode };
  const failed = changedEntry(operation, { status: 'failed', responseCode: '05', due: null, fields });
  return [failed, changedEntry(payment, { sums: sumsWith(payment, operation, -1) })];
}

/** Returns the notification settings that operations inherit from their payment unless they set their own. */
function inheritedDetails({ details: { notificationUrl, notify } }: LedgerEntry): EntryDetails {
  return { ...(notificationUrl !== undefined && { notificationUrl }), ...(notify && { notify }) };
}

function failureOf(
  payment: LedgerEntry,
  request: OperationRequest,
): { readonly code: FailureCode; readonly responseCode: string } | undefined {
  const { behaviour } = request;
  const code = refusalOf(payment, request);
  if (code) return { code, responseCode: code === 'amount_too_large' ? AMOUNT_LIMIT : NOT_PERMITTED };
  if (behaviour.kind === 'decline') return { code: 'declined', responseCode: behaviour.responseCode };
  if (behaviour.kind === 'too_late') return { code: 'already_captured', responseCode: NOT_PERMITTED };
  return undefined;
}

function refusalOf(payment: LedgerEntry, request: OperationRequest): FailureCode | undefined {
  const { sums, status } = payment;
  const { amount = 0, currency = payment.currency } = request;
  if (status === 'expired') return 'expired';
  if (currency !== payment.currency) return 'currency_differs';
  switch (request.kind) {
    case 'capture':
      if (payment.kind !== 'charge' || status !== 'approved') return 'not_capturable';
      if (leftOf(payment) === 0) return sums.captured > 0 ? 'already_captured' : 'not_capturable';
      if (sums.captures >= (payment.details.maxCaptures ?? MAX_CAPTURES)) return 'too_many';
      return amount > leftOf(payment) ? 'amount_too_large' : undefined;
    case 'cancellation':
      if (payment.kind === 'code' && !isClosable(payment)) return 'not_cancelable';
      if (leftOf(payment) === 0) return sums.captured > 0 ? 'already_captured' : 'not_cancelable';
      return status === 'declined' ? 'not_cancelable' : undefined;
    case 'refund':
      if (sums.captured === 0) return 'not_refundable';
      if (payment.kind === 'code' && !codeOf(payment).rules.isRefundable) return 'not_refundable';
      return amount > sums.captured - sums.refunded ? 'amount_too_large' : undefined;
    case 'completion':
      return status === 'payer_approved' ? undefined : 'not_completable';
  }
}

/** Returns the amount of a payment that is neither captured nor released. */
function leftOf({ amount, sums }: LedgerEntry): number {
  return amount - sums.captured - sums.canceled;
}

/** Returns the amount of an authorization that its last capture releases. */
function released(payment: LedgerEntry, { kind, amount = 0, isFinal }: OperationRequest): EntryDetails {
  const { sums, details } = payment;
  const isLast = isFinal || sums.captures + 1 >= (details.maxCaptures ?? MAX_CAPTURES);
  return kind === 'capture' && isLast ? { released: leftOf(payment) - amount } : {};
}

/** Adds an operation, pending or done, to a payment's sums, or subtracts a failed one. */
function sumsWith(
  { sums }: LedgerEntry,
  { kind, amount, details }: LedgerEntry,
  sign: 1 | -1,
): Partial<Sums> {
  switch (kind) {
    case 'cancellation':
      return { canceled: sums.canceled + sign * amount };
    case 'refund':
      return { refunded: sums.refunded + sign * amount };
    default:
      return {
        captured: sums.captured + sign * amount,
        captures: sums.captures + sign,
        canceled: sums.canceled + sign * (details.released ?? 0),
      };
  }
}

/** Returns the payment after the success of an operation that the sums already include. */
function withOperationDone(payment: LedgerEntry, { kind }: LedgerEntry): LedgerEntry {
  if (kind === 'cancellation') return movedTo(payment, 'canceled');
  if (kind === 'completion') return movedTo(payment, 'paid');
  // With nothing left to capture, nothing can lapse.
  return leftOf(payment) === 0 ? changedEntry(payment, { due: null }) : payment;
}
