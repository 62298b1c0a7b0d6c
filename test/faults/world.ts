import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { catalogueOf } from './catalogue.ts';
import { type Cluster, HASH_KEY, VAULT_KEY } from './cluster.ts';
import { startDatabaseProxy } from './database-proxy.ts';
import { createGate, type Gate } from './gate.ts';
import { type Answer, makeOrder, type Order, type OrderOptions, paymentOf, send } from './orders.ts';
import { type Process, startProcess } from './processes.ts';
import { startProviderProxy } from './provider-proxy.ts';
import { createRandom, type Random } from './random.ts';
import type { TcpProxy } from './tcp-proxy.ts';
import { type StatusWatch, watchStatuses } from './watch.ts';

/** One run of one case: a database, a judge, proxies before both, and the replicas that the case starts. */
export type World = {
  readonly random: Random;
  /** Checkout of the service under test. */
  readonly checkout: string;
  readonly cluster: Cluster;
  /** Between the replicas and the database, and between the replicas and the provider. */
  readonly database: TcpProxy;
  readonly provider: TcpProxy;
  readonly gate: Gate;
  readonly judge: Process;
  readonly orders: readonly Order[];
  /** Every replica that was started, those that were killed included. */
  readonly replicas: readonly Process[];
  readonly watch: StatusWatch;
  /** Number of handles that each replica held once it had started. */
  readonly baselines: ReadonlyMap<Process, number>;
  startReplica(options?: ReplicaOptions): Promise<Process>;
  /** Writes the catalogue with a change. @returns its file, for a replica's CATALOGUE_FILE. */
  catalogueWith(change: (text: string) => string): string;
  /** Starts a provider with a ledger of its own; `url` is its port. */
  startProvider(): Promise<Process>;
  order(options?: OrderOptions): Order;
  /** Sends an order again and again, each time to a replica that is alive, until it is answered with a payment. */
  insist(order: Order): Promise<Answer>;
  /** Waits until no outcome is open. @returns whether that came in time. */
  drain(): Promise<boolean>;
  /** Tells of the transactions whose outcome is open. */
  open(): Promise<string>;
  /** Waits for something, at most `timeoutMs` (30 s by default). */
  until(what: string, holds: () => Promise<boolean> | boolean, timeoutMs?: number): Promise<void>;
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /** Expectations that failed, a line each. */
  readonly disappointments: string[];
  expect(seen: boolean, what: string): void;
  /** Notes that the case cannot be tried here, and the reason. */
  skip(why: string): void;
  readonly skipped: () => string | undefined;
  /** Does something once the database is gone. */
  atEnd(undo: () => Promise<void>): void;
  /** Reads what the judge, or another provider, says that it has. */
  ledger(of?: Process): Promise<LedgerLine[]>;
  ledgerFile(): string;
  close(): Promise<void>;
};

export type LedgerLine = {
  readonly id: string;
  readonly idempotency_key: string;
  readonly kind: string;
  readonly acquirer: string;
  readonly status: string;
  readonly amount: number;
  readonly currency: string;
  readonly amount_captured: number;
  readonly amount_refunded: number;
  /** ISO 8583; null where no issuer was asked. */
  readonly response_code: string | null;
  /** The merchant's reference, as the provider was told it. */
  readonly reference: string | null;
};

export type ReplicaOptions = {
  /** Nobody dies in this case: no lease runs out, and nobody is held up for too long to send, however busy the machine is. */
  readonly unhurried?: true;
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeOptions?: readonly string[];
  /** Checkout of this replica's service, when it is of another release. */
  readonly checkout?: string;
};

const API_KEY = 'faults_api_key';
/** Signs the notifications that a case sends in the provider's name; the judge itself sends none. */
export const NOTIFICATION_SECRET = 'faults_notification_secret';
const PROVIDER_ANNOUNCES = /sandbox provider: http:\/\/127\.0\.0\.1:(\d+)/;
const SERVICE_ANNOUNCES = /Payments service: (http:\/\/\S+)/;
const NO_DATABASE = /no connection to the database: .*timeout|idle-in-transaction timeout/;
const OPEN = `FROM transaction
  WHERE look_up_at IS NOT NULL OR (parent_id IS NOT NULL AND follow_up_at IS NOT NULL)`;
const DRAIN_TIMEOUT_MS = 60_000;
const INSIST_TIMEOUT_MS = 60_000;

/** Times that are short, so that a run is. */
const SCHEDULE = {
  LEASE_MARGIN_MS: '3000',
  LOOK_UP_FIRST_MS: '200',
  LOOK_UPS_BEFORE_CLOSING: '2',
  RECOVERY_INTERVAL_MS: '100',
  IN_PROGRESS_WAIT_MS: '1500',
  DATABASE_MAX_CONNECTIONS: '6',
  LOG_LEVEL: 'debug',
};

/** Opens a world. `checkout` is where the service under test lies. */
export async function openWorld(options: {
  readonly seed: number;
  readonly cluster: Cluster;
  readonly checkout: string;
}): Promise<World> {
  const { cluster, checkout } = options;
  const home = mkdtempSync(join(tmpdir(), 'faults-world-'));
  const ledgerFile = join(home, 'ledger.jsonl');
  const gate = createGate();
  const databaseUrl = new URL(await cluster.createDatabase());
  const startJudge = (file: string) =>
    startProcess({
      checkout,
      program: 'src/sandbox/main.ts',
      args: ['--ledger-file', file, '--port', '0', '--api-key', API_KEY],
      announces: PROVIDER_ANNOUNCES,
    });
  const judge = await startJudge(ledgerFile);
  const database = await startDatabaseProxy(cluster.port(), gate);
  const provider = await startProviderProxy(Number(judge.url), gate);
  const catalogue = catalogueOf(provider.port, Number(judge.url));
  const catalogueWith: World['catalogueWith'] = (change) => {
    const file = join(home, `catalogue-${randomUUID()}.yaml`);
    writeFileSync(file, change(catalogue));
    return file;
  };
  const catalogueFile = catalogueWith((text) => text);

  const random = createRandom(options.seed);
  const orders: Order[] = [];
  const replicas: Process[] = [];
  const disappointments: string[] = [];
  const baselines = new Map<Process, number>();
  const undoing: (() => Promise<void>)[] = [];
  let skipped: string | undefined;
  const direct = () => {
    const url = new URL(databaseUrl);
    url.port = String(cluster.port());
    return url.href;
  };
  const pool = () => new pg.Pool({ connectionString: direct(), max: 2 }).on('error', () => {});
  let own = pool();
  let ownPort = cluster.port();
  const query: World['query'] = async (sql, values) => {
    if (ownPort !== cluster.port()) {
      ownPort = cluster.port();
      void own.end();
      own = pool();
    }
    return (await own.query(sql, values)).rows;
  };
  const watch = watchStatuses(query);

  async function until(what: string, holds: () => Promise<boolean> | boolean, timeoutMs = 30_000) {
    const deadline = performance.now() + timeoutMs;
    while (!(await holds())) {
      if (performance.now() > deadline) throw new Error(`in vain waited for: ${what}`);
      await sleep(20);
    }
  }

  async function insist(order: Order): Promise<Answer> {
    const deadline = performance.now() + INSIST_TIMEOUT_MS;
    for (;;) {
      const alive = replicas.filter((replica) => replica.isAlive());
      const replica = alive[order.answers.length % alive.length];
      const answer = replica && (await send(replica.url, order));
      if (answer && paymentOf(answer)) return answer;
      if (performance.now() > deadline) throw new Error(`no payment for ${order.key}: ${answer?.status}`);
      await sleep(100);
    }
  }

  return {
    random,
    checkout,
    cluster,
    database,
    provider,
    gate,
    judge,
    orders,
    replicas,
    watch,
    baselines,
    disappointments,
    query,
    until,
    insist,
    async startReplica({ env = {}, nodeOptions = [], checkout: from = checkout, unhurried } = {}) {
      const viaProxy = new URL(databaseUrl);
      viaProxy.port = String(database.port);
      const start = () =>
        startProcess({
          checkout: from,
          program: 'src/main.ts',
          nodeOptions,
          env: {
            PORT: '0',
            DATABASE_URL: viaProxy.href,
            CATALOGUE_FILE: catalogueFile,
            SANDBOX: 'off',
            FAULTS_API_KEY: API_KEY,
            FAULTS_NOTIFICATION_SECRET: NOTIFICATION_SECRET,
            WEBHOOKS_ALLOW_PRIVATE: 'on',
            VAULT_KEYS: `faults-1:${VAULT_KEY.toString('base64')}`,
            HASH_KEY: HASH_KEY.toString('base64'),
            ...SCHEDULE,
            ...(unhurried && { LEASE_MARGIN_MS: '20000' }),
            ...env,
          },
          announces: SERVICE_ANNOUNCES,
        });
      const replica = await insistently(start);
      replicas.push(replica);
      baselines.set(replica, replica.usage().handles);
      return replica;
    },
    catalogueWith,
    async startProvider() {
      const other = await startJudge(join(home, `ledger-${randomUUID()}.jsonl`));
      undoing.push(() => other.kill());
      return other;
    },
    order(orderOptions) {
      const order = makeOrder(random, orderOptions);
      orders.push(order);
      return order;
    },
    async drain() {
      const isDry = async () => (await query(`SELECT 1 ${OPEN} LIMIT 1`).catch(() => [1])).length === 0;
      return until('the end of recovery', isDry, DRAIN_TIMEOUT_MS).then(
        () => true,
        () => false,
      );
    },
    async open() {
      const rows = await query(`SELECT id, type, status, connection_id, fence, now() - created_at AS age,
        coalesce(look_up_at, follow_up_at) - now() AS due_in ${OPEN} LIMIT 5`).catch(() => []);
      return JSON.stringify(rows);
    },
    expect(seen, what) {
      if (!seen) disappointments.push(what);
    },
    skip(why) {
      skipped = why;
    },
    skipped: () => skipped,
    atEnd: (undo) => void undoing.push(undo),
    ledger: (of = judge) => readLedger(`http://127.0.0.1:${of.url}`),
    ledgerFile: () => (existsSync(ledgerFile) ? readFileSync(ledgerFile, 'utf8') : ''),
    async close() {
      await watch.stop();
      await Promise.all(replicas.map((replica) => replica.isAlive() && replica.kill()));
      await judge.kill();
      await Promise.all([database.close(), provider.close(), own.end()]);
      await cluster.dropDatabase(direct());
      for (const undo of undoing) await undo();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

const STARTS = 5;

/** On a busy machine a service may find no database in time; whoever runs it starts it again then. */
async function insistently(start: () => Promise<Process>): Promise<Process> {
  for (let starts = 1; ; starts++) {
    try {
      return await start();
    } catch (error) {
      if (starts === STARTS || !NO_DATABASE.test(`${(error as Error).cause}`)) throw error;
    }
  }
}

async function readLedger(url: string): Promise<LedgerLine[]> {
  const lines: LedgerLine[] = [];
  for (let after: string | null = ''; after !== null; ) {
    const response = await fetch(`${url}/v1/ledger?after=${after}`, {
      headers: { authorization: `Bearer ${API_KEY}` },
    });
    const page = (await response.json()) as { entries: LedgerLine[]; next: string | null };
    lines.push(...page.entries);
    after = page.next;
  }
  return lines;
}
