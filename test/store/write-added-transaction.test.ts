import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import type { StoredChange } from '#src/store/engine/write-change.ts';
import { addBystanders } from '../support/bystanders.ts';
import { approvedPayment, changeOf, recordOf } from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

type Added = NonNullable<StoredChange['added']>;

onOwnDatabase({ empties: 'payment, transaction, vaulted_token' });

/** A refund of 1.00 of an approved payment that was made at the provider. */
async function external() {
  const base = await approvedPayment(database, tables);
  const added: Added = {
    ...{ id: randomUUID(), type: 'REFUND', parentId: base.transactionId, status: 'PENDING', isFinal: false },
    ...{
      connectionId: 'scripted',
      connectionIdentity: 'scripted account',
      minorUnits: 100n,
      currency: 'USD',
    },
    ...{
      capture: false,
      reference: undefined,
      providerPaymentId: undefined,
      vaultedToken: undefined,
      checkInS: undefined,
    },
  };
  const write = (version: number, changes: Partial<Added> = {}) =>
    writeChange(database, {
      ...changeOf(base, `VERSION ${version}`, {
        version,
        books: { captured: 0n, refunded: 100n, isReleased: false },
      }),
      ...{ transaction: undefined, added: { ...added, ...changes } },
    });
  const rows = () =>
    tables.query(
      'SELECT * FROM transaction WHERE account_id = $1 AND payment_id = $2 AND parent_id IS NOT NULL',
      [...[ACCOUNT_ONE, base.paymentId]],
    );
  return { base, added, write, rows };
}

describe('a transaction made at the provider', () => {
  it('a transaction made at the provider is added with books and record, without affecting other transactions', async () => {
    const { base, added, write, rows } = await external();
    const others = await addBystanders(tables, base.paymentId);
    const own = () =>
      tables.query('SELECT * FROM transaction WHERE account_id = $1 AND id = $2', [
        ...[ACCOUNT_ONE, base.transactionId],
      ]);
    const before = await own();
    const written = await write(1);
    // The writer has no lease on a transaction.
    expect(written).toEqual({
      ...{ kind: 'written', fence: undefined, event: false },
      earlier: { record: Buffer.from('approved'), response: Buffer.from('response') },
    });
    expect(await rows()).toMatchObject([
      {
        ...{ id: added.id, type: 'REFUND', parent_id: base.transactionId, status: 'PENDING', capture: false },
        ...{ connection_id: 'scripted', connection_identity: 'scripted account', amount_minor_units: '100' },
        ...{ currency: 'USD', final: false, reference: null, check_at: null, method: null, response: null },
      },
    ]);
    expect(await own()).toEqual(before);
    const columns = 'version, record, refunded_minor_units, open_operation';
    const sql = `SELECT ${columns} FROM payment WHERE account_id = $1 AND id = $2`;
    expect(await tables.query(sql, [ACCOUNT_ONE, base.paymentId])).toEqual([
      { version: 2, record: recordOf('VERSION 1'), refunded_minor_units: '100', open_operation: null },
    ]);
    await others.expectUntouched();
  });

  it('a transaction made at the provider is updated if it is already stored, and keeps its first id', async () => {
    const { write, rows } = await external();
    await write(1);
    const [first] = await rows();
    await write(2, { status: 'SUCCEEDED', providerPaymentId: 'theirs', minorUnits: 90n });
    const [succeeded] = await rows();
    expect(succeeded).toMatchObject({ status: 'SUCCEEDED', amount_minor_units: '90' });
    await write(3, { status: 'DECLINED', providerPaymentId: 'another' });
    const [moved, ...more] = await rows();
    expect(more).toEqual([]);
    expect(moved).toEqual({
      ...{ ...first, status: 'DECLINED', provider_payment_id: 'theirs', amount_minor_units: '100' },
      ...{ succeeded_at: succeeded?.updated_at, updated_at: moved?.updated_at },
    });
    expect(Number(moved?.updated_at)).toBeGreaterThan(Number(first?.updated_at));
  });

  it('a transaction made at the provider that is added as succeeded has succeeded at that time', async () => {
    const { write, rows } = await external();
    await write(1, { status: 'SUCCEEDED' });
    const [added] = await rows();
    expect(added?.succeeded_at).toEqual(added?.created_at);
    await write(2, { status: 'SUCCEEDED' });
    expect((await rows())[0]?.succeeded_at).toEqual(added?.created_at);
  });

  it('a transaction made at the provider keeps the time of its report, and is leased to nobody', async () => {
    const { base, added, write, rows } = await external();
    const reportedAt = new Date('2026-03-01T10:00:00Z');
    await write(1, { reportedAt });
    // As after any write: only an attempt that is about to be sent has the fencing token 0.
    expect(await rows()).toMatchObject([{ reported_at: reportedAt, fence: 1 }]);
    const another = { ...added, id: randomUUID() };
    const change = changeOf(base, 'BESIDE', { version: 2, fence: 1, added: another });
    if (!change.transaction) throw new Error('the change has no transaction');
    await writeChange(database, { ...change, transaction: { ...change.transaction, reportedAt } });
    const times = await tables.query('SELECT id, reported_at FROM transaction WHERE payment_id = $1', [
      base.paymentId,
    ]);
    expect(new Map(times.map(({ id, reported_at }) => [id, reported_at]))).toEqual(
      new Map([
        [base.transactionId, reportedAt],
        [added.id, reportedAt],
        [another.id, null],
      ]),
    );
  });

  it('a change to an outdated version adds nothing, and a repeated change is reported as written', async () => {
    const { write, rows } = await external();
    expect(await write(0)).toEqual({ kind: 'outdated' });
    expect(await rows()).toEqual([]);
    await write(1);
    const before = await rows();
    expect(await write(1)).toMatchObject({ kind: 'written', event: false });
    expect(await write(1, { status: 'SUCCEEDED' })).toMatchObject({ kind: 'written', event: false });
    expect(await write(0)).toEqual({ kind: 'outdated' });
    expect(await rows()).toEqual(before);
  });
});
