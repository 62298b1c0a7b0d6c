import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'vitest';
import {
  PaymentSchema,
  ProviderDataSchema,
  Transaction_Category,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import { CARDS_ONLY, type Capabilities } from '#src/connectors/port/capabilities.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { apply, type Report } from '#src/payments/model/apply.ts';
import { leftToRefund, type OperationType, type PlannedOperation } from '#src/payments/model/books.ts';
import type { AddedTransaction, Change, Unapplied } from '#src/payments/model/change.ts';
import { type MovementCorrection, movedBy } from '#src/payments/model/movement.ts';
import { withOperation } from '#src/payments/model/operation-record.ts';
import { planCancelOf, planCaptureOf, planRefundOf, refundTarget } from '#src/payments/model/plan.ts';
import {
  booksOf,
  isOpen,
  isOperation,
  type PaymentState,
  succeededBase,
  type TransactionRow,
} from '#src/payments/model/state.ts';
import { decodeRecord, encodeRecord } from '#src/payments/stored-record.ts';
import { ServiceError } from '#src/service-error.ts';

/** The total that was authorized or purchased, in minor units of USD. */
export const AMOUNT = 100n;
export const CAN: Capabilities = {
  ...CARDS_ONLY,
  captures: 50,
  refunds: 'several',
  cancel: true,
  close: true,
};
export const BASE_ID = 'base';
export const FINGERPRINT = 'fingerprint';

const providerData = create(ProviderDataSchema);
export const APPROVED: Extract<Outcome, { kind: 'approved' }> = {
  ...{ kind: 'approved', providerData, authorizationCode: '', retrievalReferenceNumber: '' },
};

/** Time advances with each write: every change has its own time. */
export const timeOf = ({ payment }: PaymentState) => timestampFromMs(1_000 * (payment.version + 1));

const row = (over: Partial<TransactionRow> & Pick<TransactionRow, 'id' | 'type'>): TransactionRow => ({
  ...{ status: 'PENDING', parentId: undefined, connectionId: 'one', connectionIdentity: 'one' },
  ...{ minorUnits: AMOUNT, currency: 'USD', capture: false, isFinal: false },
  ...{ reference: undefined, providerPaymentId: undefined, reportedAt: undefined },
  ...{ vaultedToken: undefined, awaitsPayer: false, awaitsResponse: false, ageMs: 0 },
  ...{ methodKind: isOperation(over.type) ? undefined : 'CARD', payerTimeLeftMs: undefined },
  ...over,
});

/** A payment that was just claimed: its attempt has no outcome yet. */
export function claimed(capture: boolean): PaymentState {
  const type = capture ? Transaction_Type.PURCHASE : Transaction_Type.AUTHORIZE;
  const method = { type: 'CARD', detail: { kind: { case: 'card', value: { cardData: {} } } } } as const;
  const own = { id: BASE_ID, type, category: Transaction_Category.CARD, status: Transaction_Status.PENDING };
  const record = create(PaymentSchema, {
    ...{ id: 'payment', amount: { currency: 'USD' }, paymentMethod: { type: 'CARD' }, checkout: {} },
    transactionsHistory: [{ ...own, paymentMethod: method }],
  });
  return {
    payment: {
      ...{ version: 0, capturedMinorUnits: 0n, refundedMinorUnits: 0n },
      ...{ isReleased: false, cardFingerprint: FINGERPRINT, openOperation: undefined },
    },
    record: decodeRecord(encodeRecord(record)),
    transactions: [row({ id: BASE_ID, type: Transaction_Type[type], capture, providerPaymentId: 'base-id' })],
  };
}

/** Our own page, which a payer's code is shown on. */
export const OUR_PAGE = 'https://pay.example/v1/payments/p/pay';

/** A payment with a local method that was just claimed. */
export function claimedCode(group: 'bankTransfer' | 'ticket' = 'bankTransfer'): PaymentState {
  const { record, transactions, ...state } = claimed(true);
  const detail = { kind: { case: group, value: { redirectUrl: OUR_PAGE } } } as const;
  const category = group === 'ticket' ? Transaction_Category.TICKET : Transaction_Category.BANK_TRANSFER;
  const { PURCHASE: type } = Transaction_Type;
  const own = { id: BASE_ID, type, status: Transaction_Status.PENDING, category };
  const paymentMethod = { type: 'PIX', paymentMethodDetail: detail };
  return {
    ...state,
    record: create(PaymentSchema, {
      ...{ id: record.id, amount: { currency: 'USD' }, paymentMethod, checkout: { sdkActionRequired: true } },
      transactionsHistory: [{ ...own, paymentMethod: { type: 'PIX', detail } }],
    }),
    transactions: transactions.map((one) => ({
      ...one,
      methodKind: 'PAYER_CODE',
      providerPaymentId: undefined,
    })),
  };
}

/** The outcome of a local method's code that was made, or is still open. */
export const CODE = {
  ...{ kind: 'awaits_payer', providerData, show: { instructions: { text: '000201' } } },
} as const satisfies Outcome;

/** A payment with a code that its payer has yet to pay. */
export function awaitingCode(): PaymentState {
  const report = { kind: 'outcome', transactionId: BASE_ID, outcome: CODE, pauseS: 5 } as const;
  return learned(claimedCode(), report).state;
}

/** An approved payment. */
export function approved(capture: boolean): PaymentState {
  const report = { kind: 'outcome', transactionId: BASE_ID, outcome: APPROVED, pauseS: 5 } as const;
  return learned(claimed(capture), report).state;
}

/** A payment whose payer was sent away and has yet to act. */
export function awaitingPayer(capture: boolean): PaymentState {
  const outcome = { kind: 'awaits_payer', show: { page: 'https://wallet.example' }, providerData } as const;
  return learned(claimed(capture), { kind: 'outcome', transactionId: BASE_ID, outcome, pauseS: 5 }).state;
}

/** A payment after a report, and the result of the report. */
export type Learned = { readonly state: PaymentState; readonly change: Change | Unapplied };

/** Applies a report and keeps its changes, as the store does. It must not modify the given state. */
export function learned(state: PaymentState, report: Report): Learned {
  const before = toBinary(PaymentSchema, state.record);
  const change = apply(state, report, timeOf(state));
  expect(Buffer.compare(before, toBinary(PaymentSchema, state.record))).toBe(0);
  if (typeof change === 'string') return { state, change };
  return { state: kept(state, change), change };
}

function kept(state: PaymentState, change: Change): PaymentState {
  const { record, books, transaction, other, added, corrections = [] } = change;
  const status = transaction && Transaction_Status[transaction.status];
  const changed = state.transactions.map((one) =>
    one.id === transaction?.id && status
      ? {
          ...one,
          status,
          awaitsPayer: transaction.awaitsPayer,
          reference: transaction.reference ?? one.reference,
          providerPaymentId: transaction.providerPaymentId ?? one.providerPaymentId,
          reportedAt: laterOf(one.reportedAt, transaction.reportedAt),
          minorUnits: transaction.minorUnits ?? one.minorUnits,
          ...(status === 'SUCCEEDED' && { sinceSuccessMs: 0 }),
        }
      : one,
  );
  const also = changed.map((one) =>
    one.id === other?.id && other.ended
      ? { ...one, status: Transaction_Status[other.ended.status] ?? '', awaitsPayer: false }
      : one,
  );
  if (transaction && changed.every(({ id }) => id !== transaction.id))
    throw new Error(`${transaction.id} is not there`);
  const { openOperation } = state.payment;
  const isClosed = openOperation === transaction?.id && status !== 'PENDING' && status !== 'CREATED';
  const { row } = change.dispute ?? {};
  return {
    ...(state.disputes && { disputes: state.disputes }),
    ...(row && { disputes: [...(state.disputes ?? []).filter(({ id }) => id !== row.id), row] }),
    payment: {
      version: state.payment.version + 1,
      capturedMinorUnits: books.captured,
      refundedMinorUnits: books.refunded,
      isReleased: books.isReleased,
      cardFingerprint: state.payment.cardFingerprint,
      openOperation: isClosed ? undefined : openOperation,
    },
    record: decodeRecord(encodeRecord(record)),
    transactions: (added ? withAdded(also, added) : also).map((one) => withCorrections(one, corrections)),
  };
}

function laterOf(one: Date | undefined, other: Date | undefined): Date | undefined {
  if (!one || !other) return one ?? other;
  return one > other ? one : other;
}

function withCorrections(
  transaction: TransactionRow,
  corrections: readonly MovementCorrection[],
): TransactionRow {
  const own = corrections.filter(({ transactionId }) => transactionId === transaction.id);
  const { corrections: count = 0, correctedMinorUnits: sum = 0n } = transaction;
  expect(own.map(({ number }) => number)).toEqual(own.map((_, index) => count + index + 1));
  const corrected = own.reduce((all, { minorUnits }) => all + minorUnits, sum);
  return { ...transaction, corrections: count + own.length, correctedMinorUnits: corrected };
}

function withAdded(transactions: readonly TransactionRow[], added: AddedTransaction): TransactionRow[] {
  const { checkInS: _, reportedAt, ...columns } = added;
  const before = transactions.find(({ id }) => id === added.id);
  const providerPaymentId = before?.providerPaymentId ?? added.providerPaymentId;
  const status = Transaction_Status[added.status];
  const moved = { corrections: before?.corrections, correctedMinorUnits: before?.correctedMinorUnits };
  const after = row({
    ...{ ...columns, status, providerPaymentId, reportedAt, ...moved },
    ...(status === 'SUCCEEDED' && { sinceSuccessMs: 0 }),
  });
  return [...transactions.filter((one) => one !== before), after];
}

/** Begins an operation, as a merchant's request does. Returns the payment unchanged if it is refused. */
export function begun(
  state: PaymentState,
  type: OperationType,
  minorUnits: bigint,
  id: string,
): PaymentState {
  const { payment, record, transactions } = state;
  const awaiting = transactions.find((one) => one.awaitsPayer && isOpen(one));
  const base = succeededBase(transactions) ?? (type === 'CANCEL' ? awaiting : undefined);
  const own = record.transactionsHistory.find(({ id }) => id === base?.id);
  const isDisputed = transactions.some((one) => one.type === 'CHARGEBACK' && one.status !== 'DECLINED');
  if (!base || !own || isDisputed || payment.openOperation) return state;
  const operated = { books: booksOf(payment, base), base, transactions, can: CAN };
  const money = { minorUnits, currency: 'USD' };
  try {
    const target = type === 'REFUND' ? refundTarget(operated, base, money) : base;
    const plan: Record<OperationType, () => PlannedOperation> = {
      CAPTURE: () => planCaptureOf(operated, money),
      CANCEL: () => planCancelOf(operated),
      REFUND: () => planRefundOf(operated, target, money),
    };
    const planned = plan[type]();
    const facts = {
      transactionId: id,
      parentId: target.id,
      merchantReference: id,
      description: '',
      reason: '',
    };
    const draft = withOperation({ record, books: operated.books, base: own }, planned, facts, timeOf(state));
    const { isFinal } = planned;
    return {
      payment: { ...payment, version: payment.version + 1, openOperation: id },
      record: decodeRecord(encodeRecord(draft)),
      transactions: [
        ...transactions,
        row({ id, type, parentId: target.id, minorUnits: planned.money.minorUnits, isFinal }),
      ],
    };
  } catch (refusal) {
    if (refusal instanceof ServiceError) return state;
    throw refusal;
  }
}

/** Returns the sum of a payment's succeeded transactions of a type. */
export function sumOf({ transactions }: PaymentState, type: string): bigint {
  return transactions
    .filter((one) => one.type === type && one.status === 'SUCCEEDED')
    .reduce((sum, { minorUnits }) => sum + minorUnits, 0n);
}

/** Returns the money that a change moves: first movements and corrections, signed, as an export lists them. */
export function movedBetween(
  before: PaymentState,
  after: PaymentState,
  { corrections = [] }: Change,
): bigint {
  const first = after.transactions.filter(
    ({ id, sinceSuccessMs }) =>
      sinceSuccessMs !== undefined &&
      before.transactions.find((one) => one.id === id)?.sinceSuccessMs === undefined,
  );
  return [...first.map(movedBy), ...corrections.map(({ minorUnits }) => minorUnits)].reduce(
    (sum, moved) => sum + moved,
    0n,
  );
}

/** Returns the merchant's money in a payment according to its books and its disputes. */
export function moneyOf({ payment, transactions }: PaymentState): bigint {
  const base = succeededBase(transactions);
  const disputed = transactions.filter(({ type }) => type === 'CHARGEBACK');
  return disputed.reduce(
    (sum, { correctedMinorUnits = 0n }) => sum + correctedMinorUnits,
    base ? leftToRefund(booksOf(payment, base)) : 0n,
  );
}
