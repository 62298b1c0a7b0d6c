import { describe, expect, it } from 'vitest';
import { type LeasedCheck, postponeCheck, takeDue, takeUnaskable } from '#src/store/engine/checks.ts';
import type { Database } from '#src/store/engine/database.ts';
import { writeChange } from '#src/store/engine/write-change.ts';
import { addBystanders } from '../support/bystanders.ts';
import { claimAttempt, type OpenAttempt } from '../support/open-attempts.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { changeOf, OPEN } from './changes-under-test.ts';

onOwnDatabase({ empties: 'payment, transaction, vaulted_token', maxConnections: 8 });

/** Makes a transaction due, as if its time had passed. */
const passTime = ({ transactionId }: OpenAttempt, seconds: number) =>
  tables.query('UPDATE transaction SET check_at = check_at - make_interval(secs => $2) WHERE id = $1', [
    ...[transactionId, seconds],
  ]);

const HERE = { connectionId: 'scripted', identity: 'scripted' };
const take = (limit = 10, leaseS = 60, connection = HERE) => takeDue(database, connection, { limit, leaseS });
const idsOf = (all: readonly { transactionId: string }[]) => all.map(({ transactionId }) => transactionId);

/** The stored schedule of a transaction; `inS` is rounded. */
const scheduleOf = async ({ transactionId }: OpenAttempt) =>
  (
    await tables.query(
      `SELECT fence, round(extract(epoch FROM check_at - now()))::integer AS "inS" FROM transaction
       WHERE id = $1 AND account_id = $2`,
      [transactionId, ACCOUNT_ONE],
    )
  )[0];

/** Takes the only transaction that is due. */
async function takeOne(): Promise<LeasedCheck> {
  const [taken, ...more] = await take();
  if (!taken || more.length > 0) throw new Error('not one was due');
  return taken;
}

describe('taking what is due', () => {
  it('leases it under the next fence, so that others find it only when that time is over', async () => {
    const attempt = await claimAttempt(database);
    const taken = {
      ...{ accountId: ACCOUNT_ONE, paymentId: attempt.paymentId, transactionId: attempt.transactionId },
      ...{ connectionId: 'scripted', fence: 1 },
    };
    expect(await take()).toEqual([taken]);
    expect(await scheduleOf(attempt)).toEqual({ fence: 1, inS: 60 });
    expect(await take()).toEqual([]);
    await passTime(attempt, 61);
    expect(await take()).toEqual([{ ...taken, fence: 2 }]);
  });

  it('takes whatever is due, also what awaits its payer, is held or is an operation, and nothing that is over', async () => {
    const attempts = [];
    for (let i = 0; i < 4; i++) attempts.push(await claimAttempt(database));
    const [awaits, held, operation, over] = idsOf(attempts);
    await tables.query('UPDATE transaction SET awaits_payer = true WHERE id = $1', [awaits]);
    await tables.query("UPDATE transaction SET status = 'SUCCEEDED' WHERE id = $1", [held]);
    await tables.query("UPDATE transaction SET type = 'REFUND', parent_id = $2 WHERE id = $1", [
      operation,
      held,
    ]);
    await tables.query('UPDATE transaction SET check_at = NULL WHERE id = $1', [over]);
    expect(new Set(idsOf(await take()))).toEqual(new Set([awaits, held, operation]));
  });

  it('leaves alone what is leased, by the database’s clock, and what another connection or account has to be asked about', async () => {
    const leased = await claimAttempt(database, { leaseS: 60 });
    const elsewhere = await claimAttempt(database, { connectionId: 'second', identity: 'second' });
    const moved = await claimAttempt(database, { identity: 'another account' });
    expect(await take()).toEqual([]);
    const second = { connectionId: 'second', identity: 'second' };
    expect(idsOf(await take(10, 30, second))).toEqual([elsewhere.transactionId]);
    expect(await scheduleOf(elsewhere)).toEqual({ fence: 1, inS: 30 });
    for (const attempt of [leased, moved]) expect(await scheduleOf(attempt)).toMatchObject({ fence: 0 });
  });

  it('takes in every account what is due there, and no more under the same id', async () => {
    const attempt = await claimAttempt(database);
    const { otherAccount } = await addBystanders(tables, attempt.paymentId);
    await tables.query("UPDATE transaction SET check_at = now() + interval '1 h' WHERE account_id = $1", [
      otherAccount,
    ]);
    expect((await take()).map(({ accountId }) => accountId)).toEqual([ACCOUNT_ONE, ACCOUNT_ONE]);
    await tables.query("UPDATE transaction SET check_at = now() - interval '1 s' WHERE account_id = $1", [
      otherAccount,
    ]);
    expect(await take()).toMatchObject([{ accountId: otherAccount, transactionId: attempt.transactionId }]);
  });

  it('begins with what has been due for longest, and takes no more than was asked for', async () => {
    const attempts = [
      await claimAttempt(database),
      await claimAttempt(database),
      await claimAttempt(database),
    ];
    for (const [i, attempt] of attempts.entries()) await passTime(attempt, i * 100);
    const [newest, middle, oldest] = idsOf(attempts);
    expect(idsOf(await take(2)).sort()).toEqual([middle, oldest].sort());
    expect(idsOf(await take(2))).toEqual([newest]);
  });

  it('gives takers at once different transactions: each goes to one of them, and none is missed', async () => {
    const attempts = await Promise.all(Array.from({ length: 20 }, () => claimAttempt(database)));
    const taken = (await Promise.all([1, 2, 3, 4].map(() => take(20)))).flat();
    const rest = await take(20);
    expect(idsOf([...taken, ...rest]).sort()).toEqual(idsOf(attempts).sort());
    expect(new Set([...taken, ...rest].map(({ fence }) => fence))).toEqual(new Set([1]));
  });

  it('does not take what another has taken between its finding and its taking', async () => {
    const attempt = await claimAttempt(database);
    const between: Database = {
      ...database,
      async query(statement, values) {
        if (statement.name === 'take_due_transactions') await takeOne();
        return database.query(statement, values);
      },
    };
    expect(await takeDue(between, HERE, { limit: 10, leaseS: 30 })).toEqual([]);
    expect(await scheduleOf(attempt)).toEqual({ fence: 1, inS: 60 });
  });

  it('does not wait for what another transaction has locked, and takes the next', async () => {
    const [first, second] = [await claimAttempt(database), await claimAttempt(database)];
    await tables.query('BEGIN');
    await tables.query('SELECT id FROM transaction WHERE id = $1 FOR UPDATE', [first.transactionId]);
    const gaveUp = setTimeout(() => tables.query('ROLLBACK'), 3_000);
    expect(idsOf(await take())).toEqual([second.transactionId]);
    clearTimeout(gaveUp);
    await tables.query('ROLLBACK');
  });

  it('reads only what it takes, however much is due of others, and however many attempts there are', async () => {
    await tables.query(
      `INSERT INTO transaction
         (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units, currency, capture, check_at)
       SELECT gen_random_uuid(), id, id, 'hanging', 'hanging', 'PENDING', 1, 'USD', true,
         CASE WHEN i % 2 = 0 THEN now() - interval '1 hour' END
       FROM (SELECT gen_random_uuid() AS id, i FROM generate_series(1, 50000) i) other`,
    );
    await tables.query('ANALYZE transaction');
    await claimAttempt(database);
    const rowsRead = await database.transaction(async (run) => {
      await run('SET LOCAL plan_cache_mode = force_generic_plan');
      const inside: Database = { ...database, query: ({ text }, values) => run(text, values) };
      expect(await takeDue(inside, HERE, { limit: 20, leaseS: 60 })).toHaveLength(1);
      const { rows } = await run<{ read: number }>(
        `SELECT sum(seq_tup_read + idx_tup_fetch)::integer AS read FROM pg_stat_xact_user_tables
         WHERE relname = 'transaction'`,
      );
      return rows[0]?.read;
    });
    expect(rowsRead).toBeLessThan(1_000);
  });
});

describe('taking what no replica can query the provider about', () => {
  const takeThem = (dueForS = 30) => takeUnaskable(database, [HERE], { dueForS, leaseS: 60 });

  it('takes attempts without a response, of connections and accounts that cannot be asked', async () => {
    const gone = await claimAttempt(database, { connectionId: 'gone' });
    const moved = await claimAttempt(database, { identity: 'another account' });
    const askable = await claimAttempt(database);
    for (const attempt of [gone, moved, askable]) await passTime(attempt, 31);
    expect(idsOf(await takeThem()).sort()).toEqual(idsOf([gone, moved]).sort());
    expect(await takeThem()).toEqual([]);
    expect(await scheduleOf(gone)).toEqual({ fence: 1, inS: 60 });
  });

  it('leaves them to replicas that can ask until they have been due for a while', async () => {
    const gone = await claimAttempt(database, { connectionId: 'gone' });
    await passTime(gone, 20);
    expect(await takeThem()).toEqual([]);
  });

  it('leaves alone what has its response, also while its outcome is open', async () => {
    const gone = [
      await claimAttempt(database, { connectionId: 'gone' }),
      await claimAttempt(database, { connectionId: 'gone' }),
    ] as const;
    await writeChange(database, changeOf(gone[0], 'PENDING', OPEN));
    await writeChange(database, changeOf(gone[1], 'ERROR'));
    await tables.query("UPDATE transaction SET check_at = now() - interval '31 s'");
    expect(await takeThem()).toEqual([]);
  });

  it('leaves alone operations, which have their payment’s response', async () => {
    const gone = await claimAttempt(database, { connectionId: 'gone' });
    await tables.query("UPDATE transaction SET parent_id = id, type = 'REFUND'");
    await passTime(gone, 31);
    expect(await takeThem()).toEqual([]);
  });
});

describe('giving back what was taken', () => {
  it('makes it due after the pause, or ends its checks, and touches no other', async () => {
    const attempt = await claimAttempt(database);
    const taken = await takeOne();
    const others = await addBystanders(tables, attempt.paymentId);
    await postponeCheck(database, taken, 200);
    expect(await scheduleOf(attempt)).toEqual({ fence: 1, inS: 200 });
    await postponeCheck(database, taken, undefined);
    expect(await scheduleOf(attempt)).toEqual({ fence: 1, inS: null });
    await others.expectUntouched();
  });

  it('does nothing for who has lost it to another taker, or after a write, by whomever', async () => {
    const [lost, written] = [await claimAttempt(database), await claimAttempt(database)];
    const taken = await take();
    const of = ({ transactionId }: OpenAttempt) =>
      taken.find((one) => one.transactionId === transactionId) as LeasedCheck;
    await passTime(lost, 61);
    await takeOne();
    await writeChange(database, changeOf(written, 'ERROR', { fence: 1 }));
    for (const attempt of [lost, written]) {
      await postponeCheck(database, of(attempt), 200);
      await postponeCheck(database, of(attempt), undefined);
    }
    expect(await scheduleOf(lost)).toEqual({ fence: 2, inS: 60 });
    expect(await scheduleOf(written)).toEqual({ fence: 2, inS: null });
  });
});
