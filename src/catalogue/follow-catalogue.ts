import { type Loop, repeat } from '#src/repeat.ts';
import type { Database } from '#src/store/engine/database.ts';
import { readHead, readVersion, saveReplica } from '#src/store/tables/catalogue-versions.ts';
import type { VersionedCatalogue } from './open-catalogue.ts';
import { decodeVersion } from './publish-catalogue.ts';

/** Options for followCatalogue. */
export type FollowCatalogueOptions = {
  readonly database: Database;
  /** Name of this process, among those that run the service. */
  readonly replica: string;
  /** The version in force when the process started. */
  readonly version: number;
  /** Puts a catalogue in force. Throws on failure, which leaves the previous catalogue in force. */
  readonly replace: (catalogue: VersionedCatalogue) => void;
  /** Called with the outcome of a change, and once for each failure to read the database. */
  readonly reloaded: (failure: unknown) => void;
};

const LOOK_EVERY_MS = 1_000;
/** Pause between two signs of life. */
const SEEN_EVERY_MS = 60_000;
const MAX_FAULT = 1_000;

/**
 * Follows the catalogue in the database: reads its head once a second, and puts each new version in force. A version
 * that cannot be opened leaves the previous one in force, and is tried again when another version is published. While
 * the database is away, the version in force stays.
 */
export function followCatalogue(options: FollowCatalogueOptions): Loop {
  const { database, replica, replace, reloaded } = options;
  let inForce = options.version;
  let seen = options.version;
  let fault = '';
  let savedAt = Number.NEGATIVE_INFINITY;
  let isAway = false;

  async function follow(): Promise<void> {
    const head = await readHead(database);
    isAway = false;
    const isNew = head !== undefined && head.version !== seen;
    if (isNew) await take(head.version);
    const nowMs = performance.now();
    if (!isNew && nowMs - savedAt < SEEN_EVERY_MS) return;
    await saveReplica(database, { name: replica, version: inForce, fault });
    savedAt = nowMs;
  }

  async function take(version: number): Promise<void> {
    // If the database fails here, the version is tried again.
    const stored = await readVersion(database, version);
    try {
      if (!stored) throw new Error(`version ${version} of the catalogue is missing`);
      replace({ catalogue: decodeVersion(stored).catalogue, version });
      inForce = version;
      fault = '';
      reloaded(undefined);
    } catch (error) {
      fault = (error as Error).message.slice(0, MAX_FAULT);
      reloaded(error);
    }
    seen = version;
  }

  return repeat(follow, {
    intervalMs: LOOK_EVERY_MS,
    isFirstLater: true,
    onError: (error) => {
      if (!isAway) reloaded(error);
      isAway = true;
    },
  });
}
