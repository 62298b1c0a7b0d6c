import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { type Payment, ProviderDataSchema, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import { CancelPaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { ProviderConnection, SignedOutcome } from '#src/connectors/port/connector.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { cancelPayment } from '#src/payments/operate/payment-operations.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { writeReport } from '#src/payments/write-change.ts';
import { bringNews } from '../support/bring-news.ts';
import { interleave } from '../support/interleave.ts';
import { checkOperations, forgetNews, notified, signed } from '../support/news.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { wantEveryEvent } from '../support/tables.ts';
import { alarms, capture, idOf, onOperatedPayments, others, payments, refund } from './operated-payments.ts';

/*
 * A provider without look-up reports a capture or a refund as done, and later signs a report that
 * the operation failed.
 */

onOperatedPayments({ empties: 'payment, transaction, notification, webhook, event' });

const DAY_MS = 86_400_000;

type Status = 'DONE' | 'FAILED';

/** A signed report about an operation. @param options.day when it happened; a failure a day later. */
function reportOf(
  { transactions }: Payment,
  status: Status,
  minorUnits = 10_000n,
  { corrects = true, day = status === 'DONE' ? 1 : 2 } = {},
): SignedOutcome {
  const providerPaymentId = `of-${transactions?.id}`;
  const told = { providerData: create(ProviderDataSchema, { status }), providerPaymentId };
  const approved = {
    kind: 'approved',
    ...told,
    authorizationCode: '',
    retrievalReferenceNumber: '',
  } as const;
  const declined = { kind: 'declined', ...told, iso8583Code: '05', advice: 'NONE' } as const;
  const earlier = status === 'DONE' ? ['FAILED'] : ['', 'DONE'];
  const outcome = { ...(status === 'DONE' ? approved : declined), ...(corrects && { corrects: earlier }) };
  return { outcome, minorUnits, currency: 'USD', at: new Date(day * DAY_MS) };
}

/** Applies the signed report about an operation. */
async function sign(
  operation: Payment,
  status: Status,
  minorUnits = 10_000n,
  { on = payments.deps, ...options }: { on?: typeof payments.deps; corrects?: boolean; day?: number } = {},
) {
  await forgetNews();
  const report = reportOf(operation, status, minorUnits, options);
  return signed(on, 'ledger', payments.provider.connection, idOf(operation), report);
}

/** The operation fails at the provider and disappears from its books. */
function undoAt(payment: Payment, undone: { captured?: bigint; refunded?: bigint }): void {
  payments.provider.elsewhere(idOf(payment), undone);
  payments.provider.bookOf(idOf(payment)).released = false;
}

/** The state of a payment, its captured and refunded amounts, and its other transactions. */
async function booksOf(payment: Payment): Promise<string[]> {
  const { amount } = await getPayment(payments.deps, payment.id, payments.caller());
  const amounts = `${amount?.captured?.value} ${amount?.refunded?.value}`;
  return [await payments.stateOf(payment), amounts, ...(await others(payment))];
}

const isHeld = async (payment: Payment) => {
  const [row] = await payments.tables.query(
    'SELECT check_at > now() AS held FROM transaction WHERE id = $1',
    [idOf(payment)],
  );
  return row?.held;
};

const authorize = () => payments.pay({ capture: false });

it('a capture that failed after it was done is DECLINED, and its amount can be captured again', async () => {
  const payment = await authorize();
  const captured = (await capture(payment)).record;
  expect(await booksOf(payment)).toEqual(['SUCCEEDED/CAPTURED', '100.00 0.00', 'CAPTURE SUCCEEDED 10000']);
  undoAt(payment, { captured: -10_000n });
  expect(await sign(captured, 'FAILED')).toBe('applied');
  expect(await booksOf(payment)).toEqual(['SUCCEEDED/APPROVED', '0.00 0.00', 'CAPTURE DECLINED 10000']);
  const { transactions } = await getPayment(payments.deps, payment.id, payments.caller());
  expect(transactions).toMatchObject({
    ...{ id: captured.transactions?.id, status: Transaction_Status.DECLINED, responseCode: 'CAPTURE_FAILED' },
    ...{ responseMessage: 'Capture failed at the provider', providerData: { status: 'FAILED' } },
  });
  const again = (await capture(payment)).record;
  expect(again.transactions?.status).toBe(Transaction_Status.SUCCEEDED);
  expect([await payments.stateOf(payment), alarms]).toEqual(['SUCCEEDED/CAPTURED', []]);
});

it('a refund that failed after it was done is DECLINED, and its amount can be refunded again', async () => {
  const payment = await payments.pay();
  const refunded = (await refund(payment)).record;
  expect(await payments.stateOf(payment)).toBe('REFUNDED/REFUNDED');
  undoAt(payment, { refunded: -10_000n });
  expect(await sign(refunded, 'FAILED')).toBe('applied');
  expect(await booksOf(payment)).toEqual(['SUCCEEDED/APPROVED', '0.00 0.00', 'REFUND DECLINED 10000']);
  const { transactions } = await getPayment(payments.deps, payment.id, payments.caller());
  expect(transactions).toMatchObject({
    ...{ responseCode: 'REFUND_FAILED', responseMessage: 'Refund failed at the provider' },
  });
  await refund(payment);
  expect([await payments.stateOf(payment), alarms]).toEqual(['REFUNDED/REFUNDED', []]);
});

it.each([
  ['DONE', 'FAILED'],
  ['FAILED', 'DONE'],
] as const)(
  'reports in the order %s, %s lead to the same books, however often they come',
  async (...order) => {
    const payment = await authorize();
    payments.provider.next.push('delays it');
    const captured = (await capture(payment)).record;
    const results = [];
    for (const status of [...order, ...order]) results.push(await sign(captured, status));
    expect(await booksOf(payment)).toEqual(['SUCCEEDED/APPROVED', '0.00 0.00', 'CAPTURE DECLINED 10000']);
    const { transactions } = await getPayment(payments.deps, payment.id, payments.caller());
    expect([transactions?.responseCode, alarms]).toEqual(['CAPTURE_FAILED', []]);
    expect(results.filter((result) => result !== 'unchanged').length).toBe(order[0] === 'DONE' ? 2 : 1);
  },
);

it('a correction emits one event, and leaves the response to the operation unchanged', async () => {
  await wantEveryEvent(payments.tables);
  const payment = await authorize();
  const captured = await capture(payment);
  for (let i = 0; i < 3; i++) await sign(captured.record, 'FAILED');
  const events = await payments.tables.query('SELECT type, sequence FROM event ORDER BY sequence');
  expect(events.slice(-2)).toEqual([
    { type: 'payment.capture', sequence: 2 },
    { type: 'payment.capture', sequence: 3 },
  ]);
  const [row] = await payments.tables.query('SELECT response_record FROM transaction WHERE id = $1', [
    captured.record.transactions?.id,
  ]);
  expect(row?.response_record).not.toBeNull();
});

it('two processes that apply a correction concurrently subtract the amount from the books once', async () => {
  const payment = await authorize();
  const captured = (await capture(payment)).record;
  const transactionId = idOf(captured);
  const leased = { accountId: ACCOUNT_ONE, paymentId: payment.id, transactionId, fence: 1 };
  const told = {
    kind: 'declined',
    iso8583Code: '05',
    advice: 'NONE',
    providerData: create(ProviderDataSchema),
  } as const;
  const outcome = { ...told, corrects: [''] };
  const report = { kind: 'outcome', transactionId, outcome, pauseS: 5 } as const;
  const written = await Promise.all([1, 2, 3].map(() => writeReport(payments.deps, leased, report)));
  expect(written.map((one) => typeof one).sort()).toEqual(['object', 'string', 'string']);
  expect(await booksOf(payment)).toEqual(['SUCCEEDED/APPROVED', '0.00 0.00', 'CAPTURE DECLINED 10000']);
});

it('a failed capture waits with an alarm while its amount is refunded, until the refund has failed too', async () => {
  const payment = await authorize();
  const captured = (await capture(payment)).record;
  const refunded = (await refund(payment, { amount: '40' })).record;
  expect(await sign(captured, 'FAILED')).toBe('waiting');
  expect([await booksOf(payment), alarms]).toEqual([
    ['SUCCEEDED/PARTIALLY_REFUNDED', '100.00 40.00', 'CAPTURE SUCCEEDED 10000', 'REFUND SUCCEEDED 4000'],
    ['contradiction'],
  ]);
  expect(await sign(refunded, 'FAILED', 4_000n)).toBe('applied');
  expect(await sign(captured, 'FAILED')).toBe('applied');
  expect(await booksOf(payment)).toEqual([
    ...['SUCCEEDED/APPROVED', '0.00 0.00', 'CAPTURE DECLINED 10000', 'REFUND DECLINED 4000'],
  ]);
});

it('a failed capture stays in the books if a refund of it was claimed after the payment was read', async () => {
  const payment = await authorize();
  const captured = (await capture(payment)).record;
  const refundOnce = async (nth: number) => {
    if (nth === 1) await refund(payment, { amount: '40' });
  };
  const database = interleave(payments.database, { before: { write_moved_change: refundOnce } });
  expect(await sign(captured, 'FAILED', 10_000n, { on: { ...payments.deps, database } })).toBe('waiting');
  expect((await booksOf(payment)).slice(0, 2)).toEqual(['SUCCEEDED/PARTIALLY_REFUNDED', '100.00 40.00']);
});

it('one of several captures fails if the others cover the refunded amount', async () => {
  const payment = await authorize();
  const [first, second] = [
    (await capture(payment, { amount: '50' })).record,
    (await capture(payment, { amount: '30' })).record,
  ];
  await refund(payment, { amount: '40' });
  expect(await sign(second, 'FAILED', 3_000n)).toBe('applied');
  expect(await sign(first, 'FAILED', 5_000n)).toBe('waiting');
  expect((await booksOf(payment)).slice(0, 2)).toEqual(['SUCCEEDED/PARTIALLY_REFUNDED', '50.00 40.00']);
});

it('a correction waits while an operation is open', async () => {
  const payment = await payments.pay();
  const refunded = (await refund(payment, { amount: '40' })).record;
  payments.provider.next.push('delays it');
  await refund(payment, { amount: '60' });
  expect(await payments.stateOf(payment)).toBe('REFUNDED/PENDING_PROVIDER_CONFIRMATION');
  expect(await sign(refunded, 'FAILED', 4_000n)).toBe('waiting');
  expect(await payments.stateOf(payment)).toBe('REFUNDED/PENDING_PROVIDER_CONFIRMATION');
  payments.provider.settleDelayed();
  await checkOperations(payments.deps);
  expect(await sign(refunded, 'FAILED', 4_000n)).toBe('applied');
  expect([(await booksOf(payment)).slice(0, 2), alarms]).toEqual([
    ['SUCCEEDED/PARTIALLY_REFUNDED', '0.00 60.00'],
    [],
  ]);
});

it('an operation that is claimed while a correction is written is kept, and the correction waits', async () => {
  const payment = await payments.pay();
  const refunded = (await refund(payment, { amount: '40' })).record;
  const claim = async (nth: number) => {
    if (nth > 1) return;
    payments.provider.next.push('delays it');
    await refund(payment, { amount: '60' });
  };
  const database = interleave(payments.database, { before: { write_moved_change: claim } });
  expect(await sign(refunded, 'FAILED', 4_000n, { on: { ...payments.deps, database } })).toBe('waiting');
  expect(await others(payment)).toEqual(['REFUND SUCCEEDED 4000', 'REFUND PENDING 6000']);
});

it('an authorization whose capture failed is checked again, so that it can lapse', async () => {
  const payment = await authorize();
  const captured = (await capture(payment)).record;
  payments.setAhead(2 * DAY_MS);
  await payments.makeDue();
  await checkDue(payments.deps);
  expect(await isHeld(payment)).toBeNull();
  payments.setAhead(0);
  undoAt(payment, { captured: -10_000n });
  await sign(captured, 'FAILED');
  expect(await isHeld(payment)).toBe(true);
});

it('a worker that read the authorization as captured does not end its schedule after the capture failed', async () => {
  const payment = await authorize();
  const captured = (await capture(payment)).record;
  const undo = async () => {
    undoAt(payment, { captured: -10_000n });
    expect(await sign(captured, 'FAILED')).toBe('applied');
  };
  const racing = {
    ...payments.deps,
    database: interleave(payments.database, { before: { postpone_check: undo } }),
  };
  await notified(racing, 'ledger', { transactionId: idOf(payment) });
  expect(await isHeld(payment)).toBe(true);
});

it('the amount that a cancel released stays released when an earlier capture fails', async () => {
  const payment = await authorize();
  const captured = (await capture(payment, { amount: '40' })).record;
  await cancelPayment(
    payments.deps,
    create(CancelPaymentRequestSchema, { paymentId: payment.id }),
    payments.caller(),
  );
  expect(await sign(captured, 'FAILED', 4_000n)).toBe('applied');
  expect((await booksOf(payment)).slice(0, 2)).toEqual(['CANCELED/CANCELED', '0.00 0.00']);
});

it('two signed reports that arrive before one check are both applied', async () => {
  const payment = await authorize();
  payments.provider.next.push('delays it');
  const operation = (await capture(payment)).record;
  const subject = { transactionId: idOf(operation) };
  const connection: ProviderConnection = {
    ...payments.provider.connection,
    lookUp: undefined,
    readNotification: async ({ body }) => ({
      ...{ kind: 'about', deduplicationKey: '' },
      subjects: [{ ...subject, signed: reportOf(operation, Buffer.from(body).toString() as Status) }],
    }),
  };
  for (const status of ['DONE', 'FAILED']) {
    await bringNews(payments.deps, 'ledger', subject, {
      deduplicationKey: status,
      body: Buffer.from(status),
    });
  }
  await payments.tables.query('UPDATE transaction SET check_at = now() WHERE id = $1', [idOf(operation)]);
  await checkDue({ ...payments.deps, connections: () => new Map([['ledger', connection]]) });
  const results = await payments.tables.query('SELECT result FROM notification ORDER BY received_at');
  expect([await others(payment), results]).toEqual([
    ['CAPTURE DECLINED 10000'],
    [{ result: 'applied' }, { result: 'applied' }],
  ]);
});

it('a failure that is not a correction changes nothing, and raises an alarm', async () => {
  const payment = await authorize();
  const captured = (await capture(payment)).record;
  expect(await sign(captured, 'FAILED', 10_000n, { corrects: false })).toBe('unchanged');
  expect([await payments.stateOf(payment), alarms]).toEqual(['SUCCEEDED/CAPTURED', ['contradiction']]);
});

it('a purchase stays SUCCEEDED despite any correction by its provider', async () => {
  const payment = await payments.pay();
  expect(await sign(payment, 'FAILED')).toBe('unchanged');
  expect([await payments.stateOf(payment), alarms]).toEqual(['SUCCEEDED/APPROVED', ['contradiction']]);
});
