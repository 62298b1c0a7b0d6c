import type { Found } from '#src/payments/check/decide.ts';
import type { PaymentState, TransactionRow } from '#src/payments/model/state.ts';
import { BASE_ID, CAN } from './model/kept-payment.ts';

const LIMITS = { ...CAN, authorizationValidDays: 7, redirectValidMinutes: 60 };

/** A transaction of a payment, by default the first, with these columns. */
export function found(state: PaymentState, over: Partial<TransactionRow> = {}, id = BASE_ID): Found {
  const transactions = state.transactions.map((one) => (one.id === id ? { ...one, ...over } : one));
  const transaction = transactions.find((one) => one.id === id);
  if (!transaction) throw new Error(`there is no transaction ${id}`);
  return { ...state, transactions, transaction, terms: LIMITS };
}
