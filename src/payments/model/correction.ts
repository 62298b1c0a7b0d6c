import type { Outcome } from '#src/connectors/outcome.ts';
import { isOpen, type TransactionInState } from './state.ts';

/**
 * Decides whether an outcome changes a final state because the provider corrects its own earlier report that a capture
 * or refund succeeded or that a payment was declined.
 *
 * @returns undefined if it corrects nothing, if another attempt has charged the payment since, or if the money of a
 * failed capture was refunded, so that more would be refunded than captured; 'later' while another operation on the
 * payment is open.
 */
export function correctionOf(stored: TransactionInState, outcome: Outcome): 'now' | 'later' | undefined {
  if (outcome.kind === 'declined' && outcome.corrects) return correctedOperation(stored);
  return outcome.kind === 'approved' && outcome.corrects
    ? correctedAttempt(stored, outcome.providerPaymentId)
    : undefined;
}

function correctedOperation({ payment, transaction }: TransactionInState): ReturnType<typeof correctionOf> {
  const { type, status, minorUnits } = transaction;
  if (status !== 'SUCCEEDED' || (type !== 'CAPTURE' && type !== 'REFUND')) return undefined;
  if (type === 'CAPTURE' && payment.capturedMinorUnits - minorUnits < payment.refundedMinorUnits)
    return undefined;
  return payment.openOperation ? 'later' : 'now';
}

/**
 * Accepts a correction only of the declined charge: another charge under our reference is money that nobody requested.
 */
function correctedAttempt(
  { payment, transaction, transactions }: TransactionInState,
  providerPaymentId: string | undefined,
): ReturnType<typeof correctionOf> {
  const isSame = providerPaymentId !== undefined && providerPaymentId === transaction.providerPaymentId;
  if (transaction.status !== 'DECLINED' || transaction.parentId || !isSame) return undefined;
  const attempts = transactions.filter(({ parentId }) => !parentId);
  if (payment.isReleased || attempts.some(({ status }) => status === 'SUCCEEDED')) return undefined;
  return attempts.some(isOpen) ? 'later' : 'now';
}
