import { create, toBinary } from '@bufbuild/protobuf';
import { type Timestamp, timestampDate, timestampNow } from '@bufbuild/protobuf/wkt';
import { DisputeEventDataSchema } from '#gen/payments/v1/dispute_service_pb.js';
import { type Payment, Payment_Status, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { newId } from '#src/new-id.ts';
import { enrolledByPayment } from '#src/payments/method/stored-method.ts';
import { setPayerDue } from '#src/store/engine/checks.ts';
import type { Database } from '#src/store/engine/database.ts';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import type { MethodFate, StoredChange, WrittenDispute } from '#src/store/engine/write-change.ts';
import { readDisputesOf } from '#src/store/tables/disputes.ts';
import { readPaymentState } from '#src/store/tables/payment-state.ts';
import { findStoredObjects } from '#src/store/tables/stored-objects.ts';
import { disputeMessage } from './dispute-message.ts';
import type { StoredResponses } from './keys/stored-response.ts';
import { apply, hasFailed, type Report } from './model/apply.ts';
import { attemptChange, type LastAttempt } from './model/attempt.ts';
import type { Books } from './model/books.ts';
import {
  type AddedTransaction,
  type Change,
  type MethodChange,
  NOTHING_ELSE,
  type TransactionChange,
  type Unapplied,
} from './model/change.ts';
import { reportOfOwnMoney } from './model/contradiction.ts';
import { type ChangedDispute, isOpenCase } from './model/dispute-row.ts';
import { type CheckSchedule, UNSETTLED_S, variedPauseS } from './model/schedule.ts';
import { isClosing, isOperation, type PaymentState } from './model/state.ts';
import { decodeRecord, encodeRecord } from './stored-record.ts';
import { untilWritten, type WriteObserver } from './until-written.ts';

/** Dependencies of the functions that write a payment's changes. */
export type WriteDeps = {
  readonly database: Database;
  readonly now: () => Timestamp;
  readonly responses: StoredResponses;
  readonly observer: WriteObserver;
  /** Called when a write has produced an event to relay to webhooks. */
  readonly eventWritten?: () => void;
  readonly schedule: CheckSchedule;
};

/** Observer of provider calls. */
export type CallObserver = {
  /**
   * Runs a provider call and observes its outcome.
   *
   * @param transactionId the transaction that the call concerns; undefined for an enrollment, which has none.
   */
  providerCall(
    connectionId: string,
    transactionId: string | undefined,
    call: () => Promise<Outcome>,
  ): Promise<Outcome>;
};

/** Identifies a transaction, with its writer's token: 0 for the caller that claimed it. */
export type LeasedTransaction = {
  readonly accountId: string;
  readonly paymentId: string;
  readonly transactionId: string;
  readonly fence: number;
  /** true: news about the transaction is settled after the write. Should its writer die before, a check must follow. */
  readonly hasNews?: boolean;
};

/** A written change. */
export type Written = {
  readonly record: Payment;
  /** The writer's new token; undefined if another worker has the transaction. */
  readonly fence: number | undefined;
  /** Seconds until the next check of the writer's transaction, once its news is settled; undefined for none. */
  readonly checkInS: number | undefined;
  /** The response stored before this change, which takes precedence over the change's own. */
  readonly earlier: { readonly record: Uint8Array; readonly response: Uint8Array } | undefined;
};

/**
 * Result of a report: the written change; the reason why it changes nothing; or `lost` if the outcome is still open and
 * another worker holds the transaction.
 */
export type Reported = Written | Unapplied | 'lost';

/** Maximum number of tries if the payment keeps changing after it is read. */
const MAX_OUTDATED = 60;

/**
 * Applies a report to its current payment and writes the change: THE way that reports reach the database. Retries while
 * the database is unavailable, and decides again if the payment has changed.
 *
 * @param stop ends the retries; an unwritten report will be learned again later.
 */
export async function writeReport(
  deps: WriteDeps,
  leased: LeasedTransaction,
  report: Report,
  stop?: AbortSignal,
): Promise<Reported> {
  const write = async (): Promise<Reported> => {
    for (let outdated = 0; outdated < MAX_OUTDATED; outdated++) {
      const state = await withCurrentToken(
        deps,
        leased,
        report,
        await loadFor(deps.database, leased, report),
      );
      const { own, alarm } = ofOwnMoney(state, report);
      const written = await writeOnce(deps, leased, state, apply(state, own, deps.now()));
      if (written === 'outdated') continue;
      if (alarm) deps.observer.alarmed(...alarm);
      return written;
    }
    throw new Error(`payment ${leased.paymentId} keeps changing`);
  };
  return untilWritten(deps, leased.paymentId, write, stop);
}

/** Replaces an outcome that is about other money than its transaction's by an alarm. */
function ofOwnMoney(
  state: PaymentState,
  report: Report,
): { own: Report; alarm?: Parameters<WriteObserver['alarmed']> } {
  if (report.kind !== 'outcome') return { own: report };
  const reported = state.transactions.find(({ id }) => id === report.transactionId);
  // A cancel that closes an attempt has the attempt's outcome.
  const transaction =
    reported && isClosing(reported)
      ? state.transactions.find(({ id }) => id === reported.parentId)
      : reported;
  if (!transaction) return { own: report };
  const outcome = reportOfOwnMoney({ ...state, transaction }, report.outcome);
  if (outcome === report.outcome) return { own: report };
  const about = { transactionId: transaction.id, connectionId: transaction.connectionId };
  return { own: { ...report, outcome }, alarm: [about, outcome] };
}

/**
 * Writes the outcome of an attempt that a merchant's cancel is closing. If the payment was paid in the meantime, the
 * attempt and the cancel end one after the other, each with its event.
 *
 * @param report the outcome, as a report on the attempt or on the cancel.
 */
export async function writeClosing(
  deps: WriteDeps,
  leased: LeasedTransaction,
  report: Extract<Report, { kind: 'outcome' }>,
  stop?: AbortSignal,
): Promise<Reported> {
  const written = await writeReport(deps, leased, report, stop);
  const isPaid = report.outcome.kind === 'approved' && typeof written !== 'string';
  return isPaid ? writeReport(deps, leased, report, stop) : written;
}

/**
 * Applies a report to a payment that was read earlier, and writes the change if the payment is still the same.
 *
 * @returns 'waiting' if the payment has changed since.
 */
export async function writeReportOn(
  deps: WriteDeps,
  leased: LeasedTransaction,
  state: PaymentState,
  report: Report,
): Promise<Reported> {
  const written = await writeOnce(deps, leased, state, apply(state, report, deps.now()));
  return written === 'outdated' ? 'waiting' : written;
}

async function writeOnce(
  deps: WriteDeps,
  leased: LeasedTransaction,
  { payment, transactions }: PaymentState,
  change: Change | Unapplied,
): Promise<Reported | 'outdated'> {
  if (typeof change === 'string') return change;
  const written = await write(deps, leased, payment.version, change);
  if (typeof written === 'string') return written;
  const own = transactions.find(({ id }) => id === change.transaction?.id);
  const isFirst = own !== undefined && !isOperation(own.type) && written.earlier === undefined;
  deps.observer.finished(change.record, !isFirst);
  for (const alarm of change.moneyAlarms ?? []) deps.observer.moneyAlarmed?.(alarm, change.record);
  return written;
}

/** Writes a change that was decided from a version of its payment. */
async function write(
  deps: WriteDeps,
  leased: LeasedTransaction & Partial<Pick<OwnAttempt, 'stepMs'>>,
  version: number,
  change: ChangeOfAny,
): Promise<Written | 'outdated' | 'lost'> {
  const { accountId, paymentId, stepMs } = leased;
  const { record, transaction, added, books, event, other, reopens, retakes } = change;
  const stored: StoredChange = {
    ...{ accountId, paymentId, version, event, reopens, retakes },
    ...(books && { books }),
    status: Payment_Status[record.status],
    record: encodeRecord(record),
    // An attempt that is replaced by another has no response yet.
    response: added && transaction ? undefined : deps.responses.own,
    transaction: transaction && {
      ...{ ...transaction, status: Transaction_Status[transaction.status] },
      ...heldBy(leased, transaction),
    },
    other: other && {
      ...{ id: other.id, checkInS: other.checkInS, reference: other.ended?.reference },
      status: other.ended && Transaction_Status[other.ended.status],
    },
    added: added && { ...added, status: Transaction_Status[added.status] },
    method: storedFate(record, change.method),
    corrections: change.corrections?.map((one) => ({ ...one, id: newId(accountId) })),
    dispute: change.dispute && writtenDispute(deps, { accountId, paymentId }, record, change.dispute),
  };
  const written = await writeChange(deps.database, stored, stepMs);
  if (written.kind !== 'written') return written.kind;
  if (written.event) deps.eventWritten?.();
  if (transaction?.payerUntil)
    await keepPayerUntil(deps, { accountId, transactionId: transaction.id }, transaction.payerUntil);
  const checkInS = transaction?.id === leased.transactionId ? transaction.checkInS : undefined;
  return { record, fence: written.fence, checkInS, earlier: written.earlier };
}

/** The token of a writer that does not hold the transaction. */
const NO_FENCE = -1;

/** Returns the writer's token for a changed transaction, and the seconds until the transaction's next check. */
function heldBy(
  { transactionId, fence, hasNews }: LeasedTransaction,
  { id, checkInS }: TransactionChange,
): { readonly fence: number; readonly checkInS: number | undefined } {
  if (id !== transactionId) return { fence: NO_FENCE, checkInS };
  return { fence, checkInS: hasNews ? Math.min(checkInS ?? UNSETTLED_S, UNSETTLED_S) : checkInS };
}

/**
 * Stores the provider's end of the payer's time. It only says when to check again, so a failure loses nothing: the check
 * at the expected end asks the provider, too.
 */
async function keepPayerUntil(
  { database, observer }: WriteDeps,
  about: Pick<LeasedTransaction, 'accountId' | 'transactionId'>,
  until: Date,
): Promise<void> {
  await setPayerDue(database, about, until).catch((error) =>
    observer.finishFailed(about.transactionId, error),
  );
}

/** Returns the stored form of a dispute's change, with its event. */
function writtenDispute(
  { now }: WriteDeps,
  about: Pick<LeasedTransaction, 'accountId' | 'paymentId'>,
  payment: Payment,
  { row, event }: ChangedDispute,
): WrittenDispute {
  const at = timestampDate(now());
  const closedAt = isOpenCase(row.status) ? undefined : at;
  const dispute = disputeMessage({ ...row, ...about, openedAt: row.openedAt ?? at, updatedAt: at, closedAt });
  const data = create(DisputeEventDataSchema, { dispute, payment: { ...payment, transactions: undefined } });
  const eventRecord = toBinary(DisputeEventDataSchema, data);
  return { row, event, at: at.toISOString(), eventId: newId(about.accountId), eventRecord };
}

/** A change of any kind; `books` is undefined if they do not change. */
type ChangeOfAny = Omit<Change, 'books'> & { readonly books?: Books };

/** A caller's own attempt, with the payment's version and record as the caller knows them. */
export type OwnAttempt = LeasedTransaction & {
  readonly version: number;
  /** The record, which is modified. */
  readonly record: Payment;
  readonly attempt: LastAttempt;
  /** Time that its provider’s calls took. */
  readonly stepMs: number;
};

/**
 * Writes the outcome of an attempt for the caller that made it. Unless another worker was faster, the caller's own
 * writes are the current state, so nothing is read. Calls the model's function for attempts rather than `apply`, which
 * would copy the record of every payment.
 */
export async function writeOwnOutcome(deps: WriteDeps, own: OwnAttempt, outcome: Outcome): Promise<Reported> {
  const pause = pauseS(deps.schedule, 0);
  const change = attemptChange(own.record, own.attempt, outcome, pause, deps.now());
  const written = await untilWritten(deps, own.paymentId, () => write(deps, own, own.version, change));
  if (written === 'outdated') {
    const { transactionId } = own;
    return writeReport(deps, own, { kind: 'outcome', transactionId, outcome, pauseS: pause });
  }
  if (typeof written !== 'string') deps.observer.finished(written.record, written.earlier !== undefined);
  return written;
}

/**
 * Ends a failed attempt and begins the next in one commit, before the next is sent. May be repeated if the
 * acknowledgement was lost.
 *
 * @param moved.record the record whose last transaction is the next attempt.
 * @returns false if another worker has taken the payment over; then nothing was changed.
 */
export async function writeNextAttempt(
  deps: WriteDeps,
  own: Pick<OwnAttempt, 'accountId' | 'paymentId' | 'transactionId' | 'version'>,
  moved: { readonly record: Payment; readonly ended: EndedAttempt; readonly next: AddedTransaction },
): Promise<boolean> {
  const { record, ended, next } = moved;
  // Uses only the claimer's token: a transaction taken by another worker belongs to that worker.
  const transaction = {
    ...ended,
    id: own.transactionId,
    awaitsPayer: false,
    isFenced: true,
    checkInS: undefined,
  };
  const change = { ...NOTHING_ELSE, event: undefined, record, transaction, added: next };
  const written = await write(deps, { ...own, fence: 0 }, own.version, change);
  return typeof written !== 'string';
}

/** The end of an attempt that is followed by another. */
type EndedAttempt = Pick<TransactionChange, 'status' | 'reference' | 'providerPaymentId'>;

/** Reads what a report is applied to: the current payment and, for a dispute, its disputes. */
async function loadFor(database: Database, leased: LeasedTransaction, report: Report): Promise<PaymentState> {
  const state = await loadPayment(database, leased);
  if (report.kind !== 'dispute') return state;
  // A dispute that is written after the payment was read changes the payment's version, too.
  return { ...state, disputes: await readDisputesOf(database, leased.accountId, leased.paymentId) };
}

/** Reads the current payment with its transactions. @throws Error if it does not exist. */
export async function loadPayment(
  database: Database,
  { accountId, paymentId }: Pick<LeasedTransaction, 'accountId' | 'paymentId'>,
): Promise<PaymentState> {
  const state = await readPaymentState(database, accountId, paymentId);
  if (!state) throw new Error(`payment ${paymentId} does not exist`);
  return { ...state, record: decodeRecord(state.payment.record) };
}

/**
 * Returns a state with the token of the card that the transaction's approval keeps or uses. A card that waited for the
 * transaction was dropped when it expired or was declined; a card stored earlier is kept.
 */
async function withCurrentToken(
  { database }: WriteDeps,
  { accountId }: LeasedTransaction,
  report: Report,
  state: PaymentState,
): Promise<PaymentState> {
  if (report.kind !== 'outcome') return state;
  const reported = state.transactions.find(({ id }) => id === report.transactionId);
  const token = reported?.vaultedToken;
  if (!reported || !hasFailed(reported) || token === undefined) return state;
  const named = { customerId: undefined, vaultedToken: token };
  const vaultedToken = (await findStoredObjects(database, accountId, named)).vaultedToken?.id;
  const transactions = state.transactions.map((one) => (one === reported ? { ...one, vaultedToken } : one));
  return { ...state, transactions };
}

/** Returns the stored form of a method's fate, including the displayable form of a kept method. */
function storedFate(record: Payment, method: MethodChange | undefined): MethodFate | undefined {
  if (!method) return undefined;
  const { token, fate } = method;
  if (fate === 'drop') return { token, fate };
  const at = timestampDate(record.updatedAt ?? timestampNow());
  return { token, fate, at: at.toISOString(), record: enrolledByPayment(record, token, at) };
}

/** Returns the seconds until the next check of a transaction of this age, varied randomly. */
export function pauseS(schedule: CheckSchedule, ageMs: number): number {
  return variedPauseS(schedule, ageMs, Math.random());
}
