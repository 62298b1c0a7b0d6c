import { Payment_Status, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import { writeExternalTransaction } from '#src/store/engine/external-transactions.ts';
import type { DueFollowUp } from '#src/store/engine/follow-ups.ts';
import type { Change } from '../model/change.ts';
import { encodeRecord } from '../stored-record.ts';
import type { FinishDeps } from './finish-payment.ts';

/** Dependencies of writing what nobody requested here. */
export type ExternalDeps = Pick<FinishDeps, 'database' | 'observer' | 'eventWritten'>;

/**
 * Writes what a provider reported of a transaction that nobody requested here: a stage of a dispute, or a capture or a
 * refund that was made at the provider itself.
 *
 * @param version of the payment for which the change was decided.
 * @returns false if the payment has changed since, or has an operation open.
 */
export async function writeExternal(
  deps: ExternalDeps,
  { accountId, paymentId }: Pick<DueFollowUp, 'accountId' | 'paymentId'>,
  version: number,
  { record, books, transaction: { id, status, reference, external }, event }: Change,
): Promise<boolean> {
  if (!external || !event) throw new Error(`transaction ${id} was requested here`);
  const written = await writeExternalTransaction(deps.database, {
    ...{ accountId, paymentId, version, reference, event, ...external },
    status: Payment_Status[record.status],
    record: encodeRecord(record),
    transactionId: id,
    transactionStatus: Transaction_Status[status],
    capturedMinorUnits: books.captured,
    refundedMinorUnits: books.refunded,
    isReleased: books.isReleased,
  });
  if (!written) return false;
  deps.observer.finished(record, true);
  if (written.event) deps.eventWritten?.();
  return true;
}
