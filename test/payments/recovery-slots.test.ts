import { describe, expect, it } from 'vitest';
import type { Outcome } from '#src/connectors/outcome.ts';
import { finishOf, writeFinish } from '#src/payments/check/finish-payment.ts';
import { recoverDue, startRecovery } from '#src/payments/check/recover-payments.ts';
import { claimAttempt } from '../support/open-attempts.ts';
import {
  APPROVED,
  answerOf,
  asked,
  connectionOf,
  copyOf,
  database,
  depsOf,
  depsWith,
  makeDue,
  onOwnDatabase,
  openCount,
  pauseOf,
  providerData,
  rowOf,
  setAge,
  standing,
  tables,
  takenBy,
  UNKNOWN,
} from './recovery-under-test.ts';

onOwnDatabase();

describe('an outcome that the provider has yet to decide', () => {
  const PENDING: Outcome = { kind: 'pending', providerData };

  it('is looked up on the schedule once it was told so, and ends with the provider’s word', async () => {
    const attempt = await claimAttempt(database, { vault: true });
    const deps = depsOf(PENDING);
    const pending = finishOf(deps, takenBy(attempt, 0), copyOf(attempt), PENDING);
    const { mostS } = await pauseOf(attempt, () => writeFinish(deps, pending));
    expect(mostS).toBeGreaterThan(5 * 0.79);
    const told = await standing(attempt);
    for (const pauseS of [5, 20]) {
      await setAge(2 * pauseS);
      await makeDue();
      const { leastS, mostS } = await pauseOf(attempt, () => recoverDue(deps));
      expect(mostS).toBeGreaterThan(pauseS * 0.79);
      expect(leastS).toBeLessThan(pauseS * 1.21);
      // That nothing has changed is no change of the record.
      expect(await standing(attempt)).toEqual(told);
      expect(await tables.query('SELECT active FROM vaulted_token')).toEqual([{ active: false }]);
    }
    await makeDue();
    await recoverDue(depsOf(APPROVED));
    expect(await rowOf(attempt)).toMatchObject({ status: 'SUCCEEDED', due_in_s: null });
    expect(await tables.query('SELECT active FROM vaulted_token')).toEqual([{ active: true }]);
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} PENDING`);
  });

  it('answers a key whose process died', async () => {
    const attempt = await claimAttempt(database);
    await recoverDue(depsOf(PENDING));
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} PENDING`);
  });

  it('is only for who holds the attempt to tell', async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(UNKNOWN);
    await recoverDue(deps);
    const late = finishOf(deps, takenBy(attempt, 0), copyOf(attempt), PENDING);
    expect(await writeFinish(deps, late)).toBe(false);
  });
});

describe('a provider that hangs', () => {
  it('holds its own slots only: others’ outcomes are learned meanwhile, its own bit by bit', async () => {
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
    const stop = startRecovery(deps, { intervalMs: 20 });
    await expect.poll(() => asked.length).toBe(20);
    const quick = await Promise.all(Array.from({ length: 45 }, () => claimAttempt(database)));
    for (const attempt of quick) {
      await expect.poll(async () => (await rowOf(attempt)).status).toBe('SUCCEEDED');
    }
    expect(asked).toHaveLength(20 + 45);
    silence.resolve();
    await expect.poll(openCount).toBe(0);
    await stop();
    expect(most).toBe(20);
  });

  it('is left alone while its circuit is open: nothing is taken, and nothing postponed', async () => {
    const attempt = await claimAttempt(database, { connectionId: 'hanging' });
    const other = await claimAttempt(database);
    const connections = { hanging: connectionOf(APPROVED), scripted: connectionOf(APPROVED) };
    const deps = { ...depsWith(connections), isLeftAlone: (id: string) => id === 'hanging' };
    expect(await recoverDue(deps)).toBe(1);
    expect(await rowOf(other)).toMatchObject({ status: 'SUCCEEDED' });
    const row = await rowOf(attempt);
    expect(row).toMatchObject({ status: 'PENDING', fence: 0 });
    expect(row.due_in_s).toBeLessThanOrEqual(0);
    expect(await recoverDue(depsWith(connections))).toBe(1);
  });
});

it('a backlog is worked off without waiting for the next search', async () => {
  await Promise.all(Array.from({ length: 70 }, () => claimAttempt(database)));
  const stop = startRecovery(depsOf(APPROVED), { intervalMs: 600_000 });
  await expect.poll(openCount).toBe(0);
  await stop();
});

it('a stop of recovery waits until the outcomes of look-ups under way are written', async () => {
  const attempt = await claimAttempt(database);
  const answer = Promise.withResolvers<Outcome>();
  const stop = startRecovery(depsWith({ scripted: connectionOf(() => answer.promise) }), { intervalMs: 20 });
  await expect.poll(() => asked.length).toBe(1);
  const stopped = stop();
  answer.resolve(APPROVED);
  await stopped;
  expect(await rowOf(attempt)).toMatchObject({ status: 'SUCCEEDED' });
});

describe('two recoveries at once', () => {
  it('look up different attempts', async () => {
    await Promise.all(Array.from({ length: 30 }, () => claimAttempt(database)));
    const deps = depsOf(APPROVED);
    const taken = await Promise.all([recoverDue(deps), recoverDue(deps)]);
    expect(taken.reduce((sum, count) => sum + count, 0)).toBe(asked.length);
    expect(new Set(asked.map(({ transactionId }) => transactionId)).size).toBe(asked.length);
  });
});
