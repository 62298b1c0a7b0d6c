import { hash } from 'node:crypto';

/** The latency of a provider's answers: log-normal, as real providers' is. */
export type Latency = { readonly medianMs: number; readonly p99Ms: number };

/** Quantile 0.99 of the standard normal distribution. */
const Z99 = 2.326;

/**
 * Returns the latency of one answer. It depends on the amount alone, in minor units, so that the load generator knows
 * what the provider takes, and the rest is what the service adds.
 */
export function latencyMs({ medianMs, p99Ms }: Latency, amount: number): number {
  const digest = hash('sha256', String(amount), 'buffer');
  const uniform = (at: number) => (digest.readUInt32LE(at) + 0.5) / 2 ** 32;
  const normal = Math.sqrt(-2 * Math.log(uniform(0))) * Math.cos(2 * Math.PI * uniform(4));
  return medianMs * (p99Ms / medianMs) ** (normal / Z99);
}
