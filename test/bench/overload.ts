import pg from 'pg';
import { readArguments } from '#src/commands/command-line.ts';
import { closedLoop } from './closed-loop.ts';
import { openGrpcClient } from './grpc-client.ts';
import { cpuMs, machineName } from './proc.ts';
import { newRunId } from './request.ts';
import { type Client, openRestClient } from './rest-client.ts';
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
const overGrpc = values.protocol === 'grpc';
/** Maximum number of concurrent calls. */
const SLOTS = 1_500;
/** Number of connections for gRPC, so that each carries fewer calls than its stream limit. */
const GRPC_CONNECTIONS = 6;
const CAPACITY_CONCURRENCY = 64;
/** Time within which every call must end. */
const DEADLINE_MS = 5_000;
const TICK_MS = 2;
/** Time that is not measured: throughput is lower until the wait of accepted calls has stabilized. */
const LEAD_IN_MS = 2_000;

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
  // The first round is not measured: nothing was refused before, so the code that refuses calls is not compiled yet.
  for (let round = 0; round <= Number(values.rounds); round++) {
    for (const [name, taken] of Object.entries(slices)) {
      const client = await openClient(port, SLOTS, newRunId());
      const before = cpuMs(pid);
      const slice = await openLoop(capacity * Number.parseInt(name, 10), client.send);
      if (round > 0) taken.push({ ...slice, serverCpuMs: cpuMs(pid) - before });
      client.close();
      await compare(slice.accepted.length);
    }
  }
  console.log(`Capacity, ${CAPACITY_CONCURRENCY} at a time: ${Math.round(capacity)} payments per second`);
  console.table(Object.fromEntries(Object.entries(slices).map(([name, taken]) => [name, summary(taken)])));
}

type Compare = (accepted: number) => Promise<void>;

async function findCapacity(port: number, compare: Compare, forMs: number): Promise<number> {
  // Spread evenly over the connections.
  const slots = Math.ceil(CAPACITY_CONCURRENCY / GRPC_CONNECTIONS) * GRPC_CONNECTIONS;
  const client = await openClient(port, slots, newRunId());
  const plan = { concurrency: CAPACITY_CONCURRENCY, leadInMs: 300, measuredMs: forMs };
  const { perSecond, sent, failed } = await closedLoop(plan, client.send);
  client.close();
  await compare(sent - failed);
  return perSecond;
}

/** A client for up to `SLOTS` concurrent calls. */
async function openClient(port: number, slots: number, runId: string): Promise<Client> {
  if (!overGrpc) return openRestClient(port, slots, runId);
  const clients = await Promise.all(
    Array.from({ length: GRPC_CONNECTIONS }, () => openGrpcClient(port, slots / GRPC_CONNECTIONS, runId)),
  );
  return {
    send: (slot, sequence, done) =>
      clients[slot % GRPC_CONNECTIONS]?.send(Math.floor(slot / GRPC_CONNECTIONS), sequence, done),
    close() {
      for (const client of clients) client.close();
    },
  };
}

/** The calls of a period by latency, and the number of accepted calls that ended under load after the lead-in. */
type Latencies = { readonly accepted: number[]; readonly refused: number[]; acceptedUnderLoad: number };
type Slice = Latencies & { readonly serverCpuMs: number };

/** Sends calls at a fixed rate, regardless of responses, and waits for the last response. */
function openLoop(perSecond: number, send: Client['send']): Promise<Latencies> {
  const free = Array.from({ length: SLOTS }, (_, slot) => slot);
  const latencies: Latencies = { accepted: [], refused: [], acceptedUnderLoad: 0 };
  const offeredMs = LEAD_IN_MS + measuredMs;
  let offered = 0;
  let sent = 0;
  const beginMs = performance.now();

  function sendOne(slot: number): void {
    const startedMs = performance.now();
    send(slot, sent++, (ok) => {
      const nowMs = performance.now();
      latencies[ok ? 'accepted' : 'refused'].push(nowMs - startedMs);
      const elapsedMs = nowMs - beginMs;
      if (ok && elapsedMs >= LEAD_IN_MS && elapsedMs < offeredMs) latencies.acceptedUnderLoad += 1;
      free.push(slot);
    });
  }

  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const elapsedMs = performance.now() - beginMs;
      if (elapsedMs >= offeredMs) {
        if (free.length < SLOTS) return;
        clearInterval(timer);
        resolve(latencies);
        return;
      }
      for (const due = Math.floor((elapsedMs / 1000) * perSecond); offered < due; offered++) {
        const slot = free.pop();
        if (slot !== undefined) sendOne(slot);
      }
    }, TICK_MS);
  });
}

function summary(slices: readonly Slice[]): Record<string, number> {
  const sum = (of: (slice: Slice) => number) => slices.reduce((total, slice) => total + of(slice), 0);
  const per = (count: number, ms: number) => Math.round((1000 * count) / (slices.length * ms));
  const accepted = slices.flatMap((slice) => slice.accepted);
  const refused = slices.flatMap((slice) => slice.refused);
  const all = [...accepted, ...refused];
  return {
    'sent/s': per(all.length, LEAD_IN_MS + measuredMs),
    'accepted/s': per(
      sum((slice) => slice.acceptedUnderLoad),
      measuredMs,
    ),
    'refused %': Math.round((100 * refused.length) / all.length),
    'accepted p50 ms': quantile(accepted, 0.5),
    'accepted p99 ms': quantile(accepted, 0.99),
    'refused p50 ms': quantile(refused, 0.5),
    'refused p99 ms': quantile(refused, 0.99),
    'slowest ms': quantile(all, 1),
    late: all.filter((ms) => ms > DEADLINE_MS).length,
    'server CPU ms/call': round2(sum((slice) => slice.serverCpuMs) / all.length),
    'server CPU ms/accepted': round2(sum((slice) => slice.serverCpuMs) / accepted.length),
  };
}

function round2(value: number): number {
  return Math.round(100 * value) / 100;
}

function quantile(latenciesMs: readonly number[], q: number): number {
  const sorted = Float64Array.from(latenciesMs).sort();
  return round2(sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN);
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

/** @throws Error if the books contain more or fewer payments than were accepted. Empties both. */
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
