import type { Logger } from 'pino';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { Metrics } from './metrics.ts';

/**
 * Counts and logs an outcome that needs manual review: a different amount, currency or reference, or a second charge.
 * Does nothing for any other outcome.
 */
export function observeAlarm(
  metrics: Metrics,
  log: Logger,
  outcome: Outcome,
  {
    connectionId: connection,
    transactionId,
  }: { readonly connectionId: string; readonly transactionId?: string | undefined },
): void {
  if (!('alarm' in outcome && outcome.alarm)) return;
  const detail = outcome.kind === 'unknown' ? outcome.detail : outcome.providerData.responseMessage;
  metrics.providerAlarms.inc({ connection });
  log.error(
    { connection, transaction_id: transactionId, detail },
    "a provider's response needs manual review",
  );
}

/** Counts and logs a payment that was paid after it had expired, was canceled or was declined. */
export function observeLatePayment(metrics: Metrics, log: Logger, payment: Payment): void {
  metrics.latePayments.inc({ connection: payment.transactions?.connectionData?.id ?? '' });
  const about = { alarm: 'late_payment', payment_id: payment.id, account_id: payment.accountId };
  log.warn(about, 'a payment was paid after it had expired, was canceled or was declined');
}

/** Starts the counters at 0: Prometheus sees no increase in a series whose first value is 1. */
export function showAlarms(metrics: Metrics, connectionIds: Iterable<string>): void {
  for (const connection of connectionIds) {
    metrics.providerAlarms.inc({ connection }, 0);
    metrics.latePayments.inc({ connection }, 0);
  }
}
