import {
  type Database,
  type DatabaseOptions,
  openDatabase,
  PATIENT_CONNECT_MS,
  type Statement,
  TIME_LIMITS_MS,
} from './database.ts';
import { DatabaseUnavailableError, hasSqlState } from './database-error.ts';
import { onlyRow } from './rows.ts';

/**
 * Error if a connection pooler in front of the database lacks something that the service relies on; says what to set.
 */
export class PoolerError extends Error {
  override readonly name = 'PoolerError';
}

type LimitsRow = { statement_ms: number; idle_ms: number; is_ours: boolean; role: string };

// The source of a setting that came with the connection is "client"; another engine's settings may have no source.
const LIMITS: Statement = {
  name: 'time_limits',
  text: `
    SELECT min(setting::integer) FILTER (WHERE name = 'statement_timeout') AS statement_ms,
      min(setting::integer) FILTER (WHERE name <> 'statement_timeout') AS idle_ms,
      bool_and(coalesce(source, 'client') = 'client') AS is_ours, quote_ident(current_user) AS role
    FROM pg_settings WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout')`,
};

/**
 * Refuses a database that is not reached directly: a pooler refuses or drops the time limits of a connection, and may
 * give each statement of a session to another server connection, which then keeps the session's locks.
 *
 * @throws PoolerError.
 */
export async function assertDirect(database: Database): Promise<void> {
  // Not prepared: an old pooler would keep the statement for its next client.
  const { rows } = await database.query<LimitsRow>({ ...LIMITS, isPrepared: false }).catch((error) => {
    throw isRefusedByPooler(error) ? new PoolerError(NOT_DIRECT) : error;
  });
  if (!onlyRow({ rows }).is_ours) throw new PoolerError(NOT_DIRECT);
}

const NOT_DIRECT =
  "a connection pooler in front of the database does not pass on a connection's time limits: name the database itself in DATABASE_DIRECT_URL, and the pooler in DATABASE_URL (docs/performance.md#poolers)";

/** Recognizes PgBouncer's error messages. */
function isRefusedByPooler(error: unknown): boolean {
  return error instanceof DatabaseUnavailableError && /unsupported startup parameter/.test(error.message);
}

/**
 * Refuses a pooler through which prepared statements fail, or whose connections to the database have no time limits.
 *
 * @throws PoolerError.
 */
export async function assertPooler({ url, log }: Pick<DatabaseOptions, 'url' | 'log'>): Promise<void> {
  const open = () =>
    openDatabase({ url, log, maxConnections: 1, connectTimeoutMs: PATIENT_CONNECT_MS, isPooled: true });
  const clients = [open(), open()];
  try {
    // In turns: each client then meets server connections on which the other client, or none, prepared the statement.
    for (const client of [...clients, ...clients]) {
      refuseMissingLimits(onlyRow(await client.query<LimitsRow>(LIMITS)));
    }
  } catch (error) {
    if (STATEMENT_MIXED_UP.some((code) => hasSqlState(error, code))) throw new PoolerError(NOT_PREPARED);
    throw error;
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** SQLSTATEs of a prepared statement that is missing or exists already. */
const STATEMENT_MIXED_UP = ['26000', '42P05'];

const NOT_PREPARED =
  'the pooler that DATABASE_URL names mixes up prepared statements: take PgBouncer 1.21 or newer and set max_prepared_statements = 200, or set pool_mode = session (docs/performance.md#poolers)';

function refuseMissingLimits({ statement_ms, idle_ms, role }: LimitsRow): void {
  const limits = [
    ['statement_timeout', statement_ms, TIME_LIMITS_MS.statement],
    ['idle_in_transaction_session_timeout', idle_ms, TIME_LIMITS_MS.idleInTransaction],
  ] as const;
  const missing = limits.filter(([, ms, mostMs]) => ms < 1 || ms > mostMs);
  if (missing.length === 0) return;
  const names = missing.map(([name]) => name).join(' and ');
  const toSet = missing.map(([name, , mostMs]) => `ALTER ROLE ${role} SET ${name} = '${mostMs / 1000}s'`);
  throw new PoolerError(
    `through the pooler that DATABASE_URL names, ${names} must come from the role: run ${toSet.join('; ')}; then have the pooler reconnect (docs/performance.md#poolers)`,
  );
}
