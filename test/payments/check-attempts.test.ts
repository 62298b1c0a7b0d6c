import { describe, expect, it } from 'vitest';
import { Payment_Status, Payment_SubStatus_Value } from '#gen/payments/v1/payment_pb.js';
import type { LookUp } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { claimAttempt, type OpenAttempt } from '../support/claimed-rows.ts';
import { notified } from '../support/news.ts';
import { APPROVED, DECLINED, NOT_SENT, providerData, UNKNOWN } from '../support/outcomes.ts';
import {
  answerOf,
  asked,
  connectionOf,
  database,
  depsOf,
  depsWith,
  makeDue,
  onOwnDatabase,
  pauseOf,
  rowOf,
  rowsOf,
  seen,
  setAge,
  standing,
  tables,
  writeLate,
} from './recovery-under-test.ts';

onOwnDatabase();

const isNearlyADay = (dueInS: number) => dueInS > 86_000 && dueInS <= 86_400;

describe('an unknown outcome', () => {
  it.each([
    // An authorization is checked again: it may lapse.
    ['approved', APPROVED, 'SUCCEEDED', expect.toSatisfy(isNearlyADay)],
    ['declined', DECLINED, 'DECLINED', null],
    ['not sent', NOT_SENT, 'ERROR', null],
  ])(
    'an unknown outcome becomes the outcome that the provider reports: %s',
    async (_name, outcome, status, dueInS) => {
      const attempt = await claimAttempt(database);
      expect(await checkDue(depsOf(outcome))).toBe(1);
      expect(await rowOf(attempt)).toMatchObject({ status, transaction_status: status, due_in_s: dueInS });
      const record = await standing(attempt);
      expect(Payment_Status[record.status]).toBe(status);
      expect(record.transactionsHistory).toHaveLength(1);
      expect(await answerOf(attempt)).toBe(`${attempt.paymentId} ${status}`);
      expect(await checkDue(depsOf(outcome))).toBe(0);
    },
  );

  it('an unknown outcome is looked up with the fields of the claim', async () => {
    const attempt = await claimAttempt(database);
    await checkDue(depsOf(APPROVED));
    expect(asked).toMatchObject([
      {
        transactionId: attempt.transactionId,
        money: { minorUnits: 5_575n, currency: 'USD' },
        of: { kind: 'CARD', capture: false, attempt: { transactionId: attempt.transactionId } },
        close: false,
      },
    ]);
  });

  it('an unknown outcome stays open and is checked after growing pauses until the provider reports it', async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(UNKNOWN);
    // Half its age, however often it was checked before.
    for (const pauseS of [5, 8, 20, 400]) {
      const aged = performance.now();
      await setAge(2 * pauseS);
      await makeDue();
      const { leastS, mostS } = await pauseOf(attempt, () => checkDue(deps));
      // The attempt grew older meanwhile, on a busy machine by a second or more.
      const elapsedS = (performance.now() - aged) / 1000;
      expect(await rowOf(attempt)).toMatchObject({ status: 'PENDING', transaction_status: 'PENDING' });
      expect(mostS).toBeGreaterThan(pauseS * 0.79);
      expect(leastS).toBeLessThan((pauseS + elapsedS / 2) * 1.21);
      // The key is in progress for half a minute.
      expect(await answerOf(attempt)).toBe(2 * pauseS < 30 ? undefined : `${attempt.paymentId} PENDING`);
    }
    expect(seen).toEqual(['unknown', 'unknown', 'unknown', 'unknown']);
  });

  it('an unknown outcome is checked at least once every 1.2 days', async () => {
    const attempt = await claimAttempt(database);
    await tables.query("UPDATE transaction SET created_at = now() - interval '1 year'");
    const { leastS, mostS } = await pauseOf(attempt, () => checkDue(depsOf(UNKNOWN)));
    expect(mostS).toBeGreaterThan(86_400 * 0.79);
    expect(leastS).toBeLessThan(86_400 * 1.21);
  });

  it('an attempt with an unknown outcome is closed at the provider after its call time and the margin', async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(UNKNOWN);
    await writeLate(deps, attempt, 0, UNKNOWN);
    const askedAt = async (ageS: number) => {
      await setAge(ageS);
      await makeDue();
      await checkDue(deps);
      await notified(deps, 'scripted', attempt);
      // An unanswered look-up would delay the next notification by two seconds.
      await tables.query('DELETE FROM notification');
    };
    for (const ageS of [0, 1, 2, 3, 12]) await askedAt(ageS);
    expect(asked.map(({ close }) => close)).toEqual([...Array(8).fill(false), true, true]);
  });

  it('an unknown outcome is left to other replicas if its connection is gone or has another account', async () => {
    const attempts = [
      await claimAttempt(database, { connectionId: 'gone' }),
      await claimAttempt(database, { identity: 'another account' }),
    ];
    const before = await rowsOf(attempts);
    expect(await checkDue(depsOf(APPROVED))).toBe(0);
    expect(asked).toEqual([]);
    const after = await rowsOf(attempts);
    expect(after.map(({ status, fence }) => [status, fence])).toEqual(
      before.map(({ status, fence }) => [status, fence]),
    );
    expect(after.every(({ due_in_s }) => Number(due_in_s) <= 0)).toBe(true);
  });

  it('an unknown outcome is leased for the time of four calls to its own provider plus the margin', async () => {
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
    await checkDue({ ...deps, schedule: { ...deps.schedule, leaseMarginMs: 1_000 } });
    const leastS = (await leased.promise).map(({ due_in_s }) => Number(due_in_s));
    // The part of the leases that passed before they were read.
    const passedS = (performance.now() - begunMs) / 1_000;
    expect(Number(leastS[0]) + passedS).toBeGreaterThan(4.5);
    expect(leastS[0]).toBeLessThan(5.1);
    expect(Number(leastS[1]) + passedS).toBeGreaterThan(240);
    expect(leastS[1]).toBeLessThan(241.1);
  });

  it('a failed look-up of an unknown outcome does not prevent the look-ups of others', async () => {
    const bad = await claimAttempt(database);
    const good = await claimAttempt(database);
    const failing = async (query: LookUp) => {
      if (query.transactionId === bad.transactionId) throw new Error('a connector’s bug');
      return APPROVED;
    };
    await checkDue(depsOf(failing));
    expect(await rowOf(good)).toMatchObject({ status: 'SUCCEEDED' });
    expect(await rowOf(bad)).toMatchObject({ status: 'PENDING' });
    expect(seen).toContain('Error: a connector’s bug');
  });
});

describe('the stored response', () => {
  it('the stored response is replayed unchanged after the payment has changed', async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(APPROVED);
    await writeLate(deps, attempt, 0, UNKNOWN);
    await makeDue();
    await checkDue(deps);
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} PENDING`);
    expect((await standing(attempt)).status).toBe(Payment_Status.SUCCEEDED);
  });
});

describe('a worker that has lost its attempt', () => {
  it("a worker that has lost its attempt does not overwrite another worker's result with an unknown outcome", async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(async () => {
      // Meanwhile the delayed worker comes back after its deadline.
      expect(await writeLate(deps, attempt, 0, UNKNOWN)).toBe('lost');
      return APPROVED;
    });
    await checkDue(deps);
    expect(await rowOf(attempt)).toMatchObject({ status: 'SUCCEEDED', fence: 2 });
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} SUCCEEDED`);
  });

  it.each([
    ['unknown', UNKNOWN],
    ['declined', DECLINED],
    ['not sent', NOT_SENT],
  ])(
    'a worker that has lost its attempt changes no final state, whatever outcome it brings: %s',
    async (_name, outcome) => {
      const attempt = await claimAttempt(database, { vault: true });
      const deps = depsOf(APPROVED);
      await checkDue(deps);
      const everything = async () => [
        await tables.query('SELECT * FROM payment'),
        await tables.query('SELECT * FROM transaction'),
        await answerOf(attempt),
      ];
      const before = await everything();
      for (const fence of [0, 1, 2]) {
        expect(await writeLate(deps, attempt, fence, outcome)).toBeOneOf(['unchanged', 'contradiction']);
      }
      expect(await everything()).toEqual(before);
      expect(await tables.query('SELECT active FROM vaulted_token')).toEqual([{ active: true }]);
    },
  );
});

describe('the page to which a payer is sent', () => {
  const REDIRECT: Outcome = { kind: 'awaits_payer', providerData, show: { page: 'https://bank.example' } };
  const told = async (attempt: OpenAttempt) =>
    (
      await tables.query('SELECT event_sequence AS events FROM payment WHERE id = $1', [attempt.paymentId])
    )[0];

  it.each([0, 1, 2])('has one event, whoever else reports it: a worker with the token %d', async (fence) => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(REDIRECT);
    await checkDue(deps);
    const due = await rowOf(attempt);
    expect(due.status).toBe('PENDING');
    expect(await writeLate(deps, attempt, fence, REDIRECT)).toBe('unchanged');
    expect(await told(attempt)).toEqual({ events: 1 });
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} PENDING`);
  });

  it('is not shown again to a payer who has acted, by a worker that learned of it before', async () => {
    const attempt = await claimAttempt(database);
    await checkDue(depsOf(REDIRECT));
    await makeDue();
    await checkDue(depsOf({ kind: 'pending', providerData }));
    expect(await told(attempt)).toEqual({ events: 2 });
    expect(await writeLate(depsOf(REDIRECT), attempt, 1, REDIRECT)).toBe('unchanged');
    expect((await standing(attempt)).subStatus).toBe(Payment_SubStatus_Value.IN_PROCESS);
  });

  it('is shown to a payer although another worker has learned in the meantime that the provider has yet to decide', async () => {
    const attempt = await claimAttempt(database);
    await checkDue(depsOf({ kind: 'pending', providerData }));
    await writeLate(depsOf(REDIRECT), attempt, 0, REDIRECT);
    expect((await standing(attempt)).subStatus).toBe(Payment_SubStatus_Value.WAITING_ADDITIONAL_STEP);
    expect(await told(attempt)).toEqual({ events: 2 });
  });
});

describe('a card that waits for the outcome of its payment', () => {
  it.each([
    ['is kept when the payment is approved', APPROVED, [{ active: true }]],
    ['is dropped when the payment is declined', DECLINED, []],
    ['is dropped if the payment was never sent', NOT_SENT, []],
    ['keeps waiting while the outcome is unknown', UNKNOWN, [{ active: false }]],
  ])('a card that waits for the outcome of its payment %s', async (_name, outcome, tokens) => {
    const attempt = await claimAttempt(database, { vault: true });
    await checkDue(depsOf(outcome));
    expect(await tables.query('SELECT active FROM vaulted_token')).toEqual(tokens);
    const { paymentMethod } = await standing(attempt);
    expect(paymentMethod?.vaultedToken).toBe(outcome.kind === 'approved' ? attempt.vaultedToken : '');
  });
});
