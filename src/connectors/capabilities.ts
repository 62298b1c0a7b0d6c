import type { BrowserInfo } from '#gen/payments/v1/customer_payer_pb.js';
import type { ThreeDSecure } from '#gen/payments/v1/payment_method_pb.js';

/** A kind of payment that a provider accepts. */
export type MethodKind = 'card' | 'wallet_redirect' | 'wallet_enrollment';

/** Number of times that a provider accepts a refund of one payment. */
export type Times = 'none' | 'one' | 'several';

/** Capabilities of a provider. A capability that is absent from a connector's folder must be `false` or 'none' here. */
export type Capabilities = {
  /** Payment method kinds that `pay` accepts. */
  readonly methods: readonly MethodKind[];
  /** Authorizes without capturing (`capture: false`). */
  readonly authorization: boolean;
  /** Captures of one authorization that the provider takes at most. The last of them releases the rest. */
  readonly captures: number;
  /** Refunds of one payment; with 'one', only a refund of the whole. */
  readonly refunds: Times;
  readonly cancel: boolean;
  /** Checks a card without charging it. */
  readonly verify: boolean;
  readonly installments: boolean;
  /** Performs 3-D Secure: by an earlier setup, and with a challenge for the payer (outcome `redirect` for a card). */
  readonly challenge: boolean;
  /**
   * Names the fields of `browser_info` that a 3-D Secure setup needs and a payer's browser lacks. Absent: it needs none.
   */
  readonly missingForChallenge?: (browser: BrowserInfo | undefined) => readonly string[];
  /** Accepts results of 3-D Secure that was performed elsewhere. */
  readonly externalThreeDSecure: boolean;
  /** Names the fields that such results need and lack. Absent: they need none. */
  readonly missingForResults?: (results: ThreeDSecure) => readonly string[];
  /** Accepts the reason and usage of a stored credential, and the scheme's transaction id. */
  readonly storedCredentials: boolean;
  readonly softDescriptor: boolean;
  /** Days after which an uncaptured authorization lapses, unless the catalogue sets others. */
  readonly authorizationValidDays: number;
  /** Minutes that a payer has to follow a redirect, unless the catalogue sets others. */
  readonly redirectValidMinutes: number;
};

/** Capabilities of a provider that only takes cards: a starting point for a connector. */
export const CARDS_ONLY: Capabilities = {
  methods: ['card'],
  authorization: false,
  captures: 0,
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
