import type { JsonObject } from '@bufbuild/protobuf';
import type { AdditionalData } from '#gen/payments/v1/additional_data_pb.js';
import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import type { StoredCredentials, ThreeDSecure } from '#gen/payments/v1/payment_method_pb.js';
import type { Money } from '#src/money.ts';
import type { Secret } from '#src/secret.ts';
import type { MethodKind } from './capabilities.ts';

/** A request to a provider. Everything but the card is a pure function of the stored record. */
export type PaymentAttempt = AttemptFacts & { readonly method: Method };

/** Facts of an attempt other than its payment method. A look-up of the attempt has them too. */
export type AttemptFacts = {
  /** Our transaction's id (UUID): the provider's idempotency key, and the key for looking up the outcome. */
  readonly transactionId: string;
  readonly paymentId: string;
  /** Zero for a verification. */
  readonly money: Money;
  /**
   * When the attempt was made, in milliseconds since the epoch: a provider that counts days counts from its day to that of
   * `expiresAtMs`.
   */
  readonly createdAtMs: number;
  readonly description: string;
  readonly merchantOrderId: string;
  readonly merchantReference: string;
  /** ISO 3166-1 alpha-2. */
  readonly country: string;
  /** Our own URL to which the provider sends the payer back: `…/v1/payments/{id}/return`. */
  readonly returnUrl: string;
  /** The same for a payer who leaves the provider's page without paying: the payment is then closed. */
  readonly cancelUrl: string;
  /** Our own URL for the connection's notifications: `…/v1/providers/{connection}/notifications`. */
  readonly notificationUrl: string;
  /**
   * Time after which the payer can no longer pay, in milliseconds since the epoch. For a local method, it is the time
   * that the merchant asked for or the method's default, already rounded to the provider's days.
   */
  readonly expiresAtMs: number;
  readonly customerPayer: CustomerPayer;
  readonly additionalData: AdditionalData | undefined;
  /** Any JSON object, as the merchant sent it. */
  readonly taxes: JsonObject | undefined;
  /** The merchant's own data about the payment, for providers that store it. */
  readonly metadata: readonly { readonly key: string; readonly value: string }[];
};

/**
 * A payment method: it says how the payer pays, and is decided once, when the request is read (`readMethod`). `type` is
 * payment_method.type.
 *
 * @template Card the card: in the clear for an attempt, and before that its source.
 */
export type Method<Card = AttemptCard> =
  | ({ readonly by: 'card'; readonly type: string; readonly card: Card } & CardOptions)
  /** A wallet's token (Apple Pay, Google Pay): the card behind it is charged. */
  | ({
      readonly by: 'wallet_token';
      readonly type: string;
      /** The wallet's whole answer, a JSON object as text. */
      readonly token: Secret;
      /** The last four digits of the card, as sent; '' if they were not. */
      readonly lastFour: string;
    } & CardOptions)
  /** A wallet that is charged without its payer. */
  | {
      readonly by: 'wallet';
      readonly type: string;
      /** The connection that enrolled it, and that provider's token; undefined for a payer who has not enrolled it. */
      readonly enrolled: { readonly at: string; readonly token: string } | undefined;
      /** The type of the card in the wallet, as sent. */
      readonly cardType: string | undefined;
    }
  /** The payer has to act, on a page of the provider's. */
  | { readonly by: 'payer'; readonly type: string; readonly show: 'page' }
  /** The payer pays later, as they are shown: a local method. */
  | LocalMethodOfPayer;

/** A local method of a payment: a bank transfer or a ticket. */
export type LocalMethodOfPayer = {
  readonly by: 'payer';
  readonly type: string;
  readonly show: 'instructions';
  readonly category: 'BANK_TRANSFER' | 'TICKET';
  /** When the code should expire, in milliseconds since the epoch; undefined if the merchant leaves it to the method. */
  readonly wantedExpiryMs: number | undefined;
  /** The payer's bank, by its ACH Colombia code; '' if none was sent. */
  readonly bankId: string;
  readonly accountType: 'CHECKINGS' | 'SAVINGS' | undefined;
};

/** Returns the kind of a method, by which connections say what they can do and transactions keep how the payer pays. */
export function kindOf(method: Method<unknown>): MethodKind {
  switch (method.by) {
    case 'card':
    case 'wallet_token':
      return 'CARD';
    case 'wallet':
      return 'WALLET';
    default:
      return method.show === 'page' ? 'PAYER_PAGE' : 'PAYER_CODE';
  }
}

/** Returns true for a local method. */
export function isLocalMethod(method: Method<unknown>): method is LocalMethodOfPayer {
  return method.by === 'payer' && method.show === 'instructions';
}

/** Returns true for a method that charges a card: one with the options of cards. */
export function chargesCard<Card>(
  method: Method<Card>,
): method is Extract<Method<Card>, { by: 'card' | 'wallet_token' }> {
  return method.by === 'card' || method.by === 'wallet_token';
}

/** Options that a merchant sets for a card payment. */
export type CardOptions = {
  /** false: authorization only. */
  readonly capture: boolean;
  /** The card is verified; nothing is charged. */
  readonly verify: boolean;
  readonly installments: number;
  readonly threeDSecureSetupId: string | undefined;
  /** Results of external 3-D Secure. */
  readonly threeDSecure: ThreeDSecure | undefined;
  readonly storedCredentials: StoredCredentials | undefined;
  /** Shown on the cardholder's statement; '' for the provider's default. */
  readonly softDescriptor: string;
};

/** A card in the clear, as the provider needs it. */
export type AttemptCard = {
  readonly number: Secret;
  /** undefined for a vaulted card. */
  readonly securityCode: Secret | undefined;
  readonly holderName: string;
  /** 1 to 12. */
  readonly expirationMonth: number;
  /** Two digits. */
  readonly expirationYear: number;
};
