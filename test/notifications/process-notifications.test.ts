import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Payment, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { NotificationSubject, ProviderConnection } from '#src/connectors/port/connector.ts';
import { type CheckerDeps, checkDue } from '#src/payments/check/checker.ts';
import { receiveNotification } from '#src/payments/check/news.ts';
import { newsPauseS } from '#src/payments/model/schedule.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';
import { earlier } from '../support/tables.ts';
import { pass } from './notified-payments.ts';

/** The result of each notification, in the order in which they were settled. */
let results: string[];

onOperatedPayments({ empties: 'payment, transaction, notification' });
beforeEach(() => {
  results = [];
});

/** The provider's connection. Its notifications are JSON subjects, signed with the word "genuine". */
function connectionOf(over: Partial<ProviderConnection> = {}): ProviderConnection {
  return {
    ...payments.provider.connection,
    async readNotification({ header, body }) {
      if (header('signature') !== 'genuine') return { kind: 'forged', detail: 'no' };
      const { key, minorUnits, ...subject } = JSON.parse(Buffer.from(body).toString());
      const signed: NotificationSubject['signed'] = minorUnits && {
        outcome: {
          kind: 'approved',
          providerData: create(ProviderDataSchema),
          authorizationCode: '',
          retrievalReferenceNumber: '',
        },
        minorUnits: BigInt(minorUnits),
        currency: 'USD',
      };
      return {
        kind: 'about',
        deduplicationKey: key,
        subjects: [{ ...subject, ...(signed && { signed }) }],
        acknowledgement: '[accepted]',
      };
    },
    ...over,
  };
}

function depsOf(connection: ProviderConnection): CheckerDeps {
  return {
    ...payments.deps,
    connections: () => new Map([['ledger', connection]]),
    settled: (_id, result) => results.push(result),
  };
}

/** Receives a notification, and checks everything due. */
async function notify(
  connection: ProviderConnection,
  message: object,
  signature = 'genuine',
  connectionId = 'ledger',
): Promise<string> {
  const deps = depsOf(connection);
  // Lets the pause since the previous check pass.
  await payments.tables.query(`UPDATE notification SET settled_at = ${earlier('settled_at', '1 minute')}`);
  await payments.tables.query('UPDATE notification SET check_at = now() WHERE check_at IS NOT NULL');
  const received = await receiveNotification(
    { ...deps, nowMs: () => Date.now(), wake: () => {}, notifications: { received: () => {} } },
    connectionId,
    {
      header: (name) => (name === 'signature' ? signature : undefined),
      query: '',
      body: Buffer.from(JSON.stringify({ key: randomUUID(), ...message })),
    },
  );
  await checkDue(deps);
  return received;
}

const transactionOf = ({ transactions }: Payment) => transactions?.id ?? '';

describe('notifications', () => {
  it('a notification prompts a look-up, and only the look-up decides', async () => {
    const payment = await payments.pay({ wallet: true });
    expect(await notify(connectionOf(), { transactionId: transactionOf(payment) })).toBe('[accepted]');
    expect(await payments.stateOf(payment)).toBe('READY_TO_PAY/CREATED');
    payments.provider.payerPays(transactionOf(payment));
    await notify(connectionOf(), { transactionId: transactionOf(payment) });
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    expect(results).toEqual(['unchanged', 'applied']);
  });

  it('a notification to an unknown connection gets the response of a forged one, so that nobody learns ids', async () => {
    const response = (connection: string) =>
      notify(connectionOf(), {}, 'forged', connection).then(
        () => undefined,
        (error) => [error.reason, error.message],
      );
    expect(await response('no-such-connection')).toEqual(await response('ledger'));
  });

  it('a forged notification is refused and not stored', async () => {
    const payment = await payments.pay({ wallet: true });
    await expect(
      notify(connectionOf(), { transactionId: transactionOf(payment) }, 'forged'),
    ).rejects.toMatchObject({ reason: 'INVALID_CREDENTIALS' });
    expect(await payments.tables.query('SELECT 1 FROM notification')).toEqual([]);
  });

  it('a notification that cannot be verified yet is not stored, and its sender is told to retry in a minute', async () => {
    const later = connectionOf({ readNotification: async () => ({ kind: 'send_again', detail: 'away' }) });
    await expect(notify(later, {})).rejects.toMatchObject({ reason: 'SERVICE_UNAVAILABLE', retryAfterS: 60 });
    expect(await payments.tables.query('SELECT 1 FROM notification')).toEqual([]);
  });

  it('the provider’s id in a notification is passed to the look-up', async () => {
    const payment = await payments.pay({ wallet: true });
    const hints: unknown[] = [];
    const lookUp: ProviderConnection['lookUp'] = async (query) => {
      hints.push(query.hint);
      return { kind: 'unknown', detail: 'silence', providerData: undefined };
    };
    await notify(connectionOf({ lookUp }), {
      transactionId: transactionOf(payment),
      providerPaymentId: '4711',
    });
    expect(hints).toEqual([{ providerPaymentId: '4711' }]);
  });

  it('a notification that is delivered twice is stored once', async () => {
    const payment = await payments.pay({ wallet: true });
    for (let i = 0; i < 2; i++) {
      await notify(connectionOf(), { key: 'same', transactionId: transactionOf(payment) });
    }
    expect(await payments.tables.query('SELECT 1 FROM notification')).toHaveLength(1);
    expect(results).toEqual(['unchanged']);
  });

  it('a notification without a matching transaction is retried for two days, then marked unmatched', async () => {
    await notify(connectionOf(), { providerPaymentId: 'pi_unknown' });
    const again = () => payments.tables.query('SELECT check_at > now() AS again, result FROM notification');
    expect(await again()).toEqual([{ again: true, result: null }]);
    await pass(2 * 86_400 - 60);
    await checkDue(depsOf(connectionOf()));
    expect(await again()).toEqual([{ again: true, result: null }]);
    expect(results).toEqual([]);
    await pass(3_600);
    await checkDue(depsOf(connectionOf()));
    expect(await again()).toEqual([{ again: null, result: 'unmatched' }]);
    expect(results).toEqual(['unmatched']);
  });

  it('a notification with both a transaction ID and the provider’s is matched by the transaction ID', async () => {
    const payment = await payments.pay();
    await payments.tables.query("UPDATE transaction SET provider_payment_id = 'theirs'");
    const transactionId = randomUUID();
    await notify(connectionOf(), { transactionId, providerPaymentId: 'theirs' });
    await notify(connectionOf(), { providerPaymentId: 'theirs' });
    const named = await payments.tables.query(
      'SELECT transaction_id AS id FROM notification ORDER BY received_at',
    );
    expect(named).toEqual([{ id: transactionId }, { id: payment.transactions?.id }]);
    expect(results).toEqual(['unchanged']);
  });

  it('a notification with an unknown transaction ID is marked unmatched, even if the provider’s is known', async () => {
    await payments.pay();
    await payments.tables.query("UPDATE transaction SET provider_payment_id = 'theirs'");
    await notify(connectionOf(), { transactionId: randomUUID(), providerPaymentId: 'theirs' });
    await pass(3 * 86_400);
    await checkDue(depsOf(connectionOf()));
    expect(results).toEqual(['unmatched']);
  });

  it('an unmatched notification is retried after at most a third of its age, and at least every hour', async () => {
    for (let ageS = 0; ageS < 3 * 86_400; ageS += newsPauseS(ageS * 1_000)) {
      expect(newsPauseS(ageS * 1_000)).toBeGreaterThanOrEqual(2);
      expect(newsPauseS(ageS * 1_000)).toBeLessThanOrEqual(Math.min(2 + ageS / 3, 3_600));
    }
    await notify(connectionOf(), { providerPaymentId: 'pi_unknown' });
    // The search uses the same pauses.
    for (const ageS of [60, 1_000, 86_400]) {
      await payments.tables.query(
        'UPDATE notification SET check_at = now(), received_at = now() - make_interval(secs => $1)',
        [ageS],
      );
      await checkDue(depsOf(connectionOf()));
      const [row] = await payments.tables.query(
        'SELECT extract(epoch FROM check_at - received_at)::float8 AS at_s FROM notification',
      );
      expect(Number(row?.at_s) / (ageS + newsPauseS(ageS * 1_000))).toBeCloseTo(1, 1);
    }
  });

  it("without a look-up, a notification's signed fields determine the outcome if the amount matches", async () => {
    const payment = await payments.pay({ wallet: true });
    const mute = connectionOf({ lookUp: undefined });
    await notify(mute, { transactionId: transactionOf(payment), minorUnits: 9_999 });
    expect(await payments.stateOf(payment)).toBe('READY_TO_PAY/CREATED');
    await notify(mute, { transactionId: transactionOf(payment), minorUnits: 10_000 });
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    expect(results).toEqual(['unchanged', 'applied']);
  });

  it.each([true, false])(
    'without a look-up, signed fields of a notification are the outcome of an unanswered payment (capture: %s)',
    async (capture) => {
      payments.provider.next.push('does it, unanswered');
      const payment = await payments.pay({ capture });
      expect(await payments.stateOf(payment)).toMatch(/^PENDING/);
      const mute = connectionOf({ lookUp: undefined });
      const about = { transactionId: transactionOf(payment) };
      await notify(mute, { ...about, minorUnits: 9_999 });
      expect(await payments.stateOf(payment)).toMatch(/^PENDING/);
      await notify(mute, { ...about, minorUnits: 10_000 });
      const known = await payments.pay({ capture });
      expect(await payments.stateOf(payment)).toBe(await payments.stateOf(known));
      // A repeat under another key changes nothing.
      await notify(mute, { ...about, minorUnits: 10_000 });
      expect(await payments.stateOf(payment)).toBe(await payments.stateOf(known));
      expect(results).toEqual(['unchanged', 'applied', 'unchanged']);
    },
  );

  it('a notification changes no payment of another connection, even if it is signed', async () => {
    payments.provider.next.push('does it, unanswered');
    const payment = await payments.pay();
    await payments.tables.query("UPDATE transaction SET connection_id = 'another'");
    const about = { transactionId: transactionOf(payment) };
    await notify(connectionOf({ lookUp: undefined }), { ...about, minorUnits: 10_000 });
    await notify(connectionOf(), about);
    await notify(connectionOf(), { ...about, dispute: { stage: 'lost' } });
    await pass(3 * 86_400);
    await checkDue(depsOf(connectionOf({ lookUp: undefined })));
    expect(await payments.stateOf(payment)).toMatch(/^PENDING/);
    expect(results).toEqual(['unmatched', 'unmatched', 'unmatched']);
  });

  it('a notification about a payment that is being created waits for the lease to end', async () => {
    payments.provider.next.push('does it, unanswered');
    const payment = await payments.pay();
    // The state after the claim: the lease has not ended, and no response was sent.
    await payments.tables.query("UPDATE transaction SET fence = 0, check_at = now() + interval '1 minute'");
    await payments.tables.query('UPDATE payment SET response = NULL');
    const mute = connectionOf({ lookUp: undefined });
    await notify(mute, { transactionId: transactionOf(payment), minorUnits: 10_000 });
    expect(results).toEqual([]);
    const times = `SELECT (SELECT check_at > now() + interval '50 seconds' FROM transaction) AS leased,
      (SELECT check_at > now() FROM notification) AS searched`;
    expect(await payments.tables.query(times)).toEqual([{ leased: true, searched: true }]);
    // The process that claimed the payment has died, so the notification is processed after the lease.
    await pass(60);
    await checkDue(depsOf(mute));
    expect(results).toEqual(['applied']);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });
});

describe('repeats of deleted notifications', () => {
  const deleteSettled = async () => {
    const rows = await payments.tables.query(
      'DELETE FROM notification WHERE settled_at IS NOT NULL RETURNING result',
    );
    expect(rows.length).toBeGreaterThan(0);
  };
  const versionOf = async ({ id }: Payment) =>
    (await payments.tables.query('SELECT version, event_sequence FROM payment WHERE id = $1', [id]))[0];

  it('a repeat of a deleted notification prompts a check and changes nothing', async () => {
    const payment = await payments.pay({ wallet: true });
    payments.provider.payerPays(transactionOf(payment));
    const told = { key: 'paid', transactionId: transactionOf(payment) };
    await notify(connectionOf(), told);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    const before = await versionOf(payment);
    await deleteSettled();
    await notify(connectionOf(), told);
    expect(results).toEqual(['applied', 'unchanged']);
    expect(await versionOf(payment)).toEqual(before);
  });

  it('a repeat of a deleted signed notification changes nothing if there is no look-up', async () => {
    const payment = await payments.pay({ wallet: true });
    const silent = connectionOf({ lookUp: undefined });
    const told = { key: 'signed', transactionId: transactionOf(payment), minorUnits: 10_000 };
    await notify(silent, told);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    const before = await versionOf(payment);
    await deleteSettled();
    await notify(silent, told);
    expect(await versionOf(payment)).toEqual(before);
  });
});
