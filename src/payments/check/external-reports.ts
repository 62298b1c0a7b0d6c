import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { Dispute } from '#src/connectors/dispute-report.ts';
import { newId } from '#src/new-id.ts';
import { recheck } from '#src/store/engine/checks.ts';
import type { ExternalOperation } from '../model/external.ts';
import { FIRST_CHECK_S } from '../model/schedule.ts';
import type { TransactionInState, TransactionRow } from '../model/state.ts';
import { type LeasedTransaction, type Reported, writeReport, writeReportOn } from '../write-change.ts';
import type { Asked, CheckDeps } from './found-transaction.ts';

/** Result of a report of an event that was not requested through this service. */
export type ExternalResult = 'applied' | 'waiting' | 'unchanged';

/**
 * Writes a provider's dispute report into its payment. Reports may be repeated and arrive in any order.
 *
 * @param leased the disputed purchase or authorization, or one of its captures.
 * @param options.onlyOpen ignores the report unless its dispute is recorded as open.
 * @returns 'waiting' while an operation on the payment is open; 'conflict' if no money was taken according to the record.
 */
export async function reportDispute(
  deps: CheckDeps,
  leased: LeasedTransaction,
  dispute: Dispute,
  { onlyOpen = false }: { readonly onlyOpen?: boolean } = {},
): Promise<ExternalResult | 'conflict'> {
  const report = { kind: 'dispute', dispute, newId: newId(leased.accountId), onlyOpen } as const;
  const reported = await writeReport(deps, leased, report);
  return reported === 'conflict' ? reported : resultOf(reported);
}

/**
 * Records an external capture or refund (made at the provider itself) as a successful operation. A report that does not
 * fit the payment changes nothing and raises an alarm for manual review.
 *
 * @param before the payment before the provider was queried.
 * @returns 'waiting' if the provider must be queried again: an operation on the payment is open and may be the reported
 * one, the refunded capture is yet to be reported, or the payment has changed since it was read.
 */
export async function recordExternal(
  deps: CheckDeps,
  { capabilities: can }: ProviderConnection,
  leased: LeasedTransaction,
  before: TransactionInState,
  operation: ExternalOperation,
): Promise<ExternalResult> {
  const { id: transactionId, connectionId } = before.transaction;
  const report = { kind: 'external', transactionId, operation, newId: newId(leased.accountId), can } as const;
  const reported = await writeReportOn(deps, leased, before, report);
  if (reported === 'mismatch') deps.checked.learned({ transactionId, connectionId }, reported);
  return resultOf(reported);
}

/**
 * Makes the check of a recorded refund due, because its provider now lists it with another result. Until it has been
 * looked up, the totals of its payment say nothing new.
 */
export async function recheckRefund(
  { database }: CheckDeps,
  { accountId }: LeasedTransaction,
  { id: transactionId }: TransactionRow,
): Promise<Pick<Asked, 'result' | 'checkInS'>> {
  await recheck(database, accountId, transactionId);
  return { result: 'waiting', checkInS: FIRST_CHECK_S };
}

function resultOf(reported: Reported): ExternalResult {
  if (typeof reported !== 'string') return 'applied';
  return reported === 'waiting' || reported === 'lost' ? 'waiting' : 'unchanged';
}
