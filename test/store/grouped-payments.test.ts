import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Database, Statement } from '#src/store/engine/database.ts';
import { claimGrouped, finishGrouped } from '#src/store/engine/grouped-payments.ts';
import { type Claim, type Finish, finishPayment } from '#src/store/engine/payments.ts';
import { attemptToClaim, claimAttempt, type OpenAttempt } from '../support/open-attempts.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../support/payment-requests.ts';

onOwnDatabase({
  empties:
    'payment, transaction, vaulted_token, checkout_session, one_time_token, single_use, webhook, event',
});

type Written = { readonly name: string; readonly values: readonly unknown[] };

/**
 * Writes rows through a database that notes its statements. The first row goes alone and the others come while it is
 * under way. A row that the group's statement should have written, and was written alone, shows by its statement.
 */
async function together<Row, Result>(
  write: (database: Database, row: Row) => Promise<Result>,
  rows: readonly Row[],
): Promise<{ results: Result[]; names: string[]; written: Written[] }> {
  const written: Written[] = [];
  const query: Database['query'] = (statement, values = []) => {
    written.push({ name: statement.name, values });
    return database.query(statement, values);
  };
  const noting = { ...database, query };
  const results = await Promise.all(rows.map((row) => write(noting, row)));
  return { results, names: written.map(({ name }) => name), written };
}

const claim = (changes: Partial<Claim> = {}): Claim => ({ ...attemptToClaim().claim, ...changes });

describe('claims that come together', () => {
  it('are written by one statement, in the order of account and key', async () => {
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
    const [, accounts, idempotencyKeys] = (written[1]?.values ?? []) as string[][];
    expect(accounts?.map((account, i) => [account, idempotencyKeys?.[i]])).toEqual(keys.toSorted());
  });

  it('are written alone if they write more than a payment: a card, or the use of a session or a token', async () => {
    const [session, token] = [randomUUID(), randomUUID()];
    await tables.query(
      "INSERT INTO checkout_session (id, account_id, expires_at) VALUES ($1, $2, now() + interval '1 h')",
      [session, ACCOUNT_ONE],
    );
    await tables.query(
      `INSERT INTO one_time_token (id, account_id, card, sealed, expires_at)
       VALUES ($1, $2, '', 'sealed', now() + interval '1 h')`,
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

  it('cost no statement together when all of them are written alone', async () => {
    const withCard = () => attemptToClaim({ vault: true }).claim;
    const { names } = await together(claimGrouped, [withCard(), withCard(), withCard()]);
    expect(names).toEqual(['claim_with_card', 'claim_with_card', 'claim_with_card']);
  });
});

/** A finish with texts of its own. */
const finishOf = (attempt: OpenAttempt, changes: Partial<Finish> = {}): Finish => ({
  accountId: ACCOUNT_ONE,
  paymentId: attempt.paymentId,
  status: 'SUCCEEDED',
  record: Buffer.from('finished'),
  answer: Buffer.from('answer'),
  transactionId: attempt.transactionId,
  transactionStatus: 'DONE',
  fence: 0,
  lookUpInS: undefined,
  event: 'payment.purchase',
  vault: undefined,
  ...changes,
});
const open = () => claimAttempt(database);

describe('finishes that come together', () => {
  it('are written by one statement, with the same rows as alone', async () => {
    const attempts = [await open(), await open(), await open()];
    const [alone] = attempts;
    if (!alone) throw new Error('nothing was claimed');
    await tables.query(
      `INSERT INTO webhook (account_id, id, url, description, events, secret)
       VALUES ($1, $2, 'http://127.0.0.1:1', '', '{payment.purchase}', '')`,
      [ACCOUNT_ONE, randomUUID()],
    );
    const write = async (changes: Partial<Finish>) => {
      await tables.query(
        `WITH t AS (UPDATE transaction SET updated_at = '2026-01-01') UPDATE payment SET updated_at = '2026-01-01'`,
      );
      const [first, ...others] = attempts.map((attempt) => finishOf(attempt, changes)) as [
        Finish,
        ...Finish[],
      ];
      const expected = await finishPayment(database, first);
      // The one that goes ahead is of nobody, and changes nothing.
      const ofNobody = finishOf({ ...alone, paymentId: randomUUID(), transactionId: randomUUID() });
      const { results, names } = await together(finishGrouped, [ofNobody, ...others]);
      expect(names).toEqual(['finish', 'finish_many']);
      expect(results).toEqual([false, expected, expected]);
      const one = await rowsOf(alone);
      for (const attempt of attempts) expect(await rowsOf(attempt)).toEqual(one);
      return [expected, one];
    };
    const pending = { status: 'PENDING', transactionStatus: 'PENDING', record: Buffer.from('pending') };
    const first = { ...pending, lookUpInS: 60, followUpInS: 90, reference: 'theirs' };
    const [finished, rows] = await write(first);
    expect(finished).toEqual({ event: true, earlier: undefined });
    expect(rows).toMatchObject({
      ...{ status: 'PENDING', record: first.record, answer: Buffer.from('answer'), answered_record: null },
      ...{ transaction_status: 'PENDING', reference: 'theirs', look_up_in: 60, follow_up_in: 90 },
      ...{ payment_is_new: true, transaction_is_new: true, event_sequence: 1 },
      events: [{ type: 'payment.purchase', sequence: 1, record: '\\x70656e64696e67' }],
    });
    const later = {
      answer: Buffer.from('another answer'),
      event: 'payment.capture',
      reference: 'theirs, newer',
    };
    const [, moved] = await write({
      ...first,
      ...later,
      status: 'ALSO PENDING',
      record: Buffer.from('later'),
    });
    expect(moved).toMatchObject({ record: Buffer.from('later'), answered_record: first.record });
    // A known outcome needs no fencing token.
    const [again, done] = await write({ ...later, reference: undefined, fence: 7 });
    expect(again).toEqual({ earlier: { record: first.record, answer: Buffer.from('answer') } });
    expect(done).toMatchObject({
      ...{ status: 'SUCCEEDED', record: Buffer.from('finished'), answer: Buffer.from('answer') },
      ...{ answered_record: first.record, transaction_status: 'DONE', reference: 'theirs, newer' },
      ...{ look_up_in: null, follow_up_in: null, event_sequence: 3 },
    });
  });

  /** All that a finish writes for a payment; times as what they are relative to each other. */
  async function rowsOf({ paymentId }: OpenAttempt) {
    const [row] = await tables.query(
      `SELECT p.status, p.record, p.answer, p.answered_record, p.event_sequence, t.status AS transaction_status, t.reference,
         extract(epoch FROM t.look_up_at - t.updated_at)::integer AS look_up_in,
         extract(epoch FROM t.follow_up_at - t.updated_at)::integer AS follow_up_in,
         p.updated_at > '2026-01-01' AS payment_is_new, t.updated_at > '2026-01-01' AS transaction_is_new,
         (SELECT json_agg(json_build_object('type', e.type, 'sequence', e.sequence, 'record', e.record))
          FROM event e WHERE e.account_id = p.account_id AND e.payment_id = p.id) AS events
       FROM payment p JOIN transaction t ON t.payment_id = p.id WHERE p.id = $1`,
      [paymentId],
    );
    return row;
  }

  it('are planned anew while the tables may be small, and by a prepared statement once the process has finished 5,000', async () => {
    const prepared: boolean[] = [];
    const query = async ({ name, isPrepared = true }: Statement, values: readonly unknown[][]) => {
      if (name === 'finish') return { rows: [{ event: false }] };
      prepared.push(isPrepared);
      return { rows: (values[0] ?? []).map((_, i) => ({ n: i + 1, event: false })) };
    };
    const counting = { query } as unknown as Database;
    const finish = finishOf(attemptToClaim().attempt);
    // Groups have at most 64 rows, and the first row goes alone.
    await Promise.all(Array.from({ length: 1 + 64 * 80 }, () => finishGrouped(counting, finish)));
    expect(prepared).toEqual([...Array(79).fill(false), true]);
  });

  it('are written alone if they decide about a card or a session', async () => {
    const withCard = () => claimAttempt(database, { vault: true });
    const [kept, dropped, waiting] = [await withCard(), await withCard(), await withCard()];
    const [plain, reopening] = [await open(), await open()];
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
    const { results, names, written } = await together(finishGrouped, [
      finishOf(await open()),
      finishOf(plain),
      finishOf(kept, { vault: keep }),
      finishOf(waiting, { vault: { token: tokenOf(waiting), fate: 'wait' } }),
      finishOf(dropped, { vault: { token: tokenOf(dropped), fate: 'drop' } }),
      finishOf(reopening, { reopens: session }),
    ]);
    expect(results).toEqual(Array(6).fill({ earlier: undefined }));
    expect(names).toEqual([
      ...['finish', 'finish_many'],
      ...['finish_keeping_card', 'finish_dropping_card', 'finish_reopening_session'],
    ]);
    expect(written[1]?.values[0]).toEqual([plain.paymentId, waiting.paymentId]);
    const cards = await tables.query('SELECT id, active FROM vaulted_token ORDER BY active');
    expect(cards).toEqual([
      { id: waiting.vaultedToken, active: false },
      { id: kept.vaultedToken, active: true },
    ]);
    expect(await tables.query('SELECT FROM single_use')).toEqual([]);
  });

  it('cost no statement together when all of them are written alone', async () => {
    const finishes = await Promise.all(
      [1, 2, 3].map(async () => finishOf(await open(), { reopens: randomUUID() })),
    );
    const { names } = await together(finishGrouped, finishes);
    expect(names).toEqual(Array(3).fill('finish_reopening_session'));
  });
});
