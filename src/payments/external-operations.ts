import { randomUUIDv7 } from 'node:crypto';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { Money } from '#src/money.ts';
import { ServiceError } from '#src/service-error.ts';
import { writeExternalTransaction } from '#src/store/external-transactions.ts';
import type { DueFollowUp } from '#src/store/follow-ups.ts';
import type { OperatedPayment } from './claim-operation.ts';
import type { FinishDeps } from './finish-payment.ts';
import { leftToCapture, leftToRefund } from './model/books.ts';
import { eventOf } from './model/event.ts';
import { isBase, withOperation, withOperationOutcome } from './model/operation-record.ts';
import { booksOf, type TransactionInState } from './model/state.ts';
import { planMade } from './payment-operations.ts';
import { encodeRecord } from './stored-record.ts';

type Approved = Extract<Outcome, { kind: 'approved' }>;

/** A capture or a refund that was made at the provider itself: nobody asked for it here. */
export type ExternalOperation = {
  readonly type: 'CAPTURE' | 'REFUND';
  readonly money: Money;
  readonly reported: Approved;
  /** The provider's own id of it, if it is told: a repeat of the report is recognized by it. */
  readonly reference?: string | undefined;
};

/** The description of such a transaction. */
export const MADE_AT_PROVIDER = 'Made at the provider itself';

/** A payment as it was before its provider was asked, so that no operation of ours is taken for one made there. */
type BeforeAsked = TransactionInState;

type RecordDeps = Pick<FinishDeps, 'database' | 'now' | 'observer' | 'eventWritten'> & {
  readonly recovery: {
    followedUp(about: Pick<DueFollowUp, 'transactionId' | 'connectionId'>, result: 'mismatch'): void;
  };
};
type Own = Pick<DueFollowUp, 'accountId' | 'paymentId'>;

/** Time within which a provider's totals may be behind what it has told otherwise. */
const LATE_MS = 3_600_000;

/** Returns true if the provider has undone a refund that is in the books: its totals lack it, and are not just late. */
export function isRefundUndone(
  { payment, transactions }: BeforeAsked,
  reported: Outcome | undefined,
): boolean {
  if (reported?.kind !== 'approved' || !reported.totals) return false;
  const isLate = transactions.some(({ type, ageMs }) => type === 'REFUND' && ageMs < LATE_MS);
  return reported.totals.refunded < payment.refundedMinorUnits && !isLate;
}

/**
 * Returns what a provider's totals have beyond the books of a payment that was approved: first a capture, since it comes
 * before a refund of it.
 */
export function beyondBooks(
  { payment, transaction }: BeforeAsked,
  reported: Outcome | undefined,
): ExternalOperation | undefined {
  if (reported?.kind !== 'approved' || !reported.totals) return undefined;
  if (transaction.status !== 'SUCCEEDED' && !payment.isReleased) return undefined;
  const books = booksOf(payment, transaction);
  const captured = books.isAuthorization ? reported.totals.captured - books.captured : 0n;
  const refunded = reported.totals.refunded - books.refunded;
  const { currency } = books;
  if (captured > 0n) return { type: 'CAPTURE', money: { minorUnits: captured, currency }, reported };
  return refunded > 0n ? { type: 'REFUND', money: { minorUnits: refunded, currency }, reported } : undefined;
}

/**
 * Records a capture or a refund that was made at the provider itself, as one of ours that succeeded. What the payment
 * does not allow changes nothing, and is an alarm: a person has to look.
 *
 * @returns 'waiting' while the payment has an operation open, which may be the very same, or has yet to be told of the
 *   capture that is refunded, or if it has changed since it was read: the provider has to be asked again.
 */
export async function recordExternal(
  deps: RecordDeps,
  connection: ProviderConnection,
  own: Own,
  before: BeforeAsked,
  made: ExternalOperation,
): Promise<'applied' | 'waiting' | 'unchanged'> {
  const { payment, transaction, transactions } = before;
  const isKnown = transactions.some(
    ({ reference }) => reference !== undefined && reference === made.reference,
  );
  if (isKnown || (made.type === 'CAPTURE' && transaction.capture)) return 'unchanged';
  if (payment.openOperation || WAITS.has(transaction.status)) return 'waiting';
  const books = booksOf(payment, transaction);
  // Notifications come in any order, and totals tell both at once.
  const mayBeCaptured = made.reference !== undefined && leftToCapture(books) > 0n;
  const isAhead = made.type === 'REFUND' && made.money.minorUnits > leftToRefund(books);
  if (transaction.status === 'SUCCEEDED' && mayBeCaptured && isAhead) return 'waiting';
  const lost = transactions.filter(({ type, status }) => type === 'CHARGEBACK' && status === 'SUCCEEDED');
  // The money that a lost dispute took is no refund, whatever the provider calls it.
  if (lost.some(({ minorUnits }) => minorUnits >= transaction.minorUnits)) return 'unchanged';
  const operated = { books, base: transaction, transactions, connection };
  const plan = planOf(operated, made);
  if (!plan) {
    const { id: transactionId, connectionId } = transaction;
    deps.recovery.followedUp({ transactionId, connectionId }, 'mismatch');
    return 'unchanged';
  }
  return (await write(deps, { ...own, ...operated, payment, record: before.record }, made, plan))
    ? 'applied'
    : 'waiting';
}

const WAITS: ReadonlySet<string> = new Set(['CREATED', 'PENDING']);

type Plan = ReturnType<typeof planMade>;

/** Plans it as if it were asked for here. @returns undefined if the payment does not allow it. */
function planOf(operated: OperatedPayment, { type, money, reported }: ExternalOperation): Plan | undefined {
  const isDisputed = operated.transactions.some(
    (one) => one.type === 'CHARGEBACK' && (one.status !== 'DECLINED' || reported.totals?.mayCountDisputes),
  );
  if (operated.base.status !== 'SUCCEEDED' || isDisputed || money.minorUnits <= 0n) return undefined;
  try {
    return planMade(operated, type, money);
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

/** @returns false if the payment has changed since it was read, or was approved after its record was. */
async function write(
  deps: RecordDeps,
  {
    accountId,
    paymentId,
    payment,
    record,
    base,
    books,
  }: Own & OperatedPayment & Pick<TransactionInState, 'payment' | 'record'>,
  { type, reported, reference }: ExternalOperation,
  { planned, target }: Plan,
): Promise<boolean> {
  const ownTransaction = record.transactionsHistory.find(isBase);
  if (!ownTransaction) return false;
  const transactionId = randomUUIDv7();
  const at = deps.now();
  const facts = {
    transactionId,
    parentId: target.id,
    merchantReference: `reference-${transactionId}`,
    description: MADE_AT_PROVIDER,
    reason: undefined,
  };
  const begun = withOperation(record, ownTransaction, books, planned, facts, at);
  const { record: made, books: after } = withOperationOutcome(
    begun,
    transactionId,
    books,
    planned,
    reported,
    at,
  );
  const written = await writeExternalTransaction(deps.database, {
    ...{ accountId, paymentId, transactionId, type, reference },
    version: payment.version,
    status: Payment_Status[made.status],
    record: encodeRecord(made),
    transactionStatus: 'SUCCEEDED',
    minorUnits: planned.money.minorUnits,
    baseId: base.id,
    parentId: target.id,
    isFinal: planned.isFinal,
    capturedMinorUnits: after.captured,
    refundedMinorUnits: after.refunded,
    isReleased: after.isReleased,
    event: eventOf(made),
  });
  if (!written) return false;
  deps.observer.finished(made, true);
  if (written.event) deps.eventWritten?.();
  return true;
}
