import type { Operation, ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { fieldRefusal, ServiceError } from '#src/service-error.ts';
import { isUnavailable } from '#src/store/database-error.ts';
import type { StoredTransaction } from '#src/store/operated-payments.ts';
import { findOperation, findOperationByKey } from '#src/store/operation-keys.ts';
import type { OperationClaim } from '#src/store/operations.ts';
import type { KeyHolder } from '#src/store/payments.ts';
import { orUnavailable } from '#src/store/unavailable.ts';
import { OPERATION_KINDS } from './ask-provider.ts';
import { accountOf, type Caller } from './caller.ts';
import {
  type AskedOperation,
  type ClaimedOperation,
  claimOperationOn,
  inProgress,
  type OperationDeps,
  StandingCancel,
} from './claim-operation.ts';
import { targetOf, writeOutcome } from './finish-operation.ts';
import { finishWaitMs, within } from './finish-payment.ts';
import { awaitResponse, requireIdempotencyKey, requireSameRequest } from './idempotency.ts';
import { lookUpPauseS } from './look-up-schedule.ts';
import type { PlannedOperation } from './payment-books.ts';
import { type KeyedResponse, type PaymentResponse, readResponse } from './stored-response.ts';

/**
 * Captures, cancels or refunds, or returns the stored response to an earlier call with the same key. The main path of
 * every operation on an existing payment: claim, one provider call, finish, with no database transaction open
 * meanwhile.
 *
 * @throws ServiceError if the operation is refused; REQUEST_IN_PROGRESS if it may have been claimed and its response
 *   is still to come.
 */
export async function operatePayment(
  deps: OperationDeps,
  asked: AskedOperation,
  caller: Caller,
): Promise<KeyedResponse> {
  // 1. The key, and its response if it was used before.
  const accountId = accountOf(caller);
  const key = operationKey(asked, caller.idempotencyKey);
  const read = async () =>
    key === undefined ? undefined : findOperationByKey(deps.database, accountId, asked.method, key);
  const repeat = (holder: KeyHolder) => {
    const isHeaderSent = caller.idempotencyKey !== undefined;
    requireSameRequest(holder, asked.hash, isHeaderSent ? 'x-idempotency-key' : 'merchant_reference');
    return replayed(deps, storedResponse(deps, holder, read));
  };
  const holder = await orUnavailable(read());
  if (holder) return repeat(holder);

  // 2. and 3. The payment as it stands, the plan of the operation, and commit 1.
  let claimed: ClaimedOperation;
  try {
    claimed = await claimOperationOn(deps, asked, accountId, key);
  } catch (refusal) {
    if (refusal instanceof StandingCancel)
      return replayed(deps, responseOf(deps, accountId, refusal.transactionId));
    // The claim may have been committed: a database that cannot be read now must not turn that into "not accepted".
    if (!(refusal instanceof ServiceError) || refusal.reason === 'REQUEST_IN_PROGRESS') throw refusal;
    // Another call with the same key may have claimed the operation meanwhile, and so have caused the refusal.
    const holder = await orUnavailable(read());
    if (!holder) throw refusal;
    return repeat(holder);
  }

  // 4. The provider is called, once.
  const { stored, planned, target, written: row } = claimed;
  const operation = operationOf(asked, row, planned, stored.base, target);
  const outcome = await deps.observer.providerCall(row.connectionId, () =>
    send(stored.connection, planned, operation),
  );

  // 5. Commit 2: the outcome, as far as it is known, and the response.
  const leased = { ...row, fence: 0, followUpInS: lookUpPauseS(deps.schedule, 0) };
  const written = await within(writeOutcome(deps, leased, outcome), finishWaitMs(deps.schedule));
  // Recovery wrote first, or the database is unavailable: the stored response wins.
  const response = written ?? (await responseOf(deps, accountId, row.transactionId));
  deps.observer.operated(response);
  return { ...response, replayed: false };
}

/** Returns the header's key; without one, the merchant's reference within the payment, in a key space of its own. */
function operationKey(asked: AskedOperation, header: string | undefined): string | undefined {
  if (header !== undefined) return requireIdempotencyKey(header);
  if (asked.merchantReference)
    return `\u0001${asked.paymentId.toLowerCase()}\u0001${asked.merchantReference}`;
  if (!asked.needsKey) return undefined;
  const message = 'is required, or a merchant_reference in its place';
  throw fieldRefusal('IDEMPOTENCY_KEY_MISSING', 'x-idempotency-key', 'REQUIRED', message);
}

function operationOf(
  asked: AskedOperation,
  claim: OperationClaim,
  planned: PlannedOperation,
  base: StoredTransaction,
  target: StoredTransaction,
): Operation & { readonly isFinal: boolean } {
  return {
    transactionId: claim.transactionId,
    money: planned.money,
    isWhole: planned.isWhole,
    isFinal: planned.isFinal,
    merchantReference: asked.merchantReference || `reference-${claim.transactionId}`,
    description: asked.description,
    reason: asked.reason || undefined,
    payment: targetOf(base),
    target: targetOf(target),
  };
}

function send(
  connection: ProviderConnection,
  { type }: PlannedOperation,
  operation: Operation & { readonly isFinal: boolean },
): Promise<Outcome> {
  const unsupported: Outcome = {
    kind: 'not_sent',
    because: 'turned_away',
    detail: `the connector has no ${type}`,
  };
  return connection[OPERATION_KINDS[type]]?.(operation) ?? Promise.resolve(unsupported);
}

async function replayed(deps: OperationDeps, stored: Promise<PaymentResponse>): Promise<KeyedResponse> {
  const response = await stored;
  deps.observer.replayed();
  return { ...response, replayed: true };
}

/** Awaits the stored response of an operation. */
function responseOf(deps: OperationDeps, accountId: string, transactionId: string): Promise<PaymentResponse> {
  return storedResponse(deps, undefined, () => findOperation(deps.database, accountId, transactionId));
}

async function storedResponse(
  deps: OperationDeps,
  first: KeyHolder | undefined,
  read: () => Promise<KeyHolder | undefined>,
): Promise<PaymentResponse> {
  try {
    return await readResponse(deps.responses, await awaitResponse(first, read, deps.patience));
  } catch (error) {
    throw isUnavailable(error) ? inProgress(deps.patience, error) : error;
  }
}
