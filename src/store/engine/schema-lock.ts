import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Run } from './database.ts';
import { isDeadlock, isLockTimeout } from './database-error.ts';

/** Thrown if a change to the schema could not be made. The message says what to do. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
}

/** Limits on waits for locks. */
export type LockLimits = {
  /** Longest wait for a table. Meanwhile, everyone else who needs the table waits behind the change. */
  readonly tableWaitMs: number;
  /** Number of times that a change which could not lock a table is tried. */
  readonly tries: number;
  /** Pause between two tries, in which the others go on. */
  readonly pauseMs: number;
};

const LIMITS: LockLimits = { tableWaitMs: 2_000, tries: 10, pauseMs: 3_000 };

/** Key of the advisory lock that replicas starting at the same time wait for. Any fixed number will do. */
const LOCK_KEY = '7021990411503221';
/** Longest wait for another replica's migration, which may be building an index on a large table. */
const LOCK_WAIT_MS = 600_000;
const LOCK_POLL_MS = 100;
/**
 * Time limit of a statement. It may build an index on a large table, change many of its rows, or copy them to another
 * node, which takes a minute for a million payments.
 */
const STATEMENT_TIMEOUT_MS = 6 * 3_600_000;

/**
 * Runs a transaction that changes the schema, while no other replica does. If a table is locked by someone else, the
 * transaction gives way and is run again. The lock ends with the transaction, so it cannot leak.
 *
 * @param work may run several times; the earlier runs are rolled back.
 */
export async function whileSchemaLocked<T>(
  database: Database,
  work: (run: Run) => Promise<T>,
  limits: LockLimits = LIMITS,
): Promise<T> {
  const once = () =>
    database.transaction(async (run) => {
      await awaitLock(run, 'pg_try_advisory_xact_lock');
      // Makes a distributed engine set the limit on every node of the transaction; elsewhere it means nothing.
      await run("SET LOCAL citus.propagate_set_commands = 'local'");
      await run(`SET LOCAL lock_timeout = ${limits.tableWaitMs}`);
      return work(run);
    }, STATEMENT_TIMEOUT_MS);
  for (let tries = 1; ; tries += 1) {
    try {
      return await once();
    } catch (error) {
      if (!isLocked(error) || tries >= limits.tries) throw error;
    }
    await sleep(limits.pauseMs);
  }
}

/** Does the same on a connection, without a transaction and once: the lock ends with the connection. */
export function whileSchemaLockedInSession<T>(
  database: Database,
  work: (run: Run) => Promise<T>,
): Promise<T> {
  return database.session(async (run) => {
    await awaitLock(run, 'pg_try_advisory_lock');
    return work(run);
  }, STATEMENT_TIMEOUT_MS);
}

// Polls, since a waiting statement would hold a snapshot that a concurrent index build would wait for in turn.
async function awaitLock(run: Run, tryLock: string): Promise<void> {
  const deadline = performance.now() + LOCK_WAIT_MS;
  for (;;) {
    const { rows } = await run<{ locked: boolean }>(`SELECT ${tryLock}(${LOCK_KEY}) AS locked`);
    if (rows[0]?.locked) return;
    if (performance.now() > deadline) {
      throw new MigrationError(
        'another replica is still migrating the database; wait until it has finished, then start again',
      );
    }
    await sleep(LOCK_POLL_MS);
  }
}

/** Returns true if an error, or its cause, is the database's refusal of a lock. */
function isLocked(error: unknown): boolean {
  return isDeadlock(error) || isLockTimeout(error) || (error instanceof Error && isLockTimeout(error.cause));
}
