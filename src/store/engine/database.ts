import pg from 'pg';
import type { Logger } from 'pino';
import {
  codeOf,
  DatabaseUnavailableError,
  hasSqlState,
  isOfStatement,
  READ_ONLY,
  UnsafeDatabaseError,
} from './database-error.ts';

/**
 * A statement, prepared once for each connection under its name; with `isPrepared: false`, planned anew each time. A
 * name belongs to one text.
 */
export type Statement = { readonly name: string; readonly text: string; readonly isPrepared?: boolean };

/** A row's values as PostgreSQL takes them: null for absent values. */
export type Nullable<T> = { readonly [K in keyof T]: T[K] | null };

/** Runs SQL in an open transaction. Without values, it may be several statements. */
export type Run = <Row extends pg.QueryResultRow>(
  text: string,
  values?: readonly unknown[],
) => Promise<pg.QueryResult<Row>>;

/** Address, size and time limits of a database's connection pool. */
export type DatabaseOptions = {
  /** `postgres://…`, with every parameter that node-postgres reads (`sslmode`, …). */
  readonly url: string;
  readonly maxConnections: number;
  readonly log: Pick<Logger, 'warn'>;
  /** Longest wait for a connection, if the pool is exhausted or the database is silent. Default 2000. */
  readonly connectTimeoutMs?: number;
  /** Time limit of a statement. Default 5000. */
  readonly statementTimeoutMs?: number;
  /**
   * true: connect through a pooler, which `assertPooler` has to accept. A pooler accepts no time limits from a
   * connection: they come from the role. Default false.
   */
  readonly isPooled?: boolean;
};

/** Runs one statement: a `Database`, or one of its transactions (`queriesOf`). */
export type Queries = Pick<Database, 'query'>;

/**
 * A PostgreSQL database behind a pool of connections. `bigint` columns are read as bigint, `bytea` as Buffer and
 * `timestamptz` as Date. Bytes are passed as Buffer or Uint8Array, and sent as they are.
 */
export type Database = {
  /** Runs one statement in its own transaction. `isUnavailable` classifies its rejections. */
  query<Row extends pg.QueryResultRow>(
    statement: Statement,
    values?: readonly unknown[],
  ): Promise<pg.QueryResult<Row>>;
  /**
   * Commits the statements of `work` when it resolves, and rolls them back when it rejects. Not for the main path,
   * which has no transaction of several statements.
   *
   * @param timeoutMs time limit of each statement; by default that of `query`.
   */
  transaction<T>(work: (run: Run) => Promise<T>, timeoutMs?: number): Promise<T>;
  /**
   * Runs statements on their own connection, each outside a transaction, as some statements require. The connection
   * is closed afterwards, which ends its session with everything that belongs to it. Not through a pooler, which may
   * keep the session and give it to others.
   *
   * @param timeoutMs time limit of each statement.
   */
  session<T>(work: (run: Run) => Promise<T>, timeoutMs: number): Promise<T>;
  /**
   * Refuses a database that acknowledges a commit before it is on disk.
   *
   * @param allowUnsafe accepts it anyway.
   * @throws UnsafeDatabaseError that names the settings at fault.
   */
  assertDurable(allowUnsafe: boolean): Promise<void>;
  /** Waits for running statements, then closes the connections. */
  close(): Promise<void>;
};

/** The database's default limits on a statement, and on a pause within a transaction. */
export const TIME_LIMITS_MS = { statement: 5_000, idleInTransaction: 10_000 };

/**
 * Longest wait for a connection at a start or in a command, which nobody repeats like a call: a database that scales
 * to zero takes seconds to wake up.
 */
export const PATIENT_CONNECT_MS = 15_000;

const IDLE_TIMEOUT_MS = 60_000;
const KEEP_ALIVE_DELAY_MS = 10_000;
/**
 * Time after the database's own limit at which the client gives up on a statement, in case the database has gone
 * silent.
 */
const CLIENT_TIMEOUT_MARGIN_MS = 1_000;

const INT8_OID = 20;

// A setting that another engine with PostgreSQL's protocol lacks reads as null.
const DURABILITY: Statement = {
  name: 'durability',
  text: `SELECT name, current_setting(name, true) AS value FROM unnest(ARRAY['fsync', 'full_page_writes', 'synchronous_commit']) AS name`,
};

/** Opens the database. Connections are made on demand and replaced when they break. */
export function openDatabase(options: DatabaseOptions): Database {
  const {
    connectTimeoutMs = 2_000,
    statementTimeoutMs = TIME_LIMITS_MS.statement,
    isPooled = false,
  } = options;
  const connections = openConnections({ ...options, connectTimeoutMs, statementTimeoutMs, isPooled });

  const query: Database['query'] = async (statement, values) => {
    const client = await connections.take();
    try {
      const result = await client.query({
        ...(statement.isPrepared !== false && { name: statement.name }),
        text: statement.text,
        values: values as unknown[],
      });
      client.release();
      return result;
    } catch (error) {
      connections.noteError(client, error);
      client.release(hasSqlState(error, READ_ONLY) || !isOfStatement(error));
      throw error;
    }
  };

  return {
    query,
    transaction: async (work, timeoutMs = statementTimeoutMs) => {
      const client = await connections.take();
      try {
        const result = await inTransaction(client, work, timeoutMs);
        client.release();
        return result;
      } catch (error) {
        connections.noteError(client, error);
        // Closing the connection rolls back, whatever its state.
        client.release(true);
        throw error;
      }
    },
    session: async (work, timeoutMs) => {
      if (isPooled) throw new Error('a pooler offers no session of its own');
      const client = await connections.take();
      try {
        const run = runner(client, timeoutMs);
        await run(`SET statement_timeout = ${timeoutMs}`);
        return await work(run);
      } finally {
        client.release(true);
      }
    },
    assertDurable: async (allowUnsafe) => {
      const { rows } = await query<{ name: string; value: string | null }>(DURABILITY);
      const off = rows.filter((row) => row.value === 'off').map((row) => row.name);
      if (off.length > 0 && !allowUnsafe) throw new UnsafeDatabaseError(`${UNSAFE}: ${off.join(', ')} off`);
    },
    close: () => connections.close(),
  };
}

/** Runs statements, unprepared, in an open transaction. */
export function queriesOf(run: Run): Queries {
  return { query: ({ text }, values) => run(text, values) };
}

const UNSAFE = 'the database acknowledges commits that a crash can undo, so payments could be lost';

/** The connections of a database. All are replaced once the database turns out to be read-only. */
type Connections = {
  /** Waits for a connection, which the caller releases. @throws DatabaseUnavailableError. */
  take(): Promise<pg.PoolClient>;
  /**
   * Reports an error before a connection's release. If the database is read-only, all connections as old as this one
   * are closed.
   */
  noteError(client: pg.PoolClient, error: unknown): void;
  /** Waits for the connections in use, then closes all. */
  close(): Promise<void>;
};

function openConnections(options: Required<DatabaseOptions>): Connections {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.maxConnections,
    connectionTimeoutMillis: options.connectTimeoutMs,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    ...(!options.isPooled && {
      statement_timeout: options.statementTimeoutMs,
      idle_in_transaction_session_timeout: TIME_LIMITS_MS.idleInTransaction,
    }),
    query_timeout: options.statementTimeoutMs + CLIENT_TIMEOUT_MARGIN_MS,
    application_name: 'payments-service',
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    types: { getTypeParser },
  });
  // After a failover, every connection of the pool may lead to the old primary. Once one turns out to be read-only,
  // all connections made before then are closed.
  const generations = new WeakMap<pg.ClientBase, number>();
  let generation = 0;

  // A connection that breaks while idle leaves the pool by itself; the next query makes a new one.
  pool.on('error', (error) => {
    // A connection that is being closed may report that its server has ended.
    if (!pool.ending) options.log.warn({ code: codeOf(error) }, 'a database connection broke');
  });
  // A connection in use would have no listener, and an 'error' event without a listener ends the process.
  pool.on('connect', (client) => {
    client.on('error', () => {});
    generations.set(client, generation);
  });

  return {
    async take() {
      for (;;) {
        const client = await pool.connect().catch((cause) => {
          throw new DatabaseUnavailableError(cause);
        });
        if (generations.get(client) === generation) return client;
        client.release(true);
      }
    },
    noteError(client, error) {
      if (!hasSqlState(error, READ_ONLY) || generations.get(client) !== generation) return;
      generation += 1;
      options.log.warn('the database is read-only; its connections are being replaced');
    },
    close: () => pool.end(),
  };
}

async function inTransaction<T>(
  client: pg.PoolClient,
  work: (run: Run) => Promise<T>,
  timeoutMs: number,
): Promise<T> {
  const run = runner(client, timeoutMs);
  await run(`BEGIN; SET LOCAL statement_timeout = ${timeoutMs}`);
  const result = await work(run);
  const { command } = await run('COMMIT');
  if (command !== 'COMMIT')
    throw new Error('the transaction was rolled back, because a statement in it had failed');
  return result;
}

function runner(client: pg.PoolClient, timeoutMs: number): Run {
  // node-postgres reads query_timeout from a query too; its types do not say so.
  const clientTimeout = { query_timeout: timeoutMs + CLIENT_TIMEOUT_MARGIN_MS };
  return (text, values) => client.query({ text, ...(values && { values: [...values] }), ...clientTimeout });
}

// Only for this pool, as pg.types is global. int8 does not fit into a double, so node-postgres leaves it a string.
function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === INT8_OID && format !== 'binary') return BigInt;
  return pg.types.getTypeParser(oid, format as 'text');
}
