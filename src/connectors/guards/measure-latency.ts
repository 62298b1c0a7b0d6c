import type { ProviderConnection } from '../port/connector.ts';
import { aroundCalls } from './provider-calls.ts';

/** Number of payments over which the latency is averaged. */
const RECENT_PAYMENTS = 16;

/** Measures how long a connection's payments take at the provider, recently and on average: `recentLatencyMs`. */
export function measureLatency(connection: ProviderConnection): ProviderConnection {
  let meanMs = 0;
  const measured = aroundCalls(connection, async (name, _argument, call) => {
    if (name !== 'pay') return call();
    const startedMs = performance.now();
    const outcome = await call();
    meanMs += (performance.now() - startedMs - meanMs) / RECENT_PAYMENTS;
    return outcome;
  });
  return { ...measured, recentLatencyMs: () => meanMs };
}
