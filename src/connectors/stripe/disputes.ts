import type { JsonValue } from '@bufbuild/protobuf';
import type Stripe from 'stripe';
import { caseText, caseTime } from '../kit/dispute-case.ts';
import { asIs, type FieldsOf, fields, listOf, type Read, textOf } from '../kit/provider-answer.ts';
import type { CaseReason, CaseStage, CaseStatus, Dispute, DisputeStage } from '../port/dispute-report.ts';
import { moneyOf } from './answers.ts';
import { fromStripeMoney } from './money.ts';

const DISPUTE_ID = /^[a-z]{2}_[A-Za-z0-9_]{1,200}$/;

/** The fields of a dispute that no other object has. */
export const DISPUTE_FIELDS = {
  reason: textOf,
  network_reason_code: textOf,
  evidence_details: fields({ due_by: asIs }),
  balance_transactions: listOf(fields({ amount: asIs, fee: asIs, currency: asIs })),
} satisfies FieldsOf<Stripe.Dispute>;

const readDispute = fields({
  ...DISPUTE_FIELDS,
  ...{ id: textOf, status: textOf, amount: asIs, currency: asIs },
});

type StripeDispute = Read<typeof readDispute>;

/** Meanings of a dispute's status. An inquiry has a warning, and a prevented dispute was settled before it took money. */
const MEANINGS: Readonly<Record<string, { stage: DisputeStage; of: CaseStage; status: CaseStatus }>> = {
  warning_needs_response: { stage: 'opened', of: 'INQUIRY', status: 'NEEDS_RESPONSE' },
  warning_under_review: { stage: 'opened', of: 'INQUIRY', status: 'UNDER_REVIEW' },
  warning_closed: { stage: 'won', of: 'INQUIRY', status: 'CLOSED' },
  prevented: { stage: 'won', of: 'PRE_DISPUTE', status: 'CLOSED' },
  needs_response: { stage: 'opened', of: 'CHARGEBACK', status: 'NEEDS_RESPONSE' },
  under_review: { stage: 'opened', of: 'CHARGEBACK', status: 'UNDER_REVIEW' },
  lost: { stage: 'lost', of: 'CHARGEBACK', status: 'LOST' },
  won: { stage: 'won', of: 'CHARGEBACK', status: 'WON' },
};

const REASONS: Readonly<Record<string, CaseReason>> = {
  credit_not_processed: 'CREDIT_NOT_PROCESSED',
  debit_not_authorized: 'FRAUDULENT',
  duplicate: 'DUPLICATE',
  fraudulent: 'FRAUDULENT',
  product_not_received: 'NOT_RECEIVED',
  product_unacceptable: 'NOT_AS_DESCRIBED',
  subscription_canceled: 'CANCELED_RECURRING',
  unrecognized: 'UNRECOGNIZED',
};

/**
 * Reads a dispute from an event about it.
 *
 * @param created the event's time in Unix seconds.
 * @returns undefined for a status that is unknown.
 */
export function disputeOf(
  type: string,
  created: JsonValue | undefined,
  isLive: boolean,
  object: StripeDispute,
): Dispute | undefined {
  const meaning = MEANINGS[object.status];
  if (!meaning) return undefined;
  const money = moneyOf(object);
  const reference = DISPUTE_ID.test(object.id) ? object.id : undefined;
  return {
    ...{ stage: meaning.stage, reference, money: money && fromStripeMoney(money) },
    moves: movesOf(type, object) || undefined,
    case: {
      ...{ stage: meaning.of, status: meaning.status },
      reason: object.reason === '' ? undefined : (REASONS[object.reason] ?? 'OTHER'),
      rawReason: caseText(object.reason),
      networkCode: caseText(object.network_reason_code),
      fee: feeOf(object),
      respondBy: caseTime(object.evidence_details.due_by),
      link: reference && `https://dashboard.stripe.com/${isLive ? '' : 'test/'}disputes/${reference}`,
      at: caseTime(created),
    },
  };
}

/** Movements of the disputed money so far, by the events that report one. */
const MOVES: Readonly<Record<string, number>> = {
  'charge.dispute.funds_withdrawn': 1,
  'charge.dispute.funds_reinstated': 2,
};

/**
 * Returns the movements of the disputed money so far: a dispute lists a balance transaction for each. An event that reports
 * a movement may arrive before its balance transaction is listed.
 */
function movesOf(type: string, { balance_transactions: listed }: StripeDispute): number {
  const moved = listed.filter(({ amount }) => typeof amount === 'number' && amount !== 0);
  return Math.max(moved.length, MOVES[type] ?? 0);
}

/** Returns the sum of the fees, which are in the settlement currency; undefined if there are none. */
function feeOf({ balance_transactions: listed }: StripeDispute): Dispute['money'] {
  const fees = listed.flatMap(({ fee, currency }) => {
    const money = moneyOf({ amount: fee, currency });
    const own = money && fromStripeMoney(money);
    return own ? [own] : [];
  });
  const [first] = fees;
  if (!first || fees.some(({ currency }) => currency !== first.currency)) return undefined;
  return { ...first, minorUnits: fees.reduce((sum, { minorUnits }) => sum + minorUnits, 0n) };
}
