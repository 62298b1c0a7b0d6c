import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { finishGrouped } from '#src/store/engine/grouped-payments.ts';
import { type Finish, findByKey, finishPayment } from '#src/store/engine/payments.ts';
import { getPaymentRecord } from '#src/store/tables/payment-record.ts';
import { addBystanders } from '../support/bystanders.ts';
import { claimAttempt, type OpenAttempt } from '../support/open-attempts.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'payment, transaction, vaulted_token, single_use' });

/** A record and a response that bear a name. */
const finishOf = (attempt: OpenAttempt, name: string, options: Partial<Finish> = {}): Finish => ({
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

/** Writes a finish in one commit with those of other payments, one of them of no payment. */
async function finishInGroup(finish: Finish) {
  const [first, second] = [await claimAttempt(database), await claimAttempt(database)];
  const ofNobody = { ...first, paymentId: randomUUID(), transactionId: randomUUID() };
  // The first goes alone, and the others come while it is under way.
  const [ahead, finished, beside, none] = await Promise.all([
    finishGrouped(database, finishOf(first, 'AHEAD')),
    finishGrouped(database, finish),
    finishGrouped(database, finishOf(second, 'BESIDE', { lookUpInS: 60 })),
    finishGrouped(database, finishOf(ofNobody, 'NONE')),
  ]);
  expect([ahead, beside, none]).toEqual([{ earlier: undefined }, { earlier: undefined }, false]);
  expect(await getPaymentRecord(database, ACCOUNT_ONE, second.paymentId)).toEqual(stored('BESIDE').record);
  return finished;
}

const WAYS = {
  alone: (finish: Finish) => finishPayment(database, finish),
  'in a group': finishInGroup,
};

const stored = (name: string) => ({
  record: Buffer.from(`record ${name}`),
  answer: Buffer.from(`answer ${name}`),
});

describe.each(Object.entries(WAYS))('a finish, written %s,', (_way, write) => {
  const finish = (...args: Parameters<typeof finishOf>) => write(finishOf(...args));

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
    expect(await getPaymentRecord(database, ACCOUNT_ONE, attempt.paymentId)).toEqual(stored('THIRD').record);
  });

  it('gives back the response that was stored before, also when its own bytes are the same, since only the record differs', async () => {
    const attempt = await claimAttempt(database);
    const answer = Buffer.from('rendered by one schema');
    await finish(attempt, 'FIRST', { lookUpInS: 60, answer });
    const earlier = { record: stored('FIRST').record, answer };
    expect(await finish(attempt, 'SECOND', { answer })).toEqual({ earlier });
    expect(await finish(attempt, 'SECOND', { answer })).toEqual({ earlier });
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

  it('of an outcome that is still open changes nothing without the fencing token; one that is known needs none', async () => {
    const attempt = await claimAttempt(database);
    await tables.query('UPDATE transaction SET fence = 1 WHERE id = $1', [attempt.transactionId]);
    expect(await finish(attempt, 'PENDING', { lookUpInS: 60 })).toBe(false);
    expect(await finish(attempt, 'SUCCEEDED')).toEqual({ earlier: undefined });
  });

  it('says when it is looked up and followed up again, and keeps the last reference that it was given', async () => {
    const attempt = await claimAttempt(database);
    await finish(attempt, 'PENDING', { lookUpInS: 60, reference: 'not theirs for long' });
    await finish(attempt, 'PENDING', { lookUpInS: 60, reference: 'theirs' });
    await finish(attempt, 'PENDING', { lookUpInS: 60, followUpInS: 90 });
    const sql = `
      SELECT status, reference, extract(epoch FROM look_up_at - updated_at)::integer AS look_up_s,
        extract(epoch FROM follow_up_at - updated_at)::integer AS follow_up_s
      FROM transaction WHERE id = $1`;
    expect(await tables.query(sql, [attempt.transactionId])).toEqual([
      { status: 'PENDING', reference: 'theirs', look_up_s: 60, follow_up_s: 90 },
    ]);
  });

  it('is false for a transaction of another payment or for another account, and changes nothing', async () => {
    const [one, other] = [await claimAttempt(database), await claimAttempt(database)];
    const everything = async () => {
      const ids = [one.paymentId, other.paymentId];
      return [
        await tables.query('SELECT * FROM payment WHERE id = ANY ($1) ORDER BY id', [ids]),
        await tables.query('SELECT * FROM transaction WHERE payment_id = ANY ($1) ORDER BY id', [ids]),
      ];
    };
    const before = await everything();
    expect(await finish({ ...one, transactionId: other.transactionId }, 'SUCCEEDED')).toBe(false);
    expect(await finish(one, 'SUCCEEDED', { accountId: ACCOUNT_TWO })).toBe(false);
    expect(await everything()).toEqual(before);
  });

  it('leaves every other transaction of its payment as it is', async () => {
    const attempt = await claimAttempt(database);
    const copy = "(jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid())))";
    await tables.query(`INSERT INTO transaction SELECT ${copy}.* FROM transaction t WHERE id = $1`, [
      attempt.transactionId,
    ]);
    const others = () =>
      tables.query('SELECT * FROM transaction WHERE payment_id = $1 AND id <> $2', [
        ...[attempt.paymentId, attempt.transactionId],
      ]);
    const before = await others();
    await finish(attempt, 'SUCCEEDED');
    expect(before).toHaveLength(1);
    expect(await others()).toEqual(before);
  });

  it('does not take what another payment or another account has stored for itself', async () => {
    const [one, other] = [await claimAttempt(database), await claimAttempt(database)];
    await finish(one, 'SUCCEEDED');
    await finish(other, 'DECLINED');
    expect(await finish(other, 'SUCCEEDED')).toBe(false);
    expect(await finish(one, 'SUCCEEDED', { accountId: ACCOUNT_TWO })).toBe(false);
  });

  it.each(['keep', 'drop', 'wait', 'reopen'] as const)(
    'touches no other payment, nor its card or session, when it is to %s',
    async (what) => {
      const attempt = await claimAttempt(database, { vault: true });
      const token = attempt.vaultedToken ?? '';
      const [session, other] = [randomUUID(), randomUUID()];
      const use = (account: string, object: string, payment: string) =>
        tables.query('INSERT INTO single_use (account_id, object_id, payment_id) VALUES ($1, $2, $3)', [
          ...[account, object, payment],
        ]);
      await use(ACCOUNT_ONE, session, attempt.paymentId);
      await use(ACCOUNT_TWO, session, attempt.paymentId);
      await use(ACCOUNT_ONE, other, attempt.paymentId);
      const others = await addBystanders(tables, attempt.paymentId);
      const kept = { token, fate: 'keep', at: '2026-01-31T09:08:07Z', record: undefined } as const;
      await finish(attempt, 'DONE', {
        vault: what === 'keep' ? kept : { token, fate: what === 'wait' ? 'wait' : 'drop' },
        reopens: what === 'reopen' ? session : undefined,
      });
      await others.expectUntouched();
      const cards = await tables.query('SELECT active FROM vaulted_token WHERE account_id = $1 AND id = $2', [
        ...[ACCOUNT_ONE, token],
      ]);
      expect(cards).toEqual(
        { keep: [{ active: true }], wait: [{ active: false }], drop: [], reopen: [] }[what],
      );
      const uses = await tables.query('SELECT account_id, object_id FROM single_use');
      const own = what === 'reopen' ? [] : [{ account_id: ACCOUNT_ONE, object_id: session }];
      expect(new Set(uses)).toEqual(
        new Set([
          ...own,
          { account_id: ACCOUNT_TWO, object_id: session },
          { account_id: ACCOUNT_ONE, object_id: other },
        ]),
      );
    },
  );

  it('reopens no session that another payment uses meanwhile', async () => {
    const [attempt, other] = [await claimAttempt(database), await claimAttempt(database)];
    const session = randomUUID();
    await tables.query('INSERT INTO single_use (account_id, object_id, payment_id) VALUES ($1, $2, $3)', [
      ...[ACCOUNT_ONE, session, other.paymentId],
    ]);
    expect(await finish(attempt, 'DECLINED', { reopens: session })).toEqual({ earlier: undefined });
    expect(await tables.query('SELECT payment_id FROM single_use')).toEqual([
      { payment_id: other.paymentId },
    ]);
  });

  it('keeps or drops the card that waits for it', async () => {
    const [kept, dropped] = [
      await claimAttempt(database, { vault: true }),
      await claimAttempt(database, { vault: true }),
    ];
    await finish(kept, 'SUCCEEDED', {
      vault: { token: kept.vaultedToken ?? '', fate: 'keep', at: '2026-01-31T09:08:07Z', record: undefined },
    });
    await finish(dropped, 'DECLINED', { vault: { token: dropped.vaultedToken ?? '', fate: 'drop' } });
    expect(await tables.query('SELECT id, active FROM vaulted_token')).toEqual([
      { id: kept.vaultedToken, active: true },
    ]);
  });

  it('writes the event of its change when a webhook wants it, and no other', async () => {
    await tables.query(
      `INSERT INTO webhook (account_id, id, url, description, events, secret)
       VALUES ($1, $2, 'http://127.0.0.1:1', '', '{payment.refund}', '')`,
      [ACCOUNT_ONE, randomUUID()],
    );
    try {
      const [told, untold] = [await claimAttempt(database), await claimAttempt(database)];
      expect(await finish(told, 'SUCCEEDED', { event: 'payment.refund' })).toMatchObject({ event: true });
      expect(await finish(untold, 'SUCCEEDED')).toEqual({ earlier: undefined });
      expect(
        await tables.query('SELECT payment_id, type, sequence, record FROM event WHERE account_id = $1', [
          ACCOUNT_ONE,
        ]),
      ).toEqual([
        {
          payment_id: told.paymentId,
          type: 'payment.refund',
          sequence: 1,
          record: stored('SUCCEEDED').record,
        },
      ]);
    } finally {
      await tables.query('DELETE FROM webhook');
      await tables.query('DELETE FROM event');
    }
  });
});

it.each([
  ['in use', 'active = true'],
  ['ended', "status = 'UNENROLLED'"],
])('a card that is %s is never dropped', async (_what, set) => {
  const attempts = [
    await claimAttempt(database, { vault: true }),
    await claimAttempt(database, { vault: true }),
  ] as const;
  await tables.query(`UPDATE vaulted_token SET ${set}`);
  const before = await tables.query('SELECT * FROM vaulted_token ORDER BY id');
  for (const [i, attempt] of attempts.entries()) {
    await finishPayment(
      database,
      finishOf(attempt, 'DECLINED', {
        vault: { token: attempt.vaultedToken ?? '', fate: 'drop' },
        reopens: i === 0 ? undefined : randomUUID(),
      }),
    );
  }
  expect(await tables.query('SELECT * FROM vaulted_token ORDER BY id')).toEqual(before);
});

it('a key is found in its account only, with the payment that holds it', async () => {
  const [one, two] = [await claimAttempt(database), await claimAttempt(database)];
  await finishPayment(database, finishOf(one, 'ONE'));
  const { otherAccount } = await addBystanders(tables, one.paymentId);
  await tables.query("UPDATE payment SET answer = 'of the other account' WHERE account_id = $1", [
    otherAccount,
  ]);
  expect(await findByKey(database, ACCOUNT_ONE, one.idempotencyKey)).toEqual({
    ...{ paymentId: one.paymentId, requestHash: Buffer.alloc(32), requestShape: Buffer.alloc(16) },
    ...stored('ONE'),
  });
  expect(await findByKey(database, ACCOUNT_ONE, two.idempotencyKey)).toMatchObject({
    ...{ paymentId: two.paymentId, answer: undefined },
  });
  expect(await findByKey(database, otherAccount, one.idempotencyKey)).toMatchObject({
    answer: Buffer.from('of the other account'),
  });
  expect(await findByKey(database, ACCOUNT_ONE, 'another key')).toBeUndefined();
  expect(await findByKey(database, otherAccount, two.idempotencyKey)).toBeUndefined();
});
