import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { Dispute } from './dispute-report.ts';

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

/** Fields common to every outcome that a provider reports. */
type Reported = {
  readonly providerData: ProviderData;
  /**
   * Reference by which the connector acts on the transaction later: the provider's own id, or several encoded ones.
   * Opaque to the core, at most 512 characters, stored with the transaction. Absent: an earlier reference stays.
   */
  readonly reference?: string;
  /** An operator has to investigate: money that nobody asked for may have moved. The response message says why. */
  readonly alarm?: true;
};

/** Field of the two outcomes by which a provider may change a final state. */
type Correcting = {
  /**
   * The provider's last word: a capture or a refund has failed although it was reported as done, or a payment that was
   * declined is approved. Only a signed notification reports this.
   */
  readonly corrects?: true;
};

/** The KNOWN state of a transaction after a call. A `switch` over it ends in `assertNever`. */
export type Outcome =
  /** Done: charged, authorized, verified, captured, canceled or refunded. */
  | (Reported &
      Correcting & {
        readonly kind: 'approved';
        /** '' if the provider reports none. */
        readonly authorizationCode: string;
        readonly retrievalReferenceNumber: string;
        /** The scheme's id of the transaction, needed for later charges of a stored credential. */
        readonly networkTransactionId?: string;
        /** The provider's token of an enrolled wallet, which later payments name. */
        readonly enrolledToken?: string;
        /** The payment's disputes that are over, if there were any. Only a look-up reports this. */
        readonly endedDisputes?: readonly Dispute[];
        /** All that was captured and refunded of the payment, whoever asked for it. Only its look-up reports this. */
        readonly totals?: Totals;
      })
  /** The payer must go to `redirectUrl`: a wallet's checkout, or a card's 3-D Secure challenge. */
  | (Reported & { readonly kind: 'redirect'; readonly redirectUrl: string })
  /** The payer agreed; `complete` has to take the money. Only a look-up reports this. */
  | (Reported & { readonly kind: 'to_complete' })
  /** The provider has the transaction and will decide later. */
  | (Reported & { readonly kind: 'pending' })
  | (Reported &
      Correcting & {
        readonly kind: 'declined';
        /** ISO 8583 response code (field 39) that the provider's own code is equivalent to. */
        readonly iso8583Code: string;
        /** Another provider might charge a second time (ISO 94, duplicate): no failover of this attempt. */
        readonly nowhereElse?: true;
      })
  /** The payer did not act in time, or the authorization lapsed: nothing was charged, and nothing will be. */
  | (Reported & { readonly kind: 'expired' })
  /** Certainly nothing happened at the provider: the attempt may be made elsewhere. */
  | {
      readonly kind: 'not_sent';
      readonly because: NotSentReason;
      readonly detail: string;
      /**
       * Set if the provider refused this very request: the field at fault by the provider's name, or the code of its
       * error, but never a value; '' if it names nothing.
       */
      readonly refused?: string;
    }
  /** It may have happened (timeout, reset, 5xx, unreadable answer): never resent or sent elsewhere, never "failed". */
  | {
      readonly kind: 'unknown';
      readonly detail: string;
      readonly providerData: ProviderData | undefined;
      readonly reference?: string;
      /** An operator has to investigate: money that nobody asked for may have moved. `detail` says why. */
      readonly alarm?: true;
    };

/** Makes the compiler check that every outcome is handled. */
export function assertNever(outcome: never): never {
  throw new Error(`unhandled: ${(outcome as { kind?: string }).kind}`);
}
