import type { FastifyInstance } from 'fastify';
import type { RefusedBy } from '#src/api/admission.ts';

/** A limit that refuses calls: admission's, connection slots or an account's rate. */
export type Limit = RefusedBy | 'on_their_way' | 'rate';

/** Pause between two lines about the same limit and route. */
const SUM_MS = 1_000;

/**
 * Logs refused calls as totals: one line per second for each limit and route. In a flood, a line for each call would
 * add no information, but make each refusal a tenth more expensive.
 *
 * @returns a function that adds a call to the total.
 */
export function logRefusedCalls(app: FastifyInstance): (limit: Limit, route: string) => void {
  const sums = new Map<string, { readonly limit: Limit; readonly route: string; calls: number }>();
  let timer: NodeJS.Timeout | undefined;

  function write(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const sum of sums.values()) app.log.warn(sum, 'calls refused');
    sums.clear();
  }

  app.addHook('onClose', async () => write());
  return (limit, route) => {
    sums.getOrInsert(`${limit} ${route}`, { limit, route, calls: 0 }).calls += 1;
    timer ??= setTimeout(write, SUM_MS);
  };
}
