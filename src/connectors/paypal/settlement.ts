import { CURRENCIES } from '#src/money.ts';
import { documentsOf } from '../kit/json-documents.ts';
import {
  balanced,
  createLineKeys,
  exactAmount,
  noAmount,
  ourIdIn,
  timeOf,
} from '../kit/settlement-values.ts';
import {
  type ReadSettlement,
  SettlementFileError,
  type SettlementKind,
  type SettlementLine,
} from '../port/settlement-line.ts';

/** Kinds by the event code, or by its group, the first two digits. */
const KINDS: Readonly<Record<string, SettlementKind>> = {
  T00: 'payment',
  T01: 'fee',
  T02: 'conversion',
  T04: 'payout',
  T1105: 'reserve',
  T1106: 'dispute',
  T1107: 'refund',
  T1108: 'fee',
  T1109: 'fee',
  T1202: 'dispute_reversal',
  T15: 'reserve',
  T21: 'reserve',
};

type Fields = Readonly<Record<string, unknown>>;
type Keys = (parts: readonly unknown[]) => string;

/** Number of characters of a text that is stored. */
const MAX_TEXT = 255;

/**
 * Reads answers of Transaction Search, one after another or in a list. Details of payers are ignored, and so are
 * transactions that are pending or denied, which move no money.
 */
export const readPayPalSettlement: ReadSettlement = async function* (text) {
  const keyOf = createLineKeys();
  let number = 0;
  for await (const answer of documentsOf(text)) {
    const details = (answer as Fields).transaction_details;
    if (!Array.isArray(details)) {
      throw new SettlementFileError(
        'line 1: each answer of Transaction Search must have transaction_details',
      );
    }
    for (const detail of details) {
      number += 1;
      const info = (detail as Fields | null)?.transaction_info;
      if (typeof info !== 'object' || info === null) throw bad(number, 'transaction_info', 'is missing');
      const line = readLine(number, info as Fields, keyOf);
      if (line) yield line;
    }
  }
  if (number === 0) throw new SettlementFileError('line 1: the file has no transaction');
};

function readLine(n: number, info: Fields, keyOf: Keys): SettlementLine | undefined {
  const id = requireText(n, info, 'transaction_id');
  const code = requireText(n, info, 'transaction_event_code');
  const status = requireText(n, info, 'transaction_status');
  if (status === 'P' || status === 'D') return undefined;
  const { minorUnits: gross, currency } = requireMoney(n, info, 'transaction_amount');
  const fee = info.fee_amount === undefined ? undefined : requireMoney(n, info, 'fee_amount');
  if (fee && fee.currency !== currency) throw bad(n, 'fee_amount', `must be in ${currency}`);
  const kind = kindOf(code, gross);
  const time = timeOf(requireText(n, info, 'transaction_initiation_date'), undefined);
  if (time === 'no time') throw bad(n, 'transaction_initiation_date', 'is no time');
  return {
    lineNumber: n,
    key: keyOf([id, code, gross < 0n ? 'DR' : 'CR', currency]),
    report: '',
    kind,
    rawKind: code,
    ourId: ourIdIn(readText(n, info, 'invoice_id'), readText(n, info, 'custom_field')),
    providerReference: id,
    parentReference: readText(n, info, 'paypal_reference_id'),
    disputeReference: undefined,
    payoutReference: kind === 'payout' ? id : undefined,
    amount: { minorUnits: gross, currency },
    ...balanced({ gross, net: gross + (fee?.minorUnits ?? 0n) }),
    settlementCurrency: currency,
    exchangeRate: undefined,
    occurredAt: time,
  };
}

function kindOf(code: string, gross: bigint): SettlementKind {
  if (code === 'T1201') return gross < 0n ? 'dispute' : 'dispute_reversal';
  return KINDS[code] ?? KINDS[code.slice(0, 3)] ?? 'other';
}

function readText(n: number, info: Fields, name: string): string | undefined {
  const value = info[name];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string' || value.length > MAX_TEXT) {
    throw bad(n, name, `must be a text of at most ${MAX_TEXT} characters`);
  }
  return value;
}

function requireText(n: number, info: Fields, name: string): string {
  const value = readText(n, info, name);
  if (value === undefined) throw bad(n, name, 'is missing');
  return value;
}

function requireMoney(n: number, info: Fields, name: string): { minorUnits: bigint; currency: string } {
  const { value, currency_code: currency } = (info[name] ?? {}) as Fields;
  if (typeof currency !== 'string' || !CURRENCIES.has(currency)) {
    throw bad(n, `${name}.currency_code`, 'is no currency');
  }
  const minorUnits = typeof value === 'string' ? exactAmount(value, currency) : undefined;
  if (minorUnits === undefined) throw bad(n, `${name}.value`, noAmount(currency));
  return { minorUnits, currency };
}

function bad(n: number, name: string, problem: string): SettlementFileError {
  return new SettlementFileError(`transaction ${n}, ${name}: ${problem}`);
}
