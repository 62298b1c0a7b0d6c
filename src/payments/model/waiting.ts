import { create, equals } from '@bufbuild/protobuf';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { formatMoney } from '#src/money.ts';
import {
  isCode,
  isOpenAttempt,
  payerMustAct,
  shownOf,
  type TransactionInState,
  wasSentAway,
} from './state.ts';

/** The outcome of a query to a provider without a look-up. Nothing was sent that could take money. */
export const NO_LOOK_UP: Outcome = {
  kind: 'unknown',
  detail: 'the provider has no look-up',
  providerData: undefined,
};

/** Returns the time left for the payer of a transaction; negative once it is over. Operations await no payer. */
export function timeLeftMs({ transaction }: Pick<TransactionInState, 'transaction'>): number {
  return transaction.payerTimeLeftMs ?? Number.POSITIVE_INFINITY;
}

/** Returns true if an outcome adds nothing to the shown state: it is unknown, or the payer has yet to act. */
export function isNothingNew(outcome: Outcome, found: TransactionInState, isLast: boolean): boolean {
  const { awaitsResponse } = found.transaction;
  if (outcome.kind === 'unknown') return true;
  if (isOpenAttempt(found.transaction)) {
    return !awaitsResponse && (outcome.kind === 'to_complete' || isSameAsShown(outcome, found));
  }
  if (outcome.kind === 'awaits_payer' && !isLast) return !hasReceivedMore(outcome, found);
  if (outcome.kind === 'to_complete') return true;
  return isPendingAsShown(outcome, found);
}

/**
 * Returns true if a report only repeats what the payer was shown, and so has no event. Two workers may learn it: the caller
 * after a long wait, and a check, or two checks. It is also out of date once the payer has acted.
 */
export function isShownAlready(outcome: Outcome, found: TransactionInState): boolean {
  if (outcome.kind !== 'awaits_payer' || !found.transaction.awaitsPayer) return false;
  return wasSentAway(found.record) && !hasReceivedMore(outcome, found);
}

/** Returns true if another part of a transfer has arrived than the record shows. */
function hasReceivedMore(outcome: Outcome, found: TransactionInState): boolean {
  if (!('received' in outcome) || !outcome.received) return false;
  return shownOf(found)?.amountReceived !== formatMoney(outcome.received);
}

/** Returns true if the provider has yet to decide, with the same data as before. */
function isSameAsShown(outcome: Outcome, found: TransactionInState): boolean {
  const shown = shownOf(found);
  return (
    outcome.kind === 'pending' &&
    shown !== undefined &&
    equals(ProviderDataSchema, shown, outcome.providerData)
  );
}

/**
 * Returns true if the provider has yet to decide, and the record already shows that and has the provider's names.
 */
function isPendingAsShown(outcome: Outcome, { transaction, record }: TransactionInState): boolean {
  if (outcome.kind !== 'pending' || transaction.status !== 'PENDING') return false;
  if (outcome.reference !== undefined && transaction.reference === undefined) return false;
  if (outcome.providerPaymentId !== undefined && transaction.providerPaymentId === undefined) return false;
  return !payerMustAct(record);
}

/**
 * Returns the outcome at a provider without a look-up. A payer who did not return in time did not pay, as far as we
 * know, and nobody pays a code that nobody was shown, since the answer with it was lost. A payer who returned without a
 * conclusive result may have paid, so such a payment never ends by itself.
 */
export function withoutLookUp(reported: Outcome, found: TransactionInState, isLast: boolean): Outcome {
  const { transaction, record } = found;
  const isUnseenCode = isCode(transaction) && isOpenAttempt(transaction);
  if (reported.kind !== 'unknown' || !(payerMustAct(record) || (isUnseenCode && isLast))) return reported;
  const providerData = reported.providerData ?? shownOf(found) ?? create(ProviderDataSchema);
  if (reported !== NO_LOOK_UP && !isUnseenCode) return { kind: 'pending', providerData };
  return isLast ? { kind: 'expired', providerData } : reported;
}

/** Returns the outcome of a payment whose payer did not act in time. Its provider has closed it if possible. */
export function endOf(outcome: Outcome): Outcome {
  if (outcome.kind === 'awaits_payer') return { kind: 'expired', providerData: outcome.providerData };
  return outcome;
}
