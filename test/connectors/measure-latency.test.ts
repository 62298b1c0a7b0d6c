import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { measureLatency } from '#src/connectors/guards/measure-latency.ts';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import { cardAttempt } from './attempts.ts';
import { OUTCOMES } from './guarded-connection.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A connection whose calls take as long as `takes` says. */
function measured() {
  let tookMs = 0;
  const call = async () => {
    vi.advanceTimersByTime(tookMs);
    return OUTCOMES.approved;
  };
  const connection = measureLatency({ pay: call, lookUp: call } as unknown as ProviderConnection);
  return {
    recentMs: () => connection.recentLatencyMs?.() ?? Number.NaN,
    async pay(ms: number, times = 1) {
      tookMs = ms;
      for (let i = 0; i < times; i++) expect(await connection.pay(cardAttempt())).toBe(OUTCOMES.approved);
    },
    async lookUp(ms: number) {
      tookMs = ms;
      await connection.lookUp?.({} as LookUp);
    },
  };
}

it('the latency of a connection’s payments is the mean of the recent ones', async () => {
  const connection = measured();
  expect(connection.recentMs()).toBe(0);
  await connection.pay(800, 100);
  expect(connection.recentMs()).toBeCloseTo(800, -1);
  await connection.pay(10, 100);
  expect(connection.recentMs()).toBeLessThan(15);
});

it('one slow payment changes the latency by a sixteenth', async () => {
  const connection = measured();
  await connection.pay(1_600);
  expect(connection.recentMs()).toBe(100);
});

it('calls other than payments are not measured', async () => {
  const connection = measured();
  await connection.lookUp(5_000);
  expect(connection.recentMs()).toBe(0);
});
