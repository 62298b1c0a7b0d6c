import { describe, expect, it } from 'vitest';
import { type LeasedCheck, postponeCheck, takeDue, takeUnaskable } from '#src/store/engine/checks.ts';
import type { Database } from '#src/store/engine/database.ts';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import { addBystanders } from '../support/bystanders.ts';
import { changeOf, claimAttempt, OPEN, type OpenAttempt } from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { earlier } from '../support/tables.ts';

onOwnDatabase({ empties: 'payment, transaction, vaulted_token', maxConnections: 8 });

/** Makes a transaction due by moving its check back in time. */
const passTime = ({ transactionId }: OpenAttempt, seconds: number) =>
  tables.query(`UPDATE transaction SET check_at = ${earlier('check_at', `${seconds} s`)} WHERE id = $1`, [
    transactionId,
  ]);

const HERE = { connectionId: 'scripted', identity: 'scripted' };
const take = (limit = 10, leaseS = 60, connection = HERE) => takeDue(database, connection, { limit, leaseS });
const idsOf = (all: readonly { transactionId: string }[]) => all.map(({ transactionId }) => transactionId);

/** Returns the stored schedule of a transaction; `inS` is rounded. */
const scheduleOf = async ({ transactionId }: OpenAttempt) =>
  (
    await tables.query(
      `SELECT fence, round(extract(epoch FROM check_at - now()))::integer AS "inS" FROM transaction
       WHERE id = $1 AND account_id = $2`,
      [transactionId, ACCOUNT_ONE],
    )
  )[0];

/** Takes the only due transaction. */
async function takeOne(): Promise<LeasedCheck> {
  const [taken, ...more] = await take();
  if (!taken || more.length > 0) throw new Error('expected one due transaction');
  return taken;
}

describe('taking due transactions', () => {
  it('taking a transaction leases it with the next fence until the lease expires', async () => {
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

  it('due transactions are taken whatever their type or status, but not those without a next check', async () => {
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

  it('transactions that are leased or of another connection or account are not taken', async () => {
    const leased = await claimAttempt(database, { leaseS: 60 });
    const elsewhere = await claimAttempt(database, { connectionId: 'second', identity: 'second' });
    const moved = await claimAttempt(database, { identity: 'another account' });
    expect(await take()).toEqual([]);
    const second = { connectionId: 'second', identity: 'second' };
    expect(idsOf(await take(10, 30, second))).toEqual([elsewhere.transactionId]);
    expect(await scheduleOf(elsewhere)).toEqual({ fence: 1, inS: 30 });
    for (const attempt of [leased, moved]) expect(await scheduleOf(attempt)).toMatchObject({ fence: 0 });
  });

  it('due transactions of every account are taken, but not another account’s transaction with the same id', async () => {
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

  it('the transactions that have been due longest are taken first, up to the limit', async () => {
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

  it('concurrent workers take different transactions, and together take all of them', async () => {
    const attempts = await Promise.all(Array.from({ length: 20 }, () => claimAttempt(database)));
    const taken = (await Promise.all([1, 2, 3, 4].map(() => take(20)))).flat();
    const rest = await take(20);
    expect(idsOf([...taken, ...rest]).sort()).toEqual(idsOf(attempts).sort());
    expect(new Set([...taken, ...rest].map(({ fence }) => fence))).toEqual(new Set([1]));
  });

  it('a transaction that another worker took between the search and the take is not taken again', async () => {
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

  it('a locked transaction is skipped without waiting, and the next is taken', async () => {
    const [first, second] = [await claimAttempt(database), await claimAttempt(database)];
    await tables.query('BEGIN');
    await tables.query('SELECT id FROM transaction WHERE account_id = $1 AND id = $2 FOR UPDATE', [
      ...[ACCOUNT_ONE, first.transactionId],
    ]);
    const gaveUp = setTimeout(() => tables.query('ROLLBACK'), 3_000);
    expect(idsOf(await take())).toEqual([second.transactionId]);
    clearTimeout(gaveUp);
    await tables.query('ROLLBACK');
  });

  // Counts the rows that PostgreSQL itself reads.
  it.skipIf(process.env.CITUS_URL)(
    'taking due transactions of one connection does not read the many transactions of another connection',
    async () => {
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
    },
  );
});

describe('taking attempts that cannot be looked up', () => {
  const takeThem = (dueForS = 30) => takeUnaskable(database, [HERE], { dueForS, leaseS: 60 });

  it('attempts without a response whose connection or account is gone are taken', async () => {
    const gone = await claimAttempt(database, { connectionId: 'gone' });
    const moved = await claimAttempt(database, { identity: 'another account' });
    const askable = await claimAttempt(database);
    for (const attempt of [gone, moved, askable]) await passTime(attempt, 31);
    expect(idsOf(await takeThem()).sort()).toEqual(idsOf([gone, moved]).sort());
    expect(await takeThem()).toEqual([]);
    expect(await scheduleOf(gone)).toEqual({ fence: 1, inS: 60 });
  });

  it('attempts whose connection is gone are left to other replicas until they have been due for a while', async () => {
    const gone = await claimAttempt(database, { connectionId: 'gone' });
    await passTime(gone, 20);
    expect(await takeThem()).toEqual([]);
  });

  it('attempts with a response are not taken, even if their outcome is open', async () => {
    const gone = [
      await claimAttempt(database, { connectionId: 'gone' }),
      await claimAttempt(database, { connectionId: 'gone' }),
    ] as const;
    await writeChange(database, changeOf(gone[0], 'PENDING', OPEN));
    await writeChange(database, changeOf(gone[1], 'ERROR'));
    await tables.query("UPDATE transaction SET check_at = now() - interval '31 s'");
    expect(await takeThem()).toEqual([]);
  });

  it('operations whose connection is gone are not taken', async () => {
    const gone = await claimAttempt(database, { connectionId: 'gone' });
    await tables.query("UPDATE transaction SET parent_id = id, type = 'REFUND'");
    await passTime(gone, 31);
    expect(await takeThem()).toEqual([]);
  });
});

describe('postponing a taken check', () => {
  it('postponing a check sets its next time or ends it, and affects no other transaction', async () => {
    const attempt = await claimAttempt(database);
    const taken = await takeOne();
    const others = await addBystanders(tables, attempt.paymentId);
    await postponeCheck(database, taken, 200);
    expect(await scheduleOf(attempt)).toEqual({ fence: 1, inS: 200 });
    await postponeCheck(database, taken, undefined);
    expect(await scheduleOf(attempt)).toEqual({ fence: 1, inS: null });
    await others.expectUntouched();
  });

  it('postponing has no effect after another worker took the transaction or its outcome was written', async () => {
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
