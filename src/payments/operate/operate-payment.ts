import type { Outcome } from '#src/connectors/port/outcome.ts';
import { fieldRefusal, ServiceError } from '#src/service-error.ts';
import { findOperation, findOperationByKey, type OperationHolder } from '#src/store/tables/operation-keys.ts';
import { readPaymentState } from '#src/store/tables/payment-state.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { accountOf, type Caller } from '../caller.ts';
import { closeAttempt, OPERATION_KINDS } from '../check/look-up-transaction.ts';
import { afterClaim, awaitResponse } from '../keys/await-response.ts';
import { isReferenceKey, KEY_HEADER, referenceKey, requireIdempotencyKey } from '../keys/key.ts';
import { type Key, replayIfHeld, underKey } from '../keys/replay.ts';
import { type KeyedResponse, type PaymentResponse, readResponse } from '../keys/stored-response.ts';
import { isOpen, targetOf } from '../model/state.ts';
import { decodeRecord } from '../stored-record.ts';
import { within, writeWaitMs } from '../until-written.ts';
import { pauseS, type Reported, writeClosing, writeReport } from '../write-change.ts';
import {
  type ClaimedOperation,
  type CurrentCancel,
  claimOperationOn,
  type KeyedOperation,
  namedBy,
  type OperationDeps,
  type RequestedOperation,
} from './claim-operation.ts';

/**
 * Captures, cancels or refunds, or returns the stored response to an earlier call with the same key. Every operation on
 * an existing payment takes this path: claim, one provider call, write. No database transaction is open during the
 * call.
 *
 * @throws ServiceError if the operation is refused; REQUEST_IN_PROGRESS if it may have been claimed and has no response
 * yet.
 */
export async function operatePayment(
  deps: OperationDeps,
  requested: RequestedOperation,
  caller: Caller,
): Promise<KeyedResponse> {
  // 1. Read the key, and return its response if it was used before.
  const accountId = accountOf(caller);
  const idempotencyKey = operationKey(requested, caller.idempotencyKey);
  const keyed: KeyedOperation = { ...requested, accountId, idempotencyKey };
  const key = readKey(deps, keyed, caller.idempotencyKey);
  const replayed = await replayIfHeld(key);
  if (replayed) return replayed;

  return underKey(
    key,
    // 2. and 3. Read the current payment, plan the operation, and make commit 1.
    async () => ({ claimed: await claimOperationOn(deps, keyed) }),
    (claimed) => afterClaim(deps.patience, 'operation', operateClaimed(deps, keyed, claimed)),
  );
}

/** Makes a claimed operation. */
async function operateClaimed(
  deps: OperationDeps,
  requested: KeyedOperation,
  claimed: ClaimedOperation | CurrentCancel,
): Promise<KeyedResponse> {
  const { accountId } = requested;
  if ('currentCancel' in claimed) {
    const response = await responseOf(deps, accountId, claimed.currentCancel);
    deps.observer.replayed();
    return { ...response, replayed: true };
  }
  // 4. Call the provider, once.
  const { written: row } = claimed;
  const isClosing = isOpen(claimed.stored.base);
  const outcome = await deps.observer.providerCall(row.connectionId, row.transactionId, () =>
    isClosing ? close(deps, claimed) : send(requested, claimed),
  );

  // 5. Commit 2: store the outcome so far, and the response.
  const { transactionId } = row;
  const report = { kind: 'outcome', transactionId, outcome, pauseS: pauseS(deps.schedule, 0) } as const;
  const write = isClosing ? writeClosing : writeReport;
  const written = await within(write(deps, { ...row, fence: 0 }, report), writeWaitMs(deps.schedule));
  // If another worker wrote first or the database is unavailable, the stored response wins.
  const response = (await ownResponse(deps, written)) ?? (await responseOf(deps, accountId, transactionId));
  deps.observer.operated(response);
  return { ...response, replayed: false };
}

/** Returns an operation's key. Nothing holds the key of an operation without one. @param header the key of the call. */
function readKey(
  deps: OperationDeps,
  requested: KeyedOperation,
  header: string | undefined,
): Key<OperationHolder, PaymentResponse> {
  const { accountId, idempotencyKey, method, paymentId, merchantReference } = requested;
  const named = idempotencyKey !== undefined && {
    idempotencyKey,
    paymentId: isUuid(paymentId) ? paymentId : undefined,
    merchantReference: merchantReference || undefined,
  };
  const find = async () => (named ? findOperationByKey(deps.database, accountId, method, named) : undefined);
  return {
    find,
    field: (holder) => keyHeldBy(holder, header),
    hash: async (holder) =>
      requested.hash(await afterClaim(deps.patience, 'operation', actedOn(deps, requested, holder))),
    async read(holder) {
      const response = await awaitResponse(deps, 'operation', find, holder);
      deps.observer.replayed();
      return response;
    },
  };
}

/**
 * Returns the key in the header or, without one, the merchant's reference within the payment, in a separate key space.
 */
function operationKey(requested: RequestedOperation, header: string | undefined): string | undefined {
  if (header !== undefined) return requireIdempotencyKey(header);
  if (requested.merchantReference) return referenceKey(requested.paymentId, requested.merchantReference);
  if (!requested.needsKey) return undefined;
  const message = 'is required unless merchant_reference is sent';
  throw fieldRefusal('IDEMPOTENCY_KEY_MISSING', KEY_HEADER, 'REQUIRED', message);
}

/**
 * Returns the name of the field that holds the operation's key: the header, or else the merchant's reference.
 *
 * @param header the key of the call.
 * @throws ServiceError IDEMPOTENCY_KEY_REUSED if both calls have keys and the keys differ: the keys denote two
 * operations, but the reference denotes one.
 */
function keyHeldBy({ idempotencyKey }: OperationHolder, header: string | undefined): string {
  if (header !== undefined && idempotencyKey === header) return KEY_HEADER;
  if (header === undefined || isReferenceKey(idempotencyKey)) return 'merchant_reference';
  const message = 'was already used with another x-idempotency-key';
  throw fieldRefusal('IDEMPOTENCY_KEY_REUSED', 'merchant_reference', 'NOT_ALLOWED', message);
}

/**
 * Returns the id of the transaction that a repeat acts on. If the call does not choose one, it is the transaction of the
 * first call.
 */
async function actedOn(
  { database }: OperationDeps,
  { accountId, paymentId, transactionId, named }: KeyedOperation,
  { baseId, parentId }: OperationHolder,
): Promise<string> {
  const sent = transactionId.toLowerCase();
  if (sent === '' || sent === baseId) return parentId;
  if (sent === parentId || !isUuid(paymentId)) return sent;
  const { transactions = [] } = (await readPaymentState(database, accountId, paymentId)) ?? {};
  const base = transactions.find(({ id }) => id === baseId);
  try {
    const id = base ? named({ base, transactions }).id : sent;
    return id === baseId ? parentId : id;
  } catch (refusal) {
    if (!(refusal instanceof ServiceError)) throw refusal;
    // The call names no transaction of the payment, so it differs from the first call.
    return sent;
  }
}

/** Closes the attempt at its provider. Its outcome is also the cancel's. */
function close(deps: OperationDeps, { stored, connection }: ClaimedOperation): Promise<Outcome> {
  const { payment, transactions, base: transaction, can: terms } = stored;
  const record = decodeRecord(payment.record);
  return closeAttempt(deps, connection, { payment, record, transactions, transaction, terms });
}

function send(
  requested: RequestedOperation,
  { stored, planned, target, written, connection }: ClaimedOperation,
): Promise<Outcome> {
  const { type, money, isWhole, isFinal } = planned;
  const operation = {
    ...namedBy(requested, written.transactionId),
    ...{ money, isWhole, isFinal },
    payment: targetOf(stored.base),
    target: targetOf(target),
  };
  const unsupported: Outcome = {
    kind: 'not_sent',
    because: 'turned_away',
    detail: `the connector does not support ${type}`,
  };
  return connection[OPERATION_KINDS[type]]?.(operation) ?? Promise.resolve(unsupported);
}

/** Returns the response that a write stored or found; undefined if the write changed nothing. */
async function ownResponse(
  { responses }: OperationDeps,
  written: Reported | undefined,
): Promise<PaymentResponse | undefined> {
  if (written === undefined || typeof written === 'string') return undefined;
  return written.earlier
    ? readResponse(responses, written.earlier)
    : { record: written.record, body: undefined };
}

/** Waits for the stored response of an operation. */
function responseOf(deps: OperationDeps, accountId: string, transactionId: string): Promise<PaymentResponse> {
  return awaitResponse(deps, 'operation', () => findOperation(deps.database, accountId, transactionId));
}
