import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { Capabilities } from '#src/connectors/capabilities.ts';
import type { LookedUp, LookUp, ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { unknownOutcome } from '#src/connectors/provider-answer.ts';
import type { LeasedConnection } from '#src/connectors/within-lease.ts';
import { attemptFacts, isWalletRedirect } from '../create/payment-attempt.ts';
import { isAlarm } from '../model/contradiction.ts';
import { mayBeClosed } from '../model/schedule.ts';
import {
  isOpen,
  isOpenAttempt,
  isOperation,
  succeededBase,
  type TransactionRow,
  targetOf,
} from '../model/state.ts';
import { NO_LOOK_UP, timeLeftMs } from '../model/waiting.ts';
import type { CheckDeps, Found, Prompt } from './found-transaction.ts';

/**
 * Queries the provider about a transaction. Also completes an open payment that its payer has approved, if the provider
 * leaves completion to us. If the provider offers no look-up, asks it to cancel an attempt that has gone too long
 * without a notification.
 *
 * @param prompt.isLast true once the payer's time is over, so the provider closes the payment.
 */
export async function askAbout(
  deps: Pick<CheckDeps, 'publicUrl' | 'schedule'>,
  connection: LeasedConnection,
  found: Found,
  prompt: Prompt & { readonly isLast: boolean },
): Promise<Outcome> {
  const { transaction } = found;
  const query = lookUpOf(deps, connection, found, prompt);
  if (!isOpen(transaction)) return askOnly(connection, query);
  if (!connection.lookUp && isOpenAttempt(transaction)) return cancelTechnically(connection, query);
  return askAndComplete(connection, query);
}

/**
 * Asks the provider to close an attempt whose payer has yet to act, as its merchant wishes.
 *
 * @returns the attempt's outcome. What the payer has approved and only our completion could take, has ended.
 */
export async function closeAttempt(
  deps: Pick<CheckDeps, 'publicUrl' | 'schedule'>,
  connection: LeasedConnection,
  attempt: Found,
): Promise<Outcome> {
  const query = lookUpOf(deps, connection, attempt, { hint: undefined, close: true, isLast: false });
  const outcome = await askOnly(connection, query);
  return outcome.kind === 'to_complete' ? { ...outcome, kind: 'expired' } : outcome;
}

/** Builds the look-up of a transaction from stored data alone. */
export function lookUpOf(
  deps: Pick<CheckDeps, 'publicUrl' | 'schedule'>,
  connection: ProviderConnection,
  found: Found,
  { hint, close, isLast }: Prompt & { readonly isLast: boolean },
): LookUp {
  const { transaction } = found;
  const { ageMs } = transaction;
  // If a transaction does not wait for its payer, only its age decides when it is closed.
  const goesByAge = isOperation(transaction.type) || isOpenAttempt(transaction);
  return {
    transactionId: transaction.id,
    money: { minorUnits: transaction.minorUnits, currency: transaction.currency },
    reference: transaction.reference,
    ageMs,
    payerTimeLeftMs: timeLeftMs(found, found.terms),
    close: goesByAge ? mayBeClosed(ageMs, connection, deps.schedule) : isLast || close,
    of: lookedUpTransaction(found.record, transaction, found.transactions, deps.publicUrl(), found.terms),
    isRefunded: found.transactions.some(({ type }) => type === 'REFUND'),
    ...(hint && { hint }),
  };
}

/** Facts that the look-up of an attempt needs besides its record. */
type AskedAttempt = {
  readonly capture: boolean;
  readonly isVerification: boolean;
};

/** Returns true if the provider answered. An alarm counts as an answer. */
export function isAnswered(reported: Outcome): boolean {
  return reported.kind !== 'unknown' || isAlarm(reported);
}

/** Queries the provider but completes nothing, since the payment has already ended in our records. */
async function askOnly({ lookUp }: LeasedConnection, query: LookUp): Promise<Outcome> {
  return lookUp ? lookUp(query) : NO_LOOK_UP;
}

/** Queries the provider, and completes the payment if its payer has approved it and completion is up to us. */
async function askAndComplete(connection: LeasedConnection, query: LookUp): Promise<Outcome> {
  const { lookUp, complete, repeatOperation } = connection;
  if (!lookUp) {
    if (repeatOperation && OPERATIONS.has(query.of.kind)) return repeatOperation(query);
    // Without a look-up, only the payer's return proves approval.
    if (query.hint?.returnQuery === undefined || !complete) return NO_LOOK_UP;
    const completed = await complete(query);
    if (completed.kind === 'not_sent') return NO_LOOK_UP;
    if (completed.kind !== 'unknown' || completed.alarm) return completed;
    // The payer may never return, so retry once: the same key returns the first answer. A refusal proves nothing.
    const again = await complete(query);
    return again.kind === 'not_sent' ? completed : again;
  }
  const outcome = await lookUp(query);
  if (outcome.kind !== 'to_complete' || !complete) return outcome;
  const completed = await complete(query);
  // The payer's approval is still valid, so a call that did not reach the provider will be repeated.
  return completed.kind === 'not_sent' ? outcome : completed;
}

/**
 * Asks a provider without a look-up to cancel an attempt whose response was lost, if no notification has reported its
 * outcome for too long. A payment that the provider named in its response, as pending, is left to the provider.
 */
async function cancelTechnically({ technicalCancel }: LeasedConnection, query: LookUp): Promise<Outcome> {
  const isAnswered = query.reference !== undefined;
  if (!technicalCancel || isAnswered || query.ageMs < technicalCancel.afterMs) return NO_LOOK_UP;
  const isTaken = await technicalCancel.send(query);
  return unknownOutcome(
    isTaken ? 'the provider accepted the cancel request' : 'the provider did not accept the cancel request',
  );
}

/**
 * Describes an attempt for a look-up, from stored data alone.
 *
 * @param record the record whose `transactions` field is the attempt.
 */
function lookedUpAttempt(
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

/** The connectors' names for operations. */
export const OPERATION_KINDS = { CAPTURE: 'capture', CANCEL: 'cancel', REFUND: 'refund' } as const;
const OPERATIONS: ReadonlySet<string> = new Set(Object.values(OPERATION_KINDS));

/** Describes a transaction for a look-up: an attempt, or an operation with the transactions it acts on. */
function lookedUpTransaction(
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
    throw new Error(`payment ${record.id} lacks the parent of transaction ${transaction.id}`);
  const { merchantReference, description, reason } = reported;
  return {
    kind: OPERATION_KINDS[transaction.type],
    merchantReference,
    description,
    reason,
    payment: targetOf(own),
    target: targetOf(acted),
    claimed: transactions.flatMap(({ id, providerPaymentId }) =>
      id !== transaction.id && providerPaymentId !== undefined ? [providerPaymentId] : [],
    ),
  };
}
