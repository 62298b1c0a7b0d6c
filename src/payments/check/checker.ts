import { setTimeout } from 'node:timers/promises';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import { type LeasedConnection, withinLease } from '#src/connectors/within-lease.ts';
import { repeat } from '#src/repeat.ts';
import { type LeasedCheck, takeDue } from '#src/store/engine/checks.ts';
import { callsBeginWithinMs, leaseS } from '../model/schedule.ts';
import { CALLS_IN_LEASE, checkTransaction } from './check-transaction.ts';
import type { CheckDeps } from './found-transaction.ts';
import { routeDueNews } from './route-news.ts';

/** Dependencies of the checker. */
export type CheckerDeps = CheckDeps & {
  /** Connections through which an outcome can be learned, by id. */
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  /** Returns true while a connection's circuit is open and its provider must not be called. */
  readonly isLeftAlone: (connectionId: string) => boolean;
};

/** A running checker. */
export type Checker = {
  /** Looks for due checks after this many seconds; immediately by default. */
  readonly wake: (inS?: number) => void;
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

/** Checks in progress, by connection. */
type UnderWay = Map<string, Set<Promise<void>>>;

/**
 * Checks transactions that are due: unknown outcomes, redirected payers, authorizations at the end of their term, and
 * transactions with news. Any number of replicas may run checkers. Each replica leases its connections' due
 * transactions, timed by the database's clock, and a token keeps a replica that has lost its lease from overwriting
 * newer results. Only the provider can turn an outcome into "failed".
 *
 * @param options.intervalMs pause between searches for due transactions.
 */
export function startChecker(deps: CheckerDeps, options: { readonly intervalMs: number }): Checker {
  const underWay: UnderWay = new Map();
  let woken = Promise.withResolvers<void>();
  let freed: Promise<void> | undefined;
  const search = async (stop: AbortSignal) => {
    freed = undefined;
    woken = Promise.withResolvers();
    const { busy, isMore } = await beginDue(deps, underWay, stop);
    // More checks may be due at connections without free slots.
    if (busy.length > 0) freed = Promise.race(busy).then(() => setTimeout(BREATH_MS));
    return isMore;
  };
  const sooner = () => (freed ? Promise.race([freed, woken.promise]) : woken.promise);
  const stop = repeat(search, { ...options, sooner, onError: deps.checked.failed });
  return {
    // Wakes slightly later than due, since the database's clock decides what is due.
    wake: (inS = 0) =>
      void setTimeout(inS > 0 ? inS * 1_000 + BREATH_MS : 0, undefined, { ref: false }).then(() =>
        woken.resolve(),
      ),
    async stop() {
      await stop();
      await Promise.all([...underWay.values()].flatMap((checks) => [...checks]));
    },
  };
}

/** Leases and checks as many due transactions as there are free slots. @returns the number leased. */
export async function checkDue(deps: CheckerDeps, stop?: AbortSignal): Promise<number> {
  const { begun } = await beginDue(deps, new Map(), stop);
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
  underWay: UnderWay,
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
    const checks = underWay.get(connectionId) ?? new Set();
    underWay.set(connectionId, checks);
    // A failure at one connection must not end the search at the others.
    try {
      isMore = (await routeDueNews(deps, connectionId)) || isMore;
      const limit = deps.isLeftAlone(connectionId) ? 0 : slots - checks.size;
      const leased = limit > 0 ? await lease(deps, connectionId, connection, limit) : [];
      for (const one of leased) begun.push(begin(deps, one.connection, one, checks, stop));
      // Checks that ended during the query have freed slots, but do not start a search themselves.
      if (limit > 0 && leased.length === limit && checks.size < slots) isMore = true;
    } catch (error) {
      deps.checked.failed(error);
    }
    if (checks.size >= slots) busy.push(...checks);
  }
  return { begun, busy, isMore };
}

/** Leases due transactions of a connection, for the calls that `callsBeginWithinMs` allows. */
async function lease(
  { database, schedule }: CheckerDeps,
  connectionId: string,
  connection: ProviderConnection,
  limit: number,
): Promise<(LeasedCheck & { readonly connection: LeasedConnection })[]> {
  const earlierCallsMs = (CALLS_IN_LEASE - 1) * connection.deadlineMs;
  const leased = withinLease(connection, performance.now() + callsBeginWithinMs(schedule, earlierCallsMs));
  const options = { limit, leaseS: leaseS(connection, schedule, CALLS_IN_LEASE) };
  const due = await takeDue(database, { connectionId, identity: connection.identity }, options);
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
