import type { Outcome } from '#src/connectors/outcome.ts';
import type { TransactionRow } from './state.ts';

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

/** Returns true if an outcome needs manual review. */
export function isAlarm(reported: Outcome): boolean {
  return 'alarm' in reported && reported.alarm === true;
}
