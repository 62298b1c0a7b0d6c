import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Database } from '#src/store/engine/database.ts';
import { ConnectionLostError, DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { groupCommits } from '#src/store/engine/group-commit.ts';

const databaseAt = (roundTripMs: number) => ({ roundTripMs: () => roundTripMs }) as Database;
/** A row whose account is its first letter. */
type Row = { readonly accountId: string; readonly row: string };

/** Returns a write that records its rows and waits until the test releases it. */
function scripted(
  many: (rows: readonly string[]) => readonly (string | undefined)[] | Error,
  database = databaseAt(0),
) {
  const asked: (string | readonly string[])[] = [];
  const gates: (() => void)[] = [];
  const gate = () => new Promise<void>((resolve) => gates.push(resolve));
  const write = groupCommits<Row, string>({
    async one(_database, { row }) {
      asked.push(row);
      await gate();
      return `${row} alone`;
    },
    async many(_database, given) {
      const rows = given.map(({ row }) => row);
      asked.push(rows);
      await gate();
      const results = many(rows);
      if (results instanceof Error) throw results;
      return results;
    },
  });
  return {
    write: (row: string) => write(database, { accountId: row.charAt(0), row }),
    writeBeside: (stepMs: number, row: string) => write(database, { accountId: row.charAt(0), row }, stepMs),
    asked,
    /** Ends the longest-running write, and waits until the next has begun. */
    async letFirstGo(): Promise<void> {
      gates.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
    /** Ends all writes, and those that begin as a result. */
    async letGo(): Promise<void> {
      while (gates.length > 0) {
        for (const go of gates.splice(0)) go();
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

function rolledBack(code: string): Error {
  return Object.assign(new pg.DatabaseError('no', 2, 'error'), { severity: 'ERROR', code });
}

const together = (rows: readonly string[]) => rows.map((row) => `${row} together`);

describe('grouped writes', () => {
  it('a write begins at once and alone when no other is in progress', async () => {
    const { write, asked, letGo } = scripted(together);
    const first = write('a');
    expect(asked).toEqual(['a']);
    await letGo();
    expect(await first).toBe('a alone');
  });

  it('writes that arrive while another is in progress are written together', async () => {
    const { write, asked, letGo } = scripted(together);
    const results = Promise.all(['a', 'b', 'c'].map(write));
    expect(asked).toEqual(['a']);
    await letGo();
    expect(await results).toEqual(['a alone', 'b together', 'c together']);
    expect(asked).toEqual(['a', ['b', 'c']]);
  });

  it('a group has at most 64 writes', async () => {
    const { write, asked, letGo } = scripted(together);
    const results = Promise.all(Array.from({ length: 70 }, (_, index) => write(String(index))));
    await letGo();
    await results;
    expect(asked.map((rows) => (typeof rows === 'string' ? 1 : rows.length))).toEqual([1, 64, 5]);
  });

  it('on a distributed database a group has writes of one account, and no account waits for another', async () => {
    const { write, asked, letGo } = scripted(together, { ...databaseAt(0), isDistributed: true });
    const rows = ['a1', 'b1', 'a2', 'b2', 'a3'];
    const results = Promise.all(rows.map(write));
    expect(asked).toEqual(['a1', 'b1']);
    await letGo();
    expect(await results).toEqual(['a1 alone', 'b1 alone', 'a2 together', 'b2 alone', 'a3 together']);
    expect(asked).toEqual(['a1', 'b1', ['a2', 'a3'], 'b2']);
  });

  it('a write for which its group returns no result is written alone', async () => {
    const { write, asked, letGo } = scripted((rows) => rows.map((row) => (row === 'c' ? undefined : row)));
    const results = Promise.all(['a', 'b', 'c'].map(write));
    await letGo();
    expect(await results).toEqual(['a alone', 'b', 'c alone']);
    expect(asked).toEqual(['a', ['b', 'c'], 'c']);
  });

  it.each(['22P05', '40P01', '57014'])(
    'writes whose group was rolled back with %s are written alone',
    async (sqlState) => {
      const { write, letGo } = scripted(() => rolledBack(sqlState));
      const results = Promise.all(['a', 'b', 'c'].map(write));
      await letGo();
      expect(await results).toEqual(['a alone', 'b alone', 'c alone']);
    },
  );

  it.each([
    ['may have been committed', new ConnectionLostError(new Error('Connection terminated unexpectedly'))],
    ['found no connection', new DatabaseUnavailableError(new Error('refused'))],
  ])(
    'writes whose group %s are rejected with the group’s error and not written again',
    async (_what, error) => {
      const { write, asked, letGo } = scripted(() => error);
      const results = Promise.allSettled(['a', 'b', 'c'].map(write));
      await letGo();
      expect(await results).toEqual([
        { status: 'fulfilled', value: 'a alone' },
        { status: 'rejected', reason: error },
        { status: 'rejected', reason: error },
      ]);
      expect(asked).toEqual(['a', ['b', 'c']]);
    },
  );

  it('a group runs in the async context of its first write', async () => {
    const context = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const note = async () => {
      seen.push(context.getStore());
      return [];
    };
    const write = groupCommits<Row, string>({
      one: async (_database, { row }) => {
        await note();
        return row;
      },
      many: note,
    });
    const rows = ['a', 'b', 'c', 'd'];
    await Promise.all(
      rows.map((row) => context.run(row, () => write(databaseAt(0), { accountId: '', row }))),
    );
    expect(seen.slice(0, 2)).toEqual(['a', 'b']);
  });
});

describe('a slow write', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('a slow write delays others for at most 50 ms, counted from its own start', async () => {
    const { write, asked, letFirstGo, letGo } = scripted(together);
    const first = write('a');
    vi.advanceTimersByTime(30);
    await letFirstGo();
    const others = Promise.all(['held up', 'b', 'c'].map(write));
    vi.advanceTimersByTime(49);
    expect(asked).toEqual(['a', 'held up']);
    vi.advanceTimersByTime(1);
    expect(asked).toEqual(['a', 'held up', ['b', 'c']]);
    await letGo();
    expect(await first).toBe('a alone');
    expect(await others).toEqual(['held up alone', 'b together', 'c together']);
  });

  it.each([
    [2.9, 50],
    [8, 2],
    [100, 25],
    [400, 50],
  ])(
    'writes to a database with a round trip of %s ms gather in a group for at most %i ms',
    async (roundTripMs, longestMs) => {
      const { write, asked, letGo } = scripted(together, databaseAt(roundTripMs));
      const results = Promise.all(['a', 'b', 'c'].map(write));
      vi.advanceTimersByTime(longestMs - 1);
      expect(asked).toEqual(['a']);
      vi.advanceTimersByTime(1);
      expect(asked).toEqual(['a', ['b', 'c']]);
      const later = write('d');
      vi.advanceTimersByTime(longestMs);
      expect(asked).toEqual(['a', ['b', 'c'], 'd']);
      await letGo();
      expect(await results).toEqual(['a alone', 'b together', 'c together']);
      expect(await later).toBe('d alone');
    },
  );

  it('the end of a slow write starts no group while another write is in progress', async () => {
    const { write, asked, letFirstGo, letGo } = scripted(together);
    const results = [write('held up'), write('b')];
    vi.advanceTimersByTime(50);
    results.push(write('c'));
    await letFirstGo();
    expect(asked).toEqual(['held up', 'b']);
    results.push(write('d'));
    await letGo();
    expect(await Promise.all(results)).toEqual(['held up alone', 'b alone', 'c together', 'd together']);
    expect(asked).toEqual(['held up', 'b', ['c', 'd']]);
  });
});

describe('a write beside a slow step', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Returns a write whose writes have arrived once in so many milliseconds. */
  async function arrivingEvery(gapMs: number, database?: Database) {
    const group = scripted(together, database);
    for (let arrived = 0; arrived < 300; arrived++) {
      vi.advanceTimersByTime(gapMs);
      void group.write('before');
      await group.letGo();
    }
    group.asked.length = 0;
    return group;
  }

  it.each([
    [100, 1],
    [300, 3],
    [10_000, 5],
  ])('a write beside a step of %i ms waits %i ms for others', async (stepMs, waitMs) => {
    const { writeBeside, asked, letGo } = await arrivingEvery(0.5);
    const results = [writeBeside(stepMs, 'a')];
    vi.advanceTimersByTime(waitMs - 1);
    results.push(writeBeside(stepMs, 'b'));
    expect(asked).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(asked).toEqual([['a', 'b']]);
    await letGo();
    expect(await Promise.all(results)).toEqual(['a together', 'b together']);
  });

  it('a write that does not wait takes the waiting ones along', async () => {
    const { write, writeBeside, asked, letGo } = await arrivingEvery(0.5);
    const results = [writeBeside(400, 'a'), write('b')];
    expect(asked).toEqual([['a', 'b']]);
    await letGo();
    expect(await Promise.all(results)).toEqual(['a together', 'b together']);
  });

  it('a write whose wait is over first ends the wait of all', async () => {
    const { writeBeside, asked, letGo } = await arrivingEvery(0.5);
    const results = [writeBeside(400, 'a'), writeBeside(100, 'b')];
    vi.advanceTimersByTime(1);
    expect(asked).toEqual([['a', 'b']]);
    await letGo();
    await Promise.all(results);
  });

  it('a full group begins at once', async () => {
    const { writeBeside, asked, letGo } = await arrivingEvery(0.5);
    const rows = Array.from({ length: 64 }, (_, index) => `${index}`);
    const results = Promise.all(rows.map((row) => writeBeside(400, row)));
    expect(asked).toEqual([rows]);
    await letGo();
    await results;
  });

  it('a write that arrives during a group waits no longer than on arrival', async () => {
    const { write, writeBeside, asked, letFirstGo, letGo } = await arrivingEvery(0.5);
    const results = [write('a'), writeBeside(400, 'b')];
    vi.advanceTimersByTime(3);
    await letFirstGo();
    expect(asked).toEqual(['a']);
    vi.advanceTimersByTime(1);
    expect(asked).toEqual(['a', 'b']);
    await letGo();
    await Promise.all(results);
  });

  it.each([
    ['that arrives when others are rare', 6, databaseAt(0)],
    ['to a distributed database', 0.5, { ...databaseAt(0), isDistributed: true }],
  ])('a write %s does not wait', async (_which, gapMs, database) => {
    const { writeBeside, asked, letGo } = await arrivingEvery(gapMs, database);
    const result = writeBeside(10_000, 'a');
    expect(asked).toEqual(['a']);
    await letGo();
    expect(await result).toBe('a alone');
  });
});
