/** The pauses after the first attempt, the second, and so on, in seconds. */
export const RETRY_SCHEDULE_S: readonly number[] = [
  5,
  5 * 60,
  30 * 60,
  2 * 3_600,
  6 * 3_600,
  24 * 3_600,
  48 * 3_600,
  96 * 3_600,
];

/** Fraction by which a pause may be longer, so that deliveries that failed together are not retried together. */
const JITTER = 0.2;

/**
 * Returns the pause after a failed attempt, in seconds; undefined after the last.
 *
 * @param retry number of earlier attempts in the schedule.
 */
export function retryPauseS(
  retry: number,
  schedule: readonly number[] = RETRY_SCHEDULE_S,
): number | undefined {
  const pauseS = schedule[retry];
  return pauseS === undefined ? undefined : pauseS * (1 + JITTER * Math.random());
}
