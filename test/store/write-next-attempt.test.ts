import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { takeDue } from '#src/store/engine/checks.ts';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import type { StoredChange, WrittenChange } from '#src/store/engine/write-change.ts';
import { getPaymentRecord } from '#src/store/tables/payment-record.ts';
import { addBystanders } from '../support/bystanders.ts';
import { changeOf, claimAttempt, type OpenAttempt, recordOf } from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

const LEASE_S = 60;
/** Seconds that the payer of the next attempt has. */
const PAYER_DUE_IN_S = 1_800;

onOwnDatabase({ empties: 'payment, transaction, vaulted_token', maxConnections: 8 });

type Begin = StoredChange & { readonly added: NonNullable<StoredChange['added']> };

/** Returns the change that ends a declined attempt and begins the next one at another connection. */
function nextOf(attempt: OpenAttempt, checkInS = LEASE_S): Begin {
  const added = {
    ...{ id: randomUUID(), type: 'PURCHASE', parentId: undefined, status: 'PENDING', isFinal: false },
    ...{ connectionId: 'second', connectionIdentity: 'second account', minorUnits: 5_575n, currency: 'USD' },
    ...{
      capture: false,
      reference: undefined,
      providerPaymentId: undefined,
      vaultedToken: attempt.vaultedToken,
      methodKind: 'PAYER_PAGE' as const,
      payerDueInS: PAYER_DUE_IN_S,
      checkInS,
    },
  };
  // Written as an open outcome, so that it fails if another worker holds the transaction.
  const ended = { status: 'PENDING', isFenced: true, reference: 'declined-1', response: undefined };
  const change = changeOf(attempt, 'MOVED', { ...ended, event: undefined, added });
  const transaction = change.transaction && { ...change.transaction, status: 'DECLINED' };
  // The record contains the id of the attempt that begins.
  return { ...change, transaction, added, record: recordOf(`MOVED to ${added.id}`) };
}
const begin = (next: Begin) => writeChange(database, next);
const isWritten = ({ kind }: WrittenChange) => kind === 'written';

/** Finishes an attempt with a known outcome, as the claimer or a checker does. */
const finish = (attempt: OpenAttempt, version = 0, transactionId = attempt.transactionId) =>
  writeChange(database, changeOf({ ...attempt, transactionId }, 'FINISHED', { version }));

const attempts = () =>
  tables.query('SELECT * FROM transaction ORDER BY created_at, connection_id') as Promise<
    { id: string; check_at: Date | null; status: string }[]
  >;
const open = async () => (await attempts()).filter(({ check_at }) => check_at);
const everything = async () => [await attempts(), await tables.query('SELECT * FROM payment')];
const take = (connectionId: string, identity: string) =>
  takeDue(database, { connectionId, identity }, { limit: 10, leaseS: LEASE_S });
const takeFirst = () => take('scripted', 'scripted');

describe('beginning the next attempt', () => {
  it('the next attempt ends the last one, gets a lease, and replaces the record', async () => {
    const attempt = await claimAttempt(database, { leaseS: LEASE_S, vault: true });
    const next = nextOf(attempt);
    const others = await addBystanders(tables, attempt.paymentId);
    expect(await begin(next)).toMatchObject({ kind: 'written', event: false, earlier: undefined });
    await others.expectUntouched();
    const inherited = {
      ...{ payment_id: attempt.paymentId, amount_minor_units: '5575', currency: 'USD', capture: false },
      ...{ vaulted_token: attempt.vaultedToken, type: 'PURCHASE', parent_id: null, awaits_payer: false },
    };
    const own = (columns: string) =>
      tables.query(
        `SELECT ${columns} FROM transaction WHERE account_id = $1 AND payment_id = $2 ORDER BY connection_id`,
        [ACCOUNT_ONE, attempt.paymentId],
      );
    expect(await own('*')).toMatchObject([
      {
        ...{ ...inherited, id: attempt.transactionId, status: 'DECLINED', reference: 'declined-1' },
        ...{ check_at: null, connection_identity: 'scripted', fence: 1 },
      },
      {
        ...{ ...inherited, id: next.added.id, status: 'PENDING', connection_id: 'second' },
        ...{ connection_identity: 'second account', fence: 0, succeeded_at: null },
        ...{ method_kind: 'PAYER_PAGE', catalogue_version: 0 },
      },
    ]);
    const times = await own(
      `extract(epoch FROM check_at - created_at)::float8 AS lease_s, updated_at > created_at AS is_changed,
       extract(epoch FROM payer_due_at - created_at)::float8 AS payer_s`,
    );
    expect(times).toEqual([
      { lease_s: null, is_changed: true, payer_s: 86_400 },
      { lease_s: LEASE_S, is_changed: false, payer_s: PAYER_DUE_IN_S },
    ]);
    const columns = 'status, record, response, version, event_sequence';
    const where = 'WHERE account_id = $1 AND id = $2';
    expect(
      await tables.query(`SELECT ${columns} FROM payment ${where}`, [ACCOUNT_ONE, attempt.paymentId]),
    ).toEqual([{ status: 'PENDING', record: next.record, response: null, version: 1, event_sequence: 0 }]);
  });

  it('beginning the next attempt again after a lost acknowledgement succeeds, but adds no attempt', async () => {
    const next = nextOf(await claimAttempt(database, { leaseS: LEASE_S }));
    expect(isWritten(await begin(next))).toBe(true);
    const before = await everything();
    expect(isWritten(await begin(next))).toBe(true);
    expect(await everything()).toEqual(before);
  });

  it('beginning the next attempt again fails once a checker has taken that attempt', async () => {
    const next = nextOf(await claimAttempt(database, { leaseS: LEASE_S }), 0);
    await begin(next);
    expect(await take('second', 'second account')).toMatchObject([{ transactionId: next.added.id }]);
    const before = await everything();
    expect(isWritten(await begin(next))).toBe(false);
    expect(await everything()).toEqual(before);
  });

  it('beginning the next attempt again is outdated once that attempt has ended', async () => {
    const attempt = await claimAttempt(database, { leaseS: LEASE_S });
    const next = nextOf(attempt);
    await begin(next);
    await addBystanders(tables, attempt.paymentId);
    await finish(attempt, 1, next.added.id);
    expect(await begin(next)).toEqual({ kind: 'outdated' });
  });

  it.each<[string, string, (attempt: OpenAttempt) => Promise<unknown>]>([
    ['lost', 'a checker has taken the last attempt', () => takeFirst()],
    ['outdated', 'the outcome of the last attempt was written', (attempt) => finish(attempt)],
    ['outdated', 'the payment has gone on to another attempt', (attempt) => begin(nextOf(attempt))],
  ])('beginning the next attempt is %s and changes nothing when %s', async (kind, _name, happens) => {
    const attempt = await claimAttempt(database, { leaseS: 0 });
    await happens(attempt);
    const before = await everything();
    expect(await begin(nextOf(attempt))).toEqual({ kind });
    expect(await everything()).toEqual(before);
  });

  it('concurrent repeats begin a single next attempt', async () => {
    const next = nextOf(await claimAttempt(database, { leaseS: LEASE_S }));
    const begun = await Promise.all(Array.from({ length: 8 }, () => begin(next)));
    expect(begun.map(isWritten)).toContain(true);
    expect(await attempts()).toHaveLength(2);
  });

  it('if beginning the next attempt races with the outcome of the last one, exactly one is written', async () => {
    const seen = new Set<boolean>();
    for (let i = 0; i < 40; i++) {
      await tables.query('TRUNCATE payment, transaction');
      const attempt = await claimAttempt(database, { leaseS: LEASE_S });
      // A different database object, so that both are not written in one group.
      const beside = { ...database };
      const next = nextOf(attempt);
      const both = [() => begin(next), () => writeChange(beside, changeOf(attempt, 'FINISHED'))];
      if (i % 2) both.reverse();
      const done = await Promise.all(both.map((one) => one()));
      if (i % 2) done.reverse();
      const [begun, finished] = done.map(isWritten);
      expect(begun).toBe(!finished);
      expect(await attempts()).toHaveLength(begun ? 2 : 1);
      expect(await open()).toHaveLength(begun ? 1 : 0);
      const record = await getPaymentRecord(database, ACCOUNT_ONE, attempt.paymentId);
      expect(record).toEqual(begun ? next.record : recordOf('FINISHED'));
      seen.add(begun === true);
    }
    expect(seen).toEqual(new Set([true, false]));
  });

  it('if beginning the next attempt races with a checker, exactly one of them gets the attempt', async () => {
    for (let i = 0; i < 40; i++) {
      await tables.query('TRUNCATE payment, transaction');
      const attempt = await claimAttempt(database, { leaseS: 0 });
      const both = [
        async () => isWritten(await begin(nextOf(attempt))),
        async () => (await takeFirst()).length > 0,
      ];
      if (i % 2) both.reverse();
      const done = await Promise.all(both.map((one) => one()));
      expect(done.filter(Boolean)).toHaveLength(1);
      expect(await open()).toHaveLength(1);
    }
  });
});

it('only the new attempt can finish the payment', async () => {
  const attempt = await claimAttempt(database, { leaseS: LEASE_S });
  const next = nextOf(attempt);
  await begin(next);
  expect(await finish(attempt)).toEqual({ kind: 'outdated' });
  expect(await getPaymentRecord(database, ACCOUNT_ONE, attempt.paymentId)).toEqual(next.record);
  expect(await finish(attempt, 1, next.added.id)).toMatchObject({ kind: 'written', earlier: undefined });
  expect(await open()).toEqual([]);
});
