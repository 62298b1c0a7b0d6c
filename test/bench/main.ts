import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createProgress, howFar } from '#src/commands/progress.ts';
import { type Books, openBooks } from './books.ts';
import type { LoopResult, Plan } from './closed-loop.ts';
import type { LoadOrder } from './load.ts';
import { cpuMs, cpuOfMachineMs, cpuOfTreeMs, peakResidentMb } from './proc.ts';
import { type Measure, type Measures, report, SUBJECTS, type Subject } from './report.ts';
import { newRunId } from './request.ts';
import { startService } from './service.ts';
import type { SqlOrder } from './sql.ts';
import { startSurroundings } from './surroundings.ts';
import { startWorker } from './worker.ts';

// npm run bench [-- --seconds 4 --rounds 3 --concurrency 1,16,64 --node-options=…]
//
// Compares the service, by REST and by gRPC, with a bare Fastify server that does the same work of the disk and of the
// network, and with the two commits alone. Each has a process of its own; the runs take turns, so that what disturbs
// the machine disturbs all alike; and after every run the provider's ledger and the database must agree.

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    concurrency: { type: 'string', default: '1,16,64' },
    // For the service's processes only: --node-options=--cpu-prof shows where the time goes.
    'node-options': { type: 'string', default: '' },
  },
});
const measuredMs = positive('seconds', values.seconds) * 1000;
const rounds = positive('rounds', values.rounds);
const concurrencies = values.concurrency.split(',').map((text) => positive('concurrency', text));

const LEAD_IN_MS = 300;
const WARM_UP: Plan = { concurrency: 16, leadInMs: 0, measuredMs: 5_000 };
const ORDER: readonly Subject[] = ['a', 'c', 'b', 'd'];

/** Clean-up at the end, the last first. */
const ending: (() => unknown)[] = [];
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => end().then(() => process.exit(1)));
}
try {
  await bench();
} finally {
  await end();
}

async function end(): Promise<void> {
  for (const undo of ending.splice(0).reverse()) await undo();
}

async function bench(): Promise<void> {
  const stage = await setUp();
  console.log(
    `Node ${process.version}, ${availableParallelism()} × ${cpus()[0]?.model}. Each figure is the median of ${rounds} rounds of ${measuredMs / 1000} s.`,
  );
  console.log(
    'CPU is user and system time a payment. "others" is what processes that are no part of this took of the machine.',
  );
  const progress = createProgress(process.stderr);
  for (const subject of ORDER) {
    progress.state(`warming up: ${SUBJECTS[subject]}`);
    await stage.run(subject, WARM_UP);
  }

  const byConcurrency = new Map<number, Record<Subject, Measure[]>>();
  for (const concurrency of concurrencies) byConcurrency.set(concurrency, { a: [], b: [], c: [], d: [] });
  const runs = rounds * concurrencies.length * ORDER.length;
  const startedMs = performance.now();
  let done = 0;
  for (let round = 1; round <= rounds; round++) {
    for (const [concurrency, measures] of byConcurrency) {
      for (const subject of ORDER) {
        const far = howFar(done, runs, performance.now() - startedMs);
        progress.state(`round ${round}, ${concurrency} at a time, ${SUBJECTS[subject]}: ${far}`);
        measures[subject].push(await stage.run(subject, { concurrency, leadInMs: LEAD_IN_MS, measuredMs }));
        done += 1;
      }
    }
  }
  progress.end();
  console.log(report(byConcurrency as ReadonlyMap<number, Measures>, stage.peakMb()));
}

type Stage = { run(subject: Subject, plan: Plan): Promise<Measure>; peakMb(): Record<Subject, number> };

/** Starts everything; the database waits for the disk as in production. */
async function setUp(): Promise<Stage> {
  const { home, dataDir, databaseUrl, provider } = await startSurroundings('bench', ending);
  const service = async (name: string) => {
    const started = await startService({
      name,
      home,
      databaseUrl,
      providerPort: provider.port,
      nodeOptions: values['node-options'].split(' ').filter(Boolean),
    });
    ending.push(started.stop);
    return started;
  };
  const [rest, grpc] = [await service('rest'), await service('grpc')];
  const books = await openBooks(databaseUrl, provider.port);
  ending.push(books.close);
  const sampleFile = join(home, 'sample.json');
  writeFileSync(sampleFile, JSON.stringify(await books.samplePayment(rest.port)));
  const floor = await startWorker('floor.ts', [databaseUrl, sampleFile, String(provider.port)]);
  ending.push(floor.stop);
  const sql = await startWorker<SqlOrder, LoopResult>('sql.ts', [databaseUrl, sampleFile]);
  ending.push(sql.stop);
  const load = await startWorker<LoadOrder, LoopResult>('load.ts');
  ending.push(load.stop);

  const over = (protocol: 'rest' | 'grpc', port: number) => (runId: string, plan: Plan) =>
    load.ask({ protocol, port, runId, plan });
  const servers: Record<Subject, Server> = {
    a: { pid: rest.pid, load: over('rest', rest.port) },
    b: { pid: grpc.pid, load: over('grpc', grpc.port) },
    c: { pid: floor.pid, load: over('rest', floor.port) },
    d: { pid: sql.pid, load: (runId, plan) => sql.ask({ runId, plan }) },
  };
  const postmaster = Number(
    readFileSync(join(dataDir, 'postgres/data/postmaster.pid'), 'utf8').split('\n')[0],
  );
  const cpu = (server: Server): CpuTimes => {
    const [serverMs, postgresMs, loadMs] = [cpuMs(server.pid), cpuOfTreeMs(postmaster), cpuMs(load.pid)];
    const ours = [serverMs, postgresMs, loadMs, cpuMs(provider.pid), cpuMs(process.pid)];
    const othersMs = cpuOfMachineMs() - ours.reduce((sum, ms) => sum + ms);
    return { serverMs, postgresMs, loadMs, othersMs };
  };
  const peak = (subject: Subject) => peakResidentMb(servers[subject].pid);
  return {
    run: (subject, plan) => measure(subject, plan, { server: servers[subject], books, cpu }),
    peakMb: () => ({ a: peak('a'), b: peak('b'), c: peak('c'), d: peak('d') }),
  };
}

type Server = { readonly pid: number; load(runId: string, plan: Plan): Promise<LoopResult> };

/** Processor time had so far. */
type CpuTimes = Readonly<Record<'serverMs' | 'postgresMs' | 'loadMs' | 'othersMs', number>>;

async function measure(
  subject: Subject,
  plan: Plan,
  deps: { readonly server: Server; readonly books: Books; readonly cpu: (server: Server) => CpuTimes },
): Promise<Measure> {
  const { server, books, cpu } = deps;
  await books.open();
  const before = cpu(server);
  const startedMs = performance.now();
  const runId = newRunId();
  const { sent, failed, ...speed } = await server.load(runId, plan);
  const machineMs = (performance.now() - startedMs) * availableParallelism();
  const after = cpu(server);
  if (failed > 0) throw new Error(`${SUBJECTS[subject]}: ${failed} of ${sent} failed`);
  await books.compare({ sent, runId, atProvider: subject !== 'd' });
  const took = (what: keyof CpuTimes) => after[what] - before[what];
  return {
    ...speed,
    serverCpuMs: took('serverMs') / sent,
    postgresCpuMs: took('postgresMs') / sent,
    loadCpuMs: took('loadMs') / sent,
    othersPercent: Math.max(0, (took('othersMs') / machineMs) * 100),
  };
}

function positive(name: string, text: string): number {
  const number = Number(text);
  if (number > 0 && Number.isInteger(number)) return number;
  throw new Error(`--${name} must be a whole number above zero`);
}
