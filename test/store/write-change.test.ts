import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import type { StoredChange, WrittenChange } from '#src/store/engine/write-change.ts';
import { findByKey } from '#src/store/tables/payment-keys.ts';
import { getPaymentRecord } from '#src/store/tables/payment-record.ts';
import { addBystanders } from '../support/bystanders.ts';
import {
  changeOf,
  claimAttempt,
  OPEN,
  type OpenAttempt,
  recordOf,
  responseOf,
} from '../support/claimed-rows.ts';
import { database, databaseUrl, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../support/payment-requests.ts';
import { earlier, lockWaits, openTables, wantEveryEvent } from '../support/tables.ts';

onOwnDatabase({ empties: 'payment, transaction, vaulted_token, single_use, webhook, event' });

/**
 * Writes a change in one commit with others: two for other payments, one of them outdated, and one without a payment.
 */
async function writeInGroup(change: StoredChange): Promise<WrittenChange> {
  const [first, second, third] = [
    await claimAttempt(database),
    await claimAttempt(database),
    await claimAttempt(database),
  ];
  const ofNobody = { ...first, paymentId: randomUUID(), transactionId: randomUUID() };
  // The first change is written alone, and the others form a group while it is in progress.
  const [ahead, written, ...others] = await Promise.all([
    writeChange(database, changeOf(first, 'AHEAD', { event: undefined })),
    writeChange(database, change),
    writeChange(database, changeOf(second, 'BESIDE', { ...OPEN, event: undefined })),
    writeChange(database, changeOf(third, 'OUTDATED', { version: 1 })),
    writeChange(database, changeOf(ofNobody, 'NONE')),
  ]);
  expect([ahead, ...others]).toEqual([WRITTEN, WRITTEN, { kind: 'outdated' }, { kind: 'outdated' }]);
  expect(await getPaymentRecord(database, ACCOUNT_ONE, second.paymentId)).toEqual(recordOf('BESIDE'));
  await tables.query('DELETE FROM payment WHERE id = ANY ($1)', [
    [first, second, third].map(({ paymentId }) => paymentId),
  ]);
  await tables.query('DELETE FROM transaction WHERE id = ANY ($1)', [
    [first, second, third].map(({ transactionId }) => transactionId),
  ]);
  return written;
}

const WAYS = {
  alone: (change: StoredChange) => writeChange(database, change),
  'in a group': writeInGroup,
  'by the function that writes more': (change: StoredChange) =>
    writeChange(database, { ...change, reopens: randomUUID() }),
};

/** The result of the first write by the claimer, with no webhook to notify. */
const WRITTEN = { kind: 'written', fence: 1, event: false, earlier: undefined };
const earlierOf = (name: string) => ({ record: recordOf(name), response: responseOf(name) });

const everything = async () => [
  await tables.query('SELECT * FROM payment ORDER BY account_id, id'),
  await tables.query('SELECT * FROM transaction ORDER BY account_id, id'),
  await tables.query('SELECT * FROM event ORDER BY account_id, id'),
];
const rowOf = async ({ transactionId }: OpenAttempt) =>
  (
    await tables.query(
      `SELECT t.status, t.reference, t.provider_payment_id, t.awaits_payer, t.fence, p.version, p.event_sequence,
         extract(epoch FROM t.check_at - t.updated_at)::integer AS check_in_s, t.updated_at = p.updated_at AS at_once
       FROM transaction t JOIN payment p ON p.account_id = t.account_id AND p.id = t.payment_id
       WHERE t.id = $1 AND t.account_id = $2`,
      [transactionId, ACCOUNT_ONE],
    )
  )[0];
/** Advances the fence, as another worker or a notification does. */
const take = ({ transactionId }: OpenAttempt) =>
  tables.query(
    `UPDATE transaction SET fence = fence + 1, check_at = ${earlier('updated_at', '-300 s')} WHERE id = $1`,
    [transactionId],
  );

describe.each(Object.entries(WAYS))('a change written %s', (_way, writeThus) => {
  const write = (...args: Parameters<typeof changeOf>) => writeThus(changeOf(...args));

  it('a change is written completely and affects no other payment or transaction', async () => {
    const attempt = await claimAttempt(database);
    const copy = "(jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid())))";
    await tables.query(`INSERT INTO transaction SELECT ${copy}.* FROM transaction t`);
    const others = await addBystanders(tables, attempt.paymentId);
    const beside = () =>
      tables.query('SELECT * FROM transaction WHERE payment_id = $1 AND id <> $2 ORDER BY account_id, id', [
        ...[attempt.paymentId, attempt.transactionId],
      ]);
    const before = await beside();
    const options = { ...OPEN, reference: 'theirs', providerPaymentId: 'their id', awaitsPayer: true };
    expect(await write(attempt, 'SUCCEEDED', options)).toEqual(WRITTEN);
    expect(await rowOf(attempt)).toEqual({
      ...{ status: 'SUCCEEDED', reference: 'theirs', awaits_payer: true, fence: 1, version: 1 },
      ...{ provider_payment_id: 'their id', event_sequence: 1, check_in_s: 60, at_once: true },
    });
    const [payment] = await tables.query('SELECT * FROM payment WHERE id = $1 AND account_id = $2', [
      ...[attempt.paymentId, ACCOUNT_ONE],
    ]);
    expect(payment).toMatchObject({
      ...{ status: 'SUCCEEDED', record: recordOf('SUCCEEDED'), response: responseOf('SUCCEEDED') },
      response_record: null,
    });
    expect(before).toHaveLength(2);
    expect(await beside()).toEqual(before);
    await others.expectUntouched();
  });

  it('the time of the first success is stored once, and stays whatever is reported later', async () => {
    const attempt = await claimAttempt(database);
    const at = async () => {
      const columns = 'succeeded_at AS succeeded, succeeded_at = updated_at AS now';
      return (
        await tables.query(`SELECT ${columns} FROM transaction WHERE id = $1`, [attempt.transactionId])
      )[0];
    };
    const statuses = ['PENDING', 'SUCCEEDED', 'SUCCEEDED', 'DECLINED', 'SUCCEEDED'];
    const times: Awaited<ReturnType<typeof at>>[] = [];
    for (const [version, status] of statuses.entries()) {
      await write(attempt, status, { version, fence: version });
      times.push(await at());
    }
    const [pending, first, ...later] = times;
    expect([pending?.succeeded, first?.now]).toEqual([null, true]);
    expect(later).toEqual(Array(3).fill({ succeeded: first?.succeeded, now: false }));
  });

  it('a change returns the first response, which later changes do not replace', async () => {
    const attempt = await claimAttempt(database);
    await write(attempt, 'FIRST', OPEN);
    const second = await write(attempt, 'SECOND', { ...OPEN, version: 1, fence: 1 });
    expect(second).toEqual({ ...WRITTEN, fence: 2, earlier: earlierOf('FIRST') });
    const third = await write(attempt, 'THIRD', { version: 2, fence: 2 });
    expect(third).toEqual({ ...WRITTEN, fence: 3, earlier: earlierOf('FIRST') });
    const holder = await findByKey(database, ACCOUNT_ONE, attempt.idempotencyKey);
    expect(holder).toMatchObject(earlierOf('FIRST'));
    expect(await getPaymentRecord(database, ACCOUNT_ONE, attempt.paymentId)).toEqual(recordOf('THIRD'));
  });

  it('a change returns the first response even if its own response has the same bytes', async () => {
    const attempt = await claimAttempt(database);
    const response = Buffer.from('rendered by one schema');
    await write(attempt, 'FIRST', { ...OPEN, response });
    const earlier = { record: recordOf('FIRST'), response };
    expect(await write(attempt, 'SECOND', { version: 1, fence: 1, response })).toMatchObject({ earlier });
    expect(await write(attempt, 'SECOND', { version: 1, fence: 1, response })).toMatchObject({ earlier });
  });

  it('a change that shows what the first response showed returns no response', async () => {
    const attempt = await claimAttempt(database);
    await write(attempt, 'FIRST', OPEN);
    const same = { ...OPEN, version: 1, fence: 1, record: recordOf('FIRST') };
    expect(await write(attempt, 'AGAIN', same)).toEqual({ ...WRITTEN, fence: 2 });
  });

  it('a change without a response lets a later change store it', async () => {
    const attempt = await claimAttempt(database);
    const first = await write(attempt, 'FIRST', { ...OPEN, response: undefined });
    expect(first).toEqual(WRITTEN);
    const second = await write(attempt, 'SECOND', { version: 1, fence: 1 });
    expect(second).toEqual({ ...WRITTEN, fence: 2 });
    const holder = await findByKey(database, ACCOUNT_ONE, attempt.idempotencyKey);
    expect(holder).toMatchObject(earlierOf('SECOND'));
  });

  it('a repeated change after a lost acknowledgement succeeds without a second event', async () => {
    await wantEveryEvent(tables);
    const [first, later] = [await claimAttempt(database), await claimAttempt(database)];
    expect(await write(first, 'SUCCEEDED')).toMatchObject({ kind: 'written', event: true });
    await write(later, 'PENDING', OPEN);
    await write(later, 'SUCCEEDED', { version: 1, fence: 1 });
    const before = await everything();
    const again = { kind: 'written', fence: undefined, event: false, earlier: undefined };
    expect(await write(first, 'SUCCEEDED')).toEqual(again);
    const [known, open] = [{ version: 1, fence: 1 }, OPEN];
    expect(await write(later, 'SUCCEEDED', known)).toEqual({ ...again, earlier: earlierOf('PENDING') });
    // Later changes have replaced this one, so it is outdated.
    expect(await write(later, 'PENDING', open)).toEqual({ kind: 'outdated' });
    expect(await everything()).toEqual(before);
  });

  it('a change to an older version is outdated and changes nothing, with or without a known outcome', async () => {
    const attempt = await claimAttempt(database);
    await write(attempt, 'FIRST', OPEN);
    const before = await everything();
    for (const options of [{}, { fence: 1 }, OPEN, { ...OPEN, fence: 1 }]) {
      expect(await write(attempt, 'SECOND', options)).toEqual({ kind: 'outdated' });
    }
    expect(await write(attempt, 'SECOND', { version: 2, fence: 1 })).toEqual({ kind: 'outdated' });
    expect(await everything()).toEqual(before);
  });

  it('a change without a known outcome is lost when another worker holds the transaction', async () => {
    const attempt = await claimAttempt(database);
    await take(attempt);
    const before = await everything();
    expect(await write(attempt, 'PENDING', OPEN)).toEqual({ kind: 'lost' });
    expect(await write(attempt, 'PENDING', { ...OPEN, fence: 2 })).toEqual({ kind: 'lost' });
    expect(await everything()).toEqual(before);
    expect(await write(attempt, 'PENDING', { ...OPEN, fence: 1 })).toEqual({ ...WRITTEN, fence: 2 });
  });

  it('a change that is lost or outdated is not taken for one that is written, although it has the same record', async () => {
    const attempt = await claimAttempt(database);
    await write(attempt, 'SAME', OPEN);
    const again = { ...OPEN, version: 1, fence: 1 };
    await take(attempt);
    expect(await write(attempt, 'SAME', again)).toEqual({ kind: 'lost' });
    await write(attempt, 'SAME', { ...again, fence: 2 });
    expect(await write(attempt, 'SAME', OPEN)).toEqual({ kind: 'outdated' });
  });

  it('a known outcome is written even without the lease, and leaves the next check unchanged', async () => {
    const attempt = await claimAttempt(database);
    await take(attempt);
    const [before] = await tables.query('SELECT check_at FROM transaction');
    expect(await write(attempt, 'SUCCEEDED')).toEqual({ ...WRITTEN, fence: undefined });
    const after = await tables.query('SELECT status, check_at, fence FROM transaction');
    expect(after).toEqual([{ status: 'SUCCEEDED', check_at: before?.check_at, fence: 2 }]);
  });

  it('a change sets the next check or ends the checks, and keeps the last known names', async () => {
    const attempt = await claimAttempt(database);
    await write(attempt, 'PENDING', {
      ...OPEN,
      reference: 'not theirs for long',
      providerPaymentId: 'first',
    });
    await write(attempt, 'PENDING', {
      ...OPEN,
      version: 1,
      fence: 1,
      reference: 'theirs',
      providerPaymentId: 'second',
      awaitsPayer: true,
    });
    await write(attempt, 'PENDING', { isFenced: true, checkInS: 90, version: 2, fence: 2 });
    expect(await rowOf(attempt)).toMatchObject({
      ...{ status: 'PENDING', reference: 'theirs', provider_payment_id: 'second' },
      ...{ awaits_payer: false, check_in_s: 90, fence: 3 },
    });
    await write(attempt, 'SUCCEEDED', { version: 3, fence: 3 });
    expect(await rowOf(attempt)).toMatchObject({
      ...{ reference: 'theirs', provider_payment_id: 'second', check_in_s: null, version: 4 },
    });
  });

  it('a change for another account is outdated and changes nothing', async () => {
    const attempt = await claimAttempt(database);
    const before = await everything();
    for (const options of [{}, OPEN]) {
      const written = await write(attempt, 'SUCCEEDED', { ...options, accountId: ACCOUNT_TWO });
      expect(written).toEqual({ kind: 'outdated' });
    }
    expect(await everything()).toEqual(before);
  });

  it('a change to a transaction that belongs to another payment changes nothing', async () => {
    const [one, other] = [await claimAttempt(database), await claimAttempt(database)];
    const before = await everything();
    await write({ ...one, transactionId: other.transactionId }, 'SUCCEEDED').catch(() => {});
    expect(await everything()).toEqual(before);
  });

  it('a change writes an event only if a webhook subscribes to it, but numbers every event', async () => {
    const webhook = (account: string, active: boolean, events: string) =>
      tables.query(
        `INSERT INTO webhook (account_id, id, url, description, active, events, secret) VALUES ($1, $2, '', '', $3, $4, '')`,
        [account, randomUUID(), active, `{${events}}`],
      );
    await webhook(ACCOUNT_ONE, true, 'payment.refund');
    await webhook(ACCOUNT_ONE, false, 'payment.purchase');
    await webhook(ACCOUNT_TWO, true, 'payment.purchase');
    const attempt = await claimAttempt(database);
    expect(await write(attempt, 'FIRST', OPEN)).toMatchObject({ kind: 'written', event: false });
    const untold = { ...OPEN, version: 1, fence: 1, event: undefined };
    expect(await write(attempt, 'SECOND', untold)).toMatchObject({ kind: 'written', event: false });
    const told = { version: 2, fence: 2, event: 'payment.refund' };
    expect(await write(attempt, 'THIRD', told)).toMatchObject({ kind: 'written', event: true });
    const columns = 'account_id, payment_id, type, sequence, record, relayed_at';
    expect(await tables.query(`SELECT ${columns} FROM event`)).toEqual([
      {
        ...{ account_id: ACCOUNT_ONE, payment_id: attempt.paymentId, type: 'payment.refund', sequence: 2 },
        ...{ record: recordOf('THIRD'), relayed_at: null },
      },
    ]);
    expect((await rowOf(attempt))?.event_sequence).toBe(2);
  });
});

it.each(['alone', 'by the function that writes more'] as const)(
  'a change without an outcome, written %s, is lost if another worker takes the transaction at the same time',
  async (way) => {
    const attempt = await claimAttempt(database);
    const watching = await openTables(databaseUrl());
    await tables.query('BEGIN');
    await take(attempt);
    const before = await everything();
    const written = WAYS[way](changeOf(attempt, 'PENDING', OPEN));
    await expect.poll(() => lockWaits(watching)).toBe(1);
    await watching.close();
    await tables.query('COMMIT');
    expect(await written).toEqual({ kind: 'lost' });
    expect(await everything()).toEqual(before);
  },
);
