import type { Worker } from 'node:cluster';
import { Counter, Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { type Collection, collectFromWorkers } from '#src/workers/collect-from-workers.ts';
import type { CollectedMetrics, FromParent } from '#src/workers/messages.ts';

it('a worker’s counts are included in the sum once, even if its last metrics arrive after the worker exits', async () => {
  const workers = new Set<Worker>();
  const collection: Collection = collectFromWorkers(workers);
  const ended = addWorker(workers, collection, await counted(3));
  const asking = addWorker(workers, collection, await counted(4));
  expect(await asking.metrics()).toContain('\ncalls_total 7\n');

  workers.delete(ended.worker);
  collection.ended(ended.worker);
  collection.received(ended.worker, { kind: 'collected', collection: 0, metrics: await counted(3) });
  expect(await asking.metrics()).toContain('\ncalls_total 7\n');
});

async function counted(calls: number): Promise<CollectedMetrics> {
  const registry = new Registry();
  new Counter({ name: 'calls_total', help: 'Calls.', registers: [registry] }).inc(calls);
  return (await registry.getMetricsAsJSON()) as CollectedMetrics;
}

/** Adds a worker that sends the same metrics for every request. */
function addWorker(workers: Set<Worker>, collection: Collection, metrics: CollectedMetrics) {
  let told = (_text: string) => {};
  const send = (message: FromParent) => {
    if (message.kind === 'metrics') told(message.text);
    if (message.kind !== 'collect') return;
    queueMicrotask(() => collection.received(worker, { ...message, kind: 'collected', metrics }));
  };
  const worker = { isConnected: () => true, send } as unknown as Worker;
  workers.add(worker);
  return {
    worker,
    metrics: () =>
      new Promise<string>((resolve) => {
        told = resolve;
        collection.received(worker, { kind: 'give metrics', asked: 1 });
      }),
  };
}
