import type { Outcome } from '#src/connectors/outcome.ts';
import { alarmingOutcome } from '#src/connectors/provider-answer.ts';
import type { LeasedConnection } from '#src/connectors/within-lease.ts';
import { isAlarm, reportOfOwnMoney } from '../model/contradiction.ts';
import { beyondBooks, changedRefund, isRefundUndone } from '../model/external.ts';
import { FIRST_CHECK_S, heldPauseS } from '../model/schedule.ts';
import { isOver } from '../model/state.ts';
import { type LeasedTransaction, writeReport } from '../write-change.ts';
import { isAnswered, lookUpOf } from './ask-provider.ts';
import { recheckRefund, recordExternal } from './external-reports.ts';
import type { Asked, CheckDeps, Found, Prompt } from './found-transaction.ts';
import { type Release, releaseAuthorization } from './release-authorization.ts';

const DAY_MS = 86_400_000;
const WHILE_OPERATED_S = 3_600;

/**
 * Checks an authorization, and expires it after its term once the provider has released it. An authorization that has
 * already ended in our records is checked only if there is news, or if the provider's totals reported a capture, since
 * a refund may follow.
 */
export async function checkAuthorization(
  deps: CheckDeps,
  connection: LeasedConnection,
  leased: LeasedTransaction,
  found: Found,
  prompt: Prompt,
  stop: AbortSignal | undefined,
): Promise<Asked> {
  const { payment, transaction, terms } = found;
  const { fence } = leased;
  const { hint } = prompt;
  const restS = (terms.authorizationValidDays * DAY_MS - transaction.ageMs) / 1000;
  const isHeld = !isOver(found);
  // A capture that was found in totals has no reference, since no call of ours made it.
  const hasReportedCapture = found.transactions.some(
    ({ type, reference }) => type === 'CAPTURE' && !reference,
  );
  if (!isHeld && !hint && !hasReportedCapture) return { result: 'unchanged', checkInS: undefined, fence };
  if (payment.openOperation) {
    return { result: hint ? 'waiting' : 'unchanged', checkInS: WHILE_OPERATED_S, fence };
  }
  const query = lookUpOf(deps, connection, found, { ...prompt, close: false, isLast: false });
  const answered = await connection.lookUp?.(query);
  const reported = answered && reportOfOwnMoney(found, answered);
  const changed = changedRefund(found, reported);
  if (changed) return { ...(await recheckRefund(deps, leased, changed)), fence };
  const made = beyondBooks(found, reported);
  const mayLapse = isHeld && restS <= 0 && !made;
  const release = mayLapse ? await releaseOf(connection, found, query, reported) : undefined;
  const end = isHeld ? endOfAuthorization(reported, release) : undefined;
  const isContradiction = end === 'denied' || isRefundUndone(found, reported);
  const learned = release === 'refused' ? NOT_RELEASED : reported;
  const result = isContradiction ? 'contradiction' : end === 'lapsed' ? end : learned;
  const about = { transactionId: transaction.id, connectionId: transaction.connectionId };
  if (result) deps.checked.learned(about, result);
  if (end) {
    const written = await writeReport(deps, leased, { kind: 'lapsed', transactionId: transaction.id }, stop);
    return typeof written === 'string'
      ? { result: written === 'waiting' ? written : 'unchanged', checkInS: WHILE_OPERATED_S, fence }
      : { result: 'applied', checkInS: undefined, fence: written.fence, isScheduled: true };
  }
  const recorded = made && (await recordExternal(deps, connection, leased, found, made));
  const needsReview = recorded ? recorded === 'unchanged' : learned !== undefined && isAlarm(learned);
  const isSilent = reported !== undefined && !isAnswered(reported);
  const isEnd = !isHeld && (!recorded || needsReview) && !isSilent;
  const pauseS = recorded === 'applied' ? FIRST_CHECK_S : heldPauseS(restS, { isSilent, needsReview });
  const checkInS = isEnd ? undefined : pauseS;
  if (recorded) return { result: recorded, checkInS, fence, again: recorded === 'applied' };
  return { result: isSilent && hint ? 'unanswered' : 'unchanged', checkInS, fence };
}

const NOT_RELEASED = alarmingOutcome('the term of the authorization is over, and its release was refused');

/** Asks the provider to release an authorization whose term is over, if the provider reports it as still held. */
async function releaseOf(
  connection: LeasedConnection,
  found: Found,
  query: ReturnType<typeof lookUpOf>,
  reported: Outcome | undefined,
): Promise<Release | undefined> {
  // If the provider cannot be queried, our term decides.
  if (!reported) return 'released';
  const isOver = reported.kind === 'declined' || reported.kind === 'not_sent' || reported.kind === 'expired';
  return isOver || reported.kind === 'unknown' ? undefined : releaseAuthorization(connection, found, query);
}

/**
 * Returns how a current authorization ended: the provider reports it as over or has released it. 'denied' if the
 * provider claims that it never approved the authorization: nothing is held, but manual review is needed.
 */
function endOfAuthorization(
  reported: Outcome | undefined,
  release: Release | undefined,
): 'denied' | 'expired' | 'lapsed' | undefined {
  if (reported?.kind === 'declined' || reported?.kind === 'not_sent') return 'denied';
  if (reported?.kind === 'expired') return 'expired';
  return release === 'released' ? 'lapsed' : undefined;
}
