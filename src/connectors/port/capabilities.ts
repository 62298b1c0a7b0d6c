import type { BrowserInfo, CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import type { ThreeDSecure } from '#gen/payments/v1/payment_method_pb.js';

/**
 * A way in which payers pay: by card, by a wallet that they enrolled earlier, on a wallet's page, or by a local method
 * (a bank transfer or a ticket), which they pay later with a code or on their bank's page. The names are those of
 * `transaction.method_kind`.
 */
export type MethodKind = 'CARD' | 'WALLET' | 'PAYER_PAGE' | 'PAYER_CODE';

/** A local method (a bank transfer or a ticket) as a connection offers it. */
export type LocalMethod = {
  /** Countries (ISO 3166-1 alpha-2) and currencies (ISO 4217) in which the provider offers it. */
  readonly countries: readonly string[];
  readonly currencies: readonly string[];
  /** The least and the greatest amount, in minor units. Absent: no limit is known. */
  readonly least?: bigint;
  readonly greatest?: bigint;
  /** Paths of the fields that a request must have, such as `customer_payer.document.document_number`. */
  readonly needs: readonly string[];
  /** The types of documents that a payer's document may have. Absent: any. */
  readonly documents?: readonly string[];
  /** The banks from which a payer can pay, by their ACH Colombia codes. Absent: only the provider knows them. */
  readonly banks?: readonly string[];
  /** Minutes from now until a code can expire. */
  readonly expiry: { readonly default: number; readonly least: number; readonly greatest: number };
  /** IANA time zone in whose days the provider counts: a code expires at the end of a day. Absent: at any time. */
  readonly expiresWithDayIn?: string;
  readonly refunds: Times;
  /** Days after the payment until which it can be refunded. Absent: no limit is known. */
  readonly refundableDays?: number;
  /** An unpaid one can be closed, by a look-up with `close`. */
  readonly close: boolean;
};

/** Number of refunds that a provider accepts for one payment. */
export type Times = 'none' | 'one' | 'several';

/** Capabilities of a provider. A capability that the connector does not implement must be `false` or 'none'. */
export type Capabilities = {
  /** The kinds of methods that `pay` accepts, other than local methods. */
  readonly methods: readonly Exclude<MethodKind, 'PAYER_CODE'>[];
  /** The local methods that `pay` accepts, by payment_method.type. */
  readonly localMethods: Readonly<Record<string, LocalMethod>>;
  /** The wallets whose tokens `pay` accepts, by payment_method.type. */
  readonly walletTokens: readonly string[];
  /** Authorizes without capturing (`capture: false`). */
  readonly authorization: boolean;
  /** Maximum number of captures of one authorization. The last capture releases the rest. */
  readonly captures: number;
  /** Refunds of one payment; 'one' allows only a refund of the whole amount. */
  readonly refunds: Times;
  /** Days after the payment until which it can be refunded. Absent: no limit is known. */
  readonly refundableDays?: number;
  readonly cancel: boolean;
  /**
   * Closes a payment whose payer has yet to act, by a look-up with `close`: afterwards the payer cannot pay, or only our
   * own completion could take the money.
   */
  readonly close: boolean;
  /** Checks a card without charging it. */
  readonly verify: boolean;
  readonly installments: boolean;
  /**
   * Returns the paths of the fields that every payment by card needs and a request lacks, such as `customer_payer.email`.
   * Absent: the card is enough.
   */
  readonly missingForCards?: (sent: SentWithCard) => readonly string[];
  /** Performs 3-D Secure with a challenge for the payer (outcome `awaits_payer` for a card), after a setup. */
  readonly challenge: boolean;
  /** Returns the names of missing `browser_info` fields that a 3-D Secure setup needs. Absent: it needs none. */
  readonly missingForChallenge?: (browser: BrowserInfo | undefined) => readonly string[];
  /** Accepts results of external 3-D Secure. */
  readonly externalThreeDSecure: boolean;
  /** Returns the names of required fields that external results lack. Absent: no field is required. */
  readonly missingForResults?: (results: ThreeDSecure) => readonly string[];
  /** Accepts the reason and usage of a stored credential, and the scheme's transaction id. */
  readonly storedCredentials: boolean;
  readonly softDescriptor: boolean;
  /** Days after which an uncaptured authorization lapses, unless the catalogue sets another limit. */
  readonly authorizationValidDays: number;
  /** Minutes that a payer has to complete a redirect, unless the catalogue sets another limit. */
  readonly redirectValidMinutes: number;
};

/** The parts of a request that a connection may need along with a card. */
export type SentWithCard = {
  readonly payer: CustomerPayer | undefined;
  /** false also for a stored card whose payer has not entered the code again. */
  readonly hasSecurityCode: boolean;
};

/** Path of the field with a card's security code. */
export const SECURITY_CODE = 'payment_method.detail.card.card_data.security_code';

/** Path of the field with the bank from which the payer of a bank transfer pays. */
export const PAYERS_BANK = 'payment_method.detail.bank_transfer.bank_id';

/** Capabilities of a provider that accepts only cards: a starting point for a connector. */
export const CARDS_ONLY: Capabilities = {
  methods: ['CARD'],
  localMethods: {},
  walletTokens: [],
  authorization: false,
  captures: 0,
  refunds: 'none',
  cancel: false,
  close: false,
  verify: false,
  installments: false,
  challenge: false,
  externalThreeDSecure: false,
  storedCredentials: false,
  softDescriptor: false,
  authorizationValidDays: 7,
  redirectValidMinutes: 1_440,
};
