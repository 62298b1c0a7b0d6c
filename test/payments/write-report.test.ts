import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { beforeEach, describe, expect, it } from 'vitest';
import { CheckoutSchema, type Payment, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { RefundPaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { readResponse } from '#src/payments/keys/stored-response.ts';
import { refundPayment } from '#src/payments/operate/payment-operations.ts';
import { decodeRecord, encodeRecord } from '#src/payments/stored-record.ts';
import { type Reported, type WriteDeps, writeReport } from '#src/payments/write-change.ts';
import { interleave } from '../support/interleave.ts';
import { UNKNOWN } from '../support/outcomes.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { restBody } from '../support/stored-responses.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments({
  empties: 'payment, transaction, vaulted_token, single_use, webhook, event',
});
beforeEach(() => {
  payments.provider.next.length = 0;
});

const providerData = create(ProviderDataSchema);
const APPROVED: Outcome = {
  ...{ kind: 'approved', providerData, authorizationCode: '', retrievalReferenceNumber: '' },
};
const DECLINED: Outcome = { kind: 'declined', providerData, iso8583Code: '51', advice: 'NONE' };
const PENDING: Outcome = { kind: 'pending', providerData };
const EXPIRED: Outcome = { kind: 'expired', providerData };
const REDIRECT: Outcome = { kind: 'awaits_payer', providerData, show: { page: 'https://wallet.example' } };
const NOT_SENT: Outcome = { kind: 'not_sent', detail: 'closed', because: 'turned_away' };

/**
 * Writes an outcome of a payment's last transaction with the token of its last writer; its next check is 90 s
 * later.
 */
async function write(
  { id, transactions }: Payment,
  outcome: Outcome | 'lapsed',
  over: Partial<WriteDeps> = {},
) {
  const transactionId = transactions?.id ?? '';
  const [row] = await payments.tables.query('SELECT fence FROM transaction WHERE id = $1', [transactionId]);
  const leased = { accountId: ACCOUNT_ONE, paymentId: id, transactionId, fence: Number(row?.fence) };
  const report =
    outcome === 'lapsed'
      ? ({ kind: 'lapsed', transactionId } as const)
      : ({ kind: 'outcome', transactionId, outcome, pauseS: 90 } as const);
  return writeReport({ ...payments.deps, ...over }, leased, report);
}

/** Makes a refund of 10.00 USD that the provider does not answer. */
async function openRefund(): Promise<Payment> {
  const payment = await payments.pay();
  payments.provider.next.push('does it, unanswered');
  const amount = { currency: 'USD', value: { value: '10' } };
  const request = create(RefundPaymentRequestSchema, { paymentId: payment.id, amount });
  return (await refundPayment(payments.deps, request, payments.caller())).record;
}

/** Returns the written columns. */
function isWritten(reported: Reported) {
  if (typeof reported === 'string') throw new Error(`nothing was written: ${reported}`);
  return reported;
}

const rowOf = async ({ transactions }: Payment) =>
  (
    await payments.tables.query(
      `SELECT t.status, t.reference, round(extract(epoch FROM t.check_at - t.updated_at))::integer AS check_in_s,
         p.status AS payment, p.version, p.captured_minor_units AS captured, p.refunded_minor_units AS refunded,
         p.released, p.open_operation IS NOT NULL AS open
       FROM transaction t JOIN payment p ON p.account_id = t.account_id AND p.id = t.payment_id WHERE t.id = $1`,
      [transactions?.id],
    )
  )[0];

describe('the outcome of an operation', () => {
  const open = { check_in_s: 90, open: true, refunded: '0', payment: 'SUCCEEDED' };
  const over = { check_in_s: null, open: false, refunded: '0', payment: 'SUCCEEDED' };
  it.each<[Outcome, object]>([
    [
      { ...APPROVED, reference: 'theirs' } as Outcome,
      { ...over, status: 'SUCCEEDED', refunded: '1000', reference: 'theirs' },
    ],
    [DECLINED, { ...over, status: 'DECLINED', reference: null }],
    [NOT_SENT, { ...over, status: 'ERROR' }],
    [{ ...UNKNOWN, reference: 'theirs' } as Outcome, { ...open, status: 'PENDING', reference: 'theirs' }],
    [PENDING, { ...open, status: 'PENDING' }],
  ])(
    'the outcome of an operation is written to its row, its payment and the books: %j',
    async (outcome, expected) => {
      const refund = await openRefund();
      const written = await write(refund, outcome);
      expect(await rowOf(refund)).toMatchObject(expected);
      // The operation had already been answered, and its response does not change.
      const { record, earlier } = isWritten(written);
      expect(record.transactions?.id).toBe(refund.transactions?.id);
      const response = earlier && (await readResponse(payments.deps.responses, earlier));
      expect(`${response && restBody(response)}`).toContain('"status":"PENDING"');
    },
  );

  it('a known outcome of an operation stays unchanged, whatever is reported later', async () => {
    const refund = await openRefund();
    await write(refund, APPROVED);
    const before = await rowOf(refund);
    for (const outcome of [PENDING, UNKNOWN, APPROVED]) {
      expect(await write(refund, outcome)).toBe('unchanged');
    }
    expect(await write(refund, DECLINED)).toBe('contradiction');
    expect(await rowOf(refund)).toEqual(before);
  });

  it('the outcome of an operation cannot be a lapse, and needs a payment to act on', async () => {
    const refund = await openRefund();
    await expect(write(refund, 'lapsed')).rejects.toThrow('has no parent');
    await payments.tables.query("UPDATE transaction SET status = 'ERROR' WHERE parent_id IS NULL");
    await expect(write(refund, APPROVED)).rejects.toThrow('has no parent');
  });

  it('the outcome of an operation of a missing transaction is an error', async () => {
    const refund = await openRefund();
    await expect(write({ ...refund, id: randomUUID() }, APPROVED)).rejects.toThrow('does not exist');
    await payments.tables.query("DELETE FROM transaction WHERE type = 'REFUND'");
    await expect(write(refund, APPROVED)).rejects.toThrow('lacks transaction');
  });

  it('the outcome of an operation is reported to the observer, with an event to relay', async () => {
    const told: unknown[] = [];
    const noting: Partial<WriteDeps> = {
      eventWritten: () => told.push('event'),
      observer: {
        ...payments.deps.observer,
        finished: ({ id }, isLearnedLater) => told.push([id, isLearnedLater]),
      },
    };
    const [silent, loud] = [await openRefund(), await openRefund()];
    await write(silent, APPROVED, noting);
    await payments.tables.query(
      `INSERT INTO webhook (account_id, id, url, description, events, secret)
       VALUES ($1, $2, 'http://127.0.0.1:1', '', '{payment.refund}', '')`,
      [ACCOUNT_ONE, randomUUID()],
    );
    await write(loud, APPROVED, noting);
    expect(await write(loud, APPROVED, noting)).toBe('unchanged');
    expect(told).toEqual([[silent.id, true], 'event', [loud.id, true]]);
  });

  /** The database with a hook that runs before each write, and the number of writes. */
  function beforeWrites(act: (count: number) => Promise<unknown>) {
    let count = 0;
    const write_change = (nth: number) => {
      count = nth;
      return act(nth);
    };
    return { database: interleave(payments.database, { before: { write_change } }), count: () => count };
  }
  const change = () => payments.tables.query('UPDATE payment SET version = version + 1');

  it("an operation's outcome is recomputed if its payment has changed, at most sixty times", async () => {
    const refund = await openRefund();
    const once = beforeWrites(async (count) => count === 1 && change());
    isWritten(await write(refund, PENDING, once));
    const often = beforeWrites(async (count) => count < 60 && change());
    isWritten(await write(refund, PENDING, often));
    const always = beforeWrites(change);
    await expect(write(refund, APPROVED, always)).rejects.toThrow('keeps changing');
    expect([once.count(), often.count(), always.count()]).toEqual([2, 60, 60]);
  });

  it('an open outcome is not written once another worker has claimed the transaction, but a final one is', async () => {
    const refund = await openRefund();
    const taken = beforeWrites(() => payments.tables.query('UPDATE transaction SET fence = fence + 1'));
    const before = await rowOf(refund);
    expect(await write(refund, PENDING, taken)).toBe('lost');
    expect(await rowOf(refund)).toEqual(before);
    expect(isWritten(await write(refund, APPROVED, taken)).fence).toBeUndefined();
    expect(await rowOf(refund)).toMatchObject({ status: 'SUCCEEDED', refunded: '1000', open: false });
  });
});

describe("the outcome of a payment's own transaction", () => {
  const set = (columns: string) => payments.tables.query(`UPDATE transaction SET ${columns}`);

  it.each<[string, Outcome, boolean]>([
    ['CREATED', DECLINED, true],
    ['PENDING', EXPIRED, true],
    ['EXPIRED', APPROVED, true],
    ['EXPIRED', DECLINED, false],
    ['DECLINED', APPROVED, false],
    ['SUCCEEDED', DECLINED, false],
  ])(
    "a payment's own transaction changes from %s to the reported outcome %j: %j",
    async (status, outcome, becomes) => {
      const payment = await payments.pay({ wallet: true });
      await set(`status = '${status}'`);
      const before = await rowOf(payment);
      const written = await write(payment, outcome);
      if (becomes) isWritten(written);
      else expect(written).toBeTypeOf('string');
      if (!becomes) expect(await rowOf(payment)).toEqual(before);
    },
  );

  it.each<[string, Outcome, unknown[]]>([
    ['is kept once it is approved', APPROVED, [{ active: true }]],
    ['is dropped once it is declined', DECLINED, []],
    ['keeps waiting while the provider has yet to decide', PENDING, [{ active: false }]],
    ['keeps waiting while the payer is away', REDIRECT, [{ active: false }]],
  ])('the card that waits for the outcome of a payment %s', async (_what, outcome, cards) => {
    const payment = await payments.pay({ wallet: true });
    const card = randomUUID();
    await payments.tables.query(
      "INSERT INTO vaulted_token (id, account_id, type, card, card_number, active) VALUES ($1, $2, 'CARD', '', 'sealed', false)",
      [card, ACCOUNT_ONE],
    );
    await set(`vaulted_token = '${card}', awaits_payer = false`);
    const { record } = isWritten(await write(payment, outcome));
    expect(await payments.tables.query('SELECT active FROM vaulted_token')).toEqual(cards);
    if (outcome !== APPROVED || !record.updatedAt) return;
    // The approval set the time of its last use.
    expect(await payments.tables.query('SELECT last_used_at FROM vaulted_token')).toEqual([
      { last_used_at: timestampDate(record.updatedAt) },
    ]);
  });

  /** Makes a payment that uses a checkout session. */
  async function payInSession(capture: boolean): Promise<{ payment: Payment; uses: () => Promise<number> }> {
    const payment = await payments.pay(capture ? { wallet: true } : { capture: false });
    const session = randomUUID();
    const [row] = await payments.tables.query('SELECT record FROM payment');
    const record = decodeRecord(row?.record as Uint8Array);
    record.checkout = { ...create(CheckoutSchema), ...record.checkout, session };
    await payments.tables.query('UPDATE payment SET record = $1', [encodeRecord(record)]);
    await payments.tables.query(
      'INSERT INTO single_use (account_id, object_id, payment_id) VALUES ($1, $2, $3)',
      [...[ACCOUNT_ONE, session, payment.id]],
    );
    return { payment, uses: async () => (await payments.tables.query('SELECT FROM single_use')).length };
  }

  it('a failed payment lets its checkout session be paid again', async () => {
    const { payment, uses } = await payInSession(true);
    await write(payment, PENDING);
    expect(await uses()).toBe(1);
    await write(payment, EXPIRED);
    expect(await uses()).toBe(0);
  });

  it('an approval that lapsed does not release its checkout session', async () => {
    const { payment, uses } = await payInSession(false);
    await write(payment, 'lapsed');
    expect(await rowOf(payment)).toMatchObject({
      ...{ status: 'EXPIRED', payment: 'EXPIRED', released: true, check_in_s: null },
    });
    expect(await uses()).toBe(1);
  });

  it('a lapse that two workers find is written once', async () => {
    const payment = await payments.pay({ capture: false });
    await write(payment, 'lapsed');
    const before = await rowOf(payment);
    expect(await write(payment, 'lapsed')).toBe('unchanged');
    expect(await rowOf(payment)).toEqual(before);
  });
});
