import pg from 'pg';
import { readArguments } from '#src/commands/command-line.ts';
import { checkOut } from './older-checkout.ts';
import { type EndedCall, openClient, openLoop, quantile } from './open-loop.ts';
import { cpuMs, cpuOfTreeMs, machineName, peakResidentMb } from './proc.ts';
import { latencyMs } from './provider-latency.ts';
import { FIRST_AMOUNT_CENTS, newRunId } from './request.ts';
import { startService } from './service.ts';
import { cleanUpAfter, type Ending, startSurroundings } from './surroundings.ts';
import { startWorker } from './worker.ts';

const USAGE = `Usage: npm run bench:slow -- [--rates 100,200,400 --seconds 20 --median-ms 800 --p99-ms 4000 --timeout-ms 10000 --protocol rest --slots N --hang --database-delay-ms N --against <ref>]

Offers payments at steady rates, whether or not the service responds, at a provider with a log-normal latency of this
median and 99th percentile. One process of the service runs with its defaults, and everything shares the machine. For
each rate, it prints what became of the payments, and the time that the service added to the provider's own. --slots is
the connection's max_in_flight. --hang also offers the rate to a connection that never answers, and then to one from
which payments can fail over. --database-delay-ms delays each direction between the service and its database. --against
measures the service of another commit. After every rate, the provider's charges and the database must agree.`;

const { values } = readArguments(USAGE, {
  options: {
    rates: { type: 'string', default: '100,200,400' },
    seconds: { type: 'string', default: '20' },
    'median-ms': { type: 'string', default: '800' },
    'p99-ms': { type: 'string', default: '4000' },
    'timeout-ms': { type: 'string' },
    protocol: { type: 'string', default: 'rest' },
    slots: { type: 'string' },
    hang: { type: 'boolean', default: false },
    'database-delay-ms': { type: 'string' },
    against: { type: 'string' },
  },
});
const rates = values.rates.split(',').map((text) => positive('rates', text));
const forMs = positive('seconds', values.seconds) * 1000;
const latency = {
  medianMs: positive('median-ms', values['median-ms']),
  p99Ms: positive('p99-ms', values['p99-ms']),
};
const protocol = values.protocol === 'grpc' ? 'grpc' : 'rest';

/** Amounts from here, in cents, go to the connection that hangs; from the second, payments can fail over from it. */
const [HANGING_FROM, FAILING_FROM] = [20_000_000, 30_000_000] as const;
/** The listener's limit on connections, less the benchmark's own. */
const MAX_SLOTS = 4_000;
const LEAD_IN = { perSecond: 50, forMs: 5_000 };

await cleanUpAfter(bench);

async function bench(ending: Ending): Promise<void> {
  const { home, databaseUrl, provider, postmaster } = await startSurroundings('slow', ending, latency);
  const hanging = values.hang ? await startWorker('provider.ts') : undefined;
  if (hanging) {
    ending.push(hanging.stop);
    await fetch(`http://127.0.0.1:${hanging.port}/hold`, { method: 'POST' });
  }
  const older = values.against === undefined ? undefined : checkOut(process.cwd(), values.against);
  if (older) ending.push(older.remove);
  const service = await startService({
    ...{ name: 'slow', home, databaseUrl: await delayed(databaseUrl, ending), nodeOptions: [] },
    ...{ providerPort: provider.port, hangingPort: hanging?.port, ...(older && { checkout: older.path }) },
    terms: { timeoutMs: optional('timeout-ms'), maxInFlight: optional('slots') },
  });
  ending.push(service.stop);
  const books = new pg.Client(databaseUrl);
  await books.connect();
  ending.push(() => books.end());

  console.log(`${machineName()}, ${protocol}, provider ${latency.medianMs} ms, p99 ${latency.p99Ms} ms`);
  const pids = { server: service.pid, postmaster };
  const offer = (perSecond: number, from = FIRST_AMOUNT_CENTS, ms = forMs) =>
    load(service.port, perSecond, from - FIRST_AMOUNT_CENTS, ms);
  await offer(LEAD_IN.perSecond, FIRST_AMOUNT_CENTS, LEAD_IN.forMs);
  await empty(books, provider.port);
  for (const rate of rates) {
    const alone = await measured(pids, books, provider.port, () => offer(rate));
    console.table({ [`${rate}/s`]: alone });
    if (!values.hang) continue;
    let hung: readonly EndedCall[] = [];
    const beside = await measured(pids, books, provider.port, async () => {
      const other = offer(rate, HANGING_FROM);
      const calls = await offer(rate);
      hung = await other;
      return calls;
    });
    const failing = await measured(pids, books, provider.port, () => offer(rate, FAILING_FROM));
    console.table({
      [`${rate}/s beside a connection that hangs`]: beside,
      [`${rate}/s that can fail over from it`]: failing,
    });
    console.log(`At the connection that hangs, ${percent(hung, ({ ok }) => !ok)} % were refused.`);
  }
}

/** Returns the database's URL, through a proxy if it is to be distant. */
async function delayed(databaseUrl: string, ending: Ending): Promise<string> {
  const delayMs = optional('database-delay-ms');
  if (delayMs === undefined) return databaseUrl;
  const url = new URL(databaseUrl);
  const proxy = await startWorker('delay-proxy.ts', [url.port, String(delayMs)]);
  ending.push(proxy.stop);
  url.port = String(proxy.port);
  return url.href;
}

async function load(port: number, perSecond: number, first: number, ms: number): Promise<EndedCall[]> {
  const longestMs = optional('timeout-ms') ?? 10_000;
  const slots = Math.min(MAX_SLOTS, Math.ceil((perSecond * longestMs) / 1000) + 500);
  const client = await openClient(protocol, port, slots, newRunId());
  const calls = await openLoop({ perSecond, forMs: ms, slots, first }, client.send);
  client.close();
  return calls;
}

type Pids = { readonly server: number; readonly postmaster: number };

/** Runs a load, and returns the row of the table about it. */
async function measured(pids: Pids, books: pg.Client, providerPort: number, run: () => Promise<EndedCall[]>) {
  const cpu = () => [cpuMs(pids.server), cpuOfTreeMs(pids.postmaster)] as const;
  const before = cpu();
  const calls = await run();
  const after = cpu();
  const sockets = await (await fetch(`http://127.0.0.1:${providerPort}/sockets`)).text();
  const byStatus = await compareBooks(books, providerPort, calls);
  const added = calls
    .filter(({ ok }) => ok)
    .map((call) => call.latencyMs - latencyMs(latency, FIRST_AMOUNT_CENTS + call.sequence));
  const perCall = (ms: number) => Math.round((100 * ms) / calls.length) / 100;
  return {
    sent: calls.length,
    ...byStatus,
    'refused %': percent(calls, ({ ok }) => !ok),
    'added p50 ms': quantile(added, 0.5),
    'added p99 ms': quantile(added, 0.99),
    'CPU ms: server': perCall(after[0] - before[0]),
    PostgreSQL: perCall(after[1] - before[1]),
    'peak MB so far': Math.round(peakResidentMb(pids.server)),
    'provider sockets': Number(sockets),
  };
}

function percent(calls: readonly EndedCall[], matches: (call: EndedCall) => boolean): number {
  return Math.round((1000 * calls.filter(matches).length) / calls.length) / 10;
}

/**
 * Counts the stored payments by status, and empties both sides.
 *
 * @throws Error if an accepted payment is not stored, or one that the database calls paid is not at the provider once.
 */
async function compareBooks(books: pg.Client, providerPort: number, calls: readonly EndedCall[]) {
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

function positive(name: string, text: string): number {
  const number = Number(text);
  if (number > 0 && Number.isInteger(number)) return number;
  throw new Error(`--${name} must be a positive whole number`);
}

function optional(name: 'timeout-ms' | 'slots' | 'database-delay-ms'): number | undefined {
  const text = values[name];
  return text === undefined ? undefined : positive(name, text);
}
