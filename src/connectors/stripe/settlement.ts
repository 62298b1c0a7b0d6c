import { readTable, type TableRow } from '../kit/settlement-table.ts';
import {
  balanced,
  ourIdIn,
  readAmount,
  readCurrency,
  readTime,
  requireCurrency,
  requireText,
  signedLike,
} from '../kit/settlement-values.ts';
import type { ReadSettlement, SettlementKind, SettlementLine } from '../port/settlement-line.ts';

const REQUIRED = [
  ...['balance_transaction_id', ['created_utc', 'created'], 'currency', 'gross', 'fee', 'net'],
  ...['reporting_category', 'source_id', 'payment_intent_id', 'automatic_payout_id'],
];
const OUR_IDS = [
  'refund_metadata[transaction_id]',
  'payment_metadata[capture_transaction_id]',
  'payment_metadata[transaction_id]',
];

/** The columns that are read: what a fetched report must have. */
export const COLUMNS: readonly string[] = [
  ...['balance_transaction_id', 'created_utc', 'currency', 'gross', 'fee', 'net', 'reporting_category'],
  ...['source_id', 'payment_intent_id', 'charge_id', 'automatic_payout_id'],
  ...['customer_facing_amount', 'customer_facing_currency', ...OUR_IDS],
];

const KINDS: Readonly<Record<string, SettlementKind>> = {
  charge: 'payment',
  // The money of a charge that failed after all, with the opposite sign.
  charge_failure: 'payment',
  partial_capture_reversal: 'partial_capture_reversal',
  refund: 'refund',
  refund_failure: 'refund_reversal',
  dispute: 'dispute',
  dispute_reversal: 'dispute_reversal',
  fee: 'fee',
  network_cost: 'fee',
  tax: 'tax',
  payout: 'payout',
  payout_reversal: 'payout_reversal',
  risk_reserved_funds: 'reserve',
  other_adjustment: 'adjustment',
};

/** Reads the report payout_reconciliation.itemized, in UTC. Its columns of payers are ignored. */
export const readStripeSettlement: ReadSettlement = async function* (text) {
  for await (const row of readTable(text, REQUIRED)) yield readLine(row);
};

function readLine(row: TableRow): SettlementLine {
  const currency = requireCurrency(row, 'currency');
  const rawKind = requireText(row, 'reporting_category');
  const kind = KINDS[rawKind] ?? 'other';
  const gross = readAmount(row, 'gross', currency);
  readAmount(row, 'fee', currency);
  const shown = readCurrency(row, 'customer_facing_currency');
  const intent = row.read('payment_intent_id') ?? row.read('charge_id');
  const source = row.read('source_id');
  const isPayment = kind === 'payment' || kind === 'partial_capture_reversal';
  return {
    lineNumber: row.lineNumber,
    key: requireText(row, 'balance_transaction_id'),
    report: '',
    kind,
    rawKind,
    ourId: ourIdIn(...OUR_IDS.map((column) => row.read(column))),
    providerReference: isPayment ? (intent ?? source) : source,
    parentReference: intent,
    disputeReference: kind === 'dispute' || kind === 'dispute_reversal' ? source : undefined,
    payoutReference:
      kind === 'payout' || kind === 'payout_reversal' ? source : row.read('automatic_payout_id'),
    amount:
      shown === undefined
        ? undefined
        : signedLike(readAmount(row, 'customer_facing_amount', shown), gross, shown),
    ...balanced({ gross, net: readAmount(row, 'net', currency) }),
    settlementCurrency: currency,
    exchangeRate: undefined,
    occurredAt: readTime(row, row.has('created_utc') ? 'created_utc' : 'created', 'Z'),
  };
}
