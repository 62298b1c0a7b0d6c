import { type Loop, repeat } from '#src/repeat.ts';
import type { Database } from '#src/store/engine/database.ts';
import { findDueWork } from '#src/store/engine/due-work.ts';

/** Dependencies of the search for due work. */
export type SearchDeps = {
  readonly database: Database;
  /** Connections through which an outcome can be learned, by id. */
  readonly connections: () => ReadonlyMap<string, unknown>;
  /** Returns true while a connection's circuit is open and its provider must not be called. */
  readonly isLeftAlone: (connectionId: string) => boolean;
  readonly onSearchError: (error: unknown) => void;
};

/** The functions that get the work that a search finds. */
export type Finders = {
  /** Gets the connections with due transactions or notifications. */
  readonly checks: (connectionIds: readonly string[]) => void;
  readonly enrollments: () => void;
  readonly events: () => void;
};

/**
 * Starts to search for due work that nobody has handed over, such as the work of a replica that died: one statement for
 * all queues and connections. Overdue deliveries are searched for by the webhooks.
 */
export function startSearch(
  deps: SearchDeps,
  finders: Finders,
  { intervalMs }: { readonly intervalMs: number },
): Loop {
  const search = async () => {
    const ids = [...deps.connections().keys()];
    const due = await findDueWork(deps.database, ids, ids.filter(deps.isLeftAlone));
    if (due.connectionIds.length > 0) finders.checks(due.connectionIds);
    if (due.hasEnrollments) finders.enrollments();
    if (due.hasEvents) finders.events();
  };
  return repeat(search, { intervalMs, onError: deps.onSearchError });
}
