import type { Capabilities } from '#src/connectors/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';

/** Times at which an unknown outcome is checked. */
export type CheckSchedule = {
  /** Time that a lease lasts beyond the provider's deadline, for the work around the call. */
  readonly leaseMarginMs: number;
  /** From an unknown outcome to its first check; each later pause is half the transaction's age, up to a day. */
  readonly firstCheckMs: number;
  /**
   * Age, beyond the provider's deadline, from which the provider is asked to close a request that it does not know.
   */
  readonly closingMarginMs: number;
};

/**
 * Returns the lease of a transaction, in seconds: until it ends, no other worker asks about the transaction.
 *
 * @param calls the number of successive calls, each with the connection's deadline.
 */
export function leaseS(
  connection: Pick<ProviderConnection, 'deadlineMs'>,
  schedule: Pick<CheckSchedule, 'leaseMarginMs'>,
  calls = 1,
): number {
  return (calls * connection.deadlineMs + schedule.leaseMarginMs) / 1000;
}

const LONGEST_LOOK_UP_S = 86_400;
const JITTER = 0.2;

/**
 * Returns the pause before the next check of a transaction of this age, in seconds: half the age, from the first
 * pause up to a day, varied by a fifth. It depends on no count, so checks prompted by news do not lengthen it.
 *
 * @param chance from 0 up to 1, drawn by the caller: the position of the pause in its range.
 */
export function variedPauseS(
  schedule: Pick<CheckSchedule, 'firstCheckMs'>,
  ageMs: number,
  chance: number,
): number {
  const halfMs = Math.max(schedule.firstCheckMs, ageMs / 2);
  const pauseS = Math.min(halfMs / 1000, LONGEST_LOOK_UP_S);
  return pauseS * (1 + JITTER * (2 * chance - 1));
}

/**
 * Returns true if a provider that does not know a request may be asked to close it: the longest call that could
 * deliver it is over, plus a margin. Only the age counts, whoever asks and however often.
 */
export function mayBeClosed(
  ageMs: number,
  connection: Pick<ProviderConnection, 'deadlineMs'>,
  schedule: Pick<CheckSchedule, 'closingMarginMs'>,
): boolean {
  return ageMs >= connection.deadlineMs + schedule.closingMarginMs;
}

/** Returns the time left for a redirected payer, given the transaction's age; negative once it is over. */
export function payerTimeLeftMs(ageMs: number, terms: Pick<Capabilities, 'redirectValidMinutes'>): number {
  return terms.redirectValidMinutes * 60_000 - ageMs;
}

/** Pause before the first check of a redirected payer, or of further reports beside an approval. */
export const FIRST_CHECK_S = 60;
const LONGEST_PAUSE_S = 3_600;

/**
 * Returns the pause before the next check of a transaction that awaits its payer: half its age, from a minute to an
 * hour, but no later than the end of the payer's time.
 *
 * @param leftMs time left for the payer; negative once it is over.
 */
export function payerPauseS(ageMs: number, leftMs: number): number {
  const pauseS = Math.min(Math.max(FIRST_CHECK_S, ageMs / 2_000), LONGEST_PAUSE_S);
  return leftMs > 0 ? Math.max(1, Math.min(pauseS, leftMs / 1_000)) : pauseS;
}

/** Pauses of waiting news, by its age. Short: most of it waits for a lease of some seconds. */
export const NEWS_PAUSES = { share: 0.3, firstS: 2, longestS: LONGEST_PAUSE_S } as const;

/** Returns the pause before news of this age is retried. */
export function newsPauseS(ageMs: number): number {
  const { share, firstS, longestS } = NEWS_PAUSES;
  return Math.min(Math.max(firstS, (ageMs / 1_000) * share), longestS);
}

/**
 * Returns the pause before the next check of a current authorization, given its remaining term.
 *
 * @param why.isSilent the provider did not answer.
 * @param why.needsReview it needs manual review, which is reported once a day.
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
 * Returns the pause before an approved transaction is checked, if it needs a check: an authorization may lapse, and a
 * provider that reported more is asked again. The worker that learned of it asks at once, unless it dies or gets no
 * answer.
 */
export function approvedPauseS(
  transaction: { readonly capture: boolean },
  outcome: Outcome,
): number | undefined {
  if (reportsMore(outcome, transaction)) return FIRST_CHECK_S;
  return outcome.kind === 'approved' && !transaction.capture ? DAY_S : undefined;
}

/** Returns true if a provider also reports captures or refunds, which writing the approval does not record. */
export function reportsMore(reported: Outcome, { capture }: { readonly capture: boolean }): boolean {
  if (reported.kind !== 'approved' || !reported.totals) return false;
  return reported.totals.refunded > 0n || (!capture && reported.totals.captured > 0n);
}
