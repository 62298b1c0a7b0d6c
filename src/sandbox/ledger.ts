/** What the simulated provider did under an idempotency key. It holds no card number and no security code. */
export type LedgerEntry = {
  /** The provider's own identifier: ch_…, wo_… or we_… and a UUID. */
  readonly id: string;
  readonly idempotencyKey: string;
  /** `closed`: nothing was done, and nothing will be. */
  readonly kind: 'charge' | 'wallet_order' | 'wallet_enrollment' | 'closed';
  readonly acquirer: string;
  readonly status: string;
  /** ISO 8583 response code; undefined for wallets. */
  readonly responseCode: string | undefined;
  /** Integer minor units. */
  readonly amount: number;
  /** ISO 4217. */
  readonly currency: string;
  /** First and last digits; undefined for wallets. */
  readonly cardIin: string | undefined;
  readonly cardLastFour: string | undefined;
  /** The HTTP status and the JSON body that it was answered with, and that a repeat is answered with. */
  readonly answerStatus: number;
  readonly answer: string;
  /** JSON of what the checkout page shows; undefined for all but wallet orders. */
  readonly details: string | undefined;
};

/** Where the simulated provider keeps what it did. What is on disk counts: `record` resolves after the commit. */
export type Ledger = {
  /** Makes it ready, or reads what is there. */
  prepare(): Promise<void>;
  /** Records an entry, or gives the one that its idempotency key has already. Race-safe. */
  record(entry: LedgerEntry): Promise<{ readonly entry: LedgerEntry; readonly isNew: boolean }>;
  findByKey(idempotencyKey: string): Promise<LedgerEntry | undefined>;
  findById(id: string): Promise<LedgerEntry | undefined>;
  /** The entries that follow an identifier in the order of identifiers, LEDGER_PAGE of them at most. */
  entriesAfter(id: string): Promise<readonly LedgerEntry[]>;
  close(): Promise<void>;
};

/** How many entries are read back at once. */
export const LEDGER_PAGE = 1_000;
