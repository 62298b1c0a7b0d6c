import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { CancelPaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { cancelPayment } from '#src/payments/operate/payment-operations.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { checkOperations, lookAgain } from '../support/news.ts';
import { alarms, capture, idOf, news, onOperatedPayments, others, payments } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction, notification, webhook, event' });

/** A provider that does not answer. */
const lookUp = async (): Promise<Outcome> => ({
  kind: 'unknown',
  detail: 'silence',
  providerData: undefined,
});

const operatedBooks = async () =>
  (await payments.tables.query('SELECT released FROM payment'))[0] as { released: boolean };

describe('a capture made at the provider itself', () => {
  it.each([
    [10_000n, 'SUCCEEDED/CAPTURED'],
    [4_000n, 'SUCCEEDED/PARTIALLY_CAPTURED'],
    [1n, 'SUCCEEDED/PARTIALLY_CAPTURED'],
  ])(
    'a capture made at the provider itself becomes a CAPTURE of the authorization: %s',
    async (captured, after) => {
      const payment = await payments.pay({ capture: false });
      payments.provider.elsewhere(idOf(payment), { captured });
      expect([await news(payment), await payments.stateOf(payment)]).toEqual(['applied', after]);
      expect(await others(payment)).toEqual([`CAPTURE SUCCEEDED ${captured}`]);
      expect([await news(payment), alarms]).toEqual(['unchanged', []]);
    },
  );

  it('a capture made at the provider is recorded along with an authorization whose approval is learned later', async () => {
    payments.provider.next.push('does it, unanswered');
    const payment = await payments.pay({ capture: false });
    payments.provider.elsewhere(idOf(payment), { captured: 10_000n });
    expect(await news(payment, { ...payments.provider.connection, lookUp })).toBe('waiting');
    expect(await lookAgain(payments.deps)).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/CAPTURED');
  });

  it('a capture made at the provider is found at the end of the term, and prevents the lapse', async () => {
    const payment = await payments.pay({ capture: false });
    payments.provider.elsewhere(idOf(payment), { captured: 10_000n });
    payments.setAhead(8 * 86_400_000);
    await payments.makeDue();
    await checkDue(payments.deps);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/CAPTURED');
    await payments.makeDue();
    await checkDue(payments.deps);
    expect([await payments.stateOf(payment), await others(payment)]).toEqual([
      'SUCCEEDED/CAPTURED',
      ['CAPTURE SUCCEEDED 10000'],
    ]);
  });

  it('totals at the provider with more refunds than captures raise an alarm at once', async () => {
    const payment = await payments.pay({ capture: false });
    payments.provider.elsewhere(idOf(payment), { refunded: 1_000n });
    expect([await news(payment), alarms]).toEqual(['unchanged', ['mismatch']]);
  });

  it('a capture made and refunded at the provider is recorded with its REFUND', async () => {
    const payment = await payments.pay({ capture: false });
    payments.provider.elsewhere(idOf(payment), { captured: 4_000n, refunded: 1_000n });
    expect([await news(payment), await payments.stateOf(payment)]).toEqual([
      'applied',
      'SUCCEEDED/PARTIALLY_REFUNDED',
    ]);
    const { transactionsHistory } = await getPayment(payments.deps, payment.id, payments.caller());
    const parents = await payments.tables.query('SELECT parent_id FROM transaction ORDER BY created_at, id');
    const [, captured] = transactionsHistory;
    expect(transactionsHistory[2]?.parentTransactionId).toBe(captured?.id);
    expect(parents.map((row) => row.parent_id)).toEqual([null, idOf(payment), captured?.id]);
  });

  it('a capture and its refund, both made at the provider, are recorded even if only one look-up is answered', async () => {
    const payment = await payments.pay({ capture: false });
    payments.provider.elsewhere(idOf(payment), { captured: 10_000n, refunded: 1_000n });
    const { connection } = payments.provider;
    const asked: string[] = [];
    const falling: typeof connection.lookUp = async (query) => {
      asked.push(query.transactionId);
      return asked.length === 2 ? lookUp() : ((await connection.lookUp?.(query)) as Outcome);
    };
    const scheduled = {
      ...payments.deps,
      connections: () => new Map([['ledger', { ...connection, lookUp: falling }]]),
    };
    const check = async () => {
      await payments.makeDue();
      return checkDue(scheduled);
    };
    expect([await check(), await payments.stateOf(payment), asked.length]).toEqual([
      1,
      'SUCCEEDED/CAPTURED',
      2,
    ]);
    expect([await check(), await payments.stateOf(payment)]).toEqual([1, 'SUCCEEDED/PARTIALLY_REFUNDED']);
    // Without further notifications, the provider is left alone.
    await check();
    const before = asked.length;
    expect([await check(), asked.length - before]).toEqual([0, 0]);
    expect(await others(payment)).toEqual(['CAPTURE SUCCEEDED 10000', 'REFUND SUCCEEDED 1000']);
  });

  it('a refund of a capture made at the provider is looked up until the provider answers', async () => {
    const payment = await payments.pay({ capture: false });
    payments.provider.elsewhere(idOf(payment), { captured: 10_000n, refunded: 1_000n });
    const { connection } = payments.provider;
    let asked = 0;
    const falling: typeof connection.lookUp = async (query) => {
      asked += 1;
      return asked === 1 || asked > 4 ? ((await connection.lookUp?.(query)) as Outcome) : lookUp();
    };
    const connections = () => new Map([['ledger', { ...connection, lookUp: falling }]]);
    for (let checks = 1; checks <= 4; checks++) {
      await payments.makeDue();
      expect(await checkDue({ ...payments.deps, connections })).toBe(1);
    }
    expect(await others(payment)).toEqual(['CAPTURE SUCCEEDED 10000', 'REFUND SUCCEEDED 1000']);
  });

  it('a capture made at the provider leaves our captures refundable there', async () => {
    const payment = await payments.pay({ capture: false });
    await capture(payment);
    payments.provider.elsewhere(idOf(payment), { refunded: 10_000n });
    expect([await news(payment), await payments.stateOf(payment)]).toEqual(['applied', 'REFUNDED/REFUNDED']);
    payments.setAhead(8 * 86_400_000);
    expect(await news(payment)).toBe('unchanged');
  });

  it('an unanswered look-up after a notification about a final authorization is repeated', async () => {
    const payment = await payments.pay({ capture: false });
    await capture(payment);
    expect(await news(payment, { ...payments.provider.connection, lookUp })).toBe('waiting');
    const due = "SELECT 1 FROM transaction WHERE id = $1 AND check_at <= now() + interval '5 seconds'";
    expect(await payments.tables.query(due, [idOf(payment)])).toHaveLength(1);
    expect(await lookAgain(payments.deps)).toBe('unchanged');
  });

  it.each(['declined', 'expired'] as const)(
    'a capture made at the provider is not recorded if the authorization was canceled here and is %s there',
    async (kind) => {
      const payment = await payments.pay({ capture: false });
      const { id: paymentId } = payment;
      await cancelPayment(
        payments.deps,
        create(CancelPaymentRequestSchema, { paymentId }),
        payments.caller(),
      );
      const providerData = create(ProviderDataSchema);
      const told = async (): Promise<Outcome> => ({ kind, providerData, iso8583Code: '05', advice: 'NONE' });
      const { connection } = payments.provider;
      expect(await news(payment, { ...connection, lookUp: told })).toBe('unchanged');
      expect([await payments.stateOf(payment), alarms]).toEqual(['CANCELED/CANCELED', []]);
    },
  );

  it.each([1, 2])(
    'a capture made at the provider itself releases the rest if its provider allows only %i captures',
    async (captures) => {
      const payment = await payments.pay({ capture: false });
      const { connection } = payments.provider;
      const capabilities = { ...connection.capabilities, captures };
      for (let made = 1; made <= captures; made++) {
        expect((await operatedBooks()).released).toBe(false);
        payments.provider.elsewhere(idOf(payment), { captured: 3_000n });
        expect(await news(payment, { ...connection, capabilities })).toBe('applied');
      }
      expect((await operatedBooks()).released).toBe(true);
      await expect(capture(payment)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
    },
  );

  it('a capture made at the provider waits for our open cancel, with an alarm if the authorization is final', async () => {
    const payment = await payments.pay({ capture: false });
    payments.provider.next.push('delays it');
    const { id: paymentId } = payment;
    await cancelPayment(payments.deps, create(CancelPaymentRequestSchema, { paymentId }), payments.caller());
    payments.provider.elsewhere(idOf(payment), { captured: 10_000n });
    expect(await news(payment)).toBe('waiting');
    payments.provider.settleDelayed();
    await checkOperations(payments.deps);
    expect([await lookAgain(payments.deps), await payments.stateOf(payment), alarms]).toEqual([
      'unchanged',
      'CANCELED/CANCELED',
      ['mismatch'],
    ]);
  });

  it('a capture made at the provider of an authorization that lapsed here raises an alarm', async () => {
    const payment = await payments.pay({ capture: false });
    payments.setAhead(8 * 86_400_000);
    await payments.makeDue();
    await checkDue(payments.deps);
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
    payments.provider.elsewhere(idOf(payment), { captured: 10_000n });
    expect([await news(payment), await payments.stateOf(payment), alarms]).toEqual([
      'unchanged',
      'EXPIRED/EXPIRED',
      ['mismatch'],
    ]);
  });
});
