import type { Logger } from 'pino';
import type { ClockDifference } from '#src/store/engine/database-clock.ts';
import type { Metrics } from './metrics.ts';

/** Clock difference that raises an alarm. */
const WRONG_CLOCK_MS = 60_000;

/** Reports the difference between the process's clock and the database's, and warns if it exceeds a minute. */
export function observeClock(metrics: Metrics, log: Logger) {
  return {
    compared({ aheadMs, uncertainMs }: ClockDifference): void {
      const surelyMs = Math.max(0, Math.abs(aheadMs) - uncertainMs);
      metrics.clockDifference.set(surelyMs / 1000);
      if (surelyMs <= WRONG_CLOCK_MS) return;
      log.warn(
        { ahead_s: Math.round(aheadMs / 1000) },
        "this machine's clock and the database's are more than a minute apart",
      );
    },
    failed(error: unknown): void {
      log.warn(
        { err: error },
        "the clock could not be compared with the database's; the comparison will be retried",
      );
    },
  };
}
