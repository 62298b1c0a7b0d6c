import type { Logger } from 'pino';
import { alarmingOutcome } from '#src/connectors/provider-answer.ts';
import { describeUnaskable, type OpenOutcomesObserver } from '#src/payments/check/open-outcomes.ts';
import type { ProcessDeps } from '#src/payments/check/process-notifications.ts';
import type { ReceiveDeps } from '#src/payments/check/receive-notification.ts';
import type { RecoveryObserver } from '#src/payments/check/recover-payments.ts';
import type { Metrics } from './metrics.ts';
import { observeAlarm } from './observe-alarm.ts';

const ALARMS = {
  mismatch: alarmingOutcome(
    'the provider tells of another amount or currency, or of what the payment does not allow',
  ),
  contradiction: alarmingOutcome('the provider tells the opposite of the final state in the record'),
} as const;

/** Counts and logs the results of recovery. */
export function observeRecovery(metrics: Metrics, log: Logger): RecoveryObserver {
  return {
    lookedUp({ transactionId, connectionId, fence }, outcome) {
      const result = outcome.kind;
      metrics.lookUps.inc({ connection: connectionId, result });
      observeAlarm(metrics, log, connectionId, outcome, transactionId);
      log.info(
        { transaction_id: transactionId, connection: connectionId, look_ups: fence, result },
        'outcome looked up',
      );
    },
    followedUp({ transactionId, connectionId }, result) {
      const isOutcome = typeof result === 'object';
      metrics.lookUps.inc({ connection: connectionId, result: isOutcome ? result.kind : result });
      if (result === 'lapsed') return;
      observeAlarm(metrics, log, connectionId, isOutcome ? result : ALARMS[result], transactionId);
    },
    failed(error) {
      log.error({ err: error }, 'recovery failed; it will retry');
    },
  };
}

/** Counts providers' notifications, and logs forged ones. */
export function observeNotifications(
  metrics: Metrics,
  log: Logger,
): ReceiveDeps['notifications'] & ProcessDeps['processed'] {
  return {
    received(connection, kind) {
      metrics.notifications.inc({ connection, result: kind });
      if (kind === 'forged') log.warn({ connection }, 'forged notification refused');
    },
    settled(connection, result) {
      if (result === 'waiting') return;
      metrics.notifications.inc({ connection, result });
    },
    failed(error) {
      log.error({ err: error }, 'a notification could not be processed; it is tried again');
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
      log.error({ err: error }, 'open outcomes could not be counted; it is tried again');
    },
  };
}
