import { ServiceError } from '#src/service-error.ts';
import type { Database } from './database.ts';
import { isUnavailable } from './database-error.ts';

const RETRY_AFTER_S = 1;

/**
 * Awaits work that precedes any provider call, and refuses the call if the database is unavailable.
 *
 * @throws ServiceError SERVICE_UNAVAILABLE; rethrows other errors.
 */
export async function orUnavailable<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    const message = 'the database is unavailable; nothing was sent; retry later';
    throw new ServiceError('SERVICE_UNAVAILABLE', message, { retryAfterS: RETRY_AFTER_S, cause: error });
  }
}

// Writes no row, but fails whenever a payment could not be written: on a standby, without the schema, or without the
// privilege.
const CHECK_WRITABLE = {
  name: 'check_writable',
  text: 'UPDATE payment SET status = status WHERE false',
};

/** Resolves if a payment could be written now; otherwise rejects as a claim would. */
export async function checkWritable(database: Database): Promise<void> {
  await database.query(CHECK_WRITABLE);
}
