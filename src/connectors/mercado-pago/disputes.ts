import { caseText, caseTime, reasonOfCode } from '../kit/dispute-case.ts';
import { isUuid, readMoney } from '../kit/provider-answer.ts';
import type { ShownAs } from '../kit/provider-client.ts';
import type { NotificationSubject } from '../port/connector.ts';
import type { CaseReason, CaseStatus, Dispute, DisputeCase } from '../port/dispute-report.ts';
import type { Chargeback, Payment } from './answers.ts';
import { isAnotherAccount } from './from-provider.ts';

/**
 * Reads the transaction of a genuine notification's payment; [] if it is not ours.
 *
 * @param chargeback the chargeback that the notification is about: the payment's state decides what happened, and the
 *   chargeback says more about the case.
 */
export function notifiedSubjects(
  payment: Payment,
  shownAs: ShownAs,
  chargeback?: Chargeback,
): readonly NotificationSubject[] {
  const { external_reference: transactionId, collector_id } = payment;
  // Other software on the same account creates payments without one of our ids.
  if (!isUuid(transactionId) || isAnotherAccount(collector_id, { shownAs })) return [];
  const { id: providerPaymentId } = payment;
  const subject = { transactionId, ...(providerPaymentId && { providerPaymentId }) };
  const dispute = disputeOf(payment, chargeback);
  if (!dispute) return [subject];
  const disputed = { ...subject, dispute };
  // The end of a chargeback also ends a mediation, which the look-up reports.
  return dispute.stage === 'won' ? [disputed, subject] : [disputed];
}

function disputeOf(payment: Payment, chargeback?: Chargeback): Dispute | undefined {
  const { status, status_detail: detail } = payment;
  if (status === 'in_mediation') {
    return { stage: 'opened', reference: disputeId('mediation', payment), case: MEDIATION };
  }
  if (status !== 'charged_back') return undefined;
  const stage = detail === 'in_process' ? 'opened' : detail === 'reimbursed' ? 'won' : 'lost';
  const ended = stage === 'opened' ? undefined : { status: ENDS[stage] };
  return {
    ...{ stage, reference: disputeId('chargeback', payment), moves: MOVES[detail] },
    money: chargeback && moneyOf(chargeback),
    // A payment in process says nothing about its case, which may be under review by now.
    case: chargeback ? { ...caseOf(chargeback), ...ended } : ended,
  };
}

const ENDS = { won: 'WON', lost: 'LOST' } as const;

/** Mercado Pago itself decides who gets the money of a mediation, so it counts as a chargeback. */
const MEDIATION = { status: 'NEEDS_RESPONSE', rawReason: 'in_mediation' } as const;

/**
 * Movements of the disputed money so far, by the status detail of a chargeback. While it is in process, Mercado Pago does
 * not say whether it has taken the money.
 */
const MOVES: Readonly<Record<string, number>> = { settled: 1, reimbursed: 2 };

const REASONS: Readonly<Record<string, CaseReason>> = { fraud: 'FRAUDULENT' };

/** Reads what a chargeback says about its case, in the form of the documentation or of the provider's own library. */
function caseOf(chargeback: Chargeback): DisputeCase {
  const { reason, reason_id: code, date_last_updated: updated, last_modified: modified } = chargeback;
  const other = reason === '' ? undefined : 'OTHER';
  return {
    status: openStatusOf(chargeback),
    reason: reasonOfCode(code) ?? REASONS[reason] ?? other,
    rawReason: caseText(reason),
    networkCode: caseText(code),
    respondBy: caseTime(chargeback.date_documentation_deadline),
    at: caseTime(updated) ?? caseTime(modified),
  };
}

const UNDER_REVIEW: ReadonlySet<string> = new Set(['review_pending', 'valid']);

/** Returns the status of a chargeback that is in process. With any other answer, the merchant may have to respond. */
function openStatusOf(chargeback: Chargeback): CaseStatus {
  const { status, documentation_required, documentation_status } = chargeback;
  const isReviewed = status === 'in_review' || UNDER_REVIEW.has(documentation_status);
  return isReviewed || documentation_required === false ? 'UNDER_REVIEW' : 'NEEDS_RESPONSE';
}

/** Returns the disputed money. An amount for several payments is not the amount of any one of them. */
function moneyOf({ paymentIds, amount, currency, currency_id }: Chargeback) {
  return paymentIds.length === 1 ? readMoney(amount, currency ?? currency_id, 'decimal') : undefined;
}

/**
 * Returns the disputes that have ended according to a payment's state: the merchant or the payer got the money back.
 */
export function endedDisputesOf(payment: Payment): readonly Dispute[] {
  const isWon = payment.status === 'approved' || disputeOf(payment)?.stage === 'won';
  if (!isWon && payment.status !== 'refunded') return [];
  const stage = isWon ? 'won' : 'lost';
  const ended = DISPUTE_KINDS.map((kind) => ({ stage, reference: disputeId(kind, payment) }) as const);
  const current = disputeOf(payment);
  return ended.map((one) => (one.reference === current?.reference ? { ...one, moves: current?.moves } : one));
}

const DISPUTE_KINDS = ['mediation', 'chargeback'] as const;

/**
 * Returns an id for a dispute, since a payment names none, and a chargeback's own id would make it another dispute. A
 * payment may have a dispute of each kind.
 */
function disputeId(kind: (typeof DISPUTE_KINDS)[number], { id: paymentId }: Payment): string | undefined {
  return paymentId && `${kind}/${paymentId}`;
}
