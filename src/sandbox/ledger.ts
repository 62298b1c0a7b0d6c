/** Everything that the simulated provider does. */
export type EntryKind =
  | 'charge'
  | 'verification'
  | 'wallet_order'
  | 'wallet_enrollment'
  /** A payer's consent that a wallet is charged later. */
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
  /** The payment that an operation is about; undefined for a payment itself. */
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
  /** JSON of the object as it is now; undefined while it is as first answered. */
  readonly latest: string | undefined;
  readonly sums: Sums;
  /** The change that it makes by itself, unless something else happens before. */
  readonly due: { readonly status: string; readonly atMs: number } | undefined;
  readonly details: EntryDetails;
};

/**
 * Sums of a payment's money, in integer minor units. An operation that is pending counts as done, and is taken
 * back should it fail. Always `captured + canceled ≤ amount` and `refunded ≤ captured`.
 */
export type Sums = {
  readonly captured: number;
  readonly canceled: number;
  readonly refunded: number;
  /** Number of captures. */
  readonly captures: number;
};

/** The sums of what has not been touched yet. */
export const NO_SUMS: Sums = { captured: 0, canceled: 0, refunded: 0, captures: 0 };

/** Other details of a payment that the provider remembers. All of them are optional. */
export type EntryDetails = {
  /** Texts that the payer is shown. */
  readonly page?: OrderDetails;
  /** URL to which the payer is sent back. */
  readonly returnUrl?: string;
  readonly notificationUrl?: string;
  readonly notify?: NotificationOrder;
  readonly maxCaptures?: number;
  /** A charge that is not approved yet is captured when it is. */
  readonly captureOnApproval?: boolean;
  /** Result of the challenge, should the payer confirm. */
  readonly challenge?: 'passed' | 'failed' | 'abandoned';
  /** The payer approves, and the merchant's side has to complete. */
  readonly needsCompletion?: boolean;
  /** Stays open for the payer although the merchant's side wants it closed. */
  readonly staysOpen?: boolean;
};

/** Way in which notifications about an entry are sent, when that was ordered. */
export type NotificationOrder = {
  readonly lateMs?: number;
  readonly isTwice?: boolean;
  /** Held back until the one after it was sent. */
  readonly isOutOfOrder?: boolean;
  /** Delivered before the call that causes it is answered. */
  readonly isFirst?: boolean;
  /** With a signature that is not the provider's. */
  readonly isForged?: boolean;
  readonly isNever?: boolean;
};

/** Payment as the provider's pages show it. Amounts are integer minor units of `currency` (ISO 4217). */
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

/** The simulated provider's record of what it did. What is on disk counts: writes resolve after the commit. */
export type Ledger = {
  /** Makes it ready, or reads what is there. */
  prepare(): Promise<void>;
  /** Records an entry, or gives the one that its idempotency key has already. Race-safe. */
  record(entry: LedgerEntry): Promise<{ readonly entry: LedgerEntry; readonly isNew: boolean }>;
  /**
   * Reads entries, and writes what `decide` makes of them and any new ones, as one step that no other change of these
   * entries overlaps. `decide` is given those that exist; nothing is written when it returns none.
   *
   * @returns what was written; undefined, with nothing written, when a new entry's idempotency key is in use.
   */
  change(
    ids: readonly string[],
    decide: (entries: readonly LedgerEntry[]) => readonly LedgerEntry[],
  ): Promise<readonly LedgerEntry[] | undefined>;
  findByKey(idempotencyKey: string): Promise<LedgerEntry | undefined>;
  findById(id: string): Promise<LedgerEntry | undefined>;
  /** The entries that follow an identifier in the order of identifiers, LEDGER_PAGE of them at most. */
  entriesAfter(id: string): Promise<readonly LedgerEntry[]>;
  close(): Promise<void>;
};

/** Number of entries that are read back at once. */
export const LEDGER_PAGE = 1_000;
