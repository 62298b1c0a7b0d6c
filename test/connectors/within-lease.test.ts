import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BEGINS, type CallName } from '#src/connectors/guards/provider-calls.ts';
import { TOO_LATE, withinLease } from '#src/connectors/guards/within-lease.ts';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';

const DONE: Outcome = { kind: 'unknown', detail: 'called', providerData: undefined };
const CALLS = Object.keys(BEGINS) as CallName[];
let nowMs = 0;
let made: string[] = [];

beforeEach(() => {
  [nowMs, made] = [0, []];
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => {
  vi.restoreAllMocks();
});

function leased(lastCallAtMs: number) {
  const call = (name: string) => async () => {
    made.push(name);
    return DONE;
  };
  const send = async () => made.push('technicalCancel') > 0;
  const methods = Object.fromEntries(CALLS.map((name) => [name, call(name)]));
  const connection = {
    ...methods,
    deadlineMs: 10,
    technicalCancel: { afterMs: 7, send },
  } as unknown as ProviderConnection;
  return withinLease(connection, lastCallAtMs);
}

describe('a connection within a lease', () => {
  it('makes every call until the time of the last call, and none afterwards', async () => {
    const connection = leased(100);
    for (nowMs of [0, 100]) {
      for (const name of CALLS) expect(await connection[name]?.({} as never)).toBe(DONE);
      expect(await connection.technicalCancel?.send({} as LookUp)).toBe(true);
    }
    expect(made).toEqual([...CALLS, 'technicalCancel', ...CALLS, 'technicalCancel']);

    [nowMs, made] = [101, []];
    for (const name of CALLS) await connection[name]?.({} as never);
    expect(await connection.technicalCancel?.send({} as LookUp)).toBe(false);
    expect(made).toEqual([]);
    expect(connection.technicalCancel?.afterMs).toBe(7);
  });

  it.each([
    [0, 11],
    [90, 2],
    [91, 1],
    [100, 1],
    [101, 0],
    [500, 0],
  ])('at %d ms, has time for %d successive calls that take until their deadline', (atMs, calls) => {
    nowMs = atMs;
    expect(leased(100).callsLeft()).toBe(calls);
  });

  it('reports a call that is not made as not sent, but a look-up that is not made proves nothing', async () => {
    const connection = leased(-1);
    const outcomes = await Promise.all(
      CALLS.map(async (name) => [name, await connection[name]?.({} as never)] as const),
    );
    const notSent = outcomes.filter(([, outcome]) => outcome === TOO_LATE).map(([name]) => name);
    expect(notSent).toEqual(['pay', 'capture', 'cancel', 'refund', 'complete', 'enrollWallet']);
    const others = outcomes.filter(([, outcome]) => outcome !== TOO_LATE);
    expect(others.map(([name, outcome]) => `${name} ${outcome?.kind}`)).toEqual([
      'lookUp unknown',
      'repeatOperation unknown',
      'lookUpEnrollment unknown',
    ]);
  });
});
