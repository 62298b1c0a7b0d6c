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
};

/** Stage of a dispute; 'won' is not final: the issuer may take the money again. */
export type DisputeStage = 'opened' | 'lost' | 'won';
