import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Claim } from '#src/store/engine/claim-payment.ts';
import type { Database } from '#src/store/engine/database.ts';
import { claimGrouped, writeChange } from '#src/store/engine/grouped-writes.ts';
import type { StoredChange } from '#src/store/engine/write-change.ts';
import {
  attemptToClaim,
  type ChangeOptions,
  changeOf,
  claimAttempt,
  OPEN,
  type OpenAttempt,
  recordOf,
  responseOf,
} from '../support/claimed-rows.ts';
import { openShowing, scansOf } from '../support/nested-plans.ts';
import { database, databaseUrl, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../support/payment-requests.ts';
import { wantEveryEvent } from '../support/tables.ts';

onOwnDatabase({
  empties:
    'payment, transaction, vaulted_token, checkout_session, one_time_token, single_use, webhook, event',
});

type Written = { readonly name: string; readonly values: readonly unknown[] };

/**
 * Writes rows at the same time through a database that records its statements. The first row is written alone and the
 * others form a group while it is in progress. The statements show which rows were written alone.
 */
async function together<Row, Result>(
  write: (database: Database, row: Row) => Promise<Result>,
  rows: readonly Row[],
  isDistributed = database.isDistributed ?? false,
): Promise<{ results: Result[]; names: string[]; written: Written[] }> {
  const written: Written[] = [];
  const query: Database['query'] = (statement, values = []) => {
    written.push({ name: statement.name, values });
    return database.query(statement, values);
  };
  const noting = { ...database, query, isDistributed };
  const results = await Promise.all(rows.map((row) => write(noting, row)));
  return { results, names: written.map(({ name }) => name), written };
}

const claim = (changes: Partial<Claim> = {}): Claim => ({ ...attemptToClaim().claim, ...changes });

// A distributed database groups the writes of each account.
const acrossAccounts = it.skipIf(process.env.CITUS_URL);

describe('concurrent claims', () => {
  acrossAccounts('concurrent claims are written by one statement, ordered by account and key', async () => {
    const keys = [
      [ACCOUNT_ONE, 'a'],
      [ACCOUNT_TWO, 'b'],
      [ACCOUNT_ONE, 'c'],
      [ACCOUNT_TWO, 'a'],
      [ACCOUNT_ONE, 'b'],
    ] as const;
    const claims = keys.map(([accountId, idempotencyKey]) => claim({ accountId, idempotencyKey }));
    const { results, names, written } = await together(claimGrouped, [claim(), ...claims]);
    expect(results).toEqual(Array(6).fill(true));
    expect(names).toEqual(['claim', 'claim_many']);
    const [accounts, , idempotencyKeys] = (written[1]?.values ?? []) as string[][];
    expect(accounts?.map((account, i) => [account, idempotencyKeys?.[i]])).toEqual(keys.toSorted());
  });

  acrossAccounts('claims with a card, a session or a one-time token are written alone', async () => {
    const [session, token] = [randomUUID(), randomUUID()];
    await tables.query(
      "INSERT INTO checkout_session (id, account_id, expires_at) VALUES ($1, $2, now() + interval '1 h')",
      [session, ACCOUNT_ONE],
    );
    await tables.query(
      `INSERT INTO one_time_token (id, account_id, card, fingerprint, sealed, expires_at)
       VALUES ($1, $2, '', $1, 'sealed', now() + interval '1 h')`,
      [token, ACCOUNT_ONE],
    );
    const { names, results } = await together(claimGrouped, [
      claim(),
      attemptToClaim({ vault: true }).claim,
      claim(),
      claim({ session: { id: session, version: 0 } }),
      claim({ oneTimeToken: token }),
    ]);
    expect(results).toEqual(Array(5).fill(true));
    expect(names).toEqual(['claim', 'claim_many', 'claim_with_card', 'claim_of_session', 'claim_by_token']);
    const uses = await tables.query('SELECT object_id FROM single_use');
    expect(new Set(uses.map(({ object_id }) => object_id))).toEqual(new Set([session, token]));
    expect(await tables.query('SELECT FROM transaction')).toHaveLength(5);
  });

  it('concurrent claims that must all be written alone need no group statement', async () => {
    const withCard = () => attemptToClaim({ vault: true }).claim;
    const { names } = await together(claimGrouped, [withCard(), withCard(), withCard()]);
    expect(names).toEqual(['claim_with_card', 'claim_with_card', 'claim_with_card']);
  });
});

const open = () => claimAttempt(database);

describe('concurrent claims and changes', () => {
  /** Claims and writes at the same time; the first is written alone, and the others together. */
  async function both(claims: readonly Claim[], changes: readonly StoredChange[]) {
    type Write = { readonly claim: Claim } | { readonly change: StoredChange };
    const writes: Write[] = [
      ...claims.map((one) => ({ claim: one })),
      ...changes.map((change) => ({ change })),
    ];
    return together<Write, unknown>(
      (noting, write) =>
        'claim' in write ? claimGrouped(noting, write.claim) : writeChange(noting, write.change),
      writes,
    );
  }

  acrossAccounts('claims and changes are written by one statement, each with its own result', async () => {
    const taken = claim({ idempotencyKey: 'taken' });
    await claimGrouped(database, taken);
    const [first, outdated, second] = [await open(), await open(), await open()];
    const { results, names } = await both(
      [claim(), claim(), claim({ idempotencyKey: 'taken' }), attemptToClaim({ vault: true }).claim],
      [changeOf(first, 'DONE'), changeOf(outdated, 'DONE', { version: 1 }), changeOf(second, 'DONE')],
    );
    const written = { kind: 'written', fence: 1, event: false, earlier: undefined };
    expect(results).toEqual([true, true, false, true, written, { kind: 'outdated' }, written]);
    expect(names).toEqual(['claim', 'claim_and_write_many', 'claim_with_card', 'write_outcome']);
    expect(await tables.query("SELECT FROM payment WHERE status = 'DONE'")).toHaveLength(2);
    expect(await tables.query('SELECT FROM payment')).toHaveLength(7);
  });

  acrossAccounts('an outcome has the response that was stored before it', async () => {
    const attempt = await open();
    await writeChange(database, changeOf(attempt, 'PENDING', OPEN));
    const { results } = await both([claim(), claim()], [changeOf(attempt, 'DONE', { version: 1, fence: 1 })]);
    const earlier = { record: recordOf('PENDING'), response: responseOf('PENDING') };
    expect(results[2]).toMatchObject({ kind: 'written', earlier });
  });

  acrossAccounts('a write that the database refuses fails alone', async () => {
    const attempt = await open();
    const claims = [claim(), claim({ merchantOrderId: 'a\0b' }), claim()];
    const settled = await Promise.allSettled([
      ...claims.map((one) => claimGrouped(database, one)),
      writeChange(database, changeOf(attempt, 'DONE')),
    ]);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  });
});

const STATEMENTS = [
  { rows: 'any account', isDistributed: false, name: 'write_outcomes' },
  { rows: 'one account', isDistributed: true, name: 'write_outcomes_of_account' },
].filter(({ isDistributed }) => isDistributed || !process.env.CITUS_URL);

describe.each(STATEMENTS)('concurrent changes, by the statement for rows of $rows', (statement) => {
  const writtenTogether = (changes: readonly StoredChange[]) =>
    together(writeChange, changes, statement.isDistributed);

  it('concurrent changes are written by one statement, with the same rows as alone', async () => {
    const attempts = [await open(), await open(), await open()] as const;
    const [first, ...others] = attempts;
    await wantEveryEvent(tables);
    const write = async (name: string, options: ChangeOptions) => {
      await tables.query(
        `WITH t AS (UPDATE transaction SET updated_at = '2026-01-01') UPDATE payment SET updated_at = '2026-01-01'`,
      );
      const expected = await writeChange(database, changeOf(first, name, options));
      const ahead = changeOf(await open(), 'AHEAD');
      const changes = others.map((attempt) => changeOf(attempt, name, options));
      const { results, names } = await writtenTogether([ahead, ...changes]);
      expect(names).toEqual(['write_outcome', statement.name]);
      expect(results.slice(1)).toEqual([expected, expected]);
      const rows = await rowsOf(first);
      for (const attempt of others) expect(await rowsOf(attempt)).toEqual(rows);
      return [expected, rows];
    };
    const names = { reference: 'theirs', providerPaymentId: 'their id' };
    const [pending, rows] = await write('PENDING', { ...OPEN, ...names, awaitsPayer: true });
    expect(pending).toEqual({ kind: 'written', fence: 1, event: true, earlier: undefined });
    expect(rows).toMatchObject({
      ...{ status: 'PENDING', record: recordOf('PENDING'), response: responseOf('PENDING'), version: 1 },
      ...{ response_record: null, transaction_status: 'PENDING', reference: 'theirs', awaits_payer: true },
      provider_payment_id: 'their id',
      ...{ check_in: 60, fence: 1, payment_is_new: true, transaction_is_new: true, event_sequence: 1 },
      events: [
        { type: 'payment.purchase', sequence: 1, record: `\\x${recordOf('PENDING').toString('hex')}` },
      ],
    });
    const newer = { reference: 'theirs, newer', providerPaymentId: 'their newer id' };
    const later = { ...OPEN, ...newer, version: 1, fence: 1, event: 'payment.capture' };
    const [, moved] = await write('LATER', later);
    expect(moved).toMatchObject({ record: recordOf('LATER'), response_record: recordOf('PENDING') });
    // A known outcome needs no fence, and leaves the next check unchanged.
    const [again, done] = await write('DONE', { version: 2, fence: 7 });
    const earlier = { record: recordOf('PENDING'), response: responseOf('PENDING') };
    expect(again).toEqual({ kind: 'written', fence: undefined, event: true, earlier });
    expect(done).toMatchObject({
      ...{ status: 'DONE', record: recordOf('DONE'), response: responseOf('PENDING'), event_sequence: 3 },
      ...{ response_record: recordOf('PENDING'), transaction_status: 'DONE', reference: 'theirs, newer' },
      provider_payment_id: 'their newer id',
      ...{ awaits_payer: false, fence: 3 },
    });
  });

  /** Returns everything that a change writes for a payment, with times relative to each other. */
  async function rowsOf({ paymentId }: OpenAttempt) {
    const [row] = await tables.query(
      `SELECT p.status, p.record, p.response, p.response_record, p.event_sequence, p.version, t.status AS transaction_status,
         t.reference, t.provider_payment_id, t.awaits_payer, t.fence,
         CASE WHEN t.fence = p.version THEN extract(epoch FROM t.check_at - t.updated_at)::integer END AS check_in,
         p.updated_at > '2026-01-01' AS payment_is_new, t.updated_at > '2026-01-01' AS transaction_is_new,
         (SELECT json_agg(json_build_object('type', e.type, 'sequence', e.sequence, 'record', e.record) ORDER BY e.sequence)
          FROM event e WHERE e.account_id = p.account_id AND e.payment_id = p.id) AS events
       FROM payment p JOIN transaction t ON t.account_id = p.account_id AND t.payment_id = p.id WHERE p.id = $1`,
      [paymentId],
    );
    return row;
  }

  it('an outdated, lost or repeated change in a group does not affect the others', async () => {
    const attempts = [await open(), await open(), await open(), await open(), await open()] as const;
    const [plain, outdated, lost, repeated, ahead] = attempts;
    await tables.query('UPDATE transaction SET fence = 1 WHERE id = $1', [lost.transactionId]);
    await writeChange(database, changeOf(repeated, 'DONE'));
    const { results, names } = await writtenTogether([
      ...[changeOf(ahead, 'DONE'), changeOf(outdated, 'DONE', { version: 1 }), changeOf(plain, 'DONE')],
      ...[changeOf(lost, 'DONE', OPEN), changeOf(repeated, 'DONE')],
    ]);
    const written = { kind: 'written', fence: 1, event: false, earlier: undefined };
    const there = { ...written, fence: undefined };
    expect(results).toEqual([written, { kind: 'outdated' }, written, { kind: 'lost' }, there]);
    expect(names.slice(0, 2)).toEqual(['write_outcome', statement.name]);
    // A statement for a single change then determines why they were not written.
    expect(names.slice(2)).toEqual(['write_outcome', 'write_outcome', 'write_outcome']);
    const versions = await tables.query('SELECT id, version FROM payment');
    const versionOf = ({ paymentId }: OpenAttempt) => versions.find(({ id }) => id === paymentId)?.version;
    expect(attempts.map(versionOf)).toEqual([1, 0, 0, 1, 1]);
  });

  it('one of two concurrent changes to a payment is written, and the other is outdated', async () => {
    const [ahead, attempt] = [await open(), await open()];
    const { results } = await writtenTogether([
      ...[changeOf(ahead, 'DONE'), changeOf(attempt, 'ONE'), changeOf(attempt, 'OTHER')],
    ]);
    expect(results.map(({ kind }) => kind).sort()).toEqual(['outdated', 'written', 'written']);
    const [payment] = await tables.query('SELECT * FROM payment WHERE id = $1', [attempt.paymentId]);
    expect(payment).toMatchObject({ version: 1, event_sequence: 1 });
    const [transaction] = await tables.query('SELECT * FROM transaction WHERE payment_id = $1', [
      attempt.paymentId,
    ]);
    expect(transaction).toMatchObject({ status: payment?.status, fence: 1 });
  });

  it('concurrent changes are written in the order of account and payment', async () => {
    const attempts = [await open(), await open(), await open(), await open()];
    const changes = attempts.map((attempt) => changeOf(attempt, 'DONE'));
    const { written } = await writtenTogether([changeOf(await open(), 'DONE'), ...changes]);
    const ids = attempts.map(({ paymentId }) => paymentId);
    expect(written[1]?.values[1]).toEqual(ids.toSorted());
  });

  it('changes that write more than a payment and its attempt are written alone', async () => {
    const withCard = () => claimAttempt(database, { vault: true });
    const [kept, dropped, waiting] = [await withCard(), await withCard(), await withCard()];
    const [plain, reopening, booked] = [await open(), await open(), await open()];
    const session = randomUUID();
    await tables.query('INSERT INTO single_use (account_id, object_id, payment_id) VALUES ($1, $2, $3)', [
      ...[ACCOUNT_ONE, session, reopening.paymentId],
    ]);
    const tokenOf = ({ vaultedToken = '' }: OpenAttempt) => vaultedToken;
    const keep = {
      token: tokenOf(kept),
      fate: 'keep',
      at: '2026-01-31T09:08:07Z',
      record: undefined,
    } as const;
    const { results, names, written } = await writtenTogether([
      ...[changeOf(await open(), 'DONE'), changeOf(plain, 'DONE')],
      changeOf(kept, 'DONE', { method: keep }),
      changeOf(waiting, 'DONE'),
      changeOf(dropped, 'DONE', { method: { token: tokenOf(dropped), fate: 'drop' } }),
      changeOf(reopening, 'DONE', { reopens: session }),
      changeOf(booked, 'DONE', { books: { captured: 1n, refunded: 0n, isReleased: false } }),
    ]);
    expect(results).toEqual(Array(7).fill({ kind: 'written', fence: 1, event: false, earlier: undefined }));
    expect(names).toEqual(['write_outcome', statement.name, ...Array(4).fill('write_change')]);
    expect(written[1]?.values[1]).toEqual([plain.paymentId, waiting.paymentId].sort());
    const cards = await tables.query('SELECT id, active FROM vaulted_token ORDER BY active');
    expect(cards).toEqual([
      { id: waiting.vaultedToken, active: false },
      { id: kept.vaultedToken, active: true },
    ]);
    expect(await tables.query('SELECT FROM single_use')).toEqual([]);
    expect(await tables.query('SELECT id FROM payment WHERE captured_minor_units = 1')).toEqual([
      { id: booked.paymentId },
    ]);
  });

  it('concurrent changes that must all be written alone need no group statement', async () => {
    const changes = await Promise.all(
      [1, 2, 3].map(async () => changeOf(await open(), 'DONE', { reopens: randomUUID() })),
    );
    const { names } = await writtenTogether(changes);
    expect(names).toEqual(Array(3).fill('write_change'));
  });

  // Reads PostgreSQL's own plans.
  it.skipIf(process.env.CITUS_URL)(
    'the statement for concurrent changes uses indexes even if the tables are small',
    async () => {
      const showing = await openShowing(databaseUrl());
      const attempts = [await open(), await open(), await open()];
      const changes = attempts.map((attempt) => changeOf(attempt, 'DONE'));
      const shown = { ...showing.database, isDistributed: statement.isDistributed };
      await together((_, change: (typeof changes)[number]) => writeChange(shown, change), changes);
      await showing.close();
      const scans = showing.nested.flatMap(({ plan }) => scansOf(plan));
      const found = scans.map((scan) => `${scan['Relation Name']}: ${scan['Node Type']}`);
      expect(found).toEqual(expect.arrayContaining(['payment: Index Scan', 'transaction: Index Scan']));
      expect(found.filter((scan) => scan.includes('Seq Scan'))).toEqual([]);
    },
  );
});
