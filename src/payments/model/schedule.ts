import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';

/** Times at which unknown outcomes are checked. */
export type CheckSchedule = {
  /** Time that a lease lasts beyond the provider's deadline, to cover the work before and after the call. */
  readonly leaseMarginMs: number;
  /** Time from an unknown outcome to its first check. Each later pause is half the transaction's age, up to a day. */
  readonly firstCheckMs: number;
  /**
   * If the provider does not know a request, it may be asked to close the request this long after its deadline has
   * passed.
   */
  readonly closingMarginMs: number;
};

/**
 * Returns the lease of a transaction in seconds. Until it expires, no other worker checks the transaction.
 *
 * @param calls number of successive provider calls, each with the connection's deadline.
 */
export function leaseS(
  connection: Pick<ProviderConnection, 'deadlineMs'>,
  schedule: Pick<CheckSchedule, 'leaseMarginMs'>,
  calls = 1,
): number {
  return (calls * connection.deadlineMs + schedule.leaseMarginMs) / 1000;
}

/**
 * Returns the time from the beginning of a lease in which its holder may begin a call, in milliseconds: a later call
 * might still be in progress when the lease ends. Half of the margin is left for the write.
 *
 * @param earlierCallsMs deadlines of the calls that the lease covers before the last one.
 */
export function callsBeginWithinMs(
  { leaseMarginMs }: Pick<CheckSchedule, 'leaseMarginMs'>,
  earlierCallsMs = 0,
): number {
  return earlierCallsMs + leaseMarginMs / 2;
}

/** A pause that grows with an age: a share of it, within bounds. */
export type PauseByAge = { readonly share: number; readonly firstS: number; readonly longestS: number };

/** Returns the pause at an age, in seconds. `store/engine/due-work` has the same formula in SQL. */
function pauseS(ageMs: number, { share, firstS, longestS }: PauseByAge): number {
  return Math.min(Math.max(firstS, (ageMs / 1_000) * share), longestS);
}

const LONGEST_LOOK_UP_S = 86_400;
const JITTER = 0.2;

/**
 * Returns the seconds until the next check of a transaction of this age: half the age, from the first pause up to a
 * day, varied by a fifth. Since it depends only on the age, checks prompted by news do not lengthen it.
 *
 * @param chance position within the range of the pause, from 0 up to 1, drawn by the caller.
 */
export function variedPauseS(
  schedule: Pick<CheckSchedule, 'firstCheckMs'>,
  ageMs: number,
  chance: number,
): number {
  const firstS = schedule.firstCheckMs / 1_000;
  const evenS = pauseS(ageMs, { share: 1 / 2, firstS, longestS: LONGEST_LOOK_UP_S });
  return evenS * (1 + JITTER * (2 * chance - 1));
}

/**
 * Returns true if a provider that does not know a request may be asked to close it, because the deadline of any call
 * that could deliver it has passed, plus a margin. Depends only on the age.
 */
export function mayBeClosed(
  ageMs: number,
  connection: Pick<ProviderConnection, 'deadlineMs'>,
  schedule: Pick<CheckSchedule, 'closingMarginMs'>,
): boolean {
  return ageMs >= connection.deadlineMs + schedule.closingMarginMs;
}

/** Pause before the first check of a redirect, or of captures and refunds that were reported with an approval. */
export const FIRST_CHECK_S = 60;
const LONGEST_PAUSE_S = 3_600;

/**
 * Returns the seconds until the next check of a transaction that awaits its payer: half its age, from a minute to an
 * hour, but no later than the end of the payer's time.
 *
 * @param leftMs time left for the payer; negative once it is over.
 */
export function payerPauseS(ageMs: number, leftMs: number): number {
  const evenS = pauseS(ageMs, { share: 1 / 2, firstS: FIRST_CHECK_S, longestS: LONGEST_PAUSE_S });
  return leftMs > 0 ? Math.max(1, Math.min(evenS, leftMs / 1_000)) : evenS;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Times after the end of a local method's code at which it is checked. Banks confirm late. */
const AFTER_END_MS = [3 * HOUR_MS, DAY_MS, 5 * DAY_MS, 7 * DAY_MS];
/** Time after the end of a code that its provider still reports as open from which it needs manual review. */
export const LONG_OPEN_MS = 30 * DAY_MS;

/**
 * Returns the seconds until the next check of a local method's code: before its end, half its age, from a minute to an
 * hour; then at its end, and less and less often after it, since only the provider ends it.
 *
 * @param leftMs time left for the payer; negative once it is over.
 */
export function codePauseS(ageMs: number, leftMs: number): number {
  if (leftMs > 0) return payerPauseS(ageMs, leftMs);
  const sinceMs = -leftMs;
  const listed = AFTER_END_MS.find((ms) => ms > sinceMs);
  const everyMs = sinceMs < LONG_OPEN_MS ? DAY_MS : 7 * DAY_MS;
  const nextMs = listed ?? (Math.floor(sinceMs / everyMs) + 1) * everyMs;
  return Math.max(1, (nextMs - sinceMs) / 1_000);
}

/**
 * Pauses between retries of waiting news, by the age of the news. The pauses are short, since most news waits for a
 * lease of a few seconds.
 */
export const NEWS_PAUSES: PauseByAge = { share: 0.3, firstS: 2, longestS: LONGEST_PAUSE_S };

/**
 * Longest time from a check's write to the next check while its news is yet to be settled. The worker postpones that check
 * once the news is settled.
 */
export const UNSETTLED_S = 10;

/** Returns the seconds until news of this age is retried. */
export function newsPauseS(ageMs: number): number {
  return pauseS(ageMs, NEWS_PAUSES);
}

/**
 * Returns the seconds until the next check of a current authorization.
 *
 * @param restS the remaining term in seconds.
 * @param why.isSilent the provider did not answer.
 * @param why.needsReview the authorization needs manual review, which is reported once a day.
 */
export function heldPauseS(
  restS: number,
  { isSilent, needsReview }: { readonly isSilent: boolean; readonly needsReview: boolean },
): number {
  if (restS <= 0) return needsReview ? DAY_S : LONGEST_PAUSE_S;
  return Math.max(1, isSilent ? Math.min(restS, LONGEST_PAUSE_S) : restS);
}

const DAY_S = 86_400;

/**
 * Returns the seconds until an approved transaction is checked; undefined if it needs no check. An authorization may
 * lapse, and a provider that reported captures or refunds along with the approval is queried again. The worker that
 * received the report queries the provider at once; this check is for when that worker dies or gets no answer.
 */
export function approvedPauseS(
  transaction: { readonly capture: boolean },
  outcome: Outcome,
): number | undefined {
  if (reportsMore(outcome, transaction)) return FIRST_CHECK_S;
  return outcome.kind === 'approved' && !transaction.capture ? DAY_S : undefined;
}

/** Returns true if a provider also reports captures or refunds, which are not recorded with the approval. */
export function reportsMore(reported: Outcome, { capture }: { readonly capture: boolean }): boolean {
  if (reported.kind !== 'approved' || !reported.totals) return false;
  return reported.totals.refunded > 0n || (!capture && reported.totals.captured > 0n);
}
