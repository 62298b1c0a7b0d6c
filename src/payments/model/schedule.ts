import type { Capabilities } from '#src/connectors/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';

/** Times at which an unknown outcome is looked up. */
export type CheckSchedule = {
  /** Time that a lease lasts beyond the provider's deadline, for the work around the call. */
  readonly leaseMarginMs: number;
  /** From an unknown outcome to its first look-up; each later pause is half the transaction's age, up to a day. */
  readonly firstCheckMs: number;
  /** Age beyond the provider's deadline from which the provider is asked to close a request that it does not know. */
  readonly closingMarginMs: number;
};

/**
 * Returns the lease of a transaction, in seconds: until it ends, no other worker asks about the transaction.
 *
 * @param calls that are made one after the other, each with the connection's deadline.
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
 * Returns the pause before the next look-up of a transaction of an age, in seconds: half the age, from the first pause up
 * to a day, and varied by a fifth. It counts nothing, so look-ups that news prompts make it no longer.
 *
 * @param chance from 0 up to 1, drawn by the caller: where in its range the pause is.
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
 * Returns true if a provider that has not heard of a request may be asked to close it: the longest call that could bring
 * it is over, and so is a margin. It goes by the age alone, whoever asks and however often.
 */
export function mayBeClosed(
  ageMs: number,
  connection: Pick<ProviderConnection, 'deadlineMs'>,
  schedule: Pick<CheckSchedule, 'closingMarginMs'>,
): boolean {
  return ageMs >= connection.deadlineMs + schedule.closingMarginMs;
}

/** Returns the time that a redirected payer has left, of a transaction of an age; negative once it is over. */
export function payerTimeLeftMs(ageMs: number, terms: Pick<Capabilities, 'redirectValidMinutes'>): number {
  return terms.redirectValidMinutes * 60_000 - ageMs;
}

/** Pause before a payer who was sent away is first asked about, or what a provider reported beside an approval. */
export const FIRST_CHECK_S = 60;
const LONGEST_PAUSE_S = 3_600;

/**
 * Returns the pause before the next check of a transaction that awaits its payer: half its age, from a minute to an hour, and
 * at the latest when the payer's time is over.
 *
 * @param leftMs time that the payer has left; negative once it is over.
 */
export function payerPauseS(ageMs: number, leftMs: number): number {
  const pauseS = Math.min(Math.max(FIRST_CHECK_S, ageMs / 2_000), LONGEST_PAUSE_S);
  return leftMs > 0 ? Math.max(1, Math.min(pauseS, leftMs / 1_000)) : pauseS;
}

/** Pauses of news that waits, by its age. Small: most of it waits for a lease of some seconds. */
export const NEWS_PAUSES = { share: 0.3, firstS: 2, longestS: LONGEST_PAUSE_S } as const;

/** Returns the pause before news of an age is looked at again. */
export function newsPauseS(ageMs: number): number {
  const { share, firstS, longestS } = NEWS_PAUSES;
  return Math.min(Math.max(firstS, (ageMs / 1_000) * share), longestS);
}

/**
 * Returns the pause before the next check of an authorization that stands, with so much of its term left.
 *
 * @param why.isSilent the provider did not answer.
 * @param why.needsReview it needs manual review, of which is told once a day.
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
 * Returns the pause before what was approved is checked: an authorization may lapse, and a provider that reported
 * more is asked again, which whoever learned of it does at once, unless it dies or gets no answer; else undefined.
 */
export function approvedPauseS(
  transaction: { readonly capture: boolean },
  outcome: Outcome,
): number | undefined {
  if (reportsMore(outcome, transaction)) return FIRST_CHECK_S;
  return outcome.kind === 'approved' && !transaction.capture ? DAY_S : undefined;
}

/** Returns true if a provider reports captures or refunds too, which writing the approval does not record. */
export function reportsMore(reported: Outcome, { capture }: { readonly capture: boolean }): boolean {
  if (reported.kind !== 'approved' || !reported.totals) return false;
  return reported.totals.refunded > 0n || (!capture && reported.totals.captured > 0n);
}
