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
import {
  type ReadSettlement,
  SettlementFileError,
  type SettlementKind,
  type SettlementLine,
} from '../port/settlement-line.ts';

const NET = ['SETTLEMENT_NET_AMOUNT', 'NET_CREDIT_AMOUNT'];
const SETTLEMENT = [
  ...['SOURCE_ID', 'TRANSACTION_TYPE', 'TRANSACTION_AMOUNT', 'TRANSACTION_CURRENCY', 'TRANSACTION_DATE'],
  ...['SETTLEMENT_NET_AMOUNT', 'SETTLEMENT_CURRENCY'],
];
const RELEASE = ['DATE', 'SOURCE_ID', 'DESCRIPTION', 'NET_CREDIT_AMOUNT', 'NET_DEBIT_AMOUNT', 'GROSS_AMOUNT'];

/** The kinds of both reports, in lower case. */
const KINDS: Readonly<Record<string, SettlementKind>> = {
  payment: 'payment',
  settlement: 'payment',
  refund: 'refund',
  chargeback: 'dispute',
  dispute: 'dispute',
  mediation: 'dispute',
  mediation_cancel: 'dispute_reversal',
  withdrawal: 'payout',
  payout: 'payout',
  withdrawal_cancel: 'payout_reversal',
  fee_release_in_advance: 'fee',
};

type Keys = (parts: readonly unknown[]) => string;

/**
 * Reads a settlement report (all transactions) or a release report (money as it becomes available), which its columns
 * tell apart. Both show the same money. Opening balances and totals, which have no SOURCE_ID, are skipped.
 */
export const readMercadoPagoSettlement: ReadSettlement = async function* (text, { currency }) {
  const keyOf = createLineKeys();
  let isRelease: boolean | undefined;
  for await (const row of readTable(text, ['SOURCE_ID', NET])) {
    isRelease ??= requireReport(row);
    if (row.read('SOURCE_ID') === undefined) continue;
    yield isRelease ? readRelease(row, keyOf, currency) : readSettlement(row, keyOf);
  }
};

/** Returns true for a release report. @throws SettlementFileError if columns of the report are missing. */
function requireReport(row: TableRow): boolean {
  const isRelease = row.has('NET_CREDIT_AMOUNT');
  const missing = (isRelease ? RELEASE : SETTLEMENT).filter((name) => !row.has(name));
  if (missing.length === 0) return isRelease;
  const report = isRelease ? 'release' : 'settlement';
  throw new SettlementFileError(`line 1: a ${report} report must have the columns ${missing.join(', ')}`);
}

function readRelease(row: TableRow, keyOf: Keys, currency: string | undefined): SettlementLine {
  if (currency === undefined) {
    throw new SettlementFileError(
      'line 1: a release report names no currency, and neither does the connection',
    );
  }
  const rawKind = requireText(row, 'DESCRIPTION');
  const net = readAmount(row, 'NET_CREDIT_AMOUNT', currency) - readAmount(row, 'NET_DEBIT_AMOUNT', currency);
  const printed = readAmount(row, 'GROSS_AMOUNT', currency);
  const size = printed < 0n ? -printed : printed;
  const kind = kindOf(rawKind);
  // A payout's gross amount is positive, although its money goes.
  const gross = net < 0n ? -size : size;
  return {
    ...sharedOf(row, 'DATE', rawKind),
    key: keyOf(['release', row.read('SOURCE_ID'), rawKind, row.read('DATE'), net, gross]),
    report: 'release',
    kind,
    amount: undefined,
    ...balanced({ gross: size === 0n ? net : gross, net, tax: readAmount(row, 'TAXES_AMOUNT', currency) }),
    settlementCurrency: currency,
  };
}

function readSettlement(row: TableRow, keyOf: Keys): SettlementLine {
  const rawKind = requireText(row, 'TRANSACTION_TYPE');
  const shown = requireCurrency(row, 'TRANSACTION_CURRENCY');
  const currency = readCurrency(row, 'SETTLEMENT_CURRENCY') ?? shown;
  const minorUnits = readAmount(row, 'TRANSACTION_AMOUNT', shown);
  const net = readAmount(row, 'SETTLEMENT_NET_AMOUNT', currency);
  const tax = readAmount(row, 'TAXES_AMOUNT', currency);
  const gross = shown === currency ? minorUnits : net - readAmount(row, 'FEE_AMOUNT', currency) - tax;
  return {
    ...sharedOf(row, 'TRANSACTION_DATE', rawKind),
    key: keyOf([
      'settlement',
      row.read('SOURCE_ID'),
      rawKind,
      row.read('TRANSACTION_DATE'),
      shown,
      minorUnits,
      net,
    ]),
    report: 'settlement',
    kind: kindOf(rawKind),
    amount: { minorUnits, currency: shown },
    ...balanced({ gross, net, tax }),
    settlementCurrency: currency,
  };
}

function sharedOf(row: TableRow, time: string, rawKind: string) {
  const source = row.read('SOURCE_ID');
  const kind = kindOf(rawKind);
  return {
    lineNumber: row.lineNumber,
    rawKind,
    ourId: ourIdIn(row.read('EXTERNAL_REFERENCE')),
    providerReference: source,
    parentReference: source,
    disputeReference: undefined,
    payoutReference: kind === 'payout' || kind === 'payout_reversal' ? source : undefined,
    exchangeRate: undefined,
    occurredAt: readTime(row, time, undefined),
  };
}

function kindOf(rawKind: string): SettlementKind {
  const name = rawKind.toLowerCase();
  if (Object.hasOwn(KINDS, name)) return KINDS[name] ?? 'other';
  if (name.startsWith('reserve_for_')) return 'reserve';
  return name.startsWith('tax_') ? 'tax' : 'other';
}
