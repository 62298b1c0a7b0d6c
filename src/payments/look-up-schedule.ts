import type { Config } from '#src/config.ts';
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

/** Returns the pause before an outcome's next look-up, in seconds: it doubles up to a day, and varies by a fifth. */
export function lookUpPauseS(schedule: LookUpSchedule, lookUps: number): number {
  const firstS = schedule.firstLookUpMs / 1000;
  const pauseS = Math.min(firstS * 2 ** Math.min(lookUps, 30), LONGEST_LOOK_UP_S);
  return pauseS * (1 + JITTER * (2 * Math.random() - 1));
}
