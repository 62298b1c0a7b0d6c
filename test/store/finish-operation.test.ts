import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  claimOperation,
  finishOperation,
  type OperationClaim,
  type OperationFinish,
} from '#src/store/engine/operations.ts';
import { addBystanders } from '../support/bystanders.ts';
import { approvedPayment, operationClaimOf } from '../support/operation-claims.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'payment, transaction, vaulted_token, single_use, webhook, event' });

/** Claims a capture of a payment. */
async function claimed(): Promise<OperationClaim> {
  const claim = operationClaimOf(await approvedPayment(database, tables));
  await claimOperation(database, claim);
  return claim;
}

const finishOf = (claim: OperationClaim, changes: Partial<OperationFinish> = {}): OperationFinish => ({
  accountId: ACCOUNT_ONE,
  paymentId: claim.paymentId,
  transactionId: claim.transactionId,
  fence: 0,
  version: claim.version + 1,
  status: 'FINISHED',
  record: Buffer.from('finished'),
  transactionStatus: 'DONE',
  reference: 'theirs',
  response: Buffer.from('response'),
  lookUpInS: undefined,
  capturedMinorUnits: 575n,
  refundedMinorUnits: 7n,
  isReleased: true,
  event: 'payment.capture',
  ...changes,
});

const paymentRow = async () => (await tables.query('SELECT * FROM payment'))[0];
const operationRow = async () =>
  (
    await tables.query(
      `SELECT *, extract(epoch FROM follow_up_at - updated_at)::integer AS due_s FROM transaction WHERE parent_id IS NOT NULL`,
    )
  )[0];
const everything = async () => [
  await tables.query('SELECT * FROM payment ORDER BY id'),
  await tables.query('SELECT * FROM transaction ORDER BY id'),
];

describe('finishing an operation', () => {
  it('writes transaction, amounts, state and response together, and touches no other payment', async () => {
    const claim = await claimed();
    const others = await addBystanders(tables, claim.paymentId);
    const finished = await finishOperation(database, finishOf(claim));
    expect(finished).toEqual({
      ...{ kind: 'written', event: false },
      ...{ response: Buffer.from('response'), record: Buffer.from('finished') },
    });
    await others.expectUntouched();
    await tables.query('DELETE FROM payment WHERE account_id <> $1 OR id <> $2', [
      ACCOUNT_ONE,
      claim.paymentId,
    ]);
    await tables.query('DELETE FROM transaction WHERE account_id <> $1 OR payment_id <> $2', [
      ...[ACCOUNT_ONE, claim.paymentId],
    ]);
    const operation = await operationRow();
    expect(operation).toMatchObject({
      status: 'DONE',
      reference: 'theirs',
      follow_up_at: null,
      response: Buffer.from('response'),
      response_record: Buffer.from('finished'),
    });
    const payment = await paymentRow();
    expect(payment).toMatchObject({
      status: 'FINISHED',
      record: Buffer.from('finished'),
      version: 2,
      event_sequence: 2,
      captured_minor_units: '575',
      refunded_minor_units: '7',
      released: true,
      open_operation: null,
      answered_record: Buffer.from('approved'),
    });
    expect(Number(operation?.updated_at)).toBeGreaterThan(Number(operation?.created_at));
    expect(payment?.updated_at).toEqual(operation?.updated_at);
  });

  const finish = (claim: OperationClaim, changes: Partial<OperationFinish> = {}) =>
    finishOperation(database, finishOf(claim, changes));

  it('tells of the payment that has changed meanwhile, and changes nothing', async () => {
    const claim = await claimed();
    const before = await everything();
    expect(await finish(claim, { version: 0 })).toEqual({ kind: 'outdated' });
    expect(await everything()).toEqual(before);
  });

  it.each<[string, string, Partial<OperationFinish>]>([
    ['it stays open and another has taken it', 'fence = 1', { lookUpInS: 60 }],
    ['it is final', 'follow_up_at = NULL', {}],
    ['it was final, and is not', 'fence = 0', { wasFinal: true }],
    ['its creation is under way', 'look_up_at = now()', {}],
    ['it is not there', 'fence = 0', { transactionId: randomUUID() }],
  ])('is lost, and changes nothing, when %s', async (_what, set, changes) => {
    const claim = await claimed();
    await tables.query(`UPDATE transaction SET ${set} WHERE parent_id IS NOT NULL`);
    const before = await everything();
    expect(await finish(claim, changes)).toEqual({ kind: 'lost' });
    expect(await everything()).toEqual(before);
  });

  it('is lost for a transaction of another payment', async () => {
    const [one, other] = [await claimed(), await claimed()];
    expect(await finish({ ...one, transactionId: other.transactionId })).toEqual({ kind: 'lost' });
  });

  it('is lost for a payment that is not there', async () => {
    expect(await finish({ ...(await claimed()), paymentId: randomUUID() })).toEqual({ kind: 'lost' });
  });

  it('waits for another write of the payment, and is then made from an outdated version', async () => {
    const claim = await claimed();
    const [holder] = await tables.query('SELECT pg_backend_pid() AS pid');
    const text = 'SELECT FROM pg_stat_activity WHERE $1::integer = ANY (pg_blocking_pids(pid))';
    const waiting = async () => (await database.query({ name: 'waiting', text }, [holder?.pid])).rowCount;
    await tables.query('BEGIN');
    await tables.query('UPDATE payment SET version = version + 1');
    const finished = finish(claim);
    await expect.poll(waiting).toBe(1);
    await tables.query('COMMIT');
    expect(await finished).toEqual({ kind: 'outdated' });
    expect(await operationRow()).toMatchObject({ status: 'PENDING', response: null });
  });

  it('needs no fencing token for what is known, and corrects what was final', async () => {
    const claim = await claimed();
    await tables.query('UPDATE transaction SET fence = 3 WHERE parent_id IS NOT NULL');
    expect(await finish(claim)).toMatchObject({ kind: 'written' });
    expect(await finish(claim, { version: 2, wasFinal: true })).toMatchObject({ kind: 'written' });
    expect((await paymentRow())?.version).toBe(3);
  });

  it('that is still open is followed up again, and no other operation may begin', async () => {
    const claim = await claimed();
    const open = { lookUpInS: 90, followUpInS: 500 };
    expect(await finish(claim, { ...open, reference: undefined })).toMatchObject({ kind: 'written' });
    expect(await operationRow()).toMatchObject({ due_s: 90, reference: null });
    expect((await paymentRow())?.open_operation).toBe(claim.transactionId);
    await finish(claim, { version: 2, lookUpInS: 90, reference: 'not theirs for long' });
    await finish(claim, { version: 3, lookUpInS: 90 });
    await finish(claim, { version: 4, reference: undefined });
    expect(await operationRow()).toMatchObject({ due_s: null, reference: 'theirs' });
    expect((await paymentRow())?.open_operation).toBeNull();
  });

  it('that is known, and may lapse, is followed up again', async () => {
    const claim = await claimed();
    await finish(claim, { followUpInS: 500 });
    expect(await operationRow()).toMatchObject({ due_s: 500 });
  });

  it('leaves the operation open that another transaction is', async () => {
    const claim = await claimed();
    const open = randomUUID();
    await tables.query('UPDATE payment SET open_operation = $1', [open]);
    await finish(claim);
    expect((await paymentRow())?.open_operation).toBe(open);
  });

  it('gives back the first response, which stays what it was', async () => {
    const claim = await claimed();
    await finish(claim, { lookUpInS: 60 });
    const second = { response: Buffer.from('second'), record: Buffer.from('second record') };
    const first = { response: Buffer.from('response'), record: Buffer.from('finished') };
    expect(await finish(claim, { version: 2, ...second })).toMatchObject(first);
    expect(await operationRow()).toMatchObject({ response: first.response, response_record: first.record });
    expect(await paymentRow()).toMatchObject({
      record: second.record,
      answered_record: Buffer.from('approved'),
    });
  });

  it('of what nobody called for stores no response', async () => {
    const claim = await claimed();
    await tables.query('UPDATE transaction SET method = NULL');
    expect(await finish(claim)).toMatchObject({
      response: Buffer.from('response'),
      record: Buffer.from('finished'),
    });
    expect(await operationRow()).toMatchObject({ response: null, response_record: null });
  });

  it('keeps the record that was answered, and none of a payment that was not', async () => {
    const claim = await claimed();
    await tables.query('UPDATE payment SET answer = NULL, answered_record = NULL');
    await finish(claim, { lookUpInS: 60 });
    expect((await paymentRow())?.answered_record).toBeNull();
    await tables.query("UPDATE payment SET answer = 'answer'");
    await finish(claim, { version: 2, record: Buffer.from('later') });
    expect((await paymentRow())?.answered_record).toEqual(Buffer.from('finished'));
  });

  it('writes the event of its change when a webhook wants it, and tells of it', async () => {
    await tables.query(
      `INSERT INTO webhook (account_id, id, url, description, events, secret)
       VALUES ($1, $2, 'http://127.0.0.1:1', '', '{payment.capture}', '')`,
      [ACCOUNT_ONE, randomUUID()],
    );
    const claim = await claimed();
    expect(await finish(claim, { event: 'payment.refund', lookUpInS: 60 })).toMatchObject({ event: false });
    expect(await finish(claim, { version: 2 })).toMatchObject({ event: true });
    expect(await tables.query('SELECT payment_id, type, sequence, record FROM event')).toEqual([
      { payment_id: claim.paymentId, type: 'payment.capture', sequence: 3, record: Buffer.from('finished') },
    ]);
  });

  /** Claims a capture whose transaction has a card that waits, beside another card of the account. */
  async function claimedWithCard(): Promise<{ claim: OperationClaim; card: string }> {
    const claim = await claimed();
    const card = randomUUID();
    for (const id of [card, randomUUID()]) {
      await tables.query(
        "INSERT INTO vaulted_token (id, account_id, type, card, card_number, active) VALUES ($1, $2, 'CARD', '', 'sealed', false)",
        [id, ACCOUNT_ONE],
      );
    }
    await tables.query('UPDATE transaction SET vaulted_token = $1', [card]);
    return { claim, card };
  }
  const cards = (card: string) =>
    tables.query('SELECT active, last_used_at FROM vaulted_token WHERE id = $1 AND account_id = $2', [
      ...[card, ACCOUNT_ONE],
    ]);

  it('drops the card that waits when it is told to, and none that is in use, ended or of another payment', async () => {
    const { claim, card } = await claimedWithCard();
    const others = await addBystanders(tables, claim.paymentId);
    const set = (columns: string) =>
      tables.query(`UPDATE vaulted_token SET ${columns} WHERE account_id = $1`, [ACCOUNT_ONE]);
    await finish(claim, { lookUpInS: 60, vault: { token: card, fate: 'wait' } });
    await set('active = true');
    const vault = { token: card, fate: 'drop' } as const;
    await finish(claim, { version: 2, lookUpInS: 60, vault });
    await set("active = false, status = 'UNENROLLED'");
    await finish(claim, { version: 3, lookUpInS: 60, vault });
    expect(await cards(card)).toHaveLength(1);
    await set("status = 'ENROLLED'");
    await finish(claim, { version: 4, vault });
    expect(await cards(card)).toHaveLength(0);
    await others.expectUntouched();
  });

  it('keeps the card that waits when it is told to, with the event of what was kept, and no other', async () => {
    const { claim, card } = await claimedWithCard();
    await tables.query(
      `INSERT INTO webhook (account_id, id, url, description, events, secret)
       VALUES ($1, $2, 'http://127.0.0.1:1', '', '{enrollment.enroll}', '')`,
      [ACCOUNT_ONE, randomUUID()],
    );
    const others = await addBystanders(tables, claim.paymentId);
    const at = '2026-01-31T09:08:07.000Z';
    const kept = { token: card, at, record: Buffer.from('the kept card') };
    await finish(claim, { lookUpInS: 60, vault: { ...kept, fate: 'wait' } });
    await finish(claim, { version: 2, lookUpInS: 60 });
    expect(await cards(card)).toEqual([{ active: false, last_used_at: null }]);
    await finish(claim, { version: 3, vault: { ...kept, fate: 'keep' } });
    expect(await cards(card)).toEqual([{ active: true, last_used_at: new Date(at) }]);
    expect(await tables.query('SELECT type, record FROM event')).toEqual([
      { type: 'enrollment.enroll', record: Buffer.from('the kept card') },
    ]);
    await others.expectUntouched();
  });

  it('lets the session be paid again that it is told of, if this payment uses it', async () => {
    const claim = await claimed();
    const [own, untold, others] = [randomUUID(), randomUUID(), randomUUID()];
    await tables.query(
      'INSERT INTO single_use (account_id, object_id, payment_id) VALUES ($1, $3, $2), ($1, $4, $2), ($1, $5, $5), ($5, $3, $2)',
      [ACCOUNT_ONE, claim.paymentId, own, untold, others],
    );
    await finish(claim, { lookUpInS: 60, reopens: others });
    await finish(claim, { version: 2, reopens: own });
    const uses = await tables.query('SELECT account_id, object_id FROM single_use');
    expect(new Set(uses)).toEqual(
      new Set([
        { account_id: ACCOUNT_ONE, object_id: untold },
        { account_id: ACCOUNT_ONE, object_id: others },
        { account_id: others, object_id: own },
      ]),
    );
  });
});
