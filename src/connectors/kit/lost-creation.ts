import { DEADLINE, type HttpRequest, type HttpResult } from './http-client.ts';
import { isSuccess, readJsonObject } from './provider-answer.ts';
import type { SendTarget } from './provider-client.ts';

/**
 * Sends a request that creates a payer's code, which takes no money, and repeats it once, byte for byte and within the same
 * deadline, if its answer is lost: cut off, unreadable, or a 5xx. The provider keeps the request's idempotency key, so the
 * repeat returns the first code.
 *
 * @param send sends within the call's deadline.
 * @param isAnswer returns true if an answer to the repeat is about the code. Any other answer proves nothing about the
 *   first request, and the first result counts. By default, a success.
 */
export async function sendCreation<Target = HttpRequest>(
  send: SendTarget<Target>,
  request: Target,
  isAnswer = isSuccess,
): Promise<HttpResult> {
  const first = await send(request);
  if (!isLost(first)) return first;
  const second = await send(request);
  return second.kind === 'answer' && isAnswer(second.status) && !isLost(second) ? second : first;
}

function isLost(result: HttpResult): boolean {
  // After the deadline, nothing can be repeated within it.
  if (result.kind !== 'answer') return result.kind === 'unknown' && !result.detail.endsWith(DEADLINE);
  return result.status >= 500 || readJsonObject(result.body) === undefined;
}
