import { hash } from 'node:crypto';

/** The latency of a provider's responses: log-normal, like that of real providers. */
export type Latency = { readonly medianMs: number; readonly p99Ms: number };

/** Quantile 0.99 of the standard normal distribution. */
const Z99 = 2.326;

/**
 * Returns the latency of one response. It depends only on the amount in minor units, so that the load generator knows
 * the provider's share of a call's latency; the service adds the rest.
 */
export function latencyMs({ medianMs, p99Ms }: Latency, amount: number): number {
  const digest = hash('sha256', String(amount), 'buffer');
  const uniform = (at: number) => (digest.readUInt32LE(at) + 0.5) / 2 ** 32;
  const normal = Math.sqrt(-2 * Math.log(uniform(0))) * Math.cos(2 * Math.PI * uniform(4));
  return medianMs * (p99Ms / medianMs) ** (normal / Z99);
}
