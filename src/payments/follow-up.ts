import { create } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { type Payment, type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Capabilities } from '#src/connectors/capabilities.ts';
import type { Hint, LookUp, ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { type DueFollowUp, endFollowUp, postponeFollowUp, takeFollowUp } from '#src/store/follow-ups.ts';
import type { StoredPayment, StoredTransaction } from '#src/store/operated-payments.ts';
import {
  ask,
  isAlarm,
  isHeard,
  learn,
  lookedUpTransaction,
  NO_LOOK_UP,
  waitsForPayer,
} from './ask-provider.ts';
import { endDisputes, isOpenDispute } from './dispute.ts';
import { isLapsing, isOperation, isOver, readLeased, writeOutcome } from './finish-operation.ts';
import { FIRST_FOLLOW_UP_S, type FinishDeps, tellsMore } from './finish-payment.ts';
import { leaseS, lookUpPauseS } from './look-up-schedule.ts';
import { beyondBooks, isRefundUndone, recordElsewhere } from './made-elsewhere.ts';
import { attemptFacts } from './payment-attempt.ts';
import { decodeRecord } from './stored-record.ts';
import type { PaymentResponse } from './stored-response.ts';

/** Dependencies of following up a transaction. */
export type FollowUpDeps = FinishDeps & {
  readonly publicUrl: () => string;
  readonly recovery: FollowUpObserver;
};

/** Observer of follow-ups, for metrics and logs. */
export type FollowUpObserver = {
  /**
   * Called with a follow-up's result. 'mismatch': what the provider signed does not fit the record; 'contradiction': what
   * it tells is the opposite of the final state that the merchant was told.
   */
  followedUp(
    followed: { readonly transactionId: string; readonly connectionId: string },
    result: Outcome | 'lapsed' | 'mismatch' | 'contradiction',
  ): void;
};

/** A transaction as it stands, with its payment. */
export type FollowedUp = {
  readonly payment: StoredPayment;
  readonly record: Payment;
  readonly transaction: StoredTransaction;
  readonly transactions: readonly StoredTransaction[];
  readonly terms: Capabilities;
};

const DAY_MS = 86_400_000;
const LONGEST_PAUSE_S = 3_600;
/** Time from an expiry to the last look-up, so that a payment made at the last moment is not reported as expired. */
const GRACE_MS = 30_000;

/**
 * Calls of `learn` for a payer who came back. No other worker may take the transaction between them: that they came back
 * is known to this call alone until it is written.
 */
const MOST_CALLS = 2;

/** Options of following up a transaction. */
export type FollowUpOptions = { readonly hint?: Hint | undefined; readonly stop?: AbortSignal | undefined };

/** The payment as written, or what else became of following up. */
type Followed = PaymentResponse | FollowedUpNow | undefined;

/**
 * Follows up a transaction after its call: learns the outcome of an open operation, of a payer's redirect or of a
 * challenge, and ends an authorization that lapsed. The provider's answer is written as any outcome is.
 *
 * @returns the payment as written; undefined if nothing changed; 'unheard' if the provider did not answer, and no
 *   schedule has it asked again; 'applied' if disputes were ended, or captures or refunds made at the provider itself
 *   recorded, 'waiting' if they cannot be yet.
 */
export async function followUp(
  deps: FollowUpDeps,
  connection: ProviderConnection,
  due: DueFollowUp,
  options: FollowUpOptions = {},
): Promise<Followed> {
  const { hint, stop } = options;
  const found = await readFollowedUp(deps, connection, due);
  const nowMs = timestampDate(deps.now()).getTime();
  if (isLapsing(found.transaction)) return lapse(deps, connection, due, found, nowMs, options);

  const isLast = expiryOf(found) + GRACE_MS <= nowMs;
  const query = { ...lookUpOf(deps, due, found, isLast), ...(hint && { hint }) };
  const told = await (OPEN.has(found.transaction.status) ? learn : ask)(connection, query);
  const isContradiction = contradicts(told, found.transaction) || isRefundUndone(found, told, nowMs);
  deps.recovery.followedUp(due, isContradiction ? 'contradiction' : told);
  const made = beyondBooks(found, told);
  if (told.kind === 'approved' && found.transactions.some(isOpenDispute)) {
    const ended = await endDisputes(deps, due.transactionId, told.endedDisputes ?? []);
    if (ended) return made ? askAgain(deps, connection, due, options, ended) : ended;
  }
  if (made) {
    const recorded = await recordElsewhere(deps, connection, due, found, made);
    if (recorded === 'unchanged') await endIfPaid(deps, due, found);
    return askAgain(deps, connection, due, options, recorded);
  }
  const outcome = connection.lookUp ? told : withoutLookUp(told, found, isLast);
  // An operation has no response yet if its process died, or if its call is under way: with the fence taken here, that
  // may no longer write that nothing is known. So it gets its response here, PENDING for as long as nothing is.
  const { isUnanswered } = found.transaction;
  if (!isUnanswered && (changesNothing(outcome, isLast) || isToldAlready(outcome, found))) {
    await postponeFollowUp(deps.database, due, pauseS(deps, due, found, nowMs));
    return isHeard(told) || found.transaction.isScheduled ? undefined : 'unheard';
  }
  const ended = isLast ? endOf(outcome) : outcome;
  const leased = { ...due, followUpInS: pauseS(deps, due, found, nowMs) };
  const written = await writeOutcome(deps, leased, ended, stop);
  if (!written) await endIfPaid(deps, due, found);
  return written && tellsMore(told, found.transaction) ? askAgain(deps, connection, due, options) : written;
}

/** Ends the follow-up of a purchase that was due only because its provider had told of refunds beside the approval. */
async function endIfPaid(deps: FollowUpDeps, due: DueFollowUp, { transaction }: FollowedUp): Promise<void> {
  if (transaction.status === 'SUCCEEDED' && transaction.isScheduled) await endFollowUp(deps.database, due);
}

/** Asks once more after a write: what the provider tells beyond that is compared with what stands now. */
async function askAgain(
  deps: FollowUpDeps,
  connection: ProviderConnection,
  { transactionId }: DueFollowUp,
  { hint = {}, stop }: FollowUpOptions,
  result: FollowedUpNow = 'applied',
): Promise<FollowedUpNow> {
  if (result !== 'applied') return result;
  const again = await followUpNow(deps, connection, transactionId, { hint, stop });
  return again === 'unchanged' ? 'applied' : again;
}

/**
 * Result of following up a transaction ahead of schedule; 'waiting': its creation is under way; 'unheard': the provider
 * did not answer about a transaction that is final here, so only who asked can have it asked again.
 */
export type FollowedUpNow = 'applied' | 'unchanged' | 'waiting' | 'unheard';

/** Follows up a transaction ahead of schedule, since its payer came back or its provider sent a notification. */
export async function followUpNow(
  deps: FollowUpDeps,
  connection: ProviderConnection,
  transactionId: string,
  options: FollowUpOptions = {},
): Promise<FollowedUpNow> {
  const lease = leaseS(connection, deps.schedule, MOST_CALLS);
  const due = await takeFollowUp(deps.database, transactionId, lease);
  if (!due) return 'waiting';
  const followed = await followUp(deps, connection, due, options);
  if (typeof followed === 'string') return followed;
  return followed ? 'applied' : 'unchanged';
}

/** States of transactions that are not over: their payer's money may still be taken. */
const OPEN: ReadonlySet<string> = new Set(['CREATED', 'PENDING']);

/**
 * Returns true if money moved, or did not, other than a final state says. That state stays: a person has to look. An
 * outcome that is an alarm itself says more than that it contradicts.
 */
export function contradicts(told: Outcome, { status }: StoredTransaction): boolean {
  const { kind } = told;
  if (isAlarm(told)) return false;
  if (status === 'SUCCEEDED') return kind === 'declined' || kind === 'expired';
  return kind === 'approved' && (status === 'DECLINED' || status === 'ERROR');
}

/** Reads a leased transaction with its payment. */
export async function readFollowedUp(
  { database }: Pick<FollowUpDeps, 'database'>,
  { capabilities: terms }: ProviderConnection,
  due: Omit<DueFollowUp, 'connectionId' | 'fence'>,
): Promise<FollowedUp> {
  const found = await readLeased(database, due);
  return { ...found, record: decodeRecord(found.payment.record), terms };
}

/** Builds the look-up of a transaction from stored data alone. */
function lookUpOf(deps: FollowUpDeps, due: DueFollowUp, found: FollowedUp, isLast: boolean): LookUp {
  const { transaction } = found;
  const closesUnheard = isOperation(transaction.type) && due.fence > deps.schedule.lookUpsBeforeClosing;
  return {
    transactionId: transaction.id,
    money: { minorUnits: transaction.minorUnits, currency: transaction.currency },
    reference: transaction.reference,
    sentAtMs: transaction.createdAt.getTime(),
    close: isOperation(transaction.type) ? closesUnheard : isLast,
    of: lookedUpTransaction(found.record, transaction, found.transactions, deps.publicUrl(), found.terms),
  };
}

/**
 * Ends an authorization that is over: by our term, once its provider has answered, as it may have been captured there;
 * or before that because its provider says so. One that its provider denies ever to have approved is over, too, since
 * nothing is held; but it was approved, so a person has to look. If it is over here, only news has the provider asked,
 * and a capture that its totals told: a refund may have been told with it.
 */
async function lapse(
  deps: FollowUpDeps,
  connection: ProviderConnection,
  due: DueFollowUp,
  found: FollowedUp,
  nowMs: number,
  { hint, stop }: FollowUpOptions,
): Promise<Followed> {
  const { payment, transaction, terms } = found;
  const restS = (transaction.createdAt.getTime() + terms.authorizationValidDays * DAY_MS - nowMs) / 1000;
  const isHeld = !isOver(found);
  // Totals name no reference, so a capture that they told has none.
  const hasToldCapture = found.transactions.some(({ type, reference }) => type === 'CAPTURE' && !reference);
  if (!isHeld && !hint && !hasToldCapture) {
    await endFollowUp(deps.database, due);
    return undefined;
  }
  if (payment.openOperation) {
    await postponeFollowUp(deps.database, due, LONGEST_PAUSE_S);
    return hint && 'waiting';
  }
  const query = { ...lookUpOf(deps, due, found, false), ...(hint && { hint }) };
  const told = await connection.lookUp?.(query);
  const made = beyondBooks(found, told);
  const isDenied = isHeld && (told?.kind === 'declined' || told?.kind === 'not_sent');
  const isGone = isHeld && (told?.kind === 'expired' || isDenied);
  const lapses = isHeld && restS <= 0 && !isGone && !made && told?.kind !== 'unknown';
  const isContradiction = isDenied || isRefundUndone(found, told, nowMs);
  const result = isContradiction ? 'contradiction' : lapses ? 'lapsed' : told;
  if (result) deps.recovery.followedUp(due, result);
  if (lapses || isGone) {
    return writeOutcome(deps, { ...due, followUpInS: undefined }, 'lapsed', stop);
  }
  const recorded = made && (await recordElsewhere(deps, connection, due, found, made));
  const isSettledByHand = recorded ? recorded === 'unchanged' : told !== undefined && isAlarm(told);
  const isEnd = !isHeld && !hint && (!recorded || isSettledByHand) && (!told || isHeard(told));
  const pause = recorded === 'applied' ? FIRST_FOLLOW_UP_S : heldPauseS(restS, told, isSettledByHand);
  await (isEnd ? endFollowUp(deps.database, due) : postponeFollowUp(deps.database, due, pause));
  if (recorded) return askAgain(deps, connection, due, { hint, stop }, recorded);
  return !isHeld && told && !isHeard(told) ? 'unheard' : undefined;
}

/** Returns the pause of an authorization that stands, with so much of its term left. */
function heldPauseS(restS: number, told: Outcome | undefined, isSettledByHand: boolean): number {
  // Past its term, what a person has to settle is told once a day.
  if (restS <= 0) return isSettledByHand ? DAY_MS / 1000 : LONGEST_PAUSE_S;
  const isUnheard = told !== undefined && !isHeard(told);
  return Math.max(1, isUnheard ? Math.min(restS, LONGEST_PAUSE_S) : restS);
}

function expiryOf({ record, transaction, terms }: FollowedUp): number {
  if (isOperation(transaction.type)) return Number.POSITIVE_INFINITY;
  return attemptFacts(record, '', terms).expiresAtMs;
}

/** Returns true if there is nothing to write: the outcome is not known yet, or the payer has yet to act. */
function changesNothing(outcome: Outcome, isLast: boolean): boolean {
  if (outcome.kind === 'unknown' || outcome.kind === 'to_complete') return true;
  return !isLast && outcome.kind === 'redirect';
}

/** Returns true if the provider has yet to decide, and the record already says so and has the provider's reference. */
function isToldAlready(outcome: Outcome, { transaction, record }: FollowedUp): boolean {
  if (outcome.kind !== 'pending' || transaction.status !== 'PENDING') return false;
  if (outcome.reference !== undefined && transaction.reference === undefined) return false;
  return !waitsForPayer(record, transaction);
}

/**
 * Returns the outcome where there is no look-up. A payer who did not come back in time did not pay, as far as is known.
 * If one did come back, and the answer to what they brought says nothing, they may have: that never ends by itself.
 */
function withoutLookUp(told: Outcome, found: FollowedUp, isLast: boolean): Outcome {
  if (told.kind !== 'unknown' || !waitsForPayer(found.record, found.transaction)) return told;
  const providerData = told.providerData ?? shownOf(found) ?? create(ProviderDataSchema);
  if (told !== NO_LOOK_UP) return { kind: 'pending', providerData };
  return isLast ? { kind: 'expired', providerData } : told;
}

/** Returns what the record shows of the provider's last word on a transaction. */
export function shownOf({ record, transaction }: FollowedUp): ProviderData | undefined {
  return record.transactionsHistory.find(({ id }) => id === transaction.id)?.providerData;
}

/** Returns the outcome of a payment whose payer did not act in time; its provider has closed it, where possible. */
function endOf(outcome: Outcome): Outcome {
  if (outcome.kind === 'redirect') return { kind: 'expired', providerData: outcome.providerData };
  return outcome;
}

function pauseS(deps: FollowUpDeps, due: DueFollowUp, found: FollowedUp, nowMs: number): number {
  if (isOperation(found.transaction.type)) return lookUpPauseS(deps.schedule, due.fence);
  const untilExpiryS = (expiryOf(found) + GRACE_MS - nowMs) / 1000;
  const pause = Math.min(60 * 2 ** due.fence, LONGEST_PAUSE_S);
  return untilExpiryS > 0 ? Math.max(1, Math.min(pause, untilExpiryS)) : pause;
}
