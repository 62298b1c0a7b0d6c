import type { ProviderConnection, ReportProblem } from '../port/connector.ts';
import { assertNever, type Outcome } from '../port/outcome.ts';
import { type BreakerSettings, type Circuit, type CircuitState, createCircuit } from './circuit.ts';
import { aroundCalls, BEGINS } from './provider-calls.ts';

/** A connection's health, judged by the outcomes of its calls. */
export type ConnectionHealth = {
  /** Returns true if a payment would be sent now. It would not while the circuit is open or a trial is in progress. */
  isAvailable(): boolean;
  /**
   * Returns true while look-ups should leave the provider alone: from the opening of the circuit until a probe succeeds
   * or, if the provider cannot be probed, until the pause is over.
   */
  isLeftAlone(): boolean;
  /** Probes the provider in the background once the pause is over. Call it regularly. */
  probeIfDue(): void;
  readonly state: () => CircuitState;
  /** Guards another connection to the same provider with the same circuit, for new credentials. */
  renew(connection: ProviderConnection): GuardedConnection;
};

/** A connection with its circuit breaker. */
export type GuardedConnection = ProviderConnection & { readonly health: ConnectionHealth };

/** Options for a circuit breaker, other than its settings. */
export type GuardOptions = {
  /** Called with each new state; must not throw. */
  readonly changed?: (state: CircuitState) => void;
  /** Called when a background probe fails, once for each problem until the circuit closes; must not throw. */
  readonly probeFailed?: (problem: string) => void;
  /** A clock that never goes back, in milliseconds; by default the process's own. */
  readonly nowMs?: () => number;
};

const CIRCUIT_OPEN: Outcome = { kind: 'not_sent', detail: 'circuit open', because: 'circuit_open' };

/**
 * Wraps a connection in a circuit breaker: while the circuit is open, calls that begin something are `not_sent` at
 * once. Calls that look up or complete a transaction always pass and do not count: only the provider knows where the
 * money is. `not_sent` and `unknown` count as failures, but an attempt that was turned away does not count at all.
 * After the pause, the breaker probes the provider if possible. Once the probe has succeeded, one call passes as the
 * trial, and its success closes the circuit.
 */
export function guardConnection(
  connection: ProviderConnection,
  settings: BreakerSettings,
  { changed = () => {}, probeFailed = () => {}, nowMs = () => performance.now() }: GuardOptions = {},
): GuardedConnection {
  let knownProblem: string | undefined;
  const circuit = createCircuit({
    ...{ settings, isProbed: connection.probe !== undefined, nowMs },
    changed(state) {
      if (state === 'CLOSED') knownProblem = undefined;
      changed(state);
    },
  });
  return guardWith(connection, circuit, (problem) => {
    if (problem !== knownProblem) probeFailed(problem);
    knownProblem = problem;
  });
}

/** @param noteProblem called with the reason of each failed probe. */
function guardWith(
  connection: ProviderConnection,
  circuit: Circuit,
  noteProblem: ReportProblem,
): GuardedConnection {
  const { probe } = connection;
  let probing = Promise.resolve();

  function probeIfDue(): void {
    const admission = probe && circuit.admitProbe();
    if (!admission) return;
    probing = Promise.try(probe, noteProblem)
      .catch((error) => {
        noteProblem(String(error));
        return false;
      })
      .then((isThere) => circuit.report(admission, isThere));
  }

  async function send(call: () => Promise<Outcome>): Promise<Outcome> {
    probeIfDue();
    const admission = circuit.admitCall();
    if (!admission) return CIRCUIT_OPEN;
    let isHealthy: boolean | undefined;
    try {
      const outcome = await call();
      isHealthy = isHealthyBy(outcome);
      return outcome;
    } finally {
      circuit.report(admission, isHealthy);
    }
  }

  async function close(): Promise<void> {
    await connection.close();
    await probing;
  }

  const { state, isAvailable, isLeftAlone } = circuit;
  const renew = (other: ProviderConnection) => guardWith(other, circuit, noteProblem);
  const health = { isAvailable, isLeftAlone, probeIfDue, state, renew };
  const guarded = aroundCalls(connection, (name, _argument, call) => (BEGINS[name] ? send(call) : call()));
  return { ...guarded, close, health };
}

/** Returns true if an outcome shows a healthy provider, false if it shows an unhealthy one, undefined if neither. */
function isHealthyBy(outcome: Outcome): boolean | undefined {
  switch (outcome.kind) {
    case 'approved':
    case 'awaits_payer':
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
