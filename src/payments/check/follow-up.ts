import type { Hint, LookUp, ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { alarmingOutcome } from '#src/connectors/provider-answer.ts';
import {
  type DueFollowUp,
  endFollowUp,
  postponeFollowUp,
  takeFollowUp,
} from '#src/store/engine/follow-ups.ts';
import { contradicts, isAlarm } from '../model/contradiction.ts';
import { beyondBooks, isRefundUndone } from '../model/external.ts';
import { FIRST_FOLLOW_UP_S, leaseS, mayBeClosed, reportsMore } from '../model/schedule.ts';
import { isLapsing, isOpen, isOpenDispute, isOperation, isOver } from '../model/state.ts';
import { changesNothing, endOf, isShownAlready, timeLeftMs, withoutLookUp } from '../model/waiting.ts';
import type { PaymentResponse } from '../stored-response.ts';
import { ask, askAndComplete, isAnswered, lookedUpTransaction } from './ask-provider.ts';
import { endDisputes } from './dispute.ts';
import { recordExternal } from './external-operations.ts';
import { writeOutcome } from './finish-operation.ts';
import type { FinishDeps } from './finish-payment.ts';
import { type FollowedUp, readFollowedUp } from './followed-up.ts';
import { lookUpPauseS } from './look-up-schedule.ts';
import { type Release, releaseAuthorization } from './release-authorization.ts';

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

const DAY_MS = 86_400_000;
const LONGEST_PAUSE_S = 3_600;
/** Time from an expiry to the last look-up, so that a payment made at the last moment is not reported as expired. */
const GRACE_MS = 30_000;

/**
 * Calls of `askAndComplete` for a payer who came back. No other worker may take the transaction between them: that they came back
 * is known to this call alone until it is written.
 */
const MOST_CALLS = 2;

/** Options of following up a transaction. */
export type FollowUpOptions = {
  readonly hint?: Hint | undefined;
  readonly stop?: AbortSignal | undefined;
  /** Has the provider close it before its time. Unlike at its end, only the provider's word counts then. */
  readonly close?: boolean;
};

/** The payment as written, or what else became of following up. */
type Followed = PaymentResponse | FollowedUpNow | undefined;

/**
 * Follows up a transaction after its call: learns the outcome of an open operation, of a payer's redirect or of a
 * challenge, and ends an authorization that lapsed. The provider's answer is written as any outcome is.
 *
 * @returns the payment as written; undefined if nothing changed; 'unanswered' if the provider did not answer, and no
 *   schedule has it asked again; 'applied' if disputes were ended, or captures or refunds made at the provider itself
 *   recorded, 'waiting' if they cannot be yet.
 */
export async function followUp(
  deps: FollowUpDeps,
  connection: ProviderConnection,
  due: DueFollowUp,
  options: FollowUpOptions = {},
): Promise<Followed> {
  const { hint, stop, close = false } = options;
  const found = await readFollowedUp(deps, connection, due);
  if (isLapsing(found.transaction)) return followUpAuthorization(deps, connection, due, found, options);

  const isLast = timeLeftMs(found, found.terms) + GRACE_MS <= 0;
  const query = { ...lookUpOf(deps, connection, found, isLast || close), ...(hint && { hint }) };
  const reported = await (isOpen(found.transaction) ? askAndComplete : ask)(connection, query);
  const isContradiction = contradicts(reported, found.transaction) || isRefundUndone(found, reported);
  deps.recovery.followedUp(due, isContradiction ? 'contradiction' : reported);
  const made = beyondBooks(found, reported);
  if (reported.kind === 'approved' && found.transactions.some(isOpenDispute)) {
    const ended = await endDisputes(deps, due.transactionId, reported.endedDisputes ?? []);
    if (ended) return made ? askAgain(deps, connection, due, options, ended) : ended;
  }
  if (made) {
    const recorded = await recordExternal(deps, connection, due, found, made);
    if (recorded === 'unchanged') await endIfPaid(deps, due, found);
    return askAgain(deps, connection, due, options, recorded);
  }
  const outcome = connection.lookUp ? reported : withoutLookUp(reported, found, isLast);
  // An operation has no response yet if its process died, or if its call is under way: with the fence taken here, that
  // may no longer write that nothing is known. So it gets its response here, PENDING for as long as nothing is.
  const { isUnanswered } = found.transaction;
  if (!isUnanswered && (changesNothing(outcome, isLast) || isShownAlready(outcome, found))) {
    await postponeFollowUp(deps.database, due, pauseS(deps, found));
    return isAnswered(reported) || found.transaction.isScheduled ? undefined : 'unanswered';
  }
  const ended = isLast ? endOf(outcome) : outcome;
  const leased = { ...due, followUpInS: pauseS(deps, found) };
  const written = await writeOutcome(deps, leased, ended, stop);
  if (!written) await endIfPaid(deps, due, found);
  return written && reportsMore(reported, found.transaction)
    ? askAgain(deps, connection, due, options)
    : written;
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
 * Result of following up a transaction ahead of schedule; 'waiting': its creation is under way; 'unanswered': the provider
 * did not answer about a transaction that is final here, so only who asked can have it asked again.
 */
export type FollowedUpNow = 'applied' | 'unchanged' | 'waiting' | 'unanswered';

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

/** Builds the look-up of a transaction from stored data alone. */
function lookUpOf(
  deps: FollowUpDeps,
  connection: ProviderConnection,
  found: FollowedUp,
  close: boolean,
): LookUp {
  const { transaction } = found;
  const { ageMs } = transaction;
  return {
    transactionId: transaction.id,
    money: { minorUnits: transaction.minorUnits, currency: transaction.currency },
    reference: transaction.reference,
    ageMs,
    payerTimeLeftMs: timeLeftMs(found, found.terms),
    close: isOperation(transaction.type) ? mayBeClosed(ageMs, connection, deps.schedule) : close,
    of: lookedUpTransaction(found.record, transaction, found.transactions, deps.publicUrl(), found.terms),
  };
}

/**
 * Follows up an authorization: ends it if it lapsed. If it is over here, only news has its provider asked, and a capture
 * that its totals told: a refund may have been told with it.
 */
async function followUpAuthorization(
  deps: FollowUpDeps,
  connection: ProviderConnection,
  due: DueFollowUp,
  found: FollowedUp,
  { hint, stop }: FollowUpOptions,
): Promise<Followed> {
  const { payment, transaction, terms } = found;
  const restS = (terms.authorizationValidDays * DAY_MS - transaction.ageMs) / 1000;
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
  const query = { ...lookUpOf(deps, connection, found, false), ...(hint && { hint }) };
  const reported = await connection.lookUp?.(query);
  const made = beyondBooks(found, reported);
  const release =
    isHeld && restS <= 0 && !made ? await releaseOf(connection, found, query, reported) : undefined;
  const end = isHeld ? endOfAuthorization(reported, release) : undefined;
  const isContradiction = end === 'denied' || isRefundUndone(found, reported);
  const learned = release === 'refused' ? NOT_RELEASED : reported;
  const result = isContradiction ? 'contradiction' : end === 'lapsed' ? end : learned;
  if (result) deps.recovery.followedUp(due, result);
  if (end) return writeOutcome(deps, { ...due, followUpInS: undefined }, 'lapsed', stop);
  const recorded = made && (await recordExternal(deps, connection, due, found, made));
  const isSettledByHand = recorded ? recorded === 'unchanged' : learned !== undefined && isAlarm(learned);
  const isEnd = !isHeld && !hint && (!recorded || isSettledByHand) && (!reported || isAnswered(reported));
  const pause = recorded === 'applied' ? FIRST_FOLLOW_UP_S : heldPauseS(restS, reported, isSettledByHand);
  await (isEnd ? endFollowUp(deps.database, due) : postponeFollowUp(deps.database, due, pause));
  if (recorded) return askAgain(deps, connection, due, { hint, stop }, recorded);
  return !isHeld && reported && !isAnswered(reported) ? 'unanswered' : undefined;
}

const NOT_RELEASED = alarmingOutcome('the term of the authorization is over, and its release was refused');

/** Has the provider release an authorization past our term, if the provider told that it stands. */
async function releaseOf(
  connection: ProviderConnection,
  found: FollowedUp,
  query: LookUp,
  reported: Outcome | undefined,
): Promise<Release | undefined> {
  // Where the provider cannot be asked, our term ends it.
  if (!reported) return 'released';
  const isOver = reported.kind === 'declined' || reported.kind === 'not_sent' || reported.kind === 'expired';
  return isOver || reported.kind === 'unknown' ? undefined : releaseAuthorization(connection, found, query);
}

/**
 * Returns the end of an authorization that stands here: its provider says that it is over, or has released it. One that
 * its provider denies ever to have approved is over, too, since nothing is held; but it was approved, so a person has to
 * look.
 */
function endOfAuthorization(
  reported: Outcome | undefined,
  release: Release | undefined,
): 'denied' | 'expired' | 'lapsed' | undefined {
  if (reported?.kind === 'declined' || reported?.kind === 'not_sent') return 'denied';
  if (reported?.kind === 'expired') return 'expired';
  return release === 'released' ? 'lapsed' : undefined;
}

/** Returns the pause of an authorization that stands, with so much of its term left. */
function heldPauseS(restS: number, reported: Outcome | undefined, isSettledByHand: boolean): number {
  // Past its term, what a person has to settle is told once a day.
  if (restS <= 0) return isSettledByHand ? DAY_MS / 1000 : LONGEST_PAUSE_S;
  const isSilent = reported !== undefined && !isAnswered(reported);
  return Math.max(1, isSilent ? Math.min(restS, LONGEST_PAUSE_S) : restS);
}

function pauseS(deps: FollowUpDeps, found: FollowedUp): number {
  const { type, ageMs } = found.transaction;
  if (isOperation(type)) return lookUpPauseS(deps.schedule, ageMs);
  const untilExpiryS = (timeLeftMs(found, found.terms) + GRACE_MS) / 1000;
  const pause = Math.min(Math.max(FIRST_FOLLOW_UP_S, ageMs / 2_000), LONGEST_PAUSE_S);
  return untilExpiryS > 0 ? Math.max(1, Math.min(pause, untilExpiryS)) : pause;
}
