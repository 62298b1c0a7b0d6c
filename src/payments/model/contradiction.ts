import type { Outcome } from '#src/connectors/outcome.ts';
import type { TransactionRow } from './state.ts';

/**
 * Returns true if money moved, or did not, contrary to a final state. That state stays, and needs manual review. An
 * outcome that is itself an alarm says more than its contradiction.
 */
export function contradicts(reported: Outcome, { status }: Pick<TransactionRow, 'status'>): boolean {
  const { kind } = reported;
  if (isAlarm(reported)) return false;
  if (status === 'SUCCEEDED') return kind === 'declined' || kind === 'expired';
  return kind === 'approved' && (status === 'DECLINED' || status === 'ERROR');
}

/** Returns true if an outcome needs manual review. */
export function isAlarm(reported: Outcome): boolean {
  return 'alarm' in reported && reported.alarm === true;
}
