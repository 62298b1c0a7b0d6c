import type { ProviderConnection, SignedOutcome } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { Money } from '#src/money.ts';
import {
  type DueFollowUp,
  findPaymentOf,
  restoreFollowUp,
  takeFollowUp,
} from '#src/store/engine/follow-ups.ts';
import { readOpenAttempt } from '#src/store/engine/look-ups.ts';
import { contradicts } from '../model/contradiction.ts';
import { correctionOf } from '../model/correction.ts';
import { leaseS } from '../model/schedule.ts';
import { isLapsing, isOver, shownOf } from '../model/state.ts';
import { decodeRecord } from '../stored-record.ts';
import { recordExternal } from './external-operations.ts';
import { writeOutcome } from './finish-operation.ts';
import { finishOf, writeFinish } from './finish-payment.ts';
import type { FollowedUpNow, FollowUpDeps } from './follow-up.ts';
import { type FollowedUp, readFollowedUp } from './followed-up.ts';
import { lookUpPauseS } from './look-up-schedule.ts';

/**
 * Writes the outcome that a provider without look-up has signed, if its amount and currency are the transaction's own.
 * Otherwise nothing changes, and an alarm is raised.
 *
 * @returns 'waiting' while the transaction's creation is under way, or an operation that may be what ended it.
 */
export async function applySigned(
  deps: FollowUpDeps,
  connection: ProviderConnection,
  transactionId: string,
  signed: SignedOutcome,
  stop?: AbortSignal,
): Promise<FollowedUpNow> {
  if (signed.operation) return applyOperation(deps, connection, transactionId, signed, signed.operation);
  const due = await takeFollowUp(deps.database, transactionId, leaseS(connection, deps.schedule));
  if (!due) return finishSigned(deps, transactionId, signed, stop);
  const found = await readFollowedUp(deps, connection, due);
  const applied = await applyTo(deps, signed, due, found, stop);
  if (applied !== 'applied') await restoreFollowUp(deps.database, due);
  return applied;
}

async function applyTo(
  deps: FollowUpDeps,
  signed: SignedOutcome,
  due: DueFollowUp,
  found: FollowedUp,
  stop: AbortSignal | undefined,
): Promise<FollowedUpNow> {
  const { outcome } = signed;
  if (!isOfPaid(deps, signed, due, found)) return 'unchanged';
  const isEnd = outcome.kind === 'expired' && isLapsing(found.transaction);
  // The end of what is over says nothing, and the amount may be what a capture left.
  if ((isEnd && isOver(found)) || !decides(deps, signed, due, found.transaction)) return 'unchanged';
  if (isEnd) {
    if (found.payment.openOperation) return 'waiting';
    const lapsed = await writeOutcome(deps, { ...due, followUpInS: undefined }, 'lapsed', stop);
    // What has begun meanwhile may be turned down, and nothing else will tell of the end again.
    return lapsed ? 'applied' : 'waiting';
  }
  if (isUndone(signed, found)) return 'unchanged';
  const correction = correctionOf(found, outcome);
  if (correction) return correct(deps, due, outcome, correction, stop);
  if (contradicts(outcome, found.transaction)) deps.recovery.followedUp(due, 'contradiction');
  const followUpInS = lookUpPauseS(deps.schedule, found.transaction.ageMs);
  return (await writeOutcome(deps, { ...due, followUpInS }, outcome, stop)) ? 'applied' : 'unchanged';
}

/**
 * Writes the provider's correction of a final state. A capture that failed after its money was refunded waits until the
 * refund has failed as well, with an alarm: more would be refunded than was captured.
 */
async function correct(
  deps: FollowUpDeps,
  due: DueFollowUp,
  outcome: Outcome,
  correction: NonNullable<ReturnType<typeof correctionOf>>,
  stop: AbortSignal | undefined,
): Promise<FollowedUpNow> {
  if (correction === 'refunded') deps.recovery.followedUp(due, 'contradiction');
  if (correction !== 'now') return 'waiting';
  // If something has begun meanwhile, nothing is written, and nothing else will tell of the correction again.
  return (await writeOutcome(deps, { ...due, followUpInS: undefined }, outcome, stop))
    ? 'applied'
    : 'waiting';
}

/** Records a capture or a refund that was made at the provider itself, unless it is one of ours. */
async function applyOperation(
  deps: FollowUpDeps,
  connection: ProviderConnection,
  transactionId: string,
  signed: SignedOutcome,
  type: 'CAPTURE' | 'REFUND',
): Promise<FollowedUpNow> {
  const { outcome: reported, minorUnits, currency } = signed;
  const own = await findPaymentOf(deps.database, transactionId);
  if (!own || reported.kind !== 'approved') return 'unchanged';
  const found = await readFollowedUp(deps, connection, { ...own, transactionId });
  if (!isOfPaid(deps, signed, { ...found.transaction, transactionId }, found)) return 'unchanged';
  const made = { type, money: { minorUnits, currency }, reported, reference: reported.reference };
  return recordExternal(deps, connection, own, found, made);
}

/** Does the same for an attempt with an unknown outcome: without a look-up, nothing else will ever reveal it. */
async function finishSigned(
  deps: FollowUpDeps,
  transactionId: string,
  signed: SignedOutcome,
  stop: AbortSignal | undefined,
): Promise<FollowedUpNow> {
  const attempt = await readOpenAttempt(deps.database, transactionId);
  if (!attempt) return 'waiting';
  if (!decides(deps, signed, attempt, attempt)) return 'unchanged';
  const finish = finishOf(deps, attempt, decodeRecord(attempt.record), signed.outcome);
  return (await writeFinish(deps, finish, stop)) ? 'applied' : 'unchanged';
}

/**
 * Returns true if what is signed decides the outcome of a transaction. Otherwise it says nothing about a transaction of
 * this kind, or an alarm is raised: its money is not the transaction's, or it is nothing but an alarm.
 */
function decides(
  { recovery }: FollowUpDeps,
  { outcome, minorUnits, currency, ofPurchase }: SignedOutcome,
  about: { readonly transactionId: string; readonly connectionId: string },
  transaction: Money & { readonly capture: boolean },
): boolean {
  if (ofPurchase && !transaction.capture) return false;
  const fits = minorUnits === transaction.minorUnits && currency === transaction.currency;
  if (fits && outcome.kind !== 'unknown') return true;
  recovery.followedUp(about, fits ? outcome : 'mismatch');
  return false;
}

/** Returns true unless what is signed is of another charge than ours, under our reference: that is an alarm. */
function isOfPaid(
  { recovery }: FollowUpDeps,
  { paidReference }: SignedOutcome,
  { transactionId, connectionId }: { readonly transactionId: string; readonly connectionId: string },
  { transaction: { reference } }: FollowedUp,
): boolean {
  if (!paidReference || !reference || paidReference === reference) return true;
  recovery.followedUp({ transactionId, connectionId }, 'mismatch');
  return false;
}

/** Returns true if what is told was undone since, and the record says so: the report of it came late. */
function isUndone({ undoneBy, outcome }: SignedOutcome, found: FollowedUp): boolean {
  const { reference } = found.transaction;
  const isSame = reference !== undefined && 'reference' in outcome && outcome.reference === reference;
  return isSame && undoneBy !== undefined && shownOf(found)?.status === undoneBy;
}
