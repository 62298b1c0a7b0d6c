import { expect, it } from 'vitest';
import {
  type PlannedPayment,
  planRefundOf,
  refundTarget,
  requireBase,
  requireRefundable,
} from '#src/payments/model/plan.ts';
import { booksOf, type PaymentState, type TransactionRow } from '#src/payments/model/state.ts';
import { ServiceError } from '#src/service-error.ts';
import { AMOUNT, APPROVED, approved, begun, CAN, learned } from './kept-payment.ts';

/** The payment after a capture or a refund succeeded. */
function operated(state: PaymentState, type: 'CAPTURE' | 'REFUND', minorUnits: bigint, id: string) {
  const report = { kind: 'outcome', transactionId: id, outcome: APPROVED, pauseS: 5 } as const;
  return learned(begun(state, type, minorUnits, id), report).state;
}

function planned(state: PaymentState, over: (row: TransactionRow) => Partial<TransactionRow> = () => ({})) {
  const transactions = state.transactions.map((row) => ({ ...row, ...over(row) }));
  const [base] = transactions;
  if (!base) throw new Error('there is no transaction');
  return { books: booksOf(state.payment, base), base, transactions, can: CAN } satisfies PlannedPayment;
}

const usd = (minorUnits: bigint) => ({ minorUnits, currency: 'USD' });

/** The id of the transaction that a refund acts on, or the refusal. */
function target(payment: PlannedPayment, transactionId: string, minorUnits?: bigint): string {
  try {
    const named = requireRefundable(payment, transactionId);
    return refundTarget(payment, named, minorUnits === undefined ? undefined : usd(minorUnits)).id;
  } catch (error) {
    if (error instanceof ServiceError) return error.reason;
    throw error;
  }
}

const PURCHASE = planned(approved(true));
const ONCE = operated(approved(false), 'CAPTURE', 60n, 'one');
const TWICE = operated(ONCE, 'CAPTURE', 40n, 'two');
const isFirst = ({ id }: TransactionRow) => id === 'one';

it.each<[string, PlannedPayment, string, bigint | undefined, string]>([
  ['a purchase', PURCHASE, '', undefined, 'base'],
  ['a purchase, named in capitals', PURCHASE, 'BASE', undefined, 'base'],
  ['another transaction than the purchase', PURCHASE, 'one', undefined, 'TRANSACTION_NOT_FOUND'],
  ['an authorization without a capture', planned(approved(false)), '', 10n, 'base'],
  ['the only capture', planned(ONCE), '', 61n, 'one'],
  ['the only capture of the named authorization', planned(ONCE), 'Base', undefined, 'one'],
  ['the named capture', planned(TWICE), 'TWO', 60n, 'two'],
  ['a capture that does not exist', planned(TWICE), 'three', undefined, 'TRANSACTION_NOT_FOUND'],
  ['the authorization, for several captures', planned(TWICE), '', undefined, 'base'],
  ['the first capture with enough left', planned(TWICE), '', 60n, 'one'],
  ['the authorization, if no capture has enough', planned(TWICE), '', 61n, 'base'],
  ['the capture that is not refunded', planned(operated(TWICE, 'REFUND', 60n, 'r')), '', undefined, 'two'],
  ['the capture with more left', planned(operated(TWICE, 'REFUND', 50n, 'r')), '', 11n, 'two'],
  ['a capture with enough left', planned(operated(TWICE, 'REFUND', 50n, 'r')), '', 10n, 'one'],
  [
    'the capture without a refund in progress',
    planned(begun(TWICE, 'REFUND', 60n, 'r')),
    '',
    undefined,
    'two',
  ],
  [
    'a capture whose refund failed',
    planned(operated(TWICE, 'REFUND', 60n, 'r'), ({ id }) => (id === 'r' ? { status: 'DECLINED' } : {})),
    '',
    60n,
    'one',
  ],
  [
    'the capture that succeeded',
    planned(TWICE, (row) => (isFirst(row) ? { status: 'DECLINED' } : {})),
    '',
    undefined,
    'two',
  ],
  [
    'the purchase that the named refund acted on',
    planned(operated(approved(true), 'REFUND', 10n, 'r')),
    'R',
    undefined,
    'base',
  ],
  [
    'the capture that the named refund acted on',
    planned(operated(TWICE, 'REFUND', 40n, 'r'), ({ id }) => (id === 'r' ? { parentId: 'two' } : {})),
    'r',
    undefined,
    'two',
  ],
  [
    'a declined capture',
    planned(TWICE, (row) => (isFirst(row) ? { status: 'DECLINED' } : {})),
    'one',
    undefined,
    'TRANSACTION_NOT_FOUND',
  ],
])(
  'a refund acts on the right transaction, or is refused: %s',
  (_what, payment, transactionId, minorUnits, id) => {
    expect(target(payment, transactionId, minorUnits)).toBe(id);
  },
);

it('a refund that acts on an authorization may be as large as the sum of its captures', () => {
  const payment = planned(TWICE);
  expect(planRefundOf(payment, payment.base, usd(AMOUNT)).money).toEqual(usd(AMOUNT));
});

it('a capture or a cancel acts on the payment’s own transaction, for which an operation’s id stands', () => {
  const payment = planned(operated(TWICE, 'REFUND', 10n, 'r'));
  for (const id of ['', 'base', 'BASE', 'one', 'Two', 'r']) expect(requireBase(payment, id).id).toBe('base');
  const attempts = [{ ...payment.base, id: 'declined' }, ...payment.transactions];
  for (const id of ['declined', 'three']) {
    expect(() => requireBase({ ...payment, transactions: attempts }, id)).toThrow(
      expect.objectContaining({ reason: 'TRANSACTION_NOT_FOUND' }),
    );
  }
});
