import type { Logger } from 'pino';
import type { Config } from '#src/config.ts';
import { createMetrics } from '#src/observe/metrics.ts';
import {
  observeCatalogue,
  observeDatabase,
  observeDeliveries,
  observePayments,
  observeReloads,
  observeVault,
} from '#src/observe/observe.ts';
import { observeFetches, observeSettlement } from '#src/observe/observe-alarm.ts';
import { observeChecks, observeNotifications, observeOpenOutcomes } from '#src/observe/observe-checks.ts';
import { observeClock } from '#src/observe/observe-clock.ts';
import { NO_TRACING, type Tracing } from '#src/observe/tracing.ts';
import type { Database } from '#src/store/engine/database.ts';
import type { CardVault } from '#src/vault/card-vault.ts';

/** Observers of one service, one for each subject. They feed its metrics, traces and log. */
export type Observers = Awaited<ReturnType<typeof createObservers>>;

/** Creates the observers of a service. */
export async function createObservers({ otlpEndpoint }: Pick<Config, 'otlpEndpoint'>, log: Logger) {
  const metrics = createMetrics();
  const tracing = await openTracing(otlpEndpoint);
  return {
    log,
    metrics,
    tracing,
    database: (database: Database) => observeDatabase(database, metrics, tracing),
    vault: (vault: CardVault) => observeVault(vault, log),
    catalogue: observeCatalogue(log),
    reloaded: observeReloads(metrics, log),
    payments: observePayments(metrics, tracing, log),
    deliveries: observeDeliveries(metrics, log),
    notifications: observeNotifications(metrics, log),
    checked: observeChecks(metrics, log),
    clock: observeClock(metrics, log),
    onSettlementAlarm: observeSettlement(metrics, log),
    settlementFetches: observeFetches(metrics, log),
    openOutcomes: observeOpenOutcomes(metrics, log),
    onFollowError: (err: unknown) =>
      log.warn({ err }, 'the check of a wallet enrollment failed; it will be retried'),
    onSweepError: (err: unknown) =>
      log.warn(
        { err },
        'deleting aged rows, adding up hourly totals or matching settlement reports failed; it will be retried',
      ),
  };
}

/** Loads OpenTelemetry only if spans are exported: it would be a fifth of the code loaded at startup. */
async function openTracing(otlpEndpoint: string | undefined): Promise<Tracing> {
  if (!otlpEndpoint) return NO_TRACING;
  return (await import('#src/observe/otlp-tracing.ts')).createTracing(otlpEndpoint);
}
