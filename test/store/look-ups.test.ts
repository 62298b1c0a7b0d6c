import { describe, expect, it } from 'vitest';
import type { Database } from '#src/store/engine/database.ts';
import {
  countOpenAttempts,
  postponeLookUp,
  takeDueAttempts,
  takeUnansweredAttempts,
} from '#src/store/engine/look-ups.ts';
import { finishPayment } from '#src/store/engine/payments.ts';
import { claimAttempt, type OpenAttempt } from '../support/open-attempts.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'payment, transaction, vaulted_token' });

/** Makes an attempt due, as if its time had passed. */
async function passTime({ transactionId }: OpenAttempt, seconds: number): Promise<void> {
  await tables.query(
    'UPDATE transaction SET look_up_at = look_up_at - make_interval(secs => $2) WHERE id = $1',
    [transactionId, seconds],
  );
}

const takeDue = (limit: number, leaseS: number) =>
  takeDueAttempts(database, [{ connectionId: 'scripted', identity: 'scripted', limit, leaseS }]);

const idsOf = (attempts: readonly { transactionId: string }[]) =>
  attempts.map(({ transactionId }) => transactionId);

describe('taking what is due', () => {
  it('gives what was claimed, and how the attempt is told apart from other takers’', async () => {
    const attempt = await claimAttempt(database, { vault: true });
    expect(await takeDue(10, 60)).toMatchObject([
      {
        transactionId: attempt.transactionId,
        paymentId: attempt.paymentId,
        connectionId: 'scripted',
        minorUnits: 5_575n,
        currency: 'USD',
        capture: false,
        vaultedToken: attempt.vaultedToken,
        fence: 1,
      },
    ]);
  });

  it('leaves alone what is still leased, by the database’s clock', async () => {
    const attempt = await claimAttempt(database, { leaseS: 60 });
    expect(await takeDue(10, 60)).toEqual([]);
    await passTime(attempt, 61);
    expect(idsOf(await takeDue(10, 60))).toEqual([attempt.transactionId]);
  });

  it('leases what it took: others find it only when that time is over, under the next fence', async () => {
    const attempt = await claimAttempt(database);
    await takeDue(10, 60);
    expect(await takeDue(10, 60)).toEqual([]);
    await passTime(attempt, 61);
    expect(await takeDue(10, 60)).toMatchObject([{ fence: 2 }]);
  });

  it('begins with what has been due for longest, and takes no more than was asked for', async () => {
    const attempts = [
      await claimAttempt(database),
      await claimAttempt(database),
      await claimAttempt(database),
    ];
    for (const [i, attempt] of attempts.entries()) await passTime(attempt, i * 100);
    const [newest, middle, oldest] = idsOf(attempts);
    const taken = idsOf(await takeDue(2, 60));
    expect(taken.sort()).toEqual([middle, oldest].sort());
    expect(idsOf(await takeDue(2, 60))).toEqual([newest]);
  });

  it('gives two takers at once different attempts, and misses none', async () => {
    const attempts = await Promise.all(Array.from({ length: 20 }, () => claimAttempt(database)));
    const taken = await Promise.all([1, 2, 3, 4].map(() => takeDue(5, 60)));
    const rest = await takeDue(20, 60);
    expect(idsOf([...taken.flat(), ...rest]).sort()).toEqual(idsOf(attempts).sort());
  });

  it('does not wait for what another transaction has locked, and takes the next', async () => {
    const [first, second] = [await claimAttempt(database), await claimAttempt(database)];
    await passTime(first, 100);
    const locked = Promise.withResolvers<void>();
    const taken = Promise.withResolvers<void>();
    const holding = database.transaction(async (run) => {
      await run('SELECT id FROM transaction WHERE id = $1 FOR UPDATE', [first.transactionId]);
      locked.resolve();
      await taken.promise;
    });
    await locked.promise;
    const takingTimeout = setTimeout(taken.resolve, 3_000);
    expect(idsOf(await takeDue(1, 60))).toEqual([second.transactionId]);
    clearTimeout(takingTimeout);
    taken.resolve();
    await holding;
  });

  it('takes of each connection as many as asked for, under a lease of its own', async () => {
    for (const connectionId of ['slow', 'slow', 'slow', 'quick', 'quick']) {
      await claimAttempt(database, { connectionId, identity: `${connectionId} account` });
    }
    const take = (connectionId: string, limit: number, leaseS: number) => ({
      connectionId,
      identity: `${connectionId} account`,
      limit,
      leaseS,
    });
    const taken = await takeDueAttempts(database, [take('slow', 2, 100), take('quick', 5, 10)]);
    expect(taken.map(({ connectionId }) => connectionId).sort()).toEqual(['quick', 'quick', 'slow', 'slow']);
    const leases = await tables.query(
      `SELECT DISTINCT connection_id, round(extract(epoch FROM look_up_at - now()) / 10)::integer AS tens
       FROM transaction WHERE look_up_at > now() ORDER BY connection_id`,
    );
    expect(leases).toEqual([
      { connection_id: 'quick', tens: 1 },
      { connection_id: 'slow', tens: 10 },
    ]);
  });

  it('leaves alone what was begun at another account', async () => {
    const own = await claimAttempt(database);
    await claimAttempt(database, { identity: 'another account' });
    await claimAttempt(database, { connectionId: 'another connection' });
    expect(idsOf(await takeDue(10, 60))).toEqual([own.transactionId]);
  });

  it('reads only what it takes, however much is due of others, and however many attempts there are', async () => {
    await tables.query(
      `WITH other AS (
         INSERT INTO transaction
           (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units, currency,
             capture, look_up_at)
         SELECT gen_random_uuid(), other.id, other.id, 'hanging', 'hanging', 'PENDING', 1, 'USD', true,
           CASE WHEN i % 2 = 0 THEN now() - interval '1 hour' END
         FROM (SELECT gen_random_uuid() AS id, i FROM generate_series(1, 50000) i) other
         RETURNING payment_id
       )
       INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record)
       SELECT payment_id, payment_id, payment_id::text, '', '', '', '' FROM other`,
    );
    await tables.query('ANALYZE transaction, payment');
    await claimAttempt(database);
    const rowsRead = await database.transaction(async (run) => {
      await run('SET LOCAL plan_cache_mode = force_generic_plan');
      const inside: Database = { ...database, query: ({ text }, values) => run(text, values) };
      const take = { connectionId: 'scripted', identity: 'scripted', limit: 20, leaseS: 60 };
      expect(await takeDueAttempts(inside, [take])).toHaveLength(1);
      const { rows } = await run<{ read: number }>(
        `SELECT sum(seq_tup_read + idx_tup_fetch)::integer AS read FROM pg_stat_xact_user_tables
         WHERE relname IN ('transaction', 'payment')`,
      );
      return rows[0]?.read;
    });
    expect(rowsRead).toBeLessThan(1_000);
  });
});

describe('taking what nobody can be asked about', () => {
  const takeUnanswered = (dueForS = 30) =>
    takeUnansweredAttempts(database, [{ connectionId: 'scripted', identity: 'scripted' }], {
      ...{ dueForS, leaseS: 60 },
    });

  it('takes payments without a response, of connections and accounts that cannot be asked', async () => {
    const gone = await claimAttempt(database, { connectionId: 'gone' });
    const moved = await claimAttempt(database, { identity: 'another account' });
    const askable = await claimAttempt(database);
    for (const attempt of [gone, moved, askable]) await passTime(attempt, 31);
    expect(idsOf(await takeUnanswered()).sort()).toEqual([gone, moved].map((it) => it.transactionId).sort());
    expect(await takeUnanswered()).toEqual([]);
  });

  it('leaves them to replicas that can ask until they have been due for a while', async () => {
    const gone = await claimAttempt(database, { connectionId: 'gone' });
    await passTime(gone, 20);
    expect(await takeUnanswered()).toEqual([]);
  });

  it('leaves alone what has its response', async () => {
    const gone = await claimAttempt(database, { connectionId: 'gone' });
    await finish(gone, 0, 0);
    await passTime(gone, 31);
    expect(await takeUnanswered()).toEqual([]);
  });
});

describe('giving an attempt back', () => {
  it('makes it due after the pause', async () => {
    const attempt = await claimAttempt(database);
    const [taken] = await takeDue(1, 3_600);
    if (!taken) throw new Error('nothing was due');
    await postponeLookUp(database, taken, 100);
    expect(await takeDue(1, 60)).toEqual([]);
    await passTime(attempt, 101);
    expect(await takeDue(1, 60)).toHaveLength(1);
  });

  it('does nothing for who has lost it to another taker', async () => {
    const attempt = await claimAttempt(database);
    const [first] = await takeDue(1, 60);
    await passTime(attempt, 61);
    await takeDue(1, 60);
    if (!first) throw new Error('nothing was due');
    await postponeLookUp(database, first, -1);
    expect(await takeDue(1, 60)).toEqual([]);
  });

  it('does not open again what has its outcome', async () => {
    const attempt = await claimAttempt(database);
    const [taken] = await takeDue(1, 60);
    if (!taken) throw new Error('nothing was due');
    await finish(attempt, taken.fence);
    await postponeLookUp(database, taken, -1);
    expect(await takeDue(1, 60)).toEqual([]);
    expect(await countOpenAttempts(database, 100)).toEqual([]);
  });
});

describe('counting what is open', () => {
  it('tells connections and accounts apart, what is due, and for how long the oldest has been open', async () => {
    expect(await countOpenAttempts(database, 100)).toEqual([]);
    const old = await claimAttempt(database);
    await claimAttempt(database, { leaseS: 60 });
    await claimAttempt(database, { identity: 'another account' });
    await claimAttempt(database, { connectionId: 'second', leaseS: 60 });
    await tables.query("UPDATE transaction SET created_at = created_at - interval '1 hour' WHERE id = $1", [
      old.transactionId,
    ]);
    const counted = await countOpenAttempts(database, 100);
    expect(counted).toMatchObject([
      { connectionId: 'scripted', identity: 'another account', open: 1, due: 1 },
      { connectionId: 'scripted', identity: 'scripted', open: 2, due: 1 },
      { connectionId: 'second', identity: 'scripted', open: 1, due: 0 },
    ]);
    expect(counted[1]?.oldestS).toBeGreaterThan(3_599);
    expect(counted[1]?.oldestS).toBeLessThan(3_700);
  });

  it('is bounded', async () => {
    for (let i = 0; i < 5; i++) await claimAttempt(database);
    expect(await countOpenAttempts(database, 3)).toMatchObject([{ open: 3 }]);
  });
});

async function finish(attempt: OpenAttempt, fence: number, lookUpInS?: number): Promise<void> {
  await finishPayment(database, {
    accountId: ACCOUNT_ONE,
    paymentId: attempt.paymentId,
    status: 'ERROR',
    record: new Uint8Array(),
    answer: new Uint8Array(),
    transactionId: attempt.transactionId,
    transactionStatus: 'ERROR',
    fence,
    lookUpInS,
    event: 'payment.purchase',
    vault: undefined,
  });
}
