import type { JsonObject } from '@bufbuild/protobuf';
import type { AdditionalData } from '#gen/payments/v1/additional_data_pb.js';
import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import type { StoredCredentials, ThreeDSecure } from '#gen/payments/v1/payment_method_pb.js';
import type { Money } from '#src/money.ts';
import type { Secret } from '#src/secret.ts';

/** A request to a provider. Everything but the card is a pure function of the stored record. */
export type PaymentAttempt = AttemptFacts & { readonly method: AttemptMethod };

/** Facts of an attempt other than its payment method. A look-up of the attempt has them too. */
export type AttemptFacts = {
  /** Our transaction's id (UUID): the provider's idempotency key, and the key for looking up the outcome. */
  readonly transactionId: string;
  readonly paymentId: string;
  /** Zero for a verification. */
  readonly money: Money;
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
  /** Time after which a redirected payer can no longer pay, in milliseconds since the epoch. */
  readonly expiresAtMs: number;
  readonly customerPayer: CustomerPayer;
  readonly additionalData: AdditionalData | undefined;
  /** Any JSON object, as the merchant sent it. */
  readonly taxes: JsonObject | undefined;
  /** The merchant's own data about the payment, for providers that store it. */
  readonly metadata: readonly { readonly key: string; readonly value: string }[];
};

/** The payment method of an attempt. */
export type AttemptMethod =
  | ({ readonly kind: 'card'; readonly card: AttemptCard } & CardOptions)
  | { readonly kind: 'wallet_redirect'; readonly type: string }
  | {
      readonly kind: 'wallet_enrollment';
      readonly type: string;
      /** The provider's token of a wallet that the payer enrolled earlier. */
      readonly token: string | undefined;
      readonly cardType: string | undefined;
    };

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
