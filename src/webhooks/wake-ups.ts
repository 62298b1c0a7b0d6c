import { repeat } from '#src/repeat.ts';
import type { Database } from '#src/store/database.ts';
import { openJobQueue } from '#src/store/job-queue.ts';
import type { WebhookName } from '#src/store/outbox.ts';

/** Records which webhooks have deliveries to send, and when; some replica then drains them. */
export type WakeUps = {
  /** Schedules a drain of each of these webhooks, at once or in some seconds. */
  wake(webhooks: readonly WebhookName[], inS?: number): Promise<void>;
  /** Removes jobs that dead replicas have left behind. */
  removeAbandoned(): Promise<void>;
  /** Takes no more jobs; resolves once the drains under way have ended. */
  stop(): Promise<void>;
};

/** Dependencies of draining webhooks. */
export type WakeUpOptions = {
  readonly database: Database;
  /** Number of webhooks that a replica drains at once. */
  readonly concurrency: number;
  /** Polling interval of the queue while this replica adds nothing to it. */
  readonly intervalMs: number;
  readonly drain: (webhook: WebhookName) => Promise<void>;
  readonly onError: (error: unknown) => void;
};

/**
 * Starts to take wake-ups from the job queue. A webhook has at most two jobs, one that is due and one for later. A job
 * is never the only trace of a delivery: losing one costs only time.
 */
export async function startWakeUps(options: WakeUpOptions): Promise<WakeUps> {
  const { concurrency, onError } = options;
  const queue = await openJobQueue<WebhookName>(options.database, 'webhook');
  const running = new Set<Promise<void>>();
  let look = Promise.withResolvers<void>();

  const run = async ({ id, data }: { id: string; data: WebhookName }) => {
    await options.drain(data);
    await queue.remove(id);
  };
  const take = async () => {
    look = Promise.withResolvers<void>();
    const free = concurrency - running.size;
    // A drain that ends looks again.
    if (free === 0) return;
    const jobs = await queue.take(free);
    for (const job of jobs) {
      const one = run(job)
        .catch(onError)
        .finally(() => {
          running.delete(one);
          if (running.size === concurrency - 1) look.resolve();
        });
      running.add(one);
    }
    if (jobs.length === free) look.resolve();
  };
  const { intervalMs } = options;
  const stop = repeat(take, { intervalMs, sooner: () => look.promise, onError });

  return {
    async wake(webhooks, inS = 0) {
      const when = inS > 0 ? 'later' : 'now';
      const jobs = webhooks.map((data) => ({ key: `${data.webhookId} ${when}`, data }));
      await queue.add(jobs, inS);
      if (inS <= 0) look.resolve();
    },
    removeAbandoned: () => queue.removeAbandoned(),
    async stop() {
      await stop();
      await Promise.all(running);
    },
  };
}
