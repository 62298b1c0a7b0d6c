import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { type Change, methodOf, NOTHING_ELSE, namesOf, reopenedSession } from './change.ts';
import { eventOf } from './event.ts';
import { localDetailOf, recordOutcome } from './record.ts';
import { approvedPauseS, FIRST_CHECK_S } from './schedule.ts';
import type { PaymentRow, TransactionRow } from './state.ts';

/** The last attempt of a payment. */
export type LastAttempt = Pick<
  TransactionRow,
  'id' | 'vaultedToken' | 'capture' | 'awaitsPayer' | 'methodKind'
> &
  Pick<PaymentRow, 'cardFingerprint'>;

/**
 * Decides how the outcome of an attempt changes its payment; the books stay the same. Every payment takes this path, so
 * nothing is copied.
 *
 * @param record the current record, whose last transaction is the attempt. It is modified and becomes part of the
 * change.
 * @param pauseS seconds until the attempt's next check, if it stays open.
 */
export function attemptChange(
  record: Payment,
  attempt: LastAttempt,
  outcome: Outcome,
  pauseS: number,
  at: Timestamp,
): Omit<Change, 'books'> & { readonly event: string } {
  const { id, vaultedToken } = attempt;
  const expected = localDetailOf(record.paymentMethod?.paymentMethodDetail)?.expiresAt;
  // The transaction's status decides, since a payment in PENDING / AUTHORIZED is approved.
  const { transaction: status } = recordOutcome(record, outcome, attempt, at);
  return {
    ...NOTHING_ELSE,
    record,
    transaction: {
      id,
      status,
      ...namesOf(outcome),
      awaitsPayer: awaitsPayer(attempt, outcome),
      payerUntil: payerUntil(outcome, expected),
      isFenced: isStillOpen(outcome),
      checkInS: checkInS(attempt, outcome, pauseS),
    },
    event: eventOf(record),
    method: methodOf(vaultedToken, status),
    reopens: reopenedSession(record),
  };
}

/** Returns the provider's end of the payer's time, unless it is the expected one. Providers count in whole seconds. */
function payerUntil(outcome: Outcome, expected: Timestamp | undefined): Date | undefined {
  if (outcome.kind !== 'awaits_payer' || !outcome.until) return undefined;
  const isExpected = expected && Math.abs(outcome.until.getTime() - timestampMs(expected)) <= 1_000;
  return isExpected ? undefined : outcome.until;
}

/**
 * Returns true for an outcome that the provider may still change. `awaits_payer` is a known outcome.
 */
export function isStillOpen({ kind }: Outcome): boolean {
  return kind === 'unknown' || kind === 'to_complete' || kind === 'pending';
}

/** Returns true if an attempt awaits its payer. A pending wallet payment does, and no check can speed it up. */
function awaitsPayer({ awaitsPayer: before, methodKind }: LastAttempt, outcome: Outcome): boolean {
  if (outcome.kind === 'awaits_payer') return true;
  return isStillOpen(outcome) && (before || (outcome.kind === 'pending' && methodKind !== 'CARD'));
}

function checkInS(attempt: LastAttempt, outcome: Outcome, pauseS: number): number | undefined {
  if (outcome.kind === 'awaits_payer') return FIRST_CHECK_S;
  return isStillOpen(outcome) ? pauseS : approvedPauseS(attempt, outcome);
}
