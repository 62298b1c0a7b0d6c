import { expect, it } from 'vitest';
import { Payment_Status, Transaction_Status, Transaction_Type } from '#gen/payments/v1/payment_pb.js';
import type { Totals } from '#src/connectors/port/outcome.ts';
import type { OperationType } from '#src/payments/model/books.ts';
import type { Change } from '#src/payments/model/change.ts';
import {
  beyondBooks,
  type ExternalOperation,
  isRefundUndone,
  MADE_AT_PROVIDER,
} from '#src/payments/model/external.ts';
import type { PaymentState, TransactionInState, TransactionRow } from '#src/payments/model/state.ts';
import { AMOUNT, APPROVED, approved, BASE_ID, begun, CAN, claimed, learned, timeOf } from './kept-payment.ts';

const usd = (minorUnits: bigint) => ({ minorUnits, currency: 'USD' });

/** The payment after an operation of ours succeeded. */
function operated(state: PaymentState, type: OperationType, minorUnits: bigint, id: string): PaymentState {
  const report = { kind: 'outcome', transactionId: id, outcome: APPROVED, pauseS: 5 } as const;
  return learned(begun(state, type, minorUnits, id), report).state;
}

function based(state: PaymentState, over: Partial<TransactionRow> = {}): TransactionInState {
  const transactions = state.transactions.map((one) => ({ ...one, ...over }));
  const [transaction] = transactions;
  if (!transaction) throw new Error('there is no transaction');
  return { ...state, transactions, transaction };
}

const disputed = (state: PaymentState, stage: 'opened' | 'won' | 'lost', money?: bigint) =>
  learned(state, {
    ...{ kind: 'dispute', newId: 'dispute', onlyOpen: false },
    dispute: { stage, reference: 'dp_1', money: money === undefined ? undefined : usd(money) },
  }).state;

const released = (state: PaymentState): PaymentState => ({
  ...state,
  payment: { ...state.payment, isReleased: true },
});

const [AUTHORIZED, PURCHASED] = [approved(false), approved(true)];

it.each<[string, PaymentState, Totals, string | undefined]>([
  ['nothing of a purchase', PURCHASED, { captured: AMOUNT, refunded: 0n }, undefined],
  ['a refund of a purchase', PURCHASED, { captured: AMOUNT, refunded: 30n }, 'REFUND 30'],
  ['nothing of an authorization', AUTHORIZED, { captured: 0n, refunded: 0n }, undefined],
  ['a capture before its refund', AUTHORIZED, { captured: 60n, refunded: 30n }, 'CAPTURE 60'],
  ['the rest', operated(AUTHORIZED, 'CAPTURE', 40n, 'first'), { captured: 60n, refunded: 0n }, 'CAPTURE 20'],
  ['the refund', operated(AUTHORIZED, 'CAPTURE', 40n, 'first'), { captured: 40n, refunded: 5n }, 'REFUND 5'],
  [
    'the further refund',
    operated(PURCHASED, 'REFUND', 40n, 'r'),
    { captured: 0n, refunded: 50n },
    'REFUND 10',
  ],
  [
    'nothing that is ours',
    operated(PURCHASED, 'REFUND', 40n, 'r'),
    { captured: 0n, refunded: 40n },
    undefined,
  ],
  ['nothing of an attempt that is open', claimed(false), { captured: 60n, refunded: 0n }, undefined],
  ['what a released attempt took', released(claimed(false)), { captured: 60n, refunded: 0n }, 'CAPTURE 60'],
])('totals beyond the books report %s', (_what, state, totals, operation) => {
  const made = beyondBooks(based(state), { ...APPROVED, totals });
  expect(made && `${made.type} ${made.money.minorUnits}`).toBe(operation);
  if (made) expect([made.money.currency, made.reported]).toEqual(['USD', { ...APPROVED, totals }]);
});

it('a report without totals says nothing about captures and refunds', () => {
  expect(beyondBooks(based(AUTHORIZED), APPROVED)).toBeUndefined();
  expect(
    beyondBooks(based(AUTHORIZED), { kind: 'expired', providerData: APPROVED.providerData }),
  ).toBeUndefined();
  expect(beyondBooks(based(AUTHORIZED), undefined)).toBeUndefined();
});

it('a recorded refund is undone if the totals lack it an hour later', () => {
  const state = operated(PURCHASED, 'REFUND', 40n, 'first');
  const isUndone = (refunded: bigint, ageMs: number) =>
    isRefundUndone(based(state, { ageMs }), { ...APPROVED, totals: { captured: AMOUNT, refunded } });
  expect([isUndone(39n, 3_600_000), isUndone(40n, 3_600_000), isUndone(39n, 3_599_999)]).toEqual([
    ...[true, false, false],
  ]);
  expect(isRefundUndone(based(state, { ageMs: 3_600_000 }), APPROVED)).toBe(false);
  expect(isRefundUndone(based(state, { ageMs: 3_600_000 }), undefined)).toBe(false);
});

it('only the age of a refund decides whether totals may still lack it', () => {
  const state = operated(PURCHASED, 'REFUND', 40n, 'first');
  const transactions = state.transactions.map((one) => ({ ...one, ageMs: one.type === 'REFUND' ? 1e9 : 0 }));
  const reported = { ...APPROVED, totals: { captured: AMOUNT, refunded: 0n } };
  expect(isRefundUndone({ ...based(state), transactions }, reported)).toBe(true);
});

/** A capture or refund as a notification reports it. */
function made(type: 'CAPTURE' | 'REFUND', minorUnits: bigint, over: Partial<ExternalOperation> = {}) {
  return { type, money: usd(minorUnits), reported: APPROVED, providerPaymentId: 'theirs', ...over };
}

const told = (state: PaymentState, operation: ExternalOperation, can = CAN) =>
  learned(state, { kind: 'external', transactionId: BASE_ID, operation, newId: 'new', can });

function change(state: PaymentState, operation: ExternalOperation): Change {
  const { change: written } = told(state, operation);
  if (typeof written === 'string') throw new Error(written);
  return written;
}

it('an external capture is recorded like one of ours that succeeded', () => {
  expect(change(AUTHORIZED, made('CAPTURE', 60n))).toMatchObject({
    ...{ event: 'payment.capture', transaction: undefined, books: { captured: 60n, isReleased: false } },
    added: {
      ...{ id: 'new', type: 'CAPTURE', status: Transaction_Status.SUCCEEDED, providerPaymentId: 'theirs' },
      ...{ minorUnits: 60n, parentId: BASE_ID, isFinal: false },
    },
    record: {
      status: Payment_Status.SUCCEEDED,
      updatedAt: timeOf(AUTHORIZED),
      transactions: {
        ...{ id: 'new', type: Transaction_Type.CAPTURE, status: Transaction_Status.SUCCEEDED },
        ...{ parentTransactionId: BASE_ID, merchantReference: 'reference-new', reason: undefined },
        ...{ description: MADE_AT_PROVIDER, createdAt: timeOf(AUTHORIZED), amount: { value: '0.60' } },
      },
    },
  });
});

it('an external refund acts on the capture that it refunds', () => {
  const { added, books } = change(operated(AUTHORIZED, 'CAPTURE', 60n, 'first'), made('REFUND', 60n));
  expect([added?.parentId, books.refunded]).toEqual(['first', 60n]);
});

it('an external capture of the whole rest is final', () => {
  expect(change(AUTHORIZED, made('CAPTURE', AMOUNT)).added).toMatchObject({
    minorUnits: AMOUNT,
    isFinal: true,
  });
});

const CAPTURED = operated(AUTHORIZED, 'CAPTURE', 40n, 'first');
const refundTold = { ...APPROVED, totals: { captured: AMOUNT, refunded: 30n } };
const ofTotals = { reported: refundTold, providerPaymentId: undefined };
const won = { ...APPROVED, totals: { captured: 0n, refunded: 30n, mayCountDisputes: true } } as const;
it.each<[string, PaymentState, ExternalOperation, string]>([
  ['a capture of a purchase', PURCHASED, made('CAPTURE', 10n), 'unchanged'],
  ['a repeated report', told(PURCHASED, made('REFUND', 30n)).state, made('REFUND', 30n), 'unchanged'],
  ['a report of the attempt', PURCHASED, made('REFUND', 30n, { providerPaymentId: 'base-id' }), 'unchanged'],
  [
    'totals in the books by now',
    operated(PURCHASED, 'REFUND', 30n, 'r'),
    made('REFUND', 30n, ofTotals),
    'unchanged',
  ],
  [
    'totals partly in the books',
    operated(PURCHASED, 'REFUND', 10n, 'r'),
    made('REFUND', 30n, ofTotals),
    'unchanged',
  ],
  ['a refund in totals that report a capture first', AUTHORIZED, made('REFUND', 30n, ofTotals), 'unchanged'],
  ['totals beyond the books', PURCHASED, made('REFUND', 30n, ofTotals), 'applied'],
  [
    'one without totals or an id',
    PURCHASED,
    made('REFUND', 30n, { providerPaymentId: undefined }),
    'applied',
  ],
  [
    'one after another, both without an id',
    operated(PURCHASED, 'REFUND', 10n, 'r'),
    made('REFUND', 20n, { providerPaymentId: undefined }),
    'applied',
  ],
  [
    'one with an id, whatever the totals say',
    operated(PURCHASED, 'REFUND', 30n, 'r'),
    made('REFUND', 30n, { reported: refundTold }),
    'applied',
  ],
  ['one during an operation', begun(PURCHASED, 'REFUND', 10n, 'r'), made('REFUND', 30n), 'waiting'],
  ['one before the approval', claimed(false), made('CAPTURE', 30n), 'waiting'],
  ['a refund before its capture', AUTHORIZED, made('REFUND', 30n), 'waiting'],
  ['a refund before the rest of its capture', CAPTURED, made('REFUND', 41n), 'waiting'],
  ['a refund of a whole capture', CAPTURED, made('REFUND', 40n), 'applied'],
  [
    'a refund in totals before its capture',
    AUTHORIZED,
    made('REFUND', 30n, { providerPaymentId: undefined }),
    'mismatch',
  ],
  ['a capture beyond the authorization', AUTHORIZED, made('CAPTURE', AMOUNT + 1n), 'mismatch'],
  ['a refund beyond the payment', PURCHASED, made('REFUND', AMOUNT + 1n), 'mismatch'],
  [
    'a refund beyond all captures',
    operated(AUTHORIZED, 'CAPTURE', AMOUNT, 'c'),
    made('REFUND', 101n),
    'mismatch',
  ],
  ['a capture of a released authorization', released(AUTHORIZED), made('CAPTURE', 10n), 'mismatch'],
  ['an amount of zero', PURCHASED, made('REFUND', 0n), 'mismatch'],
  ['one during a dispute', disputed(PURCHASED, 'opened'), made('REFUND', 30n), 'mismatch'],
  ['one after a won dispute', disputed(PURCHASED, 'won'), made('REFUND', 30n), 'applied'],
  [
    'totals that may count a won dispute',
    disputed(PURCHASED, 'won'),
    made('REFUND', 30n, { reported: won }),
    'mismatch',
  ],
  ['money that a lost dispute took', disputed(PURCHASED, 'lost'), made('REFUND', 30n), 'unchanged'],
  ['one after a partly lost dispute', disputed(PURCHASED, 'lost', 99n), made('REFUND', 30n), 'mismatch'],
])(
  'an external operation is recorded once, if the payment allows it: %s',
  (_what, state, operation, expected) => {
    const { change: written } = told(state, operation);
    expect(typeof written === 'string' ? written : 'applied').toBe(expected);
  },
);

it('an external operation of a payment that failed needs manual review', () => {
  const outcome = {
    kind: 'declined',
    iso8583Code: '05',
    advice: 'NONE',
    providerData: APPROVED.providerData,
  } as const;
  const failed = learned(claimed(false), {
    kind: 'outcome',
    transactionId: BASE_ID,
    outcome,
    pauseS: 5,
  }).state;
  expect(told(failed, made('CAPTURE', 10n)).change).toBe('mismatch');
  expect(told(failed, made('REFUND', 10n)).change).toBe('mismatch');
});
