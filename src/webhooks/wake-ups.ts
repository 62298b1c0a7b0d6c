import { setTimeout as sleep } from 'node:timers/promises';
import { SHORTEST_PAUSE_MS } from '#src/repeat.ts';
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
/** Longest wait of the timer: Node takes a delay beyond 24 days for one of a millisecond. */
const LONGEST_TIMER_MS = 3_600_000;

/**
 * Starts to drain woken webhooks in order of arrival, with at most one drain per webhook. The delivery rows are the
 * queue: they hold the due times and leases. A wake-up exists only in memory; losing it costs only time.
 */
export function startWakeUps({ concurrency, drain }: WakeUpOptions): WakeUps {
  const waiting = new Map<string, { readonly webhook: WebhookName; readonly dueMs: number }>();
  const running = new Map<string, Promise<void>>();
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  function wake(webhooks: readonly WebhookName[], inS = 0): void {
    const dueMs = performance.now() + inS * 1_000;
    for (const webhook of webhooks) {
      const before = waiting.get(webhook.webhookId);
      if (before ? before.dueMs <= dueMs : waiting.size >= MAX_WAITING) continue;
      waiting.delete(webhook.webhookId);
      waiting.set(webhook.webhookId, { webhook, dueMs });
    }
    beginDue();
  }

  function beginDue(): void {
    clearTimeout(timer);
    if (isStopped) return;
    const nowMs = performance.now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [id, { webhook, dueMs }] of waiting) {
      // Another drain starts when one ends.
      if (running.size >= concurrency) return;
      if (running.has(id)) continue;
      if (dueMs <= nowMs) begin(webhook);
      else nextMs = Math.min(nextMs, dueMs);
    }
    if (nextMs < Number.POSITIVE_INFINITY) {
      timer = setTimeout(beginDue, Math.min(nextMs - nowMs, LONGEST_TIMER_MS));
    }
  }

  function begin(webhook: WebhookName): void {
    waiting.delete(webhook.webhookId);
    const draining = drain(webhook).then(async (inS) => {
      if (!isStopped) await sleep(SHORTEST_PAUSE_MS);
      running.delete(webhook.webhookId);
      wake(inS === undefined ? [] : [webhook], inS);
    });
    running.set(webhook.webhookId, draining);
  }

  return {
    wake,
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await Promise.all(running.values());
    },
  };
}
