import { randomBytes, randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { createBinTable } from '#src/payments/method/bin-table.ts';
import { resolveDataDir } from '#src/postgres/data-dir.ts';
import { startEmbeddedPostgres } from '#src/postgres/embedded-postgres.ts';
import { addSandboxFixtures } from '#src/server/sandbox-fixtures.ts';
import { type Database, openDatabase } from '#src/store/engine/database.ts';
import { migrate } from '#src/store/engine/migrate.ts';
import { insertWebhook } from '#src/store/tables/webhooks.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { hashKeys } from '#src/vault/key-file.ts';
import { EVENT_TYPES } from '#src/webhooks/events.ts';
import { newSigningSecret } from '#src/webhooks/signing-secret.ts';
import { cloneCitus, createCitusTemplate, dropCitus } from '../support/citus.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../support/payment-requests.ts';
import { databaseUrl, runIn } from '../support/run-in.ts';

/** The keys of every service under test. */
export const VAULT_KEY = randomBytes(32);
export const HASH_KEY = randomBytes(32);

const TEMPLATE = 'template_faults';
const log = pino({ level: 'silent' });

/** A PostgreSQL that waits for the disk at every commit and can be killed. */
export type Cluster = {
  readonly port: () => number;
  /** The webhook secrets, keyed by account. */
  readonly signingSecrets: ReadonlyMap<string, string>;
  /** Creates a database with the schema and the sandbox's fixtures. @returns its URL. */
  createDatabase(): Promise<string>;
  /** Creates an empty database for a provider's ledger in a separate PostgreSQL. @returns its URL. */
  createLedger(): Promise<string>;
  dropDatabase(url: string): Promise<unknown>;
  run(sql: string): Promise<unknown>;
  /** Kills the postmaster with SIGKILL; its sessions then exit by themselves. */
  kill(): Promise<void>;
  /** Freezes and thaws the postmaster and every session. */
  freeze(): void;
  thaw(): void;
  /** Stops PostgreSQL, or cleans up after `kill`, and starts it on another port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
};

/** Starts a PostgreSQL in a new directory. @param checkout the source of the schema. */
export async function startCluster(checkout: string): Promise<Cluster> {
  const home = mkdtempSync(join(tmpdir(), 'payments-faults-'));
  chmodSync(home, 0o711);
  const dataDir = resolveDataDir({ explicit: undefined, checkoutDir: home });
  const start = () => startEmbeddedPostgres({ dataDir, log });
  let postgres = await start();
  const ledgersDir = resolveDataDir({ explicit: undefined, checkoutDir: join(home, 'ledgers') });
  const ledgers = await startEmbeddedPostgres({ dataDir: ledgersDir, log });

  const run = (sql: string) => runIn(postgres.url, sql);
  const address = (name: string) => databaseUrl(postgres.url, name);
  await run(`CREATE DATABASE ${TEMPLATE} TEMPLATE template0`);
  const signingSecrets = await fill(address(TEMPLATE), checkout);

  const postmaster = () =>
    Number(readFileSync(join(dataDir, 'postgres/data/postmaster.pid'), 'utf8').split('\n')[0]);
  const signalAll = (signal: NodeJS.Signals) => {
    const parent = postmaster();
    const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ');
    for (const pid of [parent, ...children.map(Number)]) if (pid) process.kill(pid, signal);
  };
  return {
    port: () => Number(new URL(postgres.url).port),
    signingSecrets,
    async createDatabase() {
      const name = `faults_${randomBytes(8).toString('hex')}`;
      await run(`CREATE DATABASE ${name} TEMPLATE ${TEMPLATE}`);
      return address(name);
    },
    async createLedger() {
      const name = `ledger_${randomBytes(8).toString('hex')}`;
      await runIn(ledgers.url, `CREATE DATABASE ${name}`);
      return databaseUrl(ledgers.url, name);
    },
    dropDatabase: (url) => run(`DROP DATABASE IF EXISTS ${new URL(url).pathname.slice(1)} WITH (FORCE)`),
    run,
    async kill() {
      process.kill(postmaster(), 'SIGKILL');
      await postgres.stop();
    },
    freeze: () => signalAll('SIGSTOP'),
    thaw: () => signalAll('SIGCONT'),
    async restart() {
      await postgres.stop();
      postgres = await start();
    },
    async stop() {
      await Promise.all([postgres.stop(), ledgers.stop()]);
      for (const directory of [dataDir, ledgersDir, home])
        rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Thrown on Citus by a case that would stop or fill the database, because the operator has started that database. */
export class NotOnCitus extends Error {
  override readonly name = 'NotOnCitus';
}

/**
 * Uses a Citus cluster instead, which the operator has started and which is never stopped.
 *
 * @param coordinatorUrl a database of the coordinator to which workers were added.
 */
export async function useCitus(checkout: string, coordinatorUrl: string): Promise<Cluster> {
  const home = mkdtempSync(join(tmpdir(), 'payments-faults-'));
  chmodSync(home, 0o711);
  const dataDir = resolveDataDir({ explicit: undefined, checkoutDir: home });
  const ledgers = await startEmbeddedPostgres({ dataDir, log });
  let signingSecrets: ReadonlyMap<string, string> = new Map();
  await createCitusTemplate(coordinatorUrl, TEMPLATE, async (url) => {
    signingSecrets = await fill(url, checkout);
  });
  const cannot = () => {
    throw new NotOnCitus('stops or fills the database');
  };
  return {
    port: () => Number(new URL(coordinatorUrl).port),
    signingSecrets,
    async createDatabase() {
      const name = `faults_${randomBytes(8).toString('hex')}`;
      const url = await cloneCitus(coordinatorUrl, name, TEMPLATE);
      // The invariant checks join tables by ids alone.
      await runIn(url, `ALTER DATABASE ${name} SET citus.enable_repartition_joins = on`);
      return url;
    },
    async createLedger() {
      const name = `ledger_${randomBytes(8).toString('hex')}`;
      await runIn(ledgers.url, `CREATE DATABASE ${name}`);
      return databaseUrl(ledgers.url, name);
    },
    dropDatabase: (url) => dropCitus(coordinatorUrl, new URL(url).pathname.slice(1)),
    ...{ run: cannot, kill: cannot, freeze: cannot, thaw: cannot, restart: cannot },
    async stop() {
      await ledgers.stop();
      for (const directory of [dataDir, home]) rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Adds the accounts' webhooks. @returns their secrets. */
async function fill(url: string, checkout: string): Promise<Map<string, string>> {
  const secrets = new Map<string, string>();
  const database = openDatabase({ url, maxConnections: 1, log });
  try {
    await migrate(database, join(checkout, 'src/store/migrations'));
    await addSandboxFixtures(database, {
      vault: cardVault(new Map([['faults-1', VAULT_KEY]])),
      fingerprintKey: hashKeys(HASH_KEY).fingerprintKey,
      bins: createBinTable(readCatalogue(join(checkout, 'config/sandbox-catalogue.yaml')).bins),
    });
    // The services under test run without the sandbox, which would refuse its accounts.
    await database.query({ name: 'unmark_accounts', text: 'UPDATE account SET sandbox = false' });
    for (const account of [ACCOUNT_ONE, ACCOUNT_TWO]) {
      secrets.set(account, await addWebhook(database, account));
    }
    return secrets;
  } finally {
    await database.close();
  }
}

/** Adds a webhook for all events at a port without a server, so that the outbox has every event. */
async function addWebhook(database: Database, accountId: string): Promise<string> {
  const id = randomUUID();
  const { sealed: secret, shown } = await newSigningSecret(cardVault(new Map([['faults-1', VAULT_KEY]])), id);
  const webhook = { accountId, id, url: 'http://127.0.0.1:9/', description: '', events: EVENT_TYPES, secret };
  await insertWebhook(database, webhook, 1);
  return shown;
}
