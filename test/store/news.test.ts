import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Dispute } from '#src/connectors/port/dispute-report.ts';
import {
  endSearch,
  findNotifiedTransaction,
  insertNotification,
  insertPayerNews,
  moveNews,
  type NewsName,
  type PayerNews,
  takeDueNews,
} from '#src/store/tables/notifications.ts';
import {
  isNewsSettled,
  type OpenNews,
  readOpenNews,
  settleNews,
  settleServed,
} from '#src/store/tables/open-news.ts';
import { claimAttempt, type OpenAttempt } from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'payment, transaction, notification' });

const NIL = '00000000-0000-0000-0000-000000000000';

type Subject = Parameters<typeof insertNotification>[1]['subjects'][number];
const notify = (subjects: readonly Subject[], deduplicationKey: string = randomUUID()) =>
  insertNotification(database, {
    ...{ connectionId: 'scripted', deduplicationKey, subjects },
    ...{ body: Buffer.from('body'), query: 'query', headers: '{"a":"b"}' },
  });
const payerNews = ({ transactionId }: OpenAttempt, over: Partial<PayerNews> = {}): PayerNews => ({
  ...{ accountId: ACCOUNT_ONE, connectionId: 'scripted', transactionId, deduplicationKey: randomUUID() },
  ...{ kind: 'return', query: '', ...over },
});
const bring = (...args: Parameters<typeof payerNews>) => insertPayerNews(database, payerNews(...args));
const openNews = ({ transactionId }: OpenAttempt, accountId = ACCOUNT_ONE) =>
  readOpenNews(database, accountId, transactionId);
const rows = (columns: string) =>
  tables.query(`SELECT ${columns} FROM notification ORDER BY received_at, deduplication_key, subject`);
/** Reads the only update about a transaction: a notification or a return. */
async function onlyNews(attempt: OpenAttempt): Promise<OpenNews> {
  const [news, ...more] = await openNews(attempt);
  if (!news || more.length > 0) throw new Error('expected one piece of news');
  return news;
}

describe('notifications', () => {
  it('a notification is stored once, with the account and transaction of each subject', async () => {
    const [one, two] = [await claimAttempt(database), await claimAttempt(database)];
    const nameIt = "UPDATE transaction SET provider_payment_id = 'theirs' WHERE id = $1";
    await tables.query(nameIt, [two.transactionId]);
    const unknown = randomUUID();
    const subjects = [
      { transactionId: one.transactionId },
      { providerPaymentId: 'theirs' },
      { transactionId: unknown },
      { providerPaymentId: 'unknown' },
    ];
    const named = { connectionId: 'scripted', deduplicationKey: 'one', kind: 'notification', ageMs: 0 };
    const expected = [
      {
        ...named,
        subject: 0,
        accountId: ACCOUNT_ONE,
        transactionId: one.transactionId,
        providerPaymentId: undefined,
      },
      // Only the search, which reads every account, finds the transaction with a provider's id.
      { ...named, subject: 1, accountId: NIL, transactionId: undefined, providerPaymentId: 'theirs' },
      { ...named, subject: 2, accountId: NIL, transactionId: unknown, providerPaymentId: undefined },
      { ...named, subject: 3, accountId: NIL, transactionId: undefined, providerPaymentId: 'unknown' },
    ];
    const stored = await notify(subjects, 'one');
    expect(stored.toSorted((a, b) => a.subject - b.subject)).toEqual(expected);
    expect(await notify(subjects, 'one')).toEqual([]);
    expect(await rows('*')).toHaveLength(4);
  });

  it('a notification is not matched with a transaction of another connection', async () => {
    const attempt = await claimAttempt(database, { connectionId: 'second' });
    expect(await notify([{ transactionId: attempt.transactionId }])).toMatchObject([{ accountId: NIL }]);
    const find = (connectionId: string, by: { transactionId?: string; providerPaymentId?: string }) =>
      findNotifiedTransaction(database, {
        connectionId,
        transactionId: undefined,
        providerPaymentId: undefined,
        ...by,
      });
    const found = { accountId: ACCOUNT_ONE, transactionId: attempt.transactionId };
    await tables.query("UPDATE transaction SET provider_payment_id = 'theirs'");
    for (const by of [{ transactionId: attempt.transactionId }, { providerPaymentId: 'theirs' }]) {
      expect(await find('second', by)).toEqual(found);
      expect(await find('scripted', by)).toBeUndefined();
    }
  });

  it('notifications of a transaction are read unchanged with their disputes, oldest first', async () => {
    const attempt = await claimAttempt(database);
    const { transactionId } = attempt;
    const dispute: Dispute = {
      ...{ stage: 'opened', reference: 'theirs', money: { minorUnits: 575n, currency: 'USD' }, moves: 1 },
      case: {
        ...{ stage: 'CHARGEBACK', status: 'NEEDS_RESPONSE', reason: 'FRAUDULENT', networkCode: '10.4' },
        fee: { minorUnits: 1_500n, currency: 'EUR' },
        ...{ respondBy: new Date('2026-12-08T09:00:00Z'), at: new Date('2026-11-28T09:00:00Z') },
      },
    } as Dispute;
    await notify([{ transactionId, dispute }], 'disputed');
    await tables.query("UPDATE notification SET received_at = now() - interval '60 s'");
    await notify([{ transactionId }], 'plain');
    const common = {
      ...{
        accountId: ACCOUNT_ONE,
        connectionId: 'scripted',
        subject: 0,
        kind: 'notification',
        query: 'query',
      },
      ...{
        providerPaymentId: undefined,
        body: Buffer.from('body'),
        headers: '{"a":"b"}',
        readAt: expect.any(String),
      },
      ...{ receivedAt: expect.any(Date), ageMs: expect.any(Number), isTried: false },
    };
    const news = await openNews(attempt);
    expect(news).toEqual([
      { ...common, deduplicationKey: 'disputed', dispute },
      { ...common, deduplicationKey: 'plain', dispute: undefined },
    ]);
    expect(news[0]?.ageMs).toBeGreaterThanOrEqual(60_000);
    expect(await openNews(attempt, ACCOUNT_TWO)).toEqual([]);
  });

  it('a notification is moved to the account and transaction that were found for it', async () => {
    const attempt = await claimAttempt(database);
    const [stored] = await notify([{ providerPaymentId: 'later' }], 'one');
    if (!stored) throw new Error('nothing was stored');
    const [before] = await rows('*');
    const found = { accountId: ACCOUNT_ONE, transactionId: attempt.transactionId };
    expect(await moveNews(database, stored, found)).toBe(true);
    const moved = { account_id: ACCOUNT_ONE, transaction_id: attempt.transactionId };
    expect(await rows('*')).toEqual([{ ...before, ...moved }]);
    expect(await moveNews(database, stored, found)).toBe(false);
    expect(await rows('*')).toEqual([{ ...before, ...moved }]);
    expect(await notify([{ providerPaymentId: 'later' }], 'one')).toEqual([stored]);
    expect(await moveNews(database, stored, found)).toBe(false);
    expect(await rows('*')).toEqual([{ ...before, ...moved }]);
  });
});

describe('the search for the transaction of a notification', () => {
  const take = (connectionId = 'scripted', limit = 10) =>
    takeDueNews(database, connectionId, limit, { share: 0.5, firstS: 2, longestS: 100 });
  const age = (key: string, seconds: number) =>
    tables.query(
      `UPDATE notification SET received_at = now() - make_interval(secs => $2), check_at = now() - make_interval(secs => $2)
       WHERE deduplication_key = $1`,
      [key, seconds],
    );

  it('a search is repeated after a fraction of the notification’s age, within a minimum and a maximum', async () => {
    for (const [key, seconds] of [
      ['new', 0],
      ['older', 60],
      ['old', 86_400],
    ] as const) {
      await notify([{ providerPaymentId: key }], key);
      await age(key, seconds);
    }
    const taken = await take();
    expect(taken.map(({ deduplicationKey }) => deduplicationKey).sort()).toEqual(['new', 'old', 'older']);
    expect(taken.find(({ deduplicationKey }) => deduplicationKey === 'older')).toMatchObject({
      ...{ accountId: NIL, connectionId: 'scripted', subject: 0, kind: 'notification' },
      providerPaymentId: 'older',
      ageMs: expect.closeTo(60_000, -4),
    });
    expect(
      await rows('deduplication_key AS key, round(extract(epoch FROM check_at - now()))::integer AS s'),
    ).toEqual([
      { key: 'old', s: 100 },
      { key: 'older', s: 30 },
      { key: 'new', s: 2 },
    ]);
    expect(await take()).toEqual([]);
  });

  it('a search takes notifications of its own connection, those due longest first, up to the limit', async () => {
    for (const key of ['one', 'two', 'three']) await notify([{ providerPaymentId: key }], key);
    await age('two', 60);
    expect(await take('second')).toEqual([]);
    expect(await take('scripted', 1)).toMatchObject([{ deduplicationKey: 'two' }]);
    const both = (await Promise.all([take(), take()])).flat();
    expect(both.map(({ deduplicationKey }) => deduplicationKey).sort()).toEqual(['one', 'three']);
  });

  it('ending the search for one subject of a notification does not affect its other subjects', async () => {
    const [one] = await notify([{ providerPaymentId: 'one' }, { providerPaymentId: 'two' }], 'both');
    if (!one) throw new Error('nothing was stored');
    await endSearch(database, one);
    expect(await take()).toMatchObject([{ deduplicationKey: 'both', subject: 1 - one.subject }]);
    expect(await isNewsSettled(database, one)).toBe(false);
  });
});

describe('updates from a payer', () => {
  it('a payer’s return is stored once per key, but counts as new if it is repeated after it was settled', async () => {
    const attempt = await claimAttempt(database);
    const news = payerNews(attempt, { query: 'code=1' });
    expect(await insertPayerNews(database, news)).toEqual({ lastAt: undefined });
    expect(await onlyNews(attempt)).toMatchObject({ kind: 'return', query: 'code=1', body: Buffer.alloc(0) });
    expect(await insertPayerNews(database, news)).toEqual({ lastAt: 'now' });
    await settleNews(database, { ...news, subject: 0 }, 'unchanged');
    expect(await openNews(attempt)).toEqual([]);
    await tables.query(
      "UPDATE notification SET received_at = '2026-01-01', settled_at = '2026-02-03T04:05:06.000007Z'",
    );
    const again = await insertPayerNews(database, { ...news, query: 'code=2' });
    const isSame = "SELECT $1::timestamptz = '2026-02-03T04:05:06.000007Z' AS same";
    expect(await tables.query(isSame, [again?.lastAt])).toEqual([{ same: true }]);
    expect(await onlyNews(attempt)).toMatchObject({ query: 'code=2' });
    expect(
      await rows("result, settled_at, check_at <= now() AS due, received_at > '2026-01-01' AS new"),
    ).toEqual([{ result: null, settled_at: null, due: true, new: true }]);
  });

  it('at most five unsettled updates from the payer are stored per transaction', async () => {
    const [attempt, other] = [await claimAttempt(database), await claimAttempt(database)];
    for (let i = 0; i < 6; i++) await notify([{ transactionId: attempt.transactionId }]);
    for (let i = 0; i < 5; i++)
      expect(await bring(attempt, { kind: i % 2 ? 'close' : 'return' })).toBeDefined();
    expect(await bring(attempt)).toBeUndefined();
    expect(await bring(other)).toBeDefined();
    expect(await rows('*')).toHaveLength(12);
    const brought = (await openNews(attempt)).find(({ kind }) => kind === 'return');
    if (!brought) throw new Error('there is no news from the payer');
    await settleNews(database, brought, 'unchanged');
    expect(await bring(attempt)).toBeDefined();
  });
});

describe('settling updates', () => {
  it('settling an update stores its first result and erases the payer’s query', async () => {
    const attempt = await claimAttempt(database);
    await bring(attempt, { query: 'code=secret' });
    await notify([{ transactionId: attempt.transactionId }], 'beside');
    const news = (await openNews(attempt)).find(({ kind }) => kind === 'return') as NewsName;
    expect(await isNewsSettled(database, news)).toBe(false);
    await settleNews(database, news, 'applied');
    await settleNews(database, news, 'unchanged');
    expect(await isNewsSettled(database, news)).toBe(true);
    const columns = 'kind, result, settled_at IS NOT NULL AS settled, check_at IS NULL AS routed, query';
    expect(await rows(columns)).toEqual([
      { kind: 'return', result: 'applied', settled: true, routed: true, query: '' },
      { kind: 'notification', result: null, settled: false, routed: false, query: 'query' },
    ]);
  });

  const dispute = { stage: 'opened', reference: undefined, money: undefined } as Dispute;
  it.each<[string, boolean, number, string[]]>([
    ['with a look-up settles all updates that have no details of their own', true, 3, ['a', 'b', 'empty']],
    ['without a look-up settles only identical notifications', false, 2, ['a', 'b']],
  ])('a check %s', async (_what, isLookUp, settled, keys) => {
    const [attempt, other] = [await claimAttempt(database), await claimAttempt(database)];
    const { transactionId } = attempt;
    for (const key of ['a', 'b']) await notify([{ transactionId }], key);
    const [first] = await openNews(attempt);
    if (!first) throw new Error('there is no news');
    await notify([{ transactionId, providerPaymentId: 'theirs' }], 'referred');
    await notify([{ transactionId, dispute }], 'disputed');
    await bring(attempt, { deduplicationKey: 'empty' });
    await bring(attempt, { deduplicationKey: 'code', query: 'code=1' });
    await bring(attempt, { deduplicationKey: 'closes', kind: 'close' });
    await notify([{ transactionId: other.transactionId }], 'of another');
    const read = { ...first, readAt: (await rows('now()::text AS now'))[0]?.now as string };
    await notify([{ transactionId }], 'later');
    expect(await settleServed(database, transactionId, read, 'unchanged', isLookUp)).toBe(settled);
    const served = await tables.query(
      "SELECT deduplication_key AS key FROM notification WHERE result = 'unchanged' AND settled_at IS NOT NULL ORDER BY 1",
    );
    expect(served.map(({ key }) => key)).toEqual(keys);
    expect(await settleServed(database, transactionId, read, 'unchanged', isLookUp)).toBe(0);
  });

  it('a check of a return settles identical returns of the same account only', async () => {
    const attempt = await claimAttempt(database);
    await bring(attempt, { query: 'code=1' });
    const news = await onlyNews(attempt);
    await bring(attempt, { query: 'code=1' });
    await bring(attempt, { query: 'code=2' });
    await bring(attempt, { query: 'code=1', kind: 'close' });
    await bring(attempt, { query: 'code=1', accountId: ACCOUNT_TWO });
    const read = { ...news, readAt: '2999-01-01T00:00:00Z' };
    expect(await settleServed(database, attempt.transactionId, read, 'applied', false)).toBe(2);
    expect(new Set((await openNews(attempt)).map(({ kind, query }) => `${kind} ${query}`))).toEqual(
      new Set(['return code=2', 'close code=1']),
    );
    expect(await openNews(attempt, ACCOUNT_TWO)).toHaveLength(1);
  });
});
