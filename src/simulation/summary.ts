import type { Outcome } from '#src/connectors/outcome.ts';
import { formatMoney } from '#src/money.ts';
import type { DayResult, PaymentEnd } from './run-day.ts';

/** Figures of a day. */
export type Summary = {
  /** Approved share of all payments, 0 to 100. */
  readonly approvedPercent: number;
  /** Share of payments whose outcome was unknown when the request ended. */
  readonly pendingPercent: number;
  /** Share of payments that no provider answered: none could be reached, or no route took the payment. */
  readonly errorPercent: number;
  readonly attemptsPerPayment: number;
  readonly meanWaitS: number;
  readonly p99WaitS: number;
  /** The providers' fees, in percent of what they approved; undefined when nothing was approved. */
  readonly costPercent: number | undefined;
  readonly openings: number;
  /** Approved percent of the payments of each hour; undefined for an hour without any. */
  readonly approvedByHour: readonly (number | undefined)[];
};

/** Sums up a day that had at least one payment. */
export function summaryOf({ ends, openings }: DayResult): Summary {
  const waits = ends.map(({ waitedMs }) => waitedMs).sort((a, b) => a - b);
  const approved = ends.filter((end) => outcomeOf(end) === 'approved');
  const volume = sum(approved.map(({ payment }) => Number(formatMoney(payment.money))));
  return {
    approvedPercent: percentOf(ends, ['approved']),
    pendingPercent: percentOf(ends, ['unknown']),
    errorPercent: percentOf(ends, ['not_sent', undefined]),
    attemptsPerPayment: sum(ends.map(({ attempts }) => attempts.length)) / ends.length,
    meanWaitS: sum(waits) / ends.length / 1000,
    p99WaitS: (waits[Math.ceil(waits.length * 0.99) - 1] ?? 0) / 1000,
    costPercent: volume > 0 ? (100 * sum(ends.map(({ cost }) => cost))) / volume : undefined,
    openings,
    approvedByHour: byHour(ends),
  };
}

/**
 * Returns a payment's outcome at the end of its request, as its status shows it: a payment that one provider declined
 * and that could not be sent to another is declined. undefined if no route took it.
 */
export function outcomeOf({ attempts }: PaymentEnd): Outcome['kind'] | undefined {
  const last = attempts.at(-1)?.outcome;
  const isDeclined = last === 'not_sent' && attempts.some(({ outcome }) => outcome === 'declined');
  return isDeclined ? 'declined' : last;
}

function byHour(ends: DayResult['ends']): (number | undefined)[] {
  const hours = Map.groupBy(ends, ({ hour }) => hour);
  return Array.from({ length: 24 }, (_, hour) => {
    const inHour = hours.get(hour);
    return inHour && percentOf(inHour, ['approved']);
  });
}

function percentOf(ends: DayResult['ends'], outcomes: readonly unknown[]): number {
  return (100 * ends.filter((end) => outcomes.includes(outcomeOf(end))).length) / ends.length;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
