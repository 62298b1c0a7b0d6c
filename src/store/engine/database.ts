import pg from 'pg';
import type { Logger } from 'pino';
import {
  codeOf,
  DatabaseUnavailableError,
  hasSqlState,
  isSurelyNotCommitted,
  READ_ONLY,
  statementError,
} from './database-error.ts';
import { createShortestRecent } from './shortest-recent.ts';

/**
 * A statement, prepared under its name once per connection or, with `isPrepared: false`, planned each time. A name
 * belongs to one text only.
 */
export type Statement = { readonly name: string; readonly text: string; readonly isPrepared?: boolean };

/** A row's values as PostgreSQL represents them, with null for absent values. */
export type Nullable<T> = { readonly [K in keyof T]: T[K] | null };

/** Runs SQL in an open transaction. Without values, the text may contain several statements. */
export type Run = <Row extends pg.QueryResultRow>(
  text: string,
  values?: readonly unknown[],
) => Promise<pg.QueryResult<Row>>;

/** URL, size and time limits of a database's connection pool. */
export type DatabaseOptions = {
  /** `postgres://…`, with any parameter that node-postgres reads (`sslmode`, …). */
  readonly url: string;
  readonly maxConnections: number;
  readonly log: Pick<Logger, 'warn'>;
  /** Longest wait for a connection if the pool is exhausted or the database does not respond. Default 2000. */
  readonly connectTimeoutMs?: number;
  /** Time limit of a statement. Default 5000. */
  readonly statementTimeoutMs?: number;
  /** Time limit of a wait for a lock, for a database without a pooler. Default none. */
  readonly lockTimeoutMs?: number;
  /**
   * true: connects through a pooler, which `assertPooler` must accept. A pooler ignores a connection's time limits, so
   * they must be set on the role. Default false.
   */
  readonly isPooled?: boolean;
};

/** Runs single statements: a `Database`, or one of its transactions (`queriesOf`). */
export type Queries = Pick<Database, 'query'>;

/**
 * A PostgreSQL database behind a connection pool. Reads `bigint` columns as bigint, `bytea` as Buffer and `timestamptz`
 * as Date. Bytes are passed as Buffer or Uint8Array and sent as is.
 */
export type Database = {
  /**
   * Runs one statement in its own transaction. `isUnavailable` classifies its rejections.
   *
   * @param abort gives the statement up by breaking its connection; it may still be committed.
   */
  query<Row extends pg.QueryResultRow>(
    statement: Statement,
    values?: readonly unknown[],
    abort?: AbortSignal,
  ): Promise<pg.QueryResult<Row>>;
  /**
   * Commits the statements of `work` when it resolves, and rolls them back when it rejects. Not for the main path,
   * where no transaction has several statements.
   *
   * @param timeoutMs time limit of each statement; by default that of `query`.
   * @param abort gives the transaction up by breaking its connection.
   */
  transaction<T>(work: (run: Run) => Promise<T>, timeoutMs?: number, abort?: AbortSignal): Promise<T>;
  /**
   * Runs statements on a dedicated connection, each outside a transaction, as some statements require. The connection
   * is then closed, which ends its session and everything that belongs to it. Not available through a pooler, which may
   * keep the session and hand it to other clients.
   *
   * @param timeoutMs time limit of each statement.
   */
  session<T>(work: (run: Run) => Promise<T>, timeoutMs: number): Promise<T>;
  /** Returns the duration of the shortest recent statement, in milliseconds: how far away the database is. */
  roundTripMs(): number;
  /** Waits for running statements, then closes the connections. */
  close(): Promise<void>;
  /**
   * true: a distributed engine stores each account on one node (engine/distribution), so a commit contains rows of one
   * account only.
   */
  readonly isDistributed?: boolean;
  /** Returns the states of the nodes of a distributed database, by name. */
  nodes?(): readonly NodeState[];
};

/** State of a node that stores accounts. */
export type NodeState = {
  /** Host and port. */
  readonly node: string;
  /** Its fault, such as `does not respond`; undefined if it works. */
  readonly ill: string | undefined;
};

/** Default time limits of a statement and of a pause within a transaction. */
export const TIME_LIMITS_MS = { statement: 5_000, idleInTransaction: 10_000 };

/**
 * Longest wait for a connection at startup and in commands, which nobody retries, unlike calls. A database that scales
 * to zero takes seconds to wake up.
 */
export const PATIENT_CONNECT_MS = 15_000;

const IDLE_TIMEOUT_MS = 60_000;
const KEEP_ALIVE_DELAY_MS = 10_000;
/**
 * Time beyond the database's own limit after which the client abandons a statement, in case the database has stopped
 * responding.
 */
const CLIENT_TIMEOUT_MARGIN_MS = 1_000;

const INT8_OID = 20;

/** Opens the database. Connections are made on demand and replaced when they break. */
export function openDatabase(options: DatabaseOptions): Database {
  const {
    connectTimeoutMs = 2_000,
    statementTimeoutMs = TIME_LIMITS_MS.statement,
    isPooled = false,
  } = options;
  const connections = openConnections({ ...options, connectTimeoutMs, statementTimeoutMs, isPooled });
  const roundTrips = createShortestRecent();

  const query: Database['query'] = async (statement, values, abort) => {
    const client = await connections.take(abort);
    const startedMs = performance.now();
    try {
      const result = await send<pg.QueryResult>(client, {
        ...(statement.isPrepared !== false && { name: statement.name }),
        text: statement.text,
        values: values as unknown[],
      });
      roundTrips.add(performance.now() - startedMs);
      client.release();
      return result;
    } catch (error) {
      connections.noteError(client, error);
      // A statement that was surely rolled back, or reached no node, has left the connection usable.
      client.release(hasSqlState(error, READ_ONLY) || !isSurelyNotCommitted(error));
      throw error;
    }
  };

  return {
    query,
    transaction: async (work, timeoutMs = statementTimeoutMs, abort = undefined) => {
      const client = await connections.take(abort);
      try {
        const result = await inTransaction(client, work, timeoutMs);
        client.release();
        return result;
      } catch (error) {
        connections.noteError(client, error);
        // Closing the connection rolls back the transaction, whatever its state.
        client.release(true);
        throw error;
      }
    },
    session: async (work, timeoutMs) => {
      if (isPooled) throw new Error('a dedicated session is not available through a pooler');
      const client = await connections.take();
      try {
        const run = runner(client, timeoutMs);
        await run(`SET statement_timeout = ${timeoutMs}`);
        return await work(run);
      } finally {
        client.release(true);
      }
    },
    roundTripMs: () => roundTrips.shortestMs() ?? 0,
    close: () => connections.close(),
  };
}

/** Runs statements, unprepared, in an open transaction. */
export function queriesOf(run: Run): Queries {
  return { query: ({ text }, values) => run(text, values) };
}

/** The connections of a database. All are replaced when the database turns out to be read-only. */
type Connections = {
  /**
   * Waits for a connection, which the caller releases. @param abort breaks the connection while it is in use.
   * @throws DatabaseUnavailableError.
   */
  take(abort?: AbortSignal): Promise<pg.PoolClient>;
  /**
   * Records an error before its connection is released. If the database is read-only, closes all connections as old as
   * this one.
   */
  noteError(client: pg.PoolClient, error: unknown): void;
  /** Waits for connections in use, then closes all. */
  close(): Promise<void>;
};

function openConnections(
  options: Required<Omit<DatabaseOptions, 'lockTimeoutMs'>> & Pick<DatabaseOptions, 'lockTimeoutMs'>,
): Connections {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.maxConnections,
    connectionTimeoutMillis: options.connectTimeoutMs,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    ...(!options.isPooled && {
      statement_timeout: options.statementTimeoutMs,
      ...(options.lockTimeoutMs !== undefined && { lock_timeout: options.lockTimeoutMs }),
      idle_in_transaction_session_timeout: TIME_LIMITS_MS.idleInTransaction,
    }),
    query_timeout: options.statementTimeoutMs + CLIENT_TIMEOUT_MARGIN_MS,
    application_name: 'payments-service',
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    types: { getTypeParser },
  });
  // After a failover, every pooled connection may lead to the old primary. When one turns out to be read-only, all
  // connections made before then are closed.
  const generations = new WeakMap<pg.ClientBase, number>();
  let generation = 0;

  // A connection that breaks while idle leaves the pool automatically; the next query makes a new one.
  pool.on('error', (error) => {
    // A connection that is being closed may report that its server process has exited.
    if (!pool.ending) options.log.warn({ code: codeOf(error) }, 'a database connection broke');
  });
  // Connections in use have no other listener, and an 'error' event without a listener ends the process.
  pool.on('connect', (client) => {
    client.on('error', () => {});
    generations.set(client, generation);
  });

  return {
    async take(abort) {
      for (;;) {
        const client = await pool.connect().catch((cause) => {
          throw new DatabaseUnavailableError(cause);
        });
        if (generations.get(client) === generation) return abort ? breakable(client, abort) : client;
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

/** Breaks a connection when `abort` does, until it is released. */
function breakable(client: pg.PoolClient, abort: AbortSignal): pg.PoolClient {
  // With a statement in progress, ending a connection closes its socket, which rejects the statement.
  const end = () => void client.end().catch(() => {});
  if (abort.aborted) end();
  abort.addEventListener('abort', end, { once: true });
  const release = client.release;
  client.release = (destroy) => {
    abort.removeEventListener('abort', end);
    client.release = release;
    release.call(client, destroy || abort.aborted);
  };
  return client;
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
    throw new Error('the transaction was rolled back because one of its statements failed');
  return result;
}

function runner(client: pg.PoolClient, timeoutMs: number): Run {
  // node-postgres also reads query_timeout from a query, although its types omit it.
  const clientTimeout = { query_timeout: timeoutMs + CLIENT_TIMEOUT_MARGIN_MS };
  return (text, values) => send(client, { text, ...(values && { values: [...values] }), ...clientTimeout });
}

/** Sends one statement. */
async function send<Result>(client: pg.PoolClient, statement: pg.QueryConfig): Promise<Result> {
  try {
    return (await client.query(statement)) as Result;
  } catch (error) {
    throw statementError(error);
  }
}

// Only for this pool, since pg.types is global. An int8 may not fit into a double, so node-postgres returns it as a
// string.
function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === INT8_OID && format !== 'binary') return BigInt;
  return pg.types.getTypeParser(oid, format as 'text');
}
