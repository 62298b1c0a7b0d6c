import type { RawNotification } from '#src/connectors/connector.ts';
import type { Currency } from '../orders.ts';

/** Abilities that a case may need of a provider, and why one that lacks it is passed over. */
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
  refund_reads: 'its look-up of a refund repeats the refund, and reads nothing first',
  groups: 'groups of claims and ends are the database alone, and are tried before the sandbox',
  enrollments: 'it enrolls no wallets',
  late_payers: 'it lets nobody pay at a page that was closed',
  dashboard: 'it has no dashboard here, in which a merchant refunds',
} as const;

/** Something that some providers can do, and others cannot. */
export type Ability = keyof typeof ABILITIES;

/** Two accounts at the provider: the connections `judge` and `judge-two`. */
export type Acquirer = 'ONE' | 'TWO';

/** A kind of call, by which the gate before the provider stops it. */
export type Call = 'charge' | 'look_up' | 'close' | 'operation';

/** A provider that can stand behind the service under test. */
export type Provider = {
  /** As `--provider` names it. */
  readonly name: string;
  readonly abilities: ReadonlySet<Ability>;
  readonly connector: string;
  /** Time that the service waits for it, for all requests of a call. */
  readonly timeoutMs: number;
  /** Settings of a connection beside its address and timeout, as YAML's flow style has them. */
  readonly settings: (acquirer: Acquirer) => string;
  /** Environment variables of a connection's secrets, by their names in the catalogue. */
  readonly secrets: (acquirer: Acquirer) => Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
  /** Currencies in which orders are made, all of which it counts as ISO 4217 does. */
  readonly currencies: readonly Currency[];
  /** Reads the beginning of an HTTP request; undefined: no call that is stopped. */
  callOf(head: string): Call | undefined;
  start(options: StartOptions): Promise<Judge>;
};

export type StartOptions = {
  /** Checkout of the service under test. */
  readonly checkout: string;
  /** Creates a database for a ledger, in a PostgreSQL that no case harms. @returns its address. */
  ledgerUrl(): Promise<string>;
  /** Posts a notification to a replica that is alive. @returns the status of its response; undefined: none. */
  deliver(connection: string, notification: RawNotification): Promise<number | undefined>;
};

/** A provider that runs: its ledger is what the service is judged by. */
export type Judge = {
  readonly port: number;
  readonly isAlive: () => boolean;
  /** All that it wrote to its output and to disk. */
  written(): Promise<string>;
  ledger(): Promise<LedgerLine[]>;
  /** The payer of an entry pays, or agrees, at the provider's page. @returns the query with which they come back. */
  agree(line: LedgerLine): Promise<string>;
  /** A notification about an entry, which may tell what is not so. */
  notification(line: LedgerLine, options: { readonly isForged: boolean }): RawNotification;
  /** The merchant refunds a part of a charge in its dashboard. @returns the notification of it. */
  refundThere?(line: LedgerLine, amount: number): RawNotification;
  /** Has the operations on a payment, which it knows by `id`, meet trouble: `sandbox:reset_after`. */
  trouble(id: string, word: string): void;
  /** Returns false for a transaction of which nothing reached it, and of which it therefore never tells. */
  hasHeardOf(transactionId: string): boolean;
  kill(): Promise<void>;
};

/** An entry of a ledger. */
export type LedgerLine = {
  readonly id: string;
  /** The id of our transaction. */
  readonly idempotency_key: string;
  readonly kind: string;
  readonly acquirer: string;
  readonly status: string;
  readonly amount: number;
  readonly currency: string;
  readonly amount_captured: number;
  readonly amount_refunded: number;
  /** ISO 8583; null where no issuer was asked. */
  readonly response_code: string | null;
  /** The merchant's reference, as the provider was told it. */
  readonly reference: string | null;
};
