import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Capabilities } from '#src/connectors/port/capabilities.ts';
import type { Movement, Outcome, Totals } from '#src/connectors/port/outcome.ts';
import type { Money } from '#src/money.ts';
import { ServiceError } from '#src/service-error.ts';
import { type Books, leftToCapture, leftToRefund } from './books.ts';
import { addedTo, type Change, NOTHING_ELSE, type Unapplied } from './change.ts';
import { eventOf } from './event.ts';
import { transactionOf, withOperation, withOperationOutcome } from './operation-record.ts';
import { planExternal } from './plan.ts';
import { booksOf, isOpen, type TransactionInState, type TransactionRow } from './state.ts';

type Approved = Extract<Outcome, { kind: 'approved' }>;

/** A capture or refund made at the provider itself, which was not requested here. */
export type ExternalOperation = {
  readonly type: 'CAPTURE' | 'REFUND';
  readonly money: Money;
  readonly reported: Approved;
  /** The provider's own id of the operation, if reported; identifies repeated reports. */
  readonly providerPaymentId?: string | undefined;
  /** Time of the operation according to the provider, if reported. */
  readonly reportedAt?: Date | undefined;
};

/** Description of a transaction made at the provider itself. */
export const MADE_AT_PROVIDER = 'Made at the provider itself';

/** Maximum time that a provider's totals may lag behind its other reports. */
const LATE_MS = 3_600_000;

/** Returns true if the provider has undone a recorded refund: its totals lack the refund and are not merely late. */
export function isRefundUndone(
  { payment, transactions }: Omit<TransactionInState, 'record'>,
  reported: Outcome | undefined,
): boolean {
  if (reported?.kind !== 'approved' || !reported.totals) return false;
  const isLate = transactions.some(({ type, ageMs }) => type === 'REFUND' && ageMs < LATE_MS);
  return reported.totals.refunded < payment.refundedMinorUnits && !isLate;
}

/**
 * Returns a recorded refund that its provider now lists as failed, or as done although it had failed. It must be looked up
 * before the totals are compared with the books.
 */
export function changedRefund(
  { transactions }: Pick<TransactionInState, 'transactions'>,
  reported: Outcome | undefined,
): TransactionRow | undefined {
  const totals = reported?.kind === 'approved' ? reported.totals : undefined;
  const isListed = ({ status, providerPaymentId: id }: TransactionRow) =>
    status === 'SUCCEEDED'
      ? totals?.failedRefunds?.includes(id)
      : status === 'DECLINED' && totals?.movements?.some((one) => one.providerPaymentId === id);
  // Without its reference, a refund cannot be looked up, only sent again.
  return transactions.find(
    (one) =>
      one.type === 'REFUND' &&
      one.reference !== undefined &&
      one.providerPaymentId !== undefined &&
      isListed(one),
  );
}

/**
 * Returns an operation in a provider's totals that the books of an approved payment lack; a capture first, since it
 * precedes its refund. Ids decide which operations are recorded; if the provider or the books lack them, sums do.
 */
export function beyondBooks(
  { payment, transaction, transactions }: Omit<TransactionInState, 'record'>,
  reported: Outcome | undefined,
): ExternalOperation | undefined {
  if (reported?.kind !== 'approved' || !reported.totals) return undefined;
  if (transaction.status !== 'SUCCEEDED' && !payment.isReleased) return undefined;
  const { totals } = reported;
  const books = booksOf(payment, transaction);
  const { currency } = books;
  const missing = (type: ExternalOperation['type'], excess: bigint): ExternalOperation | undefined => {
    const [named] = unrecorded(type, totals, transactions);
    const { minorUnits, providerPaymentId } = named ?? { minorUnits: excess };
    return minorUnits > 0n
      ? { type, money: { minorUnits, currency }, reported, providerPaymentId }
      : undefined;
  };
  const captured = books.isAuthorization ? missing('CAPTURE', totals.captured - books.captured) : undefined;
  return captured ?? missing('REFUND', totals.refunded - books.refunded);
}

/** Returns the named captures or refunds in the totals that are certainly not recorded: every recorded one has an id. */
function unrecorded(
  type: Movement['type'],
  { movements = [] }: Totals,
  transactions: readonly TransactionRow[],
): readonly Movement[] {
  const isUnnamed = (one: TransactionRow) =>
    one.type === type && one.status === 'SUCCEEDED' && one.providerPaymentId === undefined;
  if (transactions.some(isUnnamed)) return [];
  const recorded = new Set(transactions.map(({ providerPaymentId }) => providerPaymentId));
  return movements.filter((one) => one.type === type && !recorded.has(one.providerPaymentId));
}

/** A report of an external capture or refund. */
export type ExternalReport = {
  readonly operation: ExternalOperation;
  /** The id of the transaction to record. */
  readonly newId: string;
  /** Capabilities of the payment's provider. */
  readonly can: Capabilities;
};

/**
 * Decides whether to record an external capture or refund, like a successful operation of ours.
 *
 * @param found the payment's own transaction as it was before the provider was queried, so that none of our operations
 * is mistaken for an external one.
 */
export function externalChange(
  found: TransactionInState,
  report: ExternalReport,
  at: Timestamp,
): Change | Unapplied {
  const { payment, transaction, transactions } = found;
  const { operation: made } = report;
  const isKnown = transactions.some(
    ({ providerPaymentId }) =>
      providerPaymentId !== undefined && providerPaymentId === made.providerPaymentId,
  );
  if (isKnown || isInBooks(found, made) || (made.type === 'CAPTURE' && transaction.capture))
    return 'unchanged';
  if (payment.openOperation || isOpen(transaction)) return 'waiting';
  const books = booksOf(payment, transaction);
  // Notifications arrive in any order, and totals report both at once.
  const mayBeCaptured = made.providerPaymentId !== undefined && leftToCapture(books) > 0n;
  const isAhead = made.type === 'REFUND' && made.money.minorUnits > leftToRefund(books);
  if (transaction.status === 'SUCCEEDED' && mayBeCaptured && isAhead) return 'waiting';
  const lost = transactions.filter(({ type, status }) => type === 'CHARGEBACK' && status === 'SUCCEEDED');
  // Money taken by a lost dispute is not a refund, whatever the provider calls it.
  if (lost.some(({ minorUnits }) => minorUnits >= transaction.minorUnits)) return 'unchanged';
  const plan = planOf(found, books, report);
  return plan ? madeChange(found, books, report, plan, at) : 'mismatch';
}

/** Returns true if the operation was reported in totals without its id, and the books contain it by now. */
function isInBooks(
  found: TransactionInState,
  { type, money, reported, providerPaymentId }: ExternalOperation,
): boolean {
  if (providerPaymentId !== undefined || !reported.totals) return false;
  const missing = beyondBooks(found, reported);
  return missing?.type !== type || missing.money.minorUnits !== money.minorUnits;
}

type Plan = ReturnType<typeof planExternal>;

/** Plans the operation as if it were requested here. @returns undefined if the payment does not allow it. */
function planOf(
  { transaction: base, transactions }: TransactionInState,
  books: Books,
  { operation: { type, money, reported }, can }: ExternalReport,
): Plan | undefined {
  const isDisputed = transactions.some(
    (one) => one.type === 'CHARGEBACK' && (one.status !== 'DECLINED' || reported.totals?.mayCountDisputes),
  );
  if (base.status !== 'SUCCEEDED' || isDisputed || money.minorUnits <= 0n) return undefined;
  try {
    return planExternal({ books, base, transactions, can }, type, money);
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

function madeChange(
  { record, transaction: base }: TransactionInState,
  before: Books,
  { operation: { type, reported, providerPaymentId, reportedAt }, newId }: ExternalReport,
  { planned, target }: Plan,
  at: Timestamp,
): Change {
  const own = transactionOf(record, base.id);
  const facts = {
    transactionId: newId,
    parentId: target.id,
    merchantReference: `reference-${newId}`,
    description: MADE_AT_PROVIDER,
    reason: undefined,
  };
  const begun = withOperation({ record, books: before, base: own }, planned, facts, at);
  const made = withOperationOutcome({ record: begun, id: newId, books: before }, planned, reported, { at });
  const { minorUnits } = planned.money;
  const { isFinal } = planned;
  return {
    ...NOTHING_ELSE,
    record: made.record,
    books: made.books,
    added: addedTo(
      base,
      {
        ...{
          id: newId,
          type,
          status: Transaction_Status.SUCCEEDED,
          minorUnits,
          parentId: target.id,
          isFinal,
        },
        // Nothing acts on an external capture or refund.
        ...{ reference: undefined, providerPaymentId },
      },
      reportedAt,
    ),
    event: eventOf(made.record),
  };
}
