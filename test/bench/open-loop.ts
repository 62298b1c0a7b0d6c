import type { Send } from './closed-loop.ts';
import { openGrpcClient } from './grpc-client.ts';
import { type Client, restClientOnDemand } from './rest-client.ts';

/** A load at a steady rate, whether or not the service responds. */
export type Offer = {
  readonly perSecond: number;
  readonly forMs: number;
  /** Maximum number of concurrent calls. A call that would exceed it is not sent. */
  readonly slots: number;
  /** Sequence number of the first call. */
  readonly first?: number;
};

/** A call that has ended. */
export type EndedCall = {
  readonly sequence: number;
  /** Time of its response since the beginning of the load. */
  readonly endedAtMs: number;
  readonly latencyMs: number;
  /** true if the service accepted it. */
  readonly ok: boolean;
};

const TICK_MS = 2;

/** Offers a load, and waits for the last response. */
export function openLoop({ perSecond, forMs, slots, first = 0 }: Offer, send: Send): Promise<EndedCall[]> {
  const free = Array.from({ length: slots }, (_, slot) => slot);
  const ended: EndedCall[] = [];
  let sequence = first;
  let offered = 0;
  const beginMs = performance.now();

  function sendOne(slot: number): void {
    const startedMs = performance.now();
    const own = sequence++;
    send(slot, own, (ok) => {
      const nowMs = performance.now();
      ended.push({ sequence: own, endedAtMs: nowMs - beginMs, latencyMs: nowMs - startedMs, ok });
      free.push(slot);
    });
  }

  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const elapsedMs = performance.now() - beginMs;
      if (elapsedMs >= forMs) {
        if (free.length < slots) return;
        clearInterval(timer);
        resolve(ended);
        return;
      }
      for (const due = Math.floor((elapsedMs / 1000) * perSecond); offered < due; offered++) {
        const slot = free.pop();
        if (slot !== undefined) sendOne(slot);
      }
    }, TICK_MS);
  });
}

/** Number of concurrent calls on one gRPC connection, below its limit on streams. */
const STREAMS = 250;

/** Opens a client for this number of concurrent calls. */
export async function openClient(
  protocol: 'rest' | 'grpc',
  port: number,
  slots: number,
  runId: string,
): Promise<Client> {
  if (protocol === 'rest') return restClientOnDemand(port, runId);
  const count = Math.ceil(slots / STREAMS);
  const clients = await Promise.all(
    Array.from({ length: count }, () => openGrpcClient(port, Math.ceil(slots / count), runId)),
  );
  return {
    send: (slot, sequence, done) => clients[slot % count]?.send(Math.floor(slot / count), sequence, done),
    close() {
      for (const client of clients) client.close();
    },
  };
}

/** Returns a quantile of latencies, in hundredths of a millisecond. */
export function quantile(latenciesMs: readonly number[], q: number): number {
  const sorted = Float64Array.from(latenciesMs).sort();
  const at = sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
  return Math.round(100 * at) / 100;
}
