import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  countOpenFollowUps,
  endFollowUp,
  findOwnTransaction,
  findPaymentOf,
  hastenFollowUp,
  postponeFollowUp,
  takeDueFollowUps,
  takeFollowUp,
} from '#src/store/engine/follow-ups.ts';
import { claimAttempt, type OpenAttempt } from '../support/open-attempts.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'payment, transaction', account: false });

/** A transaction whose call is over, and which is followed up in so many seconds. */
async function scheduled(inS = 0, over: Parameters<typeof claimAttempt>[1] = {}): Promise<OpenAttempt> {
  const attempt = await claimAttempt(database, over);
  await tables.query(
    'UPDATE transaction SET look_up_at = NULL, follow_up_at = now() + make_interval(secs => $2) WHERE id = $1',
    [attempt.transactionId, inS],
  );
  return attempt;
}

/** The stored schedule of a transaction; `inS` is rounded. */
async function scheduleOf({ transactionId }: OpenAttempt) {
  const [row] = await tables.query(
    `SELECT fence, round(extract(epoch FROM follow_up_at - now()))::integer AS "inS"
     FROM transaction WHERE id = $1`,
    [transactionId],
  );
  return row;
}

const HERE = { connectionId: 'scripted', identity: 'scripted', limit: 10, leaseS: 60 };
const takeDue = (over: Partial<typeof HERE> = {}) => takeDueFollowUps(database, [{ ...HERE, ...over }]);
const idsOf = (all: readonly { transactionId: string }[]) => all.map(({ transactionId }) => transactionId);

describe('taking what is due to be followed up', () => {
  it('leases it under the next fence, so that others find it only when that time is over', async () => {
    const attempt = await scheduled();
    expect(await takeDue()).toEqual([
      {
        accountId: ACCOUNT_ONE,
        paymentId: attempt.paymentId,
        transactionId: attempt.transactionId,
        connectionId: 'scripted',
        fence: 1,
      },
    ]);
    expect(await scheduleOf(attempt)).toEqual({ fence: 1, inS: 60 });
    expect(await takeDue()).toEqual([]);
  });

  it('leaves alone what is not due, what is not scheduled, and what another connection or account has to be asked about', async () => {
    const future = await scheduled(100);
    const final = await scheduled();
    await tables.query('UPDATE transaction SET follow_up_at = NULL WHERE id = $1', [final.transactionId]);
    const elsewhere = await scheduled(0, { connectionId: 'second', identity: 'second' });
    const other = await scheduled(0, { identity: 'another account' });
    expect(await takeDue()).toEqual([]);
    const both = [HERE, { ...HERE, connectionId: 'second', identity: 'second', leaseS: 30 }];
    expect(idsOf(await takeDueFollowUps(database, both))).toEqual([elsewhere.transactionId]);
    expect(await scheduleOf(elsewhere)).toEqual({ fence: 1, inS: 30 });
    for (const attempt of [future, other]) expect(await scheduleOf(attempt)).toMatchObject({ fence: 0 });
  });

  it('begins with what has been due for longest, and takes no more than was asked for', async () => {
    const [newest, oldest, middle] = [await scheduled(-1), await scheduled(-300), await scheduled(-100)];
    expect(idsOf(await takeDue({ limit: 2 })).sort()).toEqual(
      [oldest?.transactionId, middle?.transactionId].sort(),
    );
    expect(idsOf(await takeDue({ limit: 2 }))).toEqual([newest?.transactionId]);
  });

  it('does not wait for what another transaction has locked, and takes the next', async () => {
    const [first, second] = [await scheduled(-100), await scheduled()];
    const [locked, taken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holding = database.transaction(async (run) => {
      await run('SELECT id FROM transaction WHERE id = $1 FOR UPDATE', [first.transactionId]);
      locked.resolve();
      await taken.promise;
    });
    await locked.promise;
    const gaveUp = setTimeout(taken.resolve, 3_000);
    expect(idsOf(await takeDue({ limit: 1 }))).toEqual([second.transactionId]);
    clearTimeout(gaveUp);
    taken.resolve();
    await holding;
  });
});

describe('taking one out of its turn', () => {
  it('leases that one alone: should its taker die, it is due when the lease is over', async () => {
    const [soon, late] = [await scheduled(10), await scheduled(500)];
    expect(await takeFollowUp(database, soon.transactionId, 60)).toMatchObject({
      paymentId: soon.paymentId,
      transactionId: soon.transactionId,
      fence: 1,
    });
    expect(await scheduleOf(soon)).toEqual({ fence: 1, inS: 60 });
    expect(await scheduleOf(late)).toEqual({ fence: 0, inS: 500 });
    await takeFollowUp(database, late.transactionId, 60);
    expect(await scheduleOf(late)).toEqual({ fence: 1, inS: 60 });
  });

  it('does not schedule what is final', async () => {
    const final = await scheduled();
    await tables.query('UPDATE transaction SET follow_up_at = NULL');
    expect(await takeFollowUp(database, final.transactionId, 60)).toMatchObject({ fence: 1 });
    expect(await scheduleOf(final)).toEqual({ fence: 1, inS: null });
  });

  it('waits while the creation is under way, or its outcome is looked up', async () => {
    const { transactionId } = await claimAttempt(database);
    expect(await takeFollowUp(database, transactionId, 60)).toBeUndefined();
    expect(await takeFollowUp(database, randomUUID(), 60)).toBeUndefined();
  });
});

it('makes one due now under another fence, and schedules neither what is final nor what is another account’s', async () => {
  const [soon, later, final] = [await scheduled(500), await scheduled(500), await scheduled()];
  await tables.query('UPDATE transaction SET follow_up_at = NULL WHERE id = $1', [final.transactionId]);
  for (const { transactionId } of [soon, final]) await hastenFollowUp(database, ACCOUNT_ONE, transactionId);
  await hastenFollowUp(database, randomUUID(), later.transactionId);
  await hastenFollowUp(database, ACCOUNT_ONE, undefined);
  expect(await scheduleOf(soon)).toEqual({ fence: 1, inS: 0 });
  expect(await scheduleOf(later)).toEqual({ fence: 0, inS: 500 });
  expect(await scheduleOf(final)).toEqual({ fence: 0, inS: null });
});

describe('giving back what was taken', () => {
  it('postpones it, or ends its schedule, and nothing else', async () => {
    const [postponed, ended, other] = [await scheduled(), await scheduled(), await scheduled(500)];
    await takeDue();
    // Who has lost it to another taker changes nothing.
    await postponeFollowUp(database, { transactionId: postponed.transactionId, fence: 0 }, 200);
    await endFollowUp(database, { transactionId: postponed.transactionId, fence: 0 });
    expect(await scheduleOf(postponed)).toEqual({ fence: 1, inS: 60 });
    await postponeFollowUp(database, { transactionId: postponed.transactionId, fence: 1 }, 200);
    await endFollowUp(database, { transactionId: ended.transactionId, fence: 1 });
    expect(await scheduleOf(postponed)).toEqual({ fence: 1, inS: 200 });
    expect(await scheduleOf(ended)).toEqual({ fence: 1, inS: null });
    expect(await scheduleOf(other)).toEqual({ fence: 0, inS: 500 });
    // What is final is not scheduled again.
    await postponeFollowUp(database, { transactionId: ended.transactionId, fence: 1 }, 200);
    expect(await scheduleOf(ended)).toEqual({ fence: 1, inS: null });
  });
});

it('counts what is open after its call, and not what is scheduled and final, or final and not scheduled', async () => {
  const types = ['PURCHASE', 'REFUND'];
  expect(await countOpenFollowUps(database, types, 10)).toEqual([]);
  const attempts = [await scheduled(), await scheduled(), await scheduled(), await scheduled()];
  const [held, over, refund] = idsOf(attempts);
  await tables.query("UPDATE transaction SET status = 'SUCCEEDED' WHERE id = $1", [held]);
  await tables.query('UPDATE transaction SET follow_up_at = NULL WHERE id = $1', [over]);
  await tables.query("UPDATE transaction SET type = 'REFUND' WHERE id = $1", [refund]);
  const counted = await countOpenFollowUps(database, types, 10);
  expect(counted.map(({ type, open }) => `${type} ${open}`).sort()).toEqual(['PURCHASE 1', 'REFUND 1']);
  await scheduled();
  expect((await countOpenFollowUps(database, ['PURCHASE'], 10))[0]?.open).toBe(2);
  expect((await countOpenFollowUps(database, ['PURCHASE'], 1))[0]?.open).toBe(1);
});

it('finds the last attempt of a payment, and the payment of a transaction, whoever’s they are', async () => {
  const [one, other] = [await scheduled(), await scheduled(0, { connectionId: 'second' })];
  const [second, refund] = [randomUUID(), randomUUID()];
  const insert = `INSERT INTO transaction (id, account_id, payment_id, parent_id, connection_id, connection_identity, status,
      amount_minor_units, currency, capture, created_at)
    SELECT $1, account_id, payment_id, $2, 'second', 'second', 'PENDING', 1, 'USD', true, created_at + interval '1 s'
    FROM transaction WHERE id = $3`;
  await tables.query(insert, [second, null, one.transactionId]);
  await tables.query(insert, [refund, second, second]);
  expect(await findOwnTransaction(database, one.paymentId)).toEqual({
    transactionId: second,
    accountId: ACCOUNT_ONE,
    connectionId: 'second',
    isReleased: false,
  });
  expect(await findOwnTransaction(database, other.paymentId)).toMatchObject({
    transactionId: other.transactionId,
  });
  expect(await findOwnTransaction(database, randomUUID())).toBeUndefined();
  for (const [id, { paymentId }] of [
    [one.transactionId, one],
    [refund, one],
    [other.transactionId, other],
  ] as const) {
    expect(await findPaymentOf(database, id)).toEqual({ paymentId, accountId: ACCOUNT_ONE });
  }
  expect(await findPaymentOf(database, randomUUID())).toBeUndefined();
});
