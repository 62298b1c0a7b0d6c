import { isDeadlock } from './database-error.ts';

/** Number of times that a statement runs at the most. */
const MOST = 5;

/**
 * Runs a statement that locks many rows, and again after a deadlock: the database then undid it, so that another process
 * can go on.
 *
 * @param statement in a transaction of its own.
 * @throws what the statement throws, and the deadlock if it comes every time.
 */
export async function despiteDeadlocks<T>(statement: () => Promise<T>): Promise<T> {
  for (let ran = 1; ; ran++) {
    try {
      return await statement();
    } catch (error) {
      if (ran === MOST || !isDeadlock(error)) throw error;
    }
  }
}
