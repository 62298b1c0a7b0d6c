import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '#src/store/database.ts';
import { type Finish, findByKey, finishPayment, getPaymentRecord } from '#src/store/payments.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { claimAttempt, type OpenAttempt } from '../support/open-attempts.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { openTables, type Tables } from '../support/tables.ts';

let test: TestDatabase;
let database: Database;
let tables: Tables;

beforeAll(async () => {
  test = await createTestDatabase();
  database = openDatabase({ url: test.url, maxConnections: 4, log: pino({ level: 'silent' }) });
  tables = await openTables(test.url);
  await tables.query("INSERT INTO account (id, name) VALUES ($1, 'Finishes')", [ACCOUNT_ONE]);
});
beforeEach(async () => {
  await tables.query('TRUNCATE payment, transaction, vaulted_token');
});
afterAll(async () => {
  await tables?.close();
  await database?.close();
  await test?.drop();
});

/** Writes a record and a response that bear a name. */
const finish = (attempt: OpenAttempt, name: string, options: Partial<Finish> = {}) =>
  finishPayment(database, {
    accountId: ACCOUNT_ONE,
    paymentId: attempt.paymentId,
    status: name,
    record: Buffer.from(`record ${name}`),
    answer: Buffer.from(`answer ${name}`),
    transactionId: attempt.transactionId,
    transactionStatus: name,
    fence: 0,
    lookUpInS: undefined,
    event: 'payment.purchase',
    vault: undefined,
    ...options,
  });

const stored = (name: string) => ({
  record: Buffer.from(`record ${name}`),
  answer: Buffer.from(`answer ${name}`),
});

describe('a finish', () => {
  it('tells of no earlier response when it stores the first', async () => {
    const attempt = await claimAttempt(database);
    expect(await finish(attempt, 'SUCCEEDED')).toEqual({ earlier: undefined });
    expect(await findByKey(database, ACCOUNT_ONE, attempt.idempotencyKey)).toMatchObject(stored('SUCCEEDED'));
  });

  it('gives back the response that was stored before, which stays what it was however often the record moves on', async () => {
    const attempt = await claimAttempt(database);
    await finish(attempt, 'FIRST', { lookUpInS: 60 });
    expect(await finish(attempt, 'SECOND', { lookUpInS: 60 })).toEqual({ earlier: stored('FIRST') });
    expect(await finish(attempt, 'THIRD')).toEqual({ earlier: stored('FIRST') });
    expect(await findByKey(database, ACCOUNT_ONE, attempt.idempotencyKey)).toMatchObject(stored('FIRST'));
    expect(await getPaymentRecord(database, attempt.paymentId, ACCOUNT_ONE)).toEqual(stored('THIRD').record);
  });

  it('finds itself there when it is said again after a lost acknowledgement', async () => {
    const first = await claimAttempt(database);
    await finish(first, 'SUCCEEDED');
    expect(await finish(first, 'SUCCEEDED')).toEqual({ earlier: undefined });
    const later = await claimAttempt(database);
    await finish(later, 'PENDING', { lookUpInS: 60 });
    await finish(later, 'SUCCEEDED');
    expect(await finish(later, 'SUCCEEDED')).toEqual({ earlier: stored('PENDING') });
  });

  it('changes nothing once another outcome is known', async () => {
    const attempt = await claimAttempt(database);
    await finish(attempt, 'SUCCEEDED');
    expect(await finish(attempt, 'DECLINED')).toBe(false);
    expect(await finish(attempt, 'PENDING', { lookUpInS: 60 })).toBe(false);
    expect(await findByKey(database, ACCOUNT_ONE, attempt.idempotencyKey)).toMatchObject(stored('SUCCEEDED'));
  });
});

it('a card that is in use is never dropped', async () => {
  const attempt = await claimAttempt(database, { vault: true });
  const token = attempt.vaultedToken ?? '';
  await tables.query('UPDATE vaulted_token SET active = true WHERE id = $1', [token]);
  await finish(attempt, 'DECLINED', { vault: { token, fate: 'drop' } });
  expect(await tables.query('SELECT id, active FROM vaulted_token')).toEqual([{ id: token, active: true }]);
});
