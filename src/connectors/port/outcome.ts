import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { Money } from '#src/money.ts';
import type { DeclineReason } from './decline.ts';
import type { Dispute } from './dispute-report.ts';

/**
 * Reason why an attempt was not sent.
 * - `unreachable`: the connection accepts no payments now. The provider could not be reached, or refuses all calls of
 *   this connection (because of its key or rate). Counts against the provider's health.
 * - `turned_away`: only this attempt was refused, by the provider's response or by one of our limits.
 * - `circuit_open`: the connection's circuit is open; nothing was tried.
 */
export type NotSentReason = 'unreachable' | 'turned_away' | 'circuit_open';

/**
 * A payment's captured and refunded totals at its provider, in minor units of its currency. Pending and failed amounts
 * do not count, nor does money taken by a dispute.
 */
export type Totals = {
  /** 0 while the payment is only authorized; a purchase is captured. */
  readonly captured: bigint;
  readonly refunded: bigint;
  /**
   * `refunded` may include money taken by a dispute, even one that was later won; the provider does not distinguish.
   */
  readonly mayCountDisputes?: true;
  /** The captures and refunds that make up the totals. undefined: the provider does not name them. */
  readonly movements?: readonly Movement[];
  /** The provider's ids of the refunds that it lists as failed. */
  readonly failedRefunds?: readonly (string | undefined)[];
};

/** A capture or refund in a payment's totals. A purchase's own capture is not listed. */
export type Movement = {
  readonly type: 'CAPTURE' | 'REFUND';
  /** As in an outcome. */
  readonly providerPaymentId: string;
  readonly minorUnits: bigint;
};

/** Fields common to every outcome that a provider reports. */
type Reported = {
  readonly providerData: ProviderData;
} & Named;

/** The two names that a provider's report gives a transaction. Both are stored with it; absent: an earlier one is kept. */
type Named = {
  /**
   * Address with which the connector finds the provider's object again: the provider's own id, or several encoded ids.
   * Opaque to the core, at most 512 characters.
   */
  readonly reference?: string;
  /**
   * The id by which the provider itself names this movement of money (the payment, the capture or the refund), exactly
   * as its notifications and its dashboard show it, at most 255 characters. Often part of `reference`, but external
   * captures and refunds have it, too. The core compares it: equal ids are the same money, and different ids are
   * different money. So it never changes for a movement that happened, and is absent for an object that moves no money,
   * such as an order that nobody has paid yet, unless a payment keeps the object's id.
   */
  readonly providerPaymentId?: string;
};

/** Field of the two outcomes that may change a final state. */
type Correcting = {
  /**
   * The earlier reports that this one corrects, by the status in their provider data, from the connector's table of
   * corrections: a capture or a refund that was reported as done has failed or the reverse, or a declined payment is
   * approved.
   */
  readonly corrects?: readonly string[];
  /**
   * true: the payer may try again on the provider's page, each time under another id, and any paid try is the payment. A
   * correction therefore applies under another id, too.
   */
  readonly isAnyTry?: true;
};

/** Field of the outcomes of a transfer whose payer may have sent another amount. */
type Received = {
  /** The money that has arrived, if it is not the payment's amount: too little so far, or too much. */
  readonly received?: Money;
};

/** The provider's page to which the payer is sent: a wallet's, a bank's, or a card's 3-D Secure challenge. */
export type ShownPage = { readonly page: string };

/** Instructions that the payer is shown on this service's own page. */
export type ShownInstructions = { readonly page?: undefined; readonly instructions: Instructions };

/** Everything that a payer needs to pay a bank transfer or a ticket. Each connector fills the fields that its provider reports. */
export type Instructions = {
  /** The text that the payer copies: a Pix code ("copia e cola"). It is also the content of the QR code. */
  readonly text?: string;
  /** URL of the provider's image of the QR code. */
  readonly image?: string;
  /** The digits for the payer: a boleto's line of 47 digits, or the reference of a cash voucher. */
  readonly number?: string;
  /** The digits of the barcode; for a boleto, 44 digits. */
  readonly barcode?: string;
  /** The account to which the payer transfers (SPEI: a CLABE), its bank and owner, and the reference to give. */
  readonly account?: string;
  readonly bankName?: string;
  readonly beneficiary?: string;
  readonly reference?: string;
  /** URL of the provider's own document or page, such as a boleto's PDF. */
  readonly document?: string;
};

/** The card behind a wallet's token, as far as the provider reports it. */
export type ReportedCard = {
  /** Such as VISA. */
  readonly brand?: string | undefined;
  readonly lastFour?: string | undefined;
  /** 1 to 12, and two digits. */
  readonly expirationMonth?: number | undefined;
  readonly expirationYear?: number | undefined;
  /** CREDIT, DEBIT or PREPAID. */
  readonly type?: string | undefined;
};

/** The KNOWN state of a transaction after a call. A `switch` over it ends in `assertNever`. */
export type Outcome =
  /** Done: charged, authorized, verified, captured, canceled or refunded. */
  | (Reported &
      Correcting & {
        readonly kind: 'approved';
        /** Needs manual review: money may have moved without a request. The response message says why. */
        readonly alarm?: true;
        /** '' if the provider reports none. */
        readonly authorizationCode: string;
        readonly retrievalReferenceNumber: string;
        /** The scheme's id of the transaction, needed for later charges of a stored credential. */
        readonly networkTransactionId?: string;
        /** The card behind a wallet's token, if the provider reports it. */
        readonly card?: ReportedCard;
        /** The provider's token of an enrolled wallet, for use by later payments. */
        readonly enrolledToken?: string;
        /** The payment's ended disputes, if any. Only a look-up reports them. */
        readonly endedDisputes?: readonly Dispute[];
        /**
         * The payment's captured and refunded totals, no matter who requested the captures and refunds. Only the
         * payment's look-up reports them.
         */
        readonly totals?: Totals;
        /**
         * The money that a capture or a refund has moved, if it may not be the requested money. The transaction takes it as
         * far as its payment can hold it.
         */
        readonly money?: Money;
      } & Received)
  /** The payer has to act: on a page, or as the instructions say. */
  | (Reported & {
      readonly kind: 'awaits_payer';
      readonly show: ShownPage | ShownInstructions;
      /** When the payer can no longer pay, according to the provider. Absent: it does not say. */
      readonly until?: Date;
    } & Received)
  /** The payer agreed; `complete` must take the money. Only a look-up reports this. */
  | (Reported & { readonly kind: 'to_complete' })
  /** The provider has the transaction and will decide later. */
  | (Reported & { readonly kind: 'pending' })
  | (Reported & Correcting & DeclineReason & { readonly kind: 'declined' })
  /** The payer did not act in time, or the authorization lapsed: nothing was charged, and nothing will be. */
  | (Reported & { readonly kind: 'expired' } & Received)
  /** It is certain that no money moved at the provider, and that none will: the attempt may be made elsewhere. */
  | {
      readonly kind: 'not_sent';
      readonly because: NotSentReason;
      readonly detail: string;
      /**
       * Set if the provider refused this particular request: its name for the field at fault or its error code, never a
       * value; '' if the error names neither.
       */
      readonly refused?: string;
    }
  /**
   * It may have happened (timeout, reset, 5xx, unreadable response): never sent elsewhere, never "failed", and resent only
   * by the connector, under the same key (`complete`, `lookUp`, `repeatOperation`).
   */
  | (Named & {
      readonly kind: 'unknown';
      readonly detail: string;
      readonly providerData: ProviderData | undefined;
      /** Needs manual review: money may have moved without a request. `detail` says why. */
      readonly alarm?: true;
    });

/** Returns the URL of the page to which an outcome sends the payer; '' if it sends them to no page. */
export function payersPage(outcome: Outcome): string {
  return (outcome.kind === 'awaits_payer' && outcome.show.page) || '';
}

/** Makes the compiler check that every outcome is handled. */
export function assertNever(outcome: never): never {
  throw new Error(`unhandled: ${(outcome as { kind?: string }).kind}`);
}
