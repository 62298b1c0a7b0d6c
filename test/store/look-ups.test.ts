import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '#src/store/database.ts';
import { countOpenAttempts, postponeLookUp, takeDueAttempts } from '#src/store/look-ups.ts';
import { finishPayment } from '#src/store/payments.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { claimAttempt, type OpenAttempt } from '../support/open-attempts.ts';
import { openTables, type Tables } from '../support/tables.ts';

let test: TestDatabase;
let database: Database;
let tables: Tables;

beforeAll(async () => {
  test = await createTestDatabase();
  database = openDatabase({ url: test.url, maxConnections: 4, log: pino({ level: 'silent' }) });
  tables = await openTables(test.url);
  await tables.query(
    "INSERT INTO account (id, name) VALUES ('11111111-1111-4111-8111-111111111111', 'Look-ups')",
  );
});
beforeEach(async () => {
  await tables.query('TRUNCATE payment, transaction, vaulted_token');
});
afterAll(async () => {
  await tables?.close();
  await database?.close();
  await test?.drop();
});

/** Makes an attempt due, as if its time had passed. */
async function passTime({ transactionId }: OpenAttempt, seconds: number): Promise<void> {
  await tables.query(
    'UPDATE transaction SET look_up_at = look_up_at - make_interval(secs => $2) WHERE id = $1',
    [transactionId, seconds],
  );
}

const idsOf = (attempts: readonly { transactionId: string }[]) =>
  attempts.map(({ transactionId }) => transactionId);

describe('taking what is due', () => {
  it('gives what was claimed, and how the attempt is told apart from other takers’', async () => {
    const attempt = await claimAttempt(database, { vault: true });
    expect(await takeDueAttempts(database, 10, 60)).toMatchObject([
      {
        transactionId: attempt.transactionId,
        paymentId: attempt.paymentId,
        connectionId: 'scripted',
        minorUnits: 5_575n,
        currency: 'USD',
        capture: false,
        vaultedToken: attempt.vaultedToken,
        fence: 1,
        lookUps: 1,
      },
    ]);
  });

  it('leaves alone what is still leased, by the database’s clock', async () => {
    const attempt = await claimAttempt(database, { leaseS: 60 });
    expect(await takeDueAttempts(database, 10, 60)).toEqual([]);
    await passTime(attempt, 61);
    expect(idsOf(await takeDueAttempts(database, 10, 60))).toEqual([attempt.transactionId]);
  });

  it('leases what it took: others find it only when that time is over, under the next fence', async () => {
    const attempt = await claimAttempt(database);
    await takeDueAttempts(database, 10, 60);
    expect(await takeDueAttempts(database, 10, 60)).toEqual([]);
    await passTime(attempt, 61);
    expect(await takeDueAttempts(database, 10, 60)).toMatchObject([{ fence: 2, lookUps: 2 }]);
  });

  it('begins with what has been due for longest, and takes no more than was asked for', async () => {
    const attempts = [
      await claimAttempt(database),
      await claimAttempt(database),
      await claimAttempt(database),
    ];
    for (const [i, attempt] of attempts.entries()) await passTime(attempt, i * 100);
    const [newest, middle, oldest] = idsOf(attempts);
    const taken = idsOf(await takeDueAttempts(database, 2, 60));
    expect(taken.sort()).toEqual([middle, oldest].sort());
    expect(idsOf(await takeDueAttempts(database, 2, 60))).toEqual([newest]);
  });

  it('gives two takers at once different attempts, and misses none', async () => {
    const attempts = await Promise.all(Array.from({ length: 20 }, () => claimAttempt(database)));
    const taken = await Promise.all([1, 2, 3, 4].map(() => takeDueAttempts(database, 5, 60)));
    const rest = await takeDueAttempts(database, 20, 60);
    expect(idsOf([...taken.flat(), ...rest]).sort()).toEqual(idsOf(attempts).sort());
  });
});

describe('giving an attempt back', () => {
  it('makes it due after the pause', async () => {
    const attempt = await claimAttempt(database);
    const [taken] = await takeDueAttempts(database, 1, 3_600);
    if (!taken) throw new Error('nothing was due');
    await postponeLookUp(database, taken, 100);
    expect(await takeDueAttempts(database, 1, 60)).toEqual([]);
    await passTime(attempt, 101);
    expect(await takeDueAttempts(database, 1, 60)).toHaveLength(1);
  });

  it('does nothing for who has lost it to another taker', async () => {
    const attempt = await claimAttempt(database);
    const [first] = await takeDueAttempts(database, 1, 60);
    await passTime(attempt, 61);
    await takeDueAttempts(database, 1, 60);
    if (!first) throw new Error('nothing was due');
    await postponeLookUp(database, first, -1);
    expect(await takeDueAttempts(database, 1, 60)).toEqual([]);
  });

  it('does not open again what has its outcome', async () => {
    const attempt = await claimAttempt(database);
    const [taken] = await takeDueAttempts(database, 1, 60);
    if (!taken) throw new Error('nothing was due');
    await finish(attempt, taken.fence);
    await postponeLookUp(database, taken, -1);
    expect(await takeDueAttempts(database, 1, 60)).toEqual([]);
    expect(await countOpenAttempts(database)).toEqual({ open: 0, oldestS: 0 });
  });
});

it('counts what is open, leased or not, and tells how long the oldest has been', async () => {
  expect(await countOpenAttempts(database)).toEqual({ open: 0, oldestS: 0 });
  const old = await claimAttempt(database);
  await claimAttempt(database, { leaseS: 60 });
  await tables.query("UPDATE transaction SET created_at = created_at - interval '1 hour' WHERE id = $1", [
    old.transactionId,
  ]);
  const { open, oldestS } = await countOpenAttempts(database);
  expect(open).toBe(2);
  expect(oldestS).toBeGreaterThan(3_599);
  expect(oldestS).toBeLessThan(3_700);
});

async function finish(attempt: OpenAttempt, fence: number): Promise<void> {
  await finishPayment(database, {
    paymentId: attempt.paymentId,
    status: 'ERROR',
    record: new Uint8Array(),
    answer: new Uint8Array(),
    transactionId: attempt.transactionId,
    transactionStatus: 'ERROR',
    fence,
    lookUpInS: undefined,
    vault: undefined,
  });
}
