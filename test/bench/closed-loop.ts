/** The plan of a load: a number of concurrent slots, each of which starts a call when its previous call has ended. */
export type Plan = {
  readonly concurrency: number;
  /** A lead-in that is not measured, in which connections open and pools fill. */
  readonly leadInMs: number;
  readonly measuredMs: number;
};

export type LoopResult = {
  /** Number of calls sent, including the lead-in. */
  readonly sent: number;
  readonly failed: number;
  /** Latencies of the calls that succeeded within the measured time. */
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
};

/** Sends a call and returns its result. A slot has one call in progress at a time. */
export type Send = (slot: number, sequence: number, done: (ok: boolean) => void) => void;

/** Runs a load in a closed loop, until its last response. */
export function closedLoop(plan: Plan, send: Send): Promise<LoopResult> {
  return new Promise((resolve) => {
    const latenciesMs: number[] = [];
    let sent = 0;
    let failed = 0;
    let busy = plan.concurrency;
    const beginMs = performance.now() + plan.leadInMs;
    const endMs = beginMs + plan.measuredMs;

    function next(slot: number): void {
      const startedMs = performance.now();
      if (startedMs >= endMs) {
        busy -= 1;
        if (busy === 0) resolve({ sent, failed, ...summary(latenciesMs, plan.measuredMs) });
        return;
      }
      send(slot, sent++, (ok) => {
        const nowMs = performance.now();
        if (!ok) failed += 1;
        else if (nowMs >= beginMs && nowMs < endMs) latenciesMs.push(nowMs - startedMs);
        next(slot);
      });
    }
    for (let slot = 0; slot < plan.concurrency; slot++) next(slot);
  });
}

function summary(latenciesMs: number[], measuredMs: number) {
  const sorted = Float64Array.from(latenciesMs).sort();
  const quantile = (q: number) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? NaN;
  return { perSecond: sorted.length / (measuredMs / 1000), p50Ms: quantile(0.5), p99Ms: quantile(0.99) };
}
