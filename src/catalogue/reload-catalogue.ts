import { statSync } from 'node:fs';
import type { Catalogue } from '#gen/payments/v1/catalogue_pb.js';
import { repeat } from '#src/repeat.ts';
import { readCatalogue } from './read-catalogue.ts';

/** Options for startReloading. */
export type ReloadOptions = {
  /** Path of the catalogue file. */
  readonly file: string;
  /** Result of fileStamp from just before the catalogue in force was read. */
  readonly readAt: string | undefined;
  /** Puts a catalogue in force. Throws on failure, which leaves the previous catalogue in force. */
  readonly replace: (catalogue: Catalogue) => void;
  /** Called with the outcome of a reload. After a failure, the previous catalogue stays in force. */
  readonly reloaded: (failure: unknown) => void;
};

const LOOK_EVERY_MS = 500;
/** Number of looks without a change after which a file counts as complete. */
const STILL_LOOKS = 3;

/**
 * Reloads the catalogue file after a change, and on SIGHUP. A timer compares the file with the version that was read,
 * because watchers miss changes before their first look, and because editors, and Kubernetes with its symbolic links,
 * replace the file instead of writing to it. A changed file is read only once it has stayed the same for a while, since
 * half a file may be a valid catalogue.
 *
 * @returns a function that stops the reloading.
 */
export function startReloading({ file, readAt, replace, reloaded }: ReloadOptions): () => void {
  let loaded = readAt;
  let seen = readAt;
  let stillLooks = 0;

  function reload(): void {
    // Before the file is read, so that the next look detects any change made while reading.
    loaded = seen = fileStamp(file);
    try {
      replace(readCatalogue(file));
    } catch (error) {
      reloaded(error);
      return;
    }
    reloaded(undefined);
  }

  function look(): void {
    const now = fileStamp(file);
    stillLooks = now === seen ? stillLooks + 1 : 0;
    seen = now;
    if (now !== loaded && stillLooks >= STILL_LOOKS) reload();
  }

  const looking = repeat(look, { intervalMs: LOOK_EVERY_MS, jitter: 0, onError: reloaded });
  process.on('SIGHUP', reload);
  return () => {
    void looking.stop();
    process.off('SIGHUP', reload);
  };
}

/** Returns a stamp that identifies a version of a file; undefined if the file does not exist or is not accessible. */
export function fileStamp(file: string): string | undefined {
  try {
    const { mtimeNs, ino, size } = statSync(file, { bigint: true });
    return [mtimeNs, ino, size].join(' ');
  } catch {
    return undefined;
  }
}
