import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { type LeasedConnection, withinLease } from '#src/connectors/guards/within-lease.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { newId } from '#src/new-id.ts';
import { capabilitiesFor } from '#src/payments/method/local-method.ts';
import type { LiveCatalogue } from '#src/payments/route/live-catalogue.ts';
import { ServiceError, unknownId } from '#src/service-error.ts';
import { claimOperation, type OperationClaim } from '#src/store/engine/claim-operation.ts';
import { isKeyTaken, isSurelyNotCommitted, isUnavailable } from '#src/store/engine/database-error.ts';
import { readPaymentState, type StoredPayment } from '#src/store/tables/payment-state.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { inProgress, type ReplayDeps } from '../keys/await-response.ts';
import type { RequestHash } from '../keys/request-hash.ts';
import type { PaymentResponse } from '../keys/stored-response.ts';
import type { PlannedOperation } from '../model/books.ts';
import { transactionOf, withOperation } from '../model/operation-record.ts';
import type { Named, PlannedPayment } from '../model/plan.ts';
import { callsBeginWithinMs, leaseS } from '../model/schedule.ts';
import {
  BASE_TYPES,
  booksOf,
  isClosing,
  isCode,
  isOpen,
  payerMustAct,
  succeededBase,
  type TransactionRow,
} from '../model/state.ts';
import { decodeRecord, encodeRecord } from '../stored-record.ts';
import type { CallObserver, WriteDeps } from '../write-change.ts';

/** Dependencies of an operation on a payment. */
export type OperationDeps = WriteDeps &
  ReplayDeps & {
    /** Returns the service's URL for providers and payers, without a trailing slash. */
    readonly publicUrl: () => string;
    readonly requestHashKey: Uint8Array;
    /** Returns the catalogue in force. */
    readonly catalogue: () => Pick<LiveCatalogue, 'version'>;
    /** Connections that can reach a payment's provider, including those removed from the catalogue. */
    readonly connections: () => ReadonlyMap<string, ProviderConnection>;
    readonly observer: CallObserver & {
      operated(response: PaymentResponse): void;
    };
  };

/** A payment to operate on, with its connection. */
export type OperatedPayment = PlannedPayment & { readonly connection: ProviderConnection };

/** Fields common to all operation requests. */
export type OperationFields = {
  readonly paymentId: string;
  readonly transactionId: string;
  readonly merchantReference: string;
  readonly description: string;
  readonly reason: string;
};

/** An operation requested by a merchant. */
export type RequestedOperation = OperationFields & {
  /** Name of the rpc, within which idempotency keys are unique. */
  readonly method: string;
  /**
   * Hashes the request in its canonical form.
   *
   * @param parentId the transaction that the operation acts on, whether the path names it or the service chose it.
   */
  readonly hash: (parentId: string) => RequestHash;
  /** false for a cancel: without a key, a cancel gets the response of the open or completed cancel. */
  readonly needsKey: boolean;
  /** true for a call that may close a payment whose payer has yet to act. */
  readonly mayClose: boolean;
  /**
   * Returns the transaction that the call names; the payment's own if it names none.
   *
   * @throws ServiceError TRANSACTION_NOT_FOUND if the operation cannot act on it.
   */
  readonly named: (payment: Named) => TransactionRow;
  /** Chooses the transaction that the operation acts on. */
  readonly target: (payment: OperatedPayment, named: TransactionRow) => TransactionRow;
  /** @throws ServiceError if the payment does not allow the operation. */
  readonly plan: (payment: OperatedPayment, target: TransactionRow) => PlannedOperation;
};

/** A requested operation of an account, with its stored idempotency key, if any. */
export type KeyedOperation = RequestedOperation & {
  readonly accountId: string;
  readonly idempotencyKey: string | undefined;
};

const PLANS = 3;

/** A claimed operation. */
export type ClaimedOperation = {
  readonly stored: StoredOperated;
  readonly planned: PlannedOperation;
  readonly target: TransactionRow;
  readonly written: OperationClaim;
  /** The payment's connection, for the time of the claim's lease. */
  readonly connection: LeasedConnection;
};

/**
 * The open or completed cancel of a payment, by its transaction's id: a further cancel without a key gets its response.
 */
export type CurrentCancel = { readonly currentCancel: string };

/**
 * Plans the operation on the current payment and claims it, so that it is stored before anything is sent. Plans again
 * if the payment changes in the meantime. Claims nothing if the payment has a current cancel, which it returns.
 *
 * @throws ServiceError if the payment does not allow the operation, or another operation on it is open.
 */
export async function claimOperationOn(
  deps: OperationDeps,
  requested: KeyedOperation,
): Promise<ClaimedOperation | CurrentCancel> {
  for (let plans = 1; plans <= PLANS; plans++) {
    const stored = await readOperated(deps, requested);
    const current = requested.idempotencyKey === undefined ? currentCancel(stored.transactions) : undefined;
    if (!current && stored.payment.openOperation) break;
    const target = requested.target(stored, requested.named(stored));
    if (current) return { currentCancel: current.id };
    if (stored.base.status !== 'SUCCEEDED' && !isOpen(stored.base)) throw nothingToActOn(stored.transactions);
    if (stored.transactions.length >= MAX_TRANSACTIONS) throw tooManyTransactions();
    const planned = requested.plan(stored, target);
    const row = claimOf(deps, requested, stored, { planned, target });
    const connection = withinLease(stored.connection, performance.now() + callsBeginWithinMs(deps.schedule));
    if (await claimOnce(deps, row)) return { stored, planned, target, written: row, connection };
  }
  const message =
    'another operation on this payment is in progress; nothing was sent; retry when it has finished';
  throw new ServiceError('OPERATION_IN_PROGRESS', message, { retryAfterS: deps.patience.retryAfterS });
}

/**
 * Maximum number of transactions of a payment. Each of them stores the payment's record, which contains them all, so
 * without a limit a client that repeats a declined refund under new keys would fill the database.
 */
const MAX_TRANSACTIONS = 200;

function tooManyTransactions(): ServiceError {
  const message = `the payment has ${MAX_TRANSACTIONS} transactions, the maximum; nothing was sent; continue at the provider itself`;
  return new ServiceError('OPERATION_LIMIT_REACHED', message);
}

/**
 * Finds the cancel that a repeat without a key refers to, whether open or completed. A cancel that closed a payment is
 * over once the payment was paid after all.
 */
function currentCancel(transactions: readonly TransactionRow[]): TransactionRow | undefined {
  const isPaid = succeededBase(transactions) !== undefined;
  return transactions.findLast(
    (one) =>
      one.type === 'CANCEL' &&
      (one.status === 'PENDING' || (one.status === 'SUCCEEDED' && !(isClosing(one) && isPaid))),
  );
}

/** A payment as read for an operation. */
export type StoredOperated = OperatedPayment & { readonly payment: StoredPayment };

async function readOperated(
  deps: OperationDeps,
  { accountId, paymentId, mayClose }: KeyedOperation,
): Promise<StoredOperated> {
  const state = isUuid(paymentId) ? await readPaymentState(deps.database, accountId, paymentId) : undefined;
  if (!state) throw unknownId('PAYMENT_NOT_FOUND', 'payment_id');
  const { payment, transactions } = state;
  const succeeded = succeededBase(transactions);
  const base = succeeded ?? (mayClose ? closableAttempt(payment, transactions) : undefined);
  if (!base || succeeded?.type === 'VERIFY') throw nothingToActOn(transactions);
  if (transactions.some(({ type, status }) => type === 'CHARGEBACK' && status !== 'DECLINED')) {
    throw new ServiceError(
      'INVALID_STATUS',
      'the payment is in dispute or was charged back; nothing was sent',
    );
  }
  const connection = deps.connections().get(base.connectionId);
  if (connection?.identity !== base.connectionIdentity) {
    const message =
      "the payment's connection is not in this replica's catalogue; nothing was sent; retry later";
    throw new ServiceError('SERVICE_UNAVAILABLE', message, { retryAfterS: deps.patience.retryAfterS });
  }
  const record = decodeRecord(payment.record);
  if (isOpen(base) && transactionOf(record, base.id).providerData?.amountReceived) throw partlyPaid();
  const type = record.paymentMethod?.type ?? '';
  const can = capabilitiesFor(connection.capabilities, { type, isLocal: isCode(base) });
  return { payment, transactions, base, books: booksOf(payment, base), can, connection };
}

function partlyPaid(): ServiceError {
  const message =
    'the payer has paid a part, which a cancel would not give back; nothing was sent; wait for the rest or for the expiry';
  return new ServiceError('INVALID_STATUS', message);
}

/** Finds the attempt that a cancel may close, because its payer has yet to act, or that a cancel closes or has closed. */
function closableAttempt(
  { record }: StoredPayment,
  transactions: readonly TransactionRow[],
): TransactionRow | undefined {
  const last = transactions.findLast(({ type }) => BASE_TYPES.has(type));
  if (!last) return undefined;
  const isAwaiting = isOpen(last) && last.awaitsPayer && payerMustAct(decodeRecord(record));
  const isClosed = transactions.some(
    (one) => isClosing(one) && one.parentId === last.id && one.status !== 'DECLINED',
  );
  return isAwaiting || isClosed ? last : undefined;
}

/** Returns the fields that identify and describe an operation in its record and to its provider. */
export function namedBy({ merchantReference, description, reason }: OperationFields, transactionId: string) {
  return {
    transactionId,
    merchantReference: merchantReference || `reference-${transactionId}`,
    description,
    reason: reason || undefined,
  };
}

/** Never say that an open payment took no money: the merchant would charge again. */
function nothingToActOn(transactions: readonly TransactionRow[]): ServiceError {
  const isOpen = transactions.some(({ status }) => status === 'PENDING' || status === 'CREATED');
  const message = isOpen
    ? 'the payment has no outcome yet and may still take money; nothing was sent; retry when it has one'
    : 'the payment has taken no money and holds none; nothing was sent';
  return new ServiceError('INVALID_STATUS', message);
}

function claimOf(
  deps: OperationDeps,
  requested: KeyedOperation,
  stored: StoredOperated,
  { planned, target }: Pick<ClaimedOperation, 'planned' | 'target'>,
): OperationClaim {
  const { accountId, method, idempotencyKey } = requested;
  const transactionId = newId(accountId);
  const record = decodeRecord(stored.payment.record);
  const base = transactionOf(record, stored.base.id);
  const facts = { ...namedBy(requested, transactionId), parentId: target.id };
  const { hash, shape } = requested.hash(target.id);
  const draft = withOperation({ record, books: stored.books, base }, planned, facts, deps.now());
  return {
    accountId,
    paymentId: record.id,
    version: stored.payment.version,
    status: Payment_Status[draft.status],
    record: encodeRecord(draft),
    transactionId,
    type: planned.type,
    baseId: stored.base.id,
    parentId: target.id,
    connectionId: stored.base.connectionId,
    connectionIdentity: stored.connection.identity,
    minorUnits: planned.money.minorUnits,
    currency: planned.money.currency,
    isFinal: planned.isFinal,
    leaseS: leaseS(stored.connection, deps.schedule),
    method,
    idempotencyKey,
    requestHash: hash,
    requestShape: shape,
    merchantReference: requested.merchantReference || undefined,
    catalogueVersion: deps.catalogue().version,
  };
}

/**
 * Attempts the claim once. If the acknowledgement is lost, the claim may have been committed: the caller then gets
 * REQUEST_IN_PROGRESS, and the checker learns that the operation was never sent.
 */
async function claimOnce(deps: OperationDeps, row: OperationClaim): Promise<boolean> {
  try {
    return await claimOperation(deps.database, row);
  } catch (error) {
    if (isKeyTaken(error)) return false;
    if (isSurelyNotCommitted(error) || !isUnavailable(error)) throw error;
    throw inProgress(deps.patience, 'operation', error);
  }
}
