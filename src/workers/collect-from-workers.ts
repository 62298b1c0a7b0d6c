import type { Worker } from 'node:cluster';
import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client';
import type { CollectedMetrics, FromParent, FromWorker } from './messages.ts';

/** The combined metrics of all workers. */
export type Collection = {
  /** Handles a message from a worker that requests metrics or has collected its own. */
  received(worker: Worker, message: FromWorker): void;
  ended(worker: Worker): void;
};

/** Time limit for a worker's metrics, after which its previous metrics are used. */
const COLLECT_TIMEOUT_MS = 1_000;

/**
 * Sums the metrics of the workers. The last counts of a worker that has exited stay in the sums, since a falling sum
 * would be taken for a restart and counted twice.
 */
export function collectFromWorkers(workers: ReadonlySet<Worker>): Collection {
  const own = createOwnMetrics(workers);
  const latest = new Map<Worker, CollectedMetrics>();
  let gone: Promise<CollectedMetrics> = Promise.resolve([]);
  let collections = 0;
  const waiting = new Map<number, { readonly missing: Set<Worker>; readonly done: () => void }>();

  function collect(): Promise<void> {
    const collection = collections++;
    const missing = new Set([...workers].filter((worker) => worker.isConnected()));
    return new Promise((resolve) => {
      const tooLate = setTimeout(() => waiting.get(collection)?.done(), COLLECT_TIMEOUT_MS);
      const done = () => {
        clearTimeout(tooLate);
        waiting.delete(collection);
        resolve();
      };
      waiting.set(collection, { missing, done });
      for (const worker of missing) tell(worker, { kind: 'collect', collection });
      if (missing.size === 0) done();
    });
  }

  function arrived(worker: Worker, collection: number): void {
    const wait = waiting.get(collection);
    wait?.missing.delete(worker);
    if (wait?.missing.size === 0) wait.done();
  }

  async function text(): Promise<string> {
    await collect();
    return aggregate([await own.inJson(), await gone, ...latest.values()]).metrics();
  }

  return {
    received(worker, message) {
      if (message.kind === 'collected') {
        // A worker's last message may arrive after its exit, when its counts are already in `gone`.
        if (workers.has(worker)) latest.set(worker, message.metrics);
        arrived(worker, message.collection);
      } else if (message.kind === 'give metrics') {
        void text().then((metrics) => tell(worker, { kind: 'metrics', asked: message.asked, text: metrics }));
      }
    },
    ended(worker) {
      const counted = latest.get(worker)?.filter(({ type }) => COUNTED.has(String(type))) ?? [];
      latest.delete(worker);
      for (const collection of waiting.keys()) arrived(worker, collection);
      own.ends.inc();
      gone = gone.then((before) => inJson(aggregate([before, counted])));
    },
  };
}

const COUNTED: ReadonlySet<string> = new Set(['counter', 'histogram']);

async function inJson(registry: Registry): Promise<CollectedMetrics> {
  return (await registry.getMetricsAsJSON()) as CollectedMetrics;
}

function aggregate(all: readonly CollectedMetrics[]): Registry {
  return AggregatorRegistry.aggregate(all as unknown as object[][] as never);
}

function createOwnMetrics(workers: ReadonlySet<Worker>) {
  const registry = new Registry();
  const registers = [registry];
  new Gauge({
    name: 'workers',
    help: 'Live worker processes of this replica. Only with WORKERS above 1.',
    registers,
    collect() {
      this.set(workers.size);
    },
  });
  const ends = new Counter({
    name: 'worker_ends_total',
    help: 'Worker processes that exited by themselves and were replaced. Only with WORKERS above 1.',
    registers,
  });
  return { ends, inJson: () => inJson(registry) };
}

/** Sends a message, unless the worker is exiting. */
export function tell(worker: Worker, message: FromParent): void {
  if (worker.isConnected()) worker.send(message, () => {});
}
