import type { Found } from '#src/payments/check/decide.ts';
import { isOperation, type PaymentState, type TransactionRow } from '#src/payments/model/state.ts';
import { BASE_ID, CAN } from './model/kept-payment.ts';

const LIMITS = { ...CAN, authorizationValidDays: 7 };
/** Time that the payer of an attempt has. */
const PAYER_MS = 60 * 60_000;

/** A transaction of a payment, by default the first, with these columns. */
export function found(state: PaymentState, over: Partial<TransactionRow> = {}, id = BASE_ID): Found {
  const transactions = state.transactions.map((one) => (one.id === id ? aged({ ...one, ...over }) : one));
  const transaction = transactions.find((one) => one.id === id);
  if (!transaction) throw new Error(`there is no transaction ${id}`);
  return { ...state, transactions, transaction, terms: LIMITS };
}

function aged(row: TransactionRow): TransactionRow {
  return isOperation(row.type) ? row : { ...row, payerTimeLeftMs: PAYER_MS - row.ageMs };
}
