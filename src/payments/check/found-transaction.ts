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
   * Called with the result of a check. 'mismatch': the provider's report does not fit the payment; 'contradiction':
   * it is the opposite of the final state that the merchant was shown.
   */
  learned(about: CheckedTransaction, result: Outcome | 'lapsed' | 'mismatch' | 'contradiction'): void;
  failed(error: unknown): void;
};

/** The transaction that a check is about. */
export type CheckedTransaction = { readonly transactionId: string; readonly connectionId: string };

/** A transaction in its current state, with its payment and its provider's terms. */
export type Found = TransactionInState & { readonly terms: Capabilities };

/** The news, if any, that prompts us to ask the provider. */
export type Prompt = {
  readonly hint: Hint | undefined;
  /**
   * Has the provider close the transaction early. Then only the provider's word ends it, unlike when its
   * time runs out.
   */
  readonly close: boolean;
};

/** The result of asking the provider. */
export type Asked = {
  readonly result: Exclude<NewsResult, 'unmatched'>;
  /** Seconds until the next check; undefined if nothing more is expected. */
  readonly checkInS: number | undefined;
  /** The worker's token from now on; undefined if another worker has the transaction. */
  readonly fence: number | undefined;
  /** true: the write has scheduled the next check. */
  readonly isScheduled?: boolean;
  /** true: the provider reports more than was written, so it is asked again about the new state. */
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
