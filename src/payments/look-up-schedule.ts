import type { Config } from '#src/config.ts';
import type { Capabilities } from '#src/connectors/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/connector.ts';

/** Times at which an unknown outcome is looked up. */
export type LookUpSchedule = Config['lookUpSchedule'];

/**
 * Returns the lease of a transaction, in seconds: until it ends, no other worker asks about the transaction.
 *
 * @param calls that are made one after the other, each with the connection's deadline.
 */
export function leaseS(
  connection: Pick<ProviderConnection, 'deadlineMs'>,
  schedule: Pick<LookUpSchedule, 'leaseMarginMs'>,
  calls = 1,
): number {
  return (calls * connection.deadlineMs + schedule.leaseMarginMs) / 1000;
}

const LONGEST_LOOK_UP_S = 86_400;
const JITTER = 0.2;

/**
 * Returns the pause before the next look-up of a transaction of an age, in seconds: half the age, from the first pause up
 * to a day, and varied by a fifth. It counts nothing, so look-ups that news prompts make it no longer.
 */
export function lookUpPauseS(schedule: LookUpSchedule, ageMs: number): number {
  const halfMs = Math.max(schedule.firstLookUpMs, ageMs / 2);
  const pauseS = Math.min(halfMs / 1000, LONGEST_LOOK_UP_S);
  return pauseS * (1 + JITTER * (2 * Math.random() - 1));
}

/**
 * Returns true if a provider that has not heard of a request may be asked to close it: the longest call that could bring
 * it is over, and so is a margin. It goes by the age alone, whoever asks and however often.
 */
export function mayBeClosed(
  ageMs: number,
  connection: Pick<ProviderConnection, 'deadlineMs'>,
  schedule: Pick<LookUpSchedule, 'closingMarginMs'>,
): boolean {
  return ageMs >= connection.deadlineMs + schedule.closingMarginMs;
}

/** Returns the time that a redirected payer has left, of a transaction of an age; negative once it is over. */
export function payerTimeLeftMs(ageMs: number, terms: Pick<Capabilities, 'redirectValidMinutes'>): number {
  return terms.redirectValidMinutes * 60_000 - ageMs;
}
