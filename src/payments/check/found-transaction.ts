import type { Capabilities } from '#src/connectors/capabilities.ts';
import type { Hint, ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { TransactionInState } from '../model/state.ts';
import { type LeasedTransaction, loadPayment, type WriteDeps } from '../write-change.ts';
import type { NewsResult, RouteDeps } from './route-news.ts';

/** Dependencies of checking a transaction. */
export type CheckDeps = WriteDeps &
  RouteDeps & {
    readonly publicUrl: () => string;
    readonly checked: CheckObserver;
  };

/** Observer of checks, for metrics and logs. */
export type CheckObserver = {
  /**
   * Called with what a check has learned. 'mismatch': what the provider reports does not fit the payment; 'contradiction':
   * it is the opposite of the final state that the merchant was shown.
   */
  learned(about: CheckedTransaction, result: Outcome | 'lapsed' | 'mismatch' | 'contradiction'): void;
  failed(error: unknown): void;
};

/** The transaction that a check is about. */
export type CheckedTransaction = { readonly transactionId: string; readonly connectionId: string };

/** A transaction as it stands, with its payment and the terms of its provider. */
export type Found = TransactionInState & { readonly terms: Capabilities };

/** The news that prompts a question to the provider, if any does. */
export type Prompt = {
  readonly hint: Hint | undefined;
  /** Has the provider close the transaction before its time. Unlike at its end, only the provider's word counts then. */
  readonly close: boolean;
};

/** The result of a question to the provider. */
export type Asked = {
  readonly result: Exclude<NewsResult, 'unmatched'>;
  /** Seconds until the next check; undefined if nothing more is expected. */
  readonly checkInS: number | undefined;
  /** The worker's token from now on; undefined if another one has the transaction. */
  readonly fence: number | undefined;
  /** true: what was written says when the next check is. */
  readonly isScheduled?: boolean;
  /** true: the provider reports more than was written, so it is asked once more about what stands now. */
  readonly again?: boolean;
};

/** Reads a transaction with its payment, and the terms of its provider. */
export async function findTransaction(
  { database }: CheckDeps,
  { capabilities: terms }: ProviderConnection,
  leased: LeasedTransaction,
): Promise<Found> {
  const state = await loadPayment(database, leased);
  const transaction = state.transactions.find(({ id }) => id === leased.transactionId);
  if (!transaction) throw new Error(`payment ${leased.paymentId} lacks transaction ${leased.transactionId}`);
  return { ...state, transaction, terms };
}
