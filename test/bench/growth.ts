import { writeFileSync } from 'node:fs';
import pg from 'pg';
import { readArguments } from '#src/commands/command-line.ts';
import { createProgress } from '#src/commands/progress.ts';
import { openBooks } from './books.ts';
import type { LoopResult } from './closed-loop.ts';
import { curveSvg } from './curve-svg.ts';
import type { LoadOrder } from './load.ts';
import { cpuMs, cpuOfTreeMs, machineName } from './proc.ts';
import { newRunId, PUBLIC_KEY, SECRET_KEY } from './request.ts';
import { startService } from './service.ts';
import { addAccounts, storePayments } from './stored-payments.ts';
import { cleanUpAfter, type Ending, startSurroundings } from './surroundings.ts';
import { startWorker } from './worker.ts';

const USAGE = `Usage: node test/bench/growth.ts [--stored 100000,1000000,10000000 --seconds 10 --concurrency 16 --svg growth.svg]

Fills a database in steps and measures at each size the cost of a payment and the duration of reads: a payment, pages of
the list by each filter, the dashboard's searches, the start of the service, and the search for due work. The database
and the provider's ledger must agree after each run.`;

const { values } = readArguments(USAGE, {
  options: {
    stored: { type: 'string', default: '100000,1000000,10000000' },
    seconds: { type: 'string', default: '10' },
    concurrency: { type: 'string', default: '16' },
    svg: { type: 'string' },
  },
});
const sizes = values.stored.split(',').map(Number);
if (!sizes.every((size, i) => Number.isInteger(size) && size > (sizes[i - 1] ?? 0))) {
  throw new Error('--stored must be ascending numbers of payments');
}
const plan = {
  concurrency: Number(values.concurrency),
  leadInMs: 5_000,
  measuredMs: Number(values.seconds) * 1_000,
};
const OPERATOR_KEY = 'op_bench_0123456789abcdef';
const READS = 40;

type Row = Readonly<Record<string, number>>;

await cleanUpAfter(grow);

async function grow(ending: Ending): Promise<void> {
  const site = await startSurroundings('growth', ending);
  const load = await startWorker<LoadOrder, LoopResult>('load.ts');
  ending.push(load.stop);
  const client = new pg.Client(site.databaseUrl);
  await client.connect();
  ending.push(() => client.end());
  const sample = await sampleOf(site);
  await addAccounts(client);
  const progress = createProgress(process.stderr);
  const rows = new Map<number, Row>();
  for (const [i, size] of sizes.entries()) {
    progress.state(`storing ${size} payments`);
    const before = { stored: sizes[i - 1] ?? 0, most: sizes.at(-1) ?? size };
    await storePayments(client, size, sample, before);
    progress.state(`measuring at ${size}`);
    rows.set(size, await measureAt(site, load.ask));
  }
  progress.end();
  console.log(`${machineName()}, ${plan.concurrency} at a time`);
  console.table(Object.fromEntries(rows));
  if (values.svg === undefined) return;
  const line = (name: string) => [...rows.values()].map((row) => row[name] ?? Number.NaN);
  const panels = [
    { title: 'payments per second, by REST', lines: { '': line('payments/s') } },
    { title: 'ms per payment', lines: { p99: line('p99 ms'), p50: line('p50 ms') } },
    {
      title: 'CPU ms per payment',
      lines: { service: line('server CPU ms'), PostgreSQL: line('PG CPU ms') },
    },
    {
      title: 'ms per read',
      lines: { 'list by status': line('by status ms'), list: line('list ms'), 'one payment': line('get ms') },
    },
    {
      title: 'ms per dashboard page',
      lines: { 'found by card': line('by card ms'), newest: line('dashboard ms') },
    },
  ];
  writeFileSync(values.svg, curveSvg(sizes, panels));
}

type Site = Awaited<ReturnType<typeof startSurroundings>>;

async function serviceOf({ home, databaseUrl, provider }: Site) {
  const options = { name: 'growth', home, databaseUrl, providerPort: provider.port, nodeOptions: [] };
  return startService({ ...options, environment: { OPERATOR_KEYS: OPERATOR_KEY } });
}

/** The bytes of a payment as this service stores it. */
async function sampleOf(site: Site): Promise<{ record: Buffer; response: Buffer }> {
  const service = await serviceOf(site);
  const books = await openBooks(site.databaseUrl, site.provider.port);
  const { record, response } = await books.samplePayment(service.port);
  await books.open();
  await books.close();
  await service.stop();
  return { record: Buffer.from(record, 'base64'), response: Buffer.from(response, 'base64') };
}

async function measureAt(site: Site, ask: (order: LoadOrder) => Promise<LoopResult>): Promise<Row> {
  const startedMs = performance.now();
  const service = await serviceOf(site);
  const startS = (performance.now() - startedMs) / 1_000;
  const books = await openBooks(site.databaseUrl, site.provider.port, true);
  try {
    await books.open();
    const [serverMs, postgresMs] = [cpuMs(service.pid), cpuOfTreeMs(site.postmaster)];
    const runId = newRunId();
    const { sent, failed, ...speed } = await ask({ protocol: 'rest', port: service.port, runId, plan });
    const [serverCpu, postgresCpu] = [
      cpuMs(service.pid) - serverMs,
      cpuOfTreeMs(site.postmaster) - postgresMs,
    ];
    if (failed > 0) throw new Error(`${failed} of ${sent} failed`);
    const { walBytes } = await books.compare({ sent, runId, atProvider: true });
    return {
      'payments/s': Math.round(speed.perSecond),
      'p50 ms': round(speed.p50Ms),
      'p99 ms': round(speed.p99Ms),
      'server CPU ms': round(serverCpu / sent),
      'PG CPU ms': round(postgresCpu / sent),
      'WAL KB': round(walBytes / sent / 1_000),
      ...(await reads(`http://127.0.0.1:${service.port}`)),
      'due work ms': await dueWorkMs(service.port),
      'start s': round(startS),
    };
  } finally {
    await books.close();
    await service.stop();
  }
}

/** Median durations of reads, in milliseconds. */
async function reads(url: string): Promise<Row> {
  const headers = { 'public-api-key': PUBLIC_KEY, 'private-secret-key': SECRET_KEY };
  const list = `${url}/v1/payments?page_size=50`;
  const cookie = await signIn(url);
  const get = async (address: string): Promise<Response> => {
    const response = await fetch(address, { headers: { ...headers, cookie }, redirect: 'manual' });
    if (response.status !== 200) throw new Error(`${address} responded ${response.status}`);
    return response;
  };
  const [newest] = (await (await get(list)).json()) as { id: string }[];
  const medians: Record<string, number> = {};
  for (const [name, address] of Object.entries({
    'get ms': `${url}/v1/payments/${newest?.id}`,
    'list ms': list,
    'by status ms': `${list}&status=DECLINED`,
    'by order ms': `${list}&merchant_order_id=order-100`,
    'dashboard ms': `${url}/dashboard/payments`,
    'by card ms': `${url}/dashboard/payments?by=last_four&text=0007`,
  })) {
    const took: number[] = [];
    for (let i = 0; i < READS; i++) {
      const startedMs = performance.now();
      await (await get(address)).arrayBuffer();
      took.push(performance.now() - startedMs);
    }
    medians[name] = round(took.sort((a, b) => a - b)[READS / 2] ?? Number.NaN);
  }
  return medians;
}

async function signIn(url: string): Promise<string> {
  const response = await fetch(`${url}/dashboard/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams({ key: OPERATOR_KEY }),
  });
  if (response.status !== 303) throw new Error(`the dashboard responded ${response.status}`);
  return response.headers.get('set-cookie')?.split(';')[0] ?? '';
}

/** Mean duration of the search for due work, in milliseconds. */
async function dueWorkMs(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const sample = (kind: string) =>
    Number(
      new RegExp(`^database_query_seconds_${kind}{[^}]*find_due_work[^}]*} (\\S+)$`, 'm').exec(text)?.[1],
    );
  return round((1_000 * sample('sum')) / sample('count'));
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
