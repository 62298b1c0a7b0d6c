import { ServiceError } from '#src/service-error.ts';
import { isUnavailable } from './database.ts';

const RETRY_AFTER_S = 1;

/**
 * Before anything is sent, a database that cannot be reached refuses the call.
 *
 * @throws ServiceError SERVICE_UNAVAILABLE; other errors as they are.
 */
export async function orUnavailable<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    throw new ServiceError(
      'SERVICE_UNAVAILABLE',
      'the call was not accepted and nothing was sent; try again',
      {
        retryAfterS: RETRY_AFTER_S,
        cause: error,
      },
    );
  }
}
