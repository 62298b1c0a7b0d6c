import pg from 'pg';
import { readArguments } from '#src/commands/command-line.ts';
import { createProgress } from '#src/commands/progress.ts';
import { positive } from './arguments.ts';
import { openBooks } from './books.ts';
import type { LoopResult } from './closed-loop.ts';
import type { LoadOrder } from './load.ts';
import { cpuMs, cpuOfTreeMs, machineName, peakResidentMb, residentMb } from './proc.ts';
import { newRunId } from './request.ts';
import { startService } from './service.ts';
import { addAccounts, storePayments } from './stored-payments.ts';
import { cleanUpAfter, type Ending, startSurroundings } from './surroundings.ts';
import { startWorker } from './worker.ts';

const USAGE = `Usage: npm run bench:exports -- [--stored 1170000 --seconds 20 --concurrency 16 --turns 2]

Exports the movements of all accounts, six of seven stored payments, alone and beside payments. It prints the duration,
the memory and the CPU time of an export, and the rate of payments with and without one. The file must have a row for each
movement, and its sums.`;

const { values } = readArguments(USAGE, {
  options: {
    stored: { type: 'string', default: '1170000' },
    seconds: { type: 'string', default: '20' },
    concurrency: { type: 'string', default: '16' },
    turns: { type: 'string', default: '2' },
  },
});
const stored = positive('stored', values.stored);
const plan = {
  concurrency: positive('concurrency', values.concurrency),
  leadInMs: 5_000,
  measuredMs: positive('seconds', values.seconds) * 1_000,
};
const OPERATOR_KEY = 'op_bench_0123456789abcdef';

await cleanUpAfter(bench);

async function bench(ending: Ending): Promise<void> {
  const site = await startSurroundings('exports', ending);
  const client = new pg.Client(site.databaseUrl);
  await client.connect();
  ending.push(() => client.end());
  const start = () =>
    startService({
      ...{
        name: 'exports',
        home: site.home,
        databaseUrl: site.databaseUrl,
        providerPort: site.provider.port,
      },
      ...{ nodeOptions: ['--max-semi-space-size=16', '--max-old-space-size=2048'] },
      environment: { OPERATOR_KEYS: OPERATOR_KEY },
    });
  const first = await start();
  const books = await openBooks(site.databaseUrl, site.provider.port);
  const { record, response } = await books.samplePayment(first.port);
  await books.close();
  await first.stop();
  const progress = createProgress(process.stderr);
  progress.state(`storing ${stored} payments`);
  await addAccounts(client);
  const sample = { record: Buffer.from(record, 'base64'), response: Buffer.from(response, 'base64') };
  await storePayments(client, stored, sample);
  progress.end();

  const load = await startWorker<LoadOrder, LoopResult>('load.ts');
  ending.push(load.stop);
  const service = await start();
  ending.push(service.stop);
  const pay = () => load.ask({ protocol: 'rest', port: service.port, runId: newRunId(), plan });
  const cpu = () => ({ server: cpuMs(service.pid), postgres: cpuOfTreeMs(site.postmaster) });
  await pay();
  const before = { residentMb: residentMb(service.pid), ...cpu() };
  const alone = await exported(service.port);
  const after = cpu();
  console.log(machineName());
  console.table({
    'an export alone': {
      ...alone,
      'server CPU s': seconds(after.server - before.server),
      'PG CPU s': seconds(after.postgres - before.postgres),
      'more memory MB': Math.round(peakResidentMb(service.pid) - before.residentMb),
    },
  });
  // Turns alternate in their order, so that a machine that becomes slower or faster favours neither side.
  const without = () => withCpu(pay, cpu);
  const beside = async () => {
    const leaving = new AbortController();
    const file = exported(service.port, leaving.signal);
    const result = await withCpu(pay, cpu);
    leaving.abort();
    return { ...result, rows: (await file).rows };
  };
  const rates: Record<string, object> = {};
  for (let turn = 1; turn <= Number(values.turns); turn++) {
    const first = turn % 2 === 1 ? await without() : undefined;
    const withOne = await beside();
    const none = first ?? (await without());
    rates[`turn ${turn}`] = {
      'payments/s without': Math.round(none.perSecond),
      'payments/s beside an export': Math.round(withOne.perSecond),
      'lost %': Math.round(1_000 * (1 - withOne.perSecond / none.perSecond)) / 10,
      'CPU ms a payment without': none.cpuMs,
      'CPU ms a payment beside': withOne.cpuMs,
      'p99 ms without': Math.round(none.p99Ms),
      'p99 ms beside': Math.round(withOne.p99Ms),
      'rows meanwhile': withOne.rows,
    };
  }
  console.table(rates);
}

/** Makes payments. @returns their rate, and the CPU time of the service and PostgreSQL for each, with all else they do. */
async function withCpu(
  pay: () => Promise<LoopResult>,
  cpu: () => { readonly server: number; readonly postgres: number },
) {
  const before = cpu();
  const result = await pay();
  const after = cpu();
  const cpuMs = (after.server - before.server + after.postgres - before.postgres) / result.sent;
  return { ...result, cpuMs: Math.round(cpuMs * 1_000) / 1_000 };
}

/** Exports every account's movements of the last hundred days. @returns the rows, and how long they took. */
async function exported(port: number, signal?: AbortSignal) {
  const startedMs = performance.now();
  const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
  const query = new URLSearchParams({ from: day(100), before: day(-1) });
  const response = await fetch(`http://127.0.0.1:${port}/v1/exports/movements.csv?${query}`, {
    headers: { 'operator-key': OPERATOR_KEY },
  });
  if (response.status !== 200 || !response.body) throw new Error(await response.text());
  let lines = 0;
  let bytes = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    for (let at = value.indexOf(10); at >= 0; at = value.indexOf(10, at + 1)) lines++;
    if (!signal?.aborted) continue;
    await reader.cancel();
    break;
  }
  return { rows: lines - 1, MB: Math.round(bytes / 1e6), seconds: seconds(performance.now() - startedMs) };
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
