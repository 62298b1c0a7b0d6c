import type { Logger } from 'pino';
import { alarmingOutcome } from '#src/connectors/kit/provider-answer.ts';
import type { CheckObserver } from '#src/payments/check/check-transaction.ts';
import type { ReceiveDeps, RouteDeps } from '#src/payments/check/news.ts';
import { describeUnaskable, type OpenOutcomesObserver } from '#src/payments/check/open-outcomes.ts';
import type { Metrics } from './metrics.ts';
import { observeAlarm } from './observe-alarm.ts';

const ALARMS = {
  mismatch: alarmingOutcome(
    'the provider reports a different amount or currency, or an operation that the payment does not allow',
  ),
  contradiction: alarmingOutcome('the provider reports the opposite of the final state in the record'),
  overdue: alarmingOutcome('a signed notification has waited for an hour, and still cannot be applied'),
} as const;

/** Counts and logs the results of checks. */
export function observeChecks(metrics: Metrics, log: Logger): CheckObserver {
  return {
    learned({ transactionId, connectionId }, learned) {
      const isOutcome = typeof learned === 'object';
      const result = isOutcome ? learned.kind : learned;
      metrics.lookUps.inc({ connection: connectionId, result });
      log.info({ transaction_id: transactionId, connection: connectionId, result }, 'transaction checked');
      if (learned === 'lapsed') return;
      observeAlarm(metrics, log, isOutcome ? learned : ALARMS[learned], { connectionId, transactionId });
    },
    failed(error) {
      log.error({ err: error }, 'a check failed; it will be repeated');
    },
  };
}

/** Counts providers' notifications, and logs forged ones. */
export function observeNotifications(
  metrics: Metrics,
  log: Logger,
): ReceiveDeps['notifications'] & Pick<RouteDeps, 'settled'> {
  return {
    received(connection, kind) {
      metrics.notifications.inc({ connection, result: kind });
      if (kind === 'forged') log.warn({ connection }, 'forged notification refused');
    },
    settled(connection, result) {
      if (result === 'waiting') return;
      metrics.notifications.inc({ connection, result });
    },
  };
}

/** Reports the number of open outcomes, and logs those that cannot be looked up. */
export function observeOpenOutcomes(metrics: Metrics, log: Logger): OpenOutcomesObserver {
  return {
    counted({ open, oldestS, unaskable, followUps }) {
      metrics.openOutcomes.set(open);
      metrics.oldestOpenOutcome.set(oldestS);
      for (const one of followUps) {
        metrics.openFollowUps.set({ kind: one.kind }, one.open);
        metrics.oldestFollowUp.set({ kind: one.kind }, one.oldestS);
      }
      metrics.unaskableOutcomes.reset();
      for (const { connectionId, reason, open: count } of unaskable) {
        metrics.unaskableOutcomes.inc({ connection: connectionId, reason }, count);
      }
    },
    unaskable(outcomes) {
      log.warn(
        { connection: outcomes.connectionId, reason: outcomes.reason, open: outcomes.open },
        describeUnaskable(outcomes),
      );
    },
    failed(error) {
      log.error({ err: error }, 'unknown outcomes could not be counted; the count will be retried');
    },
  };
}
