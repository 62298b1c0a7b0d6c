import type { ChangedTransaction, StoredChange } from '#src/store/engine/write-change.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

/** The payment and the transaction that a change affects. */
export type Changed = { readonly paymentId: string; readonly transactionId: string };

/** Differences from a change with a known outcome. */
export type ChangeOptions = Partial<Omit<StoredChange, 'transaction'>> & Partial<ChangedTransaction>;

/** Returns a change with a known outcome. Its record and response contain `name`. */
export function changeOf(changed: Changed, name: string, options: ChangeOptions = {}): StoredChange {
  const { id, reference, providerPaymentId, awaitsPayer, fence, isFenced, checkInS, ...more } = options;
  return {
    ...{ accountId: ACCOUNT_ONE, paymentId: changed.paymentId, version: 0, status: name },
    ...{ record: recordOf(name), event: 'payment.purchase', response: responseOf(name) },
    transaction: {
      ...{ id: id ?? changed.transactionId, status: name, reference, providerPaymentId },
      ...{ awaitsPayer: awaitsPayer ?? false },
      ...{ fence: fence ?? 0, isFenced: isFenced ?? false, checkInS },
    },
    ...more,
  };
}

/** Options for a change that leaves the outcome open, with the next check in a minute. */
export const OPEN = { isFenced: true, checkInS: 60 } as const;

export const recordOf = (name: string): Buffer => Buffer.from(`record ${name}`);
export const responseOf = (name: string): Buffer => Buffer.from(`response ${name}`);
