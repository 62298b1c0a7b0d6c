import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { Capabilities } from '#src/connectors/capabilities.ts';
import type { LookedUp, LookUp, ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { attemptFacts, isWalletRedirect } from '../create/payment-attempt.ts';
import { isAlarm } from '../model/contradiction.ts';
import { isOperation, succeededBase, type TransactionRow, targetOf } from '../model/state.ts';
import { NO_LOOK_UP } from '../model/waiting.ts';

/** Facts about an attempt that a look-up needs beside its record. */
export type AskedAttempt = {
  readonly capture: boolean;
  readonly isVerification: boolean;
};

/** Returns true if the provider answered; an alarm is an answer, too. */
export function isAnswered(reported: Outcome): boolean {
  return reported.kind !== 'unknown' || isAlarm(reported);
}

/** Asks the provider for an outcome, and completes nothing, as is right for a payment that is over here. */
export async function ask({ lookUp }: ProviderConnection, query: LookUp): Promise<Outcome> {
  return lookUp ? lookUp(query) : NO_LOOK_UP;
}

/** Asks the provider for an outcome. If the payer has agreed and completing the payment is up to us, completes it. */
export async function askAndComplete(connection: ProviderConnection, query: LookUp): Promise<Outcome> {
  const { lookUp, complete, repeatOperation } = connection;
  if (!lookUp) {
    if (repeatOperation && OPERATIONS.has(query.of.kind)) return repeatOperation(query);
    // Without a look-up, only the payer's own return shows that they agreed.
    if (query.hint?.returnQuery === undefined || !complete) return NO_LOOK_UP;
    const completed = await complete(query);
    if (completed.kind === 'not_sent') return NO_LOOK_UP;
    if (completed.kind !== 'unknown' || completed.alarm) return completed;
    // Nobody may bring it again: a repeat under the same key tells the first answer. One that is refused tells nothing.
    const again = await complete(query);
    return again.kind === 'not_sent' ? completed : again;
  }
  const outcome = await lookUp(query);
  if (outcome.kind !== 'to_complete' || !complete) return outcome;
  const completed = await complete(query);
  // The payer's agreement stands, so a call that did not reach the provider is made again later.
  return completed.kind === 'not_sent' ? outcome : completed;
}

/**
 * Describes an attempt for a look-up at its provider, from stored data alone.
 *
 * @param record its `transactions` is the attempt.
 */
export function lookedUpAttempt(
  record: Payment,
  attempt: AskedAttempt,
  publicUrl: string,
  terms: Capabilities,
): LookedUp {
  const facts = attemptFacts(record, publicUrl, terms);
  const detail = record.transactions?.paymentMethod?.detail?.kind;
  if (detail?.case === 'card') {
    return {
      kind: 'card',
      capture: attempt.capture,
      verify: attempt.isVerification,
      softDescriptor: detail.value.softDescriptor,
      attempt: facts,
    };
  }
  return { kind: isWalletRedirect(record) ? 'wallet_redirect' : 'wallet_enrollment', attempt: facts };
}

/** The operations by the names that connectors have for them. */
export const OPERATION_KINDS = { CAPTURE: 'capture', CANCEL: 'cancel', REFUND: 'refund' } as const;
const OPERATIONS: ReadonlySet<string> = new Set(Object.values(OPERATION_KINDS));

/** Describes a transaction for a look-up: an attempt, or an operation with the transactions that it acts on. */
export function lookedUpTransaction(
  record: Payment,
  transaction: TransactionRow,
  transactions: readonly TransactionRow[],
  publicUrl: string,
  terms: Capabilities,
): LookedUp {
  const reported = record.transactionsHistory.find(({ id }) => id === transaction.id) ?? record.transactions;
  if (!isOperation(transaction.type)) {
    const attempt = { capture: transaction.capture, isVerification: transaction.type === 'VERIFY' };
    return lookedUpAttempt(
      { ...record, ...(reported && { transactions: reported }) },
      attempt,
      publicUrl,
      terms,
    );
  }
  const own = succeededBase(transactions);
  const acted = transactions.find(({ id }) => id === transaction.parentId);
  if (!own || !acted || !reported)
    throw new Error(`payment ${record.id} lacks what ${transaction.id} acts on`);
  const { merchantReference, description, reason } = reported;
  return {
    kind: OPERATION_KINDS[transaction.type],
    merchantReference,
    description,
    reason,
    payment: targetOf(own),
    target: targetOf(acted),
    claimed: transactions.flatMap(({ id, reference }) =>
      id !== transaction.id && reference !== undefined ? [reference] : [],
    ),
  };
}
