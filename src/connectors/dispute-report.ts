import type { Money } from '#src/money.ts';

/** A provider's report on a dispute. */
export type Dispute = {
  readonly stage: DisputeStage;
  /** The provider's id of the dispute, since a payment may be disputed again. undefined: the provider gives none. */
  readonly reference?: string | undefined;
  /** The disputed money, which may be a part of the payment's. undefined: the provider does not say. */
  readonly money?: Money | undefined;
};

/** Stage of a dispute; 'won' is not the last: the issuer may take the money again. */
export type DisputeStage = 'opened' | 'lost' | 'won';
