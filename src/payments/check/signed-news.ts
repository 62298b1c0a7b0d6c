import type { NotificationSubject, ProviderConnection, SignedOutcome } from '#src/connectors/connector.ts';
import type { Money } from '#src/money.ts';
import type { OpenNews } from '#src/store/tables/open-news.ts';
import type { Report } from '../model/apply.ts';
import { reportOfOwnMoney } from '../model/contradiction.ts';
import { isLapsing, isOpen, isOperation, isOver, type TransactionRow } from '../model/state.ts';
import { type LeasedTransaction, pauseS, writeReport } from '../write-change.ts';
import { type ExternalResult, recordExternal, reportDispute } from './external-reports.ts';
import { type CheckDeps, type Found, findTransaction } from './found-transaction.ts';

/** Result of signed news, with the worker's current token; undefined if another worker has the transaction. */
type Believed = { readonly result: ExternalResult | 'conflict'; readonly fence: number | undefined };

/**
 * Applies signed news: a stage of a dispute, or an outcome at a provider without a look-up. If its amount or currency
 * differs from the transaction's, an alarm is raised, and a payment does not change; an operation takes the amount.
 *
 * @returns 'waiting' if the news may apply later because another operation on the payment is open and may have caused
 *   the reported event; 'conflict' if the payment cannot hold it, and a person has to review it.
 */
export async function believe(
  deps: CheckDeps,
  connection: ProviderConnection,
  leased: LeasedTransaction,
  news: OpenNews,
  stop: AbortSignal | undefined,
): Promise<Believed> {
  const stays = (result: Believed['result']) => ({ result, fence: leased.fence });
  if (news.dispute) return stays(await reportDispute(deps, leased, news.dispute));
  const signed = (await readAgain(connection, news))?.signed;
  if (!signed) return stays('unchanged');
  const found = await findTransaction(deps, connection, leased);
  if (!isOfPaid(deps, signed, found)) return stays('unchanged');
  if (signed.operation)
    return stays(await applyOperation(deps, connection, leased, found, signed, signed.operation));
  return applyOutcome(deps, leased, found, signed, stop);
}

async function applyOutcome(
  deps: CheckDeps,
  leased: LeasedTransaction,
  found: Found,
  signed: SignedOutcome,
  stop: AbortSignal | undefined,
): Promise<Believed> {
  const { transaction } = found;
  const { outcome, at: reportedAt, minorUnits, currency } = signed;
  const money = { minorUnits, currency };
  const stays = (result: Believed['result']) => ({ result, fence: leased.fence });
  const own = reportOfOwnMoney(found, outcome);
  if (own !== outcome) {
    deps.checked.learned({ transactionId: transaction.id, connectionId: transaction.connectionId }, own);
    return stays('unchanged');
  }
  const isEnd = outcome.kind === 'expired' && isLapsing(transaction);
  // If the authorization is already over, a report of its end adds nothing, and the reported amount, which may be only
  // the uncaptured rest, must not be compared.
  if ((isEnd && isOver(found)) || !decides(deps, signed, found)) return stays('unchanged');
  const { id: transactionId, connectionId, ageMs } = transaction;
  // A report of a failure has moved nothing, whatever amount it names.
  const moved = outcome.kind === 'approved' ? { ...outcome, money } : outcome;
  const report: Report = isEnd
    ? { kind: 'lapsed', transactionId }
    : { kind: 'outcome', transactionId, outcome: moved, pauseS: pauseS(deps.schedule, ageMs), reportedAt };
  const written = await writeReport(deps, leased, report, stop);
  if (written === 'lost') return { result: 'waiting', fence: undefined };
  if (written === 'waiting' || written === 'conflict') return stays(written);
  const alarm = written === 'contradiction' ? written : isOther(transaction, money) && 'mismatch';
  if (alarm) deps.checked.learned({ transactionId, connectionId }, alarm);
  return typeof written === 'string' ? stays('unchanged') : { result: 'applied', fence: written.fence };
}

/** Records a reported capture or refund as external, unless it is one of ours. */
async function applyOperation(
  deps: CheckDeps,
  connection: ProviderConnection,
  leased: LeasedTransaction,
  found: Found,
  { outcome: reported, minorUnits, currency, at: reportedAt }: SignedOutcome,
  type: 'CAPTURE' | 'REFUND',
): Promise<ExternalResult> {
  if (reported.kind !== 'approved') return 'unchanged';
  const { providerPaymentId } = reported;
  const made = { type, money: { minorUnits, currency }, reported, providerPaymentId, reportedAt };
  return recordExternal(deps, connection, leased, found, made);
}

/** Reads a stored notification as of the time it arrived, since its signature may have expired by now. */
async function readAgain(
  connection: ProviderConnection,
  { headers: stored, query, body, receivedAt, subject }: OpenNews,
): Promise<NotificationSubject | undefined> {
  const headers = JSON.parse(stored) as Record<string, string>;
  const notification = { header: (name: string) => headers[name], query, body };
  const reading = await connection.readNotification?.(notification, receivedAt.getTime());
  return reading?.kind === 'about' ? reading.subjects[subject] : undefined;
}

/**
 * Returns true if the signed report decides the outcome of a transaction. Returns false if it does not apply to this
 * kind of transaction. Returns false and raises an alarm if the money differs or the report is itself an alarm.
 */
function decides(
  { checked }: CheckDeps,
  { outcome, minorUnits, currency, ofPurchase }: SignedOutcome,
  { transaction }: Found,
): boolean {
  if (ofPurchase && !transaction.capture) return false;
  // An operation is over, whatever amount its report names: otherwise it would block all others.
  const fits = isOperation(transaction.type) || !isOther(transaction, { minorUnits, currency });
  if (fits && outcome.kind !== 'unknown') return true;
  const { id: transactionId, connectionId } = transaction;
  checked.learned({ transactionId, connectionId }, fits ? outcome : 'mismatch');
  return false;
}

/** Returns true if reported money is not a transaction's own. A cancel moves none, whatever amount its report names. */
function isOther({ type, minorUnits, currency }: TransactionRow, reported: Money): boolean {
  if (type === 'CANCEL') return false;
  return reported.minorUnits !== minorUnits || reported.currency !== currency;
}

/** Returns false and raises an alarm if the signed report is about another charge under our reference. */
function isOfPaid({ checked }: CheckDeps, { paidReference }: SignedOutcome, { transaction }: Found): boolean {
  const { id: transactionId, connectionId, providerPaymentId } = transaction;
  if (!paidReference || !providerPaymentId || paidReference === providerPaymentId) return true;
  // While the outcome of an attempt is unknown, the first signed report determines which charge is ours.
  if (isOpen(transaction) && !transaction.awaitsPayer) return true;
  checked.learned({ transactionId, connectionId }, 'mismatch');
  return false;
}
