import { describe, expect, it } from 'vitest';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import type { LookUp } from '#src/connectors/connector.ts';
import { finishOf, writeFinish } from '#src/payments/check/finish-payment.ts';
import { recoverDue, recoverNow } from '#src/payments/check/recover-payments.ts';
import { claimAttempt } from '../support/open-attempts.ts';
import {
  APPROVED,
  answerOf,
  asked,
  connectionOf,
  copyOf,
  DECLINED,
  database,
  depsOf,
  depsWith,
  makeDue,
  NOT_SENT,
  onOwnDatabase,
  pauseOf,
  rowOf,
  rowsOf,
  seen,
  setAge,
  standing,
  tables,
  takenBy,
  UNKNOWN,
} from './recovery-under-test.ts';

onOwnDatabase();

describe('an outcome that nobody knows', () => {
  it.each([
    ['approved', APPROVED, 'SUCCEEDED', 'SUCCEEDED'],
    ['declined', DECLINED, 'DECLINED', 'DECLINED'],
    ['not sent', NOT_SENT, 'ERROR', 'ERROR'],
  ])('becomes what the provider says: %s', async (_name, outcome, status, transactionStatus) => {
    const attempt = await claimAttempt(database);
    expect(await recoverDue(depsOf(outcome))).toBe(1);
    expect(await rowOf(attempt)).toMatchObject({
      status,
      transaction_status: transactionStatus,
      due_in_s: null,
    });
    const record = await standing(attempt);
    expect(Payment_Status[record.status]).toBe(status);
    expect(record.transactionsHistory).toHaveLength(1);
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} ${status}`);
    expect(await recoverDue(depsOf(outcome))).toBe(0);
  });

  it('is asked for by what was claimed', async () => {
    const attempt = await claimAttempt(database);
    await recoverDue(depsOf(APPROVED));
    expect(asked).toMatchObject([
      {
        transactionId: attempt.transactionId,
        money: { minorUnits: 5_575n, currency: 'USD' },
        of: { kind: 'card', capture: false, attempt: { transactionId: attempt.transactionId } },
        close: false,
      },
    ]);
  });

  it('stays open while the provider does not tell it, and is asked for after growing pauses', async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(UNKNOWN);
    // However often it was asked for before, half its age.
    for (const pauseS of [5, 8, 20, 400]) {
      await setAge(2 * pauseS);
      await makeDue();
      const { leastS, mostS } = await pauseOf(attempt, () => recoverDue(deps));
      expect(await rowOf(attempt)).toMatchObject({ status: 'PENDING', transaction_status: 'PENDING' });
      expect(mostS).toBeGreaterThan(pauseS * 0.79);
      expect(leastS).toBeLessThan(pauseS * 1.21);
    }
    // Its key stays in progress: nothing was answered, and nothing may be made up.
    expect(await answerOf(attempt)).toBeUndefined();
    expect(seen).toEqual(['unknown', 'unknown', 'unknown', 'unknown']);
  });

  it('is never asked for more seldom than once a day and a fifth', async () => {
    const attempt = await claimAttempt(database);
    await tables.query("UPDATE transaction SET created_at = now() - interval '1 year'");
    const { leastS, mostS } = await pauseOf(attempt, () => recoverDue(depsOf(UNKNOWN)));
    expect(mostS).toBeGreaterThan(86_400 * 0.79);
    expect(leastS).toBeLessThan(86_400 * 1.21);
  });

  it('has the provider close it once its call and the margin are over, however often it was asked for', async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(UNKNOWN);
    await writeFinish(deps, finishOf(deps, takenBy(attempt, 0), copyOf(attempt), UNKNOWN));
    const connection = connectionOf(UNKNOWN);
    const askedAt = async (ageS: number) => {
      await setAge(ageS);
      await makeDue();
      await recoverDue(deps);
      await recoverNow(deps, connection, attempt.transactionId, { hint: {}, stop: undefined });
    };
    for (const ageS of [0, 1, 2, 3, 12]) await askedAt(ageS);
    expect(asked.map(({ close }) => close)).toEqual([...Array(8).fill(false), true, true]);
  });

  it('is left to other replicas, as it is, where its connection is gone, is another account, or offers no look-up', async () => {
    const attempts = [
      await claimAttempt(database, { connectionId: 'gone' }),
      await claimAttempt(database, { identity: 'another account' }),
      await claimAttempt(database, { connectionId: 'mute' }),
    ];
    const before = await rowsOf(attempts);
    const mute = connectionOf(APPROVED, { lookUp: undefined });
    expect(await recoverDue(depsWith({ scripted: connectionOf(APPROVED), mute }))).toBe(0);
    expect(asked).toEqual([]);
    const after = await rowsOf(attempts);
    expect(after.map(({ status, fence }) => [status, fence])).toEqual(
      before.map(({ status, fence }) => [status, fence]),
    );
    expect(after.every(({ due_in_s }) => Number(due_in_s) <= 0)).toBe(true);
  });

  it('is taken for as long as its own provider may take, and the margin', async () => {
    const attempts = [await claimAttempt(database), await claimAttempt(database, { connectionId: 'slow' })];
    const leased = Promise.withResolvers<Record<string, unknown>[]>();
    const says = async () => {
      if (asked.length === 2) leased.resolve(await rowsOf(attempts));
      await leased.promise;
      return UNKNOWN;
    };
    const slow = connectionOf(says, { deadlineMs: 60_000 });
    const deps = depsWith({ scripted: connectionOf(says), slow });
    const begunMs = performance.now();
    await recoverDue({ ...deps, schedule: { ...deps.schedule, leaseMarginMs: 1_000 } });
    const leastS = (await leased.promise).map(({ due_in_s }) => Number(due_in_s));
    // What has passed of the leases until they were read.
    const passedS = (performance.now() - begunMs) / 1_000;
    expect(Number(leastS[0]) + passedS).toBeGreaterThan(1.5);
    expect(leastS[0]).toBeLessThan(2.1);
    expect(Number(leastS[1]) + passedS).toBeGreaterThan(60);
    expect(leastS[1]).toBeLessThan(61.1);
  });

  it('does not keep others from being looked up when asking for it fails', async () => {
    const bad = await claimAttempt(database);
    const good = await claimAttempt(database);
    const failing = async (query: LookUp) => {
      if (query.transactionId === bad.transactionId) throw new Error('a connector’s bug');
      return APPROVED;
    };
    await recoverDue(depsOf(failing));
    expect(await rowOf(good)).toMatchObject({ status: 'SUCCEEDED' });
    expect(await rowOf(bad)).toMatchObject({ status: 'PENDING' });
    expect(seen).toContain('Error: a connector’s bug');
  });
});

describe('what was answered', () => {
  it('is replayed as it was, while the payment itself moves on', async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(APPROVED);
    await writeFinish(deps, finishOf(deps, takenBy(attempt, 0), copyOf(attempt), UNKNOWN));
    await makeDue();
    await recoverDue(deps);
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} PENDING`);
    expect((await standing(attempt)).status).toBe(Payment_Status.SUCCEEDED);
  });
});

describe('who has lost an attempt', () => {
  it('does not write that it is unknown over what another taker is about to learn', async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(async () => {
      // Meanwhile the one that was held up comes back, with its deadline passed.
      const late = finishOf(deps, takenBy(attempt, 0), copyOf(attempt), UNKNOWN);
      expect(await writeFinish(deps, late)).toBe(false);
      return APPROVED;
    });
    await recoverDue(deps);
    expect(await rowOf(attempt)).toMatchObject({ status: 'SUCCEEDED', fence: 1, due_in_s: null });
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} SUCCEEDED`);
  });

  it.each([
    ['unknown', UNKNOWN],
    ['declined', DECLINED],
    ['not sent', NOT_SENT],
  ])('changes no terminal state, whatever it brings: %s', async (_name, outcome) => {
    const attempt = await claimAttempt(database, { vault: true });
    const deps = depsOf(APPROVED);
    await recoverDue(deps);
    const before = [await rowOf(attempt), await standing(attempt), await answerOf(attempt)];
    for (const fence of [0, 1, 2]) {
      const late = finishOf(deps, takenBy(attempt, fence), copyOf(attempt), outcome);
      expect(await writeFinish(deps, late)).toBe(false);
    }
    expect([await rowOf(attempt), await standing(attempt), await answerOf(attempt)]).toEqual(before);
    expect(await tables.query('SELECT active FROM vaulted_token')).toEqual([{ active: true }]);
  });
});

describe('a card that waits for the outcome', () => {
  it.each([
    ['is kept when the payment is approved', APPROVED, [{ active: true }]],
    ['is dropped when it is declined', DECLINED, []],
    ['is dropped when it was never sent', NOT_SENT, []],
    ['waits on while nobody knows', UNKNOWN, [{ active: false }]],
  ])('%s', async (_name, outcome, tokens) => {
    const attempt = await claimAttempt(database, { vault: true });
    await recoverDue(depsOf(outcome));
    expect(await tables.query('SELECT active FROM vaulted_token')).toEqual(tokens);
    const { paymentMethod } = await standing(attempt);
    expect(paymentMethod?.vaultedToken).toBe(outcome.kind === 'approved' ? attempt.vaultedToken : '');
  });
});
