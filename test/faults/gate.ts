/**
 * A gate's action on a message at a point: pass it, hold it until released, cut its connection, or (at the database)
 * refuse it with an SQLSTATE. A refused request gets an ERROR, as from the database; a refused response becomes a FATAL
 * error, as from a connection pooler that lost its server.
 */
export type Verdict = 'pass' | 'cut' | { readonly refuse: string };

/** A stopped message. */
export type Stop = {
  /** Resolves when the message arrives; rejects when it does not arrive in time. */
  readonly reached: Promise<void>;
  release(): void;
  /** Cuts the held message and its connection. */
  cut(): void;
};

/** Decides what proxies do with messages. */
export type Gate = {
  /** Proxies call it once per message. */
  pass(point: string): Promise<Verdict>;
  /** Holds the nth message that reaches a point from now on. */
  hold(point: string, nth?: number): Stop;
  /** Holds every message that reaches a point from now on; `release` lets these and all later ones pass. */
  holdAll(point: string): { readonly held: () => number; release(): void };
  /** Applies a verdict to the next `times` messages at a point. */
  next(point: string, verdict: Verdict, times?: number): { readonly left: () => number };
};

const REACH_TIMEOUT_MS = 60_000;

type Rule = { readonly point: string; take(): Promise<Verdict> | undefined };

/** Points are named `<statement or call>:request` and `<statement or call>:response`. */
export function createGate(): Gate {
  const rules: Rule[] = [];

  function hold(point: string, nth = 1): Stop {
    const reached = Promise.withResolvers<void>();
    const verdict = Promise.withResolvers<Verdict>();
    const timer = setTimeout(() => reached.reject(new Error(`${point} was not reached`)), REACH_TIMEOUT_MS);
    // If the caller no longer waits, the rejection must not be unhandled.
    reached.promise.catch(() => {});
    let toCome = nth;
    rules.push({
      point,
      take() {
        toCome -= 1;
        if (toCome !== 0) return undefined;
        clearTimeout(timer);
        reached.resolve();
        return verdict.promise;
      },
    });
    const settle = (decided: Verdict) => {
      toCome = 0;
      clearTimeout(timer);
      verdict.resolve(decided);
    };
    return { reached: reached.promise, release: () => settle('pass'), cut: () => settle('cut') };
  }

  function holdAll(point: string): { held: () => number; release(): void } {
    const verdict = Promise.withResolvers<Verdict>();
    let isHolding = true;
    let held = 0;
    rules.push({
      point,
      take() {
        if (!isHolding) return undefined;
        held += 1;
        return verdict.promise;
      },
    });
    const release = () => {
      isHolding = false;
      verdict.resolve('pass');
    };
    return { held: () => held, release };
  }

  function next(point: string, verdict: Verdict, times = 1): { left: () => number } {
    let left = times;
    rules.push({
      point,
      take() {
        if (left === 0) return undefined;
        left -= 1;
        return Promise.resolve(verdict);
      },
    });
    return { left: () => left };
  }

  async function pass(point: string): Promise<Verdict> {
    for (const rule of rules) {
      const verdict = rule.point === point ? rule.take() : undefined;
      if (verdict) return verdict;
    }
    return 'pass';
  }

  return { pass, hold, holdAll, next };
}
