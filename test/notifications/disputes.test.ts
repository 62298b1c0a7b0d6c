import { create } from '@bufbuild/protobuf';
import { beforeEach, expect, it, vi } from 'vitest';
import {
  type Payment,
  ProviderDataSchema,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import { RefundPaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { Dispute, DisputeStage } from '#src/connectors/port/dispute-report.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { refundPayment } from '#src/payments/operate/payment-operations.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { writeReport } from '#src/payments/write-change.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';
import { interleave } from '../support/interleave.ts';
import { notified } from '../support/news.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

const APPROVED: Outcome = {
  ...{ kind: 'approved', providerData: create(ProviderDataSchema), authorizationCode: '' },
  retrievalReferenceNumber: '',
};

/** The result of each report, in order. */
let results: string[];

onOperatedPayments({ empties: 'payment, transaction, notification, event' });
beforeEach(() => {
  results = [];
});

/** Reports a dispute of a payment. Without a dispute, prompts a look-up. */
async function tell(
  { transactions }: Payment,
  dispute: Dispute | undefined,
  connection = payments.provider.connection,
): Promise<void> {
  const deps = { ...payments.deps, connections: () => new Map([['ledger', connection]]) };
  results.push(await notified(deps, 'ledger', { transactionId: transactions?.id, dispute }));
}

async function tellAll(payment: Payment, stages: readonly DisputeStage[], reference?: string): Promise<void> {
  for (const stage of stages) await tell(payment, { stage, reference });
}

const recordOf = ({ id }: Payment) => getPayment(payments.deps, id, payments.caller());

const refund = ({ id }: Payment, value?: string) =>
  refundPayment(
    payments.deps,
    create(RefundPaymentRequestSchema, {
      paymentId: id,
      ...(value !== undefined && { amount: { currency: 'USD', value: { value } } }),
    }),
    payments.caller(),
  );

const rows = () =>
  payments.tables.query(
    "SELECT status, provider_payment_id AS reference, amount_minor_units::integer AS minor_units FROM transaction WHERE type = 'CHARGEBACK' ORDER BY created_at, id",
  );

it('a dispute makes the payment IN_DISPUTE, then CHARGEBACK when lost, and prevents refunds', async () => {
  const payment = await payments.pay();
  await tellAll(payment, ['opened']);
  expect(await payments.stateOf(payment)).toBe('IN_DISPUTE/RECEIVED');
  await expect(refund(payment)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  await tellAll(payment, ['lost']);
  expect(await payments.stateOf(payment)).toBe('CHARGEBACK/LOST');
  await tellAll(payment, ['opened']);
  expect(await payments.stateOf(payment)).toBe('CHARGEBACK/LOST');
  expect(await rows()).toMatchObject([{ status: 'SUCCEEDED' }]);
  expect(results).toEqual(['applied', 'applied', 'unchanged']);
});

it('a dispute reported during the approval of its payment waits, and leaves the approval unchanged', async () => {
  payments.provider.next.push('does it, unanswered');
  const payment = await payments.pay();
  const { deps, database } = payments;
  const transactionId = payment.transactions?.id ?? '';
  const approve = async (nth: number) => {
    if (nth > 1) return;
    const named = { accountId: ACCOUNT_ONE, paymentId: payment.id, transactionId, fence: 0 };
    const report = { kind: 'outcome', transactionId, outcome: APPROVED, pauseS: 60 } as const;
    await writeReport(deps, named, report);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  };
  const racing = { ...deps, database: interleave(database, { after: { read_payment_state: approve } }) };
  const dispute: Dispute = { stage: 'opened', reference: 'dp_1' };
  expect(await notified(racing, 'ledger', { transactionId, dispute })).toBe('waiting');
  expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  await payments.makeDue();
  expect(await checkDue(deps)).toBe(1);
  expect(await payments.stateOf(payment)).toBe('IN_DISPUTE/RECEIVED');
  const { transactionsHistory } = await recordOf(payment);
  expect(transactionsHistory.map(({ status }) => Transaction_Status[status])).toEqual([
    'SUCCEEDED',
    'PENDING',
  ]);
});

it('a stored addition to a dispute waits for the inquiry that it is about, and leaves its stage', async () => {
  const payment = await payments.pay();
  const supplied = { stage: 'opened', isAddition: true, case: { status: 'UNDER_REVIEW' } } as const;
  await tell(payment, { ...supplied, reference: 'dp_1' });
  const asked = { stage: 'INQUIRY', status: 'NEEDS_RESPONSE' } as const;
  await tell(payment, { stage: 'opened', reference: 'dp_1', case: asked });
  const stored = () =>
    payments.tables.query('SELECT stage, status FROM dispute WHERE payment_id = $1', [payment.id]);
  expect(await stored()).toEqual([]);
  await vi.waitFor(async () => {
    await payments.makeDue();
    await checkDue(payments.deps);
    expect(await stored()).toEqual([{ stage: 'INQUIRY', status: 'UNDER_REVIEW' }]);
  });
  expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
});

it('a dispute has the last reported amount, and a repeated report changes nothing', async () => {
  const payment = await payments.pay();
  const report = (stage: DisputeStage, minorUnits: bigint) =>
    tell(payment, { stage, reference: 'dp_1', money: { minorUnits, currency: 'USD' } });
  await report('opened', 3_000n);
  await report('opened', 3_000n);
  await report('lost', 10_000n);
  expect(results).toEqual(['applied', 'unchanged', 'applied']);
  expect(await rows()).toEqual([{ status: 'SUCCEEDED', reference: 'dp_1', minor_units: 10_000 }]);
  expect((await recordOf(payment)).transactions).toMatchObject({ responseCode: 'DISPUTE_LOST' });
});

it('a won dispute restores the earlier state of the payment', async () => {
  const payment = await payments.pay();
  await refund(payment, '10');
  await tellAll(payment, ['opened']);
  expect(await payments.stateOf(payment)).toBe('IN_DISPUTE/RECEIVED');
  await tellAll(payment, ['won']);
  expect(await payments.stateOf(payment)).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
});

it.each([undefined, 'dp_1'])(
  'a dispute lost after it was won makes the payment CHARGEBACK and prevents refunds (reference: %s)',
  async (reference) => {
    const payment = await payments.pay();
    await tellAll(payment, ['opened', 'won', 'lost'], reference);
    expect(await payments.stateOf(payment)).toBe('CHARGEBACK/LOST');
    await expect(refund(payment)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
    expect(await rows()).toMatchObject([{ status: 'SUCCEEDED' }]);
    expect(results).toEqual(['applied', 'applied', 'applied']);
  },
);

it.each<[DisputeStage[], string]>([
  [['won', 'opened'], 'SUCCEEDED/APPROVED'],
  [['opened', 'won', 'opened', 'won'], 'SUCCEEDED/APPROVED'],
  [['lost', 'won', 'opened'], 'CHARGEBACK/LOST'],
  [['lost', 'opened', 'won', 'lost'], 'CHARGEBACK/LOST'],
  [['opened', 'lost', 'won'], 'CHARGEBACK/LOST'],
])('repeated or reordered reports of a dispute do not undo later stages: %j', async (stages, state) => {
  for (const reference of [undefined, 'dp_1']) {
    const payment = await payments.pay();
    await tellAll(payment, stages, reference);
    expect(await payments.stateOf(payment)).toBe(state);
    // Settled notifications are deleted, so repeated reports count as new.
    await payments.tables.query('DELETE FROM notification');
    await tellAll(payment, stages, reference);
    expect(await payments.stateOf(payment)).toBe(state);
  }
  expect(await rows()).toHaveLength(2);
});

it('a second dispute after a won one is separate, and only its own reports decide it', async () => {
  const payment = await payments.pay();
  await tellAll(payment, ['opened', 'won'], 'dp_1');
  await tellAll(payment, ['opened'], 'dp_2');
  expect(await payments.stateOf(payment)).toBe('IN_DISPUTE/RECEIVED');
  await expect(refund(payment)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  await tellAll(payment, ['opened', 'won'], 'dp_1');
  expect(await payments.stateOf(payment)).toBe('IN_DISPUTE/RECEIVED');
  await tellAll(payment, ['won'], 'dp_2');
  expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  expect(await rows()).toMatchObject([
    { status: 'DECLINED', reference: 'dp_1' },
    { status: 'DECLINED', reference: 'dp_2' },
  ]);
  const { transactionsHistory } = await recordOf(payment);
  expect(transactionsHistory.filter(({ type }) => type === Transaction_Type.CHARGEBACK)).toHaveLength(2);
});

it('a payment that lost one dispute stays CHARGEBACK, whatever the outcome of another', async () => {
  const payment = await payments.pay();
  await tellAll(payment, ['lost'], 'dp_1');
  for (const stage of ['opened', 'won'] as const) {
    await tell(payment, { stage, reference: 'dp_2' });
    expect(await payments.stateOf(payment)).toBe('CHARGEBACK/LOST');
  }
});

it('a dispute report with a reference is about the open dispute that was recorded without one', async () => {
  const payment = await payments.pay();
  await tellAll(payment, ['opened']);
  await tellAll(payment, ['won'], 'dp_1');
  expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  expect(await rows()).toMatchObject([{ status: 'DECLINED', reference: 'dp_1' }]);
});

it('a dispute report with a reference starts a new dispute if the one recorded without a reference was won', async () => {
  const payment = await payments.pay();
  await tellAll(payment, ['opened', 'won']);
  await tellAll(payment, ['opened'], 'dp_2');
  expect(await payments.stateOf(payment)).toBe('IN_DISPUTE/RECEIVED');
  // Without references, a late report cannot be distinguished from a second dispute.
  const other = await payments.pay();
  await tellAll(other, ['opened', 'won', 'opened']);
  expect(await payments.stateOf(other)).toBe('SUCCEEDED/APPROVED');
});

/** Prompts a look-up that reports these disputes as ended. */
function lookUp(payment: Payment, ...endedDisputes: Dispute[]): Promise<void> {
  const { connection } = payments.provider;
  return tell(payment, undefined, {
    ...connection,
    lookUp: async () => ({ ...APPROVED, endedDisputes }),
  });
}

it.each([
  ['won', 'SUCCEEDED/APPROVED'],
  ['lost', 'CHARGEBACK/LOST'],
] as const)('an open dispute becomes %s when a look-up reports its end: %s', async (stage, state) => {
  const payment = await payments.pay();
  await lookUp(payment, { stage, reference: 'm_1' }, { stage, reference: 'c_1' });
  expect(await rows()).toEqual([]);
  await tellAll(payment, ['opened'], 'm_1');
  await lookUp(payment);
  await lookUp(payment, { stage, reference: 'c_1' });
  expect(await payments.stateOf(payment)).toBe('IN_DISPUTE/RECEIVED');
  await lookUp(payment, { stage, reference: 'c_1' }, { stage, reference: 'm_1' });
  expect(await payments.stateOf(payment)).toBe(state);
  expect(await rows()).toMatchObject([{ reference: 'm_1' }]);
  expect(results).toEqual(['unchanged', 'applied', 'unchanged', 'unchanged', 'applied']);
  // A later look-up does not change a decided dispute.
  for (const other of ['lost', 'won'] as const) await lookUp(payment, { stage: other, reference: 'm_1' });
  expect(await payments.stateOf(payment)).toBe(state);
});

it('if a look-up reports that a dispute has ended, this is recorded only after the open operation has ended', async () => {
  const payment = await payments.pay();
  await tellAll(payment, ['opened'], 'm_1');
  await payments.tables.query('UPDATE payment SET open_operation = $1', [payment.transactions?.id]);
  await lookUp(payment, { stage: 'won', reference: 'm_1' });
  expect(results).toEqual(['applied', 'waiting']);
  const [row] = await payments.tables.query(
    `SELECT extract(epoch FROM check_at - now())::float8 AS in_s FROM transaction WHERE id = $1`,
    [payment.transactions?.id],
  );
  expect(row?.in_s).toBeGreaterThan(0);
  await payments.tables.query('UPDATE payment SET open_operation = NULL');
  await lookUp(payment, { stage: 'won', reference: 'm_1' });
  expect(await payments.stateOf(payment)).toBe('IN_DISPUTE/RECEIVED');
  await payments.makeDue();
  await lookUp(payment, { stage: 'won', reference: 'm_1' });
  expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
});

it.each([
  ['a part of the payment', { minorUnits: 2_500n, currency: 'USD' }, 2_500],
  ['the whole', { minorUnits: 10_000n, currency: 'USD' }, 10_000],
  ['more than the payment', { minorUnits: 10_001n, currency: 'USD' }, 10_000],
  ['zero', { minorUnits: 0n, currency: 'USD' }, 10_000],
  ['another currency', { minorUnits: 2_500n, currency: 'EUR' }, 10_000],
  ['no money', undefined, 10_000],
])(
  'a dispute is recorded with the reported amount if that is between zero and the payment’s: %s',
  async (_of, money, minorUnits) => {
    const payment = await payments.pay();
    await tell(payment, { stage: 'opened', money });
    // A later report without an amount keeps the earlier amount.
    await tell(payment, { stage: 'lost' });
    expect(await rows()).toMatchObject([{ minor_units: minorUnits }]);
    const { transactions } = await recordOf(payment);
    expect(transactions).toMatchObject({
      type: Transaction_Type.CHARGEBACK,
      amount: { value: (minorUnits / 100).toFixed(2) },
    });
  },
);
