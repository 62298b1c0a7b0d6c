import { createHash } from 'node:crypto';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { LeasedConnection } from '#src/connectors/guards/within-lease.ts';
import { unknownOutcome } from '#src/connectors/kit/provider-answer.ts';
import type { AttemptFacts } from '#src/connectors/port/attempt.ts';
import type { Hint, LookedUp, LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { attemptFacts } from '../create/payment-attempt.ts';
import { type CheckSchedule, mayBeClosed } from '../model/schedule.ts';
import {
  isCode,
  isLapsing,
  isOpen,
  isOpenAttempt,
  isOperation,
  openClosing,
  succeededBase,
  targetOf,
} from '../model/state.ts';
import { NO_LOOK_UP, timeLeftMs } from '../model/waiting.ts';
import { type Found, isLastCheck, lookedUp, type Release } from './decide.ts';

/** News, if any, that prompts a look-up. */
export type Prompt = {
  readonly hint: Hint | undefined;
  /**
   * Asks the provider to close the transaction early. Unlike at expiry, the transaction then ends only if the provider
   * reports its end.
   */
  readonly close: boolean;
};

/** Dependencies of look-ups. */
export type LookUpDeps = { readonly publicUrl: () => string; readonly schedule: CheckSchedule };

/** Maximum number of successive calls of a look-up: the look-up, and a completion; or a completion and its repeat. */
export const LOOK_UP_CALLS = 2;
/** Maximum number of successive calls of a release: the release, its look-up, and the authorization's. */
const RELEASE_CALLS = 3;
/** Maximum number of successive calls after which a decision is due: an authorization is looked up, then released. */
export const MOST_CALLS = 1 + RELEASE_CALLS;

/**
 * Looks up a transaction at its provider, or the attempt that it closes. Also completes an open payment that its payer
 * has approved, if the provider leaves completion to us. If the provider offers no look-up, asks it to cancel an attempt
 * that has gone too long without a notification.
 *
 * @returns undefined for an authorization at a provider without look-up.
 */
export async function lookUpTransaction(
  deps: LookUpDeps,
  connection: LeasedConnection,
  found: Found,
  prompt: Prompt,
): Promise<Outcome | undefined> {
  const transaction = lookedUp(found);
  if (openClosing(found)) return closeAttempt(deps, connection, { ...found, transaction });
  if (isLapsing(transaction)) return connection.lookUp?.(lookUpOf(deps, connection, found, prompt));
  const query = lookUpOf(deps, connection, found, prompt);
  if (!isOpen(transaction)) return onlyLookUp(connection, query);
  if (isCode(transaction) && isOpenAttempt(transaction)) return lookUpLostCode(connection, query);
  if (!connection.lookUp && isOpenAttempt(transaction)) return cancelTechnically(connection, query);
  return lookUpAndComplete(connection, query);
}

/**
 * Asks the provider to close an attempt whose payer has yet to act, as its merchant wishes.
 *
 * @returns the attempt's outcome. What the payer has approved and only our completion could take, has ended.
 */
export async function closeAttempt(
  deps: LookUpDeps,
  connection: LeasedConnection,
  attempt: Found,
): Promise<Outcome> {
  const query = lookUpOf(deps, connection, attempt, { hint: undefined, close: true });
  const outcome = await onlyLookUp(connection, query);
  return outcome.kind === 'to_complete' ? { ...outcome, kind: 'expired' } : outcome;
}

const DESCRIPTION = 'The term of the authorization is over';

/**
 * Asks the provider to release the rest of an authorization whose term is over. Every call uses the same key, so it can
 * be repeated safely until the provider answers.
 *
 * @returns 'released' once nothing is held; 'unknown' also if the lease has no time for all calls.
 */
export async function releaseAuthorization(
  deps: LookUpDeps,
  connection: LeasedConnection,
  found: Found,
): Promise<Release> {
  const { cancel, lookUp, callsLeft } = connection;
  const { payment, transaction } = found;
  if (!cancel || !lookUp) return 'refused';
  if (callsLeft() < RELEASE_CALLS) return 'unknown';
  const transactionId = releaseId(transaction.id);
  const { currency } = transaction;
  const money = { minorUnits: transaction.minorUnits - payment.capturedMinorUnits, currency };
  const authorization = targetOf(transaction);
  const facts = {
    merchantReference: `reference-${transactionId}`,
    description: DESCRIPTION,
    reason: undefined,
    payment: authorization,
    target: authorization,
  };
  const released = await cancel({ ...facts, transactionId, money, isWhole: true });
  if (released.kind === 'approved') return 'released';
  // The release may have succeeded even if its answer was lost or a repeat was refused, so the current report decides.
  const of = { ...facts, kind: 'cancel', claimed: [] } as const;
  const known = { reference: undefined, ageMs: 0, payerTimeLeftMs: Number.POSITIVE_INFINITY, close: false };
  const reported = await lookUp({ ...known, transactionId, money, of });
  if (reported.kind === 'approved') return 'released';
  const remaining = await lookUp(lookUpOf(deps, connection, found, { hint: undefined, close: false }));
  if (remaining.kind === 'expired') return 'released';
  if (released.kind !== 'declined') return 'unknown';
  // For a partly captured authorization, declined means that nothing was left to release.
  return payment.capturedMinorUnits > 0n ? 'released' : 'refused';
}

/** Returns the key of an authorization's release: a version 8 UUID derived from the authorization's id. */
function releaseId(transactionId: string): string {
  const digest = createHash('sha256').update(`release ${transactionId}`).digest();
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x80, 6);
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8);
  return digest.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Builds the look-up of a transaction from stored data alone. */
function lookUpOf(
  deps: LookUpDeps,
  connection: ProviderConnection,
  found: Found,
  { hint, close }: Prompt,
): LookUp {
  const { transaction } = found;
  const { ageMs } = transaction;
  // If a transaction does not wait for its payer, only its age decides when it is closed.
  const goesByAge = isOperation(transaction.type) || isOpenAttempt(transaction);
  // Nothing closes an authorization but its release.
  const isClosed =
    !isLapsing(transaction) && (close || isLastCheck(found, { hasLookUp: connection.lookUp !== undefined }));
  return {
    transactionId: transaction.id,
    money: { minorUnits: transaction.minorUnits, currency: transaction.currency },
    reference: transaction.reference,
    ageMs,
    payerTimeLeftMs: timeLeftMs(found),
    close: goesByAge ? mayBeClosed(ageMs, connection, deps.schedule) : isClosed,
    of: lookedUpTransaction(found, deps.publicUrl()),
    isRefunded: found.transactions.some(({ type }) => type === 'REFUND'),
    ...(hint && { hint }),
  };
}

/** Looks up a transaction but completes nothing, since the payment has already ended in our records. */
async function onlyLookUp({ lookUp }: LeasedConnection, query: LookUp): Promise<Outcome> {
  return lookUp ? lookUp(query) : NO_LOOK_UP;
}

/**
 * Looks up a local method's code whose creation has no known outcome. Nobody has seen the code, but it is shown once it is
 * found, so only a request that the provider does not know is closed.
 */
async function lookUpLostCode(connection: LeasedConnection, query: LookUp): Promise<Outcome> {
  if (!connection.lookUp) return cancelTechnically(connection, query);
  const outcome = await connection.lookUp({ ...query, close: false });
  return outcome.kind === 'unknown' && !outcome.alarm && query.close ? connection.lookUp(query) : outcome;
}

/** Looks up a transaction, and completes the payment if its payer has approved it and completion is up to us. */
async function lookUpAndComplete(connection: LeasedConnection, query: LookUp): Promise<Outcome> {
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
  { capture, type, methodKind }: Found['transaction'],
  attempt: AttemptFacts,
  { transactions }: Payment,
): LookedUp {
  if (!methodKind) throw new Error(`attempt ${attempt.transactionId} has no kind of method`);
  const { detail: { kind: detail } = {}, type: methodType = '' } = transactions?.paymentMethod ?? {};
  if (methodKind !== 'CARD') return { kind: methodKind, type: methodType, attempt };
  const isCharged = detail?.case === 'card' || detail?.case === 'wallet';
  const softDescriptor = isCharged ? detail.value.softDescriptor : '';
  return { kind: methodKind, capture, verify: type === 'VERIFY', softDescriptor, attempt };
}

/** The connectors' names for operations. */
export const OPERATION_KINDS = { CAPTURE: 'capture', CANCEL: 'cancel', REFUND: 'refund' } as const;
const OPERATIONS: ReadonlySet<string> = new Set(Object.values(OPERATION_KINDS));

/** Describes a transaction for a look-up: an attempt, or an operation with the transactions it acts on. */
function lookedUpTransaction(
  { record, transaction, transactions, terms }: Found,
  publicUrl: string,
): LookedUp {
  const reported = record.transactionsHistory.find(({ id }) => id === transaction.id) ?? record.transactions;
  if (!isOperation(transaction.type)) {
    const shown = { ...record, ...(reported && { transactions: reported }) };
    return lookedUpAttempt(transaction, attemptFacts(shown, publicUrl, terms), shown);
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
