import type { CodeMethodName } from './code-methods.ts';

/** Kinds of entries in the simulated provider's ledger. */
export type EntryKind =
  | 'charge'
  | 'verification'
  | 'wallet_order'
  | 'wallet_enrollment'
  /** A payer's consent to later charges of a wallet. */
  | 'wallet_agreement'
  /** A local method's code, or a payment on the page of the payer's bank. */
  | 'code'
  | 'capture'
  | 'cancellation'
  | 'refund'
  | 'completion'
  /** A payer who contests a payment. */
  | 'dispute'
  /** Nothing was done with the idempotency key, and nothing ever will be. */
  | 'closed';

/** An action of the provider, with its idempotency key. It contains no card number and no security code. */
export type LedgerEntry = {
  /** The provider's own id: two letters for the kind, an underscore and a UUID. */
  readonly id: string;
  readonly idempotencyKey: string;
  readonly kind: EntryKind;
  /** For an operation, its payment; undefined for a payment itself. */
  readonly parentId: string | undefined;
  readonly acquirer: string;
  readonly status: string;
  /** ISO 8583 response code; undefined if no issuer was involved. */
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
  /** JSON of the current object; undefined while it equals the first response. */
  readonly latest: string | undefined;
  readonly sums: Sums;
  /** The change that will happen unless something else happens first. */
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

/** Further details of a payment or an operation, all optional. */
export type EntryDetails = {
  /** Texts shown to the payer. */
  readonly page?: OrderDetails;
  /** URL to which the payer is sent back. */
  readonly returnUrl?: string;
  /** URL to which a payer is sent back who leaves a wallet's page without paying; the return URL by default. */
  readonly cancelUrl?: string;
  readonly notificationUrl?: string;
  readonly notify?: NotificationOrder;
  readonly maxCaptures?: number;
  /** true if the charge is captured as soon as it is approved. */
  readonly captureOnApproval?: boolean;
  /** Result of the challenge if the payer confirms. */
  readonly challenge?: 'passed' | 'failed' | 'abandoned';
  /** true if the merchant has to complete the order after the payer's approval. */
  readonly needsCompletion?: boolean;
  /** true if the payment stays open for the payer even if the merchant closes it. */
  readonly staysOpen?: boolean;
  /** Amount of the authorization that a last capture releases. */
  readonly released?: number;
  readonly code?: CodeDetails;
  /** For a payment: the dispute that its call has requested. */
  readonly dispute?: DisputeOrder;
  /** For a dispute: its next steps. */
  readonly plan?: readonly DisputeStep[];
  /** The moves of its money, in their order. */
  readonly moves?: readonly Move[];
  readonly settleWrong?: SettleWrong;
};

/** The type of a move of money, as the settlement report names it. */
export type MoveType = 'payment' | 'capture' | 'refund' | 'refund_failure' | 'dispute' | 'dispute_reversal';

/** Money that moved: the amount of the entry. */
export type Move = { readonly type: MoveType; readonly atMs: number };

/** A difference, on request, between the settlement report and what happened. */
export type SettleWrong =
  | ('missing' | 'amount' | 'currency' | 'twice' | 'late' | 'payout' | 'unknown' | 'fee')
  /** A refund that is done is taken back. */
  | 'reversed'
  /** A declined charge is settled. */
  | 'declined';

/** A dispute that a call requests: some time after the money is taken, with an ending. */
export type DisputeOrder = {
  readonly afterMs: number;
  readonly ending:
    | ('open' | 'inquiry' | 'inquiry_closed' | 'escalated' | 'won' | 'lost')
    | ('accepted' | 'expired' | 'lost_again' | 'pre_arbitration');
};

/** A step of a dispute. `moved`: how often the disputed money has moved. */
export type DisputeStep = {
  readonly stage: 'inquiry' | 'chargeback' | 'pre_arbitration';
  readonly status: string;
  readonly moved: number;
  readonly atMs: number;
};

/** A change to a code that happens by itself: to a status, or by money that arrives. */
export type CodeEvent = 'paid' | 'confirming' | 'declined' | 'expired' | 'underpaid' | 'overpaid';

/** Details of a code. */
export type CodeDetails = {
  readonly method: CodeMethodName;
  /** The payer's bank, where the method has one. */
  readonly bank?: string;
  /** The money that has arrived, in minor units. */
  readonly received: number;
  /** Changes that happen by themselves, in order: the first is due next. `isLate`: money that comes after the code's end. */
  readonly plan: readonly { readonly status: CodeEvent; readonly atMs: number; readonly isLate?: true }[];
};

/** Instructions for the notifications of an entry. */
export type NotificationOrder = {
  readonly lateMs?: number;
  readonly isTwice?: boolean;
  /** true if it is held back until the next notification has been sent. */
  readonly isOutOfOrder?: boolean;
  /** true if it is delivered before the response to the call that causes it. */
  readonly isFirst?: boolean;
  /** true if it is signed with a key that is not the provider's. */
  readonly isForged?: boolean;
  readonly isNever?: boolean;
};

/** A payment as shown on the provider's pages. Amounts are integer minor units of `currency` (ISO 4217). */
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
