import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { collectFromWorkers, tell } from './collect-from-workers.ts';
import type { FromWorker } from './messages.ts';
import type { Storage } from './storage.ts';

/** Options for the workers. */
export type WorkersOptions = {
  readonly count: number;
  /** Passed to each worker. This process may run the database itself. */
  readonly storage: Storage;
  readonly log: Logger;
};

/** Processes that serve requests on one port. */
export type Workers = {
  readonly address: string;
  /** Warnings that the workers reported when they were ready. */
  readonly warnings: readonly string[];
  /** Makes every worker reload its catalogue. */
  reload(): void;
  /** Lets every worker finish its calls in progress. @returns true if all workers exited cleanly. */
  stop(): Promise<boolean>;
};

/** Thrown for a worker that failed during startup and has already reported why. */
export class WorkerFailedError extends Error {
  override readonly name = 'WorkerFailedError';
}

/** A worker that exits after at least this time is assumed to have exited by accident, and is replaced at once. */
const SETTLED_MS = 10_000;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;

/**
 * Starts worker processes and replaces any that exit. This process listens and hands each new connection to the next
 * worker (node:cluster), so no traffic passes through it. If this process dies, its workers exit at once.
 *
 * @throws WorkerFailedError if a worker exits before all of them are ready.
 */
export async function startWorkers({ count, storage, log }: WorkersOptions): Promise<Workers> {
  // The keys are bytes in a map, which JSON cannot represent.
  cluster.setupPrimary({ serialization: 'advanced' });
  const workers = new Set<Worker>();
  const collection = collectFromWorkers(workers);
  let isStarted = false;
  let isStopping = false;
  let isInOrder = true;
  let pauseMs = FIRST_PAUSE_MS;

  function start(): Promise<Extract<FromWorker, { kind: 'serving' }>> {
    const worker = cluster.fork();
    const startedAtMs = performance.now();
    let serves = false;
    workers.add(worker);
    worker.on('error', (err) => {
      const { pid } = worker.process;
      log.error({ err, worker: pid }, 'a worker cannot be reached');
      // A process that could not be started does not emit an exit event itself.
      if (pid === undefined) worker.process.emit('exit', 1, null);
    });
    worker.once('exit', (code, signal) => {
      workers.delete(worker);
      collection.ended(worker);
      // A worker that is still starting may not handle signals yet, and has no calls in progress.
      isInOrder &&= code === 0 || !serves;
      if (isStarted && !isStopping) void replace({ worker: worker.process.pid, code, signal }, startedAtMs);
    });
    return new Promise((resolve, reject) => {
      worker.once('exit', () => reject(new WorkerFailedError('a worker exited before it was ready')));
      worker.on('message', (message: FromWorker) => {
        if (message.kind === 'give storage') tell(worker, { kind: 'storage', storage });
        else if (message.kind === 'serving') {
          serves = true;
          resolve(message);
        } else collection.received(worker, message);
      });
    });
  }

  async function replace(ended: object, startedAtMs: number): Promise<void> {
    log.error(ended, 'a worker exited and is being replaced');
    pauseMs =
      performance.now() - startedAtMs > SETTLED_MS
        ? 0
        : Math.min(2 * pauseMs || FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
    await sleep(pauseMs, undefined, { ref: false });
    // A worker that fails reports why, and its exit starts the next one.
    if (!isStopping) await start().catch(() => {});
  }

  async function stop(): Promise<boolean> {
    isStopping = true;
    isInOrder = true;
    const ending = [...workers].map((worker) => once(worker, 'exit'));
    for (const worker of workers) worker.process.kill('SIGTERM');
    await Promise.all(ending);
    return isInOrder;
  }

  try {
    const serving = await Promise.all(Array.from({ length: count }, start));
    isStarted = true;
    return {
      address: serving[0]?.address ?? '',
      warnings: [...new Set(serving.flatMap(({ warnings }) => warnings))],
      reload() {
        for (const worker of workers) worker.process.kill('SIGHUP');
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
