import type { Logger } from 'pino';
import type { Config } from '#src/config.ts';
import { createFigures, type Figures } from '#src/dashboard/figures.ts';
import { createMetrics } from '#src/observe/metrics.ts';
import {
  observeCatalogue,
  observeDatabase,
  observeDeliveries,
  observePayments,
  observeReloads,
  observeVault,
} from '#src/observe/observe.ts';
import { observeNotifications, observeOpenOutcomes, observeRecovery } from '#src/observe/observe-recovery.ts';
import { NO_TRACING, type Tracing } from '#src/observe/tracing.ts';
import type { PaymentObserver } from '#src/payments/create-payment.ts';
import type { OpenOutcomesObserver } from '#src/payments/open-outcomes.ts';
import type { Database } from '#src/store/database.ts';
import type { CardVault } from '#src/vault/card-vault.ts';
import type { DeliveryObserver } from '#src/webhooks/deliver.ts';

/** Watchers of one service: its metrics, traces, log and the dashboard's figures, one observer for each subject. */
export type Observers = Awaited<ReturnType<typeof createObservers>>;

/** Creates the watchers of a service. */
export async function createObservers({ otlpEndpoint }: Pick<Config, 'otlpEndpoint'>, log: Logger) {
  const metrics = createMetrics();
  const tracing = await openTracing(otlpEndpoint);
  const figures = createFigures();
  return {
    log,
    metrics,
    tracing,
    figures,
    database: (database: Database) => observeDatabase(database, metrics, tracing),
    vault: (vault: CardVault) => observeVault(vault, log),
    catalogue: observeCatalogue(log),
    reloaded: observeReloads(metrics, log),
    payments: withPaid(figures, observePayments(metrics, tracing, log)),
    deliveries: withDelivered(figures, observeDeliveries(metrics, log)),
    notifications: observeNotifications(metrics, log),
    recovery: observeRecovery(metrics, log),
    openOutcomes: withCounted(figures, observeOpenOutcomes(metrics, log)),
    onFollowError: (err: unknown) =>
      log.warn({ err }, 'asking about a wallet that is being enrolled failed; it is tried again'),
    onSweepError: (err: unknown) =>
      log.warn({ err }, 'deleting expired one-time tokens failed; it is tried again'),
    onBackfillError: (err: unknown) =>
      log.warn({ err }, 'filling in what the release before did not write failed'),
  };
}

/** Loads OpenTelemetry only if spans are sent: it is a fifth of all that the service loads at its start. */
async function openTracing(otlpEndpoint: string | undefined): Promise<Tracing> {
  if (!otlpEndpoint) return NO_TRACING;
  return (await import('#src/observe/otlp-tracing.ts')).createTracing(otlpEndpoint);
}

/** Makes an observer of payments that also counts them for the dashboard. */
function withPaid<Observer extends Pick<PaymentObserver, 'finished'>>(
  figures: Figures,
  observer: Observer,
): Observer {
  return {
    ...observer,
    finished(payment, isLearnedLater) {
      observer.finished(payment, isLearnedLater);
      figures.paid(payment, isLearnedLater);
    },
  };
}

/** Makes an observer of deliveries that also counts them for the dashboard. */
function withDelivered(figures: Figures, observer: DeliveryObserver): DeliveryObserver {
  return {
    ...observer,
    delivered(webhook, attempt) {
      observer.delivered(webhook, attempt);
      figures.delivered(attempt.result);
    },
  };
}

/** Makes an observer of open outcomes that also keeps their count for the dashboard. */
function withCounted(figures: Figures, observer: OpenOutcomesObserver): OpenOutcomesObserver {
  return {
    ...observer,
    counted(outcomes) {
      observer.counted(outcomes);
      figures.counted(outcomes);
    },
  };
}
