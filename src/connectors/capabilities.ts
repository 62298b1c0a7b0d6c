/** A way in which a provider takes payments. */
export type MethodKind = 'card' | 'wallet_redirect' | 'wallet_enrollment';

/** Number of times that a provider takes an operation on one payment. */
export type Times = 'none' | 'one' | 'several';

/** Capabilities of a provider. What is absent from a connector's folder must be `false` or 'none' here. */
export type Capabilities = {
  /** Payment method kinds that `pay` takes. */
  readonly methods: readonly MethodKind[];
  /** Authorizes without capturing (`capture: false`). */
  readonly authorization: boolean;
  /** Captures of one authorization. With 'one', what a partial capture leaves is released. */
  readonly captures: Times;
  /** Partial refunds of one payment; 'one' is a refund of the whole only. */
  readonly refunds: Times;
  readonly cancel: boolean;
  /** Checks a card without charging it. */
  readonly verify: boolean;
  readonly installments: boolean;
  /** Does 3-D Secure itself: by a setup made earlier, and with a challenge for the payer (outcome `redirect` for a card). */
  readonly challenge: boolean;
  /** Takes results of 3-D Secure made elsewhere. */
  readonly externalThreeDSecure: boolean;
  /** Takes the reason and usage of a stored credential, and the scheme's transaction id. */
  readonly storedCredentials: boolean;
  readonly softDescriptor: boolean;
  /** Days after which an uncaptured authorization lapses, unless the catalogue says otherwise. */
  readonly authorizationValidDays: number;
  /** Minutes that a payer has to follow a redirect, unless the catalogue says otherwise. */
  readonly redirectValidMinutes: number;
};

/** A provider of which nothing is known but that it takes cards: for a connector to start from. */
export const CARDS_ONLY: Capabilities = {
  methods: ['card'],
  authorization: false,
  captures: 'none',
  refunds: 'none',
  cancel: false,
  verify: false,
  installments: false,
  challenge: false,
  externalThreeDSecure: false,
  storedCredentials: false,
  softDescriptor: false,
  authorizationValidDays: 7,
  redirectValidMinutes: 1_440,
};
