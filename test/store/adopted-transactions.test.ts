import { randomUUIDv7 } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { startBackfill } from '#src/payments/backfill-payments.ts';
import { adoptTransactions } from '#src/store/backfill.ts';
import { beginNextAttempt } from '#src/store/next-attempt.ts';
import { readTransactions } from '#src/store/operated-payments.ts';
import { claimOperation } from '#src/store/operations.ts';
import { finishPayment } from '#src/store/payments.ts';
import { claimAttempt, type OpenAttempt } from '../support/open-attempts.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../support/payment-requests.ts';

const NIL = '00000000-0000-0000-0000-000000000000';

onOwnDatabase({ empties: 'payment, transaction', account: false, maxConnections: 8 });

/** As the release before inserts: it does not name the account of a transaction. */
async function claimAsBefore(): Promise<OpenAttempt> {
  const attempt = await claimAttempt(database, { leaseS: 60 });
  await tables.query('UPDATE transaction SET account_id = DEFAULT WHERE id = $1', [attempt.transactionId]);
  return attempt;
}

const accounts = async () =>
  (await tables.query('SELECT account_id FROM transaction')).map(({ account_id }) => account_id);

const finish = (attempt: OpenAttempt, accountId = ACCOUNT_ONE) =>
  finishPayment(database, {
    accountId,
    paymentId: attempt.paymentId,
    status: 'SUCCEEDED',
    record: Buffer.from('record'),
    answer: Buffer.from('answer'),
    transactionId: attempt.transactionId,
    transactionStatus: 'SUCCEEDED',
    fence: 0,
    lookUpInS: undefined,
    event: 'payment.purchase',
    vault: undefined,
  });

const beginNext = (attempt: OpenAttempt, accountId = ACCOUNT_ONE) => {
  const next = { transactionId: randomUUIDv7(), transactionStatus: 'PENDING', leaseS: 60 };
  return beginNextAttempt(database, {
    accountId,
    paymentId: attempt.paymentId,
    record: Buffer.from('moved'),
    last: { transactionId: attempt.transactionId, transactionStatus: 'DECLINED' },
    next: { ...next, connectionId: 'second', connectionIdentity: 'second' },
  });
};

const capture = (attempt: OpenAttempt, accountId = ACCOUNT_ONE) =>
  claimOperation(database, {
    accountId,
    paymentId: attempt.paymentId,
    version: 0,
    status: 'SUCCEEDED',
    record: Buffer.from('record'),
    transactionId: randomUUIDv7(),
    type: 'CAPTURE',
    baseId: attempt.transactionId,
    parentId: attempt.transactionId,
    connectionId: 'scripted',
    connectionIdentity: 'scripted',
    minorUnits: 5_575n,
    currency: 'USD',
    isFinal: true,
    leaseS: 60,
    method: 'CapturePayment',
    idempotencyKey: 'c1',
    requestHash: Buffer.alloc(32),
    requestShape: Buffer.alloc(16),
    merchantReference: undefined,
  });

describe('a transaction that the release before inserted, without its account,', () => {
  it('is finished, moved on, read and operated on as any other', async () => {
    const finished = await claimAsBefore();
    expect(await finish(finished)).toEqual({ earlier: undefined });
    expect(await readTransactions(database, ACCOUNT_ONE, finished.paymentId)).toHaveLength(1);
    expect(await capture(finished)).toBe(true);
    const moved = await claimAsBefore();
    expect(await beginNext(moved)).toBe(true);
    expect((await accounts()).toSorted()).toEqual([NIL, NIL, ACCOUNT_ONE, ACCOUNT_ONE]);
  });

  it('is nothing to another account, which does not have its payment', async () => {
    const attempt = await claimAsBefore();
    expect(await finish(attempt, ACCOUNT_TWO)).toBe(false);
    expect(await capture(attempt, ACCOUNT_TWO)).toBe(false);
  });

  it('gets the account of its payment in the background, whichever replicas see to it, and those inserted meanwhile too', async () => {
    const attempts = await Promise.all(Array.from({ length: 450 }, claimAsBefore));
    const errors: unknown[] = [];
    const stops = [1, 2].map(() =>
      startBackfill(database, { intervalMs: 20, onError: (error) => errors.push(error) }),
    );
    // Payments are finished meanwhile.
    expect(await Promise.all(attempts.map((attempt) => finish(attempt)))).not.toContain(false);
    await claimAsBefore();
    await vi.waitFor(async () => expect(new Set(await accounts())).toEqual(new Set([ACCOUNT_ONE])), 60_000);
    await Promise.all(stops.map((stop) => stop()));
    expect(errors).toEqual([]);
    expect(await adoptTransactions(database, NIL, 10)).toBeUndefined();
  });
});
