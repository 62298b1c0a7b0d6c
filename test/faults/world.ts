import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { catalogueOf, waitingLonger } from './catalogue.ts';
import { type Cluster, HASH_KEY, VAULT_KEY } from './cluster.ts';
import { startDatabaseProxy } from './database-proxy.ts';
import { drained } from './drain.ts';
import { createGate, type Gate } from './gate.ts';
import { deliver } from './notify.ts';
import { type Answer, makeOrder, type Order, type OrderOptions, paymentOf, send } from './orders.ts';
import { type Process, startNode, startProcess } from './processes.ts';
import { startProviderProxy } from './provider-proxy.ts';
import type { Ability, Judge, LedgerLine, Provider } from './providers/provider.ts';
import { createRandom, type Random } from './random.ts';
import type { TcpProxy } from './tcp-proxy.ts';
import { OPEN, type StatusWatch, watchStatuses } from './watch.ts';

/** One run of a case: a database, a judge, proxies in front of both, and the replicas that the case starts. */
export type World = {
  readonly random: Random;
  /** The checkout of the service under test. */
  readonly checkout: string;
  readonly cluster: Cluster;
  /** Proxies between the replicas and the database, and between the replicas and the provider. */
  readonly database: TcpProxy;
  readonly provider: TcpProxy;
  readonly gate: Gate;
  /** The kind of provider, and the running one. */
  readonly kind: Provider;
  readonly judge: Judge;
  /** Returns true if the provider has a feature that some providers lack. */
  can(ability: Ability): boolean;
  readonly orders: readonly Order[];
  /** Every started replica, including killed ones. */
  readonly replicas: readonly Process[];
  readonly watch: StatusWatch;
  /** The number of handles that each replica had after its start. */
  readonly baselines: ReadonlyMap<Process, number>;
  startReplica(options?: ReplicaOptions): Promise<Process>;
  /** Runs a command in the environment of a replica, with other variables. @returns its exit code. */
  command(
    program: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ): Promise<number | null>;
  /** Writes a changed catalogue. @returns the path of its file, for a replica's CATALOGUE_FILE. */
  catalogueWith(change: (text: string) => string): string;
  /** Starts another provider of the same kind with a separate ledger. */
  startProvider(): Promise<Judge>;
  order(options?: OrderOptions): Order;
  /** Repeats an order at running replicas until the response is a payment. */
  insist(order: Order): Promise<Answer>;
  /** Returns true if the response or, without look-ups, a later notification says that a payment succeeded. */
  isPaid(answer: Answer): Promise<boolean>;
  /** Waits until no outcome that the provider knows is open. @returns false if outcomes stopped ending (`drained`). */
  drain(): Promise<boolean>;
  /** Ends the leases of replicas that died. */
  endLeases(): Promise<void>;
  /** Describes the transactions with an open outcome. */
  open(): Promise<string>;
  /** Waits for a condition, for at most `timeoutMs` (a minute by default). */
  until(what: string, holds: () => Promise<boolean> | boolean, timeoutMs?: number): Promise<void>;
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /** Failed expectations, one per line. */
  readonly disappointments: string[];
  expect(seen: boolean, what: string): void;
  /** Skips the case, and records the reason why it cannot run here. */
  skip(why: string): void;
  readonly skipped: () => string | undefined;
  /** Runs `undo` after the database is dropped. */
  atEnd(undo: () => Promise<void>): void;
  /** Reads the ledger of the judge or of another provider. */
  ledger(of?: Judge): Promise<LedgerLine[]>;
  close(): Promise<void>;
};

export type ReplicaOptions = {
  /** Set if no process dies in the case: leases do not expire and payments are sent, however busy the machine is. */
  readonly unhurried?: true;
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeOptions?: readonly string[];
  /** The checkout of a replica of another release. */
  readonly checkout?: string;
};

const SERVICE_ANNOUNCES = /Payments service: (http:\/\/\S+)/;
const NO_DATABASE = /cannot connect to the database: .*timeout|idle-in-transaction timeout/;
const INSIST_TIMEOUT_MS = 60_000;

/** Short intervals, so that a run is short. */
const SCHEDULE = {
  LEASE_MARGIN_MS: '3000',
  LOOK_UP_FIRST_MS: '200',
  CLOSING_MARGIN_MS: '500',
  RECOVERY_INTERVAL_MS: '100',
  IN_PROGRESS_WAIT_MS: '1500',
  DATABASE_MAX_CONNECTIONS: '6',
  LOG_LEVEL: 'debug',
};

/** Opens a world. `checkout` has the service under test. */
export async function openWorld(options: {
  readonly seed: number;
  readonly cluster: Cluster;
  readonly checkout: string;
  readonly kind: Provider;
}): Promise<World> {
  const { cluster, checkout, kind } = options;
  const home = mkdtempSync(join(tmpdir(), 'faults-world-'));
  const gate = createGate();
  const databaseUrl = new URL(await cluster.createDatabase());
  const replicas: Process[] = [];
  let delivered = 0;
  const startJudge = () =>
    kind.start({
      checkout,
      ledgerUrl: cluster.createLedger,
      async deliver(connection, notification) {
        const alive = replicas.filter((replica) => replica.isAlive());
        const replica = alive[delivered++ % alive.length];
        return replica && deliver(replica.url, connection, notification);
      },
    });
  const random = createRandom(options.seed);
  const judge = await startJudge();
  const database = await startDatabaseProxy(cluster.port(), gate);
  const provider = await startProviderProxy(judge.port, gate, kind.callOf);
  const catalogue = catalogueOf(kind, provider.port, judge.port);
  const catalogueWith: World['catalogueWith'] = (change) => {
    const file = join(home, `catalogue-${randomUUID()}.yaml`);
    writeFileSync(file, change(catalogue));
    return file;
  };
  const catalogueFile = catalogueWith((text) => text);
  const patientFile = catalogueWith(waitingLonger);

  const orders: Order[] = [];
  const disappointments: string[] = [];
  const baselines = new Map<Process, number>();
  const undoing: (() => Promise<void>)[] = [];
  let skipped: string | undefined;
  const direct = () => {
    const url = new URL(databaseUrl);
    url.port = String(cluster.port());
    return url.href;
  };
  // Our own sessions stay writable even if all other sessions of the database become read-only.
  const session = { max: 2, options: '-c default_transaction_read_only=off' };
  const pool = () => new pg.Pool({ connectionString: direct(), ...session }).on('error', () => {});
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

  async function until(what: string, holds: () => Promise<boolean> | boolean, timeoutMs = 60_000) {
    const deadline = performance.now() + timeoutMs;
    while (!(await holds())) {
      if (performance.now() > deadline) throw new Error(`timed out waiting for: ${what}`);
      await sleep(20);
    }
  }

  /** Returns the open outcomes that the provider knows. */
  const open = () =>
    query(`SELECT id, method_kind, check_at <= now() AS is_due ${OPEN}`).then(
      (rows) =>
        new Map(
          rows
            .filter(({ id, method_kind: kind }) => judge.hasHeardOf(String(id), kind === 'CARD'))
            .map((row) => [String(row.id), row.is_due === true] as const),
        ),
      () => undefined,
    );
  const drain = () => drained(open);
  const environment = (): Readonly<Record<string, string>> => {
    const viaProxy = new URL(databaseUrl);
    viaProxy.port = String(database.port);
    return {
      PORT: '0',
      DATABASE_URL: viaProxy.href,
      CATALOGUE_FILE: catalogueFile,
      SANDBOX: 'off',
      ...kind.environment,
      WEBHOOKS_ALLOW_PRIVATE: 'on',
      VAULT_KEYS: `faults-1:${VAULT_KEY.toString('base64')}`,
      HASH_KEY: HASH_KEY.toString('base64'),
      ...SCHEDULE,
    };
  };

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
    kind,
    judge,
    can: (ability) => kind.abilities.has(ability),
    orders,
    replicas,
    watch,
    baselines,
    disappointments,
    query,
    until,
    insist,
    async startReplica({ env = {}, nodeOptions = [], checkout: from = checkout, unhurried } = {}) {
      const start = () =>
        startProcess({
          checkout: from,
          program: 'src/main.ts',
          nodeOptions,
          env: {
            ...environment(),
            ...(unhurried && { CATALOGUE_FILE: patientFile, LEASE_MARGIN_MS: '20000' }),
            ...env,
          },
          announces: SERVICE_ANNOUNCES,
        });
      const replica = await insistently(start);
      replicas.push(replica);
      baselines.set(replica, replica.usage().handles);
      return replica;
    },
    async command(program, args, env) {
      const started = startNode({ checkout, program, args, env: { ...environment(), ...env } });
      const [code] = await once(started.child, 'exit');
      if (code !== 0) disappointments.push(`${program} ${args.join(' ')}: ${started.output()}`);
      return code;
    },
    catalogueWith,
    async startProvider() {
      const other = await startJudge();
      undoing.push(() => other.kill());
      return other;
    },
    order(orderOptions) {
      const order = makeOrder(random, kind.currencies, orderOptions);
      orders.push(order);
      return order;
    },
    drain,
    async isPaid(answer) {
      const payment = paymentOf(answer);
      if (!payment || payment.status === 'SUCCEEDED' || kind.abilities.has('look_ups')) {
        return payment?.status === 'SUCCEEDED';
      }
      await drain();
      const [row] = await query('SELECT status FROM payment WHERE id = $1', [payment.id]);
      return row?.status === 'SUCCEEDED';
    },
    async endLeases() {
      await query(`UPDATE transaction SET check_at = now()
        WHERE check_at > now() AND status IN ('CREATED', 'PENDING') AND NOT awaits_payer`);
    },
    open: async () =>
      JSON.stringify(
        await query(`SELECT id, type, status, connection_id, fence, now() - created_at AS age,
          check_at - now() AS due_in ${OPEN} LIMIT 5`).catch(() => []),
      ),
    expect(seen, what) {
      if (!seen) disappointments.push(what);
    },
    skip(why) {
      skipped = why;
    },
    skipped: () => skipped,
    atEnd: (undo) => void undoing.push(undo),
    ledger: (of = judge) => of.ledger(),
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

/** Retries the start, because on a busy machine a service may not reach the database in time. */
async function insistently(start: () => Promise<Process>): Promise<Process> {
  for (let starts = 1; ; starts++) {
    try {
      return await start();
    } catch (error) {
      if (starts === STARTS || !NO_DATABASE.test(`${(error as Error).cause}`)) throw error;
    }
  }
}
