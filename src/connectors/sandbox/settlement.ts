import { readTable, type TableRow } from '../kit/settlement-table.ts';
import {
  balanced,
  ourIdIn,
  readAmount,
  readTime,
  requireCurrency,
  requireText,
} from '../kit/settlement-values.ts';
import type { ReadSettlement, SettlementKind, SettlementLine } from '../port/settlement-line.ts';

const REQUIRED = [
  ...['movement', 'type', 'created_at', 'payment', 'operation', 'transaction', 'amount', 'currency'],
  ...['gross', 'fee', 'net', 'settlement_currency', 'exchange_rate', 'payout'],
];

const KINDS: Readonly<Record<string, SettlementKind>> = {
  payment: 'payment',
  capture: 'payment',
  refund: 'refund',
  refund_failure: 'refund_reversal',
  dispute: 'dispute',
  dispute_reversal: 'dispute_reversal',
  payout: 'payout',
};

/** Reads the sandbox provider's settlement report. */
export const readSandboxSettlement: ReadSettlement = async function* (text) {
  for await (const row of readTable(text, REQUIRED)) yield readLine(row);
};

function readLine(row: TableRow): SettlementLine {
  const rawKind = requireText(row, 'type');
  const kind = KINDS[rawKind] ?? 'other';
  const currency = requireCurrency(row, 'currency');
  const settlementCurrency = requireCurrency(row, 'settlement_currency');
  const operation = row.read('operation');
  const isDispute = kind === 'dispute' || kind === 'dispute_reversal';
  const inSettlement = (column: string) => readAmount(row, column, settlementCurrency);
  inSettlement('fee');
  return {
    lineNumber: row.lineNumber,
    key: requireText(row, 'movement'),
    report: '',
    kind,
    rawKind,
    ourId: ourIdIn(row.read('transaction')),
    providerReference: operation,
    parentReference: row.read('payment'),
    disputeReference: isDispute ? operation : undefined,
    payoutReference: row.read('payout'),
    amount: { minorUnits: readAmount(row, 'amount', currency), currency },
    ...balanced({ gross: inSettlement('gross'), net: inSettlement('net') }),
    settlementCurrency,
    exchangeRate: row.read('exchange_rate'),
    occurredAt: readTime(row, 'created_at', 'Z'),
  };
}
