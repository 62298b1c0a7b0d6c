import { randomUUIDv7 } from 'node:crypto';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  type Payment,
  Payment_Status,
  type Transaction,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import { writeDispute } from '#src/store/disputes.ts';
import { findPaymentOf } from '#src/store/follow-ups.ts';
import { readPayment, readTransactions } from '#src/store/operated-payments.ts';
import { booksOf, isOperation } from './finish-operation.ts';
import type { FinishDeps } from './finish-payment.ts';
import { disputeOf, withStanding } from './operation-record.ts';
import type { Books } from './payment-books.ts';
import { eventOf } from './payment-event.ts';
import { decodeRecord, encodeRecord } from './stored-record.ts';

/** A provider's report on a dispute. */
export type DisputeStage = 'opened' | 'lost' | 'won';

/**
 * Writes a provider's report on a dispute into its payment: IN_DISPUTE while the dispute is open, CHARGEBACK once it
 * is lost; a dispute that is won restores the earlier state. Reports may come repeatedly and in any order: a decided
 * dispute stays decided.
 *
 * @param transactionId the disputed purchase or authorization, or one of its captures.
 * @returns 'waiting' while the payment has an operation open.
 */
export async function applyDispute(
  deps: Pick<FinishDeps, 'database' | 'now' | 'observer' | 'eventWritten'>,
  transactionId: string,
  stage: DisputeStage,
): Promise<'applied' | 'unchanged' | 'waiting' | 'unmatched'> {
  const own = await findPaymentOf(deps.database, transactionId);
  if (!own) return 'unmatched';
  const stored = await readPayment(deps.database, own.accountId, own.paymentId);
  const transactions = await readTransactions(deps.database, own.accountId, own.paymentId);
  const base = transactions.find(
    ({ type, status }) => !isOperation(type) && type !== 'CHARGEBACK' && status === 'SUCCEEDED',
  );
  if (!stored || !base) return 'waiting';
  if (stored.openOperation) return 'waiting';
  const told = withDispute(decodeRecord(stored.record), booksOf(stored, base), base.id, stage, deps.now());
  if (!told) return 'unchanged';
  const { record, dispute } = told;
  const written = await writeDispute(deps.database, {
    accountId: own.accountId,
    paymentId: own.paymentId,
    version: stored.version,
    status: Payment_Status[record.status] ?? '',
    record: encodeRecord(record),
    transactionId: dispute.id,
    transactionStatus: Transaction_Status[dispute.status] ?? '',
    baseId: base.id,
    event: eventOf(record),
  });
  if (!written) return 'waiting';
  deps.observer.finished(record, true);
  if (written.event) deps.eventWritten?.();
  return 'applied';
}

const STATUSES: Readonly<Record<DisputeStage, Transaction_Status>> = {
  opened: Transaction_Status.PENDING,
  lost: Transaction_Status.SUCCEEDED,
  won: Transaction_Status.DECLINED,
};
const TEXTS: Readonly<Record<DisputeStage, readonly [code: string, message: string]>> = {
  opened: ['DISPUTE_RECEIVED', 'Dispute received'],
  lost: ['DISPUTE_LOST', 'Dispute lost'],
  won: ['DISPUTE_WON', 'Dispute won'],
};

/** Writes a dispute's stage into a record. @returns undefined if the record needs no change. */
function withDispute(
  record: Payment,
  books: Books,
  baseId: string,
  stage: DisputeStage,
  at: Timestamp,
): { readonly record: Payment; readonly dispute: Transaction } | undefined {
  const before = disputeOf(record);
  // A decided dispute stays decided, and 'opened' adds nothing to a dispute that is already recorded.
  if (before && (stage === 'opened' || before.status !== Transaction_Status.PENDING)) return undefined;
  const base = record.transactionsHistory.find(({ id }) => id === baseId);
  if (!base) return undefined;
  const [responseCode, responseMessage] = TEXTS[stage];
  const dispute: Transaction = {
    ...(before ?? {
      ...base,
      id: randomUUIDv7(),
      type: Transaction_Type.CHARGEBACK,
      reason: undefined,
      parentTransactionId: baseId,
      createdAt: at,
    }),
    status: STATUSES[stage],
    responseCode,
    responseMessage,
    updatedAt: at,
  };
  const history = [...record.transactionsHistory.filter(({ id }) => id !== dispute.id), dispute];
  return {
    record: withStanding({ ...record, transactions: dispute, transactionsHistory: history }, books, at),
    dispute,
  };
}
