import { AsyncLocalStorage } from 'node:async_hooks';
import type { Database } from './database.ts';
import { DatabaseUnavailableError, isSurelyNotCommitted } from './database-error.ts';

/** A row of an account. */
type OfAccount = { readonly accountId: string };

/** A kind of write, for one row and for many. */
export type GroupedWrite<Row extends OfAccount, Result> = {
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

type Waiting<Row, Result> = {
  readonly row: Row;
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
 * A faulty row fails alone: if the database rolls a group back, each row is written by itself. If it is unknown whether
 * a group was committed, each of its rows is rejected, as a single write would be.
 */
export function groupCommits<Row extends OfAccount, Result>(
  write: GroupedWrite<Row, Result>,
): (database: Database, row: Row) => Promise<Result> {
  const byDatabase = new WeakMap<Database, Map<string, (row: Row) => Promise<Result>>>();
  return (database, row) => {
    const groups = byDatabase.get(database) ?? new Map<string, (row: Row) => Promise<Result>>();
    byDatabase.set(database, groups);
    const name = database.isDistributed ? row.accountId : ALL_ACCOUNTS;
    let group = groups.get(name);
    if (!group) {
      group = groupOf(database, write, () => groups.delete(name));
      groups.set(name, group);
    }
    return group(row);
  };
}

/** Returns how long writes wait for the group before theirs. */
function longestWaitMs(roundTripMs: number): number {
  return roundTripMs < DISTANT_MS ? SLOW_MS : Math.min(roundTripMs * GATHERING_SHARE, SLOW_MS);
}

/** Name of the group of a database that is not distributed. */
const ALL_ACCOUNTS = '';

/** @param idle called when no row is left; the next row may begin another group. */
function groupOf<Row extends OfAccount, Result>(
  database: Database,
  write: GroupedWrite<Row, Result>,
  idle: () => void,
) {
  const waiting: Waiting<Row, Result>[] = [];
  let isBusy = false;

  function next(): void {
    const rows = waiting.splice(0, MAX_ROWS);
    const [first] = rows;
    isBusy = first !== undefined;
    if (!first) {
      idle();
      return;
    }
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      next();
    }, longestWaitMs(database.roundTripMs()));
    void first
      .inContext(() => writeAll(rows))
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

  return (row: Row) => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    waiting.push({ row, resolve, reject, inContext: AsyncLocalStorage.snapshot() });
    if (!isBusy) next();
    return promise;
  };
}
