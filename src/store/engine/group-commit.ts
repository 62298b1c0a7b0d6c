import { AsyncLocalStorage } from 'node:async_hooks';
import type { Database } from './database.ts';
import { DatabaseUnavailableError, isSurelyNotCommitted } from './database-error.ts';

/** A row of an account. */
type OfAccount = { readonly accountId: string };

/** A kind of write, for one row and for many. */
export type GroupedWrite<Row extends OfAccount, Result> = {
  /** Returns the kind of a row: if the database is distributed, a commit has rows of one kind. By default, there is one. */
  kindOf?(row: Row): string;
  /** Writes one row. */
  one(database: Database, row: Row): Promise<Result>;
  /**
   * Writes many rows in one commit, of one account if the database is distributed. The results are in the order of the
   * rows; undefined for a row that was not written and is left to `one`.
   */
  many(database: Database, rows: readonly Row[]): Promise<readonly (Result | undefined)[]>;
};

/** Limit on the rows of one commit: high enough to make its cost negligible, low enough that nobody waits for it. */
const MAX_ROWS = 64;
/** Time after which later writes stop waiting for a statement, since something, such as a row lock, blocks it. */
const SLOW_MS = 50;
/**
 * Round trip from which a database counts as distant: waiting for a commit then takes longer than the commit's own
 * work.
 */
const DISTANT_MS = 3;
/** Fraction of a round trip during which writes to a distant database gather. */
const GATHERING_SHARE = 1 / 4;
/** A write beside a slow step waits for others for this fraction of the step, and no longer than the limit. */
const WAIT_SHARE = 1 / 100;
const MAX_WAIT_MS = 5;
/** Number of arrivals over which the time between them is averaged, and the longest such time that counts. */
const RECENT_ARRIVALS = 32;
const LONGEST_GAP_MS = 100;

type Waiting<Row, Result> = {
  readonly row: Row;
  /** When it stops waiting for others to come. */
  readonly untilMs: number;
  readonly resolve: (result: Result | Promise<Result>) => void;
  readonly reject: (error: unknown) => void;
  /** Runs in the context of the row's request, to which its trace belongs. */
  readonly inContext: <T>(work: () => T) => T;
};

/**
 * Groups writes that arrive during another into the next commit: a commit costs the database about as much for many
 * rows as for one. A write that finds no other in progress does not wait. If the database is distant, a group begins
 * soon after the previous group begins, rather than when it ends.
 *
 * A write beside a slow step, such as a call to a provider that takes a second, waits a moment for others, if writes
 * arrive so often that some are to be expected. A write that does not wait takes those that do along.
 *
 * A faulty row fails alone: if the database rolls a group back, each row is written by itself. If it is unknown whether
 * a group was committed, each of its rows is rejected, as a single write would be.
 */
export function groupCommits<Row extends OfAccount, Result>(
  write: GroupedWrite<Row, Result>,
): (database: Database, row: Row, stepMs?: number) => Promise<Result> {
  type Group = (row: Row, waitMs: number) => Promise<Result>;
  type Site = { readonly groups: Map<string, Group>; readonly meanGapMs: () => number };
  const sites = new WeakMap<Database, Site>();
  const newSite = (): Site => ({ groups: new Map(), meanGapMs: createMeanGap() });
  return (database, row, stepMs = 0) => {
    const site = sites.get(database) ?? newSite();
    sites.set(database, site);
    const { groups } = site;
    const name = database.isDistributed ? `${write.kindOf?.(row) ?? ''} ${row.accountId}` : ALL_ACCOUNTS;
    let group = groups.get(name);
    if (!group) {
      group = groupOf(database, write, () => groups.delete(name));
      groups.set(name, group);
    }
    const gapMs = site.meanGapMs();
    // A distributed database has a group for each account, and the others' arrivals do not matter to it.
    const waitMs = database.isDistributed ? 0 : Math.min(stepMs * WAIT_SHARE, MAX_WAIT_MS);
    // It waits only if another is to be expected meanwhile.
    return group(row, waitMs < gapMs ? 0 : waitMs);
  };
}

/** Returns a function that is called for each arrival and returns the mean time between the recent ones. */
function createMeanGap(): () => number {
  let lastMs = Number.NEGATIVE_INFINITY;
  let meanMs = LONGEST_GAP_MS;
  return () => {
    const nowMs = performance.now();
    meanMs += (Math.min(nowMs - lastMs, LONGEST_GAP_MS) - meanMs) / RECENT_ARRIVALS;
    lastMs = nowMs;
    return meanMs;
  };
}

/** Returns how long writes wait for the group before theirs. */
function longestWaitMs(roundTripMs: number): number {
  return roundTripMs < DISTANT_MS ? SLOW_MS : Math.min(roundTripMs * GATHERING_SHARE, SLOW_MS);
}

/** Name of the group of a database that is not distributed. */
const ALL_ACCOUNTS = '';

/** Returns when the first of these rows stops waiting. */
function endOfWaitMs(rows: readonly { readonly untilMs: number }[]): number {
  return rows.reduce((first, { untilMs }) => Math.min(first, untilMs), Number.POSITIVE_INFINITY);
}

/** @param idle called when no row is left; the next row may begin another group. */
function groupOf<Row extends OfAccount, Result>(
  database: Database,
  write: GroupedWrite<Row, Result>,
  idle: () => void,
) {
  const waiting: Waiting<Row, Result>[] = [];
  let isBusy = false;
  let gathering: NodeJS.Timeout | undefined;

  /** Begins a group, unless all of its rows may still wait for others. */
  function next(): void {
    isBusy = false;
    clearTimeout(gathering);
    if (waiting.length === 0) {
      idle();
      return;
    }
    const waitMs = waiting.length < MAX_ROWS ? endOfWaitMs(waiting) - performance.now() : 0;
    if (waitMs > 0) gathering = setTimeout(next, waitMs);
    else begin(waiting.splice(0, MAX_ROWS));
  }

  function begin(rows: readonly Waiting<Row, Result>[]): void {
    isBusy = true;
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      next();
    }, longestWaitMs(database.roundTripMs()));
    void rows[0]
      ?.inContext(() => writeAll(rows))
      .then(() => {
        clearTimeout(late);
        if (!isLate) next();
      });
  }

  /** Settles every row; never rejects. */
  async function writeAll(rows: readonly Waiting<Row, Result>[]): Promise<void> {
    const [only] = rows;
    if (rows.length === 1 && only) {
      await write.one(database, only.row).then(only.resolve, only.reject);
      return;
    }
    const alone = ({ row, resolve }: Waiting<Row, Result>) => resolve(write.one(database, row));
    try {
      const results = await write.many(
        database,
        rows.map(({ row }) => row),
      );
      rows.forEach((it, index) => {
        const result = results[index];
        if (result === undefined) alone(it);
        else it.resolve(result);
      });
    } catch (error) {
      const isRolledBack = isSurelyNotCommitted(error) && !(error instanceof DatabaseUnavailableError);
      for (const it of rows) {
        if (isRolledBack) alone(it);
        else it.reject(error);
      }
    }
  }

  return (row: Row, waitMs: number) => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const untilMs = waitMs === 0 ? 0 : performance.now() + waitMs;
    waiting.push({ row, untilMs, resolve, reject, inContext: AsyncLocalStorage.snapshot() });
    if (!isBusy) next();
    return promise;
  };
}
