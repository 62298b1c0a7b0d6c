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
 * Thrown if a connection pooler in front of the database lacks something that the service needs. The message says what
 * to set.
 */
export class PoolerError extends Error {
  override readonly name = 'PoolerError';
}

type LimitsRow = { statement_ms: number; idle_ms: number; is_ours: boolean; role: string };

// Settings sent with the connection have the source "client". Another engine's settings may have no source.
const LIMITS: Statement = {
  name: 'time_limits',
  text: `
    SELECT min(setting::integer) FILTER (WHERE name = 'statement_timeout') AS statement_ms,
      min(setting::integer) FILTER (WHERE name <> 'statement_timeout') AS idle_ms,
      bool_and(coalesce(source, 'client') = 'client') AS is_ours, quote_ident(current_user) AS role
    FROM pg_settings WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout')`,
};

/**
 * Checks that the database is reached directly. A pooler rejects or drops a connection's time limits, and may run the
 * statements of a session on different server connections, which then keep the session's locks.
 *
 * @throws PoolerError.
 */
export async function assertDirect(database: Database): Promise<void> {
  // Not prepared, since an old pooler would keep the statement for its next client.
  const { rows } = await database.query<LimitsRow>({ ...LIMITS, isPrepared: false }).catch((error) => {
    throw isRefusedByPooler(error) ? new PoolerError(NOT_DIRECT) : error;
  });
  if (!onlyRow({ rows }).is_ours) throw new PoolerError(NOT_DIRECT);
}

const NOT_DIRECT =
  "a connection pooler in front of the database does not pass on a connection's time limits; set DATABASE_DIRECT_URL to the database itself and DATABASE_URL to the pooler (docs/performance.md#poolers)";

/** Returns true for PgBouncer's rejection of a startup parameter. */
function isRefusedByPooler(error: unknown): boolean {
  return error instanceof DatabaseUnavailableError && /unsupported startup parameter/.test(error.message);
}

/**
 * Checks that prepared statements work through a pooler, and that its connections to the database have time limits.
 *
 * @throws PoolerError.
 */
export async function assertPooler({ url, log }: Pick<DatabaseOptions, 'url' | 'log'>): Promise<void> {
  const open = () =>
    openDatabase({ url, log, maxConnections: 1, connectTimeoutMs: PATIENT_CONNECT_MS, isPooled: true });
  const clients = [open(), open()];
  try {
    // In turns, so that each client meets server connections on which the other client, or none, prepared the
    // statement.
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

/** SQLSTATEs of a prepared statement that is missing or already exists. */
const STATEMENT_MIXED_UP = ['26000', '42P05'];

const NOT_PREPARED =
  'the pooler in DATABASE_URL mixes up prepared statements; use PgBouncer 1.21 or newer with max_prepared_statements = 200, or set pool_mode = session (docs/performance.md#poolers)';

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
    `for the pooler in DATABASE_URL, the role must set ${names}; run ${toSet.join('; ')}; then reconnect the pooler (docs/performance.md#poolers)`,
  );
}
