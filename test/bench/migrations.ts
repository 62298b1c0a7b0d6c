import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import pg from 'pg';
import { pino } from 'pino';
import { PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { readArguments } from '#src/commands/command-line.ts';
import { startBackfill } from '#src/payments/backfill-payments.ts';
import { resolveDataDir } from '#src/postgres/data-dir.ts';
import { startEmbeddedPostgres } from '#src/postgres/embedded-postgres.ts';
import { openDatabase } from '#src/store/database.ts';
import { MIGRATIONS, migrate } from '#src/store/migrate.ts';
import { LAST_OF_FIRST_RELEASE, startFirstRelease } from './first-release.ts';
import { storePayments } from './stored-payments.ts';
import { cleanUpAfter, type Ending } from './surroundings.ts';

const USAGE = `Usage: npm run bench:migrations -- [--payments 1000000 --replicas 4]

Fills a database of the first release with payments, and migrates it to this release while replicas of the first one go
on making payments. Tells for how long each migration made a payment wait, and ends with 1 when one waited too long or
failed.`;

const { values } = readArguments(USAGE, {
  options: {
    payments: { type: 'string', default: '1000000' },
    replicas: { type: 'string', default: '4' },
    'backfill-seconds': { type: 'string', default: '10' },
  },
});
/** Bytes of a stored answer, which compresses as JSON does. */
const ANSWER = Buffer.from(
  JSON.stringify({ items: Array.from({ length: 12 }, (_, i) => `item number ${i} of the order`) }),
);
const RECORD = toBinary(
  PaymentSchema,
  create(PaymentSchema, { merchantOrderId: 'order-1', description: 'x'.repeat(500) }),
);
const MAX_BLOCKED_MS = 1_000;
/** The migration from which on no replica may run that inserts a transaction without its account. */
const ACCOUNTS_ARE_NAMED = '0017_transaction_account_key.sql';

await cleanUpAfter((ending) => trial(Number(values.payments), Number(values.replicas), ending));

async function trial(payments: number, replicas: number, ending: Ending): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'payments-migrations-'));
  ending.push(() => rmSync(home, { recursive: true, force: true }));
  // As root, PostgreSQL runs as a user who has to pass through.
  chmodSync(home, 0o711);
  const log = pino({ level: 'error' }, pino.destination(2));
  const dataDir = resolveDataDir({ explicit: undefined, checkoutDir: home });
  ending.push(() => rmSync(dataDir, { recursive: true, force: true }));
  const postgres = await startEmbeddedPostgres({ dataDir, log });
  ending.push(() => postgres.stop());
  const database = openDatabase({ url: postgres.url, maxConnections: 4, log });
  ending.push(() => database.close());
  const client = new pg.Client(postgres.url);
  await client.connect();
  ending.push(() => client.end());

  const bytes = { record: RECORD, answer: ANSWER };
  const files = readdirSync(MIGRATIONS).sort();
  const directory = join(home, 'migrations');
  mkdirSync(directory);
  const bring = (file: string) => copyFileSync(join(MIGRATIONS, file), join(directory, file));
  for (const file of files.slice(0, LAST_OF_FIRST_RELEASE)) bring(file);
  await migrate(database, directory);
  console.log(`storing ${payments} payments`);
  await storePayments(client, payments, bytes);
  const { rows } = await client.query('SELECT pg_size_pretty(pg_database_size(current_database())) AS size');
  console.log(`the database is of ${rows[0].size}; ${replicas} replicas of the first release go on paying`);

  const release = startFirstRelease(postgres.url, replicas, bytes);
  ending.push(release.stop);
  let longestMs = 0;
  let totalS = 0;
  async function step(name: string, work: () => Promise<unknown>): Promise<void> {
    release.takeLongest();
    const startedMs = performance.now();
    await work();
    const tookS = (performance.now() - startedMs) / 1_000;
    const { ms, payments: paid } = release.takeLongest();
    longestMs = Math.max(longestMs, ms);
    totalS += tookS;
    console.log(
      `${name.padEnd(36)}${tookS.toFixed(1).padStart(8)} s   longest wait ${ms.toFixed(0).padStart(6)} ms   ${paid} paid`,
    );
  }
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  await step('no migration, for comparison', () => pause(10_000));
  for (const file of files.slice(LAST_OF_FIRST_RELEASE)) {
    if (file > ACCOUNTS_ARE_NAMED) release.nameAccounts();
    bring(file);
    await step(file, () => migrate(database, directory));
  }
  console.log(`in all ${totalS.toFixed(0)} s; the longest wait was ${longestMs.toFixed(0)} ms`);

  const backfillS = Number(values['backfill-seconds']);
  const filled = await filledIn(client);
  const stop = startBackfill(database, { onError: (error) => console.error(error) });
  await step('backfill, its beginning', () => pause(backfillS * 1_000));
  await stop();
  const perSecond = ((await filledIn(client)) - filled) / backfillS;
  console.log(`the backfill fills in ${perSecond.toFixed(0)} payments a second beside this load`);
  for (const failure of new Set(release.failures)) console.log(`failed: ${failure}`);
  if (longestMs > MAX_BLOCKED_MS || release.failures.length > 0) process.exitCode = 1;
}

async function filledIn(client: pg.Client): Promise<number> {
  const { rows } = await client.query(
    'SELECT count(*)::integer AS filled FROM payment WHERE merchant_order_id IS NOT NULL',
  );
  return rows[0].filled;
}
