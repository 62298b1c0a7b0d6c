import { type AgreedFee, feeOn } from '#src/connectors/port/agreed-fee.ts';
import { formatMoney, type Money } from '#src/money.ts';
import type { DifferenceKind, MatchedRow } from '#src/store/tables/settlement-differences.ts';

/** A difference, with its amounts in words. */
export type Difference = { readonly kind: DifferenceKind; readonly detail: string };

/** The part of a transaction that its lines must agree with. */
export type ComparedTransaction = Pick<
  MatchedRow,
  'type' | 'capture' | 'status' | 'minorUnits' | 'currency' | 'succeededAt' | 'methodType'
>;

/** A line that is matched to the transaction. */
export type ComparedLine = Pick<
  MatchedRow,
  'report' | 'kind' | 'gross' | 'fee' | 'feeParts' | 'settlementCurrency' | 'occurredAt'
> & {
  /** As the payer saw it; undefined if the report does not say. */
  readonly minorUnits: bigint | undefined;
  readonly currency: string | undefined;
};

/**
 * Compares a transaction with its lines: their sum must be its amount, exactly and in its currency. A line without the
 * amount that the payer saw counts with its gross amount if that is in the transaction's currency, and is not compared
 * otherwise. Two reports of one provider about the same money are compared separately.
 *
 * @param terms.windowMs time after a success, at the most, until the provider settles it.
 * @param terms.fees the fees that are agreed with the provider (compareFee).
 */
export function findDifferences(
  transaction: ComparedTransaction,
  lines: readonly ComparedLine[],
  { windowMs, fees }: { readonly windowMs: number; readonly fees: readonly AgreedFee[] },
): Difference[] {
  const found = new Map<DifferenceKind, Difference>();
  const late = findLate(transaction, lines, windowMs);
  if (late) found.set(late.kind, late);
  for (const own of Map.groupBy(lines, ({ report }) => report).values()) {
    const differences = compare(transaction, own);
    // The fee of money that is settled twice is taken twice.
    const isTwice = differences.some(({ kind }) => kind === 'duplicate');
    const ofFee = isTwice || !isMovement(transaction) ? [] : compareFee(transaction, own, fees);
    for (const one of [...differences, ...ofFee]) found.set(one.kind, one);
  }
  return [...found.values()];
}

function compare(transaction: ComparedTransaction, lines: readonly ComparedLine[]): Difference[] {
  const { currency } = transaction;
  const amounts = lines.flatMap((line) => amountOf(line, currency) ?? []);
  const other = amounts.find((amount) => amount.currency !== currency);
  if (other) {
    return [{ kind: 'currency_differs', detail: `settled in ${other.currency}, here ${currency}` }];
  }
  const sum = amounts.reduce((all, { minorUnits }) => all + minorUnits, 0n);
  const settled = { minorUnits: sum, currency };
  // Nothing is comparable, or the provider has taken back what it paid.
  const movesMoney = amounts.length < lines.length || sum !== 0n;
  if (movesMoney && !isMovement(transaction)) {
    const detail = `${inWords(settled)} settled, here ${transaction.type} is ${stateOf(transaction)}`;
    return [{ kind: 'status_differs', detail }];
  }
  if (amounts.length < lines.length || !isMovement(transaction)) return [];
  return compareSum(transaction, lines, settled);
}

function compareSum(
  { type, ...transaction }: ComparedTransaction,
  lines: readonly ComparedLine[],
  settled: Money,
): Difference[] {
  const isOut = type === 'REFUND' || type === 'CHARGEBACK';
  const expected = isOut ? -transaction.minorUnits : transaction.minorUnits;
  if (settled.minorUnits === expected) return [];
  if (type === 'CHARGEBACK' && settled.minorUnits === 0n) return [];
  const here = { minorUnits: expected, currency: transaction.currency };
  const detail = `${inWords(settled)} settled, here ${inWords(here)}`;
  if (type === 'REFUND' && settled.minorUnits === 0n) return [{ kind: 'refund_reversed', detail }];
  const direct = lines.filter(({ kind }) => kind === 'payment' || kind === 'refund');
  const isTwice = direct.length > 1 && settled.minorUnits === expected * BigInt(direct.length);
  return [{ kind: isTwice ? 'duplicate' : 'amount_differs', detail }];
}

/**
 * Compares the fees that the provider kept of a payment or capture with the fee agreed for the settlement currency and the
 * payment method type, for the sum of its lines. Fees on refunds and disputes are not compared, and neither is the fee on
 * money that the provider has taken back.
 *
 * @param fees of the connection; without any, nothing is compared.
 */
function compareFee(
  { type, methodType }: ComparedTransaction,
  lines: readonly ComparedLine[],
  fees: readonly AgreedFee[],
): Difference[] {
  if (fees.length === 0 || (type !== 'PURCHASE' && type !== 'CAPTURE')) return [];
  return [...Map.groupBy(lines, (line) => line.settlementCurrency)].flatMap(([currency, own]) => {
    const gross = own.reduce((sum, line) => sum + line.gross, 0n);
    // A cost is negative.
    const kept = -own.reduce((sum, { fee }) => sum + fee, 0n);
    if (gross <= 0n) return [];
    const words = (minorUnits: bigint) => inWords({ minorUnits, currency });
    const settled = `a fee of ${words(kept)} settled on ${words(gross)}`;
    const fee = chooseFee(fees, currency, methodType);
    if (!fee) {
      return kept === 0n ? [] : [{ kind: 'fee_unexpected', detail: `${settled}, without an agreed fee` }];
    }
    const agreed = feeOn(fee, gross);
    const tolerance = fee.tolerance ?? BigInt(own.reduce((sum, { feeParts }) => sum + feeParts, 0));
    const beyond = kept > agreed ? kept - agreed : agreed - kept;
    if (beyond <= tolerance) return [];
    return [{ kind: 'fee_unexpected', detail: `${settled}, agreed ${words(agreed)}` }];
  });
}

function chooseFee(fees: readonly AgreedFee[], currency: string, type: string): AgreedFee | undefined {
  const own = fees.filter((fee) => fee.currency === currency);
  return own.find((fee) => fee.methodType === type) ?? own.find((fee) => fee.methodType === undefined);
}

function findLate(
  { succeededAt }: ComparedTransaction,
  lines: readonly ComparedLine[],
  windowMs: number,
): Difference | undefined {
  if (!succeededAt) return undefined;
  const times = lines
    .filter(({ kind }) => kind === 'payment' || kind === 'refund')
    .flatMap(({ occurredAt }) => occurredAt?.getTime() ?? []);
  if (times.length === 0) return undefined;
  const first = Math.min(...times);
  if (first - succeededAt.getTime() <= windowMs) return undefined;
  const at = new Date(first).toISOString();
  return { kind: 'late', detail: `settled at ${at}, here succeeded at ${succeededAt.toISOString()}` };
}

function amountOf(line: ComparedLine, currency: string): Money | undefined {
  if (line.minorUnits !== undefined && line.currency !== undefined) {
    return { minorUnits: line.minorUnits, currency: line.currency };
  }
  return line.settlementCurrency === currency ? { minorUnits: line.gross, currency } : undefined;
}

/** A disputed payment's money may be withdrawn before the dispute is lost, or given back after it is won. */
function isMovement({ type, capture, status }: ComparedTransaction): boolean {
  if (type === 'CHARGEBACK') return true;
  return status === 'SUCCEEDED' && type !== 'AUTHORIZE' && (type !== 'PURCHASE' || capture);
}

function stateOf({ type, capture, status }: ComparedTransaction): string {
  return status === 'SUCCEEDED' && type === 'PURCHASE' && !capture ? 'only authorized' : status;
}

/** Returns a difference of a payout whose lines do not add up; undefined for one that does, or is not complete. */
export function checkPayout(sum: {
  readonly remainder: bigint;
  readonly currency: string;
  readonly hasPayout: boolean;
  readonly hasLines: boolean;
}): Difference | undefined {
  const { remainder: minorUnits, currency, hasPayout, hasLines } = sum;
  if (!hasPayout || !hasLines || minorUnits === 0n) return undefined;
  return {
    kind: 'payout_unbalanced',
    detail: `its lines and the payout differ by ${inWords({ minorUnits, currency })}`,
  };
}

/** Names money as differences do: `12.00 USD`. */
export function inWords(money: Money): string {
  return `${formatMoney(money)} ${money.currency}`;
}
