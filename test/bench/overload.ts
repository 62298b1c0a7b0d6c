import pg from 'pg';
import { readArguments } from '#src/commands/command-line.ts';
import { closedLoop } from './closed-loop.ts';
import { type EndedCall, openClient, openLoop, quantile } from './open-loop.ts';
import { cpuMs, machineName } from './proc.ts';
import { newRunId } from './request.ts';
import { startService } from './service.ts';
import { startSurroundings } from './surroundings.ts';

const USAGE = `Usage: node test/bench/overload.ts [--seconds 8 --rounds 3 --protocol rest]

Measures the capacity of the service in payments per second, then offers that load and twice that load, whether or not
the service responds. The two loads take turns, so that a disturbance of the machine affects both. The benchmark checks
that every call ends by its deadline, and that the database and the provider's ledger contain exactly the accepted
payments. It reports the accepted payments, which should not drop under twice the load. Set the service's limits in the
environment: MAX_AT_WORK=64 node test/bench/overload.ts`;

const { values } = readArguments(USAGE, {
  options: {
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '3' },
    protocol: { type: 'string', default: 'rest' },
  },
});
const measuredMs = Number(values.seconds) * 1000;
const protocol = values.protocol === 'grpc' ? 'grpc' : 'rest';
/** Maximum number of concurrent calls. */
const SLOTS = 1_500;
const CAPACITY_CONCURRENCY = 64;
/** The time within which every call must end. */
const DEADLINE_MS = 5_000;
/** Time that is not measured: throughput is lower until the wait of accepted calls has stabilized. */
const LEAD_IN_MS = 2_000;
const OFFERED_MS = LEAD_IN_MS + measuredMs;

/** Cleanup at the end, in reverse order. */
const ending: (() => unknown)[] = [];
try {
  await bench();
} finally {
  for (const undo of ending.reverse()) await undo();
}

async function bench(): Promise<void> {
  const { port, pid, compare } = await setUp();
  console.log(`${machineName()}, ${values.protocol}`);
  await findCapacity(port, compare, 3_000);
  const capacity = await findCapacity(port, compare, 5_000);
  const slices: Record<string, Slice[]> = { '1×': [], '2×': [] };
  // The first round is not measured: the code that refuses calls has not run before, so it is not compiled yet.
  for (let round = 0; round <= Number(values.rounds); round++) {
    for (const [name, taken] of Object.entries(slices)) {
      const client = await openClient(protocol, port, SLOTS, newRunId());
      const before = cpuMs(pid);
      const perSecond = capacity * Number.parseInt(name, 10);
      const calls = await openLoop({ perSecond, forMs: OFFERED_MS, slots: SLOTS }, client.send);
      if (round > 0) taken.push({ calls, serverCpuMs: cpuMs(pid) - before });
      client.close();
      await compare(calls.filter(({ ok }) => ok).length);
    }
  }
  console.log(`Capacity, ${CAPACITY_CONCURRENCY} at a time: ${Math.round(capacity)} payments per second`);
  console.table(Object.fromEntries(Object.entries(slices).map(([name, taken]) => [name, summary(taken)])));
}

type Compare = (accepted: number) => Promise<void>;

async function findCapacity(port: number, compare: Compare, forMs: number): Promise<number> {
  const client = await openClient(protocol, port, CAPACITY_CONCURRENCY, newRunId());
  const plan = { concurrency: CAPACITY_CONCURRENCY, leadInMs: 300, measuredMs: forMs };
  const { perSecond, sent, failed } = await closedLoop(plan, client.send);
  client.close();
  await compare(sent - failed);
  return perSecond;
}

/** The calls of a period, and the CPU time that they used. */
type Slice = { readonly calls: readonly EndedCall[]; readonly serverCpuMs: number };

function summary(slices: readonly Slice[]): Record<string, number> {
  const calls = slices.flatMap((slice) => slice.calls);
  const latencies = (ok: boolean) => calls.filter((call) => call.ok === ok).map((call) => call.latencyMs);
  const [accepted, refused] = [latencies(true), latencies(false)];
  const underLoad = calls.filter(
    (call) => call.ok && call.endedAtMs >= LEAD_IN_MS && call.endedAtMs < OFFERED_MS,
  );
  const per = (count: number, ms: number) => Math.round((1000 * count) / (slices.length * ms));
  const cpuMsInAll = slices.reduce((total, slice) => total + slice.serverCpuMs, 0);
  return {
    'sent/s': per(calls.length, OFFERED_MS),
    'accepted/s': per(underLoad.length, measuredMs),
    'refused %': Math.round((100 * refused.length) / calls.length),
    'accepted p50 ms': quantile(accepted, 0.5),
    'accepted p99 ms': quantile(accepted, 0.99),
    'refused p50 ms': quantile(refused, 0.5),
    'refused p99 ms': quantile(refused, 0.99),
    'slowest ms': quantile([...accepted, ...refused], 1),
    late: calls.filter((call) => call.latencyMs > DEADLINE_MS).length,
    'server CPU ms/call': round2(cpuMsInAll / calls.length),
    'server CPU ms/accepted': round2(cpuMsInAll / accepted.length),
  };
}

function round2(value: number): number {
  return Math.round(100 * value) / 100;
}

/** Starts everything; the database waits for the disk as in production. */
async function setUp(): Promise<{ port: number; pid: number; compare: Compare }> {
  const { home, databaseUrl, provider } = await startSurroundings('overload', ending);
  const service = await startService({
    name: 'overload',
    home,
    databaseUrl,
    providerPort: provider.port,
    nodeOptions: [],
  });
  ending.push(service.stop);
  const client = new pg.Client(databaseUrl);
  await client.connect();
  ending.push(() => client.end());
  return {
    port: service.port,
    pid: service.pid,
    compare: (accepted) => compareBooks(client, provider.port, accepted),
  };
}

/** Empties both books. @throws Error if they contain more or fewer payments than were accepted. */
async function compareBooks(client: pg.Client, providerPort: number, accepted: number): Promise<void> {
  const ledgerUrl = `http://127.0.0.1:${providerPort}/ledger`;
  const { rows } = await client.query<{ status: string; count: number }>(
    'SELECT status, count(*)::int AS count FROM payment GROUP BY status',
  );
  const charges = (await (await fetch(ledgerUrl)).text()).split('\n').filter((line) => line !== '').length;
  const isRight = charges === accepted && rows.every(({ status }) => status === 'SUCCEEDED');
  const stored = rows.reduce((sum, { count }) => sum + count, 0);
  if (!isRight || stored !== accepted) {
    throw new Error(
      `${accepted} were accepted, ${charges} are at the provider, stored: ${JSON.stringify(rows)}`,
    );
  }
  await client.query('TRUNCATE payment, transaction');
  await client.query('CHECKPOINT');
  await fetch(ledgerUrl, { method: 'DELETE' });
}
