import type { DescMessage, JsonObject } from '@bufbuild/protobuf';
import type { Money } from '#src/money.ts';
import type { Secret } from '#src/secret.ts';
import type { AccountReport, Environment, ProviderHosts } from './account-report.ts';
import type { AttemptFacts, PaymentAttempt } from './attempt.ts';
import type { Capabilities, MethodKind } from './capabilities.ts';
import type { Dispute } from './dispute-report.ts';
import type { WalletEnrollment } from './enrollment.ts';
import type { Outcome } from './outcome.ts';
import type { SettlementReports } from './settlement-line.ts';
import type { SettlementSource } from './settlement-source.ts';

/** The implementation for one provider: a folder under connectors/ and a line in registry.ts. */
export type Connector = {
  /** The name that a catalogue's connection gives in `connector`. */
  readonly name: string;
  /** The provider's later reports that correct its earlier ones. Outcomes carry the rows of this table in `corrects`. */
  readonly corrections: Corrections;
  /** The provider's settlement reports. undefined: they cannot be imported. */
  readonly settlement?: SettlementReports;
  /** The provider's own hosts, by environment. The settings of the mounted sandbox's provider name no host. */
  readonly hosts: ProviderHosts;
  /** The message of the settings and secrets, and the values of absent settings, by their names in the message. */
  readonly settings: {
    readonly schema: DescMessage;
    readonly defaults: Readonly<Record<string, string | number>>;
  };
  /** The capabilities of every connection. Settings may add to them. */
  readonly capabilities: Omit<Capabilities, 'localMethods'>;
  /**
   * Names of the secrets that verify notifications. The value that a stored one replaced verifies them for some time
   * longer. Empty: settings or the provider itself verify them.
   */
  readonly notificationSecrets: readonly string[];
  /**
   * Opens a connection (an account's credentials at the provider).
   *
   * @throws Error that names the setting, but reveals no secret, if the connector rejects the `settings`.
   */
  connect(settings: JsonObject, context: ConnectContext): ProviderConnection;
};

/** Receives the description of a problem, which contains no secret. */
export type ReportProblem = (problem: string) => void;

/** Options for opening a connection, other than its settings. */
export type ConnectContext = {
  /** Shown in the record's provider_id and provider_data.id. */
  readonly providerId: string;
  /** Resolved values of the catalogue's secrets_from_environment. */
  readonly secrets: Readonly<Record<string, Secret>>;
  /** URL of the forward proxy through which to reach the provider. */
  readonly proxy?: Secret | undefined;
};

/**
 * An open connection at a provider.
 *
 * Every call has one deadline, `deadlineMs`, however many HTTP requests it makes. At most one of those requests moves
 * money, in `pay`, `capture`, `cancel`, `refund`, `complete` and `repeatOperation`, and in a `lookUp` that repeats a
 * refund under its key, or a capture or a cancel that can take effect only once. A failure before that request is
 * `not_sent`. A failure of that request is `unknown`, unless it is certain that nothing was sent or the provider refused
 * it. For a look-up or a repeat, every failure is `unknown`. Calls never throw: an unknown outcome is an outcome too.
 */
export type ProviderConnection = {
  /**
   * Identifies the account at the provider, for example by URL and account name. A look-up at another account would not
   * find the transaction. Contains no secret.
   */
  readonly identity: string;
  /**
   * The credential that identifies the account, such as an API key, if no setting does. Its keyed digest becomes part
   * of `identity`, so that another credential counts as another account. undefined: a setting identifies the account,
   * whose credentials may change.
   */
  readonly accountNamedBy?: Secret | undefined;
  /** The account's only currency; undefined if it has several. */
  readonly accountCurrency?: string | undefined;
  /** The account's environment, as far as its address or its credential tells. */
  readonly environment: Environment | undefined;
  /** The provider's capabilities; routing skips connections that lack a capability that a payment needs. */
  readonly capabilities: Capabilities;
  /** The slots of its calls in flight, set by `limitCalls`. undefined: no limit. */
  readonly slots?: CallSlots | undefined;
  /**
   * Returns how long recent payments took at the provider, on average and in milliseconds; 0 at first. Set by
   * `measureLatency`; undefined: not measured.
   */
  readonly recentLatencyMs?: () => number;
  /** Deadline of every call, in milliseconds. */
  readonly deadlineMs: number;
  /** Sends one attempt, once. A card with `verify` is checked without being charged. */
  pay(attempt: PaymentAttempt): Promise<Outcome>;
  /** Takes the money that an authorization holds. undefined: not supported by the provider. */
  readonly capture: ((operation: CaptureOperation) => Promise<Outcome>) | undefined;
  /** Releases the uncaptured amount. undefined: not supported by the provider. */
  readonly cancel: ((operation: Operation) => Promise<Outcome>) | undefined;
  /** Returns money to the payer. undefined: not supported by the provider. */
  readonly refund: ((operation: Operation) => Promise<Outcome>) | undefined;
  /**
   * Takes the money of a payment that the redirected payer agreed to: after a look-up returned `to_complete` (PayPal's
   * capture of an order) or, without a look-up, with the data that the returning payer's browser brings (Adyen's
   * details). The idempotency key derives from the transaction's id, so that a repeat after an unknown outcome cannot
   * take the money twice. undefined: the provider takes the money by itself.
   */
  readonly complete: ((query: LookUp) => Promise<Outcome>) | undefined;
  /**
   * Looks up the outcome of a transaction. undefined: the provider offers no look-up, and its signed notifications
   * determine the outcome. `not_sent` means that the provider confirms that the transaction did not happen and never
   * will. If the provider has merely not received the request yet, the outcome is `unknown`.
   */
  readonly lookUp: ((query: LookUp) => Promise<Outcome>) | undefined;
  /**
   * Asks a provider without a look-up to undo a payment, identified by our reference, once `afterMs` has passed without
   * a notification of its outcome, if its response was lost. A notification reports the result. undefined: the provider
   * has a look-up, or no such call.
   */
  readonly technicalCancel?: {
    readonly afterMs: number;
    /** Resolves to true if the provider accepted the request. Never throws, and resolves within `deadlineMs`. */
    send(query: LookUp): Promise<boolean>;
  };
  /**
   * Repeats a capture, a cancel or a refund with an unknown outcome under its own idempotency key, if there is no
   * look-up: the provider reports the outcome of the first request, or carries it out. `unknown` if the provider may
   * have forgotten the key, or if its response says nothing about the first request. undefined: there is a look-up, or
   * a repeat could move money twice.
   */
  readonly repeatOperation?: (query: LookUp) => Promise<Outcome>;
  /**
   * Requests a payer's consent to later charges of a wallet: the outcome `awaits_payer` has the URL of the page where
   * the payer consents. No money moves, so a failed request may be repeated. undefined: the provider does not enroll
   * wallets.
   */
  readonly enrollWallet?: (enrollment: WalletEnrollment) => Promise<Outcome>;
  /** Looks up the outcome of an enrollment: `approved` carries the `enrolledToken`. Present if `enrollWallet` is. */
  readonly lookUpEnrollment?: (enrollment: Pick<WalletEnrollment, 'enrollmentId'>) => Promise<Outcome>;
  /**
   * Lists the banks from which a payer of a local method must choose. Rejects if the provider is away. undefined: no
   * local method needs a bank.
   */
  readonly listBanks?: (type: string) => Promise<readonly Bank[]>;
  /** The provider's settlement reports. undefined: they are files, which somebody imports. */
  readonly settlementSource?: SettlementSource;
  /** Reads the provider's notifications. undefined: the provider sends none. */
  readonly readNotification: ReadNotification | undefined;
  /**
   * Tests whether the provider is available and accepts our calls, without moving money. undefined: the provider has no
   * such call. Never throws, and resolves within `deadlineMs`.
   *
   * @param report called with the reason, for operators, if the result is false.
   */
  readonly probe: ((report?: ReportProblem) => Promise<boolean>) | undefined;
  /**
   * Asks the provider for the account behind the credentials, without moving money. Uses no answer of an earlier call.
   * Never throws, and resolves within `deadlineMs`.
   */
  readAccount(): Promise<AccountReport>;
  /** Waits for calls in flight, then closes its sockets. */
  close(): Promise<void>;
};

/**
 * A provider's later reports that correct its earlier, final ones: by what they are about, and by the later report, the
 * earlier reports, each as the `status` of its provider data. An opposite that is not listed changes nothing and raises
 * an alarm.
 */
export type Corrections = Readonly<
  Record<'payment' | 'capture' | 'refund', Readonly<Record<string, readonly string[]>>>
>;

/** The slots of a connection: one for each of its calls in flight. */
export type CallSlots = {
  /** Returns true if a payment could take a slot now. */
  hasRoom(): boolean;
  /**
   * Takes a slot for an attempt of a payment, before the attempt is stored.
   *
   * @returns a function that releases the slot, once; undefined if no slot is free.
   */
  take(): (() => void) | undefined;
};

/** A bank from which a payer can pay. */
export type Bank = {
  /** Its ACH Colombia code. */
  readonly id: string;
  /** Display name. */
  readonly name: string;
};

/** Kind of an operation on a payment. */
export type OperationKind = 'capture' | 'cancel' | 'refund';

/** A capture, a cancel or a refund. Its transaction's id is the provider's idempotency key. */
export type Operation = {
  readonly transactionId: string;
  /** Amount to capture, release or refund. */
  readonly money: Money;
  /** The amount is everything left to capture, cancel or refund. */
  readonly isWhole: boolean;
  readonly merchantReference: string;
  readonly description: string;
  /** DUPLICATE, FRAUDULENT, REQUESTED_BY_CUSTOMER or REVERSE; free text for a capture. */
  readonly reason: string | undefined;
  /** The payment's own transaction: the purchase or the authorization. */
  readonly payment: Target;
  /** Transaction to refund: the capture or the purchase; for a capture or a cancel, the authorization. */
  readonly target: Target;
};

/** A capture. */
export type CaptureOperation = Operation & {
  /** No further capture follows: the provider should release the rest of the authorization. */
  readonly isFinal: boolean;
};

/** A transaction that the provider knows. */
export type Target = {
  readonly transactionId: string;
  /** The `reference` from the connector's outcome for it. */
  readonly reference: string | undefined;
  readonly money: Money;
};

/** A transaction to look up, with the facts that the provider's response must match. */
export type LookUp = {
  readonly transactionId: string;
  readonly money: Money;
  /** The `reference` from the connector's outcome for it, if any. */
  readonly reference: string | undefined;
  /**
   * Time since the transaction was stored, just before it was sent, according to the database's clock. Providers keep
   * idempotency keys for hours or days.
   */
  readonly ageMs: number;
  /**
   * Time that a redirected payer has left, according to the database's clock: negative once it has run out, Infinity
   * for an operation.
   */
  readonly payerTimeLeftMs: number;
  /**
   * Asks the provider to close a request that it has not received, or an open redirect, so that it can never happen.
   */
  readonly close: boolean;
  readonly of: LookedUp;
  /** true: refunds of the payment are recorded, which the provider may have changed since. */
  readonly isRefunded?: boolean;
  readonly hint?: Hint;
};

/** News from outside about a sent transaction. It says where to look, never what happened. */
export type Hint = {
  /** The `providerPaymentId` in a genuine notification about the transaction. */
  readonly providerPaymentId?: string;
  /** Query string of the returning payer, without the question mark. Untrusted: anyone may have written it. */
  readonly returnQuery?: string;
};

/** A transaction to look up: an attempt by the kind of its method, or an operation. */
export type LookedUp =
  | {
      readonly kind: 'CARD';
      readonly capture: boolean;
      readonly verify: boolean;
      readonly softDescriptor: string;
      readonly attempt: AttemptFacts;
    }
  | { readonly kind: Exclude<MethodKind, 'CARD'>; readonly type: string; readonly attempt: AttemptFacts }
  | ({
      readonly kind: OperationKind;
      /** The `providerPaymentId`s of the payment's other transactions: none of them can be this operation. */
      readonly claimed: readonly string[];
    } & Pick<Operation, 'merchantReference' | 'description' | 'reason' | 'payment' | 'target'>);

/** A notification as received over HTTP. */
export type RawNotification = {
  /** Returns a header by its lower-case name. */
  readonly header: (name: string) => string | undefined;
  /** The query string, without the question mark. */
  readonly query: string;
  /** At most 256 KiB, byte for byte. */
  readonly body: Uint8Array;
  /** The sender's IP address, or its IPv6 network; undefined if the notification was stored earlier. */
  readonly from?: string;
};

/**
 * Verifies a notification's signature (in constant time, with a time tolerance, against up to two secrets) and reads
 * its subject.
 */
export type ReadNotification = (notification: RawNotification, nowMs: number) => Promise<NotificationReading>;

/** A parsed notification. It is only a hint: the look-up at the provider decides. */
export type NotificationReading =
  /** The signature is missing, wrong or too old: 401, and nothing is stored. `detail` contains no secret. */
  | { readonly kind: 'forged'; readonly detail: string }
  /** Genuine, but irrelevant to payments. */
  | { readonly kind: 'ignored'; readonly acknowledgement?: string }
  /**
   * It cannot be verified now, because the provider has to verify it and cannot be reached: 503, so that it is sent
   * again.
   */
  | { readonly kind: 'send_again'; readonly detail: string }
  | {
      readonly kind: 'about';
      /** The same for every delivery of one notification: at most 255 characters. */
      readonly deduplicationKey: string;
      readonly subjects: readonly NotificationSubject[];
      /** The body of our 2xx response, if the provider demands one. */
      readonly acknowledgement?: string;
    };

/** The transaction that a notification is about. */
export type NotificationSubject = {
  /** Our id, or the provider's as in an outcome's `providerPaymentId`; at least one is set. */
  readonly transactionId?: string;
  readonly providerPaymentId?: string;
  /**
   * The outcome that the signature covers, with the money that the provider reports. It counts only if the connection
   * has no look-up and the outcome fits the record.
   */
  readonly signed?: SignedOutcome;
  readonly dispute?: Dispute;
};

/** An outcome that a notification's signature covers; `unknown` is only an alarm. */
export type SignedOutcome = {
  readonly outcome: Outcome;
  readonly minorUnits: bigint;
  readonly currency: string;
  /** The outcome is about the capture that a purchase includes; it says nothing about an authorization. */
  readonly ofPurchase?: true;
  /**
   * When the event happened, according to the provider. An event that is older than the last one about the same
   * transaction changes nothing.
   */
  readonly at?: Date;
  /**
   * Set if the notification reports a capture or refund of this transaction, which has its own `providerPaymentId`. It
   * was made at the provider itself, or the notification does not identify our transaction for it.
   */
  readonly operation?: 'CAPTURE' | 'REFUND';
  /** The `providerPaymentId` of the payment involved: another charge may have our reference. */
  readonly paidReference?: string;
};
