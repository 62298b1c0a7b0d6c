import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type PromptingNews, postponeCheck, promptCheck, takeDue } from '#src/store/engine/checks.ts';
import { claimOperation } from '#src/store/engine/claim-operation.ts';
import { queriesOf } from '#src/store/engine/database.ts';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import { addBystanders } from '../support/bystanders.ts';
import {
  approvedPayment,
  changeOf,
  claimAttempt,
  type OpenAttempt,
  operationClaimOf,
} from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { lockWaits } from '../support/tables.ts';

onOwnDatabase({ empties: 'payment, transaction, vaulted_token, notification', maxConnections: 8 });

const APART_S = 2;

/** Makes a transaction whose call has ended. It is checked in `checkInS` seconds, or never if that is undefined. */
async function letGo(checkInS: number | undefined): Promise<OpenAttempt> {
  const attempt = await claimAttempt(database);
  await writeChange(database, changeOf(attempt, 'PENDING', { isFenced: true, checkInS }));
  return attempt;
}

/** Returns the stored schedule of a transaction; `inS` is rounded to tenths. */
const scheduleOf = async ({ transactionId }: OpenAttempt) =>
  (
    await tables.query(
      `SELECT fence, round(extract(epoch FROM check_at - now()), 1)::float8 AS "inS" FROM transaction
       WHERE id = $1 AND account_id = $2`,
      [transactionId, ACCOUNT_ONE],
    )
  )[0];

/** Stores a notification or return about a transaction. @param settledAt an SQL expression. */
async function news(
  { transactionId }: OpenAttempt,
  kind: PromptingNews['kind'] = 'notification',
  settledAt = 'NULL',
  query: (sql: string, values: unknown[]) => Promise<unknown> = tables.query,
): Promise<PromptingNews> {
  const named = { accountId: ACCOUNT_ONE, transactionId, deduplicationKey: randomUUID(), subject: 0, kind };
  await query(
    `INSERT INTO notification (account_id, connection_id, deduplication_key, subject, kind, transaction_id, body, query, settled_at)
     VALUES ($1, 'scripted', $2, 0, $3, $4, '', '', ${settledAt})`,
    [ACCOUNT_ONE, named.deduplicationKey, kind, transactionId],
  );
  return named;
}
const prompt = async (about: PromptingNews) => (await promptCheck(database, about, APART_S))?.inS;

describe('updates about a transaction', () => {
  it('an update makes its transaction’s check due at once with a new fence, and affects no other check', async () => {
    const [attempt, beside] = [await letGo(500), await letGo(500)];
    const others = await addBystanders(tables, attempt.paymentId);
    expect(await prompt(await news(attempt))).toBe(0);
    expect(await scheduleOf(attempt)).toEqual({ fence: 2, inS: expect.closeTo(0, 0) });
    expect(await scheduleOf(beside)).toEqual({ fence: 1, inS: expect.closeTo(500, 0) });
    await others.expectUntouched();
  });

  it('an update returns whose check is due, and the account at the provider that may be asked about it', async () => {
    const attempt = await letGo(500);
    expect(await promptCheck(database, await news(attempt), APART_S)).toEqual({
      accountId: ACCOUNT_ONE,
      id: attempt.transactionId,
      connectionId: 'scripted',
      identity: 'scripted',
      inS: 0,
    });
  });

  it('an update makes a transaction due even if it had no next check', async () => {
    const attempt = await letGo(undefined);
    expect(await prompt(await news(attempt))).toBe(0);
    expect(await scheduleOf(attempt)).toEqual({ fence: 2, inS: expect.closeTo(0, 0) });
  });

  it('an update changes nothing while the call of its transaction is in progress', async () => {
    const attempt = await claimAttempt(database, { leaseS: 60 });
    const about = await news(attempt);
    expect(await prompt(about)).toBeUndefined();
    expect(await scheduleOf(attempt)).toEqual({ fence: 0, inS: expect.closeTo(60, 0) });
    expect(await prompt({ ...about, transactionId: randomUUID() })).toBeUndefined();
    expect(await prompt({ ...about, accountId: randomUUID() })).toBeUndefined();
  });

  it('an update never delays a check', async () => {
    const attempt = await letGo(-100);
    await prompt(await news(attempt));
    expect(await scheduleOf(attempt)).toEqual({ fence: 2, inS: expect.closeTo(-100, 0) });
    const soon = await letGo(1);
    await news(soon);
    expect(await prompt(await news(soon))).toBe(APART_S);
    expect(await scheduleOf(soon)).toMatchObject({ fence: 2, inS: expect.closeTo(1, 0) });
  });

  it.each<[number, string, PromptingNews['kind'], string]>([
    [2, 'is not settled', 'notification', 'NULL'],
    [2, 'has just been settled', 'notification', 'now()'],
    [0.5, 'was settled 1.5 s ago', 'notification', "now() - interval '1.5 s'"],
    [0, 'was settled long ago', 'notification', "now() - interval '1 min'"],
    [0, 'is of another kind', 'return', 'NULL'],
  ])(
    'an update makes the check due in %d s when another update about the transaction %s',
    async (inS, _what, kind, settledAt) => {
      const [attempt, other] = [await letGo(500), await letGo(500)];
      await news(attempt, kind, settledAt);
      await news(attempt, 'notification', "now() - interval '1 h'");
      await news(other);
      const told = await prompt(await news(attempt));
      expect(told).toBeCloseTo(inS, 0);
      expect(told).toBeGreaterThanOrEqual(inS - 0.5);
      expect(told).toBeLessThanOrEqual(inS);
      expect((await scheduleOf(attempt))?.inS).toBeCloseTo(inS, 0);
    },
  );

  it('a check for a repeated return is due two seconds after the return was last settled; the return counts once', async () => {
    const attempt = await letGo(500);
    const about = await news(attempt, 'return');
    expect(await prompt(about)).toBe(0);
    const [row] = await tables.query("SELECT (now() - interval '1.5 s')::text AS settled");
    const again = await prompt({ ...about, lastAt: String(row?.settled) });
    expect(again).toBeGreaterThan(0);
    expect(again).toBeLessThanOrEqual(0.5);
    expect(await prompt({ ...about, lastAt: 'now' })).toBe(APART_S);
    expect(await prompt(await news(attempt, 'return'))).toBe(APART_S);
  });

  it('a check prompted during another worker’s check stays due, whatever that worker writes', async () => {
    const attempt = await letGo(0);
    const connection = { connectionId: 'scripted', identity: 'scripted' };
    const take = () => takeDue(database, connection, { limit: 10, leaseS: 60 });
    const [taken] = await take();
    if (!taken) throw new Error('nothing was due');
    await prompt(await news(attempt));
    for (const inS of [300, undefined]) await postponeCheck(database, taken, inS);
    expect(await scheduleOf(attempt)).toEqual({ fence: 3, inS: expect.closeTo(0, 0) });
    // The other worker's outcome is written, and the check that the notification prompted stays due.
    await writeChange(database, changeOf(attempt, 'SUCCEEDED', { version: 1, fence: taken.fence }));
    expect(await scheduleOf(attempt)).toMatchObject({ inS: expect.closeTo(0, 0) });
    expect(await take()).toMatchObject([{ transactionId: attempt.transactionId, fence: 5 }]);
  });

  it('simultaneous updates prompt a single check, two seconds later', async () => {
    const attempt = await letGo(500);
    const all = [];
    for (let i = 0; i < 8; i++) all.push(await news(attempt));
    const told = await Promise.all(all.map(prompt));
    expect(new Set(told)).toEqual(new Set([APART_S]));
    expect(await scheduleOf(attempt)).toMatchObject({ fence: 9, inS: expect.closeTo(APART_S, 0) });
  });
});

describe('the end of an operation on a transaction with an update', () => {
  const LATER_S = 12 * 86_400;

  /** An approved payment with an open capture. */
  async function captured() {
    const base = await approvedPayment(database, tables);
    const claim = operationClaimOf(base);
    await claimOperation(database, claim);
    const end = (checkInS: number | undefined) =>
      writeChange(
        database,
        changeOf(claim, 'DECLINED', { version: 2, other: { id: base.transactionId, checkInS } }),
      );
    return { base, end };
  }

  it.each([LATER_S, undefined])(
    'does not delay the check that the update asked for: %s',
    async (checkInS) => {
      const { base, end } = await captured();
      await prompt(await news(base));
      await end(checkInS);
      expect(await scheduleOf(base)).toEqual({ fence: 3, inS: expect.closeTo(0, 0) });
    },
  );

  it('does not delay a check that an update asks for at the same time', async () => {
    const { base, end } = await captured();
    let ended: Promise<unknown> | undefined;
    await database.transaction(async (run) => {
      const about = await news(base, 'return', 'NULL', (sql, values) => run(sql, values));
      await promptCheck(queriesOf(run), about, APART_S);
      ended = end(LATER_S);
      await expect.poll(() => lockWaits(tables)).toBe(1);
    });
    await ended;
    expect(await scheduleOf(base)).toEqual({ fence: 3, inS: expect.closeTo(0, 0) });
  });

  it('leaves the lease of a check of the update', async () => {
    const { base, end } = await captured();
    await prompt(await news(base));
    await takeDue(database, { connectionId: 'scripted', identity: 'scripted' }, { limit: 1, leaseS: 30 });
    await end(LATER_S);
    expect(await scheduleOf(base)).toEqual({ fence: 4, inS: expect.closeTo(30, 0) });
  });

  it.each([
    ['settled', LATER_S, LATER_S],
    ['unsettled', 0, 0],
  ])('brings a check forward, and delays it if the update is settled: %s', async (how, checkInS, inS) => {
    const { base, end } = await captured();
    await news(base, 'notification', how === 'settled' ? 'now()' : 'NULL');
    await tables.query("UPDATE transaction SET check_at = now() + interval '1 h' WHERE id = $1", [
      base.transactionId,
    ]);
    await end(checkInS);
    expect((await scheduleOf(base))?.inS).toBeCloseTo(inS, -1);
  });
});

it('only one of several concurrent workers takes a check that an update made due', async () => {
  const connection = { connectionId: 'scripted', identity: 'scripted' };
  for (let i = 0; i < 20; i++) {
    const attempt = await letGo(500);
    await prompt(await news(attempt));
    const take = () => takeDue(database, connection, { limit: 10, leaseS: 60 });
    const taken = (await Promise.all([take(), take(), take()])).flat();
    expect(taken).toMatchObject([{ transactionId: attempt.transactionId, fence: 3 }]);
  }
});
