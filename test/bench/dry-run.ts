import pg from 'pg';
import { readArguments } from '#src/commands/command-line.ts';
import { positive } from './arguments.ts';
import type { LoopResult, Plan } from './closed-loop.ts';
import type { LoadOrder } from './load.ts';
import { type EndedCall, type Offer, openClient, openLoop, quantile } from './open-loop.ts';
import { machineName } from './proc.ts';
import { newRunId } from './request.ts';
import { startService } from './service.ts';
import { cleanUpAfter, type Ending, startSurroundings } from './surroundings.ts';
import { startWorker } from './worker.ts';

const USAGE = `Usage: node test/bench/dry-run.ts [--per-second 200 --seconds 8 --rounds 5 --routes 100 --payments 10000]

Offers payments at a steady rate, alternately alone and beside dry runs of a changed catalogue, one after another. It
prints the latency of the payments, by how much dry runs lengthen it, and how long a dry run takes.`;

const { values } = readArguments(USAGE, {
  options: {
    'per-second': { type: 'string', default: '200' },
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '5' },
    routes: { type: 'string', default: '100' },
    payments: { type: 'string', default: '10000' },
  },
});
const perSecond = positive('per-second', values['per-second']);
const forMs = positive('seconds', values.seconds) * 1000;
const rounds = positive('rounds', values.rounds);
const routes = positive('routes', values.routes);
const payments = positive('payments', values.payments);

const OPERATOR_KEY = 'op_bench_0123456789abcdef0123456789abcdef';
/** Payments before the first measurement, so that it measures compiled code and there are payments to route again. */
const LEAD_IN: Plan = { concurrency: 16, leadInMs: 0, measuredMs: 5_000 };
const SLOTS = 1_000;

await cleanUpAfter(bench);

async function bench(ending: Ending): Promise<void> {
  const { home, databaseUrl, provider } = await startSurroundings('dry-run', ending);
  const service = await startService({
    ...{ name: 'dry-run', home, databaseUrl, nodeOptions: [] },
    providerPort: provider.port,
    routesBefore: routes - 1,
    environment: { OPERATOR_KEYS: OPERATOR_KEY },
  });
  ending.push(service.stop);
  const { port } = service;
  const loading = await startWorker<LoadOrder, LoopResult>('load.ts');
  ending.push(loading.stop);
  const order = () => ({ protocol: 'rest', port, runId: newRunId(), plan: LEAD_IN }) as const;
  for (let stored = 0; stored < payments; ) stored += (await loading.ask(order())).sent;
  // As autovacuum does, which a new database may not have seen yet.
  await analyze(databaseUrl);
  await dryRun(port);
  const [alone, beside]: [EndedCall[][], EndedCall[][]] = [[], []];
  const durationsMs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    alone.push(await load(port, { perSecond, forMs }));
    let isOver = false;
    const trying = (async () => {
      while (!isOver) durationsMs.push(await dryRun(port));
    })();
    beside.push(await load(port, { perSecond, forMs }));
    isOver = true;
    await trying;
  }
  console.log(`${machineName()}, ${perSecond} payments a second, ${routes} routes`);
  console.table({ alone: row(alone), 'beside dry runs': row(beside) });
  const growth = rowOf(beside, 0.99) - rowOf(alone, 0.99);
  console.log(`The 99th percentile grows by ${growth.toFixed(2)} ms (median of the rounds).`);
  console.log(
    `${durationsMs.length} dry runs of ${payments} payments took ${Math.round(quantile(durationsMs, 0.5))} ms (median).`,
  );
}

async function analyze(databaseUrl: string): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query('ANALYZE');
  await client.end();
}

async function load(port: number, offer: Pick<Offer, 'perSecond' | 'forMs'>): Promise<EndedCall[]> {
  const client = await openClient('rest', port, SLOTS, newRunId());
  const calls = await openLoop({ ...offer, slots: SLOTS }, client.send);
  client.close();
  const failed = calls.filter(({ ok }) => !ok).length;
  if (failed > 0) throw new Error(`${failed} of ${calls.length} failed`);
  return calls;
}

/** Tries a change on the newest payments. @returns how long it took, in milliseconds. */
async function dryRun(port: number): Promise<number> {
  const startMs = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}/v1/catalogue`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json', 'operator-key': OPERATOR_KEY },
    body: JSON.stringify({ remove_route: 2, validate_only: true, dry_run_payments: payments }),
  });
  const json = (await response.json()) as { dry_run?: { examined: number; unchanged: number } };
  const { examined = 0, unchanged } = json.dry_run ?? {};
  if (examined !== payments || unchanged !== payments) throw new Error(JSON.stringify(json).slice(0, 500));
  return performance.now() - startMs;
}

function row(calls: readonly EndedCall[][]) {
  return {
    payments: calls.flat().length,
    'p50 ms': rowOf(calls, 0.5),
    'p99 ms': rowOf(calls, 0.99),
    'p99.9 ms': rowOf(calls, 0.999),
  };
}

/** Returns the median of the rounds' quantiles. */
function rowOf(calls: readonly EndedCall[][], q: number): number {
  return quantile(
    calls.map((round) =>
      quantile(
        round.map(({ latencyMs }) => latencyMs),
        q,
      ),
    ),
    0.5,
  );
}
