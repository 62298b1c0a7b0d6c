import pg from 'pg';

/**
 * Thrown if no connection was available, so nothing was run: the database refused, did not respond or was shutting
 * down, or all connections were in use for too long.
 */
export class DatabaseUnavailableError extends Error {
  override readonly name: string = 'DatabaseUnavailableError';

  constructor(cause: unknown) {
    super(`cannot connect to the database: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Thrown if a connection broke, or was given up, while a statement was in progress. The statement may have been
 * committed.
 */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';

  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

/** Thrown if a statement needs a node that is known to be ill, so nothing was run, and trying again soon is in vain. */
export class NodeIllError extends DatabaseUnavailableError {
  override readonly name = 'NodeIllError';

  constructor(node: string, ill: string) {
    super(new Error(`the node ${node} ${ill}`));
  }
}

/** Thrown for a database that acknowledges commits which a crash can undo. */
export class UnsafeDatabaseError extends Error {
  override readonly name = 'UnsafeDatabaseError';
}

/**
 * Returns true if a rejected statement is known to have changed nothing: no connection was available, a distributed
 * database could not connect to the node, or the database reported that it rolled the statement back. A broken
 * connection proves nothing. Nor does a FATAL error: a connection pooler reports one when it loses the server during a
 * commit.
 */
export function isSurelyNotCommitted(error: unknown): boolean {
  return error instanceof DatabaseUnavailableError || isOfStatement(error) || isNodeUnreachable(error);
}

/** Returns true if a distributed database (Citus) could not connect to the node, so it sent the statement to none. */
export function isNodeUnreachable(error: unknown): boolean {
  if (!hasSqlState(error, '08006') || (error as pg.DatabaseError).severity !== 'ERROR') return false;
  return NODE_UNREACHABLE.test((error as Error).message);
}

/**
 * Citus' messages for a connection that was never made. A connection that broke later, perhaps during a commit, has the
 * same SQLSTATE.
 */
const NODE_UNREACHABLE =
  /^could not establish any connections to the node |^connection to the remote node \S+ failed with the following error: (?:connection to server .+ failed: )?(?:Connection refused|Connection timed out|No route to host|Network is unreachable|timeout expired|could not translate host name|FATAL: +the database system is )/;

/**
 * Returns true if a rejection means that the database is unavailable (unreachable, refusing, shutting down, read-only
 * after a failover, out of connections, memory or disk, too slow, or in a conflict that a retry resolves) rather than a
 * bug. The statement may still have been committed; see `isSurelyNotCommitted`.
 */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseUnavailableError || error instanceof ConnectionLostError) return true;
  return error instanceof pg.DatabaseError && UNAVAILABLE_SQLSTATE.test(error.code ?? '');
}

/**
 * Returns the error with which node-postgres rejected a statement, as a ConnectionLostError if it is about the
 * connection. Only here is it known that an error such as ECONNRESET is the database's.
 */
export function statementError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof pg.DatabaseError) return error;
  const isBroken = NETWORK_CODES.has(codeOf(error) ?? '') || BROKEN_CONNECTION.test(error.message);
  return isBroken ? new ConnectionLostError(error) : error;
}

/** Returns true if a write was rolled back because another worker holds its transaction (`raise_lost_1`). */
export function isLost(error: unknown): boolean {
  return hasSqlState(error, 'PLOST');
}

/** Returns true if a statement was canceled because a table or row was locked for too long. */
export function isLockTimeout(error: unknown): boolean {
  return hasSqlState(error, '55P03');
}

/** Returns true if a statement was canceled because it ran too long. */
export function isTimeout(error: unknown): boolean {
  return hasSqlState(error, '57014');
}

/**
 * SQLSTATE (PostgreSQL, appendix A): 08 connection, 53 resources, 57P0x shutdown, 57014 statement timeout, 25006
 * read-only, 25P03 and 25P04 transaction timeouts, 40001 serialization, 40P01 deadlock, 55P03 lock timeout, 58 disk, XX000
 * a node that did not acknowledge a commit.
 */
const UNAVAILABLE_SQLSTATE = /^(08|53|58|57P0|57014$|25006$|25P0[34]$|40001$|40P01$|55P03$|XX000$)/;

const NETWORK_CODES = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'],
  ...['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN', 'ENOENT', 'EACCES', 'EMFILE', 'ENFILE'],
]);

/** Messages of errors without a code from node-postgres. */
const BROKEN_CONNECTION = /^(Connection terminated|Query read timeout|Client (has encountered|was closed))/;

/**
 * Returns true if an error is the database's response to the statement. The statement was rolled back, so the
 * connection remains usable. (node-postgres' own pool would discard the connection after any error.)
 */
function isOfStatement(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.severity !== 'ERROR') return false;
  return error.code !== undefined && !OF_CONNECTION_SQLSTATE.test(error.code);
}

/**
 * SQLSTATEs that concern a connection or server rather than a statement: 08 connection, 40003 completion unknown, 57P
 * shutdown, 58 system, XX internal, with which a distributed engine reports that a node did not acknowledge a commit.
 */
const OF_CONNECTION_SQLSTATE = /^(08|40003$|57P|58|XX)/;

/** Returns true if a statement was rolled back because a row with the same unique key exists. */
export function isKeyTaken(error: unknown): boolean {
  return hasSqlState(error, '23505');
}

/** Returns true if a statement was rolled back because a NOT NULL column had no value. */
export function isNullRefused(error: unknown): boolean {
  return hasSqlState(error, '23502');
}

/** SQLSTATE of a write rejected by a read-only database, that is, a standby or a former primary. */
export const READ_ONLY = '25006';

/** Returns true if an error comes from the database with this SQLSTATE. */
export function hasSqlState(error: unknown, code: string): boolean {
  return error instanceof pg.DatabaseError && error.code === code;
}

const DEADLOCK = '40P01';

/** Returns true if the database ended a statement, and its transaction, because it and others waited for each other. */
export function isDeadlock(error: unknown): boolean {
  return hasSqlState(error, DEADLOCK) || (error instanceof Error && hasSqlState(error.cause, DEADLOCK));
}

/** Returns an error's SQLSTATE or operating system code. */
export function codeOf(error: Error): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : undefined;
}
