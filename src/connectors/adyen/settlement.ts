import { readTable, type TableRow } from '../kit/settlement-table.ts';
import {
  balanced,
  createLineKeys,
  ourIdIn,
  readAmount,
  readCurrency,
  readTime,
  requireCurrency,
  requireText,
} from '../kit/settlement-values.ts';
import type { ReadSettlement, SettlementKind, SettlementLine } from '../port/settlement-line.ts';

const FEES = ['Commission (NC)', 'Markup (NC)', 'Scheme Fees (NC)', 'Interchange (NC)'];
const REQUIRED = [
  ...['Psp Reference', 'Merchant Reference', 'Creation Date', 'TimeZone', 'Type', 'Modification Reference'],
  ...['Gross Currency', 'Gross Debit (GC)', 'Gross Credit (GC)', 'Exchange Rate'],
  ...['Net Currency', 'Net Debit (NC)', 'Net Credit (NC)', ...FEES, 'Batch Number'],
];

const KINDS: Readonly<Record<string, SettlementKind>> = {
  Settled: 'payment',
  Refunded: 'refund',
  RefundedReversed: 'refund_reversal',
  Chargeback: 'dispute',
  SecondChargeback: 'dispute',
  ChargebackReversed: 'dispute_reversal',
  Fee: 'fee',
  MiscCosts: 'fee',
  PaymentCost: 'fee',
  SettleCost: 'fee',
  AuthorisationSchemeFee: 'fee',
  InvoiceDeduction: 'fee',
  MerchantPayout: 'payout',
  BankInstructionReturned: 'payout_reversal',
  DepositCorrection: 'reserve',
  ReserveAdjustment: 'reserve',
  Balancetransfer: 'adjustment',
  MatchedStatement: 'adjustment',
  ManualCorrected: 'adjustment',
};

/** Abbreviations that stand for one offset only. */
const ZONES: Readonly<Record<string, string>> = {
  UTC: 'Z',
  GMT: 'Z',
  CET: '+01:00',
  CEST: '+02:00',
  PST: '-08:00',
  PDT: '-07:00',
};

/** Reads a settlement details report, in any order of its columns. The number of its batch is the payout's reference. */
export const readAdyenSettlement: ReadSettlement = async function* (text) {
  const keyOf = createLineKeys();
  for await (const row of readTable(text, REQUIRED)) yield readLine(row, keyOf);
};

function readLine(row: TableRow, keyOf: (parts: readonly unknown[]) => string): SettlementLine {
  const rawKind = requireText(row, 'Type');
  const kind = KINDS[rawKind] ?? 'other';
  const shown = readCurrency(row, 'Gross Currency');
  const currency = requireCurrency(row, 'Net Currency');
  const amount = shown === undefined ? undefined : balanceOf(row, 'Gross', 'GC', shown);
  const net = balanceOf(row, 'Net', 'NC', currency);
  const fees = FEES.map((column) => readAmount(row, column, currency));
  const costs = fees.reduce((sum, fee) => sum + fee, 0n);
  const feeParts = fees.filter((fee) => fee !== 0n).length;
  const reference = row.read('Psp Reference');
  const modification = row.read('Modification Reference');
  const batch = requireText(row, 'Batch Number');
  const created = row.read('Creation Date');
  const isDispute = kind === 'dispute' || kind === 'dispute_reversal';
  // The modification of a payout is a free text.
  const isOfPayment = reference !== undefined;
  return {
    lineNumber: row.lineNumber,
    key: keyOf([batch, rawKind, reference, modification, shown, amount, currency, net, costs, created]),
    report: '',
    kind,
    rawKind,
    ourId: ourIdIn(row.read('Modification Merchant Reference'), row.read('Merchant Reference')),
    providerReference: isOfPayment ? (modification ?? reference) : undefined,
    parentReference: reference,
    disputeReference: isDispute ? (row.read('Dispute Reference') ?? modification) : undefined,
    payoutReference: batch,
    amount: shown === undefined || amount === undefined ? undefined : { minorUnits: amount, currency: shown },
    ...balanced({ gross: net + costs, net, feeParts }),
    settlementCurrency: currency,
    exchangeRate: row.read('Exchange Rate'),
    occurredAt: readTime(row, 'Creation Date', ZONES[row.read('TimeZone') ?? '']),
  };
}

/** Returns the credit less the debit, in minor units. */
function balanceOf(row: TableRow, name: 'Gross' | 'Net', suffix: 'GC' | 'NC', currency: string): bigint {
  const credit = readAmount(row, `${name} Credit (${suffix})`, currency);
  return credit - readAmount(row, `${name} Debit (${suffix})`, currency);
}
