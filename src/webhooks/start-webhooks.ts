import { AGAIN, repeat } from '#src/repeat.ts';
import { createSlots } from '#src/slots.ts';
import { listOverdueWebhooks, relayEvents, type WebhookName } from '#src/store/tables/outbox.ts';
import { closeDeliveries, getWebhook } from '#src/store/tables/webhooks.ts';
import { type DeliverDeps, type DeliverySettings, drainWebhook } from './deliver.ts';
import { startWakeUps, type WakeUpOptions } from './wake-ups.ts';

/** Settings for a replica's webhooks. */
export type WebhookSettings = DeliverySettings & {
  /** Number of webhooks drained concurrently. */
  readonly concurrency: number;
  /** Maximum number of failing webhooks among those, so that the others never wait for them. */
  readonly failingConcurrency: number;
  /** Interval between searches for overdue deliveries; a delivery that is later than this counts as overdue. */
  readonly overdueIntervalMs: number;
};

/** The settings for production. */
export const DEFAULT_SETTINGS: Omit<WebhookSettings, 'allowPrivate'> = {
  timeoutMs: 10_000,
  leaseS: 30,
  perWebhook: 8,
  sliceMs: 20_000,
  concurrency: 64,
  failingConcurrency: 32,
  overdueIntervalMs: 5_000,
};

/** The running webhooks of a replica. */
export type Webhooks = {
  /** Relays the events in the outbox. */
  readonly eventWritten: () => void;
  /** Sends a webhook's due deliveries now. */
  readonly wake: (webhook: WebhookName) => void;
  /** Stops after the deliveries in progress. */
  stop(): Promise<void>;
};

/** Dependencies of a replica's webhooks. */
export type WebhookDeps = Omit<DeliverDeps, 'settings'> & {
  readonly settings: WebhookSettings;
};

const RELAY_BATCH = 200;
const FAILING_PAUSE_S = 5;

/**
 * Starts sending events. Any number of replicas may do so: an event is relayed once, a delivery is leased to one
 * replica at a time, and a dead replica's deliveries pass to another when their leases expire.
 */
export function startWebhooks(deps: WebhookDeps): Webhooks {
  const { database, settings, observer } = deps;
  const stop = new AbortController();
  const wakeUps = startWakeUps({
    concurrency: settings.concurrency,
    drain: createDrain(deps, stop.signal),
  });

  const relayWritten = async () => {
    const { relayed, webhooks } = await relayEvents(database, RELAY_BATCH);
    wakeUps.wake(webhooks);
    return relayed === RELAY_BATCH ? AGAIN : undefined;
  };
  const wakeOverdue = async () => {
    const lateS = settings.overdueIntervalMs / 1000;
    wakeUps.wake(await listOverdueWebhooks(database, lateS));
  };
  const onError = observer.failed;
  const relay = repeat(relayWritten, { onError });
  const overdue = repeat(wakeOverdue, { intervalMs: settings.overdueIntervalMs, onError });

  return {
    eventWritten: relay.wake,
    wake: (webhook) => wakeUps.wake([webhook]),
    async stop() {
      stop.abort();
      await Promise.all([relay.stop(), overdue.stop()]);
      await wakeUps.stop();
    },
  };
}

/** Returns a function that drains a webhook. Failing webhooks get only some of the slots. */
function createDrain(deps: WebhookDeps, stop: AbortSignal): WakeUpOptions['drain'] {
  const failing = createSlots(deps.settings.failingConcurrency);

  return async (name) => {
    const { accountId, webhookId } = name;
    try {
      const webhook = await getWebhook(deps.database, accountId, webhookId);
      if (!webhook?.active) {
        await closeDeliveries(deps.database, name);
        return undefined;
      }
      const release = webhook.failingSince === undefined ? () => {} : failing.take();
      if (!release) return FAILING_PAUSE_S;
      return await drainWebhook(deps, webhook, stop).finally(release);
    } catch (error) {
      // The search for overdue deliveries will find the webhook again.
      deps.observer.failed(error);
      return undefined;
    }
  };
}
