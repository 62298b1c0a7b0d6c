import type { ExplainedCatalogue } from '#src/payments/route/explain-route.ts';
import {
  ALL_CLOSED,
  type RoutingCatalogue,
  routingCatalogue,
} from '#src/payments/route/routing-catalogue.ts';
import type { Database } from '#src/store/engine/database.ts';
import type { OpenedCatalogue } from './open-catalogue.ts';
import { readPublished, UnknownFormatError } from './publish-catalogue.ts';

/**
 * Returns a published version for explanations: its circuits count as closed, and no approval rate is known. undefined if
 * there is none, or only a later release can read it.
 */
export type ExplainVersion = (version: number) => Promise<ExplainedCatalogue | undefined>;

/** Number of versions that are kept. A version never changes, and its conditions take time to compile. */
const MAX_KEPT = 8;

/**
 * Creates a reader of published versions.
 *
 * @param opened the catalogue in force, whose connections, and earlier ones, say what they can do.
 */
export function createExplainVersion(
  database: Database,
  opened: () => Pick<OpenedCatalogue, 'reachable' | 'health'>,
): ExplainVersion {
  const kept = new Map<number, RoutingCatalogue>();

  async function read(version: number): Promise<RoutingCatalogue | undefined> {
    const known = kept.get(version);
    if (known) return known;
    const published = await readPublished(database, version).catch((error: unknown) => {
      if (error instanceof UnknownFormatError) return undefined;
      throw error;
    });
    if (!published) return undefined;
    const [oldest] = kept.keys();
    if (kept.size >= MAX_KEPT && oldest !== undefined) kept.delete(oldest);
    const routing = routingCatalogue(published.catalogue, new Map());
    kept.set(version, routing);
    return routing;
  }

  return async (version) => {
    const routing = await read(version);
    const { reachable: connections, health } = opened();
    return routing && { ...routing, version, connections, health, signals: ALL_CLOSED };
  };
}
