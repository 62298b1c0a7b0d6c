import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/outcome.ts';
import {
  type FinishDeps,
  finishOf,
  finishWaitMs,
  untilWritten,
  within,
  writeFinish,
} from '#src/payments/check/finish-payment.ts';
import type { Database } from '#src/store/engine/database.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { attemptToClaim } from '../support/open-attempts.ts';
import { RESPONSES } from '../support/stored-responses.ts';
import { APPROVED, declined, NOT_SENT, PENDING, UNKNOWN } from './attempt-outcomes.ts';

const AT = new Date('2026-01-31T09:08:07.000Z');
const REDIRECT = { ...PENDING, kind: 'redirect', redirectUrl: 'https://wallet.example' } as Outcome;
const TO_COMPLETE = { ...PENDING, kind: 'to_complete' } as Outcome;

/** Everything that finishing tells, in order. */
let told: unknown[];
beforeEach(() => {
  told = [];
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** Dependencies on a database that gives these rows for every statement. */
function depsOf(rows: readonly unknown[] = []): FinishDeps {
  return {
    database: { query: async () => ({ rows }) } as unknown as Database,
    now: () => timestampFromDate(AT),
    responses: RESPONSES,
    observer: {
      finished: ({ id }, isLearnedLater) => told.push([id, isLearnedLater]),
      finishFailed: (paymentId, error) => told.push([paymentId, error]),
    },
    eventWritten: () => told.push('event'),
    schedule: { leaseMarginMs: 60_000, firstLookUpMs: 1_000, closingMarginMs: 10_000 },
  };
}

/** A finish of a claimed payment, taken over twice, and the claim's record. */
function finished(outcome: Outcome, over: { capture?: boolean; wallet?: boolean; plain?: boolean } = {}) {
  const { attempt } = attemptToClaim({ vault: !over.plain });
  const { record } = attempt;
  for (const one of record.transactionsHistory) {
    if (over.wallet) one.category = Transaction_Category.WALLET;
  }
  const taken = { ...attempt, fence: 2, ageMs: 8_000, capture: over.capture ?? true };
  const finish = finishOf(depsOf(), taken, record, outcome);
  return { attempt, finish };
}

describe('the finish of a payment', () => {
  /** The look-up pause at that age, without jitter. */
  const PAUSE_S = 4;
  const [NEVER, DAY_S] = [undefined, 86_400];
  it.each<[string, Outcome, Parameters<typeof finished>[1], unknown[]]>([
    ['approved', APPROVED, {}, ['SUCCEEDED', 'SUCCEEDED', NEVER, NEVER, 'keep']],
    [
      'approved, to be captured',
      APPROVED,
      { capture: false },
      ['SUCCEEDED', 'SUCCEEDED', NEVER, DAY_S, 'keep'],
    ],
    ['declined', declined('51'), { capture: false }, ['DECLINED', 'DECLINED', NEVER, NEVER, 'drop']],
    ['not sent', NOT_SENT, {}, ['ERROR', 'ERROR', NEVER, NEVER, 'drop']],
    ['unknown', UNKNOWN, {}, ['PENDING', 'PENDING', PAUSE_S, NEVER, 'wait']],
    ['pending', PENDING, {}, ['PENDING', 'PENDING', PAUSE_S, NEVER, 'wait']],
    ['pending at a wallet', PENDING, { wallet: true }, ['PENDING', 'PENDING', NEVER, PAUSE_S, 'wait']],
    ['to be completed', TO_COMPLETE, {}, ['PENDING', 'PENDING', PAUSE_S, NEVER, 'wait']],
    ['a challenge', REDIRECT, {}, ['PENDING', 'PENDING', NEVER, 60, 'wait']],
    [
      'a redirect',
      REDIRECT,
      { wallet: true, plain: true },
      ['READY_TO_PAY', 'CREATED', NEVER, 60, undefined],
    ],
  ])('says what becomes of it, and when it is asked for again: %s', (_what, outcome, over, expected) => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const { finish } = finished(outcome, over);
    const { status, transactionStatus, lookUpInS, followUpInS, vault } = finish;
    expect([status, transactionStatus, lookUpInS, followUpInS, vault?.fate]).toEqual(expected);
  });

  it('names its attempt, the fencing token, the reference, and the card with the time of the approval', () => {
    const { attempt, finish } = finished({ ...APPROVED, reference: 'theirs' } as Outcome);
    expect(finish).toMatchObject({
      ...{ payment: attempt.record, accountId: attempt.record.accountId, paymentId: attempt.paymentId },
      ...{ transactionId: attempt.transactionId, fence: 2, reference: 'theirs', event: 'payment.purchase' },
      ...{ answer: RESPONSES.own, reopens: undefined },
      vault: { token: attempt.vaultedToken, fate: 'keep', at: AT.toISOString() },
    });
    expect(finished(NOT_SENT).finish).toMatchObject({ reference: undefined });
  });
});

describe('writing a finish', () => {
  const row = { earlier: null, told: null, event: false };
  const later = { earlier: Buffer.from('answer'), told: Buffer.from('record'), event: false };

  it.each<[string, unknown[], unknown, (id: string) => unknown[]]>([
    ['that changed nothing', [], false, () => []],
    ['of the first response', [row], { earlier: undefined }, (id) => [[id, false]]],
    [
      'with an event',
      [{ ...row, event: true }],
      { event: true, earlier: undefined },
      (id) => ['event', [id, false]],
    ],
    [
      'after the response',
      [later],
      { earlier: { answer: later.earlier, record: later.told } },
      (id) => [[id, true]],
    ],
  ])('tells what was written, once: %s', async (_what, rows, expected, tells) => {
    const { finish } = finished(APPROVED, { plain: true });
    expect(await writeFinish(depsOf(rows), finish)).toEqual(expected);
    expect(told).toEqual(tells(finish.paymentId));
  });
});

describe('a write while the database is unavailable', () => {
  const unavailable = new DatabaseUnavailableError(new Error('refused'));
  const pauses: unknown[] = [];
  let duringPause: (signal: AbortSignal | undefined) => void;
  /** Fails so many times, and is written then. */
  function failing(times: number, error: Error = unavailable) {
    let left = times;
    return vi.fn(async () => {
      if (left-- > 0) throw error;
      return 'written';
    });
  }
  const untilWrittenBy = (write: () => Promise<string>, stop?: AbortSignal) =>
    untilWritten(depsOf(), 'a payment', write, stop);

  beforeEach(() => {
    pauses.length = 0;
    duringPause = () => {};
    vi.spyOn(timers, 'setTimeout').mockImplementation(async (ms, value, options) => {
      pauses.push(ms);
      duringPause(options?.signal);
      return value as never;
    });
    syncBuiltinESMExports();
  });
  afterEach(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });

  it('is tried sixty times, after pauses that double from 20 ms to 2 s', async () => {
    const write = failing(60);
    await expect(untilWrittenBy(write)).rejects.toBe(unavailable);
    expect(write).toHaveBeenCalledTimes(60);
    expect(pauses).toEqual(Array.from({ length: 59 }, (_, i) => Math.min(20 * 2 ** i, 2_000)));
    expect(told).toEqual(Array(60).fill(['a payment', unavailable]));
  });

  it('is over once it is written', async () => {
    expect(await untilWrittenBy(failing(59))).toBe('written');
    const write = failing(2);
    expect(await untilWrittenBy(write)).toBe('written');
    expect(write).toHaveBeenCalledTimes(3);
  });

  it('is not tried again for a fault of ours', async () => {
    const fault = new Error('a fault of ours');
    await expect(untilWrittenBy(failing(1, fault))).rejects.toBe(fault);
    expect(pauses).toEqual([]);
    expect(told).toEqual([['a payment', fault]]);
  });

  it('is tried once when it is to stop already', async () => {
    await expect(untilWrittenBy(failing(1), AbortSignal.abort())).rejects.toBe(unavailable);
    expect(pauses).toEqual([]);
  });

  it('is tried a last time, at once, when it is to stop during a pause', async () => {
    const stop = new AbortController();
    const signals: unknown[] = [];
    duringPause = (signal) => {
      signals.push(signal);
      stop.abort();
      // As the timer does that was given the signal.
      throw stop.signal.reason;
    };
    const write = failing(3);
    await expect(untilWrittenBy(write, stop.signal)).rejects.toBe(unavailable);
    expect(write).toHaveBeenCalledTimes(2);
    expect(signals).toEqual([stop.signal]);
  });
});

describe('waiting for a write for a limited time', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('gives back what is written in time, or throws what fails in time, and leaves no timer', async () => {
    expect(await within(Promise.resolve('written'), 5)).toBe('written');
    const failure = new Error('failed');
    await expect(within(Promise.reject(failure), 5)).rejects.toBe(failure);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('gives back nothing when the time is over, whatever becomes of the write', async () => {
    const write = Promise.withResolvers<string>();
    const waited = within(write.promise, 5);
    vi.advanceTimersByTime(5);
    expect(await waited).toBeUndefined();
    // Nobody else waits for it: it would end the process.
    write.reject(new Error('failed later'));
    await new Promise((resolve) => setImmediate(resolve));
  });

  it('takes half of the margin of the lease, and 5 s at most', () => {
    const waitMs = (leaseMarginMs: number) => finishWaitMs({ ...depsOf().schedule, leaseMarginMs });
    expect([waitMs(2_000), waitMs(10_000), waitMs(60_000)]).toEqual([1_000, 5_000, 5_000]);
  });
});
