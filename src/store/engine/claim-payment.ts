import type { MethodKind } from '#src/connectors/port/capabilities.ts';
import { MAX_SESSION_PAYMENTS, type SessionUse, usingOnce } from '../tables/single-uses.ts';
import type { Database } from './database.ts';
import {
  arraysOf,
  arraysOfAccount,
  callText,
  callValues,
  type ForMany,
  type Parameter,
} from './function-call.ts';
import { onlyRow } from './rows.ts';

/** A claim, written before a provider is called. Messages are encoded: the store knows rows, not payments. */
export type Claim = {
  readonly paymentId: string;
  readonly accountId: string;
  readonly idempotencyKey: string;
  readonly requestHash: Uint8Array;
  /** Digest of the fields that the hash covers. */
  readonly requestShape: Uint8Array;
  readonly status: string;
  readonly record: Uint8Array;
  readonly merchantOrderId: string;
  /** ISO 3166-1 alpha-2. */
  readonly country: string;
  /** payment_method.type. */
  readonly methodType: string;
  /** Name of a payments.v1.Transaction.Category. */
  readonly category: string;
  /** The card's brand; '' if it is unknown or there is no card. */
  readonly cardBrand: string;
  /** The stored customer, if any. */
  readonly customerId: string | undefined;
  /** Keyed hashes of the payer's e-mail address and document; undefined without one. */
  readonly payerEmailHash: string | undefined;
  readonly payerDocumentHash: string | undefined;
  /** The last four digits of the card; '' without a card. */
  readonly cardLastFour: string;
  /** Keyed hash of the card number; undefined without a card. */
  readonly cardFingerprint: string | undefined;
  /** The merchant's own reference; undefined if one was generated. */
  readonly merchantReference: string | undefined;
  /** The record's creation time, such as 2026-01-31T09:08:07.000001Z, by which lists of payments are ordered. */
  readonly createdAt: string;
  readonly transactionId: string;
  readonly transactionStatus: string;
  /** Name of a payments.v1.Transaction.Type: PURCHASE, AUTHORIZE or VERIFY. */
  readonly type: string;
  readonly connectionId: string;
  /** The account at the provider that the connection points to. No other account is ever queried about this attempt. */
  readonly connectionIdentity: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  readonly capture: boolean;
  readonly methodKind: MethodKind;
  /** Seconds that the payer has to act, should the provider ask for it. */
  readonly payerDueInS: number;
  /** Length of the lease in seconds. Until it ends, the checker does not touch the attempt. */
  readonly leaseS: number;
  /** The version of the catalogue that routed it; 0 for a catalogue from a file. */
  readonly catalogueVersion: number;
  /** The payment's card, to store if the payment succeeds. It stays inactive until the outcome is known. */
  readonly vault:
    | { readonly token: string; readonly card: Uint8Array; readonly cardNumber: string }
    | undefined;
  /** The stored method that the payment uses, or whose card it requests to store again. */
  readonly storedMethod?: string | undefined;
  /** The checkout session that the payment uses up unless it fails. */
  readonly session?: SessionUse | undefined;
  /** The one-time token that the payment uses up, whatever its outcome. */
  readonly oneTimeToken?: string | undefined;
};

/** Parameters of every claim, and the only ones of `CLAIM_MANY`. */
export const CLAIM_PARAMETERS: readonly Parameter<Claim>[] = [
  ['the_account', 'uuid', ({ accountId }) => accountId],
  ['the_payment', 'uuid', ({ paymentId }) => paymentId],
  ['the_key', 'text', ({ idempotencyKey }) => idempotencyKey],
  ['the_hash', 'bytea', ({ requestHash }) => requestHash],
  ['the_shape', 'bytea', ({ requestShape }) => requestShape],
  ['the_status', 'text', ({ status }) => status],
  ['the_record', 'bytea', ({ record }) => record],
  ['the_order', 'text', ({ merchantOrderId }) => merchantOrderId],
  ['the_last_four', 'text', ({ cardLastFour }) => cardLastFour],
  ['the_fingerprint', 'uuid', ({ cardFingerprint }) => cardFingerprint],
  ['created', 'timestamptz', ({ createdAt }) => createdAt],
  ['the_country', 'text', ({ country }) => country],
  ['the_method_type', 'text', ({ methodType }) => methodType],
  ['the_category', 'text', ({ category }) => category],
  ['the_brand', 'text', ({ cardBrand }) => cardBrand],
  ['the_customer', 'uuid', ({ customerId }) => customerId],
  ['the_email_hash', 'uuid', ({ payerEmailHash }) => payerEmailHash],
  ['the_document_hash', 'uuid', ({ payerDocumentHash }) => payerDocumentHash],
  ['the_transaction', 'uuid', ({ transactionId }) => transactionId],
  ['the_transaction_status', 'text', ({ transactionStatus }) => transactionStatus],
  ['the_type', 'text', ({ type }) => type],
  ['the_connection', 'text', ({ connectionId }) => connectionId],
  ['the_identity', 'text', ({ connectionIdentity }) => connectionIdentity],
  ['the_minor_units', 'bigint', ({ minorUnits }) => minorUnits.toString()],
  ['the_currency', 'text', ({ currency }) => currency],
  ['is_capture', 'boolean', ({ capture }) => capture],
  ['the_merchant_reference', 'text', ({ merchantReference }) => merchantReference],
  ['the_method', 'uuid', ({ vault, storedMethod }) => vault?.token ?? storedMethod],
  ['the_method_kind', 'text', ({ methodKind }) => methodKind],
  ['payer_due_in_s', 'float8', ({ payerDueInS }) => payerDueInS],
  ['lease_s', 'float8', ({ leaseS }) => leaseS],
  ['the_catalogue_version', 'integer', ({ catalogueVersion }) => catalogueVersion],
];

/** Additional parameters of a claim that stores a card, or uses a session or token. */
const MORE: readonly Parameter<Claim>[] = [
  ['card_shown', 'bytea', ({ vault }) => vault?.card],
  ['card_sealed', 'text', ({ vault }) => vault?.cardNumber],
  ['used_session', 'uuid', ({ session }) => session?.id],
  ['used_version', 'integer', ({ session }) => session?.version],
  ['most_payments', 'integer', () => MAX_SESSION_PAYMENTS],
  ['used_token', 'uuid', ({ oneTimeToken }) => oneTimeToken],
];

const FUNCTION = 'claim_payment_1';
const EVERYTHING = [...CLAIM_PARAMETERS, ...MORE];
const CLAIM_WITH_MORE = callText(FUNCTION, EVERYTHING);
const CLAIM = { name: 'claim', text: callText(FUNCTION, CLAIM_PARAMETERS) };
/** Claims many rows, of those that `isPlainClaim`. Returns the ids of the payments that were claimed. */
export const CLAIM_MANY: ForMany = {
  ofAny: { name: 'claim_many', text: `SELECT * FROM claim_payments_1(${arraysOf(CLAIM_PARAMETERS)}) AS id` },
  ofAccount: {
    name: 'claim_many_of_account',
    text: `SELECT * FROM claim_payments_of_account_1(${arraysOfAccount(CLAIM_PARAMETERS)}) AS id`,
  },
};

type ClaimedRow = { readonly result: boolean };

/**
 * Claims the key and inserts the payment with its transaction: one call, one commit, one round trip.
 *
 * @returns false if the key is already held, by another payment or by this one (a repeat after a lost acknowledgement);
 * `findByKey` shows which.
 * @throws AlreadyUsedError if its checkout session or one-time token was used by another payment or has changed.
 */
export async function claimPayment(database: Database, claim: Claim): Promise<boolean> {
  const { vault, session, oneTimeToken } = claim;
  if (isPlainClaim(claim)) {
    return onlyRow(await database.query<ClaimedRow>(CLAIM, callValues(CLAIM_PARAMETERS, claim))).result;
  }
  // Named after the other rows that it writes, so that traces and tests can find it.
  const name = `claim${vault ? '_with_card' : ''}${session ? '_of_session' : ''}${oneTimeToken ? '_by_token' : ''}`;
  const statement = { name, text: CLAIM_WITH_MORE };
  const claimed = database.query<ClaimedRow>(statement, callValues(EVERYTHING, claim));
  const { rows } = await (session || oneTimeToken ? usingOnce(claimed) : claimed);
  return onlyRow({ rows }).result;
}

/** Returns true for a claim that writes only a payment and its attempt. */
export function isPlainClaim({ vault, session, oneTimeToken }: Claim): boolean {
  return !vault && !session && !oneTimeToken;
}

/** All groups write their rows in the same order, so that two groups with the same keys cannot deadlock. */
export function byKey(a: Claim, b: Claim): number {
  if (a.accountId !== b.accountId) return a.accountId < b.accountId ? -1 : 1;
  return a.idempotencyKey < b.idempotencyKey ? -1 : Number(a.idempotencyKey > b.idempotencyKey);
}
