import type { Money } from '#src/money.ts';

/** A provider's report on a dispute. */
export type Dispute = {
  readonly stage: DisputeStage;
  /** The provider's id of the dispute, because a payment may be disputed again. undefined: the provider gives no id. */
  readonly reference?: string | undefined;
  /** The disputed amount, which may be part of the payment. undefined: the provider does not report it. */
  readonly money?: Money | undefined;
  /**
   * Number of times that the provider has moved the disputed money so far, if it says. 1: it has taken the money; 2: it has given the
   * money back; 3: it has taken the money again.
   */
  readonly moves?: number | undefined;
  /**
   * true: the report is about a dispute that is reported by itself, at whatever stage it is by now. It waits until that dispute is
   * recorded, and without a `status` leaves its status as it is.
   */
  readonly isAddition?: true | undefined;
  /** More about the case. Absent: the report says no more than its stage. */
  readonly case?: DisputeCase | undefined;
};

/** The normal form of a case at a provider. What is absent keeps its earlier value. */
export type DisputeCase = {
  readonly stage?: CaseStage | undefined;
  readonly status?: CaseStatus | undefined;
  readonly reason?: CaseReason | undefined;
  /** The reason in the provider's words, at most MAX_REASON characters. */
  readonly rawReason?: string | undefined;
  /** The card scheme's reason code, such as 10.4, at most MAX_REASON characters. */
  readonly networkCode?: string | undefined;
  /** The provider's fee so far. */
  readonly fee?: Money | undefined;
  /** Until when the merchant can respond. */
  readonly respondBy?: Date | undefined;
  /** URL of the case, or of its payment, at the provider's dashboard. */
  readonly link?: string | undefined;
  /** When the provider last changed the case, as far as it says. */
  readonly at?: Date | undefined;
};

/** Maximum length of a reason in the provider's words. */
export const MAX_REASON = 100;

/** Stages of cases, in their order. INQUIRY and PRE_DISPUTE take no money. */
export const CASE_STAGES = [
  'INQUIRY',
  'PRE_DISPUTE',
  'CHARGEBACK',
  'PRE_ARBITRATION',
  'ARBITRATION',
] as const;
/** Stage of a case. */
export type CaseStage = (typeof CASE_STAGES)[number];

/** Status of a case. The first two are open. */
export type CaseStatus =
  | 'NEEDS_RESPONSE'
  | 'UNDER_REVIEW'
  | 'WON'
  | 'LOST'
  | 'ACCEPTED'
  | 'EXPIRED'
  | 'CLOSED';

/** Reason of a dispute. */
export type CaseReason =
  | ('FRAUDULENT' | 'NOT_RECEIVED' | 'NOT_AS_DESCRIBED' | 'CREDIT_NOT_PROCESSED' | 'DUPLICATE')
  | ('CANCELED_RECURRING' | 'INCORRECT_AMOUNT' | 'UNRECOGNIZED' | 'OTHER');

/** Stage of a dispute; 'won' is not final: the issuer may take the money again. */
export type DisputeStage = 'opened' | 'lost' | 'won';
