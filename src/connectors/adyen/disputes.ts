import { caseText, caseTime, reasonOfCode } from '../kit/dispute-case.ts';
import { isTextLike } from '../kit/provider-answer.ts';
import type { Environment } from '../port/account-report.ts';
import type { CaseStage, CaseStatus, Dispute, DisputeStage } from '../port/dispute-report.ts';
import { type Item, PSP_REFERENCE } from './answers.ts';
import { fromAdyenAmount } from './money.ts';

type Meaning = {
  readonly stage: DisputeStage;
  /** undefined: the event may be about a case at any stage. */
  readonly of?: CaseStage;
  /** undefined: the event says nothing about the status. */
  readonly status?: CaseStatus;
  /** Movements of the disputed money so far, for an event that reports one. */
  readonly moves?: number;
  /** The event follows another one of its dispute, whose stage it does not say. */
  readonly isAddition?: true;
};

const needsResponse = (of: CaseStage): Meaning => ({ stage: 'opened', of, status: 'NEEDS_RESPONSE' });
const underReview = (of: CaseStage): Meaning => ({ stage: 'opened', of, status: 'UNDER_REVIEW' });
const won = (of: CaseStage): Meaning => ({ stage: 'won', of, status: 'WON' });
const lost = (of: CaseStage): Meaning => ({ stage: 'lost', of, status: 'LOST' });

/** The events of disputes. NOTIFICATION_OF_FRAUD is missing: it is a warning, and no dispute. */
export const DISPUTE_EVENTS: Readonly<Record<string, Meaning>> = {
  REQUEST_FOR_INFORMATION: needsResponse('INQUIRY'),
  NOTIFICATION_OF_CHARGEBACK: needsResponse('CHARGEBACK'),
  DISPUTE_OPENED_WITH_CHARGEBACK: needsResponse('CHARGEBACK'),
  CHARGEBACK: { ...needsResponse('CHARGEBACK'), moves: 1 },
  INFORMATION_SUPPLIED: { stage: 'opened', status: 'UNDER_REVIEW', isAddition: true },
  ISSUER_COMMENTS: { stage: 'opened', isAddition: true },
  // The merchant did not respond in time, or accepted. Which of the two is not signed.
  DISPUTE_DEFENSE_PERIOD_ENDED: { stage: 'lost', status: 'EXPIRED', isAddition: true },
  CHARGEBACK_REVERSED: { ...won('CHARGEBACK'), moves: 2 },
  ISSUER_RESPONSE_TIMEFRAME_EXPIRED: won('CHARGEBACK'),
  // It may follow an arbitration, and then the case keeps its stage.
  SECOND_CHARGEBACK: { stage: 'lost', status: 'LOST', moves: 3 },
  PREARBITRATION_OPEN: needsResponse('PRE_ARBITRATION'),
  PREARBITRATION_DECLINED: underReview('PRE_ARBITRATION'),
  // Nothing is left to do, but only the second chargeback says that the money is lost.
  PREARBITRATION_ACCEPTED: underReview('PRE_ARBITRATION'),
  PREARBITRATION_ISSUER_WITHDRAWN: won('PRE_ARBITRATION'),
  PREARBITRATION_WON: won('PRE_ARBITRATION'),
  PREARBITRATION_LOST: lost('PRE_ARBITRATION'),
  SCHEME_ARBITRATION: underReview('ARBITRATION'),
  SCHEME_ARBITRATION_WON: won('ARBITRATION'),
  SCHEME_ARBITRATION_LOST: lost('ARBITRATION'),
};

const PAYMENT_PAGE = 'adyen.com/ca/ca/accounts/showTx.shtml';

/**
 * Reads a dispute; undefined if the item is about none. Its reference is present only along with the payment's, and is the
 * same in all of the dispute's events. The additional data, which the signature does not cover, only inform people: the
 * reason, and until when the merchant can respond.
 *
 * @param environment of the connection's account; undefined if it is at no address of Adyen's.
 */
export function disputeOf(item: Item, environment: Environment | undefined): Dispute | undefined {
  const meaning = DISPUTE_EVENTS[item.eventCode];
  if (!meaning) return undefined;
  const { pspReference, originalReference, amount, additionalData, eventDate, success } = item;
  const reference = originalReference && isTextLike(pspReference, PSP_REFERENCE) ? pspReference : undefined;
  const { chargebackReasonCode = '', defensePeriodEndsAt } = additionalData;
  return {
    ...{ stage: meaning.stage, reference, money: fromAdyenAmount(amount) },
    moves: success === 'true' ? meaning.moves : undefined,
    isAddition: meaning.isAddition,
    case: {
      ...{ stage: meaning.of, status: meaning.status, at: eventDate },
      reason: reasonOfCode(chargebackReasonCode),
      rawReason: caseText(item.reason),
      networkCode: caseText(chargebackReasonCode),
      respondBy: caseTime(defensePeriodEndsAt),
      link: linkTo(originalReference, environment),
    },
  };
}

/** Returns the page of a disputed payment in the Customer Area, which shows its disputes. */
function linkTo(payment: string, environment: Environment | undefined): string | undefined {
  if (!environment || !isTextLike(payment, PSP_REFERENCE)) return undefined;
  return `https://ca-${environment.toLowerCase()}.${PAYMENT_PAGE}?pspReference=${payment}&txType=Payment`;
}
