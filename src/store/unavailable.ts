import { ServiceError } from '#src/service-error.ts';
import { isUnavailable } from './database.ts';

const RETRY_AFTER_S = 1;

/**
 * Awaits what comes before anything is sent: a database that cannot be reached refuses the call.
 *
 * @throws ServiceError SERVICE_UNAVAILABLE; other errors as they are.
 */
export async function orUnavailable<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    const message = 'the call was not accepted; nothing was sent; retry later';
    throw new ServiceError('SERVICE_UNAVAILABLE', message, { retryAfterS: RETRY_AFTER_S, cause: error });
  }
}
