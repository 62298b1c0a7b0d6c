import cluster from 'node:cluster';
import type { CollectedMetrics, FromParent, FromWorker } from './messages.ts';
import type { Storage } from './storage.ts';

/** A worker's channel to its parent. */
export type Parent = {
  /** Requests the database and the keys. */
  storage(): Promise<Storage>;
  /** Reports that this worker is ready to serve requests. */
  serving(address: string, warnings: readonly string[]): void;
  /** Registers the function that collects this worker's metrics when the parent requests them. */
  collectBy(collect: () => Promise<CollectedMetrics>): void;
  /** Returns the combined metrics of all workers in Prometheus' text format. */
  metrics(): Promise<string>;
};

/** Returns the channel to the parent; undefined in a process that is not a worker. */
export function parentOfWorker(): Parent | undefined {
  return cluster.isWorker ? createParent() : undefined;
}

function createParent(): Parent {
  const asking = new Map<number, (text: string) => void>();
  let asked = 0;
  let collect: () => Promise<CollectedMetrics> = async () => [];
  let gotStorage: (storage: Storage) => void = () => {};
  process.on('message', (message: FromParent) => {
    if (message.kind === 'storage') gotStorage(message.storage);
    else if (message.kind === 'metrics') {
      asking.get(message.asked)?.(message.text);
      asking.delete(message.asked);
    } else {
      const { collection } = message;
      void collect().then((metrics) => send({ kind: 'collected', collection, metrics }));
    }
  });
  return {
    storage: () =>
      new Promise((resolve) => {
        gotStorage = resolve;
        send({ kind: 'give storage' });
      }),
    serving: (address, warnings) => send({ kind: 'serving', address, warnings }),
    collectBy(collectOwn) {
      collect = collectOwn;
    },
    metrics: () =>
      new Promise((resolve) => {
        asked += 1;
        asking.set(asked, resolve);
        send({ kind: 'give metrics', asked });
      }),
  };
}

function send(message: FromWorker): void {
  process.send?.(message);
}
