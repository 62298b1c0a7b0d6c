import { type Loop, repeat } from '#src/repeat.ts';
import type { Database } from '#src/store/engine/database.ts';
import {
  type CatalogueHead,
  readHead,
  readVersion,
  saveReplica,
} from '#src/store/tables/catalogue-versions.ts';
import type { ReadCredentials } from './credentials.ts';
import type { VersionedCatalogue } from './open-catalogue.ts';
import { decodeVersion } from './publish-catalogue.ts';
import type { StoredCatalogue } from './seed-catalogue.ts';

/** Options for followCatalogue. */
export type FollowCatalogueOptions = {
  readonly database: Database;
  /** Name of this process, among those that run the service. */
  readonly replica: string;
  /** The catalogue in force when the process started. */
  readonly started: StoredCatalogue;
  readonly readCredentials: ReadCredentials;
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
 * Follows the catalogue in the database: reads its head once a second, and puts each new version, and each change of a
 * stored secret, in force. A version that cannot be opened leaves the previous one in force, and is tried again after the
 * next change. While the database is away, the version in force stays.
 */
export function followCatalogue(options: FollowCatalogueOptions): Loop {
  const { database, replica, readCredentials, replace, reloaded, started } = options;
  let inForce = started.version;
  let seen: CatalogueHead = started;
  let fault = '';
  let savedAt = Number.NEGATIVE_INFINITY;
  let isAway = false;

  async function follow(): Promise<void> {
    const head = await readHead(database);
    isAway = false;
    const isNew = head && (head.version !== seen.version || head.revision !== seen.revision);
    if (isNew) await take(head);
    const nowMs = performance.now();
    if (!isNew && nowMs - savedAt < SEEN_EVERY_MS) return;
    await saveReplica(database, { name: replica, version: inForce, fault });
    savedAt = nowMs;
  }

  async function take(head: CatalogueHead): Promise<void> {
    const { version } = head;
    // If the database fails here, the version is tried again.
    const stored = await readVersion(database, version);
    const credentials = await readCredentials();
    try {
      if (!stored) throw new Error(`version ${version} of the catalogue is missing`);
      replace({ catalogue: decodeVersion(stored).catalogue, version, credentials });
      inForce = version;
      fault = '';
      reloaded(undefined);
    } catch (error) {
      fault = (error as Error).message.slice(0, MAX_FAULT);
      reloaded(error);
    }
    seen = head;
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
