import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  type Payment,
  type Transaction,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import type { Dispute, DisputeStage } from '#src/connectors/port/dispute-report.ts';
import { type Money, toDecimal } from '#src/money.ts';
import type { Books } from './books.ts';
import { addedTo, type Change, NOTHING_ELSE, type Unapplied } from './change.ts';
import {
  type DisputeRow,
  disputeAfter,
  isEarlier,
  isOpenCase,
  stageAfter,
  takesMoney,
} from './dispute-row.ts';
import { eventOf } from './event.ts';
import { disputeCorrections } from './movement.ts';
import { transactionOf, withCurrentStates } from './operation-record.ts';
import {
  booksOf,
  isOpen,
  isOpenDispute,
  type PaymentState,
  succeededBase,
  type TransactionRow,
} from './state.ts';

/** A provider's report on a dispute. */
export type DisputeReport = {
  readonly dispute: Dispute;
  /** The id of the dispute's transaction, if the dispute is not recorded yet. */
  readonly newId: string;
  /** true: ignores the report unless its dispute is recorded as open. */
  readonly onlyOpen: boolean;
};

/**
 * Decides how a dispute report changes its payment: IN_DISPUTE while a dispute is open, CHARGEBACK once one is lost. A
 * won dispute restores the earlier state unless the money is taken again. An inquiry, which takes no money, leaves the
 * payment as it is. Reports may be repeated and arrive in any order.
 */
export function disputeChange(
  state: PaymentState,
  { dispute: reported, newId, onlyOpen }: DisputeReport,
  at: Timestamp,
): Change | Unapplied {
  const { payment, record: current, transactions } = state;
  const base = succeededBase(transactions);
  const before = disputeBefore(transactions, reported);
  const row = rowBefore(state.disputes ?? [], before, reported);
  const isUnknown = reported.isAddition && !row;
  if (onlyOpen && !endsDispute(transactions, reported)) return 'unchanged';
  // The provider's word that money was taken, although every attempt has failed according to the record.
  if (!base && !transactions.some(isOpen)) return 'conflict';
  const isOfMoney = before !== undefined || takesMoney(stageAfter(row, reported));
  if (!base || isUnknown || (isOfMoney && payment.openOperation)) return 'waiting';
  const money = disputedOf(reported, base) ?? before ?? row ?? base;
  const id = before?.id ?? row?.id ?? newId;
  const isLate = isEarlier(row, before?.corrections ?? 0, reported);
  const isGivenBack = givesBack(before, reported);
  const own = { ...{ id, isGivenBack }, money: { minorUnits: money.minorUnits, currency: money.currency } };
  const dispute = isLate ? undefined : disputeAfter(row, reported, { ...placeOf(base), ...own });
  const changed = {
    ...(dispute && { dispute }),
    corrections: isOfMoney ? disputeCorrections(before, id, reported.moves ?? 0, money) : [],
  };
  const books = booksOf(payment, base);
  const isReopened = row !== undefined && dispute !== undefined && dispute.row.stage !== row.stage;
  if (!isOfMoney || (before && (isLate || !mayFollow(before, reported, isReopened || isGivenBack)))) {
    // Providers report movements of money, and what they want, apart from the stages of a dispute.
    if (!dispute && changed.corrections.length === 0) return 'unchanged';
    return { ...NOTHING_ELSE, record: current, books, event: undefined, ...changed };
  }
  const about = { id, baseId: base.id, stage: reported.stage, money };
  const { record, dispute: transaction } = withDispute(current, books, about, at);
  const { minorUnits } = money;
  return {
    ...NOTHING_ELSE,
    record,
    books,
    added: addedTo(base, {
      ...{ id, type: 'CHARGEBACK', status: transaction.status, minorUnits },
      ...{ reference: undefined, providerPaymentId: reported.reference, parentId: base.id, isFinal: false },
    }),
    event: eventOf(record),
    ...changed,
  };
}

function placeOf({ connectionId, connectionIdentity }: TransactionRow) {
  return { connectionId, connectionIdentity };
}

/**
 * Returns the stored dispute that a report is about: by the provider's id, or else with its transaction. A report without an
 * id is also about an open inquiry.
 */
function rowBefore(
  disputes: readonly DisputeRow[],
  before: TransactionRow | undefined,
  { reference }: Dispute,
): DisputeRow | undefined {
  if (before) return disputes.find(({ id }) => id === before.id) ?? rowOf(before);
  return reference === undefined
    ? disputes.find(({ status }) => isOpenCase(status))
    : disputes.find((one) => one.reference === reference);
}

/** Returns the row of a dispute that an earlier release has recorded as a transaction only. */
function rowOf(transaction: TransactionRow): DisputeRow {
  const { id, connectionId, connectionIdentity, providerPaymentId, status, minorUnits, currency } =
    transaction;
  return {
    ...{ id, connectionId, connectionIdentity, reference: providerPaymentId, minorUnits, currency },
    ...{ stage: 'CHARGEBACK', reason: 'OTHER', sequence: 0 },
    status: status === 'PENDING' ? 'NEEDS_RESPONSE' : status === 'SUCCEEDED' ? 'LOST' : 'WON',
    ...{ rawReason: undefined, networkCode: undefined, feeMinorUnits: undefined, feeCurrency: undefined },
    ...{ respondBy: undefined, link: undefined, reportedAt: undefined },
  };
}

/** Returns true if a signed report names a dispute and says that its money was given back since the last movement. */
function givesBack(before: TransactionRow | undefined, { reference, moves, stage }: Dispute): boolean {
  if (!before || moves === undefined || stage !== 'won' || reference === undefined) return false;
  return before.providerPaymentId === reference && moves % 2 === 0 && moves > (before.corrections ?? 0);
}

/** Returns true if the dispute that a report is about is recorded as open. */
export function endsDispute(transactions: readonly TransactionRow[], reported: Dispute): boolean {
  const before = disputeBefore(transactions, reported);
  return before !== undefined && isOpenDispute(before);
}

/**
 * Returns the recorded dispute that a report is about. A report without the provider's id is about the open dispute or,
 * if none is open, the last one. The same holds for a report with an id if the dispute was recorded without one and the
 * report does not open another.
 */
function disputeBefore(
  transactions: readonly TransactionRow[],
  { reference, stage }: Dispute,
): TransactionRow | undefined {
  const disputes = transactions.filter(({ type }) => type === 'CHARGEBACK');
  const own =
    reference === undefined ? undefined : disputes.find((one) => one.providerPaymentId === reference);
  const unnamed =
    reference === undefined ? disputes : disputes.filter((one) => one.providerPaymentId === undefined);
  const last = reference !== undefined && stage === 'opened' ? undefined : unnamed.at(-1);
  return own ?? unnamed.find(({ status }) => status === 'PENDING') ?? last;
}

/**
 * Returns true if a stage changes a recorded dispute. Reports may be late or repeated, and no provider signs their
 * order, so a stage counts only after the earlier stages: a won dispute may still be lost, for example when the issuer
 * takes the money a second time, whereas a lost dispute stays lost. A report also counts if it gives an id to a dispute
 * recorded without one, so that a report with another id opens another dispute.
 */
function mayFollow(
  { status, providerPaymentId }: TransactionRow,
  reported: Dispute,
  isTurned: boolean,
): boolean {
  const { stage } = reported;
  // A later stage opens a won dispute again, and the provider may give the money of a lost one back.
  if (isTurned && STATUSES[stage] !== Transaction_Status[status as keyof typeof Transaction_Status]) {
    return status !== 'SUCCEEDED' || stage === 'won';
  }
  const givesId = providerPaymentId === undefined && reported.reference !== undefined;
  if (status === 'PENDING') return stage !== 'opened' || givesId;
  return status === 'DECLINED' && stage === 'lost' && !reported.isAddition;
}

/** Returns the disputed money as reported, if it can be the whole payment or a part of it. */
function disputedOf({ money }: Dispute, { minorUnits, currency }: Money): Money | undefined {
  const fits = money?.currency === currency && money.minorUnits > 0n && money.minorUnits <= minorUnits;
  return fits ? money : undefined;
}

const STATUSES: Readonly<Record<DisputeStage, Transaction_Status>> = {
  opened: Transaction_Status.PENDING,
  lost: Transaction_Status.SUCCEEDED,
  won: Transaction_Status.DECLINED,
};
const TEXTS: Readonly<Record<DisputeStage, readonly [code: string, message: string]>> = {
  opened: ['DISPUTE_RECEIVED', 'Dispute received'],
  lost: ['DISPUTE_LOST', 'Dispute lost'],
  won: ['DISPUTE_WON', 'Dispute won'],
};

/** Writes a dispute's stage into a record. */
function withDispute(
  record: Payment,
  books: Books,
  reported: {
    readonly id: string;
    readonly baseId: string;
    readonly stage: DisputeStage;
    readonly money: Money;
  },
  at: Timestamp,
): { readonly record: Payment; readonly dispute: Transaction } {
  const { transactionsHistory } = record;
  const before = transactionsHistory.find(({ id }) => id === reported.id);
  const base = transactionOf(record, reported.baseId);
  const [responseCode, responseMessage] = TEXTS[reported.stage];
  const dispute: Transaction = {
    ...(before ?? {
      ...base,
      id: reported.id,
      type: Transaction_Type.CHARGEBACK,
      reason: undefined,
      parentTransactionId: reported.baseId,
      createdAt: at,
    }),
    amount: toDecimal(reported.money),
    status: STATUSES[reported.stage],
    responseCode,
    responseMessage,
    updatedAt: at,
  };
  const history = [...transactionsHistory.filter(({ id }) => id !== reported.id), dispute];
  return {
    record: withCurrentStates({ ...record, transactions: dispute, transactionsHistory: history }, books, at),
    dispute,
  };
}
