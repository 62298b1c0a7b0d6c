import { createSlots } from '#src/slots.ts';
import type { ProviderConnection } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { aroundCalls, BEGINS } from './provider-calls.ts';

/** Share of the slots that payments may take; the rest is left to captures, cancels, refunds and look-ups. */
const PAYMENTS_SHARE = 7 / 8;

const FULL: Outcome = { kind: 'not_sent', detail: 'too many calls in flight', because: 'turned_away' };

/**
 * Returns the default limit of one connection: three quarters of the process's calls, so that a provider that hangs
 * leaves room for the calls to others, but at least 64.
 *
 * @param maxInFlight limit on the calls that the process has in flight.
 */
export function defaultCallLimit(maxInFlight: number): number {
  return Math.max(64, Math.floor((maxInFlight * 3) / 4));
}

/**
 * Limits the calls that a connection has in flight. A payment holds its slot from before its attempt is stored until
 * the attempt has ended, so an attempt that is stored is also sent. Any other call that begins something is `not_sent`
 * if no slot is free. Calls that look up or complete a transaction always pass, but count.
 */
export function limitCalls(connection: ProviderConnection, limit: number): ProviderConnection {
  const slots = createSlots(limit);
  const share = (fraction: number) => [{ group: 'all calls', fraction }];

  const limited = aroundCalls(connection, async (name, _argument, call) => {
    if (name === 'pay') return call();
    const release = BEGINS[name] ? slots.take(share(1)) : slots.occupy(share(1));
    if (!release) return FULL;
    try {
      return await call();
    } finally {
      release();
    }
  });
  const ofPayments = share(PAYMENTS_SHARE);
  return {
    ...limited,
    slots: { hasRoom: () => slots.hasRoom(ofPayments), take: () => slots.take(ofPayments) },
  };
}
