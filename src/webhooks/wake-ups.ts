import { type Rest, repeat } from '#src/repeat.ts';
import type { WebhookName } from '#src/store/tables/outbox.ts';

/** Decides when this replica drains which webhook. */
export type WakeUps = {
  /**
   * Drains each of these webhooks now, or in `inS` seconds, but not within the shortest pause after its last drain. If a
   * webhook's drain is already waiting, an earlier time replaces its time.
   */
  wake(webhooks: readonly WebhookName[], inS?: number): void;
  /** Starts no more drains. Resolves when the drains in progress have ended. */
  stop(): Promise<void>;
};

/** Options for draining webhooks. */
export type WakeUpOptions = {
  /** Number of webhooks that a replica drains concurrently. */
  readonly concurrency: number;
  /** Drains a webhook. Never rejects. @returns the seconds until it should be drained again; undefined for never. */
  readonly drain: (webhook: WebhookName) => Promise<number | undefined>;
};

/** Maximum number of webhooks waiting in a replica. The search for overdue deliveries finds the rest. */
const MAX_WAITING = 10_000;

/**
 * Starts to drain woken webhooks in order of arrival, with at most one drain per webhook. The delivery rows are the
 * queue: they hold the due times and leases. A wake-up exists only in memory; losing it costs only time.
 */
export function startWakeUps({ concurrency, drain }: WakeUpOptions): WakeUps {
  const waiting = new Map<string, { readonly webhook: WebhookName; readonly dueMs: number }>();
  const running = new Map<string, Promise<void>>();

  function wake(webhooks: readonly WebhookName[], inS = 0): void {
    const dueMs = performance.now() + inS * 1_000;
    for (const webhook of webhooks) {
      const before = waiting.get(webhook.webhookId);
      if (before ? before.dueMs <= dueMs : waiting.size >= MAX_WAITING) continue;
      waiting.delete(webhook.webhookId);
      waiting.set(webhook.webhookId, { webhook, dueMs });
    }
    loop.wake();
  }

  function beginDue(): Rest {
    const nowMs = performance.now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [id, { webhook, dueMs }] of waiting) {
      // The end of a drain starts another run.
      if (running.size >= concurrency) break;
      if (running.has(id)) continue;
      if (dueMs <= nowMs) begin(webhook);
      else nextMs = Math.min(nextMs, dueMs);
    }
    return { againInMs: nextMs - nowMs };
  }

  function begin(webhook: WebhookName): void {
    waiting.delete(webhook.webhookId);
    const draining = drain(webhook).then((inS) => {
      running.delete(webhook.webhookId);
      wake(inS === undefined ? [] : [webhook], inS);
    });
    running.set(webhook.webhookId, draining);
  }

  const loop = repeat(beginDue, {});

  return {
    wake,
    async stop() {
      await loop.stop();
      await Promise.all(running.values());
    },
  };
}
