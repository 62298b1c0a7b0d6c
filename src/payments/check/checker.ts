import { setTimeout } from 'node:timers/promises';
import { type LeasedConnection, withinLease } from '#src/connectors/guards/within-lease.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { AGAIN, repeat } from '#src/repeat.ts';
import { type LeasedCheck, takeDue, takeNamed } from '#src/store/engine/checks.ts';
import { callsBeginWithinMs, leaseS } from '../model/schedule.ts';
import { type CheckDeps, checkTransaction } from './check-transaction.ts';
import { createLanes, type Handed, type Lane, type Lanes, removeDue } from './lanes.ts';
import { MOST_CALLS } from './look-up-transaction.ts';
import { routeDueNews, routeNamedNews } from './news.ts';

/** Dependencies of the checker. */
export type CheckerDeps = CheckDeps & {
  /** Connections through which an outcome can be learned, by id. */
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  /** Returns true while a connection's circuit is open and its provider must not be called. */
  readonly isLeftAlone: (connectionId: string) => boolean;
};

export type { Handed };

/** A running checker. */
export type Checker = {
  /** Does this work as soon as it is due, without searching for it. */
  readonly wake: (handed: Handed) => void;
  /** Searches for what is due at these connections, which nobody may have handed over. */
  readonly search: (connectionIds: readonly string[]) => void;
  /** Resolves when the checks in progress have ended. */
  readonly stop: () => Promise<void>;
};

/**
 * Maximum number of concurrent checks per connection. Each connection has its own slots, so a slow provider cannot
 * delay the others.
 */
const CONNECTION_SLOTS = 20;
/** Maximum number of concurrent checks across all connections. Each connection has at least one slot. */
const ALL_SLOTS = 200;
/** Pause after a check ends and before the next search, so that one search fills several slots. */
const BREATH_MS = 20;

/**
 * Checks transactions that are due: unknown outcomes, redirected payers, authorizations at the end of their term, and
 * transactions with news. Any number of replicas may run checkers. Each replica leases its connections' due
 * transactions, timed by the database's clock, and a token keeps a replica that has lost its lease from overwriting
 * newer results. Only the provider can turn an outcome into "failed".
 *
 * Whoever makes a check due hands it over, so that it is leased on its account's node. A search, which needs every node
 * of a distributed database, is left for what nobody has handed over, such as the work of a replica that died.
 */
export function startChecker(deps: CheckerDeps): Checker {
  const lanes = createLanes(() => loop.wake());
  const work = async (stop: AbortSignal) => {
    const { busy, isMore } = await beginDue(deps, lanes, stop);
    // More checks may be due at connections without free slots.
    if (busy.length > 0)
      void Promise.race(busy)
        .then(() => setTimeout(BREATH_MS))
        .then(loop.wake);
    return isMore ? AGAIN : undefined;
  };
  const loop = repeat(work, { onError: deps.checked.failed });
  return {
    wake: lanes.hand,
    search: lanes.search,
    async stop() {
      await loop.stop();
      await lanes.ended();
    },
  };
}

/** Leases and checks as many due transactions as there are free slots. @returns the number leased. */
export async function checkDue(deps: CheckerDeps, stop?: AbortSignal): Promise<number> {
  const lanes = createLanes(() => {});
  lanes.search([...deps.connections().keys()]);
  const { begun } = await beginDue(deps, lanes, stop);
  await Promise.all(begun);
  return begun.length;
}

/**
 * Leases due transactions and starts their checks.
 *
 * @returns `begun`: the checks that it started; `busy`: the checks in progress at connections without free slots;
 * `isMore`: a slot is free and more checks may be due.
 */
async function beginDue(
  deps: CheckerDeps,
  lanes: Lanes,
  stop: AbortSignal | undefined,
): Promise<{
  readonly begun: readonly Promise<void>[];
  readonly busy: readonly Promise<void>[];
  readonly isMore: boolean;
}> {
  const connections = deps.connections();
  const slots = Math.max(
    1,
    Math.min(CONNECTION_SLOTS, Math.floor(ALL_SLOTS / Math.max(1, connections.size))),
  );
  const begun: Promise<void>[] = [];
  const busy: Promise<void>[] = [];
  let isMore = false;
  for (const [connectionId, connection] of connections) {
    const lane = lanes.of(connectionId);
    const free = () => (deps.isLeftAlone(connectionId) ? 0 : slots - lane.checks.size);
    const leaseWith = async (take: Take) => {
      const leased = await lease(deps, connection, take);
      for (const one of leased) begun.push(begin(deps, one.connection, one, lane.checks, stop));
      return leased.length;
    };
    const one: Filled = { deps, lanes, lane, connectionId, connection, free, leaseWith };
    await fillWithHanded(one).catch(deps.checked.failed);
    // A failure at one connection must not end the search at the others.
    try {
      if (lane.isMore) isMore = (await fillWithFound(one)) || isMore;
    } catch (error) {
      // Left for the next search: another run would follow at once, while the database is unavailable for example.
      lane.isMore = false;
      deps.checked.failed(error);
    }
    // Checks that ended during the queries have freed slots, but do not start another run themselves.
    if (free() > 0 && (lane.due.size > 0 || lane.isMore)) isMore = true;
    if (lane.checks.size >= slots) busy.push(...lane.checks);
  }
  return { begun, busy, isMore };
}

/** A connection whose free slots are being filled. */
type Filled = {
  readonly deps: CheckerDeps;
  readonly lanes: Lanes;
  readonly lane: Lane;
  readonly connectionId: string;
  readonly connection: ProviderConnection;
  /** Returns the number of free slots. */
  readonly free: () => number;
  /** Leases transactions and starts their checks. @returns their number. */
  readonly leaseWith: (take: Take) => Promise<number>;
};

/** Leases transactions for so many seconds. */
type Take = (leaseS: number) => Promise<readonly LeasedCheck[]>;

async function fillWithHanded(one: Filled): Promise<void> {
  const { deps, lanes, lane, connection, free, leaseWith } = one;
  const news = lane.news.splice(0);
  if (news.length > 0) (await routeNamedNews(deps, news)).forEach(lanes.hand);
  const due = removeDue(lane, connection, free());
  if (due.length > 0) await leaseWith((leaseS) => takeNamed(deps.database, due, leaseS));
}

/** @returns true if more news may be due, which needs no slot. */
async function fillWithFound(one: Filled): Promise<boolean> {
  const { deps, lane, connectionId, connection, free, leaseWith } = one;
  const isMoreNews = await routeDueNews(deps, connectionId);
  const limit = free();
  const about = { connectionId, identity: connection.identity };
  const found = limit > 0 ? await leaseWith((leaseS) => takeDue(deps.database, about, { limit, leaseS })) : 0;
  lane.isMore = isMoreNews || (found === limit && !deps.isLeftAlone(connectionId));
  return isMoreNews;
}

/** Leases due transactions of a connection, for all calls after which a decision is due. */
async function lease(
  { schedule }: CheckerDeps,
  connection: ProviderConnection,
  take: Take,
): Promise<(LeasedCheck & { readonly connection: LeasedConnection })[]> {
  const earlierCallsMs = (MOST_CALLS - 1) * connection.deadlineMs;
  const leased = withinLease(connection, performance.now() + callsBeginWithinMs(schedule, earlierCallsMs));
  const due = await take(leaseS(connection, schedule, MOST_CALLS));
  return due.map((one) => ({ ...one, connection: leased }));
}

function begin(
  deps: CheckerDeps,
  connection: LeasedConnection,
  leased: LeasedCheck,
  checks: Set<Promise<void>>,
  stop: AbortSignal | undefined,
): Promise<void> {
  const check: Promise<void> = checkTransaction(deps, connection, leased, stop)
    .catch(deps.checked.failed)
    .finally(() => checks.delete(check));
  checks.add(check);
  return check;
}
