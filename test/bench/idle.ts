import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { readArguments } from '#src/commands/command-line.ts';
import { runningEmbeddedPostgres } from '#src/postgres/embedded-postgres.ts';
import { optionalPositive, positive } from './arguments.ts';
import { checkOut } from './older-checkout.ts';
import { cpuMs, cpuOfTreeMs, machineName } from './proc.ts';
import { catalogue, launch } from './service.ts';
import { cleanUpAfter, type Ending } from './surroundings.ts';

const USAGE = `Usage: node test/bench/idle.ts [--seconds 60 --settle 60 --connections N --statements --against <ref>]

Starts the service as \`npm start\` does, with its own PostgreSQL, the sandbox and every default, and leaves it alone. After
--settle seconds, it measures for --seconds what the service and PostgreSQL use: the CPU time in percent of a core, and
the transactions a second. --connections N adds a catalogue with N connections. --statements lists the statements that
were run. --against also measures another commit, at the same time.`;

const { values } = readArguments(USAGE, {
  options: {
    seconds: { type: 'string', default: '60' },
    settle: { type: 'string', default: '60' },
    connections: { type: 'string' },
    statements: { type: 'boolean', default: false },
    against: { type: 'string' },
  },
});
const ROOT = join(import.meta.dirname, '../..');
const forMs = positive('seconds', values.seconds) * 1000;
const settleMs = positive('settle', values.settle) * 1000;
const connections = optionalPositive('connections', values.connections);

await cleanUpAfter(bench);

/** A service that nobody calls, with its PostgreSQL. */
type Subject = {
  readonly label: string;
  readonly pid: number;
  readonly port: number;
  readonly postmaster: number;
  readonly books: pg.Client;
};

async function bench(ending: Ending): Promise<void> {
  const subjects = [await start('service', ROOT, ending)];
  if (values.against !== undefined) {
    const older = checkOut(ROOT, values.against);
    ending.push(older.remove);
    subjects.push(await start(`at-${older.commit}`, older.path, ending));
  }
  await setTimeout(settleMs);
  console.log(`${machineName()}, idle for ${forMs / 1000} s, after ${settleMs / 1000} s`);
  const rows = await Promise.all(subjects.map(async (one) => [one.label, await measured(one)] as const));
  console.table(Object.fromEntries(rows.map(([label, { figures }]) => [label, figures])));
  if (!values.statements) return;
  for (const [label, { statements }] of rows) console.table({ [label]: statements });
}

async function start(label: string, checkout: string, ending: Ending): Promise<Subject> {
  const home = mkdtempSync(join(tmpdir(), 'payments-idle-'));
  ending.push(() => rmSync(home, { recursive: true, force: true }));
  // As root, PostgreSQL runs as another user, who needs access to the directory.
  chmodSync(home, 0o711);
  const dataDir = join(home, 'data');
  const env: Record<string, string> = { PORT: '0', DATA_DIR: dataDir };
  if (connections) {
    env.CATALOGUE_FILE = join(home, 'catalogue.yaml');
    env.BENCH_PROVIDER_KEY = 'bench';
    writeFileSync(env.CATALOGUE_FILE, catalogue({ providerPort: 1, connectionsBeside: connections - 1 }));
  }
  const { pid, port, stop } = await launch({ name: label, home, checkout, env });
  ending.push(stop);
  const books = new pg.Client(runningEmbeddedPostgres(dataDir));
  books.on('error', () => {});
  await books.connect();
  ending.push(() => books.end());
  const [postmaster] = readFileSync(join(dataDir, 'postgres/data/postmaster.pid'), 'utf8').split('\n');
  return { label, pid, port, postmaster: Number(postmaster), books };
}

async function measured({ pid, port, postmaster, books }: Subject) {
  const taken = async () => ({
    ...{ atMs: performance.now(), server: cpuMs(pid), postgres: cpuOfTreeMs(postmaster) },
    ...{ transactions: await readTransactions(books), statements: await countStatements(port) },
  });
  const before = await taken();
  await setTimeout(forMs);
  const after = await taken();
  const elapsedMs = after.atMs - before.atMs;
  const share = (name: 'server' | 'postgres') => (100 * (after[name] - before[name])) / elapsedMs;
  const counts = [...after.statements].map(([name, count]) => [
    name,
    count - (before.statements.get(name) ?? 0),
  ]);
  return {
    figures: {
      'server CPU %': share('server').toFixed(2),
      'PostgreSQL CPU %': share('postgres').toFixed(2),
      'together %': (share('server') + share('postgres')).toFixed(2),
      'transactions/s': ((1000 * (after.transactions - before.transactions)) / elapsedMs).toFixed(2),
    },
    statements: Object.fromEntries(counts.filter(([, count]) => Number(count) > 0)),
  };
}

/** PostgreSQL's processes report their transactions once a second at most, so a count may lag by that. */
async function readTransactions(books: pg.Client): Promise<number> {
  const { rows } = await books.query<{ count: number }>(
    'SELECT (xact_commit + xact_rollback)::float8 AS count FROM pg_stat_database WHERE datname = current_database()',
  );
  return rows[0]?.count ?? Number.NaN;
}

/** Counts the statements that the service has run, by name. */
async function countStatements(port: number): Promise<ReadonlyMap<string, number>> {
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const counts = metrics.matchAll(/^database_query_seconds_count\{.*?statement="([^"]+)".*\} (\d+)$/gm);
  return new Map([...counts].map(([, name = '', count]) => [name, Number(count)]));
}
