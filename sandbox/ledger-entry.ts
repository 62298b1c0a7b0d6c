/** Kinds of entries in the simulated provider's ledger. */
export type EntryKind =
  | 'charge'
  | 'verification'
  | 'wallet_order'
  | 'wallet_enrollment'
  /** A payer's consent to charge a wallet later. */
  | 'wallet_agreement'
  | 'capture'
  | 'cancellation'
  | 'refund'
  | 'completion'
  /** Nothing was done under the idempotency key, and nothing ever will be. */
  | 'closed';

/** An entry: the provider's action under an idempotency key. It holds no card number and no security code. */
export type LedgerEntry = {
  /** The provider's own identifier: two letters for the kind, an underscore and a UUID. */
  readonly id: string;
  readonly idempotencyKey: string;
  readonly kind: EntryKind;
  /** The payment of an operation; undefined for a payment itself. */
  readonly parentId: string | undefined;
  readonly acquirer: string;
  readonly status: string;
  /** ISO 8583 response code; undefined where no issuer was asked. */
  readonly responseCode: string | undefined;
  /** Integer minor units. */
  readonly amount: number;
  /** ISO 4217. */
  readonly currency: string;
  /** First and last digits; undefined without a card. */
  readonly cardIin: string | undefined;
  readonly cardLastFour: string | undefined;
  /** The HTTP status and the JSON body of the first response, which every repeat gets. */
  readonly answerStatus: number;
  readonly answer: string;
  /** JSON of the current object; undefined while it is the same as first answered. */
  readonly latest: string | undefined;
  readonly sums: Sums;
  /** Change that the entry makes by itself, unless something else happens first. */
  readonly due: { readonly status: string; readonly atMs: number } | undefined;
  readonly details: EntryDetails;
};

/**
 * Sums of a payment's money, in integer minor units. A pending operation counts as done, and is subtracted again if
 * it fails. Always `captured + canceled ≤ amount` and `refunded ≤ captured`.
 */
export type Sums = {
  readonly captured: number;
  readonly canceled: number;
  readonly refunded: number;
  /** Number of captures. */
  readonly captures: number;
};

/** Sums of a payment without operations. */
export const NO_SUMS: Sums = { captured: 0, canceled: 0, refunded: 0, captures: 0 };

/** Further details of a payment or an operation, all of them optional. */
export type EntryDetails = {
  /** Texts that the payer is shown. */
  readonly page?: OrderDetails;
  /** URL that the payer is sent back to. */
  readonly returnUrl?: string;
  readonly notificationUrl?: string;
  readonly notify?: NotificationOrder;
  readonly maxCaptures?: number;
  /** true: the charge is captured as soon as it is approved. */
  readonly captureOnApproval?: boolean;
  /** Result of the challenge if the payer confirms. */
  readonly challenge?: 'passed' | 'failed' | 'abandoned';
  /** true: after the payer's approval, the merchant has to complete the order. */
  readonly needsCompletion?: boolean;
  /** true: stays open for the payer even if the merchant closes it. */
  readonly staysOpen?: boolean;
  /** Part of the authorization that a capture releases because it is the last. */
  readonly released?: number;
};

/** Orders for the notifications of an entry. */
export type NotificationOrder = {
  readonly lateMs?: number;
  readonly isTwice?: boolean;
  /** true: held back until the next notification has been sent. */
  readonly isOutOfOrder?: boolean;
  /** Delivered before the call that causes it is answered. */
  readonly isFirst?: boolean;
  /** true: signed with a key that is not the provider's. */
  readonly isForged?: boolean;
  readonly isNever?: boolean;
};

/** Payment as shown on the provider's pages. Amounts are integer minor units of `currency` (ISO 4217). */
export type OrderDetails = {
  readonly reference: string;
  readonly description: string;
  readonly amount: number;
  readonly currency: string;
  readonly items: readonly {
    readonly name: string;
    readonly quantity: number;
    readonly unitAmount?: number;
  }[];
};
