import type { JsonObject } from '@bufbuild/protobuf';
import type { AdditionalData } from '#gen/payments/v1/additional_data_pb.js';
import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { Money } from '#src/money.ts';
import type { Secret } from '#src/secret.ts';

/** How one kind of provider is spoken to. One folder under connectors/, one line in registry.ts. */
export type Connector = {
  /** The name that a catalogue's connection gives in `connector`. */
  readonly name: string;
  /**
   * Opens a connection (an account's credentials at the provider).
   *
   * @throws Error naming the setting, when `settings` are not what the connector takes; never holding a secret.
   */
  connect(settings: JsonObject, context: ConnectContext): ProviderConnection;
};

/** What a connection is made with, beside its settings. */
export type ConnectContext = {
  /** Shown in the record's provider_id and provider_data.id. */
  readonly providerId: string;
  /** What the catalogue's secrets_from_environment names, resolved. */
  readonly secrets: Readonly<Record<string, Secret>>;
};

/** An open connection at a provider. */
export type ProviderConnection = {
  /**
   * Which account at which provider it is, such as its address and account: what is looked up at another would be
   * answered "never heard of it". Holds no secret.
   */
  readonly identity: string;
  /**
   * The credential that names the account, where no setting does: an API key, say. A keyed digest of it becomes part of
   * `identity`, so that another credential counts as another account. undefined: a setting names the account, and its
   * credentials may change.
   */
  readonly accountNamedBy?: Secret | undefined;
  /**
   * Sends one attempt, once. Never throws and always ends by the connection's deadline: what could not be learned is an
   * outcome too.
   */
  pay(attempt: PaymentAttempt): Promise<Outcome>;
  /** By when `pay`, `lookUp` and `probe` have ended, whatever happens. */
  readonly deadlineMs: number;
  /**
   * Learns what became of an attempt whose outcome is not known; undefined for a provider that offers no look-up. Like
   * `pay` it never throws. `not_sent` is the provider's word that it did not happen and never will; that it has not
   * heard of it yet is `unknown`.
   */
  readonly lookUp: ((query: LookUp) => Promise<Outcome>) | undefined;
  /**
   * Asks the provider whether it is there and takes our calls, moving no money; undefined for a provider that cannot be
   * asked. Never throws, and has ended by `deadlineMs`.
   */
  readonly probe: (() => Promise<boolean>) | undefined;
  /** Waits for calls in flight, then lets go of sockets. */
  close(): Promise<void>;
};

/** Which attempt is looked up, and what the provider's word of it is checked against. */
export type LookUp = {
  readonly transactionId: string;
  readonly money: Money;
  readonly method:
    | { readonly kind: 'card'; readonly capture: boolean }
    | { readonly kind: 'wallet_redirect' | 'wallet_enrollment' };
  /** Has the provider close an attempt that it has not heard of, so that one still under way will never happen. */
  readonly closeIfAbsent: boolean;
};

/** What a provider is asked to do. */
export type PaymentAttempt = {
  /** Our transaction's id (UUID): the provider's idempotency key, and what an outcome is looked up by. */
  readonly transactionId: string;
  readonly paymentId: string;
  readonly money: Money;
  readonly description: string;
  readonly merchantOrderId: string;
  readonly merchantReference: string;
  /** ISO 3166-1 alpha-2. */
  readonly country: string;
  readonly callbackUrl: string | undefined;
  readonly customerPayer: CustomerPayer;
  readonly additionalData: AdditionalData | undefined;
  readonly method: AttemptMethod;
};

/** How it is paid. */
export type AttemptMethod =
  | {
      readonly kind: 'card';
      readonly card: AttemptCard;
      /** false: authorization only. */
      readonly capture: boolean;
      readonly installments: number;
      readonly threeDSecureSetupId: string | undefined;
    }
  | { readonly kind: 'wallet_redirect'; readonly type: string }
  | {
      readonly kind: 'wallet_enrollment';
      readonly type: string;
      /** The provider's token of what the payer enrolled earlier, when one was given. */
      readonly token: string | undefined;
      readonly cardType: string | undefined;
    };

/** A card as the provider needs it. */
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

/**
 * Why an attempt was not sent.
 *
 * - `unreachable`: the connection takes no payments now. The provider could not be reached, or refuses all of this
 *   connection's calls (its key, its rate). It counts against the provider's health.
 * - `turned_away`: this one attempt was refused, by the provider's answer or by a limit of ours. It says nothing about
 *   the provider's health.
 * - `circuit_open`: the connection's circuit is open, and the attempt was not even tried.
 */
export type NotSentReason = 'unreachable' | 'turned_away' | 'circuit_open';

/** What is KNOWN of an attempt after the call. A `switch` over it ends in `assertNever`. */
export type Outcome =
  | {
      readonly kind: 'approved';
      readonly providerData: ProviderData;
      readonly authorizationCode: string;
      readonly retrievalReferenceNumber: string;
    }
  | { readonly kind: 'redirect'; readonly providerData: ProviderData; readonly redirectUrl: string }
  | { readonly kind: 'pending'; readonly providerData: ProviderData }
  | {
      readonly kind: 'declined';
      readonly providerData: ProviderData;
      /** ISO 8583 response code (field 39) that the provider's own code amounts to. */
      readonly iso8583Code: string;
    }
  /**
   * Surely nothing happened at the provider (refused, DNS, TLS, or turned away by the provider before it did anything):
   * the attempt may be made elsewhere.
   */
  | {
      readonly kind: 'not_sent';
      readonly detail: string;
      readonly because: NotSentReason;
    }
  /** It may have happened (timeout, reset, 5xx, unreadable answer): never resent, never sent elsewhere, never "failed". */
  | { readonly kind: 'unknown'; readonly detail: string; readonly providerData: ProviderData | undefined };

/** The compiler's word that every outcome is handled. */
export function assertNever(outcome: never): never {
  throw new Error(`unhandled: ${(outcome as { kind?: string }).kind}`);
}
