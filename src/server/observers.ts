import type { Logger } from 'pino';
import type { Config } from '#src/config.ts';
import { createFigures } from '#src/dashboard/figures.ts';
import { createMetrics } from '#src/observe/metrics.ts';
import {
  observeCatalogue,
  observeDatabase,
  observeDeliveries,
  observePayments,
  observeReloads,
  observeVault,
} from '#src/observe/observe.ts';
import { observeClock } from '#src/observe/observe-clock.ts';
import { observeNotifications, observeOpenOutcomes, observeRecovery } from '#src/observe/observe-recovery.ts';
import { NO_TRACING, type Tracing } from '#src/observe/tracing.ts';
import type { Database } from '#src/store/database.ts';
import type { CardVault } from '#src/vault/card-vault.ts';

/** Watchers of one service: its metrics, traces, log and the dashboard's figures, one observer for each subject. */
export type Observers = Awaited<ReturnType<typeof createObservers>>;

/** Creates the watchers of a service. */
export async function createObservers({ otlpEndpoint }: Pick<Config, 'otlpEndpoint'>, log: Logger) {
  const metrics = createMetrics();
  const tracing = await openTracing(otlpEndpoint);
  const figures = createFigures();
  const payments = observePayments(metrics, tracing, log);
  const deliveries = observeDeliveries(metrics, log);
  const openOutcomes = observeOpenOutcomes(metrics, log);
  return {
    log,
    metrics,
    tracing,
    figures,
    database: (database: Database) => observeDatabase(database, metrics, tracing),
    vault: (vault: CardVault) => observeVault(vault, log),
    catalogue: observeCatalogue(log),
    reloaded: observeReloads(metrics, log),
    // The dashboard counts these as well.
    payments: { ...payments, finished: both(payments.finished, figures.paid) },
    deliveries: {
      ...deliveries,
      delivered: both(deliveries.delivered, (_webhook, { result }) => figures.delivered(result)),
    },
    notifications: observeNotifications(metrics, log),
    recovery: observeRecovery(metrics, log),
    clock: observeClock(metrics, log),
    openOutcomes: { ...openOutcomes, counted: both(openOutcomes.counted, figures.counted) },
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

/** Makes a function that calls two. */
function both<Args extends readonly unknown[]>(one: (...args: Args) => void, other: (...args: Args) => void) {
  return (...args: Args): void => {
    one(...args);
    other(...args);
  };
}
