import pg from 'pg';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Database, type DatabaseOptions, openDatabase } from '#src/store/engine/database.ts';
import { isSurelyNotCommitted, isUnavailable, statementError } from '#src/store/engine/database-error.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const log = pino({ level: 'silent' });
const INSERT = { name: 'insert', text: 'INSERT INTO item (id) VALUES (DEFAULT)' };
/** Makes the session read-only, like the sessions of a demoted primary. */
const TURN_READ_ONLY = {
  name: 'turn_read_only',
  text: "SELECT set_config('default_transaction_read_only', 'on', false), pg_sleep(0.05)",
};
/** Errors of broken connections, as node-postgres reports them. */
const BROKEN = [
  new Error('Connection terminated unexpectedly'),
  new Error('Query read timeout'),
  Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
];
const PID = { name: 'pid', text: 'SELECT pg_backend_pid() AS pid, pg_sleep(0.05)' };

let test: TestDatabase;
const opened: Database[] = [];

beforeAll(async () => {
  test = await createTestDatabase({ empty: true });
  const setup = open();
  await setup.transaction((run) => run('CREATE TABLE item (id bigserial PRIMARY KEY)'));
});

afterEach(() => Promise.all(opened.splice(0).map((each) => each.close())));

afterAll(() => test.drop());

function open(options: Partial<DatabaseOptions> = {}): Database {
  const each = openDatabase({ url: test.url, maxConnections: 2, log, ...options });
  opened.push(each);
  return each;
}

/** Returns the session ids of a pool of two connections. */
async function sessionsOf(pool: Database): Promise<unknown[]> {
  const results = await Promise.all([pool.query(PID), pool.query(PID)]);
  return results.map(({ rows }) => rows[0]?.pid);
}

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  const error = await promise.then(
    () => 'resolved',
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(Error);
  return error;
}

describe('a primary that turns read-only', () => {
  it('a read-only primary counts as unavailable, and the pool replaces its connections', async () => {
    const database = open();
    const before = await sessionsOf(database);
    await Promise.all([database.query(TURN_READ_ONLY), database.query(TURN_READ_ONLY)]);
    expect(isUnavailable(await failureOf(database.query(INSERT)))).toBe(true);
    const after = await sessionsOf(database);
    expect(after.filter((session) => before.includes(session))).toEqual([]);
    await database.query(INSERT);
  });

  it('a transaction on a read-only primary counts as unavailable, and the pool replaces its connections', async () => {
    const database = open();
    const before = await sessionsOf(database);
    await Promise.all([database.query(TURN_READ_ONLY), database.query(TURN_READ_ONLY)]);
    const failed = database.transaction((run) => run('INSERT INTO item (id) VALUES (DEFAULT)'));
    expect(isUnavailable(await failureOf(failed))).toBe(true);
    expect((await sessionsOf(database)).filter((session) => before.includes(session))).toEqual([]);
  });
});

describe('proof that nothing was committed', () => {
  const raise = (code: string) => ({
    name: `raise_${code}`,
    text: `DO $$ BEGIN RAISE EXCEPTION 'made to fail' USING ERRCODE = '${code}'; END $$`,
  });

  it.each(['23505', '40001', '40P01', '53100', '57014', '25006'])(
    'the ERROR of a statement, such as %s, proves that nothing was committed',
    async (code) => {
      expect(isSurelyNotCommitted(await failureOf(open().query(raise(code))))).toBe(true);
    },
  );

  it.each(['08006', '08P01', '08007', '40003', '57P01', '57P03', '58000', 'XX000'])(
    'an error of the connection or server, such as %s, proves nothing and ends the connection',
    async (code) => {
      const single = open({ maxConnections: 1 });
      const before = await single.query(PID);
      expect(isSurelyNotCommitted(await failureOf(single.query(raise(code))))).toBe(false);
      expect((await single.query(PID)).rows).not.toEqual(before.rows);
    },
  );

  it.each([
    [
      true,
      'connection to the remote node postgres@10.0.0.2:5432 failed with the following error: Connection refused',
    ],
    [
      true,
      'connection to the remote node a@b:1 failed with the following error: FATAL:  the database system is starting up',
    ],
    [true, 'could not establish any connections to the node 10.0.0.2:5432 after 2000 ms'],
    [
      false,
      'connection to the remote node a@b:1 failed with the following error: server closed the connection unexpectedly',
    ],
    [
      false,
      'connection to the remote node a@b:1 failed with the following error: another command is already in progress',
    ],
  ])('isSurelyNotCommitted returns %s if a distributed database says: %s', (isProof, message) => {
    const error = Object.assign(new pg.DatabaseError(message, 1, 'error'), {
      severity: 'ERROR',
      code: '08006',
    });
    expect(isSurelyNotCommitted(error)).toBe(isProof);
    expect(isUnavailable(error)).toBe(true);
  });

  it('a FATAL error does not prove that nothing was committed, whatever its code', () => {
    const pooler = new pg.DatabaseError('server closed the connection', 40, 'error');
    expect(isSurelyNotCommitted(Object.assign(pooler, { severity: 'FATAL', code: '23505' }))).toBe(false);
    expect(isSurelyNotCommitted(Object.assign(pooler, { severity: 'PANIC' }))).toBe(false);
    expect(isSurelyNotCommitted(Object.assign(pooler, { severity: 'ERROR' }))).toBe(true);
    expect(isSurelyNotCommitted(Object.assign(pooler, { code: undefined }))).toBe(false);
  });

  it('a broken connection does not prove that nothing was committed', () => {
    for (const broken of BROKEN) {
      const error = statementError(broken);
      expect([isSurelyNotCommitted(error), isUnavailable(error)]).toEqual([false, true]);
      expect(error).toMatchObject({ message: broken.message, cause: broken });
    }
  });

  it('a broken connection counts as the database’s only if a statement was rejected because of it', () => {
    for (const broken of BROKEN) expect(isUnavailable(broken)).toBe(false);
    const fault = new TypeError('a fault of ours');
    expect(statementError(fault)).toBe(fault);
  });

  it('a failed attempt to connect proves that nothing was committed', async () => {
    const nowhere = open({ url: test.url.replace('127.0.0.1', 'nowhere.invalid') });
    expect(isSurelyNotCommitted(await failureOf(nowhere.query(PID)))).toBe(true);
  });
});
