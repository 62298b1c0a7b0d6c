import { Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Money } from '#src/money.ts';
import type { TransactionRow } from './state.ts';

/**
 * A movement of money that has moved before. UNDONE: a transaction failed after it had succeeded; REDONE: it succeeded
 * again; DISPUTE_WITHDRAWN: the provider took the disputed money; DISPUTE_REINSTATED: it gave the money back.
 */
export type MovementCorrection = {
  readonly transactionId: string;
  /** Numbers the transaction's corrections from 1. */
  readonly number: number;
  readonly kind: 'UNDONE' | 'REDONE' | 'DISPUTE_WITHDRAWN' | 'DISPUTE_REINSTATED';
  /** Positive to the merchant, negative from the merchant. */
  readonly minorUnits: bigint;
  readonly currency: string;
};

/**
 * Returns the money that a transaction moves when it succeeds: positive to the merchant, negative from the merchant, 0
 * for an authorization, a cancel, a verification or a dispute.
 */
export function movedBy({
  type,
  capture,
  minorUnits,
}: Pick<TransactionRow, 'type' | 'capture' | 'minorUnits'>): bigint {
  if (type === 'CAPTURE' || (type === 'PURCHASE' && capture)) return minorUnits;
  return type === 'REFUND' ? -minorUnits : 0n;
}

/**
 * Returns the correction that a change of a transaction is: THE place that decides it, for every provider and every kind of
 * report. The transaction's first success is no correction, but the movement itself.
 */
export function correctionsBy(
  transactions: readonly TransactionRow[],
  changed:
    | (Pick<TransactionRow, 'id'> & {
        readonly status: Transaction_Status;
        readonly minorUnits?: bigint | undefined;
      })
    | undefined,
): readonly MovementCorrection[] {
  const before = transactions.find(({ id }) => id === changed?.id);
  if (!changed || before?.sinceSuccessMs === undefined) return [];
  const wasDone = before.status === 'SUCCEEDED';
  const isDone = changed.status === Transaction_Status.SUCCEEDED;
  if (wasDone === isDone) return [];
  const moved = movedBy({ ...before, minorUnits: changed.minorUnits ?? before.minorUnits });
  if (moved === 0n) return [];
  const { id: transactionId, currency, corrections = 0 } = before;
  const own = { transactionId, number: corrections + 1, currency };
  return isDone
    ? [{ ...own, kind: 'REDONE', minorUnits: moved }]
    : [{ ...own, kind: 'UNDONE', minorUnits: -movedBy(before) }];
}

/**
 * Returns the corrections that bring a dispute up to the movements that its provider reports. Reports arrive in any order,
 * so each counts the movements so far, and a later movement implies the earlier ones: money that was given back had been
 * taken.
 *
 * @param before the dispute's transaction; undefined if it is not recorded yet.
 * @param moves the number of movements so far, as in a dispute report.
 */
export function disputeCorrections(
  before: Pick<TransactionRow, 'corrections' | 'correctedMinorUnits'> | undefined,
  transactionId: string,
  moves: number,
  { minorUnits, currency }: Money,
): readonly MovementCorrection[] {
  const corrections: MovementCorrection[] = [];
  let withdrawn = -(before?.correctedMinorUnits ?? 0n);
  for (let number = (before?.corrections ?? 0) + 1; number <= moves; number++) {
    const isTaken = number % 2 === 1;
    const moved = isTaken
      ? ({ kind: 'DISPUTE_WITHDRAWN', minorUnits: -minorUnits } as const)
      : // The dispute's amount may have changed since the money was taken.
        ({ kind: 'DISPUTE_REINSTATED', minorUnits: withdrawn } as const);
    corrections.push({ transactionId, number, currency, ...moved });
    withdrawn -= moved.minorUnits;
  }
  return corrections;
}
