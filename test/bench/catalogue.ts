import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { readArguments } from '#src/commands/command-line.ts';
import { positive } from './arguments.ts';
import { type EndedCall, openClient, openLoop, quantile } from './open-loop.ts';
import { cpuMs, machineName, peakResidentMb } from './proc.ts';
import { FIRST_AMOUNT_CENTS, newRunId } from './request.ts';
import { addAccount, startService } from './service.ts';
import { cleanUpAfter, createDatabase, type Ending, startSurroundings } from './surroundings.ts';

const USAGE = `Usage: node test/bench/catalogue.ts [--rate 300 --seconds 20 --publishes 200 --connections 1000 --rounds 2]

Publishes versions of the catalogue while payments are offered at a steady rate, and compares their latency with that of
payments without publications; then compares a catalogue with ten connections with one of --connections, each with an
account of its own: the CPU time of an idle process, a payment beyond it, a publication, and the memory. Everything shares the machine. No payment may be refused or
lost: the provider's charges and the database must agree.`;

const { values } = readArguments(USAGE, {
  options: {
    rate: { type: 'string', default: '300' },
    seconds: { type: 'string', default: '20' },
    publishes: { type: 'string', default: '200' },
    connections: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '2' },
  },
});
const perSecond = positive('rate', values.rate);
const forMs = positive('seconds', values.seconds) * 1000;
const publishes = positive('publishes', values.publishes);
const connections = positive('connections', values.connections);
const rounds = positive('rounds', values.rounds);

const OPERATOR_KEY = 'operator-key-of-the-benchmark-0123456789';
const SLOTS = 1_000;
/** Payments before the first measurement, so that it measures compiled code. */
const LEAD_IN = { perSecond: 200, forMs: 15_000 };
const FEW_CONNECTIONS = 10;
const IDLE_MS = 5_000;
/** Publications whose time is measured with each number of connections. */
const TIMED = 20;

await cleanUpAfter(bench);

type Subject = {
  readonly port: number;
  readonly pid: number;
  readonly providerPort: number;
  readonly books: pg.Client;
  readonly logFile: string;
};

async function bench(ending: Ending): Promise<void> {
  const site = await startSurroundings('catalogue', ending);
  const start = async (name: string, connectionsBeside: number): Promise<Subject> => {
    const databaseUrl = await createDatabase(site.databaseUrl, name);
    const service = await startService({
      ...{ name, home: site.home, databaseUrl, providerPort: site.provider.port, nodeOptions: [] },
      ...{ connectionsBeside, inDatabase: true },
      // Whatever the machine does meanwhile, a payment waits rather than is refused: only the catalogue could refuse it.
      environment: { OPERATOR_KEYS: OPERATOR_KEY, MAX_AT_WORK: String(SLOTS) },
    });
    ending.push(service.stop);
    await addAccount(databaseUrl);
    const books = new pg.Client(databaseUrl);
    books.on('error', () => {});
    await books.connect();
    ending.push(() => books.end());
    const logFile = join(site.home, `${name}.log`);
    return { port: service.port, pid: service.pid, providerPort: site.provider.port, books, logFile };
  };
  const few = await start('few', FEW_CONNECTIONS - 1);
  const many = await start('many', connections - 1);
  for (const subject of [few, many]) await load(subject, LEAD_IN);
  console.log(`${machineName()}, ${perSecond} payments/s over REST, ${rounds} rounds of ${forMs / 1000} s`);
  const quiet: EndedCall[] = [];
  const beside: EndedCall[] = [];
  const published: number[] = [];
  for (let round = 0; round < rounds; round++) {
    quiet.push(...(await load(few, { perSecond, forMs })));
    const [calls, times] = await Promise.all([
      load(few, { perSecond, forMs }),
      publishAll(few, publishes, forMs / publishes),
    ]);
    beside.push(...calls);
    published.push(...times);
  }
  console.table({
    'without publications': latencies(quiet),
    [`beside ${publishes} publications`]: latencies(beside),
  });
  console.log(
    `A publication took ${quantile(published, 0.5)} ms, at most ${Math.max(...published).toFixed(0)}.`,
  );
  const sizes = [
    [FEW_CONNECTIONS, few],
    [connections, many],
  ] as const;
  for (const [count, subject] of sizes) console.table({ [`${count} connections`]: await figures(subject) });
}

function latencies(calls: readonly EndedCall[]) {
  const all = calls.map(({ latencyMs }) => latencyMs);
  return { payments: calls.length, 'p50 ms': quantile(all, 0.5), 'p99 ms': quantile(all, 0.99) };
}

/** Measures payments, then publications. */
async function figures(subject: Subject) {
  const cpuOf = async (run: () => Promise<unknown>) => {
    const before = { cpu: cpuMs(subject.pid), at: performance.now() };
    await run();
    return { cpu: cpuMs(subject.pid) - before.cpu, elapsed: performance.now() - before.at };
  };
  const idle = await cpuOf(() => setTimeout(IDLE_MS));
  const idleShare = idle.cpu / idle.elapsed;
  let calls: EndedCall[] = [];
  const busy = await cpuOf(async () => {
    calls = await load(subject, { perSecond, forMs });
  });
  const cpu = Math.round((1000 * (busy.cpu - idleShare * busy.elapsed)) / calls.length);
  const times = await publishAll(subject, TIMED, 0);
  return {
    ...latencies(calls),
    'idle CPU %': Math.round(1000 * idleShare) / 10,
    'CPU µs per payment': cpu,
    'publication p50 ms': quantile(times, 0.5),
    'publication max ms': Math.round(Math.max(...times)),
    'peak MB': Math.round(peakResidentMb(subject.pid)),
  };
}

/** Publishes versions, one after another. @returns the time of each, in milliseconds. */
async function publishAll({ port }: Subject, count: number, everyMs: number): Promise<number[]> {
  const call = async (init: RequestInit) => {
    const headers = { 'operator-key': OPERATOR_KEY, 'content-type': 'application/json' };
    const response = await fetch(`http://127.0.0.1:${port}/v1/catalogue`, { ...init, headers });
    // biome-ignore lint/suspicious/noExplicitAny: reads one field of the response.
    const json = (await response.json()) as any;
    if (!response.ok) throw new Error(`a publication was refused: ${JSON.stringify(json)}`);
    return json;
  };
  let { version } = await call({ method: 'GET' });
  const times: number[] = [];
  const beginMs = performance.now();
  for (let i = 1; i <= count; i++) {
    const condition = `amount < 0 && installments == ${version}`;
    const route = { id: 999, condition, targets: [{ connection: 'bench' }] };
    const change = { put_route: { route, before: 1 }, expected_version: version, comment: 'a benchmark' };
    const startMs = performance.now();
    version = (await call({ method: 'PATCH', body: JSON.stringify(change) })).version;
    times.push(performance.now() - startMs);
    await setTimeout(Math.max(0, beginMs + i * everyMs - performance.now()));
  }
  return times;
}

/** Offers payments. @throws Error if any is refused or lost. */
async function load(subject: Subject, offer: { readonly perSecond: number; readonly forMs: number }) {
  const client = await openClient('rest', subject.port, SLOTS, newRunId());
  const calls = await openLoop({ ...offer, slots: SLOTS, first: 0 }, client.send);
  client.close();
  await compareBooks(subject, calls);
  return calls;
}

async function compareBooks(
  { books, providerPort, logFile }: Subject,
  calls: readonly EndedCall[],
): Promise<void> {
  const ledger = `http://127.0.0.1:${providerPort}/ledger`;
  const { rows } = await books.query<{ count: number }>(
    "SELECT count(*)::int AS count FROM payment WHERE status = 'SUCCEEDED' AND amount_minor_units >= $1",
    [FIRST_AMOUNT_CENTS],
  );
  const charges = (await (await fetch(ledger)).text()).split('\n').filter(Boolean);
  const accepted = calls.filter(({ ok }) => ok).length;
  const counts = [accepted, rows[0]?.count, charges.length, new Set(charges).size];
  if (counts.some((count) => count !== calls.length)) {
    const warnings = readFileSync(logFile, 'utf8')
      .split('\n')
      .filter((line) => /"level":[456]0/.test(line));
    const what = `of ${calls.length} payments, accepted, stored, charged, charged once: ${counts}`;
    throw new Error([what, ...warnings.slice(-5).map((line) => line.slice(0, 300))].join('\n'));
  }
  await books.query('TRUNCATE payment, transaction');
  await fetch(ledger, { method: 'DELETE' });
}
