import { randomUUIDv7 } from 'node:crypto';
import type { Dispute } from '#src/connectors/dispute-report.ts';
import { findPaymentOf } from '#src/store/engine/follow-ups.ts';
import { readPayment, readTransactions } from '#src/store/tables/operated-payments.ts';
import { apply } from '../model/apply.ts';
import { decodeRecord } from '../stored-record.ts';
import type { FinishDeps } from './finish-payment.ts';
import { writeExternal } from './write-external.ts';

type DisputeDeps = Pick<FinishDeps, 'database' | 'now' | 'observer' | 'eventWritten'>;

/**
 * Ends the disputes of a payment that its look-up tells to be over, of those that are recorded as open.
 *
 * @returns undefined if there was nothing to end; 'waiting' while the payment has an operation open.
 */
export async function endDisputes(
  deps: DisputeDeps,
  transactionId: string,
  ended: readonly Dispute[],
): Promise<'applied' | 'waiting' | undefined> {
  const results: string[] = [];
  for (const reported of ended)
    results.push(await applyDispute(deps, transactionId, reported, { onlyOpen: true }));
  if (results.includes('waiting')) return 'waiting';
  return results.includes('applied') ? 'applied' : undefined;
}

/**
 * Writes a provider's report on a dispute into its payment. Reports may come repeatedly and in any order.
 *
 * @param transactionId the disputed purchase or authorization, or one of its captures.
 * @param options.onlyOpen a report on a dispute that is not recorded as open changes nothing.
 * @returns 'waiting' while the payment has an operation open, or if it has changed since it was read.
 */
export async function applyDispute(
  deps: DisputeDeps,
  transactionId: string,
  dispute: Dispute,
  { onlyOpen = false }: { readonly onlyOpen?: boolean } = {},
): Promise<'applied' | 'unchanged' | 'waiting' | 'unmatched'> {
  const own = await findPaymentOf(deps.database, transactionId);
  if (!own) return 'unmatched';
  const payment = await readPayment(deps.database, own.accountId, own.paymentId);
  const transactions = await readTransactions(deps.database, own.accountId, own.paymentId);
  if (!payment) return 'waiting';
  const state = { payment, record: decodeRecord(payment.record), transactions };
  const change = apply(state, { kind: 'dispute', dispute, newId: randomUUIDv7(), onlyOpen }, deps.now());
  if (typeof change === 'string') return change === 'waiting' ? change : 'unchanged';
  return (await writeExternal(deps, own, payment.version, change)) ? 'applied' : 'waiting';
}
