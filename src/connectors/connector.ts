import type { JsonObject } from '@bufbuild/protobuf';
import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { Money } from '#src/money.ts';
import type { Secret } from '#src/secret.ts';
import type { AttemptFacts, PaymentAttempt } from './attempt.ts';
import type { Capabilities } from './capabilities.ts';
import type { WalletEnrollment } from './enrollment.ts';

/** Speaks to one kind of provider. One folder under connectors/, one line in registry.ts. */
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

/** Options that a connection is opened with, beside its settings. */
export type ConnectContext = {
  /** Shown in the record's provider_id and provider_data.id. */
  readonly providerId: string;
  /** Resolved values of the catalogue's secrets_from_environment. */
  readonly secrets: Readonly<Record<string, Secret>>;
};

/**
 * An open connection at a provider.
 *
 * Every call that may move money (`pay`, `capture`, `cancel`, `refund`, `complete`) is made under one deadline,
 * `deadlineMs`, however many HTTP requests it takes; exactly one of those requests moves money. What is lost before that
 * one is `not_sent`, what is lost at it is `unknown`. Calls never throw: what could not be learned is an outcome too.
 */
export type ProviderConnection = {
  /**
   * Names the account at the provider, such as its address and account: what is looked up at another would be answered
   * "never heard of it". Holds no secret.
   */
  readonly identity: string;
  /**
   * The credential that names the account, where no setting does: an API key, say. A keyed digest of it becomes part of
   * `identity`, so that another credential counts as another account. undefined: a setting names the account, and its
   * credentials may change.
   */
  readonly accountNamedBy?: Secret | undefined;
  /** The provider's capabilities; routing passes over connections that cannot do what is asked. */
  readonly capabilities: Capabilities;
  /** Bound of every call, in milliseconds. */
  readonly deadlineMs: number;
  /** Sends one attempt, once. A card with `verify` is checked without charging anything. */
  pay(attempt: PaymentAttempt): Promise<Outcome>;
  /** Takes money that an authorization holds. undefined: the provider cannot. */
  readonly capture: ((operation: CaptureOperation) => Promise<Outcome>) | undefined;
  /** Releases what is not captured. undefined: the provider cannot. */
  readonly cancel: ((operation: Operation) => Promise<Outcome>) | undefined;
  /** Gives money back. undefined: the provider cannot. */
  readonly refund: ((operation: Operation) => Promise<Outcome>) | undefined;
  /**
   * Takes the money of a redirect that the payer agreed to, after a look-up answered `to_complete` (PayPal's capture of an
   * order); where there is no look-up, once the payer is back, by what their browser brought (Adyen's details). Its
   * idempotency key derives from the transaction's id, so that a repeat after an unknown outcome cannot take it twice.
   * undefined: the provider takes it by itself.
   */
  readonly complete: ((query: LookUp) => Promise<Outcome>) | undefined;
  /**
   * Learns what became of a transaction. undefined: the provider offers no look-up, and its signed notifications decide.
   * `not_sent` is the provider's word that it did not happen and never will; that it has not heard of it yet is
   * `unknown`.
   */
  readonly lookUp: ((query: LookUp) => Promise<Outcome>) | undefined;
  /**
   * Has a provider without look-up undo a payment by our reference, when no notification has told its outcome for
   * `afterMs`. It learns nothing: what came of it is told by a notification. undefined: there is a look-up, or no such call.
   */
  readonly technicalCancel?: {
    readonly afterMs: number;
    /** Resolves to true if the provider took the request. Never throws, and has ended by `deadlineMs`. */
    send(query: LookUp): Promise<boolean>;
  };
  /**
   * Sends a capture, a cancel or a refund of which nothing is known again under its own idempotency key, where there is no
   * look-up: the provider tells what became of the first request, or carries it out. `unknown` once the provider may have
   * forgotten the key, and where its answer says nothing of the first request. undefined: there is a look-up, or a repeat
   * could move money twice.
   */
  readonly repeatOperation?: (query: LookUp) => Promise<Outcome>;
  /**
   * Asks for a payer's consent to later charges of a wallet: `redirect` says where the payer gives it. It moves no money,
   * so what did not get through may be asked again. undefined: the provider enrolls no wallets.
   */
  readonly enrollWallet?: (enrollment: WalletEnrollment) => Promise<Outcome>;
  /** Learns what became of an enrollment: `approved` brings the `enrolledToken`. There where `enrollWallet` is. */
  readonly lookUpEnrollment?: (enrollment: Pick<WalletEnrollment, 'enrollmentId'>) => Promise<Outcome>;
  /** Reads the provider's notifications. undefined: it sends none. */
  readonly readNotification: ReadNotification | undefined;
  /**
   * Asks the provider whether it is there and takes our calls, moving no money. undefined: it cannot be asked. Never
   * throws, and has ended by `deadlineMs`.
   */
  readonly probe: (() => Promise<boolean>) | undefined;
  /** Waits for calls in flight, then closes its sockets. */
  close(): Promise<void>;
};

/** A capture, a cancel or a refund. Its transaction's id is the provider's idempotency key. */
export type Operation = {
  readonly transactionId: string;
  /** Amount to capture, release or give back. */
  readonly money: Money;
  /** It is all that is left to capture, cancel or refund. */
  readonly isWhole: boolean;
  readonly merchantReference: string;
  readonly description: string;
  /** DUPLICATE, FRAUDULENT, REQUESTED_BY_CUSTOMER or REVERSE; free text for a capture. */
  readonly reason: string | undefined;
  /** The payment's own transaction: the purchase or the authorization. */
  readonly payment: Target;
  /** Transaction to refund: the capture or the purchase; for a capture and a cancel, the authorization. */
  readonly target: Target;
};

/** A capture. */
export type CaptureOperation = Operation & {
  /** No further capture follows: what is left of the authorization is to be released. */
  readonly isFinal: boolean;
};

/** A transaction that the provider knows. */
export type Target = {
  readonly transactionId: string;
  /** The `reference` of the connector's outcome for it. */
  readonly reference: string | undefined;
  readonly money: Money;
};

/** A transaction to look up, with what the provider's word is checked against. */
export type LookUp = {
  readonly transactionId: string;
  readonly money: Money;
  /** The `reference` of the connector's outcome for it, if there was one. */
  readonly reference: string | undefined;
  /** Time of sending, in milliseconds since the epoch. Idempotency keys of providers live for hours or days. */
  readonly sentAtMs: number;
  /** Has the provider close what it has not heard of, or an open redirect, so that it will never happen. */
  readonly close: boolean;
  readonly of: LookedUp;
  readonly hint?: Hint;
};

/** News from outside about a transaction that was sent. It says where to look, and never what happened. */
export type Hint = {
  /** The provider's own reference that a genuine notification gave for the transaction. */
  readonly reference?: string;
  /** Query string with which the payer came back, without the question mark: anybody may have written it. */
  readonly returnQuery?: string;
};

/** Kind of the transaction that is looked up. */
export type LookedUp =
  | {
      readonly kind: 'card';
      readonly capture: boolean;
      readonly verify: boolean;
      readonly softDescriptor: string;
      readonly attempt: AttemptFacts;
    }
  | { readonly kind: 'wallet_redirect' | 'wallet_enrollment'; readonly attempt: AttemptFacts }
  | ({ readonly kind: 'capture' | 'cancel' | 'refund' } & Pick<
      Operation,
      'merchantReference' | 'description' | 'reason' | 'payment' | 'target'
    >);

/** Fields common to everything that a provider tells. */
type Told = {
  readonly providerData: ProviderData;
  /**
   * Reference by which the connector acts on it later: the provider's own id, or several encoded. Opaque to the core, at
   * most 512 characters, stored with the transaction; absent: what was told before stays.
   */
  readonly reference?: string;
  /** An operator has to look into it: money may have moved that nobody asked for. The response message says why. */
  readonly alarm?: true;
};

/**
 * Reason for which an attempt was not sent.
 * - `unreachable`: the connection takes no payments now. The provider could not be reached, or refuses all of this
 *   connection's calls (its key, its rate): it counts against the provider's health.
 * - `turned_away`: this one attempt was refused, by the provider's answer or by a limit of ours.
 * - `circuit_open`: the connection's circuit is open; nothing was tried.
 */
export type NotSentReason = 'unreachable' | 'turned_away' | 'circuit_open';

/** The KNOWN state of a transaction after a call. A `switch` over it ends in `assertNever`. */
export type Outcome =
  /** Done: charged, authorized, verified, captured, canceled or refunded. */
  | (Told & {
      readonly kind: 'approved';
      /** '' where the provider tells none. */
      readonly authorizationCode: string;
      readonly retrievalReferenceNumber: string;
      /** The scheme's id of the transaction, for later charges of a stored credential. */
      readonly networkTransactionId?: string;
      /** The provider's token of a wallet that was enrolled: what a payment by it names. */
      readonly enrolledToken?: string;
    })
  /** The payer must go to `redirectUrl`: a wallet's checkout, or a card's 3-D Secure challenge. */
  | (Told & { readonly kind: 'redirect'; readonly redirectUrl: string })
  /** The payer agreed; `complete` has to take the money. Only a look-up answers this. */
  | (Told & { readonly kind: 'to_complete' })
  /** The provider has it, and will decide later. */
  | (Told & { readonly kind: 'pending' })
  | (Told & {
      readonly kind: 'declined';
      /** ISO 8583 response code (field 39) that the provider's own code amounts to. */
      readonly iso8583Code: string;
      /** Another provider might charge a second time (ISO 94, duplicate): the attempt never goes elsewhere. */
      readonly nowhereElse?: true;
    })
  /** The payer did not act in time, or the authorization lapsed: nothing was charged, and nothing will be. */
  | (Told & { readonly kind: 'expired' })
  /** Surely nothing happened at the provider: the attempt may be made elsewhere. */
  | {
      readonly kind: 'not_sent';
      readonly because: NotSentReason;
      readonly detail: string;
    }
  /** It may have happened (timeout, reset, 5xx, unreadable answer): never resent, never sent elsewhere, never "failed". */
  | {
      readonly kind: 'unknown';
      readonly detail: string;
      readonly providerData: ProviderData | undefined;
      readonly reference?: string;
      /** An operator has to look into it: money may have moved that nobody asked for. `detail` says why. */
      readonly alarm?: true;
    };

/** A notification as it came over HTTP. */
export type RawNotification = {
  /** A header by its lower-case name. */
  readonly header: (name: string) => string | undefined;
  /** The query string, without the question mark. */
  readonly query: string;
  /** At most 256 KiB, byte for byte. */
  readonly body: Uint8Array;
};

/** Verifies a notification's signature (constant time, tolerance of time, two secrets at once) and says what it is about. */
export type ReadNotification = (notification: RawNotification, nowMs: number) => Promise<NotificationReading>;

/** A notification, read. It is a hint: the provider is looked up, and only that decides. */
export type NotificationReading =
  /** The signature is missing, wrong or too old: 401, and nothing is stored. `detail` holds no secret. */
  | { readonly kind: 'forged'; readonly detail: string }
  /** Genuine, and of no interest to payments. */
  | { readonly kind: 'ignored'; readonly acknowledgement?: string }
  /** It cannot be verified now, as the provider itself has to be asked: 503, so that it is sent again. */
  | { readonly kind: 'send_again'; readonly detail: string }
  | {
      readonly kind: 'about';
      /** The same for every delivery of one notification: at most 255 characters. */
      readonly deduplicationKey: string;
      readonly subjects: readonly NotificationSubject[];
      /** The body of our 2xx, where the provider wants one. */
      readonly acknowledgement?: string;
    };

/** The transaction that a notification is about. */
export type NotificationSubject = {
  /** Ours, or the provider's own, as the connector gave it in an outcome's `reference`; one of them is there. */
  readonly transactionId?: string;
  readonly reference?: string;
  /**
   * The outcome that the signature itself vouches for, with money as the provider tells it: believed only where the
   * connection has no look-up, and only where it fits the record.
   */
  readonly signed?: { readonly outcome: Outcome; readonly minorUnits: bigint; readonly currency: string };
  readonly dispute?: 'opened' | 'lost' | 'won';
};

/** The compiler's word that every outcome is handled. */
export function assertNever(outcome: never): never {
  throw new Error(`unhandled: ${(outcome as { kind?: string }).kind}`);
}
