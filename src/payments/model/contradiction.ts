import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { TransactionInState, TransactionRow } from './state.ts';

/**
 * Returns true if a report contradicts a final state: money moved although the state says it did not, or the reverse.
 * The state stays and needs manual review. An outcome that is itself an alarm is not also a contradiction.
 */
export function contradicts(reported: Outcome, { status }: Pick<TransactionRow, 'status'>): boolean {
  const { kind } = reported;
  if (isAlarm(reported)) return false;
  if (status === 'SUCCEEDED') return kind === 'declined' || kind === 'expired';
  return kind === 'approved' && (status === 'DECLINED' || status === 'ERROR');
}

/**
 * Returns a report, or an alarm in its place if the report is about other money than the transaction's: the provider
 * approved two charges under different ids, or names the transaction by the id of another
 * transaction of the payment. The alarm changes nothing and names the ids. An open transaction has no money yet, so its
 * first approval decides which charge it is.
 */
export function reportOfOwnMoney(found: TransactionInState, reported: Outcome): Outcome {
  const { payment, transaction, transactions } = found;
  if (!NAMING.has(reported.kind) || !('providerPaymentId' in reported)) return reported;
  const { providerPaymentId: id } = reported;
  const recorded = transaction.providerPaymentId;
  if (id === undefined || id === recorded) return reported;
  const isHeld = transactions.some(
    (one) =>
      one.id !== transaction.id &&
      one.connectionId === transaction.connectionId &&
      one.providerPaymentId === id,
  );
  if (isHeld) return alarm(reported, `the provider's id ${id} belongs to another transaction of the payment`);
  // An authorization is released only if it was approved.
  const wasApproved =
    transaction.status === 'SUCCEEDED' || (transaction.status === 'EXPIRED' && payment.isReleased);
  // Adyen makes a failed capture or refund again under another id; its latest word counts.
  const isAttempt = transaction.parentId === undefined;
  if (reported.kind !== 'approved' || !isAttempt || recorded === undefined || !wasApproved) return reported;
  return alarm(reported, `charged twice: ${recorded} is recorded, and the provider also approved ${id}`);
}

const NAMING: ReadonlySet<Outcome['kind']> = new Set(['approved', 'pending', 'declined']);

function alarm(reported: Outcome, detail: string): Outcome {
  const providerData = 'providerData' in reported ? reported.providerData : undefined;
  return { kind: 'unknown', detail: `alarm: ${detail}`, providerData, alarm: true };
}

/** Returns true if an outcome needs manual review. */
export function isAlarm(reported: Outcome): boolean {
  return 'alarm' in reported && reported.alarm === true;
}
