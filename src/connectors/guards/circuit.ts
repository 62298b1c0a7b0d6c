/** Settings of a circuit breaker: the failures that open it, and the length of its pauses. */
export type BreakerSettings = {
  /** Share of failed calls that opens the circuit, above 0 and up to 1. */
  readonly failureRate: number;
  /**
   * Minimum number of calls in the window for `failureRate` to apply. The same number of consecutive failures also
   * opens the circuit, regardless of the time that they take.
   */
  readonly minCalls: number;
  readonly windowMs: number;
  /** The first pause. Each failed trial doubles it, up to 5 minutes, or to this value if it is longer. */
  readonly openMs: number;
};

/** All states, from healthy to unhealthy. */
export const CIRCUIT_STATES = ['CLOSED', 'HALF_OPEN', 'OPEN'] as const;

/** CLOSED: calls are sent. OPEN: no call is sent. HALF_OPEN: one probe or call at a time tests the provider. */
export type CircuitState = (typeof CIRCUIT_STATES)[number];

/** Permission for a call or a probe, which must be returned with the result. */
export type Admission = {
  readonly isTrial: boolean;
  /** Number of times that the circuit had opened when the permission was granted. */
  readonly openings: number;
};

/** The state machine of a circuit breaker. It makes no calls, and `nowMs` is its only clock. */
export type Circuit = {
  readonly state: () => CircuitState;
  /** Returns true if a call would be admitted now. */
  isAvailable(): boolean;
  /** Returns true while the provider has shown no sign of recovery and no call may test it. */
  isLeftAlone(): boolean;
  /** Admits a call; undefined while the circuit is open or a trial is in progress. The result must be reported. */
  admitCall(): Admission | undefined;
  /** Admits a probe if the pause is over and no probe is in progress. */
  admitProbe(): Admission | undefined;
  /**
   * Records the result of a call or a probe: true if the provider is healthy, undefined if its health remains unknown.
   * The result of a call admitted before the circuit last opened is ignored.
   */
  report(admission: Admission, isHealthy: boolean | undefined): void;
};

/** Options for a circuit. */
export type CircuitOptions = {
  readonly settings: BreakerSettings;
  /** true if, after the pause, a probe must succeed before a call becomes the trial. */
  readonly isProbed: boolean;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs: () => number;
  /** Called with each new state; must not throw. */
  readonly changed: (state: CircuitState) => void;
};

const MAX_PAUSE_MS = 5 * 60_000;

/**
 * Creates a closed circuit, which opens when too many calls fail. A successful probe moves it from `paused` to
 * `proven`, and a successful call then to `closed`; without probes, the call alone closes it. A failed probe or trial
 * starts another pause, twice as long.
 */
export function createCircuit({ settings, isProbed, nowMs, changed }: CircuitOptions): Circuit {
  const maxPauseMs = Math.max(settings.openMs, MAX_PAUSE_MS);
  const calls = createTally(settings, nowMs);
  let phase: 'closed' | 'paused' | 'proven' = 'closed';
  let isTrying = false;
  let openings = 0;
  let pauseMs = 0;
  let pausedUntilMs = 0;
  let reported: CircuitState = 'CLOSED';

  function state(): CircuitState {
    if (phase === 'closed') return 'CLOSED';
    return isTrying || phase === 'proven' ? 'HALF_OPEN' : 'OPEN';
  }

  function tell(): void {
    const now = state();
    if (now === reported) return;
    reported = now;
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
    // Stryker disable next-line AssignmentOperator: any new number distinguishes the openings
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
      // Stryker disable next-line ConditionalExpression: since the last opening, no other call overlaps a trial
      if (admission.isTrial) isTrying = false;
      if (isHealthy !== undefined) learn(isHealthy, admission.isTrial);
      tell();
    },
  };
}

const SLICES = 10;
type Slice = { readonly sinceMs: number; calls: number; failures: number };

/**
 * Counts calls over a time window, to a precision of a tenth of the window. Also counts consecutive failures, for times
 * with few calls.
 */
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
    /** Counts a call. @returns true if the failures now reach the limit. */
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
