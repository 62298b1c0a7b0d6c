import { setTimeout } from 'node:timers/promises';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Prompted } from '#src/store/engine/checks.ts';
import type { NewsName } from '#src/store/tables/notifications.ts';

/** Work that its caller knows to be due: a transaction to check, or news whose transaction is yet to be found. */
export type Handed = Prompted | NewsName;

/** A connection's work in this replica. */
export type Lane = {
  /** Checks in progress. */
  readonly checks: Set<Promise<void>>;
  /** Due transactions that wait for a slot, by id. */
  readonly due: Map<string, Prompted>;
  /** News to route. */
  readonly news: NewsName[];
  /** true: more may be due than is known here, so that a search is worthwhile. */
  isMore: boolean;
};

/** The work of all connections. Only memory holds it: work that is lost is found by the next search of any replica. */
export type Lanes = {
  /** Returns a connection's lane. */
  of(connectionId: string): Lane;
  /** Adds work to its connection's lane as soon as it is due. */
  hand(handed: Handed): void;
  /** Notes that work may be due at these connections that is not known here. */
  search(connectionIds: readonly string[]): void;
  /** Resolves when the checks in progress have ended. */
  ended(): Promise<void>;
};

/** Maximum number of transactions, and of news, in a lane. A search finds the others. */
const MAX_HANDED = 1_000;
/** The database's clock decides what is due, so work is handed over slightly later than due. */
const LATER_MS = 20;

/** Creates empty lanes. @param wake called when a lane has got work. */
export function createLanes(wake: () => void): Lanes {
  const lanes = new Map<string, Lane>();
  function laneOf(connectionId: string): Lane {
    const lane = lanes.get(connectionId) ?? { checks: new Set(), due: new Map(), news: [], isMore: false };
    lanes.set(connectionId, lane);
    return lane;
  }
  return {
    of: laneOf,
    async hand(handed) {
      const isCheck = 'inS' in handed;
      if (isCheck && handed.inS > 0) {
        await setTimeout(handed.inS * 1_000 + LATER_MS, undefined, { ref: false });
      }
      const lane = laneOf(handed.connectionId);
      if ((isCheck ? lane.due.size : lane.news.length) >= MAX_HANDED) lane.isMore = true;
      else if (isCheck) lane.due.set(handed.id, handed);
      else lane.news.push(handed);
      wake();
    },
    search(connectionIds) {
      for (const id of connectionIds) laneOf(id).isMore = true;
      wake();
    },
    async ended() {
      await Promise.all([...lanes.values()].flatMap(({ checks }) => [...checks]));
    },
  };
}

/**
 * Removes up to `limit` due transactions from a lane. Removes, without returning them, those of another account at the
 * provider, which must not be asked about them.
 */
export function removeDue(lane: Lane, { identity }: ProviderConnection, limit: number): Prompted[] {
  const removed: Prompted[] = [];
  for (const [id, one] of lane.due) {
    if (removed.length === limit) break;
    lane.due.delete(id);
    if (one.identity === identity) removed.push(one);
  }
  return removed;
}
