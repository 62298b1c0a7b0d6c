import { currencyDigits, formatMoney } from '#src/money.ts';
import { DISPUTE_FEE } from './disputes.ts';
import type { Ledger } from './ledger.ts';
import type { LedgerEntry, Move, MoveType } from './ledger-entry.ts';

/** Period that a payout covers. */
const PAYOUT_MS = 10_000;
/** Time until no move before is written any more. */
const WRITTEN_MS = 10_000;
/** Time by which a move that is to be settled late is settled later. */
const LATE_MS = 60_000;
/** Fee on money that is taken: 2.9 % and 30 minor units, as config/sandbox-catalogue.yaml has it. */
const FEE = { perThousand: 29n, fixed: 30n };
/** Currencies that are settled in another one, at a fixed rate in millionths. */
const CONVERTED: Readonly<Record<string, { readonly to: string; readonly millionths: bigint }>> = {
  COP: { to: 'USD', millionths: 250n },
  CLP: { to: 'USD', millionths: 1_000n },
};

const COLUMNS = [
  ...['movement', 'type', 'created_at', 'payment', 'operation', 'transaction', 'amount', 'currency'],
  ...['gross', 'fee', 'net', 'settlement_currency', 'exchange_rate', 'payout'],
] as const;

type Line = Readonly<Record<(typeof COLUMNS)[number], string>>;

/** The account whose report it is, as its calls name it. */
export type ReportedAccount = { readonly acquirer: string; readonly account: string };

/** The account of calls that name none. */
export const SANDBOX_ACCOUNT: ReportedAccount = { acquirer: 'ONE', account: 'acct_sandbox' };

/**
 * Writes an account's settlement report: a CSV file with a line for every move of money and every payout, since the
 * beginning. Payouts cover ten seconds each, and the report ends with the last one that is complete, which was ten to
 * twenty seconds ago. README.md in this directory describes the columns.
 */
export async function* writeSettlementReport(
  ledger: Pick<Ledger, 'entriesAfter'>,
  of: ReportedAccount,
): AsyncGenerator<string, void> {
  const endMs = Math.floor((Date.now() - WRITTEN_MS) / PAYOUT_MS) * PAYOUT_MS;
  const payouts = new Map<string, Payout>();
  yield textOf(COLUMNS);
  for (let after: string | undefined = ''; after !== undefined; ) {
    const entries = await ledger.entriesAfter(after);
    yield entries.flatMap((entry) => linesOf(entry, of, { endMs, payouts })).join('');
    after = entries.at(-1)?.id;
  }
  for (const payout of payouts.values()) yield textOf(cellsOf(payoutLine(payout)));
}

type Payout = { readonly id: string; readonly atMs: number; readonly currency: string; net: bigint };

function linesOf(
  entry: LedgerEntry,
  { acquirer, account }: ReportedAccount,
  report: { readonly endMs: number; readonly payouts: Map<string, Payout> },
): string[] {
  const { moves = [], settleWrong } = entry.details;
  if (moves.length === 0 || entry.acquirer !== acquirer || settleWrong === 'missing') return [];
  if (JSON.parse(entry.answer).account !== account) return [];
  return moves.flatMap((move, n) => {
    const atMs = move.atMs + (settleWrong === 'late' ? LATE_MS : 0);
    if (atMs >= report.endMs) return [];
    const money = moneyOf(entry, move, n);
    const payout = payoutOf(report.payouts, atMs, money.currency);
    const times = settleWrong === 'twice' ? 2 : 1;
    if (settleWrong !== 'payout') payout.net += money.net * BigInt(times);
    return Array.from({ length: times }, (_, time) => {
      const movement = `${entry.id}/${n + 1}${time === 0 ? '' : `/${time + 1}`}`;
      const line = { ...namesOf(entry), ...amountsOf(entry, move, money), movement, type: move.type };
      return textOf(cellsOf({ ...line, created_at: new Date(atMs).toISOString(), payout: payout.id }));
    });
  });
}

function payoutOf(payouts: Map<string, Payout>, atMs: number, currency: string): Payout {
  const untilMs = (Math.floor(atMs / PAYOUT_MS) + 1) * PAYOUT_MS;
  const id = `po_${new Date(untilMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')}_${currency}`;
  const known = payouts.get(id);
  if (known) return known;
  const payout = { id, atMs: untilMs, currency, net: 0n };
  payouts.set(id, payout);
  return payout;
}

/** The ids of a line. Those of an unknown payment are the last ones, changed. */
function namesOf({ id, parentId, idempotencyKey, details }: LedgerEntry) {
  if (details.settleWrong === 'unknown') {
    return { payment: `${id}-unknown`, operation: `${id}-unknown`, transaction: '' };
  }
  return { payment: parentId ?? id, operation: id, transaction: idempotencyKey };
}

type Settled = {
  readonly gross: bigint;
  readonly fee: bigint;
  readonly net: bigint;
  readonly currency: string;
};

/** The money that a move adds to the merchant's balance, in minor units. */
function moneyOf(entry: LedgerEntry, { type }: Move, n: number): Settled {
  const { currency } = entry;
  const { to: settled = currency } = CONVERTED[currency] ?? {};
  const gross = converted(signedAmount(entry, type), currency);
  const hasFee = type === 'payment' || type === 'capture';
  const times = entry.details.settleWrong === 'fee' ? 2n : 1n;
  const cost = hasFee ? ((gross * FEE.perThousand + 500n) / 1_000n + FEE.fixed) * times : 0n;
  const fee = type === 'dispute' && n === 0 ? -converted(BigInt(DISPUTE_FEE), currency) : -cost;
  return { gross, fee, net: gross + fee, currency: settled };
}

function signedAmount({ amount, details }: LedgerEntry, type: MoveType): bigint {
  const size = BigInt(amount) + (details.settleWrong === 'amount' ? 1n : 0n);
  return type === 'refund' || type === 'dispute' ? -size : size;
}

function converted(minorUnits: bigint, currency: string): bigint {
  const rate = CONVERTED[currency];
  if (!rate) return minorUnits;
  const unit = (code: string) => 10n ** BigInt(currencyDigits(code) ?? 0);
  return (minorUnits * rate.millionths * unit(rate.to)) / (1_000_000n * unit(currency));
}

function amountsOf(entry: LedgerEntry, { type }: Move, settled: Settled) {
  const { currency, details } = entry;
  const other = currency === 'EUR' ? 'USD' : 'EUR';
  const shown = details.settleWrong === 'currency' ? other : currency;
  const decimal = (minorUnits: bigint) => formatMoney({ minorUnits, currency: settled.currency });
  const rate = CONVERTED[currency];
  return {
    amount: formatMoney({ minorUnits: signedAmount(entry, type), currency: shown }),
    currency: shown,
    ...{ gross: decimal(settled.gross), fee: decimal(settled.fee), net: decimal(settled.net) },
    settlement_currency: settled.currency,
    exchange_rate: rate ? (Number(rate.millionths) / 1_000_000).toString() : '',
  };
}

function payoutLine({ id, atMs, currency, net }: Payout): Line {
  const paid = formatMoney({ minorUnits: -net, currency });
  return {
    ...{ movement: id, type: 'payout', created_at: new Date(atMs).toISOString(), payment: '', operation: '' },
    ...{
      transaction: '',
      amount: paid,
      currency,
      gross: paid,
      fee: formatMoney({ minorUnits: 0n, currency }),
    },
    ...{ net: paid, settlement_currency: currency, exchange_rate: '', payout: id },
  };
}

function cellsOf(line: Line): string[] {
  return COLUMNS.map((column) => line[column]);
}

/** Writes a line of RFC 4180. */
function textOf(cells: readonly string[]): string {
  const quoted = cells.map((cell) => (/[",]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell));
  return `${quoted.join(',')}\r\n`;
}
