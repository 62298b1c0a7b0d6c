/** Settings of a circuit breaker: when a connection is left alone, and for how long. */
export type BreakerSettings = {
  /** The share of failing calls that opens the circuit, above 0 and up to 1. */
  readonly failureRate: number;
  /** Of how many calls at least, within the window. So many failing calls in a row open it, too, however long they took. */
  readonly minCalls: number;
  readonly windowMs: number;
  /** The first pause. Each trial that fails doubles it, up to 5 minutes, or to this when it is longer. */
  readonly openMs: number;
};

/** All of them, from well to ill. */
export const CIRCUIT_STATES = ['CLOSED', 'HALF_OPEN', 'OPEN'] as const;

/** CLOSED: calls are sent. OPEN: none is. HALF_OPEN: a probe or one call at a time tries the provider out. */
export type CircuitState = (typeof CIRCUIT_STATES)[number];

/** Admits a call or a probe; its result is reported with it. */
export type Admission = {
  readonly isTrial: boolean;
  /** Number of times that the circuit had opened before. */
  readonly openings: number;
};

/** The state machine of a circuit breaker. It makes no calls, and only `nowMs` tells it the time. */
export type Circuit = {
  readonly state: () => CircuitState;
  /** Returns true if a call would be admitted now. */
  isAvailable(): boolean;
  /** Returns true while nothing has shown, or may try to show, that the provider is well again. */
  isLeftAlone(): boolean;
  /** undefined while the circuit is open or a trial is under way. What is admitted must be reported. */
  admitCall(): Admission | undefined;
  /** Admits a probe when the pause is over and none is under way. */
  admitProbe(): Admission | undefined;
  /**
   * Learns what came of a call or a probe: whether the provider is well; undefined when that was not learned. A call that
   * was admitted before the circuit opened last says nothing of the provider as it is now.
   */
  report(admission: Admission, isHealthy: boolean | undefined): void;
};

/** Options of a circuit. */
export type CircuitOptions = {
  readonly settings: BreakerSettings;
  /** After the pause a probe has to succeed before a call is the trial. */
  readonly isProbed: boolean;
  /** A clock that never goes back. */
  readonly nowMs: () => number;
  /** Receives each new state; must not throw. */
  readonly changed: (state: CircuitState) => void;
};

const MAX_PAUSE_MS = 5 * 60_000;

/**
 * A closed circuit, which opens when too many calls fail. `paused` leads to `proven` by a probe that succeeds, and from
 * there to `closed` by a call that does; without probes the call alone closes it. A probe or trial that fails begins
 * another pause, twice as long.
 */
export function createCircuit({ settings, isProbed, nowMs, changed }: CircuitOptions): Circuit {
  const maxPauseMs = Math.max(settings.openMs, MAX_PAUSE_MS);
  const calls = createTally(settings, nowMs);
  let phase: 'closed' | 'paused' | 'proven' = 'closed';
  let isTrying = false;
  let openings = 0;
  let pauseMs = 0;
  let pausedUntilMs = 0;
  let told: CircuitState = 'CLOSED';

  function state(): CircuitState {
    if (phase === 'closed') return 'CLOSED';
    return isTrying || phase === 'proven' ? 'HALF_OPEN' : 'OPEN';
  }

  function tell(): void {
    const now = state();
    if (now === told) return;
    told = now;
    changed(now);
  }

  const isPauseOver = () => phase === 'paused' && !isTrying && nowMs() >= pausedUntilMs;
  const mayTry = () => (phase === 'proven' && !isTrying) || (!isProbed && isPauseOver());

  function tryOut(): Admission {
    isTrying = true;
    tell();
    return { isTrial: true, openings };
  }

  function open(): void {
    phase = 'paused';
    openings += 1;
    pauseMs = pauseMs === 0 ? settings.openMs : Math.min(pauseMs * 2, maxPauseMs);
    pausedUntilMs = nowMs() + pauseMs;
  }

  function learn(isHealthy: boolean, isTrial: boolean): void {
    if (!isTrial) {
      if (calls.count(isHealthy)) open();
    } else if (!isHealthy) open();
    else if (isProbed && phase === 'paused') phase = 'proven';
    else {
      phase = 'closed';
      pauseMs = 0;
      calls.forget();
    }
  }

  return {
    state,
    isAvailable: () => phase === 'closed' || mayTry(),
    isLeftAlone: () => phase === 'paused' && (isProbed || !isPauseOver()),
    admitCall: () => (phase === 'closed' ? { isTrial: false, openings } : mayTry() ? tryOut() : undefined),
    admitProbe: () => (isProbed && isPauseOver() ? tryOut() : undefined),
    report(admission, isHealthy) {
      if (admission.openings !== openings) return;
      if (admission.isTrial) isTrying = false;
      if (isHealthy !== undefined) learn(isHealthy, admission.isTrial);
      tell();
    },
  };
}

const SLICES = 10;
type Slice = { readonly sinceMs: number; calls: number; failures: number };

/** Counts calls over a window of time, exact to a tenth of it, and failures in a row, which tell of quiet connections. */
function createTally({ failureRate, minCalls, windowMs }: BreakerSettings, nowMs: () => number) {
  let slices: Slice[] = [];
  let inARow = 0;

  function currentSlice(): Slice {
    const now = nowMs();
    slices = slices.filter(({ sinceMs }) => now - sinceMs < windowMs);
    const last = slices.at(-1);
    if (last && now - last.sinceMs < windowMs / SLICES) return last;
    const slice = { sinceMs: now, calls: 0, failures: 0 };
    slices.push(slice);
    return slice;
  }

  return {
    /** Counts a call. @returns whether it is one failure too many. */
    count(isHealthy: boolean): boolean {
      const slice = currentSlice();
      slice.calls += 1;
      if (isHealthy) {
        inARow = 0;
        return false;
      }
      slice.failures += 1;
      inARow += 1;
      if (inARow >= minCalls) return true;
      const calls = slices.reduce((sum, each) => sum + each.calls, 0);
      const failures = slices.reduce((sum, each) => sum + each.failures, 0);
      return calls >= minCalls && failures >= failureRate * calls;
    },
    forget(): void {
      slices = [];
      inARow = 0;
    },
  };
}
