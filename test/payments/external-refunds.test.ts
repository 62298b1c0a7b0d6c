import { describe, expect, it, vi } from 'vitest';
import { type Payment, Transaction_Type } from '#gen/payments/v1/payment_pb.js';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Dispute } from '#src/connectors/port/dispute-report.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { reportDispute } from '#src/payments/check/check-transaction.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { checkOperations, leaveOperations, lookAgain, notified } from '../support/news.ts';
import { APPROVED } from '../support/outcomes.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { earlier, wantEveryEvent } from '../support/tables.ts';
import { alarms, idOf, news, onOperatedPayments, others, payments, refund } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction, notification, webhook, event' });

/** A connection that runs a hook during a look-up, after it has read its answer. */
const meanwhile = (act: () => Promise<unknown>): ProviderConnection => {
  const { connection } = payments.provider;
  let isFirst = true;
  return {
    ...connection,
    async lookUp(query) {
      const told = (await connection.lookUp?.(query)) as Outcome;
      if (isFirst) await act();
      isFirst = false;
      return told;
    },
  };
};

/** A stage of a dispute is reported on its own, without a look-up. */
const tellDispute = (payment: Payment, dispute: Dispute) =>
  reportDispute(
    {
      deps: payments.deps,
      leased: { accountId: ACCOUNT_ONE, paymentId: payment.id, transactionId: idOf(payment), fence: 0 },
    },
    dispute,
  );

describe('a refund made at the provider itself', () => {
  it('a refund made at the provider becomes a REFUND of the payment, and limits later refunds', async () => {
    await wantEveryEvent(payments.tables);
    const payment = await payments.pay();
    payments.provider.elsewhere(idOf(payment), { refunded: 2_500n });
    const [finished, eventWritten] = [vi.fn(), vi.fn()];
    const observed = { ...payments.deps, observer: { ...payments.deps.observer, finished }, eventWritten };
    expect(await notified(observed, 'ledger', { transactionId: idOf(payment) })).toBe('applied');
    expect([finished.mock.calls.length, eventWritten.mock.calls.length]).toEqual([1, 1]);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
    const record = await getPayment(payments.deps, payment.id, payments.caller());
    expect(record.amount?.refunded).toMatchObject({ value: '25.00' });
    expect(record.transactions).toMatchObject({
      ...{ type: Transaction_Type.REFUND, parentTransactionId: idOf(payment), amount: { value: '25.00' } },
      description: 'Made at the provider itself',
      merchantReference: `reference-${record.transactions?.id}`,
    });
    expect(record.transactionsHistory).toHaveLength(2);
    const events = () => payments.tables.query('SELECT type, sequence FROM event ORDER BY sequence');
    const told = [
      { type: 'payment.purchase', sequence: 1 },
      { type: 'payment.refund', sequence: 2 },
    ];
    expect(await events()).toEqual(told);
    // A second report is recognized.
    expect([await news(payment), await events()]).toEqual(['unchanged', told]);
    await expect(refund(payment, { amount: '80' })).rejects.toMatchObject({ reason: 'INVALID_AMOUNT' });
    await refund(payment);
    expect([await payments.stateOf(payment), await news(payment)]).toEqual([
      'REFUNDED/REFUNDED',
      'unchanged',
    ]);
    expect(await others(payment)).toEqual(['REFUND SUCCEEDED 2500', 'REFUND SUCCEEDED 7500']);
    expect(alarms).toEqual([]);
  });

  it('a refund made at the provider itself does not change the response to its payment', async () => {
    const payer = payments.caller();
    const { payment, body } = await payments.payAs(payer);
    payments.provider.elsewhere(idOf(payment), { refunded: 2_500n });
    expect(await news(payment)).toBe('applied');
    expect((await payments.payAs(payer)).body).toEqual(body);
  });

  it('a refund made at the provider waits for our refund of unknown outcome, and counts in addition to it', async () => {
    const payment = await payments.pay();
    payments.provider.next.push('does it, unanswered');
    await refund(payment, { amount: '30' });
    await leaveOperations();
    expect(await news(payment)).toBe('waiting');
    payments.provider.elsewhere(idOf(payment), { refunded: 2_000n });
    expect(await lookAgain(payments.deps)).toBe('waiting');
    // An excess over the payment raises no alarm yet: some of it may be our own refund.
    payments.provider.elsewhere(idOf(payment), { refunded: 6_000n });
    expect([await lookAgain(payments.deps), alarms]).toEqual(['waiting', []]);
    payments.provider.elsewhere(idOf(payment), { refunded: -6_000n });
    await checkOperations(payments.deps);
    expect(await others(payment)).toEqual(['REFUND SUCCEEDED 3000']);
    expect([await lookAgain(payments.deps), await news(payment)]).toEqual(['applied', 'unchanged']);
    expect(await others(payment)).toEqual(['REFUND SUCCEEDED 3000', 'REFUND SUCCEEDED 2000']);
  });

  it('a refund made at the provider without a notification is looked up again after our open one', async () => {
    const payment = await payments.pay();
    payments.provider.next.push('does it, unanswered');
    await refund(payment, { amount: '30' });
    await leaveOperations();
    payments.provider.elsewhere(idOf(payment), { refunded: 2_000n });
    await payments.tables.query('UPDATE transaction SET check_at = now() WHERE parent_id IS NULL');
    await checkDue(payments.deps);
    await payments.makeDue();
    await checkDue(payments.deps);
    await payments.makeDue();
    await checkDue(payments.deps);
    expect(await others(payment)).toEqual(['REFUND SUCCEEDED 3000', 'REFUND SUCCEEDED 2000']);
  });

  it.each(['does it', 'does it, unanswered'] as const)(
    'a refund made at the provider is not confused with our refund that began during the look-up (%s)',
    async (behaviour) => {
      const payment = await payments.pay();
      payments.provider.elsewhere(idOf(payment), { refunded: 2_000n });
      payments.provider.next.push(behaviour);
      expect(
        await news(
          payment,
          meanwhile(() => refund(payment, { amount: '30' })),
        ),
      ).toBe('waiting');
      await checkOperations(payments.deps);
      expect([await lookAgain(payments.deps), await news(payment)]).toEqual(['applied', 'unchanged']);
      expect(await others(payment)).toEqual(['REFUND SUCCEEDED 3000', 'REFUND SUCCEEDED 2000']);
    },
  );

  it('a refund made at the provider is booked once, by any number of replicas, and in addition to ours', async () => {
    const payment = await payments.pay();
    payments.provider.elsewhere(idOf(payment), { refunded: 1_000n });
    // Simulates the end of each replica's lease during its look-up.
    const check = async () => {
      await news(payment);
      await payments.makeDue();
      return checkDue(payments.deps);
    };
    const calls = [1, 2, 3, 4].flatMap(() => [
      check(),
      refund(payment, { amount: '10' }).catch(() => undefined),
    ]);
    await Promise.all(calls);
    while ((await lookAgain(payments.deps)) !== 'waiting');
    while ((await news(payment)) !== 'unchanged');
    const { refunded, captured } = payments.provider.bookOf(idOf(payment));
    const [books] = await payments.tables.query(
      'SELECT refunded_minor_units::integer AS refunded FROM payment',
    );
    expect(books).toEqual({ refunded: Number(refunded) });
    const made = (await others(payment)).filter((one) => one === 'REFUND SUCCEEDED 1000');
    expect(BigInt(made.length)).toBe(refunded / 1_000n);
    expect(refunded <= captured).toBe(true);
  });

  it('a refund made at the provider during a dispute raises an alarm, and is recorded if the dispute is won', async () => {
    const payment = await payments.pay();
    await tellDispute(payment, { stage: 'opened', reference: 'd', money: undefined });
    payments.provider.elsewhere(idOf(payment), { refunded: 1_000n });
    expect([await news(payment), alarms]).toEqual(['unchanged', ['mismatch']]);
    expect(await payments.stateOf(payment)).toBe('IN_DISPUTE/RECEIVED');
    await tellDispute(payment, { stage: 'won', reference: 'd', money: undefined });
    expect([await news(payment), await payments.stateOf(payment)]).toEqual([
      'applied',
      'SUCCEEDED/PARTIALLY_REFUNDED',
    ]);
  });

  it.each([true, false])(
    'a look-up that reports another charge than the recorded one changes nothing (purchase: %j)',
    async (isPurchase) => {
      const payment = await payments.pay({ capture: isPurchase });
      await payments.tables.query("UPDATE transaction SET provider_payment_id = 'ours'");
      const totals = { captured: 10_000n, refunded: 1_000n };
      const lookUp = async () => ({ ...APPROVED, totals, providerPaymentId: 'theirs' });
      const connection: ProviderConnection = { ...payments.provider.connection, lookUp };
      const learned = vi.spyOn(payments.deps.checked, 'learned');
      expect([await news(payment, connection), await others(payment)]).toEqual(['unchanged', []]);
      const detail = 'alarm: charged twice: ours is recorded, and the provider also approved theirs';
      expect(learned.mock.calls.map(([, result]) => result)).toMatchObject([{ alarm: true, detail }]);
    },
  );

  it('a refund made at the provider raises an alarm if it may be the won dispute itself', async () => {
    const payment = await payments.pay();
    await tellDispute(payment, { stage: 'won', reference: 'd', money: undefined });
    const totals = { captured: 10_000n, refunded: 1_000n, mayCountDisputes: true } as const;
    const lookUp = async () => ({ ...APPROVED, totals });
    const connection: ProviderConnection = { ...payments.provider.connection, lookUp };
    expect([await news(payment, connection), alarms]).toEqual(['unchanged', ['mismatch']]);
    expect(await news(await payments.pay(), connection)).toBe('applied');
  });

  it('a refund made at the provider itself is not recorded if a lost dispute took the money', async () => {
    const payment = await payments.pay();
    await tellDispute(payment, { stage: 'lost', reference: 'd', money: undefined });
    payments.provider.elsewhere(idOf(payment), { refunded: 10_000n });
    expect([await news(payment), await payments.stateOf(payment), alarms]).toEqual([
      'unchanged',
      'CHARGEBACK/LOST',
      [],
    ]);
  });

  it('a refund made at the provider raises an alarm if a lost dispute took a part of the money', async () => {
    const payment = await payments.pay();
    const money = { minorUnits: 3_000n, currency: 'USD' };
    await tellDispute(payment, { stage: 'lost', reference: 'd', money });
    payments.provider.elsewhere(idOf(payment), { refunded: 3_000n });
    expect([await news(payment), await payments.stateOf(payment), alarms]).toEqual([
      ...['unchanged', 'CHARGEBACK/LOST'],
      ['mismatch'],
    ]);
  });

  it('a refund made at the provider is recorded by the look-up that ends its dispute', async () => {
    const payment = await payments.pay();
    const dispute = { reference: 'm', money: undefined };
    await tellDispute(payment, { stage: 'opened', ...dispute });
    payments.provider.elsewhere(idOf(payment), { refunded: 1n });
    const { connection } = payments.provider;
    const ending: ProviderConnection = {
      ...connection,
      lookUp: async (query) => ({
        ...((await connection.lookUp?.(query)) as Outcome & { kind: 'approved' }),
        endedDisputes: [{ stage: 'won', ...dispute }],
      }),
    };
    expect([await news(payment, ending), await payments.stateOf(payment), alarms]).toEqual([
      'applied',
      'SUCCEEDED/PARTIALLY_REFUNDED',
      [],
    ]);
  });

  it('a look-up that reports the end of a dispute without a refund prompts one more look-up', async () => {
    const payment = await payments.pay();
    const dispute = { reference: 'm', money: undefined };
    await tellDispute(payment, { stage: 'opened', ...dispute });
    const lookUp = vi.fn(
      async () => ({ ...APPROVED, endedDisputes: [{ stage: 'won', ...dispute }] }) as Outcome,
    );
    expect(await news(payment, { ...payments.provider.connection, lookUp })).toBe('applied');
    expect([await payments.stateOf(payment), lookUp.mock.calls.length]).toEqual(['SUCCEEDED/APPROVED', 1]);
  });

  it.each([
    ['more than was paid', { refunded: 10_001n }],
    ['more than is left', { refunded: 9_001n }],
  ])(
    'a refund made at the provider itself raises an alarm and changes nothing if it is %s',
    async (_what, made) => {
      const payment = await payments.pay();
      if (made.refunded < 10_000n) {
        await refund(payment, { amount: '10' });
      }
      payments.provider.elsewhere(idOf(payment), made);
      const before = await payments.stateOf(payment);
      expect([await news(payment), await payments.stateOf(payment), alarms]).toEqual([
        'unchanged',
        before,
        ['mismatch'],
      ]);
    },
  );

  it.each([true, false])(
    'a refund that the provider later undoes raises an alarm (purchase: %j)',
    async (isPurchase) => {
      const payment = await payments.pay({ capture: isPurchase });
      // The payment's age makes no difference: only a recent refund may be missing from the totals.
      await payments.tables.query(`UPDATE transaction SET created_at = ${earlier('created_at', '2 hours')}`);
      payments.provider.elsewhere(idOf(payment), { captured: isPurchase ? 0n : 10_000n, refunded: 2_000n });
      await news(payment);
      payments.provider.elsewhere(idOf(payment), { refunded: -2_000n });
      payments.setAhead(3_500_000);
      expect([await news(payment), alarms]).toEqual(['unchanged', []]);
      payments.setAhead(3_700_000);
      expect([await news(payment), alarms]).toEqual(['unchanged', ['contradiction']]);
      expect(await payments.stateOf(payment)).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
    },
  );

  it("a refund total below that in the books is ignored, since the provider's totals may lag", async () => {
    const payment = await payments.pay();
    await refund(payment, { amount: '30' });
    payments.provider.elsewhere(idOf(payment), { refunded: -3_000n });
    expect([await news(payment), await others(payment), alarms]).toEqual([
      'unchanged',
      ['REFUND SUCCEEDED 3000'],
      [],
    ]);
  });
});
