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
import { type Claim, claimPayment } from '#src/store/engine/claim-payment.ts';
import type { Database } from '#src/store/engine/database.ts';
import { ACCOUNT_ONE } from './payment-requests.ts';

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
  const record = create(PaymentSchema, {
    id: paymentId,
    accountId: ACCOUNT_ONE,
    status: Payment_Status.PENDING,
    createdAt: timestampFromDate(new Date()),
    merchantOrderId: 'order-1',
    amount: { value: { value: '55.75' }, currency: 'USD' },
    customerPayer: {},
    paymentMethod: { type: 'CARD', paymentMethodDetail: detail },
    transactions,
    transactionsHistory: [transactions],
  });
  const claim: Claim = {
    paymentId,
    accountId: ACCOUNT_ONE,
    catalogueVersion: 0,
    idempotencyKey,
    requestHash: new Uint8Array(32),
    requestShape: new Uint8Array(16),
    status: 'PENDING',
    record: encodeRecord(record),
    merchantOrderId: 'order-1',
    cardLastFour: '1111',
    cardFingerprint: undefined,
    country: 'US',
    methodType: 'CARD',
    category: 'CARD',
    cardBrand: 'VISA',
    customerId: undefined,
    payerEmailHash: undefined,
    payerDocumentHash: undefined,
    methodKind: 'CARD',
    payerDueInS: 86_400,
    merchantReference: undefined,
    createdAt: new Date().toISOString(),
    transactionId,
    transactionStatus: 'PENDING',
    type: 'PURCHASE',
    connectionId,
    connectionIdentity: identity,
    minorUnits: 5_575n,
    currency: 'USD',
    capture: false,
    leaseS,
    vault: vaultedToken ? { token: vaultedToken, card: new Uint8Array(), cardNumber: 'sealed' } : undefined,
  };
  return { claim, attempt: { paymentId, transactionId, idempotencyKey, record, vaultedToken } };
}
