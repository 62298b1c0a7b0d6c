import { setImmediate } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { BreakerSettings, CircuitState } from '#src/connectors/guards/circuit.ts';
import { guardConnection } from '#src/connectors/guards/circuit-breaker.ts';
import { CARDS_ONLY } from '#src/connectors/port/capabilities.ts';
import type { ProviderConnection, ReportProblem } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { cardAttempt } from './attempts.ts';

const providerData = create(ProviderDataSchema);

/** One outcome of every kind. */
export const OUTCOMES = {
  approved: {
    kind: 'approved',
    providerData,
    authorizationCode: 'A1B2C3',
    retrievalReferenceNumber: '612345678901',
  },
  redirect: { kind: 'awaits_payer', providerData, show: { page: 'https://provider.example' } },
  pending: { kind: 'pending', providerData },
  declined: { kind: 'declined', providerData, iso8583Code: '05', advice: 'NONE' },
  turnedAway: { kind: 'not_sent', detail: 'refused', because: 'turned_away' },
  notSent: { kind: 'not_sent', detail: 'before sending: ECONNREFUSED', because: 'unreachable' },
  unknown: { kind: 'unknown', detail: 'awaiting the response: DEADLINE', providerData: undefined },
} satisfies Record<string, Outcome>;

/** Outcome that a guarded connection returns at once while its circuit is open. */
export const CIRCUIT_OPEN: Outcome = {
  kind: 'not_sent',
  detail: 'circuit open',
  because: 'circuit_open',
};

/** The problem that a failed probe reports. */
export const OUT_OF_REACH = 'nothing was sent (ECONNREFUSED)';

let nowMs = 0;

/** Advances the clock of every guarded connection. */
export function later(ms: number): void {
  nowMs += ms;
}

/** Lets the continuations of all settled promises run. */
export const settled = () => setImmediate();

/** A call that ends when the test says so. */
export type Held<T> = { readonly end: (result: T) => Promise<void>; readonly fail: () => Promise<void> };

function heldCalls<T>() {
  const calls: Held<T>[] = [];
  const call = (): Promise<T> => {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    calls.push({
      end: (result) => {
        resolve(result);
        return settled();
      },
      fail: () => {
        reject(new Error('broke its contract'));
        return settled();
      },
    });
    return promise;
  };
  return { calls, call };
}

/**
 * A connection behind a circuit breaker, whose payments and probes end when the test says so. By default, two failures
 * open the circuit.
 */
export function guarded(over: Partial<BreakerSettings> & { probed?: boolean } = {}) {
  const { probed = false, ...settings } = over;
  const payments = heldCalls<Outcome>();
  const probes = heldCalls<boolean>();
  const lookedUp: string[] = [];
  const states: CircuitState[] = [];
  const problems: string[] = [];
  const probe = (report?: ReportProblem) =>
    probes.call().then((isThere) => {
      if (!isThere) report?.(OUT_OF_REACH);
      return isThere;
    });
  const inner: ProviderConnection = {
    identity: 'scripted',
    environment: 'TEST',
    capabilities: CARDS_ONLY,
    capture: payments.call,
    cancel: payments.call,
    refund: payments.call,
    complete: async () => OUTCOMES.approved,
    readNotification: undefined,
    pay: payments.call,
    probe: probed ? probe : undefined,
    readAccount: async () => ({ result: 'ACCEPTED', account: undefined, environment: 'TEST' }),
    lookUp: async ({ transactionId }) => {
      lookedUp.push(transactionId);
      return OUTCOMES.unknown;
    },
    deadlineMs: 1_000,
    close: async () => {},
  };
  const connection = guardConnection(
    inner,
    { failureRate: 0.5, minCalls: 2, windowMs: 10_000, openMs: 1_000, ...settings },
    {
      changed: (state) => states.push(state),
      probeFailed: (problem) => problems.push(problem),
      nowMs: () => nowMs,
    },
  );

  /** Starts a payment; `sent` is the call that the inner connection received, if any. */
  function begin() {
    const before = payments.calls.length;
    const outcome = connection.pay(cardAttempt());
    return { outcome, sent: payments.calls.slice(before).at(-1) };
  }

  /** Makes payments with these outcomes, one after the other. */
  async function make(...outcomes: readonly Outcome[]): Promise<void> {
    for (const outcome of outcomes) await begin().sent?.end(outcome);
  }

  return {
    connection,
    health: connection.health,
    probes: probes.calls,
    payments: payments.calls,
    lookedUp,
    states,
    problems,
    begin,
    make,
    open: () => make(OUTCOMES.unknown, OUTCOMES.unknown),
  };
}
