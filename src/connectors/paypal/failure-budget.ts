/** Limit on failed verifications: a burst after a pause, and one more after each pause of `everyMs`. */
export type FailureLimit = { readonly burst: number; readonly everyMs: number };

/** Number of addresses at which those without recent failures are dropped from memory. */
const MANY_ADDRESSES = 1_000;
const ALL = '';

/**
 * Creates the budget for verifications that cost a request to the provider and may fail, for each client address and
 * for all together. Only failures use it up, so a provider that sends genuine notifications is not limited.
 *
 * @param nowMs reads a monotonic clock.
 * @returns a function that takes a failure from the budget before the verification. It returns a function that gives it
 *   back if the verification did not fail, or undefined if the budget is used up.
 */
export function createFailureBudget(
  limits: { readonly ofAddress: FailureLimit; readonly ofAll: FailureLimit },
  nowMs: () => number = () => performance.now(),
): (address: string) => (() => void) | undefined {
  // A budget is stored as the time at which it will be whole again (GCRA, ITU-T I.371).
  const wholeAtMs = new Map<string, number>();

  return (address) => {
    const now = nowMs();
    if (wholeAtMs.size > MANY_ADDRESSES) {
      for (const [name, whole] of wholeAtMs) if (whole <= now) wholeAtMs.delete(name);
    }
    const budgets = [
      { name: ALL, ...limits.ofAll },
      { name: `from ${address}`, ...limits.ofAddress },
    ].map(({ name, burst, everyMs }) => {
      const wholeAt = Math.max(wholeAtMs.get(name) ?? now, now) + everyMs;
      return { name, everyMs, wholeAt, isUsedUp: wholeAt - burst * everyMs > now };
    });
    if (budgets.some(({ isUsedUp }) => isUsedUp)) return undefined;
    for (const { name, wholeAt } of budgets) wholeAtMs.set(name, wholeAt);
    return () => {
      for (const { name, everyMs } of budgets) wholeAtMs.set(name, (wholeAtMs.get(name) ?? now) - everyMs);
    };
  };
}
