import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { finishGrouped } from '#src/store/grouped-payments.ts';
import { getPaymentRecord } from '#src/store/payment-record.ts';
import { type Finish, findByKey, finishPayment } from '#src/store/payments.ts';
import { claimAttempt, type OpenAttempt } from '../support/open-attempts.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'payment, transaction, vaulted_token' });

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
  expect(await getPaymentRecord(database, second.paymentId, ACCOUNT_ONE)).toEqual(stored('BESIDE').record);
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

  it('of an outcome that is still open changes nothing without the fencing token; one that is known needs none', async () => {
    const attempt = await claimAttempt(database);
    await tables.query('UPDATE transaction SET fence = 1 WHERE id = $1', [attempt.transactionId]);
    expect(await finish(attempt, 'PENDING', { lookUpInS: 60 })).toBe(false);
    expect(await finish(attempt, 'SUCCEEDED')).toEqual({ earlier: undefined });
  });

  it('says when it is looked up and followed up again, and keeps the reference that it was given', async () => {
    const attempt = await claimAttempt(database);
    await finish(attempt, 'PENDING', { lookUpInS: 60, followUpInS: 90, reference: 'theirs' });
    await finish(attempt, 'PENDING', { lookUpInS: 60, followUpInS: 90 });
    const sql = `
      SELECT status, reference, extract(epoch FROM look_up_at - updated_at)::integer AS look_up_s,
        extract(epoch FROM follow_up_at - updated_at)::integer AS follow_up_s
      FROM transaction WHERE id = $1`;
    expect(await tables.query(sql, [attempt.transactionId])).toEqual([
      { status: 'PENDING', reference: 'theirs', look_up_s: 60, follow_up_s: 90 },
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

it('a card that is in use is never dropped', async () => {
  const attempt = await claimAttempt(database, { vault: true });
  const token = attempt.vaultedToken ?? '';
  await tables.query('UPDATE vaulted_token SET active = true WHERE id = $1', [token]);
  await finishPayment(database, finishOf(attempt, 'DECLINED', { vault: { token, fate: 'drop' } }));
  expect(await tables.query('SELECT id, active FROM vaulted_token')).toEqual([{ id: token, active: true }]);
});
