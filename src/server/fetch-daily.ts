import { type Loop, repeat } from '#src/repeat.ts';
import { type FetchedReport, fetchNew } from '#src/settlement/fetch-settlement.ts';
import { ImportUnderWayError } from '#src/settlement/import-settlement.ts';
import { type SettledCatalogue, settledConnection } from '#src/settlement/settled-connection.ts';
import type { Database } from '#src/store/engine/database.ts';

const INTERVAL_MS = 3_600_000;
const ACTOR = 'service';

/** Dependencies of the daily fetches. */
export type FetchDailyDeps = {
  readonly database: Database;
  readonly openedCatalogue: () => SettledCatalogue;
  readonly settlementFetches: SettlementFetchObserver;
};

/** Receives what became of fetches. */
export type SettlementFetchObserver = {
  fetched(connectionId: string, report: FetchedReport): void;
  /** Called when a fetch fails; it is repeated an hour later. */
  failed(connectionId: string, error: unknown): void;
};

/**
 * Starts to fetch settlement reports once a day, for the connections whose settings say so. It looks every hour whether the
 * provider has completed a day, which happens at irregular hours, and repeats what failed. Several replicas may do so at once: a fetch that
 * another one has made changes nothing. Without such a connection, it does nothing.
 */
export function startDailyFetches(
  deps: FetchDailyDeps,
  { onError }: { readonly onError: (error: unknown) => void },
): Loop {
  const work = (stop: AbortSignal) => fetchDue(deps, { stop });
  return repeat(work, { intervalMs: INTERVAL_MS, isFirstLater: true, onError });
}

/** Fetches the reports that are due. Their lines are matched as those of any other import. */
export async function fetchDue(
  { database, openedCatalogue, settlementFetches }: FetchDailyDeps,
  { stop, firstPauseMs }: { readonly stop?: AbortSignal; readonly firstPauseMs?: number } = {},
): Promise<void> {
  const opened = openedCatalogue();
  for (const id of dailyConnections(opened)) {
    if (stop?.aborted) return;
    const found = settledConnection(opened, id);
    const source = typeof found === 'object' ? found.source : undefined;
    if (typeof found === 'string' || !source) continue;
    const { settled } = found;
    try {
      const options = { actor: ACTOR, ...(stop && { stop }), ...(firstPauseMs && { firstPauseMs }) };
      for await (const report of fetchNew(database, settled, source, options)) {
        settlementFetches.fetched(id, report);
      }
    } catch (error) {
      // Another replica goes on.
      if (error instanceof ImportUnderWayError || stop?.aborted) continue;
      settlementFetches.failed(id, error);
    }
  }
}

/** Returns the connections whose reports are fetched daily: one for each account at a provider. */
function dailyConnections({ connections }: SettledCatalogue): Iterable<string> {
  const daily = [...connections].filter(([, { settlementSource }]) => settlementSource?.isDaily);
  return new Map(daily.map(([id, { identity }]) => [identity, id])).values();
}
