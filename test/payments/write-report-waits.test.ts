import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { within, writeWaitMs } from '#src/payments/until-written.ts';
import { type WriteDeps, writeOwnOutcome, writeReport } from '#src/payments/write-change.ts';
import type { Database } from '#src/store/engine/database.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { attemptToClaim } from '../support/claimed-rows.ts';
import { coreDeps } from '../support/core-deps.ts';
import { APPROVED } from '../support/outcomes.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { RESPONSES } from '../support/stored-responses.ts';

/** Everything that the write reports, in order. */
let told: unknown[];
beforeEach(() => {
  told = [];
});
afterEach(() => {
  vi.restoreAllMocks();
});

const schedule = { leaseMarginMs: 60_000, firstCheckMs: 1_000, closingMarginMs: 10_000 };

/** Dependencies on a database with a constant answer. */
function depsOf(query: () => Promise<{ rows: readonly unknown[] }>): WriteDeps {
  const database = { query, roundTripMs: () => 0 } as unknown as Database;
  const deps = coreDeps({ database, responses: RESPONSES, connections: new Map() });
  return {
    ...deps,
    now: () => timestampFromDate(new Date('2026-01-31T09:08:07.000Z')),
    observer: {
      ...deps.observer,
      finished: ({ id }, isLearnedLater) => told.push([id, isLearnedLater]),
      finishFailed: (paymentId, error) => told.push([paymentId, error]),
    },
    eventWritten: () => told.push('event'),
    schedule,
  };
}

/** Writes the approval of a claimed attempt, as its caller does. */
function writeApproval(query: Parameters<typeof depsOf>[0]) {
  const { attempt: open } = attemptToClaim();
  const { paymentId, transactionId, record } = open;
  const shown = { vaultedToken: undefined, cardFingerprint: undefined };
  const attempt = {
    id: transactionId,
    ...shown,
    capture: true,
    methodKind: 'CARD',
    awaitsPayer: false,
  } as const;
  const own = {
    accountId: ACCOUNT_ONE,
    paymentId,
    transactionId,
    fence: 0,
    version: 0,
    record,
    attempt,
    stepMs: 0,
  };
  return { paymentId, written: writeOwnOutcome(depsOf(query), own, APPROVED) };
}

const row = { result: 'written', fence: 1, has_event: false, earlier_response: null, earlier_record: null };
const earlier = { response: Buffer.from('response'), record: Buffer.from('record') };
const later = { ...row, earlier_response: earlier.response, earlier_record: earlier.record };

describe('writing the outcome of an attempt', () => {
  it.each<[string, unknown[], unknown, (id: string) => unknown[]]>([
    ['an outcome of an attempt that nobody holds any more', [[{ result: 'lost' }]], 'lost', () => []],
    [
      'an outcome that is the first response',
      [[row]],
      { fence: 1, earlier: undefined },
      (id) => [[id, false]],
    ],
    [
      'an outcome with an event',
      [[{ ...row, has_event: true }]],
      { fence: 1, earlier: undefined },
      (id) => ['event', [id, false]],
    ],
    ['an outcome after the response', [[later]], { fence: 1, earlier }, (id) => [[id, true]]],
    [
      'an outcome of an attempt that another worker has claimed meanwhile',
      [[{ ...row, fence: null }]],
      { fence: undefined, earlier: undefined },
      (id) => [[id, false]],
    ],
  ])(
    'the outcome of an attempt is reported once for each write: %s',
    async (_what, answers, expected, tells) => {
      const rest = [...answers] as unknown[][];
      const { paymentId, written } = writeApproval(async () => ({ rows: rest.shift() ?? [] }));
      expect(await written).toEqual(
        typeof expected === 'string' ? expected : { ...(expected as object), record: expect.anything() },
      );
      expect([told, rest]).toEqual([tells(paymentId), []]);
    },
  );
});

describe('a write while the database is unavailable', () => {
  const unavailable = new DatabaseUnavailableError(new Error('refused'));
  const pauses: unknown[] = [];
  let duringPause: (signal: AbortSignal | undefined) => void;
  /** A database that fails the given number of times before it writes. */
  function failing(times: number, error: Error = unavailable) {
    let left = times;
    return vi.fn(async () => {
      if (left-- > 0) throw error;
      return { rows: [row] };
    });
  }
  const leased = { accountId: ACCOUNT_ONE, paymentId: 'a payment', transactionId: 'its own', fence: 1 };
  const report = { kind: 'lapsed', transactionId: 'its own' } as const;
  const writeUntil = (query: ReturnType<typeof failing>, stop: AbortSignal) =>
    writeReport(depsOf(query), leased, report, stop);

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

  it('a write is tried sixty times while the database is unavailable, after pauses from 20 ms to 2 s', async () => {
    const write = failing(60);
    const { paymentId, written } = writeApproval(write);
    await expect(written).rejects.toBe(unavailable);
    expect(write).toHaveBeenCalledTimes(60);
    expect(pauses).toEqual(Array.from({ length: 59 }, (_, i) => Math.min(20 * 2 ** i, 2_000)));
    expect(told).toEqual(Array(60).fill([paymentId, unavailable]));
  });

  it('a retried write ends once it succeeds', async () => {
    expect(await writeApproval(failing(59)).written).toMatchObject({ fence: 1 });
    const write = failing(2);
    expect(await writeApproval(write).written).toMatchObject({ fence: 1 });
    expect(write).toHaveBeenCalledTimes(3);
  });

  it('a write is not retried after an internal fault', async () => {
    const fault = new Error('a fault of ours');
    const { paymentId, written } = writeApproval(failing(1, fault));
    await expect(written).rejects.toBe(fault);
    expect(pauses).toEqual([]);
    expect(told).toEqual([[paymentId, fault]]);
  });

  it('a write is tried once if its signal is already aborted', async () => {
    await expect(writeUntil(failing(1), AbortSignal.abort())).rejects.toBe(unavailable);
    expect(pauses).toEqual([]);
  });

  it('a write whose signal is aborted during a pause is tried one last time at once', async () => {
    const stop = new AbortController();
    const signals: unknown[] = [];
    duringPause = (signal) => {
      signals.push(signal);
      stop.abort();
      // The timer of the pause throws this when its signal is aborted.
      throw stop.signal.reason;
    };
    const write = failing(3);
    await expect(writeUntil(write, stop.signal)).rejects.toBe(unavailable);
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

  it('waiting for a write returns its result or throws its error in time, and leaves no timer', async () => {
    expect(await within(Promise.resolve('written'), 5)).toBe('written');
    const failure = new Error('failed');
    await expect(within(Promise.reject(failure), 5)).rejects.toBe(failure);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('waiting for a write returns nothing when the time is over, whatever the result', async () => {
    const write = Promise.withResolvers<string>();
    const waited = within(write.promise, 5);
    vi.advanceTimersByTime(5);
    expect(await waited).toBeUndefined();
    // If unhandled, the rejection would end the process.
    write.reject(new Error('failed later'));
    await new Promise((resolve) => setImmediate(resolve));
  });

  it('the wait for a write takes half of the margin of the lease, but at most 5 s', () => {
    const waitMs = (leaseMarginMs: number) => writeWaitMs({ ...schedule, leaseMarginMs });
    expect([waitMs(2_000), waitMs(10_000), waitMs(60_000)]).toEqual([1_000, 5_000, 5_000]);
  });
});
