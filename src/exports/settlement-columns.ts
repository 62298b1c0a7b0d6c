import type { ExportedDifference, ExportedLine } from '#src/store/tables/exported-settlement.ts';
import { ACCOUNT, ACCOUNT_NAME, type Column, ORDER, PAYMENT, shortTime, type Told } from './columns.ts';
import type { Cell } from './csv.ts';

/** The columns of a line of a provider's report, as it is matched now. */
export const SETTLEMENT_COLUMNS: readonly Column<Told<ExportedLine>>[] = [
  ACCOUNT,
  ACCOUNT_NAME,
  ['payment_id', ({ paymentId }) => paymentId],
  ['transaction_id', ({ transactionId }) => transactionId],
  ORDER,
  ['settlement_kind', ({ kind }) => kind],
  ['settlement_kind_reported', ({ rawKind }) => rawKind],
  ['settlement_result', ({ result }) => result],
  ['settled_at_utc', ({ at }) => shortTime(at)],
  ['amount', seenMoney],
  ['currency', ({ currency }) => currency],
  ['gross', part('gross')],
  ['fee', part('fee')],
  ['tax', part('tax')],
  ['net', part('net')],
  ['settlement_currency', ({ settlementCurrency }) => settlementCurrency],
  ['exchange_rate', ({ exchangeRate }) => exchangeRate],
  ['payout_reference', ({ payoutReference }) => payoutReference],
  ['connection_id', ({ connectionId }) => connectionId],
  ['provider_reference', ({ providerReference }) => providerReference],
  ['dispute_reference', ({ disputeReference }) => disputeReference],
  ['report', ({ report }) => report],
  ['line_reference', ({ key }) => key],
  ...PAYMENT,
];

/** Returns the amount that the payer saw; undefined if the report does not say, or the line is about no payment. */
function seenMoney({ minorUnits, currency, result }: ExportedLine): Cell {
  if (minorUnits === undefined || currency === undefined || result === 'none_expected') return undefined;
  return { minorUnits, currency };
}

/** Returns the cell of an amount in the currency in which the provider settles. */
function part(name: 'gross' | 'fee' | 'tax' | 'net'): (line: ExportedLine) => Cell {
  return ({ [name]: minorUnits, settlementCurrency: currency }) => ({ minorUnits, currency });
}

/** The columns of a difference, as it is now. Operators' notes are not among them. */
export const DIFFERENCE_COLUMNS: readonly Column<Told<ExportedDifference>>[] = [
  ACCOUNT,
  ACCOUNT_NAME,
  ['payment_id', ({ paymentId }) => paymentId],
  // A difference about a payment is about one of its transactions.
  ['transaction_id', ({ paymentId, subject }) => (paymentId === '' ? '' : subject)],
  ORDER,
  ['difference_kind', ({ kind }) => kind],
  ['difference_status', statusOf],
  ['difference_subject', ({ subject }) => subject],
  ['difference_detail', ({ detail }) => detail],
  ['opened_at_utc', ({ openedAt }) => shortTime(openedAt)],
  ['resolved_at_utc', ({ resolvedAt }) => resolvedAt && shortTime(resolvedAt)],
  ['closed_at_utc', ({ endedAt }) => endedAt && shortTime(endedAt)],
  ['connection_id', ({ connectionId }) => connectionId],
  ...PAYMENT,
];

/** The states of a difference: open, resolved by an operator, or explained by a later report. */
export const DIFFERENCE_STATUSES = ['OPEN', 'RESOLVED', 'CLOSED'] as const;

function statusOf({ endedAt, resolvedAt }: ExportedDifference): (typeof DIFFERENCE_STATUSES)[number] {
  if (endedAt !== undefined) return 'CLOSED';
  return resolvedAt === undefined ? 'OPEN' : 'RESOLVED';
}
