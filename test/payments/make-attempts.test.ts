import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Payment_Status, Payment_SubStatus_Value, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { statesOf } from '#src/payments/model/states.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { runs } from '../support/fixed-seed.ts';
import { APPROVED, declined, PENDING, UNKNOWN } from '../support/outcomes.ts';
import {
  ACCOUNT_ONE,
  cardPayment,
  ENROLLED_WALLET,
  VAULTED_CARD,
  withField,
} from '../support/payment-requests.ts';
import { clock } from '../support/process-clock.ts';
import {
  arbScript,
  endStates,
  expectedOutcomes,
  expectNoSecondCharge,
  NOT_SENT,
  reportedOf,
  shownOf,
  TOLD,
} from './attempt-outcomes.ts';
import { isOpen, onScriptedPayments, payments } from './scripted-payments.ts';

const CARD = cardPayment();

onScriptedPayments();

describe('any sequence of outcomes', () => {
  it('any sequence of outcomes makes at most one charge, with every attempt committed before it is sent', async () => {
    await fc.assert(
      fc.asyncProperty(arbScript, async (script) => {
        await payments.tables.query('TRUNCATE payment, transaction');
        const payment = payments.payment(CARD, script);
        const { record, body, replayed } = await payment.send();
        const made = expectedOutcomes(script);
        expect(payment.calls.map(({ connectionId }) => connectionId)).toEqual(
          made.map((_, i) => `t${i + 1}`),
        );
        expectNoSecondCharge(payment.calls, script);

        const states = made.map((outcome) => statesOf(outcome, TOLD));
        const shown = payment.calls.map(({ connectionId, transactionId }, i) => ({
          id: transactionId,
          providerId: connectionId.toUpperCase(),
          status: Transaction_Status[states[i]?.transaction ?? 0],
          responseCode: states[i]?.responseCode,
        }));
        expect(shownOf(record)).toEqual(shown);
        expect(record.transactions).toBe(reportedOf(record));
        expect(record.status).toBe(endStates(made).payment);
        expect(await payments.rows()).toEqual(
          payment.calls.map(({ connectionId, transactionId }, i) => ({
            id: transactionId,
            connection_id: connectionId,
            status: shown[i]?.status,
            open: made[i] !== undefined && isOpen(made[i]),
          })),
        );

        // The response, the current record and the replay are equal, byte for byte.
        expect(replayed).toBe(false);
        expect(payments.encode(record)).toEqual(body);
        const caller = { accountId: ACCOUNT_ONE, secretPresented: true };
        expect(payments.encode(await getPayment(payments, record.id, caller))).toEqual(body);
        expect(await payment.send()).toMatchObject({ body, replayed: true });
        expect(payment.calls).toHaveLength(made.length);
      }),
      { numRuns: runs(100) },
    );
  });
});

describe('a second attempt', () => {
  it('a second attempt that is approved stores the card under the requested token', async () => {
    const request = withField(CARD, 'payment_method.vault_on_success', true);
    const payment = payments.payment(request, { outcomes: [NOT_SENT, APPROVED] });
    const { record } = await payment.send();
    const token = record.paymentMethod?.vaultedToken ?? '';
    expect(await payments.tables.query('SELECT active FROM vaulted_token WHERE id = $1', [token])).toEqual([
      { active: true },
    ]);
    const tokens = record.transactionsHistory.map(({ paymentMethod }) => paymentMethod?.vaultedToken);
    expect(tokens).toEqual(['', token]);
  });

  it('a second attempt that is declined drops the card', async () => {
    const request = withField(CARD, 'payment_method.vault_on_success', true);
    const stored = 'SELECT id FROM vaulted_token ORDER BY id';
    const before = await payments.tables.query(stored);
    await payments.payment(request, { outcomes: [NOT_SENT, declined('05')] }).send();
    expect(await payments.tables.query(stored)).toEqual(before);
  });

  it('a second attempt is not made with a wallet that is enrolled at the first provider', async () => {
    const request = {
      account_id: ACCOUNT_ONE,
      merchant_order_id: 'order-3',
      country: 'MX',
      amount: { currency: 'MXN', value: 499 },
      payment_method: { type: 'WALLET_C_ENROLLMENT' },
      workflow: 'DIRECT',
    };
    const script = { outcomes: [NOT_SENT, PENDING] };
    const token = withField(request, 'payment_method.vaulted_token', ENROLLED_WALLET);
    const withToken = payments.payment(token, script);
    expect((await withToken.send()).record.status).toBe(Payment_Status.ERROR);
    expect(withToken.calls).toHaveLength(1);
    // Without a provider token, the second attempt is allowed.
    const without = payments.payment(request, script);
    expect((await without.send()).record.status).toBe(Payment_Status.PENDING);
    expect(without.calls).toHaveLength(2);
  });

  it('a payment whose failover cannot be sent stays declined by the last provider that answered', async () => {
    const outcomes = [declined('05'), NOT_SENT, declined('51'), NOT_SENT, NOT_SENT];
    const payment = payments.payment(CARD, { outcomes, softDeclines: true });
    const { record } = await payment.send();
    expect(Payment_Status[record.status]).toBe('DECLINED');
    expect(Payment_SubStatus_Value[record.subStatus]).toBe('DECLINED');
    expect(record.transactions).toMatchObject({ providerId: 'T3', responseCode: 'INSUFFICIENT_FUNDS' });
    const history = ['DECLINED', 'ERROR', 'DECLINED', 'ERROR', 'ERROR'];
    expect(shownOf(record).map(({ status }) => status)).toEqual(history);
    expect(await payments.tables.query('SELECT status FROM payment')).toEqual([{ status: 'DECLINED' }]);
    // The record in the database shows the same transaction.
    expect((await payment.settle()).transactions?.id).toBe(record.transactions?.id);
    expect((await payment.send()).record.transactions?.id).toBe(record.transactions?.id);
  });

  it('a soft decline that its provider forbids to repeat elsewhere is not sent to another provider', async () => {
    const forbidden = { ...declined('51'), nowhereElse: true } as Outcome;
    const payment = payments.payment(CARD, { outcomes: [forbidden, APPROVED], softDeclines: true });
    expect((await payment.send()).record.status).toBe(Payment_Status.DECLINED);
    expect(payment.calls.map(({ connectionId }) => connectionId)).toEqual(['t1']);
  });

  it('a second attempt that is approved stores the card of the first', async () => {
    const request = withField(CARD, 'payment_method.vault_on_success', true);
    const payment = payments.payment(request, { outcomes: [NOT_SENT, APPROVED] });
    const { record } = await payment.send();
    const token = record.paymentMethod?.vaultedToken;
    expect(token).toMatch(/^[0-9a-f-]{36}$/);
    const [row] = await payments.tables.query('SELECT vaulted_token FROM transaction WHERE id = $1', [
      record.transactions?.id,
    ]);
    expect(row).toEqual({ vaulted_token: token });
  });

  it('a second attempt with a stored card marks it as used, even if its approval is learned late', async () => {
    const request = withField(CARD, 'payment_method', { type: 'CARD', vaulted_token: VAULTED_CARD });
    const payment = payments.payment(request, { outcomes: [NOT_SENT, UNKNOWN], truth: APPROVED });
    await payment.send();
    await payments.tables.query('UPDATE vaulted_token SET last_used_at = NULL');
    expect((await payment.settle()).status).toBe(Payment_Status.SUCCEEDED);
    const used = 'SELECT id FROM vaulted_token WHERE last_used_at IS NOT NULL';
    expect(await payments.tables.query(used)).toEqual([{ id: VAULTED_CARD }]);
  });

  it('a second attempt skips a target whose circuit opened, and the decline stays if there is no other target', async () => {
    let open = new Set<string>();
    const script = {
      outcomes: [declined('05'), APPROVED, APPROVED],
      softDeclines: true,
      isAvailable: (connectionId: string) => !open.has(connectionId),
      aroundCall: (_connectionId: string, call: () => Promise<Outcome>) => {
        open = new Set(left.pop());
        return call();
      },
    };
    const left = [['t2'], ['t2', 't3']];
    const stays = payments.payment(CARD, script);
    expect((await stays.send()).record.status).toBe(Payment_Status.DECLINED);
    expect(stays.calls.map(({ connectionId }) => connectionId)).toEqual(['t1']);
    open = new Set();
    const goesOn = payments.payment(CARD, script);
    expect((await goesOn.send()).record.status).toBe(Payment_Status.SUCCEEDED);
    expect(goesOn.calls.map(({ connectionId }) => connectionId)).toEqual(['t1', 't3']);
  });

  it('a second attempt skips a target without a free slot, and releases its own slot at the end', async () => {
    const held = new Set<string>();
    const slotsOf = (id: string) => ({
      hasRoom: () => true,
      take() {
        if (id === 't2') return undefined;
        held.add(id);
        return () => held.delete(id);
      },
    });
    const payment = payments.payment(CARD, {
      outcomes: [NOT_SENT, APPROVED, APPROVED],
      slots: new Map(['t1', 't2', 't3'].map((id) => [id, slotsOf(id)])),
      aroundCall: (connectionId, call) => {
        expect([...held]).toEqual([connectionId]);
        return call();
      },
    });
    expect((await payment.send()).record.status).toBe(Payment_Status.SUCCEEDED);
    expect(payment.calls.map(({ connectionId }) => connectionId)).toEqual(['t1', 't3']);
    expect([...held]).toEqual([]);
  });

  it('a circuit that opens at the last moment does not use up an attempt', async () => {
    const untried: Outcome = { kind: 'not_sent', detail: 'circuit open', because: 'circuit_open' };
    const payment = payments.payment(CARD, { outcomes: [untried, NOT_SENT, APPROVED], maxAttempts: 1 });
    expect((await payment.send()).record.status).toBe(Payment_Status.ERROR);
    expect(payment.calls.map(({ connectionId }) => connectionId)).toEqual(['t1', 't2']);
  });

  it('a second attempt is not begun if the first took longer than a caller waits', async () => {
    const payment = payments.payment(CARD, {
      outcomes: [NOT_SENT, APPROVED],
      aroundCall: (_connectionId, call) => {
        clock.aheadMs += 15_000;
        return call();
      },
    });
    expect((await payment.send()).record.status).toBe(Payment_Status.ERROR);
    expect(payment.calls).toHaveLength(1);
    expect(await payments.rows()).toHaveLength(1);
  });

  it('a second attempt is not sent if its commit took longer than a caller waits', async () => {
    const payment = payments.payment(CARD, {
      outcomes: [NOT_SENT, APPROVED],
      around: async (statement, run) => {
        const result = await run();
        if (statement === 'write_next_attempt') clock.aheadMs += 15_000;
        return result;
      },
    });
    expect((await payment.send()).record.status).toBe(Payment_Status.ERROR);
    expect(payment.calls).toHaveLength(1);
    expect(await payments.rows()).toMatchObject([{ status: 'ERROR' }, { status: 'ERROR' }]);
  });

  it.each([
    ['sent', 2, APPROVED, 'SUCCEEDED'],
    ['begun, not sent', 1, NOT_SENT, 'DECLINED'],
  ])(
    'a second attempt whose process died after it was %s is finished by recovery, with its whole history',
    async (_name, sent, ended, status) => {
      const died = Promise.withResolvers<void>();
      const die = <T>() => {
        died.resolve();
        return new Promise<T>(() => {});
      };
      const payment = payments.payment(CARD, {
        outcomes: [declined('51'), APPROVED],
        softDeclines: true,
        around: async (statement, run) => {
          const result = await run();
          return sent === 1 && statement === 'write_next_attempt' ? die() : result;
        },
        aroundCall: (connectionId, call) => (connectionId === 't2' ? die() : call()),
      });
      void payment.send();
      await died.promise;
      const stands = await payment.settle();
      expect(Payment_Status[stands.status]).toBe(status);
      expect(payment.calls).toHaveLength(sent);
      const states = [declined('51'), ended].map((outcome) => statesOf(outcome, TOLD));
      expect(shownOf(stands)).toMatchObject([
        { providerId: 'T1', status: 'DECLINED', responseCode: states[0]?.responseCode },
        { providerId: 'T2', responseCode: states[1]?.responseCode },
      ]);
    },
  );
});

describe('a target that does not support the request', () => {
  const request = withField(CARD, 'payment_method.detail.card.installments', 3);
  const able = { installments: true };

  it('a target that does not support the request is skipped, first and in failover, without an attempt', async () => {
    const outcomes = [APPROVED, NOT_SENT, APPROVED, APPROVED];
    const payment = payments.payment(request, { outcomes, capabilities: { t2: able, t4: able } });
    const { record } = await payment.send();
    expect(payment.calls.map(({ connectionId }) => connectionId)).toEqual(['t2', 't4']);
    expect(record.transactionsHistory.map(({ providerId }) => providerId)).toEqual(['T2', 'T4']);
  });

  it('a request that no target supports is refused, without using its key or the database', async () => {
    const payment = payments.payment(request, { outcomes: [APPROVED, APPROVED] });
    await expect(payment.send()).rejects.toMatchObject({
      reason: 'OPERATION_NOT_SUPPORTED',
      fields: [{ field: 'payment_method.detail.card.installments', code: 'NOT_SUPPORTED' }],
    });
    expect(payment.calls).toEqual([]);
    expect(await payments.rows()).toEqual([]);
  });
});
