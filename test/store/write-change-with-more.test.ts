import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { claimOperation, type OperationClaim } from '#src/store/engine/claim-operation.ts';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import type { StoredChange } from '#src/store/engine/write-change.ts';
import { readPaymentState } from '#src/store/tables/payment-state.ts';
import { addBystanders } from '../support/bystanders.ts';
import {
  approvedPayment,
  type ChangeOptions,
  changeOf,
  claimAttempt,
  OPEN,
  operationClaimOf,
  recordOf,
  responseOf,
} from '../support/claimed-rows.ts';
import { database, databaseUrl, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { lockWaits, openTables, wantEveryEvent } from '../support/tables.ts';

onOwnDatabase({
  empties: 'payment, transaction, movement_correction, vaulted_token, single_use, webhook, event',
});

/** Claims a capture of a payment; the next change has to start from version 2. */
async function claimed(): Promise<OperationClaim> {
  const claim = operationClaimOf(await approvedPayment(database, tables));
  await claimOperation(database, claim);
  return claim;
}

const BOOKS = { captured: 575n, refunded: 7n, isReleased: true };
/** Writes the outcome of an operation. */
const write = (claim: OperationClaim, name: string, options: ChangeOptions = {}) =>
  writeChange(database, changeOf(claim, name, { version: 2, books: BOOKS, ...options }));

const own = async (table: string, id: string) =>
  (await tables.query(`SELECT * FROM ${table} WHERE account_id = $1 AND id = $2`, [ACCOUNT_ONE, id]))[0];
const paymentOf = ({ paymentId }: { paymentId: string }) => own('payment', paymentId);
const transactionOf = ({ transactionId }: { transactionId: string }) => own('transaction', transactionId);
async function everything(): Promise<unknown[]> {
  const rows: unknown[] = [];
  for (const table of ['payment', 'transaction', 'vaulted_token', 'single_use', 'event'])
    rows.push(await tables.query(`SELECT * FROM ${table} t ORDER BY t::text`));
  return rows;
}

describe('the outcome of an operation', () => {
  it('an operation’s outcome is written with books and response, ends the operation, and affects no other payment', async () => {
    const claim = await claimed();
    const others = await addBystanders(tables, claim.paymentId);
    const written = await write(claim, 'DONE', { reference: 'theirs' });
    expect(written).toEqual({ kind: 'written', fence: 1, event: false, earlier: undefined });
    await others.expectUntouched();
    const operation = await transactionOf(claim);
    expect(operation).toMatchObject({
      ...{ status: 'DONE', reference: 'theirs', check_at: null, awaits_payer: false },
      ...{ response: responseOf('DONE'), response_record: recordOf('DONE') },
    });
    const payment = await paymentOf(claim);
    expect(payment).toMatchObject({
      ...{ status: 'DONE', record: recordOf('DONE'), version: 3, event_sequence: 2, open_operation: null },
      ...{ captured_minor_units: '575', refunded_minor_units: '7', released: true },
      // The payment's own response does not change.
      ...{ response: Buffer.from('response'), response_record: Buffer.from('approved') },
    });
    expect(Number(operation?.updated_at)).toBeGreaterThan(Number(operation?.created_at));
    expect(payment?.updated_at).toEqual(operation?.updated_at);
  });

  it('a change without books leaves the books unchanged', async () => {
    const claim = await claimed();
    await write(claim, 'FIRST', OPEN);
    const { kind } = await writeChange(
      database,
      changeOf(claim, 'SECOND', { version: 3, fence: 1, reopens: randomUUID() }),
    );
    expect(kind).toBe('written');
    expect(await paymentOf(claim)).toMatchObject({
      ...{ captured_minor_units: '575', refunded_minor_units: '7', released: true, open_operation: null },
    });
  });

  it('an operation stays open until its outcome is known', async () => {
    const claim = await claimed();
    await write(claim, 'PENDING', OPEN);
    expect((await paymentOf(claim))?.open_operation).toBe(claim.transactionId);
    await write(claim, 'DONE', { version: 3, fence: 1 });
    expect((await paymentOf(claim))?.open_operation).toBeNull();
  });

  it('the outcome of one operation does not end another', async () => {
    const claim = await claimed();
    const open = randomUUID();
    await tables.query('UPDATE payment SET open_operation = $1', [open]);
    await write(claim, 'DONE');
    expect((await paymentOf(claim))?.open_operation).toBe(open);
  });

  it('later changes return the operation’s first response and do not replace it', async () => {
    const claim = await claimed();
    await write(claim, 'FIRST', OPEN);
    const earlier = { record: recordOf('FIRST'), response: responseOf('FIRST') };
    const second = { version: 3, fence: 1 };
    expect(await write(claim, 'SECOND', second)).toMatchObject({ kind: 'written', earlier });
    expect(await write(claim, 'SECOND', second)).toMatchObject({ kind: 'written', event: false, earlier });
    expect(await transactionOf(claim)).toMatchObject({
      ...{ response: responseOf('FIRST'), response_record: recordOf('FIRST'), fence: 2 },
    });
    expect(await paymentOf(claim)).toMatchObject({ record: recordOf('SECOND'), version: 4 });
  });

  it('a repeated write after a lost acknowledgement succeeds and changes nothing', async () => {
    const claim = await claimed();
    await write(claim, 'DONE');
    const before = await everything();
    const again = { kind: 'written', fence: undefined, event: false, earlier: undefined };
    expect(await write(claim, 'DONE')).toEqual(again);
    expect(await everything()).toEqual(before);
  });

  it('an operation keeps the latest time of a report, and the amount that was last reported', async () => {
    const claim = await claimed();
    const times = ['2026-03-02', '2026-03-01', undefined, '2026-03-03'];
    const shown: unknown[] = [];
    for (const [i, time] of times.entries()) {
      const change = changeOf(claim, `REPORT ${i}`, {
        ...OPEN,
        version: 2 + i,
        fence: i,
        reopens: randomUUID(),
      });
      const { transaction } = change;
      if (!transaction) throw new Error('the change has no transaction');
      const reportedAt = time === undefined ? undefined : new Date(time);
      const minorUnits = i === 1 ? 500n : undefined;
      await writeChange(database, { ...change, transaction: { ...transaction, reportedAt, minorUnits } });
      const { reported_at, amount_minor_units } = (await transactionOf(claim)) ?? {};
      shown.push([(reported_at as Date).toISOString().slice(0, 10), amount_minor_units]);
    }
    expect(shown).toEqual([
      ['2026-03-02', '575'],
      ['2026-03-02', '500'],
      ['2026-03-02', '500'],
      ['2026-03-03', '500'],
    ]);
  });

  it('no response is stored for an operation that no call requested', async () => {
    const claim = await claimed();
    await tables.query('UPDATE transaction SET method = NULL');
    expect(await write(claim, 'DONE')).toMatchObject({ kind: 'written' });
    expect(await transactionOf(claim)).toMatchObject({ response: null, response_record: null });
  });

  it('a change waits for a concurrent write of the payment, and is then outdated', async () => {
    const claim = await claimed();
    const watching = await openTables(databaseUrl());
    await tables.query('BEGIN');
    await tables.query('UPDATE payment SET version = version + 1');
    const written = write(claim, 'DONE');
    await expect.poll(() => lockWaits(watching)).toBe(1);
    await watching.close();
    await tables.query('COMMIT');
    expect(await written).toEqual({ kind: 'outdated' });
    expect(await transactionOf(claim)).toMatchObject({ status: 'PENDING', response: null });
  });

  it('the outcome of an operation can make the check of its authorization due, with a new fence', async () => {
    const claim = await claimed();
    const others = await addBystanders(tables, claim.paymentId);
    await write(claim, 'DECLINED', { other: { id: claim.parentId, checkInS: 90 } });
    const [parent, operation] = [await own('transaction', claim.parentId), await transactionOf(claim)];
    expect(parent).toMatchObject({ status: 'SUCCEEDED', fence: 2 });
    expect(Number(parent?.check_at) - Number(operation?.updated_at)).toBe(90_000);
    await others.expectUntouched();
  });
});

describe('another transaction that a change writes', () => {
  /** Writes a change of an operation and of the attempt before it; returns the attempt's row. */
  async function writeOther(claim: OperationClaim, i: number, other: Partial<StoredChange['other']>) {
    const checked = { id: claim.parentId, checkInS: undefined, ...other };
    await write(claim, `CHANGE ${i}`, { ...OPEN, version: 2 + i, fence: i, other: checked });
    return own('transaction', claim.parentId);
  }

  it('it keeps what the change does not say, and its first success', async () => {
    const claim = await claimed();
    const shown = ['status', 'reference', 'awaits_payer', 'updated_at', 'succeeded_at'] as const;
    const set = "status = 'PENDING', reference = 'first', awaits_payer = true, succeeded_at = NULL";
    await tables.query(`UPDATE transaction SET ${set}, updated_at = '2026-01-01' WHERE id = $1`, [
      claim.parentId,
    ]);
    const before = await own('transaction', claim.parentId);
    const waiting = await writeOther(claim, 0, { checkInS: 90 });
    expect(shown.map((column) => waiting?.[column])).toEqual(shown.map((column) => before?.[column]));

    const paid = await writeOther(claim, 1, { status: 'SUCCEEDED', reference: 'second' });
    const paidAt = (await transactionOf(claim))?.updated_at;
    expect(shown.map((column) => paid?.[column])).toEqual(['SUCCEEDED', 'second', false, paidAt, paidAt]);
    expect(paid?.check_at).toBeNull();

    for (const [i, status] of ['SUCCEEDED', 'DECLINED', undefined].entries()) {
      expect(await writeOther(claim, 2 + i, { status })).toMatchObject({
        ...{ status: status ?? 'DECLINED', reference: 'second', awaits_payer: false, succeeded_at: paidAt },
      });
    }
  });

  it('it belongs to the same payment', async () => {
    const [claim, stranger] = [await claimed(), await claimAttempt(database)];
    const before = await transactionOf(stranger);
    await writeOther(claim, 0, { id: stranger.transactionId, checkInS: 1, status: 'DECLINED' });
    expect(await transactionOf(stranger)).toEqual(before);
  });
});

it('a change is written completely or not at all', async () => {
  await wantEveryEvent(tables);
  const attempt = await claimAttempt(database, { vault: true });
  const session = randomUUID();
  await tables.query('INSERT INTO single_use (account_id, object_id, payment_id) VALUES ($1, $2, $3)', [
    ...[ACCOUNT_ONE, session, attempt.paymentId],
  ]);
  const before = await everything();
  const change = changeOf(attempt, 'DECLINED', {
    ...{ books: BOOKS, method: { token: attempt.vaultedToken ?? '', fate: 'drop' }, reopens: session },
    other: { id: attempt.transactionId, checkInS: 1 },
  });
  // The event, which is written last, cannot be stored.
  await tables.query("ALTER TABLE event ADD CONSTRAINT none CHECK (type = 'none')");
  await expect(writeChange(database, change)).rejects.toMatchObject({ code: '23514' });
  expect(await everything()).toEqual(before);
  await tables.query('ALTER TABLE event DROP CONSTRAINT none');
  expect(await writeChange(database, change)).toMatchObject({ kind: 'written', event: true });
});

describe('corrections of movements', () => {
  const corrections = (transactionId: string) =>
    (['DISPUTE_WITHDRAWN', 'DISPUTE_REINSTATED'] as const).map((kind, index) => {
      const minorUnits = index === 0 ? -575n : 575n;
      return { id: randomUUID(), transactionId, number: index + 1, kind, minorUnits, currency: 'USD' };
    });
  const rows = (transactionId: string) =>
    tables.query('SELECT * FROM movement_correction WHERE transaction_id = $1 ORDER BY number', [
      transactionId,
    ]);

  it('corrections are written with their change, once, however often the change is written', async () => {
    const claim = await claimed();
    const own = corrections(claim.transactionId);
    expect((await write(claim, 'DONE', { corrections: own })).kind).toBe('written');
    expect((await write(claim, 'DONE', { corrections: own })).kind).toBe('written');
    expect(await transactionOf(claim)).toMatchObject({ status: 'DONE', response: responseOf('DONE') });
    expect(await rows(claim.transactionId)).toMatchObject([
      { account_id: ACCOUNT_ONE, id: own[0]?.id, kind: 'DISPUTE_WITHDRAWN', amount_minor_units: '-575' },
      { account_id: ACCOUNT_ONE, id: own[1]?.id, kind: 'DISPUTE_REINSTATED', amount_minor_units: '575' },
    ]);
  });

  it('an outdated change adds no corrections', async () => {
    const claim = await claimed();
    const change = { version: 1, corrections: corrections(claim.transactionId) };
    expect((await write(claim, 'OTHER', change)).kind).toBe('outdated');
    expect(await rows(claim.transactionId)).toEqual([]);
  });

  it('the state of a payment has the number and the sum of each transaction’s corrections', async () => {
    const claim = await claimed();
    const [first] = corrections(claim.transactionId);
    await write(claim, 'DONE', { corrections: first ? [first] : [] });
    const { transactions = [] } = (await readPaymentState(database, ACCOUNT_ONE, claim.paymentId)) ?? {};
    expect(transactions.map((one) => [one.corrections, one.correctedMinorUnits])).toEqual([
      [0, 0n],
      [1, -575n],
    ]);
  });
});
