import type { Outcome } from '#src/connectors/outcome.ts';
import type { LeasedConnection } from '#src/connectors/within-lease.ts';
import { isEndWithoutMoney } from '../model/closing.ts';
import { contradicts, reportOfOwnMoney } from '../model/contradiction.ts';
import { correctionOf } from '../model/correction.ts';
import { beyondBooks, changedRefund, isRefundUndone } from '../model/external.ts';
import { FIRST_CHECK_S, payerPauseS, reportsMore } from '../model/schedule.ts';
import {
  isClosing,
  isOpen,
  isOpenAttempt,
  isOpenDispute,
  isOperation,
  openClosing,
  type TransactionRow,
} from '../model/state.ts';
import { endOf, isNothingNew, NO_LOOK_UP, timeLeftMs, withoutLookUp } from '../model/waiting.ts';
import { type LeasedTransaction, pauseS, writeClosing, writeReport } from '../write-change.ts';
import { askAbout, closeAttempt, isAnswered } from './ask-provider.ts';
import { recheckRefund, recordExternal, reportDispute } from './external-reports.ts';
import type { Asked, CheckDeps, Found, Prompt } from './found-transaction.ts';

/** Delay from an expiry to the last check, so that a payment made at the last moment is not reported as expired. */
const GRACE_MS = 30_000;

/** Checks the outcome of an attempt, of a payer's redirect or challenge, or of an operation. */
export async function checkOutcome(
  deps: CheckDeps,
  connection: LeasedConnection,
  leased: LeasedTransaction,
  found: Found,
  prompt: Prompt,
  stop: AbortSignal | undefined,
): Promise<Asked> {
  const { transaction } = found;
  const { fence } = leased;
  const closing = openClosing(found);
  if (closing) return checkClosing(deps, connection, leased, found, closing, stop);
  // A cancel that has closed an attempt has nothing of its own at the provider.
  if (isClosing(transaction)) return { result: 'unchanged', checkInS: undefined, fence };
  // A provider without a look-up can report nothing more about a final transaction. Nor can any other about a final
  // operation without its reference: its look-up might send the operation again.
  const isFound = !isOperation(transaction.type) || transaction.reference !== undefined;
  if (!isOpen(transaction) && !(connection.lookUp && isFound))
    return { result: 'unchanged', checkInS: undefined, fence };
  const isLast = isLastCheck(found);
  const reported = reportOfOwnMoney(found, await askAbout(deps, connection, found, { ...prompt, isLast }));
  const changed = changedRefund(found, reported);
  if (changed) return { ...(await recheckRefund(deps, leased, changed)), fence };
  const correction = correctionOf(found, reported, undefined);
  const isCorrection = correction === 'now' || correction === 'later';
  const isReversal = contradicts(reported, transaction) && !isCorrection;
  const isContradiction = isReversal || isRefundUndone(found, reported);
  const about = { transactionId: transaction.id, connectionId: transaction.connectionId };
  deps.checked.learned(about, isContradiction ? 'contradiction' : reported);
  const checkInS = isOpen(transaction) ? nextPauseS(deps, found) : undefined;

  const made = beyondBooks(found, reported);
  if (reported.kind === 'approved' && found.transactions.some(isOpenDispute)) {
    const ended = await endDisputes(deps, leased, reported);
    if (ended)
      return {
        result: ended,
        checkInS: FIRST_CHECK_S,
        fence,
        again: made !== undefined && ended === 'applied',
      };
  }
  if (made) {
    const result = await recordExternal(deps, connection, leased, found, made);
    return {
      result,
      checkInS: result === 'waiting' ? FIRST_CHECK_S : undefined,
      fence,
      again: result === 'applied',
    };
  }

  const outcome = connection.lookUp ? reported : withoutLookUp(reported, found, isLast);
  // An operation, or an attempt at a provider without a look-up, gets its response here: PENDING while the outcome is
  // unknown. Any other attempt gets its response once the outcome is known; until then its key is in progress.
  const mustRespond = transaction.awaitsResponse && (isOperation(transaction.type) || !connection.lookUp);
  if (!mustRespond && isNothingNew(outcome, found, isLast)) {
    // Without a look-up, no query went unanswered.
    const isSilent = !isAnswered(reported) && reported !== NO_LOOK_UP;
    return { result: isSilent ? 'unanswered' : 'unchanged', checkInS, fence };
  }
  const report = {
    kind: 'outcome',
    transactionId: transaction.id,
    outcome: isLast ? endOf(outcome) : outcome,
    pauseS: nextPauseS(deps, found),
  } as const;
  const written = await writeReport(deps, leased, report, stop);
  if (written === 'lost') return { result: 'unchanged', checkInS, fence: undefined };
  if (typeof written === 'string') {
    return { result: written === 'waiting' ? written : 'unchanged', checkInS: undefined, fence };
  }
  const again = reportsMore(reported, transaction);
  return { result: 'applied', checkInS: undefined, fence: written.fence, isScheduled: true, again };
}

/** Asks the provider again to close an attempt that its merchant has canceled. */
async function checkClosing(
  deps: CheckDeps,
  connection: LeasedConnection,
  leased: LeasedTransaction,
  found: Found,
  closing: TransactionRow,
  stop: AbortSignal | undefined,
): Promise<Asked> {
  const { transactions } = found;
  const { fence } = leased;
  const attempt = transactions.find(({ id }) => id === closing.parentId);
  if (!attempt) throw new Error(`cancel ${closing.id} has no parent`);
  const checkInS = pauseS(deps.schedule, closing.ageMs);
  const reported = isOpen(attempt)
    ? await closeAttempt(deps, connection, { ...found, transaction: attempt })
    : NO_LOOK_UP;
  deps.checked.learned({ transactionId: attempt.id, connectionId: attempt.connectionId }, reported);
  const isEnd = !isOpen(attempt) || reported.kind === 'approved' || isEndWithoutMoney(reported);
  // The cancel of a process that died gets its response from its own check.
  const mustRespond = closing.awaitsResponse && closing.id === leased.transactionId;
  if (!isEnd && !mustRespond) {
    return { result: isAnswered(reported) ? 'unchanged' : 'unanswered', checkInS, fence };
  }
  const report = { kind: 'outcome', transactionId: closing.id, outcome: reported, pauseS: checkInS } as const;
  const written = await writeClosing(deps, leased, report, stop);
  if (written === 'lost') return { result: 'unchanged', checkInS, fence: undefined };
  if (typeof written === 'string') return { result: 'unchanged', checkInS: undefined, fence };
  return { result: 'applied', checkInS: undefined, fence: written.fence, isScheduled: true };
}

/** Returns true for the last check within a payer's time, after which the provider closes an unfinished payment. */
function isLastCheck(found: Found): boolean {
  return !isOpenAttempt(found.transaction) && timeLeftMs(found, found.terms) + GRACE_MS <= 0;
}

/** Returns the pause before the next check of an open transaction, in seconds. */
function nextPauseS({ schedule }: CheckDeps, found: Found): number {
  const { awaitsPayer, ageMs } = found.transaction;
  return awaitsPayer
    ? payerPauseS(ageMs, timeLeftMs(found, found.terms) + GRACE_MS)
    : pauseS(schedule, ageMs);
}

/** Ends the open disputes that the provider reports as over. */
async function endDisputes(
  deps: CheckDeps,
  leased: LeasedTransaction,
  { endedDisputes = [] }: Extract<Outcome, { kind: 'approved' }>,
): Promise<'applied' | 'waiting' | undefined> {
  const results: string[] = [];
  for (const dispute of endedDisputes)
    results.push(await reportDispute(deps, leased, dispute, { onlyOpen: true }));
  if (results.includes('waiting')) return 'waiting';
  return results.includes('applied') ? 'applied' : undefined;
}
