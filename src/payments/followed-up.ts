import { create } from '@bufbuild/protobuf';
import { type Payment, type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Capabilities } from '#src/connectors/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { Database } from '#src/store/database.ts';
import type { DueFollowUp } from '#src/store/follow-ups.ts';
import type { StoredPayment, StoredTransaction } from '#src/store/operated-payments.ts';
import { isAlarm, NO_LOOK_UP, waitsForPayer } from './ask-provider.ts';
import { isOperation, readLeased } from './finish-operation.ts';
import { payerTimeLeftMs } from './look-up-schedule.ts';
import { decodeRecord } from './stored-record.ts';

/** A transaction as it stands, with its payment. */
export type FollowedUp = {
  readonly payment: StoredPayment;
  readonly record: Payment;
  readonly transaction: StoredTransaction;
  readonly transactions: readonly StoredTransaction[];
  readonly terms: Capabilities;
};

/** Reads a leased transaction with its payment. */
export async function readFollowedUp(
  { database }: { readonly database: Database },
  { capabilities: terms }: ProviderConnection,
  due: Omit<DueFollowUp, 'connectionId' | 'fence'>,
): Promise<FollowedUp> {
  const found = await readLeased(database, due);
  return { ...found, record: decodeRecord(found.payment.record), terms };
}

/** Returns the time that the payer of a transaction has left; negative once it is over. An operation waits for none. */
export function timeLeftMs({ transaction, terms }: FollowedUp): number {
  if (isOperation(transaction.type)) return Number.POSITIVE_INFINITY;
  return payerTimeLeftMs(transaction.ageMs, terms);
}

/**
 * Returns true if money moved, or did not, other than a final state says. That state stays: a person has to look. An
 * outcome that is an alarm itself says more than that it contradicts.
 */
export function contradicts(reported: Outcome, { status }: StoredTransaction): boolean {
  const { kind } = reported;
  if (isAlarm(reported)) return false;
  if (status === 'SUCCEEDED') return kind === 'declined' || kind === 'expired';
  return kind === 'approved' && (status === 'DECLINED' || status === 'ERROR');
}

/** Returns true if there is nothing to write: the outcome is not known yet, or the payer has yet to act. */
export function changesNothing(outcome: Outcome, isLast: boolean): boolean {
  if (outcome.kind === 'unknown' || outcome.kind === 'to_complete') return true;
  return !isLast && outcome.kind === 'redirect';
}

/** Returns true if the provider has yet to decide, and the record already says so and has the provider's reference. */
export function isShownAlready(outcome: Outcome, { transaction, record }: FollowedUp): boolean {
  if (outcome.kind !== 'pending' || transaction.status !== 'PENDING') return false;
  if (outcome.reference !== undefined && transaction.reference === undefined) return false;
  return !waitsForPayer(record, transaction);
}

/**
 * Returns the outcome where there is no look-up. A payer who did not come back in time did not pay, as far as is known.
 * If one did come back, and the answer to what they brought says nothing, they may have: that never ends by itself.
 */
export function withoutLookUp(reported: Outcome, found: FollowedUp, isLast: boolean): Outcome {
  if (reported.kind !== 'unknown' || !waitsForPayer(found.record, found.transaction)) return reported;
  const providerData = reported.providerData ?? shownOf(found) ?? create(ProviderDataSchema);
  if (reported !== NO_LOOK_UP) return { kind: 'pending', providerData };
  return isLast ? { kind: 'expired', providerData } : reported;
}

/** Returns what the record shows of the provider's last word on a transaction. */
export function shownOf({ record, transaction }: FollowedUp): ProviderData | undefined {
  return record.transactionsHistory.find(({ id }) => id === transaction.id)?.providerData;
}

/** Returns the outcome of a payment whose payer did not act in time; its provider has closed it, where possible. */
export function endOf(outcome: Outcome): Outcome {
  if (outcome.kind === 'redirect') return { kind: 'expired', providerData: outcome.providerData };
  return outcome;
}
