/**
 * Reason why an attempt was not sent.
 * - `unreachable`: the connection accepts no payments now. The provider could not be reached, or refuses all of this
 *   connection's calls (for its key, its rate): it counts against the provider's health.
 * - `turned_away`: this one attempt was refused, by the provider's answer or by a limit of ours.
 * - `circuit_open`: the connection's circuit is open; nothing was tried.
 */
export type NotSentReason = 'unreachable' | 'turned_away' | 'circuit_open';

/**
 * All that was captured and refunded of a payment at its provider, in minor units of its currency. What is pending or
 * failed does not count, nor does what a dispute took.
 */
export type Totals = {
  /** 0 while it is only authorized; a purchase is captured. */
  readonly captured: bigint;
  readonly refunded: bigint;
  /** Money that a dispute took may be among what was refunded, even if it was won since: nobody knows for sure. */
  readonly mayCountDisputes?: true;
};
