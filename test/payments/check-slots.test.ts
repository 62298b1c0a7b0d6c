import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { type CheckerDeps, checkDue, startChecker } from '#src/payments/check/checker.ts';
import { insertNotification } from '#src/store/tables/notifications.ts';
import { claimAttempt, type OpenAttempt } from '../support/claimed-rows.ts';
import { interleave } from '../support/interleave.ts';
import { APPROVED, PENDING, UNKNOWN } from '../support/outcomes.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { startSearchingChecker } from '../support/searching-checker.ts';
import {
  answerOf,
  asked,
  connectionOf,
  database,
  depsOf,
  depsWith,
  makeDue,
  onOwnDatabase,
  openCount,
  pauseOf,
  rowOf,
  setAge,
  standing,
  tables,
  writeLate,
} from './recovery-under-test.ts';

onOwnDatabase();

describe('an outcome that the provider has yet to decide', () => {
  it('an undecided outcome is checked on the schedule until the provider reports it', async () => {
    const attempt = await claimAttempt(database, { vault: true });
    const deps = depsOf(PENDING);
    const { mostS } = await pauseOf(attempt, () => writeLate(deps, attempt, 0, PENDING));
    expect(mostS).toBeGreaterThan(5 * 0.79);
    const told = await standing(attempt);
    for (const pauseS of [5, 20]) {
      await setAge(2 * pauseS);
      await makeDue();
      const { leastS, mostS } = await pauseOf(attempt, () => checkDue(deps));
      expect(mostS).toBeGreaterThan(pauseS * 0.79);
      expect(leastS).toBeLessThan(pauseS * 1.21);
      // An unchanged outcome does not change the record.
      expect(await standing(attempt)).toEqual(told);
      expect(await tables.query('SELECT active FROM vaulted_token')).toEqual([{ active: false }]);
    }
    await makeDue();
    await checkDue(depsOf(APPROVED));
    expect(await rowOf(attempt)).toMatchObject({ status: 'SUCCEEDED' });
    expect(await openCount()).toBe(0);
    expect(await tables.query('SELECT active FROM vaulted_token')).toEqual([{ active: true }]);
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} PENDING`);
  });

  it('a check writes the response to a request whose process died', async () => {
    const attempt = await claimAttempt(database);
    await checkDue(depsOf(PENDING));
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} PENDING`);
  });

  it('an undecided outcome is written only by the worker that holds the attempt', async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(UNKNOWN);
    await checkDue(deps);
    expect(await writeLate(deps, attempt, 0, PENDING)).toBe('lost');
  });
});

describe('a provider that hangs', () => {
  it('a hanging provider holds only its own slots, and other outcomes are learned meanwhile', async () => {
    for (let i = 0; i < 50; i++) await claimAttempt(database, { connectionId: 'hanging' });
    const silence = Promise.withResolvers<void>();
    let [atOnce, most] = [0, 0];
    const hangs = async () => {
      most = Math.max(most, ++atOnce);
      await silence.promise;
      atOnce -= 1;
      return APPROVED;
    };
    const deps = depsWith({ hanging: connectionOf(hangs), scripted: connectionOf(APPROVED) });
    const checker = startSearchingChecker(deps, { intervalMs: 20 });
    await expect.poll(() => asked.length).toBe(20);
    const quick = await Promise.all(Array.from({ length: 45 }, () => claimAttempt(database)));
    for (const attempt of quick) {
      await expect.poll(async () => (await rowOf(attempt)).status).toBe('SUCCEEDED');
    }
    expect(asked).toHaveLength(20 + 45);
    silence.resolve();
    await expect.poll(openCount).toBe(0);
    await checker.stop();
    expect(most).toBe(20);
  });

  it('outcomes at a hanging provider are neither claimed nor postponed while its circuit is open', async () => {
    const attempt = await claimAttempt(database, { connectionId: 'hanging' });
    const other = await claimAttempt(database);
    const connections = { hanging: connectionOf(APPROVED), scripted: connectionOf(APPROVED) };
    const deps = { ...depsWith(connections), isLeftAlone: (id: string) => id === 'hanging' };
    expect(await checkDue(deps)).toBe(1);
    expect(await rowOf(other)).toMatchObject({ status: 'SUCCEEDED' });
    const row = await rowOf(attempt);
    expect(row).toMatchObject({ status: 'PENDING', fence: 0 });
    expect(row.due_in_s).toBeLessThanOrEqual(0);
    expect(await checkDue(depsWith(connections))).toBe(1);
  });
});

it('the checker works off a backlog without waiting for the next search', async () => {
  await Promise.all(Array.from({ length: 70 }, () => claimAttempt(database)));
  const checker = startSearchingChecker(depsOf(APPROVED), { intervalMs: 600_000 });
  await expect.poll(openCount).toBe(0);
  await checker.stop();
});

describe('work that is handed to the checker', () => {
  let searches: number;
  const count = () => (searches += 1);
  const counting = () =>
    interleave(database, { before: { find_due_transactions: count, find_due_notifications: count } });
  const handed = ({ transactionId }: OpenAttempt, inS = 0) => ({
    ...{ accountId: ACCOUNT_ONE, id: transactionId, connectionId: 'scripted', identity: 'scripted', inS },
  });

  /** Starts a checker for which nothing searches. */
  function startAlone(deps: CheckerDeps) {
    searches = 0;
    return startChecker({ ...deps, database: counting() });
  }

  it('a handed transaction is checked when it is due, at once or after the given seconds, without a search', async () => {
    const checker = startAlone(depsOf(APPROVED));
    for (const inS of [0, 0.2]) {
      const attempt = await claimAttempt(database, { leaseS: inS });
      const begunMs = performance.now();
      checker.wake(handed(attempt, inS));
      await expect.poll(async () => (await rowOf(attempt)).status).toBe('SUCCEEDED');
      expect(performance.now() - begunMs).toBeGreaterThan(inS * 999);
    }
    await checker.stop();
    expect(searches).toBe(0);
  });

  it('transactions handed while all slots are taken are checked as slots become free, none twice', async () => {
    const silence = Promise.withResolvers<Outcome>();
    const checker = startAlone(depsWith({ scripted: connectionOf(() => silence.promise) }));
    const attempts = await Promise.all(Array.from({ length: 50 }, () => claimAttempt(database)));
    for (const attempt of [...attempts, ...attempts]) checker.wake(handed(attempt));
    await expect.poll(() => asked.length).toBe(20);
    silence.resolve(APPROVED);
    await expect.poll(openCount).toBe(0);
    await checker.stop();
    expect({ asked: asked.length, searches }).toEqual({ asked: 50, searches: 0 });
  });

  it('more handed transactions than a replica remembers are found by a search', async () => {
    const silence = Promise.withResolvers<Outcome>();
    const checker = startAlone(depsWith({ scripted: connectionOf(() => silence.promise) }));
    const attempt = await claimAttempt(database);
    for (let i = 0; i < 1_000; i++) checker.wake({ ...handed(attempt), id: randomUUID() });
    checker.wake(handed(attempt));
    silence.resolve(APPROVED);
    await expect.poll(async () => (await rowOf(attempt)).status).toBe('SUCCEEDED');
    await checker.stop();
    expect(searches).toBe(2);
  });

  it('a handed transaction is left alone if it is not due, of another account at the provider, or its circuit is open', async () => {
    const later = await claimAttempt(database, { leaseS: 60 });
    const other = await claimAttempt(database, { identity: 'before' });
    const broken = await claimAttempt(database, { connectionId: 'broken' });
    const connections = { scripted: connectionOf(APPROVED), broken: connectionOf(APPROVED) };
    const deps = { ...depsWith(connections), isLeftAlone: (id: string) => id === 'broken' };
    const checker = startAlone(deps);
    checker.wake(handed(later));
    checker.wake({ ...handed(other), identity: 'before' });
    checker.wake({ ...handed(broken), connectionId: 'broken' });
    const due = await claimAttempt(database);
    checker.wake(handed(due));
    await expect.poll(async () => (await rowOf(due)).status).toBe('SUCCEEDED');
    await checker.stop();
    expect(asked.map(({ transactionId }) => transactionId)).toEqual([due.transactionId]);
    for (const attempt of [later, other, broken]) expect(await rowOf(attempt)).toMatchObject({ fence: 0 });
    expect(searches).toBe(0);
  });

  it('handed news that names only the provider’s id is searched for once, and its transaction checked', async () => {
    const checker = startAlone(depsOf(APPROVED));
    const attempt = await claimAttempt(database);
    await tables.query('UPDATE transaction SET provider_payment_id = $1, fence = 1', ['ch_1']);
    const [news] = await insertNotification(database, {
      ...{ connectionId: 'scripted', deduplicationKey: 'one', subjects: [{ providerPaymentId: 'ch_1' }] },
      ...{ body: Buffer.alloc(0), query: '', headers: '{}' },
    });
    if (news) checker.wake(news);
    await expect.poll(async () => (await rowOf(attempt)).status).toBe('SUCCEEDED');
    await checker.stop();
    expect({ asked: asked.length, searches }).toEqual({ asked: 1, searches: 0 });
  });

  it('a fault in handed work does not keep the checker from searching', async () => {
    let faults = 0;
    const fail = () => {
      faults += 1;
      throw new Error('a fault of ours');
    };
    const failing = interleave(database, { before: { take_due_notifications: fail } });
    const deps = { ...depsOf(APPROVED), database: failing };
    const checker = startSearchingChecker(deps, { intervalMs: 200 });
    const wakes = setInterval(
      () =>
        checker.wake({ accountId: ACCOUNT_ONE, connectionId: 'scripted', deduplicationKey: '', subject: 0 }),
      5,
    );
    await expect.poll(() => faults).toBeGreaterThan(2);
    const attempt = await claimAttempt(database);
    await expect.poll(async () => (await rowOf(attempt)).status).toBe('SUCCEEDED');
    clearInterval(wakes);
    await checker.stop();
  });
});

it('stopping the checker waits until the outcomes of running checks are written', async () => {
  const attempt = await claimAttempt(database);
  const answer = Promise.withResolvers<Outcome>();
  const checker = startSearchingChecker(depsWith({ scripted: connectionOf(() => answer.promise) }), {
    intervalMs: 20,
  });
  await expect.poll(() => asked.length).toBe(1);
  const stopped = checker.stop();
  answer.resolve(APPROVED);
  await stopped;
  expect(await rowOf(attempt)).toMatchObject({ status: 'SUCCEEDED' });
});

describe('two concurrent checkers', () => {
  it('two concurrent checkers check different attempts', async () => {
    await Promise.all(Array.from({ length: 30 }, () => claimAttempt(database)));
    const deps = depsOf(APPROVED);
    const taken = await Promise.all([checkDue(deps), checkDue(deps)]);
    expect(taken.reduce((sum, count) => sum + count, 0)).toBe(asked.length);
    expect(new Set(asked.map(({ transactionId }) => transactionId)).size).toBe(asked.length);
  });
});
