import type { Capabilities } from '#src/connectors/capabilities.ts';
import type { Hint, ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { TransactionInState } from '../model/state.ts';
import { type LeasedTransaction, loadPayment, type WriteDeps } from '../write-change.ts';
import type { NewsResult, RouteDeps } from './route-news.ts';

/** Dependencies of the functions that check a transaction. */
export type CheckDeps = WriteDeps &
  RouteDeps & {
    readonly publicUrl: () => string;
    readonly checked: CheckObserver;
  };

/** Observer of checks, for metrics and logs. */
export type CheckObserver = {
  /**
   * Called with the result of a check. 'mismatch': the report does not fit the payment; 'contradiction': the report is
   * the opposite of the final state shown to the merchant; 'overdue': a signed report has waited for an hour.
   */
  learned(
    about: CheckedTransaction,
    result: Outcome | 'lapsed' | 'mismatch' | 'contradiction' | 'overdue',
  ): void;
  failed(error: unknown): void;
};

/** The transaction that a check is about. */
export type CheckedTransaction = { readonly transactionId: string; readonly connectionId: string };

/** A transaction in its current state, with its payment and its provider's terms. */
export type Found = TransactionInState & { readonly terms: Capabilities };

/** News, if any, that prompts a query to the provider. */
export type Prompt = {
  readonly hint: Hint | undefined;
  /**
   * Asks the provider to close the transaction early. Unlike at expiry, the transaction then ends only if the provider
   * reports its end.
   */
  readonly close: boolean;
};

/** Result of a query to the provider. */
export type Asked = {
  readonly result: Exclude<NewsResult, 'unmatched'>;
  /** Seconds until the next check; undefined if no more news is expected. */
  readonly checkInS: number | undefined;
  /** The worker's token from now on; undefined if another worker has the transaction. */
  readonly fence: number | undefined;
  /** true: the write has scheduled the next check. */
  readonly isScheduled?: boolean;
  /** true: the provider reports more than was written, so it is queried again about the new state. */
  readonly again?: boolean;
};

/** Reads a transaction with its payment and its provider's terms. */
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
