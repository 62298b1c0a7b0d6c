import { unknownOutcome } from '../kit/provider-answer.ts';
import type { ProviderConnection } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { aroundCalls, BEGINS } from './provider-calls.ts';

/**
 * A connection as the holder of a transaction's lease uses it. All calls about a payment are made through such a
 * connection: it makes none that could still be in progress when another worker may take the transaction.
 */
export type LeasedConnection = ProviderConnection & {
  /** Returns the number of successive calls for which the lease has time, if each takes until its deadline. */
  readonly callsLeft: () => number;
};

/** The outcome of a call that begins something, or completes it, when the lease has no time left: nothing was sent. */
export const TOO_LATE: Outcome = {
  kind: 'not_sent',
  detail: 'delayed before sending',
  because: 'turned_away',
};
/** The same for a call that learns the outcome of an earlier one. */
const NOT_ASKED = unknownOutcome('the lease has no time left for another call');

/**
 * Returns a connection that makes no call after a time. Once a lease is over, another worker may have recorded that a
 * transaction never happened, or may have repeated it.
 *
 * @param lastCallAtMs time after which no call begins, on the clock of `performance.now()`.
 */
export function withinLease(connection: ProviderConnection, lastCallAtMs: number): LeasedConnection {
  const hasTime = () => performance.now() <= lastCallAtMs;
  const { technicalCancel, deadlineMs } = connection;
  const callsLeft = () => Math.floor(1 + Math.max(-1, (lastCallAtMs - performance.now()) / deadlineMs));
  const timed = aroundCalls(connection, async (name, _argument, call) => {
    if (hasTime()) return call();
    return BEGINS[name] || name === 'complete' ? TOO_LATE : NOT_ASKED;
  });
  return {
    ...timed,
    ...(technicalCancel && {
      technicalCancel: {
        ...technicalCancel,
        send: async (query) => hasTime() && technicalCancel.send(query),
      },
    }),
    callsLeft,
  };
}
