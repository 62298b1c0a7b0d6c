import type { Outcome } from '#src/connectors/outcome.ts';
import type { TransactionRow } from './state.ts';

/**
 * Returns true if money moved, or did not, other than a final state says. That state stays, and needs manual review. An
 * outcome that is an alarm itself says more than that it contradicts.
 */
export function contradicts(reported: Outcome, { status }: Pick<TransactionRow, 'status'>): boolean {
  const { kind } = reported;
  if (isAlarm(reported)) return false;
  if (status === 'SUCCEEDED') return kind === 'declined' || kind === 'expired';
  return kind === 'approved' && (status === 'DECLINED' || status === 'ERROR');
}

/** Returns true if an operator has to look into an outcome. */
export function isAlarm(reported: Outcome): boolean {
  return 'alarm' in reported && reported.alarm === true;
}
