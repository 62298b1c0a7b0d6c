import type { Money } from '#src/money.ts';
import { caseText, caseTime } from '../kit/dispute-case.ts';
import { bodyOf } from '../kit/provider-answer.ts';
import type { Environment } from '../port/account-report.ts';
import type { NotificationReading, NotificationSubject } from '../port/connector.ts';
import type {
  CaseReason,
  CaseStage,
  CaseStatus,
  Dispute,
  DisputeCase,
  DisputeStage,
} from '../port/dispute-report.ts';
import { PAYPAL_ID, type Resource, readResource } from './answers.ts';
import { notFoundOf } from './look-up.ts';
import type { ApiRequest, Send } from './to-provider.ts';

const CAPTURE_LINK = /\/captures\/([A-Z0-9]+)$/;

/** Final stages of disputes, by PayPal's `outcome_code`. */
const ENDS: ReadonlyMap<string, DisputeStage> = new Map([
  ['RESOLVED_BUYER_FAVOUR', 'lost'],
  ['RESOLVED_SELLER_FAVOUR', 'won'],
  ['ACCEPTED', 'lost'],
  ['DENIED', 'won'],
  ['CANCELED_BY_BUYER', 'won'],
  // PayPal pays, and the merchant keeps the money.
  ['RESOLVED_WITH_PAYOUT', 'won'],
  // Closed without a decision: another dispute of the same transaction continues under its own id.
  ['NONE', 'won'],
]);

/**
 * Reads the disputed transactions of a dispute. The dispute's state counts: the event's name may be outdated. A
 * transaction without our id is identified by its capture.
 *
 * @param environment of the connection's account; undefined if it is at no address of PayPal's.
 */
export function disputedSubjects(
  resource: Resource,
  environment: Environment | undefined,
): readonly NotificationSubject[] {
  const { disputed_transactions: transactions } = resource;
  const dispute = disputeOf(resource, environment);
  return transactions.flatMap(({ custom, invoice_number, seller_transaction_id: captureId }) =>
    subjectsOf([custom, invoice_number], captureId, dispute),
  );
}

/**
 * Reads a reversal: PayPal or a bank has taken a capture's money back. The reversal counts as a dispute without an id,
 * and therefore as part of any dispute that PayPal reports. If PayPal reports none, the reversal stays open.
 */
export function reversedSubjects(resource: Resource): readonly NotificationSubject[] {
  const dispute: Dispute = { stage: 'opened', money: resource.amount, moves: 1 };
  return refundedSubjects(resource).map((subject) => ({ ...subject, dispute }));
}

/** Reads the transaction of a refund through the link to its capture: an external refund may lack our id. */
export function refundedSubjects(resource: Resource): readonly NotificationSubject[] {
  const { custom_id, invoice_id, links } = resource;
  const capture = links.find(({ rel }) => rel === 'up');
  const [, captureId = ''] = CAPTURE_LINK.exec(capture?.href ?? '') ?? [];
  return subjectsOf([custom_id, invoice_id], PAYPAL_ID.test(captureId) ? captureId : undefined);
}

/** Returns a transaction's subject by our id, or else by its capture. */
function subjectsOf(
  ids: readonly (string | undefined)[],
  providerPaymentId: string | undefined,
  dispute?: Dispute,
): readonly NotificationSubject[] {
  const reported = dispute && { dispute };
  const transactionId = ids.find((id) => id !== undefined);
  if (transactionId !== undefined) return [{ transactionId, ...reported }];
  return providerPaymentId === undefined ? [] : [{ providerPaymentId, ...reported }];
}

/**
 * Replaces the captures or orders that identify transactions with our transactions, whose ids they contain. A capture
 * or an order that PayPal does not find, or that lacks our id, is not ours.
 */
export async function withOurTransactions(
  reading: NotificationReading,
  objectOf: (id: string) => ApiRequest,
  send: Send,
): Promise<NotificationReading> {
  if (reading.kind !== 'about') return reading;
  const subjects: NotificationSubject[] = [];
  for (const subject of reading.subjects) {
    const { transactionId, providerPaymentId, ...reported } = subject;
    if (transactionId !== undefined || providerPaymentId === undefined) {
      subjects.push(subject);
      continue;
    }
    const result = await send(objectOf(providerPaymentId));
    const object = readResource(bodyOf(result));
    if (!notFoundOf(result) && object.id !== providerPaymentId) {
      return { kind: 'send_again', detail: 'the payment could not be read at the provider' };
    }
    const { custom_id, invoice_id } = object.purchase_units[0] ?? object;
    const ours = custom_id ?? invoice_id;
    if (ours !== undefined) subjects.push({ transactionId: ours, ...reported });
  }
  return subjects.length > 0 ? { ...reading, subjects } : { kind: 'ignored' };
}

function disputeOf(resource: Resource, environment: Environment | undefined): Dispute {
  const stage = stageOf(resource);
  return {
    stage,
    reference: resource.dispute_id,
    // An amount for several transactions is not the amount of any one of them.
    ...(resource.disputed_transactions.length === 1 && {
      money: moneyOf(resource, stage),
      moves: movesOf(resource) || undefined,
    }),
    case: { ...caseOf(resource), link: linkTo(resource.dispute_id, environment) },
  };
}

const CASE_PAGE: Readonly<Record<Environment, string>> = {
  TEST: 'https://www.sandbox.paypal.com/resolutioncenter/view/',
  LIVE: 'https://www.paypal.com/resolutioncenter/view/',
};

function linkTo(id: string | undefined, environment: Environment | undefined): string | undefined {
  return id === undefined || !environment ? undefined : `${CASE_PAGE[environment]}${encodeURIComponent(id)}`;
}

const STAGES: Readonly<Record<string, CaseStage>> = {
  INQUIRY: 'INQUIRY',
  CHARGEBACK: 'CHARGEBACK',
  PRE_ARBITRATION: 'PRE_ARBITRATION',
  ARBITRATION: 'ARBITRATION',
};

/** Meanings of an open dispute's status. With any other, the merchant may have to respond. */
const STATUSES: Readonly<Record<string, CaseStatus>> = {
  WAITING_FOR_BUYER_RESPONSE: 'UNDER_REVIEW',
  UNDER_REVIEW: 'UNDER_REVIEW',
};

const OUTCOMES: Readonly<Record<string, CaseStatus>> = {
  RESOLVED_BUYER_FAVOUR: 'LOST',
  ACCEPTED: 'ACCEPTED',
  RESOLVED_SELLER_FAVOUR: 'WON',
  DENIED: 'WON',
  RESOLVED_WITH_PAYOUT: 'WON',
  CANCELED_BY_BUYER: 'CLOSED',
  NONE: 'CLOSED',
};

const REASONS: Readonly<Record<string, CaseReason>> = {
  MERCHANDISE_OR_SERVICE_NOT_RECEIVED: 'NOT_RECEIVED',
  MERCHANDISE_OR_SERVICE_NOT_AS_DESCRIBED: 'NOT_AS_DESCRIBED',
  UNAUTHORISED: 'FRAUDULENT',
  CREDIT_NOT_PROCESSED: 'CREDIT_NOT_PROCESSED',
  DUPLICATE_TRANSACTION: 'DUPLICATE',
  INCORRECT_AMOUNT: 'INCORRECT_AMOUNT',
  CANCELED_RECURRING_BILLING: 'CANCELED_RECURRING',
};

/** Reads the case. A dispute without a stage counts as a chargeback, which blocks refunds. */
function caseOf(resource: Resource): DisputeCase {
  const { status, reason, dispute_outcome, dispute_life_cycle_stage: stage } = resource;
  const ended = status === 'RESOLVED' ? OUTCOMES[dispute_outcome.outcome_code] : undefined;
  return {
    stage: STAGES[stage] ?? 'CHARGEBACK',
    status: ended ?? STATUSES[status] ?? 'NEEDS_RESPONSE',
    reason: reason === '' ? undefined : (REASONS[reason] ?? 'OTHER'),
    rawReason: caseText(reason),
    fee: feeOf(resource),
    respondBy: caseTime(resource.seller_response_due_date),
    at: caseTime(resource.update_time),
  };
}

/** Returns the fees that the seller has paid for the dispute; undefined if there are none. */
function feeOf({ money_movements: movements }: Resource): Money | undefined {
  const fees = movements.flatMap(({ affected_party, type, reason, amount }) =>
    affected_party === 'SELLER' && type === 'DEBIT' && reason.endsWith('_FEE') && amount ? [amount] : [],
  );
  const [first] = fees;
  if (!first || fees.some(({ currency }) => currency !== first.currency)) return undefined;
  return { ...first, minorUnits: fees.reduce((sum, { minorUnits }) => sum + minorUnits, 0n) };
}

/** Returns the movements of the disputed money so far: from the seller, back to the seller, and so on; fees are no part of them. */
function movesOf({ money_movements: movements }: Resource): number {
  const ofMoney = movements.filter(
    (one) => one.affected_party === 'SELLER' && one.reason === 'DISPUTE_SETTLEMENT',
  );
  const count = (type: string) => ofMoney.filter((one) => one.type === type).length;
  const debits = count('DEBIT');
  return debits + Math.min(debits, count('CREDIT'));
}

/** Returns the stage; a dispute with an unknown outcome code stays open, which blocks refunds. */
function stageOf(resource: Resource): DisputeStage {
  if (resource.status !== 'RESOLVED') return 'opened';
  return ENDS.get(resource.dispute_outcome.outcome_code) ?? 'opened';
}

/** Returns the disputed money, or the lost part of a partly lost dispute. */
function moneyOf(resource: Resource, stage: DisputeStage): Money | undefined {
  const { dispute_amount: disputed, dispute_outcome } = resource;
  const { amount_refunded: refunded } = dispute_outcome;
  if (stage !== 'lost' || !disputed || refunded?.currency !== disputed.currency) return disputed;
  const isPart = refunded.minorUnits > 0n && refunded.minorUnits < disputed.minorUnits;
  return isPart ? refunded : disputed;
}
