import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { takeDueAttempts } from '#src/store/engine/look-ups.ts';
import { beginNextAttempt, type NextAttempt } from '#src/store/engine/next-attempt.ts';
import { finishPayment } from '#src/store/engine/payments.ts';
import { getPaymentRecord } from '#src/store/tables/payment-record.ts';
import { addBystanders } from '../support/bystanders.ts';
import { claimAttempt, type OpenAttempt } from '../support/open-attempts.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

const LEASE_S = 60;
const MOVED = Buffer.from('moved on');

onOwnDatabase({ empties: 'payment, transaction, vaulted_token', maxConnections: 8 });

/** Returns the attempt at another connection that follows a declined one. */
function nextOf({ paymentId, transactionId }: OpenAttempt): NextAttempt {
  const next = {
    transactionId: randomUUID(),
    transactionStatus: 'PENDING',
    connectionId: 'second',
    connectionIdentity: 'second account',
  };
  return {
    accountId: ACCOUNT_ONE,
    paymentId,
    record: MOVED,
    last: { transactionId, transactionStatus: 'DECLINED', reference: 'declined-1' },
    next: { ...next, leaseS: LEASE_S },
  };
}

/** Finishes an attempt with a known outcome, as its process or as recovery does. */
const finish = (attempt: OpenAttempt, transactionId = attempt.transactionId) =>
  finishPayment(database, {
    accountId: ACCOUNT_ONE,
    paymentId: attempt.paymentId,
    status: 'DECLINED',
    record: Buffer.from('finished'),
    answer: Buffer.from('answer'),
    transactionId,
    transactionStatus: 'DECLINED',
    fence: 0,
    lookUpInS: undefined,
    event: 'payment.purchase',
    vault: undefined,
  });

const attempts = () =>
  tables.query('SELECT * FROM transaction ORDER BY created_at, connection_id') as Promise<
    { id: string; look_up_at: Date | null; status: string }[]
  >;

const takeDue = () => {
  const take = { limit: 10, leaseS: LEASE_S };
  return takeDueAttempts(database, [
    { ...take, connectionId: 'scripted', identity: 'scripted' },
    { ...take, connectionId: 'second', identity: 'second account' },
  ]);
};

const everything = async () => [await attempts(), await tables.query('SELECT * FROM payment')];

describe('beginning the next attempt', () => {
  it('ends the last one, leases the new one, and moves the record, in one commit', async () => {
    const attempt = await claimAttempt(database, { leaseS: LEASE_S, vault: true });
    const begin = nextOf(attempt);
    const others = await addBystanders(tables, attempt.paymentId);
    expect(await beginNextAttempt(database, begin)).toBe(true);
    await others.expectUntouched();
    await tables.query('DELETE FROM payment WHERE id <> $1 OR account_id <> $2', [
      attempt.paymentId,
      ACCOUNT_ONE,
    ]);
    await tables.query('DELETE FROM transaction WHERE payment_id <> $1 OR account_id <> $2', [
      attempt.paymentId,
      ACCOUNT_ONE,
    ]);
    const inherited = {
      payment_id: attempt.paymentId,
      amount_minor_units: '5575',
      currency: 'USD',
      capture: false,
      vaulted_token: attempt.vaultedToken,
      fence: 0,
    };
    expect(await attempts()).toMatchObject([
      {
        ...inherited,
        id: attempt.transactionId,
        status: 'DECLINED',
        reference: 'declined-1',
        look_up_at: null,
        connection_identity: 'scripted',
      },
      {
        ...inherited,
        id: begin.next.transactionId,
        status: 'PENDING',
        connection_id: 'second',
        connection_identity: 'second account',
      },
    ]);
    const [lease] = await tables.query(
      'SELECT extract(epoch FROM look_up_at - created_at)::float8 AS s FROM transaction WHERE id = $1',
      [begin.next.transactionId],
    );
    expect(lease?.s).toBe(LEASE_S);
    expect(await getPaymentRecord(database, ACCOUNT_ONE, attempt.paymentId)).toEqual(MOVED);
    expect(await tables.query('SELECT status, answer FROM payment')).toEqual([
      { status: 'PENDING', answer: null },
    ]);
  });

  it('said again after its acknowledgement was lost is true again, and begins no other', async () => {
    const begin = nextOf(await claimAttempt(database, { leaseS: LEASE_S }));
    expect(await beginNextAttempt(database, begin)).toBe(true);
    const before = await everything();
    expect(await beginNextAttempt(database, begin)).toBe(true);
    expect(await everything()).toEqual(before);
  });

  it('said again once recovery has taken what it began is false', async () => {
    const begin = nextOf(await claimAttempt(database, { leaseS: LEASE_S }));
    await beginNextAttempt(database, { ...begin, next: { ...begin.next, leaseS: 0 } });
    expect(await takeDue()).toMatchObject([{ transactionId: begin.next.transactionId, record: MOVED }]);
    const before = await everything();
    expect(await beginNextAttempt(database, begin)).toBe(false);
    expect(await everything()).toEqual(before);
  });

  it('said again once what it began has ended is false', async () => {
    const attempt = await claimAttempt(database, { leaseS: LEASE_S });
    const begin = nextOf(attempt);
    await beginNextAttempt(database, begin);
    await finish(attempt, begin.next.transactionId);
    expect(await beginNextAttempt(database, begin)).toBe(false);
  });

  it('is false when it is another account that has such an attempt', async () => {
    const attempt = await claimAttempt(database, { leaseS: LEASE_S });
    const begin = nextOf(attempt);
    await beginNextAttempt(database, begin);
    await addBystanders(tables, attempt.paymentId);
    await finish(attempt, begin.next.transactionId);
    expect(await beginNextAttempt(database, begin)).toBe(false);
  });

  it('notes when the last attempt and the payment have changed', async () => {
    const attempt = await claimAttempt(database, { leaseS: LEASE_S });
    await beginNextAttempt(database, nextOf(attempt));
    const [row] = await tables.query(
      `SELECT t.updated_at > t.created_at AS attempt, p.updated_at > t.created_at AS payment
       FROM transaction t JOIN payment p ON p.id = t.payment_id WHERE t.id = $1`,
      [attempt.transactionId],
    );
    expect(row).toEqual({ attempt: true, payment: true });
  });

  it.each<[string, (attempt: OpenAttempt) => Promise<unknown>]>([
    ['recovery has taken the last attempt', () => takeDue()],
    ['its outcome is written', (attempt) => finish(attempt)],
    ['the payment has gone on to another attempt', (attempt) => beginNextAttempt(database, nextOf(attempt))],
  ])('is false, and changes nothing, when %s', async (_name, happens) => {
    const attempt = await claimAttempt(database, { leaseS: 0 });
    await happens(attempt);
    const before = await everything();
    expect(await beginNextAttempt(database, nextOf(attempt))).toBe(false);
    expect(await everything()).toEqual(before);
  });

  it('is done once when it is said many times at once', async () => {
    const begin = nextOf(await claimAttempt(database, { leaseS: LEASE_S }));
    const begun = await Promise.all(Array.from({ length: 8 }, () => beginNextAttempt(database, begin)));
    // Who came too early to see what another was committing is told false, and sends nothing.
    expect(begun).toContain(true);
    expect(await attempts()).toHaveLength(2);
  });

  it('at once with the end of the last attempt: one of them holds, and the other changes nothing', async () => {
    const seen = new Set<boolean>();
    for (let i = 0; i < 40; i++) {
      await tables.query('TRUNCATE payment, transaction');
      const attempt = await claimAttempt(database, { leaseS: LEASE_S });
      const both = [() => beginNextAttempt(database, nextOf(attempt)), () => finish(attempt)];
      if (i % 2) both.reverse();
      const done = await Promise.all(both.map((one) => one()));
      if (i % 2) done.reverse();
      const [begun, finished] = done;
      expect(begun).toBe(!finished);
      expect(await attempts()).toHaveLength(begun ? 2 : 1);
      expect((await attempts()).filter(({ look_up_at }) => look_up_at)).toHaveLength(begun ? 1 : 0);
      const record = await getPaymentRecord(database, ACCOUNT_ONE, attempt.paymentId);
      expect(record).toEqual(begun ? MOVED : Buffer.from('finished'));
      seen.add(begun === true);
    }
    expect(seen).toEqual(new Set([true, false]));
  });

  it('at once with recovery: the attempt is the one’s or the other’s', async () => {
    for (let i = 0; i < 40; i++) {
      await tables.query('TRUNCATE payment, transaction');
      const attempt = await claimAttempt(database, { leaseS: 0 });
      const both = [
        () => beginNextAttempt(database, nextOf(attempt)),
        async () => (await takeDue()).length > 0,
      ];
      if (i % 2) both.reverse();
      const done = await Promise.all(both.map((one) => one()));
      expect(done.filter(Boolean)).toHaveLength(1);
      expect((await attempts()).filter(({ look_up_at }) => look_up_at)).toHaveLength(1);
    }
  });
});

it('lets only the new attempt finish the payment', async () => {
  const attempt = await claimAttempt(database, { leaseS: LEASE_S });
  const begin = nextOf(attempt);
  await beginNextAttempt(database, begin);
  expect(await finish(attempt)).toBe(false);
  expect(await getPaymentRecord(database, ACCOUNT_ONE, attempt.paymentId)).toEqual(MOVED);
  expect(await finish(attempt, begin.next.transactionId)).toEqual({ earlier: undefined });
  expect((await attempts()).filter(({ look_up_at }) => look_up_at)).toEqual([]);
});
