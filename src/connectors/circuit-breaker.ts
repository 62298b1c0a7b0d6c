import {
  type CircuitBreakerPolicy,
  circuitBreaker,
  DelegateBackoff,
  handleWhenResult,
  type IBreaker,
  CircuitState as Phase,
} from 'cockatiel';
import type { PaymentAttempt } from './attempt.ts';
import { assertNever, type Outcome, type ProviderConnection } from './connector.ts';

/** When a connection is left alone, and for how long. */
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

/** CLOSED: payments are sent. OPEN: none is. HALF_OPEN: a probe or one payment at a time tries the provider out. */
export type CircuitState = (typeof CIRCUIT_STATES)[number];

/** How a connection's provider is doing, by what became of its payments. */
export type ConnectionHealth = {
  /** Whether a payment sent to it now would be sent: false while the circuit is open, or a trial is under way. */
  isAvailable(): boolean;
  /**
   * Whether the provider is left alone: the circuit is open and, since then, no probe was answered; or, at a provider
   * that cannot be probed, the pause is not over.
   */
  isLeftAlone(): boolean;
  /** Has the provider probed, in the background, once the pause is over; to be called every now and then. */
  probeIfDue(): void;
  readonly state: () => CircuitState;
};

/** A connection with its circuit breaker. */
export type GuardedConnection = ProviderConnection & { readonly health: ConnectionHealth };

const MAX_PAUSE_MS = 5 * 60_000;
const CIRCUIT_OPEN: Outcome = { kind: 'not_sent', detail: 'circuit open', because: 'circuit_open' };

/**
 * The connection behind a circuit breaker: while it is open, `pay` is `not_sent` at once. `not_sent` and `unknown` open
 * it, but for attempts that were turned away: they count for nothing. After the pause the provider is probed, if it can
 * be, and only once it answered does one payment pass as the trial, whose success closes the circuit. Look-ups pass
 * whatever the breaker thinks, and it learns nothing from them.
 *
 * Calls never run inside cockatiel, since it would have others wait for a trial, and would count a call that began
 * before the circuit opened when it ends: it is given results, those that tell something of now.
 *
 * @param changed is told each new state; it must not throw.
 */
export function guardConnection(
  connection: ProviderConnection,
  settings: BreakerSettings,
  changed: (state: CircuitState) => void = () => {},
): GuardedConnection {
  const { probe } = connection;
  let openings = 0;
  let openUntilMs = 0;
  /** A probe or a trial is under way. */
  let trying = false;
  let probing = Promise.resolve();
  let told: CircuitState = 'CLOSED';

  const circuit = createCircuit(settings, probe ? 2 : 1, (pauseMs) => {
    openings += 1;
    openUntilMs = Date.now() + pauseMs;
  });
  circuit.onStateChange(tell);

  function state(): CircuitState {
    if (circuit.state === Phase.Closed) return 'CLOSED';
    return trying || circuit.state === Phase.HalfOpen ? 'HALF_OPEN' : 'OPEN';
  }

  function tell(): void {
    const now = state();
    if (now !== told) changed(now);
    told = now;
  }

  const isDue = () => circuit.state !== Phase.Closed && !trying && Date.now() >= openUntilMs;

  function isAvailable(): boolean {
    return circuit.state === Phase.Closed || (isDue() && (circuit.state === Phase.HalfOpen || !probe));
  }

  const isLeftAlone = () => circuit.state === Phase.Open && (probe !== undefined || !isDue());

  function probeIfDue(): void {
    if (!probe || circuit.state !== Phase.Open || !isDue()) return;
    const openingsBefore = openings;
    probing = tryOut(async () => learn(await probe().catch(() => false), openingsBefore));
  }

  async function tryOut<T>(call: () => Promise<T>): Promise<T> {
    trying = true;
    tell();
    try {
      return await call();
    } finally {
      trying = false;
      tell();
    }
  }

  async function pay(attempt: PaymentAttempt): Promise<Outcome> {
    probeIfDue();
    if (!isAvailable()) return CIRCUIT_OPEN;
    return circuit.state === Phase.Closed ? send(attempt) : tryOut(() => send(attempt));
  }

  async function send(attempt: PaymentAttempt): Promise<Outcome> {
    const openingsBefore = openings;
    const outcome = await connection.pay(attempt);
    await learn(healthOf(outcome), openingsBefore);
    return outcome;
  }

  /** What began before the circuit opened last says nothing of the provider as it is now. */
  async function learn(healthy: boolean | undefined, openingsBefore: number): Promise<void> {
    if (healthy === undefined || openings !== openingsBefore) return;
    // Rejects only when the wall clock was set back into the pause. An outcome is one all the same.
    await circuit.execute(() => healthy).catch(() => {});
  }

  async function close(): Promise<void> {
    await connection.close();
    await probing;
  }

  return { ...connection, pay, close, health: { isAvailable, isLeftAlone, probeIfDue, state } };
}

/**
 * cockatiel's part: when to open and to close, and how long the pause is.
 *
 * @param goodCalls how many in a row close it: the probe's answer, if there is one, and the trial.
 */
function createCircuit(
  settings: BreakerSettings,
  goodCalls: number,
  opened: (pauseMs: number) => void,
): CircuitBreakerPolicy {
  const maxPauseMs = Math.max(settings.openMs, MAX_PAUSE_MS);
  let pauseMs = 0;
  const circuit = circuitBreaker(
    handleWhenResult((healthy) => healthy === false),
    {
      breaker: sampleCalls(settings),
      // It asks at each opening; `attempt` counts them from 1 since the circuit was last closed.
      halfOpenAfter: new DelegateBackoff<{ attempt: number }>(({ attempt }) => {
        pauseMs = Math.min(settings.openMs * 2 ** (attempt - 1), maxPauseMs);
        return pauseMs;
      }),
      halfOpenSampling: { calls: goodCalls, threshold: 0 },
    },
  );
  circuit.onBreak(() => opened(pauseMs));
  return circuit;
}

/** Whether an outcome speaks for the provider's health; undefined when it tells nothing. */
function healthOf(outcome: Outcome): boolean | undefined {
  switch (outcome.kind) {
    case 'approved':
    case 'redirect':
    case 'pending':
    case 'to_complete':
    case 'declined':
    case 'expired':
      return true;
    case 'not_sent':
      return outcome.because === 'unreachable' ? false : undefined;
    case 'unknown':
      return false;
    default:
      return assertNever(outcome);
  }
}

const SLICES = 10;
type Slice = { readonly sinceMs: number; calls: number; failures: number };

/**
 * Counts calls over a window of time, exact to a tenth of it, and failures in a row, by which a connection is told to be
 * ill that has few calls. In cockatiel's own SamplingBreaker the window moves with
 * the calls, at most one step each: on a quiet connection failures of hours ago would open the circuit.
 */
function sampleCalls({ failureRate, minCalls, windowMs }: BreakerSettings): IBreaker {
  let slices: Slice[] = [];
  let inARow = 0;

  function count(failures: 0 | 1): void {
    const nowMs = Date.now();
    slices = slices.filter(({ sinceMs }) => nowMs - sinceMs < windowMs);
    const last = slices.at(-1);
    if (last && nowMs - last.sinceMs < windowMs / SLICES) {
      last.calls += 1;
      last.failures += failures;
    } else {
      slices.push({ sinceMs: nowMs, calls: 1, failures });
    }
  }

  function success(during: Phase): void {
    inARow = 0;
    // The trial: what was counted before is of the past.
    if (during === Phase.HalfOpen) slices = [];
    else count(0);
  }

  function failure(): boolean {
    count(1);
    inARow += 1;
    if (inARow >= minCalls) return true;
    const calls = slices.reduce((sum, slice) => sum + slice.calls, 0);
    const failures = slices.reduce((sum, slice) => sum + slice.failures, 0);
    return calls >= minCalls && failures >= failureRate * calls;
  }

  return { state: undefined, success, failure };
}
