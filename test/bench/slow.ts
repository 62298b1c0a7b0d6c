import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { readArguments } from '#src/commands/command-line.ts';
import { optionalPositive, positive } from './arguments.ts';
import { openBooks } from './books.ts';
import { curveSvg } from './curve-svg.ts';
import { checkOut } from './older-checkout.ts';
import { type EndedCall, type Offer, openClient, openLoop, quantile } from './open-loop.ts';
import { cpuMs, cpuOfTreeMs, machineName, peakResidentMb } from './proc.ts';
import { latencyMs } from './provider-latency.ts';
import { FIRST_AMOUNT_CENTS, newRunId } from './request.ts';
import { addAccount, startService } from './service.ts';
import { cleanUpAfter, createDatabase, delayed, type Ending, startSurroundings } from './surroundings.ts';
import { startWorker } from './worker.ts';

const USAGE = `Usage: npm run bench:slow -- [--rates 100,200,400 --seconds 20 --median-ms 800 --p99-ms 4000 --timeout-ms 10000 --protocol rest --slots N --afterwards N --hang --database-delay-ms N --bare --against <ref> --svg FILE]

Offers payments at steady rates, whether or not the service responds, at a provider with a log-normal latency of this
median and 99th percentile. One process of the service runs with its defaults, and everything shares the machine. For
each rate, it prints what became of the payments, the time that the service added to the provider's own, and the CPU
time, commits, statements and bytes of a payment. --slots is the connection's max_in_flight. --bare also measures a bare
server, which makes the same two commits and the same call and nothing else. --afterwards offers this lower rate for 5 s as soon as each load is over, and prints when
its last call was refused. --hang also offers the rate to a connection that never answers, and then to one from which
payments can fail over. --database-delay-ms delays each direction between the service and its database. --against also
measures the service of another commit. --svg draws the result. After every rate, the provider's charges and the
database must agree.`;

const { values } = readArguments(USAGE, {
  options: {
    rates: { type: 'string', default: '100,200,400' },
    seconds: { type: 'string', default: '20' },
    'median-ms': { type: 'string', default: '800' },
    'p99-ms': { type: 'string', default: '4000' },
    'timeout-ms': { type: 'string' },
    protocol: { type: 'string', default: 'rest' },
    slots: { type: 'string' },
    afterwards: { type: 'string' },
    hang: { type: 'boolean', default: false },
    'database-delay-ms': { type: 'string' },
    bare: { type: 'boolean', default: false },
    against: { type: 'string' },
    svg: { type: 'string' },
  },
});
const ROOT = join(import.meta.dirname, '../..');
const rates = values.rates.split(',').map((text) => positive('rates', text));
const forMs = positive('seconds', values.seconds) * 1000;
const latency = {
  medianMs: positive('median-ms', values['median-ms']),
  p99Ms: positive('p99-ms', values['p99-ms']),
};
const protocol = values.protocol === 'grpc' ? 'grpc' : 'rest';

/**
 * The amounts, in cents, from which payments go to the connection that hangs, and from which they can fail over from
 * it.
 */
const [HANGING_FROM, FAILING_FROM] = [20_000_000, 30_000_000] as const;
/** The listener's limit on connections, minus the benchmark's own connections. */
const MAX_SLOTS = 4_000;
/** Payments before the first measurement, so that it measures compiled code. */
const LEAD_IN = { perSecond: 200, forMs: 40_000 };

await cleanUpAfter(bench);

/** A service under load, or the bare server, with its database. */
type Subject = {
  readonly label: string;
  readonly port: number;
  readonly pid: number;
  readonly books: pg.Client;
  /** The bare server: it has no metrics. */
  readonly isBare?: true;
};

async function bench(ending: Ending): Promise<void> {
  const site = await startSurroundings('slow', ending, latency);
  const hanging = values.hang ? await startWorker('provider.ts') : undefined;
  if (hanging) {
    ending.push(hanging.stop);
    await fetch(`http://127.0.0.1:${hanging.port}/hold`, { method: 'POST' });
  }

  async function start(label: string, databaseUrl: string, checkout = ROOT): Promise<Subject> {
    const started = await startService({
      ...{ name: label.replaceAll(' ', '-'), home: site.home, nodeOptions: [], checkout },
      databaseUrl: await delayed(databaseUrl, optional('database-delay-ms'), ending),
      providerPort: site.provider.port,
      ...{
        hangingPort: hanging?.port,
        terms: { timeoutMs: optional('timeout-ms'), maxInFlight: optional('slots') },
      },
    });
    ending.push(started.stop);
    return { label, port: started.port, pid: started.pid, books: await connect(databaseUrl, ending) };
  }

  /** Starts the bare server, in the service's database. */
  async function startBare(service: Subject): Promise<Subject> {
    const books = await openBooks(site.databaseUrl, site.provider.port);
    const sampleFile = join(site.home, 'sample.json');
    writeFileSync(sampleFile, JSON.stringify(await books.samplePayment(service.port)));
    await books.close();
    await empty(service.books, site.provider.port);
    const from = [site.databaseUrl, sampleFile, String(site.provider.port), String(MAX_SLOTS)];
    const { pid, port, stop } = await startWorker('floor.ts', from);
    ending.push(stop);
    return { label: 'bare server', port, pid, books: service.books, isBare: true };
  }

  const service = await start('service', site.databaseUrl);
  const subjects = values.bare ? [service, await startBare(service)] : [service];
  if (values.against !== undefined) {
    const older = checkOut(ROOT, values.against);
    ending.push(older.remove);
    const url = await createDatabase(site.databaseUrl, 'older');
    subjects.push(await start(`at ${older.commit}`, url, older.path));
    await addAccount(url);
  }
  console.log(`${machineName()}, ${protocol}, provider ${latency.medianMs} ms, p99 ${latency.p99Ms} ms`);
  const measuredOf = (subject: Subject) => (run: () => Promise<EndedCall[]>) =>
    measured(subject, site.postmaster, site.provider.port, run);
  for (const subject of subjects) await measuredOf(subject)(() => load(subject.port, LEAD_IN));
  const taken = new Map(subjects.map(({ label }) => [label, [] as Row[]]));
  for (const perSecond of rates) {
    for (const subject of subjects) {
      const row = await measuredOf(subject)(() => load(subject.port, { perSecond, forMs }));
      taken.get(subject.label)?.push(row);
      console.table({ [`${perSecond}/s, ${subject.label}`]: row });
      const lower = optional('afterwards');
      if (subject.isBare) continue;
      if (lower) await recovery(subject, site.provider.port, perSecond, lower);
      if (hanging) await besideHanging(subject, perSecond, measuredOf(subject));
    }
  }
  if (values.svg) writeFileSync(values.svg, drawn(taken));
}

async function connect(databaseUrl: string, ending: Ending): Promise<pg.Client> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  ending.push(() => client.end());
  return client;
}

/** Offers a load and, as soon as it is over, a lower one, while calls of the first are still in flight. */
async function recovery(
  { label, port, books }: Subject,
  providerPort: number,
  perSecond: number,
  lower: number,
): Promise<void> {
  const high = load(port, { perSecond, forMs });
  await setTimeout(forMs);
  const low = await load(port, { perSecond: lower, forMs: 5_000 });
  await compareBooks(books, providerPort, [...(await high), ...low]);
  const lastMs = Math.max(0, ...low.filter(({ ok }) => !ok).map(({ endedAtMs }) => endedAtMs));
  console.table({
    [`${lower}/s as soon as ${perSecond}/s are over, ${label}`]: {
      'refused %': percent(low, ({ ok }) => !ok),
      'last refused after ms': Math.round(lastMs),
    },
  });
}

/** Offers a load while other payments hang at a connection, and then a load that can fail over from that connection. */
async function besideHanging(
  { label, port }: Subject,
  perSecond: number,
  measure: (run: () => Promise<EndedCall[]>) => Promise<Row>,
): Promise<void> {
  let hung: readonly EndedCall[] = [];
  const beside = await measure(async () => {
    const other = load(port, { perSecond, forMs }, HANGING_FROM);
    const calls = await load(port, { perSecond, forMs });
    hung = await other;
    return calls;
  });
  const failing = await measure(() => load(port, { perSecond, forMs }, FAILING_FROM));
  console.table({
    [`${perSecond}/s beside a connection that hangs, ${label}`]: beside,
    [`${perSecond}/s that can fail over from it, ${label}`]: failing,
  });
  console.log(`At the connection that hangs, ${percent(hung, ({ ok }) => !ok)} % were refused.`);
}

function drawn(taken: ReadonlyMap<string, readonly Row[]>): string {
  const panel = (title: string, of: (row: Row) => number) => ({
    title,
    lines: Object.fromEntries([...taken].map(([label, rows]) => [label, rows.map(of)])),
  });
  return curveSvg(rates, [
    panel('% approved, by payments offered per second', (row) => (100 * row.approved) / row.sent),
    panel('ms added to the provider’s own, median', (row) => row['added p50 ms']),
  ]);
}

async function load(
  port: number,
  offer: Pick<Offer, 'perSecond' | 'forMs'>,
  from = FIRST_AMOUNT_CENTS,
): Promise<EndedCall[]> {
  const longestMs = optional('timeout-ms') ?? 10_000;
  const slots = Math.min(MAX_SLOTS, Math.ceil((offer.perSecond * longestMs) / 1000) + 500);
  const client = await openClient(protocol, port, slots, newRunId());
  const calls = await openLoop({ ...offer, slots, first: from - FIRST_AMOUNT_CENTS }, client.send);
  client.close();
  return calls;
}

/** Figures of one load. */
type Row = Awaited<ReturnType<typeof measured>>;

async function measured(
  subject: Subject,
  postmaster: number,
  providerPort: number,
  run: () => Promise<EndedCall[]>,
) {
  const { pid, books } = subject;
  const taken = async () => ({
    ...{ server: cpuMs(pid), postgres: cpuOfTreeMs(postmaster) },
    ...(await readCounts(books)),
    statements: await countStatements(subject),
  });
  const before = await taken();
  const calls = await run();
  const after = await taken();
  const sockets = await (await fetch(`http://127.0.0.1:${providerPort}/sockets`)).text();
  const { SUCCEEDED: approved = 0, ...others } = await compareBooks(books, providerPort, calls);
  const added = calls
    .filter(({ ok }) => ok)
    .map((call) => call.latencyMs - latencyMs(latency, FIRST_AMOUNT_CENTS + call.sequence));
  const perCall = (name: keyof typeof after, unit = 1) =>
    Math.round((100 * (after[name] - before[name])) / unit / calls.length) / 100;
  return {
    sent: calls.length,
    approved,
    ...others,
    'refused %': percent(calls, ({ ok }) => !ok),
    'added p50 ms': quantile(added, 0.5),
    'added p99 ms': quantile(added, 0.99),
    'CPU ms: server': perCall('server'),
    PostgreSQL: perCall('postgres'),
    commits: perCall('commits'),
    statements: perCall('statements'),
    'WAL KB': perCall('walBytes', 1_000),
    'disk KB': perCall('diskBytes', 1_000),
    'peak MB so far': Math.round(peakResidentMb(pid)),
    'provider sockets': Number(sockets),
  };
}

/** PostgreSQL's counts so far. Its processes report their transactions once a second, so a count may lag by that. */
async function readCounts(books: pg.Client) {
  const { rows } = await books.query<{ commits: number; walBytes: number; diskBytes: number }>(`
    SELECT xact_commit::float8 AS commits, (pg_current_wal_insert_lsn() - '0/0')::float8 AS "walBytes",
      (pg_total_relation_size('payment') + pg_total_relation_size('transaction'))::float8 AS "diskBytes"
    FROM pg_stat_database WHERE datname = current_database()`);
  return rows[0] ?? { commits: Number.NaN, walBytes: Number.NaN, diskBytes: Number.NaN };
}

/** Counts the statements that the service has run; NaN for the bare server. */
async function countStatements({ port, isBare }: Subject): Promise<number> {
  if (isBare) return Number.NaN;
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const counts = metrics.matchAll(/^database_query_seconds_count\{.*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

function percent(calls: readonly EndedCall[], matches: (call: EndedCall) => boolean): number {
  return Math.round((1000 * calls.filter(matches).length) / calls.length) / 10;
}

/**
 * Counts the stored payments by status, and empties both books.
 *
 * @throws Error if an accepted payment is not stored, or if a payment that succeeded in the database is not at the
 *   provider exactly once.
 */
async function compareBooks(
  books: pg.Client,
  providerPort: number,
  calls: readonly EndedCall[],
): Promise<Readonly<Record<string, number>>> {
  const { rows } = await books.query<{ status: string; count: number }>(
    'SELECT status, count(*)::int AS count FROM payment GROUP BY status',
  );
  const byStatus = Object.fromEntries(rows.map(({ status, count }) => [status, count]));
  const stored = rows.reduce((sum, { count }) => sum + count, 0);
  const charges = (await (await fetch(`http://127.0.0.1:${providerPort}/ledger`)).text())
    .split('\n')
    .filter(Boolean);
  const accepted = calls.filter(({ ok }) => ok).length;
  const isRight = stored >= accepted && charges.length >= (byStatus.SUCCEEDED ?? 0);
  if (!isRight || new Set(charges).size < charges.length) {
    throw new Error(
      `${accepted} were accepted, ${charges.length} are charged, stored: ${JSON.stringify(byStatus)}`,
    );
  }
  await empty(books, providerPort);
  return byStatus;
}

async function empty(books: pg.Client, providerPort: number): Promise<void> {
  await books.query('TRUNCATE payment, transaction');
  await books.query('CHECKPOINT');
  await fetch(`http://127.0.0.1:${providerPort}/ledger`, { method: 'DELETE' });
}

function optional(name: 'timeout-ms' | 'slots' | 'afterwards' | 'database-delay-ms'): number | undefined {
  return optionalPositive(name, values[name]);
}
