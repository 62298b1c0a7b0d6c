import type { PaymentOutcome } from '#src/store/tables/outcome-of-payment.ts';

/** Numbers of payments by outcome, and of what happened to them since. */
export type Sum = Readonly<Record<PaymentOutcome, number>> & {
  readonly refunds: number;
  readonly disputes: number;
};

/** A row of totals, as far as payments are counted. */
export type Counted = {
  readonly outcome: PaymentOutcome;
  readonly payments: number;
  readonly refunds?: number;
  readonly disputes?: number;
};

/** Adds up rows of totals. */
export function sumOf(rows: readonly Counted[]): Sum {
  const sum = { APPROVED: 0, UNKNOWN: 0, DECLINED: 0, FAILED: 0, OPEN: 0, refunds: 0, disputes: 0 };
  for (const { outcome, payments, refunds = 0, disputes = 0 } of rows) {
    sum[outcome] += payments;
    sum.refunds += refunds;
    sum.disputes += disputes;
  }
  return sum;
}

/** Returns the number of payments whose outcome is known: the denominator of the approval rate. */
export function decided({ APPROVED, DECLINED, FAILED }: Sum): number {
  return APPROVED + DECLINED + FAILED;
}

/** Returns the number of payments. */
export function total(sum: Sum): number {
  return decided(sum) + sum.UNKNOWN + sum.OPEN;
}
