import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { CardSchema, PaymentMethodDetailSchema } from '#gen/payments/v1/payment_method_pb.js';
import {
  type Payment,
  Payment_Status,
  PaymentSchema,
  Transaction_Category,
  Transaction_Status,
} from '#gen/payments/v1/payment_pb.js';
import { newId } from '#src/new-id.ts';
import { encodeRecord } from '#src/payments/stored-record.ts';
import type { OperationClaim } from '#src/store/engine/claim-operation.ts';
import { type Claim, claimPayment } from '#src/store/engine/claim-payment.ts';
import type { Database } from '#src/store/engine/database.ts';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import type { ChangedTransaction, StoredChange } from '#src/store/engine/write-change.ts';
import { ACCOUNT_ONE } from './payment-requests.ts';
import type { Tables } from './tables.ts';

/* Rows of payments and operations as the service claims and changes them, without the service. */

/** A claimed payment without an outcome, as left by a process that died. */
export type OpenAttempt = {
  readonly paymentId: string;
  readonly transactionId: string;
  readonly idempotencyKey: string;
  readonly record: Payment;
  /** The card that waits for the outcome, if requested. */
  readonly vaultedToken: string | undefined;
};

/**
 * Claims a card payment of 55.75 USD.
 *
 * @param options.leaseS the length of its lease; by default it is due at once.
 */
export async function claimAttempt(database: Database, options: AttemptOptions = {}): Promise<OpenAttempt> {
  const { claim, attempt } = attemptToClaim(options);
  await claimPayment(database, claim);
  return attempt;
}

type AttemptOptions = { leaseS?: number; connectionId?: string; identity?: string; vault?: boolean };

/** An attempt with its initial claim. */
export function attemptToClaim(options: AttemptOptions = {}): { claim: Claim; attempt: OpenAttempt } {
  const { leaseS = 0, connectionId = 'scripted', identity = 'scripted' } = options;
  const [paymentId, transactionId, idempotencyKey] = [newId(ACCOUNT_ONE), newId(ACCOUNT_ONE), randomUUID()];
  const vaultedToken = options.vault ? newId(ACCOUNT_ONE) : undefined;
  const record = recordToClaim(paymentId, transactionId, connectionId);
  const claim: Claim = {
    ...{ paymentId, accountId: ACCOUNT_ONE, idempotencyKey, status: 'PENDING', record: encodeRecord(record) },
    ...{ requestHash: new Uint8Array(32), requestShape: new Uint8Array(16) },
    ...{ merchantOrderId: 'order-1', merchantReference: undefined, createdAt: new Date().toISOString() },
    ...{ cardLastFour: '1111', cardFingerprint: undefined, cardBrand: 'VISA', country: 'US' },
    ...{ methodType: 'CARD', methodKind: 'CARD', category: 'CARD', payerDueInS: 86_400 },
    ...{ customerId: undefined, payerEmailHash: undefined, payerDocumentHash: undefined },
    ...{ transactionId, transactionStatus: 'PENDING', type: 'PURCHASE' },
    ...{ connectionId, connectionIdentity: identity, catalogueVersion: 0 },
    ...{ minorUnits: 5_575n, currency: 'USD', capture: false, leaseS },
    vault: vaultedToken ? { token: vaultedToken, card: new Uint8Array(), cardNumber: 'sealed' } : undefined,
  };
  return { claim, attempt: { paymentId, transactionId, idempotencyKey, record, vaultedToken } };
}

function recordToClaim(id: string, transactionId: string, connectionId: string): Payment {
  const detail = create(PaymentMethodDetailSchema, { kind: { case: 'card', value: create(CardSchema) } });
  const transactions = {
    id: transactionId,
    category: Transaction_Category.CARD,
    status: Transaction_Status.PENDING,
    amount: { value: '55.75' },
    connectionData: { id: connectionId },
    createdAt: timestampFromDate(new Date()),
    paymentMethod: { type: 'CARD', detail },
  };
  return create(PaymentSchema, {
    ...{ id, accountId: ACCOUNT_ONE, status: Payment_Status.PENDING },
    createdAt: timestampFromDate(new Date()),
    merchantOrderId: 'order-1',
    amount: { value: { value: '55.75' }, currency: 'USD' },
    customerPayer: {},
    paymentMethod: { type: 'CARD', paymentMethodDetail: detail },
    transactions,
    transactionsHistory: [transactions],
  });
}

/** The payment and the transaction that a change affects. */
export type Changed = { readonly paymentId: string; readonly transactionId: string };

/** Differences from a change with a known outcome. */
export type ChangeOptions = Partial<Omit<StoredChange, 'transaction'>> & Partial<ChangedTransaction>;

/** Returns a change with a known outcome. Its record and response contain `name`. */
export function changeOf(changed: Changed, name: string, options: ChangeOptions = {}): StoredChange {
  const { id, reference, providerPaymentId, awaitsPayer, fence, isFenced, checkInS, ...more } = options;
  return {
    ...{ accountId: ACCOUNT_ONE, paymentId: changed.paymentId, version: 0, status: name },
    ...{ record: recordOf(name), event: 'payment.purchase', response: responseOf(name) },
    transaction: {
      ...{ id: id ?? changed.transactionId, status: name, reference, providerPaymentId },
      ...{ awaitsPayer: awaitsPayer ?? false },
      ...{ fence: fence ?? 0, isFenced: isFenced ?? false, checkInS },
    },
    ...more,
  };
}

/** Options for a change that leaves the outcome open, with the next check in a minute. */
export const OPEN = { isFenced: true, checkInS: 60 } as const;

export const recordOf = (name: string): Buffer => Buffer.from(`record ${name}`);
export const responseOf = (name: string): Buffer => Buffer.from(`response ${name}`);

/** Makes a successful authorization of 55.75 USD. @param set sets columns of the payment or of its transaction. */
export async function approvedPayment(
  database: Database,
  tables: Tables,
  set: { payment?: string; base?: string; vault?: boolean } = {},
): Promise<OpenAttempt> {
  const attempt = await claimAttempt(database, { vault: set.vault ?? false });
  const [record, response] = [Buffer.from('approved'), Buffer.from('response')];
  await writeChange(database, changeOf(attempt, 'SUCCEEDED', { record, response, event: '' }));
  if (set.payment) await tables.query(`UPDATE payment SET ${set.payment}`);
  if (set.base) await tables.query(`UPDATE transaction SET ${set.base}`);
  return attempt;
}

/** Returns a claim for a capture of 5.75, leased for 60 s. */
export function operationClaimOf(base: OpenAttempt, changes: Partial<OperationClaim> = {}): OperationClaim {
  return {
    accountId: ACCOUNT_ONE,
    catalogueVersion: 0,
    paymentId: base.paymentId,
    version: 1,
    status: 'SUCCEEDED',
    record: Buffer.from('claimed'),
    transactionId: newId(ACCOUNT_ONE),
    type: 'CAPTURE',
    baseId: base.transactionId,
    parentId: base.transactionId,
    connectionId: 'scripted',
    connectionIdentity: 'scripted account',
    minorUnits: 575n,
    currency: 'USD',
    isFinal: true,
    leaseS: 60,
    method: 'CapturePayment',
    idempotencyKey: randomUUID(),
    requestHash: Buffer.from('hash'),
    requestShape: Buffer.from('shape'),
    merchantReference: 'reference',
    ...changes,
  };
}
