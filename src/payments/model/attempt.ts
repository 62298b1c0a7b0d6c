import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { type Payment, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/outcome.ts';
import { type Change, methodOf, referenceOf, reopenedSession } from './change.ts';
import { eventOf } from './event.ts';
import { recordOutcome } from './record.ts';
import { approvedPauseS, FIRST_FOLLOW_UP_S } from './schedule.ts';

/** The last attempt of a payment, of which nothing has been learned yet. */
export type OpenAttempt = {
  readonly transactionId: string;
  readonly vaultedToken: string | undefined;
  /** false for an authorization only. */
  readonly capture: boolean;
};

/**
 * Decides what the outcome of an attempt makes of its payment, whose books it leaves alone. Every payment passes here, so
 * nothing is copied.
 *
 * @param record as it stands; it is changed, and part of the change.
 * @param pauseS seconds until the attempt is asked about, if it stays open.
 */
export function attemptChange(
  record: Payment,
  attempt: OpenAttempt,
  outcome: Outcome,
  pauseS: number,
  at: Timestamp,
): Omit<Change, 'books'> & { readonly event: string } {
  const { transactionId: id, vaultedToken } = attempt;
  // By the transaction's status: a payment that is PENDING / AUTHORIZED is approved.
  const { transaction: status } = recordOutcome(record, outcome, vaultedToken, at);
  return {
    record,
    transaction: { id, status, reference: referenceOf(outcome) },
    event: eventOf(record),
    method: methodOf(vaultedToken, status),
    reopens: reopenedSession(record),
    retakes: undefined,
    ...nextCheck(record, attempt, outcome, pauseS),
    parentCheckInS: undefined,
  };
}

/**
 * Returns when the attempt is next asked about: it stays open while its provider can tell more, which a look-up learns;
 * else it is checked if its payer has yet to act, or its authorization may lapse.
 */
function nextCheck(
  record: Payment,
  attempt: OpenAttempt,
  outcome: Outcome,
  pauseS: number,
): Pick<Change, 'isOpen' | 'checkInS'> {
  switch (outcome.kind) {
    case 'unknown':
    case 'to_complete':
      return { isOpen: true, checkInS: pauseS };
    case 'pending':
      // A pending wallet waits for its payer, whom no look-up can hurry.
      return { isOpen: record.transactions?.category === Transaction_Category.CARD, checkInS: pauseS };
    case 'redirect':
      return { isOpen: false, checkInS: FIRST_FOLLOW_UP_S };
    default:
      return { isOpen: false, checkInS: approvedPauseS(attempt, outcome) };
  }
}
