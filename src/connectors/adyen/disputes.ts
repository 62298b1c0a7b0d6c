import { caseText, caseTime, reasonOfCode } from '../kit/dispute-case.ts';
import { isTextLike } from '../kit/provider-answer.ts';
import type { CaseStage, CaseStatus, Dispute, DisputeStage } from '../port/dispute-report.ts';
import { type Item, PSP_REFERENCE } from './answers.ts';
import { fromAdyenAmount } from './money.ts';

type Meaning = {
  readonly stage: DisputeStage;
  readonly of: CaseStage;
  readonly status: CaseStatus;
  /** Movements of the disputed money so far, for an event that reports one. */
  readonly moves?: number;
};

/**
 * The events of disputes. Others are deliberately missing: DISPUTE_DEFENSE_PERIOD_ENDED and INFORMATION_SUPPLIED may be about
 * an inquiry or a chargeback, and NOTIFICATION_OF_FRAUD is no dispute.
 */
export const DISPUTE_EVENTS: Readonly<Record<string, Meaning>> = {
  REQUEST_FOR_INFORMATION: { stage: 'opened', of: 'INQUIRY', status: 'NEEDS_RESPONSE' },
  NOTIFICATION_OF_CHARGEBACK: { stage: 'opened', of: 'CHARGEBACK', status: 'NEEDS_RESPONSE' },
  CHARGEBACK: { stage: 'opened', of: 'CHARGEBACK', status: 'NEEDS_RESPONSE', moves: 1 },
  CHARGEBACK_REVERSED: { stage: 'won', of: 'CHARGEBACK', status: 'WON', moves: 2 },
  ISSUER_RESPONSE_TIMEFRAME_EXPIRED: { stage: 'won', of: 'CHARGEBACK', status: 'WON' },
  SECOND_CHARGEBACK: { stage: 'lost', of: 'CHARGEBACK', status: 'LOST', moves: 3 },
  PREARBITRATION_WON: { stage: 'won', of: 'PRE_ARBITRATION', status: 'WON' },
  PREARBITRATION_LOST: { stage: 'lost', of: 'PRE_ARBITRATION', status: 'LOST' },
  SCHEME_ARBITRATION_WON: { stage: 'won', of: 'ARBITRATION', status: 'WON' },
  SCHEME_ARBITRATION_LOST: { stage: 'lost', of: 'ARBITRATION', status: 'LOST' },
};

/**
 * Reads a dispute; undefined if the item is about none. Its reference is present only along with the payment's, and is the
 * same in all of the dispute's events. The additional data, which the signature does not cover, only inform people: the
 * reason, and until when the merchant can respond.
 */
export function disputeOf(item: Item): Dispute | undefined {
  const meaning = DISPUTE_EVENTS[item.eventCode];
  if (!meaning) return undefined;
  const { pspReference, originalReference, amount, additionalData, eventDate, success } = item;
  const reference = originalReference && isTextLike(pspReference, PSP_REFERENCE) ? pspReference : undefined;
  const { chargebackReasonCode = '', defensePeriodEndsAt } = additionalData;
  return {
    ...{ stage: meaning.stage, reference, money: fromAdyenAmount(amount) },
    moves: success === 'true' ? meaning.moves : undefined,
    case: {
      ...{ stage: meaning.of, status: meaning.status, at: eventDate },
      reason: reasonOfCode(chargebackReasonCode),
      rawReason: caseText(item.reason),
      networkCode: caseText(chargebackReasonCode),
      respondBy: caseTime(defensePeriodEndsAt),
    },
  };
}
