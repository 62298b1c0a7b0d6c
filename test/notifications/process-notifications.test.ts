import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Payment, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { NotificationSubject, ProviderConnection } from '#src/connectors/connector.ts';
import {
  MAX_TRIES,
  type ProcessDeps,
  pauseS,
  processDue,
} from '#src/payments/check/process-notifications.ts';
import { receiveNotification } from '#src/payments/check/receive-notification.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';

/** The result of each notification, in the order in which they were processed. */
let results: string[];

onOperatedPayments({ empties: 'payment, transaction, notification' });
beforeEach(() => {
  results = [];
});

/** The provider's connection, whose notifications are JSON: the subject itself, signed with the word "genuine". */
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

function depsOf(connection: ProviderConnection): ProcessDeps {
  return {
    ...payments.deps,
    connections: () => new Map([['ledger', connection]]),
    processed: { settled: (_id, result) => results.push(result), failed: (error) => Promise.reject(error) },
  };
}

async function notify(
  connection: ProviderConnection,
  message: object,
  signature = 'genuine',
): Promise<string> {
  const deps = depsOf(connection);
  const received = await receiveNotification(
    { ...deps, nowMs: () => Date.now(), notifications: { received: () => {} } },
    'ledger',
    {
      header: (name) => (name === 'signature' ? signature : undefined),
      query: '',
      body: Buffer.from(JSON.stringify({ key: randomUUID(), ...message })),
    },
  );
  await payments.tables.query('UPDATE notification SET process_at = now() WHERE process_at IS NOT NULL');
  // As if the look-up before had been a while ago.
  await payments.tables.query('UPDATE transaction SET notified_look_up_at = NULL');
  await processDue(deps);
  return received;
}

const transactionOf = ({ transactions }: Payment) => transactions?.id ?? '';

describe('a notification', () => {
  it('is a hint: the provider is looked up, and only that decides', async () => {
    const payment = await payments.pay({ wallet: true });
    expect(await notify(connectionOf(), { transactionId: transactionOf(payment) })).toBe('[accepted]');
    expect(await payments.stateOf(payment)).toBe('READY_TO_PAY/CREATED');
    payments.provider.payerPays(transactionOf(payment));
    await notify(connectionOf(), { transactionId: transactionOf(payment) });
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    expect(results).toEqual(['unchanged', 'applied']);
  });

  it('that is forged is refused and not stored', async () => {
    const payment = await payments.pay({ wallet: true });
    await expect(
      notify(connectionOf(), { transactionId: transactionOf(payment) }, 'forged'),
    ).rejects.toMatchObject({ reason: 'INVALID_CREDENTIALS' });
    expect(await payments.tables.query('SELECT 1 FROM notification')).toEqual([]);
  });

  it('that cannot be verified now is not stored, and is to be sent again', async () => {
    const later = connectionOf({ readNotification: async () => ({ kind: 'send_again', detail: 'away' }) });
    await expect(notify(later, {})).rejects.toMatchObject({ reason: 'SERVICE_UNAVAILABLE', retryAfterS: 60 });
    expect(await payments.tables.query('SELECT 1 FROM notification')).toEqual([]);
  });

  it('hands the reference that it gives to the look-up', async () => {
    const payment = await payments.pay({ wallet: true });
    const hints: unknown[] = [];
    const lookUp: ProviderConnection['lookUp'] = async (query) => {
      hints.push(query.hint);
      return { kind: 'unknown', detail: 'silence', providerData: undefined };
    };
    await notify(connectionOf({ lookUp }), { transactionId: transactionOf(payment), reference: '4711' });
    expect(hints).toEqual([{ reference: '4711' }]);
  });

  it('that is delivered twice is stored once', async () => {
    const payment = await payments.pay({ wallet: true });
    for (let i = 0; i < 2; i++) {
      await notify(connectionOf(), { key: 'same', transactionId: transactionOf(payment) });
    }
    expect(await payments.tables.query('SELECT 1 FROM notification')).toHaveLength(1);
    expect(results).toEqual(['unchanged']);
  });

  it('about nothing of ours is tried again, and changes nothing', async () => {
    await notify(connectionOf(), { reference: 'pi_unknown' });
    expect(results).toEqual(['unmatched']);
    const [row] = await payments.tables.query('SELECT process_at > now() AS again, result FROM notification');
    expect(row).toEqual({ again: true, result: 'unmatched' });
  });

  it('is tried again before it has waited a third longer, each hour at least, for two days', () => {
    let waitedS = 0;
    for (let tries = 1; tries < MAX_TRIES; tries++) {
      expect(pauseS(tries)).toBeLessThanOrEqual(Math.min(2 + waitedS / 3, 3_600));
      waitedS += pauseS(tries);
    }
    expect(waitedS).toBeGreaterThan(2 * 86_400);
  });

  it('decides by its signed fields where there is no look-up, if they fit the record, and not otherwise', async () => {
    const payment = await payments.pay({ wallet: true });
    const mute = connectionOf({ lookUp: undefined });
    await notify(mute, { transactionId: transactionOf(payment), minorUnits: 9_999 });
    expect(await payments.stateOf(payment)).toBe('READY_TO_PAY/CREATED');
    await notify(mute, { transactionId: transactionOf(payment), minorUnits: 10_000 });
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    expect(results).toEqual(['unchanged', 'applied']);
  });

  it.each([true, false])(
    'tells by its signed fields what became of a lost answer, where there is no look-up (capture: %s)',
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
      // It comes again, under another key: what is known stays.
      await notify(mute, { ...about, minorUnits: 10_000 });
      expect(await payments.stateOf(payment)).toBe(await payments.stateOf(known));
      expect(results).toEqual(['unchanged', 'applied', 'unchanged']);
    },
  );

  it("changes nothing of another connection's payment, whatever it is signed with", async () => {
    payments.provider.next.push('does it, unanswered');
    const payment = await payments.pay();
    await payments.tables.query("UPDATE transaction SET connection_id = 'another'");
    const about = { transactionId: transactionOf(payment) };
    await notify(connectionOf({ lookUp: undefined }), { ...about, minorUnits: 10_000 });
    await notify(connectionOf(), about);
    await notify(connectionOf(), { ...about, dispute: { stage: 'lost' } });
    expect(await payments.stateOf(payment)).toMatch(/^PENDING/);
    expect(new Set(results)).toEqual(new Set(['unmatched']));
  });

  it('waits while the creation that it is about is under way', async () => {
    payments.provider.next.push('does it, unanswered');
    const payment = await payments.pay();
    // As the claim left it: its lease runs, and nobody was answered.
    await payments.tables.query("UPDATE transaction SET look_up_at = now() + interval '1 minute'");
    await payments.tables.query('UPDATE payment SET answer = NULL');
    await notify(connectionOf({ lookUp: undefined }), {
      transactionId: transactionOf(payment),
      minorUnits: 10_000,
    });
    expect(results).toEqual(['waiting']);
  });
});

describe('a notification that was processed may be deleted, since the payment keeps what it told:', () => {
  const deleteProcessed = async () => {
    const rows = await payments.tables.query(
      'DELETE FROM notification WHERE process_at IS NULL RETURNING result',
    );
    expect(rows.length).toBeGreaterThan(0);
  };
  const versionOf = async ({ id }: Payment) =>
    (await payments.tables.query('SELECT version, event_sequence FROM payment WHERE id = $1', [id]))[0];

  it('told again, it is processed again and changes nothing', async () => {
    const payment = await payments.pay({ wallet: true });
    payments.provider.payerPays(transactionOf(payment));
    const told = { key: 'paid', transactionId: transactionOf(payment) };
    await notify(connectionOf(), told);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    const before = await versionOf(payment);
    await deleteProcessed();
    await notify(connectionOf(), told);
    expect(results).toEqual(['applied', 'unchanged']);
    expect(await versionOf(payment)).toEqual(before);
  });

  it('where its signature decides, too', async () => {
    const payment = await payments.pay({ wallet: true });
    const silent = connectionOf({ lookUp: undefined });
    const told = { key: 'signed', transactionId: transactionOf(payment), minorUnits: 10_000 };
    await notify(silent, told);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    const before = await versionOf(payment);
    await deleteProcessed();
    await notify(silent, told);
    expect(await versionOf(payment)).toEqual(before);
  });
});
