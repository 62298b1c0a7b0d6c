import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { Sample } from './bare-payment.ts';
import { type Books, openBooks } from './books.ts';
import type { LoopResult, Plan } from './closed-loop.ts';
import type { LoadOrder } from './load.ts';
import { checkOut } from './older-checkout.ts';
import { cpuMs, cpuOfMachineMs, cpuOfTreeMs, peakResidentMb } from './proc.ts';
import type { Measure, Named, Ratio } from './report.ts';
import { newRunId } from './request.ts';
import { addAccount, type Service, startService } from './service.ts';
import type { SqlOrder } from './sql.ts';
import { storePayments } from './stored-payments.ts';
import { createDatabase, delayed, type Ending, startSurroundings } from './surroundings.ts';
import { addWebhook } from './webhook.ts';
import { startWorker } from './worker.ts';

/** Options for the benchmark. */
export type StageOptions = {
  /** Command-line options of Node for the service's processes. */
  readonly nodeOptions: readonly string[];
  /** The commit whose service is compared with this one's, instead of the floors. */
  readonly against: string | undefined;
  /** Number of payments to store in the databases first. */
  readonly stored: number;
  /** Also runs the service with a webhook for every payment, in a separate database. */
  readonly webhook: boolean;
  /** Delay in each direction between a subject and its database; none by default. */
  readonly databaseDelayMs?: number | undefined;
  /** If above 1, the service also runs with this number of processes. */
  readonly workers: number;
};

/** A subject of measurement. */
export type Subject = Named & { measure(plan: Plan): Promise<Measure>; peakMb(): number };

/** The subjects in the order in which they take turns, and the reported ratios. */
export type Stage = { readonly subjects: readonly Subject[]; readonly ratios: readonly Ratio[] };

const ROOT = join(import.meta.dirname, '../..');

/** A server under load, and the books that must agree afterwards. */
type Server = {
  readonly pid: number;
  readonly books: Books;
  readonly callsProvider: boolean;
  load(runId: string, plan: Plan): Promise<LoopResult>;
};

/** Starts everything. The database waits for the disk, as in production. @param ending collects the cleanup. */
export async function startStage(options: StageOptions, ending: Ending): Promise<Stage> {
  const { home, provider, postmaster, ...near } = await startSurroundings('bench', ending);
  const { nodeOptions, stored, databaseDelayMs } = options;
  const databaseUrl = await delayed(near.databaseUrl, databaseDelayMs, ending);
  const site: Site = { home, databaseUrl, providerPort: provider.port, nodeOptions, stored, ending };
  const load = await startWorker<LoadOrder, LoopResult>('load.ts');
  ending.push(load.stop);
  const over: Over = (protocol, { pid, port }, books) => ({
    pid,
    books,
    callsProvider: true,
    load: (runId, plan) => load.ask({ protocol, port, runId, plan }),
  });

  const [rest, grpc] = [await service(site, 'rest'), await service(site, 'grpc')];
  const books = await booksOf(site, databaseUrl);
  const sample = await books.samplePayment(rest.port);
  if (stored > 0) await fill(databaseUrl, stored, sample);
  const present = {
    a: named('service, REST', over('rest', rest, books)),
    b: named('service, gRPC', over('grpc', grpc, books)),
  };
  const others =
    options.against === undefined
      ? await floors(site, over, books, sample)
      : await olderServices(site, over, options.against, sample);
  const webhook = options.webhook
    ? { w: named('service, REST, webhook', await withWebhook(site, over, sample)) }
    : {};
  const workers = options.workers > 1 ? await withWorkers(site, options.workers, over, books) : {};
  const servers: Record<string, NamedServer> = { ...present, ...others, ...webhook, ...workers };

  const cpu = (server: Server): CpuTimes => {
    const [serverMs, postgresMs, loadMs] = [
      cpuOfTreeMs(server.pid),
      cpuOfTreeMs(postmaster),
      cpuMs(load.pid),
    ];
    const ours = [serverMs, postgresMs, loadMs, cpuMs(provider.pid), cpuMs(process.pid)];
    const othersMs = cpuOfMachineMs() - ours.reduce((sum, ms) => sum + ms);
    return { serverMs, postgresMs, loadMs, othersMs };
  };
  return {
    subjects: TURNS.flatMap((letter) => {
      const found = servers[letter];
      if (!found) return [];
      const { label, server } = found;
      const run = (plan: Plan) => measure(label, plan, server, () => cpu(server));
      return [{ letter, label, measure: run, peakMb: () => peakResidentMb(server.pid) }];
    }),
    ratios: RATIOS.filter((letters) => letters.every((letter) => Object.hasOwn(servers, letter))),
  };
}

/** The order in which subjects take turns: compared subjects run one after the other. */
const TURNS = ['a', 'A', 'p', 'c', 'b', 'B', 'q', 'd', 'w'];
const RATIOS: readonly Ratio[] = [
  ['a', 'c'],
  ['b', 'c'],
  ['b', 'a'],
  ['a', 'd'],
  ['a', 'A'],
  ['b', 'B'],
  ['w', 'a'],
  ['p', 'a'],
  ['q', 'b'],
];

type Pid = { readonly pid: number; readonly port: number };
type Over = (protocol: 'rest' | 'grpc', process: Pid, books: Books) => Server;
type NamedServer = { readonly label: string; readonly server: Server };
/** The directory, database and provider of this run. */
type Site = {
  readonly home: string;
  readonly databaseUrl: string;
  readonly providerPort: number;
  readonly nodeOptions: readonly string[];
  readonly stored: number;
  readonly ending: Ending;
};

const named = (label: string, server: Server): NamedServer => ({ label, server });

async function service(
  site: Site,
  name: string,
  databaseUrl = site.databaseUrl,
  checkout = ROOT,
  workers = 1,
): Promise<Service> {
  const started = await startService({ ...site, name, databaseUrl, checkout, workers });
  site.ending.push(started.stop);
  return started;
}

async function booksOf({ providerPort, stored, ending }: Site, databaseUrl: string): Promise<Books> {
  const books = await openBooks(databaseUrl, providerPort, stored > 0);
  ending.push(books.close);
  return books;
}

/** Starts the floors, which no service can beat by much: a bare server, and the two commits alone. */
async function floors(site: Site, over: Over, books: Books, sample: Sample) {
  const { home, databaseUrl, providerPort, ending } = site;
  const sampleFile = join(home, 'sample.json');
  writeFileSync(sampleFile, JSON.stringify(sample));
  const floor = await startWorker('floor.ts', [databaseUrl, sampleFile, String(providerPort)]);
  ending.push(floor.stop);
  const sql = await startWorker<SqlOrder, LoopResult>('sql.ts', [databaseUrl, sampleFile]);
  ending.push(sql.stop);
  const load = (runId: string, plan: Plan) => sql.ask({ runId, plan });
  return {
    c: named('floor: bare Fastify', over('rest', floor, books)),
    d: named('two commits alone', { pid: sql.pid, books, callsProvider: false, load }),
  };
}

/** Starts the service of another commit, with a separate database. */
async function olderServices(site: Site, over: Over, ref: string, sample: Sample) {
  const older = checkOut(ROOT, ref);
  site.ending.push(older.remove);
  const url = await createDatabase(site.databaseUrl, 'older');
  // Its first start creates the schema.
  const rest = await service(site, 'older-rest', url, older.path);
  await addAccount(url);
  const grpc = await service(site, 'older-grpc', url, older.path);
  const books = await booksOf(site, url);
  if (site.stored > 0) await fill(url, site.stored, sample);
  return {
    A: named(`REST at ${older.commit}`, over('rest', rest, books)),
    B: named(`gRPC at ${older.commit}`, over('grpc', grpc, books)),
  };
}

/** Starts the service as several processes on one port. */
async function withWorkers(site: Site, workers: number, over: Over, books: Books) {
  const started = await service(site, 'workers', site.databaseUrl, ROOT, workers);
  return {
    p: named(`${workers} workers, REST`, over('rest', started, books)),
    q: named(`${workers} workers, gRPC`, over('grpc', started, books)),
  };
}

/**
 * Starts the service with a webhook for every payment, which is never turned off. A run ends when everything is
 * delivered, so that the cost includes delivery.
 */
async function withWebhook(site: Site, over: Over, sample: Sample): Promise<Server> {
  const url = await createDatabase(site.databaseUrl, 'webhook');
  // Its first start creates the schema.
  const started = await service(site, 'webhook', url);
  await addAccount(url);
  const books = await booksOf(site, url);
  if (site.stored > 0) await fill(url, site.stored, sample);
  const webhook = await addWebhook(started.port, url);
  site.ending.push(webhook.close);
  const server = over('rest', started, books);
  return {
    ...server,
    async load(runId, plan) {
      webhook.takeReceived();
      const result = await server.load(runId, plan);
      await webhook.drained();
      const received = webhook.takeReceived();
      if (received < result.sent) throw new Error(`${received} of ${result.sent} events reached the webhook`);
      return result;
    },
  };
}

async function fill(databaseUrl: string, stored: number, sample: Sample): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await storePayments(client, stored, {
    record: Buffer.from(sample.record, 'base64'),
    response: Buffer.from(sample.response, 'base64'),
  });
  await client.end();
}

/** CPU time used so far. */
type CpuTimes = Readonly<Record<'serverMs' | 'postgresMs' | 'loadMs' | 'othersMs', number>>;

async function measure(label: string, plan: Plan, server: Server, cpu: () => CpuTimes): Promise<Measure> {
  await server.books.open();
  const before = cpu();
  const startedMs = performance.now();
  const runId = newRunId();
  const { sent, failed, ...speed } = await server.load(runId, plan);
  const machineMs = (performance.now() - startedMs) * availableParallelism();
  const after = cpu();
  if (failed > 0) throw new Error(`${label}: ${failed} of ${sent} failed`);
  const { walBytes, diskBytes } = await server.books.compare({
    sent,
    runId,
    atProvider: server.callsProvider,
  });
  const took = (what: keyof CpuTimes) => after[what] - before[what];
  return {
    ...speed,
    serverCpuMs: took('serverMs') / sent,
    postgresCpuMs: took('postgresMs') / sent,
    loadCpuMs: took('loadMs') / sent,
    walKb: walBytes / sent / 1000,
    diskKb: diskBytes / sent / 1000,
    othersPercent: Math.max(0, (took('othersMs') / machineMs) * 100),
  };
}
