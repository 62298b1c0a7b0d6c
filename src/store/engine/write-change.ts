import type { AddedTransaction, Change, OtherChange, TransactionChange } from '#src/payments/model/change.ts';
import { type ChangedDispute, isOpenCase } from '#src/payments/model/dispute-row.ts';
import type { MovementCorrection } from '#src/payments/model/movement.ts';
import type { Database } from './database.ts';
import { isLost } from './database-error.ts';
import {
  arraysOf,
  arraysOfAccount,
  callText,
  callValues,
  type ForMany,
  type Parameter,
} from './function-call.ts';
import { onlyRow } from './rows.ts';

/** A stored method after an approved payment with it. */
type KeptMethod = {
  /** Time of the approval, in PostgreSQL's syntax. */
  readonly at: string;
  /** An encoded StoredPaymentMethod for the event of a newly stored method; undefined if there is no such event. */
  readonly record: Uint8Array | undefined;
};

/** The fate of a transaction's stored method: a card that awaits the outcome is kept or dropped. */
export type MethodFate =
  | { readonly token: string; readonly fate: 'drop' }
  | ({ readonly token: string; readonly fate: 'keep' } & KeptMethod);

/** The transaction that a change concerns, with the name of its status. */
export type ChangedTransaction = Named<TransactionChange> & {
  /** The writer's token: 0 for the caller that claimed it. */
  readonly fence: number;
};

/** Another transaction that changes; a status or reference that is undefined stays. */
export type ChangedOther = Pick<OtherChange, 'id' | 'checkInS'> & {
  readonly status?: string | undefined;
  readonly reference?: string | undefined;
};

/** Replaces a status with its name, as stored in rows. */
type Named<T extends { readonly status: unknown }> = Omit<T, 'status'> & { readonly status: string };

/** Everything that a report writes about a payment. Messages are encoded, since the store knows only rows. */
export type StoredChange = {
  readonly accountId: string;
  readonly paymentId: string;
  /** The version that the change was decided from. */
  readonly version: number;
  /** Name of a payments.v1.Payment.Status. */
  readonly status: string;
  /** An encoded Payment. */
  readonly record: Uint8Array;
  /** The response to store if there was none; undefined if the change is not a response. */
  readonly response: Uint8Array | undefined;
  readonly transaction: ChangedTransaction | undefined;
  /** The amounts in minor units; undefined if unchanged. */
  readonly books?: { readonly captured: bigint; readonly refunded: bigint; readonly isReleased: boolean };
  readonly added?: Named<AddedTransaction> | undefined;
  readonly other?: ChangedOther | undefined;
  readonly method?: MethodFate | undefined;
  readonly corrections?: readonly (MovementCorrection & { readonly id: string })[] | undefined;
  readonly dispute?: WrittenDispute | undefined;
} & Pick<Change, 'event'> &
  Partial<Pick<Change, 'reopens' | 'retakes'>>;

/** A dispute that is new or changes, with its event. */
export type WrittenDispute = ChangedDispute & {
  /** Time of the change, in PostgreSQL's syntax. */
  readonly at: string;
  readonly eventId: string;
  /** An encoded DisputeEventData. */
  readonly eventRecord: Uint8Array;
};

/** Result of writing a change. */
export type WrittenChange =
  | {
      readonly kind: 'written';
      /** The writer's new token; undefined if another worker has the transaction. */
      readonly fence: number | undefined;
      /** true: there is an event to relay. */
      readonly event: boolean;
      /** The response stored before this change, which takes precedence over the change's own. */
      readonly earlier: { readonly record: Uint8Array; readonly response: Uint8Array } | undefined;
    }
  /** The payment has changed since it was read, so the change must be decided again. */
  | { readonly kind: 'outdated' }
  /** The change is for the holder of the transaction only, and that is another worker. */
  | { readonly kind: 'lost' };

/** Parameters of every change, and the only ones of `WRITE_OUTCOMES`. */
export const OUTCOME_PARAMETERS: readonly Parameter<StoredChange>[] = [
  ['the_account', 'uuid', ({ accountId }) => accountId],
  ['the_payment', 'uuid', ({ paymentId }) => paymentId],
  ['the_version', 'integer', ({ version }) => version],
  ['new_status', 'text', ({ status }) => status],
  ['new_record', 'bytea', ({ record }) => record],
  ['new_event', 'text', ({ event }) => event],
  ['new_response', 'bytea', ({ response }) => response],
  ['the_transaction', 'uuid', ({ transaction }) => transaction?.id],
  ['new_transaction_status', 'text', ({ transaction }) => transaction?.status],
  ['new_reference', 'text', ({ transaction }) => transaction?.reference],
  ['new_provider_payment_id', 'text', ({ transaction }) => transaction?.providerPaymentId],
  ['new_awaits_payer', 'boolean', ({ transaction }) => transaction?.awaitsPayer],
  ['the_fence', 'integer', ({ transaction }) => transaction?.fence],
  ['is_fenced', 'boolean', ({ transaction }) => transaction?.isFenced ?? false],
  ['check_in_s', 'float8', ({ transaction }) => transaction?.checkInS],
];

/** Additional parameters of a change that writes more than the payment and one of its transactions. */
const MORE: readonly Parameter<StoredChange>[] = [
  ['new_captured', 'bigint', ({ books }) => books?.captured],
  ['new_refunded', 'bigint', ({ books }) => books?.refunded],
  ['new_released', 'boolean', ({ books }) => books?.isReleased],
  ['added_transaction', 'uuid', ({ added }) => added?.id],
  ['added_type', 'text', ({ added }) => added?.type],
  ['added_parent', 'uuid', ({ added }) => added?.parentId],
  ['added_status', 'text', ({ added }) => added?.status],
  ['added_connection', 'text', ({ added }) => added?.connectionId],
  ['added_identity', 'text', ({ added }) => added?.connectionIdentity],
  ['added_minor_units', 'bigint', ({ added }) => added?.minorUnits],
  ['added_currency', 'text', ({ added }) => added?.currency],
  ['added_capture', 'boolean', ({ added }) => added?.capture],
  ['added_final', 'boolean', ({ added }) => added?.isFinal],
  ['added_reference', 'text', ({ added }) => added?.reference],
  ['added_provider_payment_id', 'text', ({ added }) => added?.providerPaymentId],
  ['added_token', 'uuid', ({ added }) => added?.vaultedToken],
  ['added_method_kind', 'text', ({ added }) => added?.methodKind],
  ['added_payer_due_in_s', 'float8', ({ added }) => added?.payerDueInS],
  ['added_catalogue_version', 'integer', ({ added }) => added?.catalogueVersion ?? 0],
  ['added_check_in_s', 'float8', ({ added }) => added?.checkInS],
  ['the_other', 'uuid', ({ other }) => other?.id],
  ['other_check_in_s', 'float8', ({ other }) => other?.checkInS],
  ['other_status', 'text', ({ other }) => other?.status],
  ['other_reference', 'text', ({ other }) => other?.reference],
  ['method_fate', 'text', ({ method }) => method?.fate],
  ['the_method', 'uuid', ({ method }) => method?.token],
  ['method_at', 'timestamptz', ({ method }) => (method?.fate === 'keep' ? method.at : undefined)],
  ['method_record', 'bytea', ({ method }) => (method?.fate === 'keep' ? method.record : undefined)],
  ['reopened_session', 'uuid', ({ reopens }) => reopens],
  ['retaken_session', 'uuid', ({ retakes }) => retakes],
  ['new_reported_at', 'timestamptz', reportedAtOf],
  ['new_minor_units', 'bigint', ({ transaction }) => transaction?.minorUnits],
];

/** Additional parameters of a change that moves money again. */
const CORRECTIONS: readonly Parameter<StoredChange>[] = [
  ['correction_ids', 'uuid[]', correctionsAs(({ id }) => id)],
  ['correction_transactions', 'uuid[]', correctionsAs(({ transactionId }) => transactionId)],
  ['correction_numbers', 'integer[]', correctionsAs(({ number }) => number)],
  ['correction_kinds', 'text[]', correctionsAs(({ kind }) => kind)],
  ['correction_amounts', 'bigint[]', correctionsAs(({ minorUnits }) => minorUnits)],
  ['correction_currencies', 'text[]', correctionsAs(({ currency }) => currency)],
];

function correctionsAs(
  value: (one: NonNullable<StoredChange['corrections']>[number]) => unknown,
): Parameter<StoredChange>[2] {
  return ({ corrections = [] }) => corrections.map(value);
}

/** Additional parameters of a change that writes a dispute. */
const DISPUTE: readonly Parameter<StoredChange>[] = [
  ['the_dispute', 'uuid', disputeAs(({ row }) => row.id)],
  ['dispute_connection', 'text', disputeAs(({ row }) => row.connectionId)],
  ['dispute_identity', 'text', disputeAs(({ row }) => row.connectionIdentity)],
  ['dispute_reference', 'text', disputeAs(({ row }) => row.reference)],
  ['dispute_stage', 'text', disputeAs(({ row }) => row.stage)],
  ['dispute_status', 'text', disputeAs(({ row }) => row.status)],
  ['dispute_reason', 'text', disputeAs(({ row }) => row.reason)],
  ['dispute_raw_reason', 'text', disputeAs(({ row }) => row.rawReason)],
  ['dispute_network_code', 'text', disputeAs(({ row }) => row.networkCode)],
  ['dispute_minor_units', 'bigint', disputeAs(({ row }) => row.minorUnits)],
  ['dispute_currency', 'text', disputeAs(({ row }) => row.currency)],
  ['dispute_fee', 'bigint', disputeAs(({ row }) => row.feeMinorUnits)],
  ['dispute_fee_currency', 'text', disputeAs(({ row }) => row.feeCurrency)],
  ['dispute_respond_by', 'timestamptz', disputeAs(({ row }) => row.respondBy)],
  ['dispute_link', 'text', disputeAs(({ row }) => row.link)],
  ['dispute_reported_at', 'timestamptz', disputeAs(({ row }) => row.reportedAt)],
  ['dispute_sequence', 'integer', disputeAs(({ row }) => row.sequence)],
  ['disputed_at', 'timestamptz', disputeAs(({ at }) => at)],
  ['dispute_is_open', 'boolean', disputeAs(({ row }) => isOpenCase(row.status))],
  ['dispute_event', 'uuid', disputeAs(({ eventId }) => eventId)],
  ['dispute_event_type', 'text', disputeAs(({ event }) => event)],
  ['dispute_event_record', 'bytea', disputeAs(({ eventRecord }) => eventRecord)],
];

function disputeAs(value: (dispute: WrittenDispute) => unknown): Parameter<StoredChange>[2] {
  return ({ dispute }) => dispute && value(dispute);
}

const FUNCTION = 'write_change_1';
const EVERYTHING = [...OUTCOME_PARAMETERS, ...MORE];
const WITH_MONEY = [...EVERYTHING, ...CORRECTIONS, ...DISPUTE];
const MOVED = { name: 'write_moved_change', text: callText('write_change_2', WITH_MONEY) };
const OUTCOME = { name: 'write_outcome', text: callText(FUNCTION, OUTCOME_PARAMETERS) };
const ANY = { name: 'write_change', text: callText(FUNCTION, EVERYTHING) };
/** Separately named, since it precedes the sending of an attempt. */
const NEXT_ATTEMPT = { name: 'write_next_attempt', text: ANY.text };
/** Writes many changes, of those that `isPlainChange`. Returns an OutcomeRow for each that was written. */
export const WRITE_OUTCOMES: ForMany = {
  ofAny: { name: 'write_outcomes', text: `SELECT * FROM write_outcomes_1(${arraysOf(OUTCOME_PARAMETERS)})` },
  ofAccount: {
    name: 'write_outcomes_of_account',
    text: `SELECT * FROM write_outcomes_of_account_1(${arraysOfAccount(OUTCOME_PARAMETERS)})`,
  },
};

/** A change that was written. */
type WrittenRow = {
  readonly fence: number | null;
  readonly has_event: boolean;
  readonly earlier_response: Buffer | null;
  readonly earlier_record: Buffer | null;
};

/** The row of a change that `WRITE_OUTCOMES` wrote: the change's place among the rows, from 1. */
export type OutcomeRow = WrittenRow & { readonly place: bigint };

/** Writes the whole effect of a report on a payment, in one call, or returns the reason why it is not written. */
export async function writeSingleChange(database: Database, change: StoredChange): Promise<WrittenChange> {
  type Row = WrittenRow & { readonly result: WrittenChange['kind'] };
  try {
    const more = () =>
      change.corrections?.length || change.dispute
        ? database.query<Row>(MOVED, callValues(WITH_MONEY, change))
        : database.query<Row>(isNext(change) ? NEXT_ATTEMPT : ANY, callValues(EVERYTHING, change));
    const { rows } = isPlainChange(change)
      ? await database.query<Row>(OUTCOME, callValues(OUTCOME_PARAMETERS, change))
      : await more();
    const row = onlyRow({ rows });
    return row.result === 'written' ? toWritten(row) : { kind: row.result };
  } catch (error) {
    if (isLost(error)) return { kind: 'lost' };
    throw error;
  }
}

/** Returns true for a change that writes only a payment and its attempt. */
export function isPlainChange(change: StoredChange): boolean {
  const { transaction, books, added, other, method, reopens, retakes, corrections, dispute } = change;
  const { reportedAt, minorUnits } = transaction ?? {};
  const more = [books, added, other, method, reopens, retakes, corrections, dispute, reportedAt, minorUnits];
  return transaction !== undefined && more.every((part) => part === undefined);
}

function reportedAtOf({ transaction, added }: StoredChange): Date | undefined {
  return transaction ? transaction.reportedAt : added?.reportedAt;
}

/** Returns true for a change that ends an attempt and begins the next. */
function isNext({ added, transaction }: StoredChange): boolean {
  return added !== undefined && transaction !== undefined;
}

/** All groups write their rows in the same order, so that no two can deadlock. */
export function byPayment(a: StoredChange, b: StoredChange): number {
  if (a.accountId !== b.accountId) return a.accountId < b.accountId ? -1 : 1;
  return a.paymentId < b.paymentId ? -1 : Number(a.paymentId > b.paymentId);
}

/** Returns the result of a change that was written. */
export function toWritten(row: WrittenRow): WrittenChange {
  const { earlier_response: response, earlier_record: record } = row;
  return {
    kind: 'written',
    fence: row.fence ?? undefined,
    event: row.has_event,
    earlier: response && record ? { record, response } : undefined,
  };
}
