import type { Logger } from 'pino';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { MoneyAlarm } from '#src/payments/model/change.ts';
import { amountReceivedOf } from '#src/payments/model/record.ts';
import type { FetchedReport } from '#src/settlement/fetch-settlement.ts';
import type { DifferenceAlarm } from '#src/store/tables/settlement-differences.ts';
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

const MONEY_ALARMS: Readonly<Record<MoneyAlarm, string>> = {
  late_payment: 'a payment was paid after it had expired, was canceled or was declined',
  underpaid: 'a payment expired although a part of it was paid; give the money back',
  overpaid: 'more was paid than the payment asks for; give the excess back',
};

/** Counts and logs a payment whose money somebody has to decide about. */
export function observeMoneyAlarm(metrics: Metrics, log: Logger, alarm: MoneyAlarm, payment: Payment): void {
  const connection = payment.transactions?.connectionData?.id ?? '';
  if (alarm === 'late_payment') metrics.latePayments.inc({ connection });
  else metrics.unequalTransfers.inc({ connection, alarm });
  const about = { alarm, payment_id: payment.id, account_id: payment.accountId };
  log.warn({ ...about, ...receivedOf(payment) }, MONEY_ALARMS[alarm]);
}

/** Returns the amount that was to be paid and the one that arrived, if they differ. */
function receivedOf(payment: Payment) {
  const { amount } = payment;
  const amountReceived = amountReceivedOf(payment);
  if (!amountReceived) return {};
  return { amount: amount?.value?.value, amount_received: amountReceived, currency: amount?.currency };
}

/**
 * Creates a function that counts and logs a payment that a provider settled although the record has it as unsuccessful or
 * open.
 */
export function observeSettlement(metrics: Metrics, log: Logger): (alarm: DifferenceAlarm) => void {
  return ({ accountId, connectionId: connection, paymentId, subject, detail }) => {
    metrics.settledAgainstRecord.inc({ connection });
    log.error(
      { connection, payment_id: paymentId, transaction_id: subject, account_id: accountId, detail },
      'a provider settled a payment that the record has as unsuccessful or open',
    );
  };
}

/** Counts and logs what became of the daily fetches of settlement reports. */
export function observeFetches(metrics: Metrics, log: Logger) {
  return {
    fetched(connection: string, { period, result }: FetchedReport): void {
      const lines = result === 'already imported' ? 0 : result.added;
      log.info({ connection, ...period, lines }, 'a settlement report was fetched');
    },
    failed(connection: string, err: unknown): void {
      metrics.settlementFetchFailures.inc({ connection });
      log.warn(
        { connection, err },
        'a settlement report could not be fetched; it will be retried in an hour',
      );
    },
  };
}

/** Starts the counters at 0: Prometheus sees no increase in a series whose first value is 1. */
export function showAlarms(metrics: Metrics, connectionIds: Iterable<string>): void {
  for (const connection of connectionIds) {
    metrics.providerAlarms.inc({ connection }, 0);
    metrics.latePayments.inc({ connection }, 0);
    metrics.settledAgainstRecord.inc({ connection }, 0);
    metrics.settlementFetchFailures.inc({ connection }, 0);
    for (const alarm of ['underpaid', 'overpaid']) metrics.unequalTransfers.inc({ connection, alarm }, 0);
  }
}
