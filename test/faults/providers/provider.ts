import type { RawNotification } from '#src/connectors/port/connector.ts';
import type { Currency } from '../orders.ts';

/** Features that a case may need, each with the reason to skip a provider that lacks it. */
export const ABILITIES = {
  cards: 'it takes no cards',
  authorizations: 'it authorizes nothing without taking it: there is nothing to capture or to cancel',
  verifications: 'it verifies no cards',
  redirects: 'it sends no payer to a page of its own',
  completions: 'it takes the money of a payer who agreed by itself',
  look_ups: 'it has no look-up',
  unsigned_notifications: 'its notifications decide, and it tells nothing that did not happen',
  closings:
    'it repeats a refund under its key, so that the first look-up ends it: nothing is postponed or closed',
  payer_closings: 'it closes no payment that awaits its payer',
  refund_reads: 'its look-up of a refund repeats the refund, and reads nothing first',
  groups: 'groups of claims and ends are the database alone, and are tried before the sandbox',
  enrollments: 'it enrolls no wallets',
  late_payers: 'it lets nobody pay at a page that was closed',
  codes: 'it makes no codes',
  code_closings: 'it closes no code that can still be paid',
  lost_charges: 'a lost charge that it does not find stays unknown',
  lost_codes: 'the lost creation of a code that it does not find stays unknown',
  late_codes: 'it lets nobody pay a code that has run out',
  transfers: 'it takes no transfer of another amount',
  dashboard: 'it has no dashboard here, in which a merchant refunds',
} as const;

/** A feature that some providers lack. */
export type Ability = keyof typeof ABILITIES;

/** The two accounts at the provider, for the connections `judge` and `judge-two`. */
export type Acquirer = 'ONE' | 'TWO';

/** The kind of a call, at which the gate in front of the provider can stop it. */
export type Call = 'charge' | 'look_up' | 'close' | 'operation';

/** A provider with which the service can be tested. */
export type Provider = {
  /** Its name in `--provider`. */
  readonly name: string;
  readonly abilities: ReadonlySet<Ability>;
  readonly connector: string;
  /** The time that the service waits for all requests of a call. */
  readonly timeoutMs: number;
  /** Returns a connection's settings, apart from URL and timeout, in YAML's flow style. */
  readonly settings: (acquirer: Acquirer) => string;
  /** Returns the environment variables of a connection's secrets, by their names in the catalogue. */
  readonly secrets: (acquirer: Acquirer) => Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
  /** The currencies of orders, with the number of decimal places in ISO 4217. */
  readonly currencies: readonly Currency[];
  /** The call with which the provider closes a payment that awaits its payer, or after which it counts as closed. */
  readonly closesBy?: Call;
  /** true: only some time after the close is it certain that its search lists every payment. */
  readonly searchLags?: true;
  /** A card whose payer must pass a challenge, at a provider without wallets. */
  readonly challengedCard?: string;
  /** Classifies a call by the beginning of its HTTP request; undefined for calls that are never stopped. */
  callOf(head: string): Call | undefined;
  start(options: StartOptions): Promise<Judge>;
};

export type StartOptions = {
  /** The checkout of the service under test. */
  readonly checkout: string;
  /** Creates a database for a ledger, in a PostgreSQL that no case harms. @returns its URL. */
  ledgerUrl(): Promise<string>;
  /** Posts a notification to a running replica. @returns the status of the response, if any. */
  deliver(connection: string, notification: RawNotification): Promise<number | undefined>;
};

/** A running provider, whose ledger decides whether the service is correct. */
export type Judge = {
  readonly port: number;
  readonly isAlive: () => boolean;
  /** Returns everything that it wrote to its output and to disk. */
  written(): Promise<string>;
  ledger(): Promise<LedgerLine[]>;
  /** Pays or agrees, as the payer, at the provider's page. @returns the query of the payer's return. */
  agree(line: LedgerLine): Promise<string>;
  /** Lets a code that nobody has paid run out. Absent at a provider without codes. */
  expire?(line: LedgerLine): Promise<void>;
  /** Returns a notification about an entry; the notification need not be true. */
  notification(line: LedgerLine, options: { readonly isForged: boolean }): RawNotification;
  /** Refunds part of a charge in the provider's dashboard. @returns its notification. */
  refundThere?(line: LedgerLine, amount: number): RawNotification;
  /** Causes trouble such as `sandbox:reset_after` for the operations on a payment with the provider's `id`. */
  trouble(id: string, word: string): void;
  /**
   * Returns false for a transaction that never reached the provider, if its outcome stays unknown: no notification or
   * look-up ends it.
   *
   * @param isCard true for an attempt by card.
   */
  hasHeardOf(transactionId: string, isCard: boolean): boolean;
  kill(): Promise<void>;
};

/** An entry of a ledger. */
export type LedgerLine = {
  readonly id: string;
  /** true: merchants get the entry's id as the name of the movement of money. */
  readonly isNamedById?: true;
  /** The id of our transaction. */
  readonly idempotency_key: string;
  readonly kind: string;
  readonly acquirer: string;
  readonly status: string;
  readonly amount: number;
  readonly currency: string;
  readonly amount_captured: number;
  readonly amount_refunded: number;
  /** The part of an authorization that was released; absent if the provider's ledger does not show it. */
  readonly amount_canceled?: number;
  /** An ISO 8583 code; null if no issuer decided. */
  readonly response_code: string | null;
  /** The merchant's reference, as sent to the provider. */
  readonly reference: string | null;
};
