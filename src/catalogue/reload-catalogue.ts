import { statSync } from 'node:fs';
import type { Catalogue } from '#gen/payments/config/catalogue_pb.js';
import { readCatalogue } from './read-catalogue.ts';

/** Dependencies of reloading. */
export type ReloadOptions = {
  /** Path of the catalogue's file. */
  readonly file: string;
  /** Result of fileStamp right before the catalogue in force was read. */
  readonly readAt: string | undefined;
  /** Puts a catalogue in force, or throws and leaves the previous one in force. */
  readonly replace: (catalogue: Catalogue) => void;
  /** Receives the outcome of a reload; after a failure the previous catalogue stays in force. */
  readonly reloaded: (failure: unknown) => void;
};

const LOOK_EVERY_MS = 500;
/** Number of looks without a change after which a file counts as complete. */
const STILL_LOOKS = 3;

/**
 * Loads the catalogue's file again after a change, and on SIGHUP. A timer compares the file with the version that was
 * read: watchers miss changes before their own first look, and editors, as well as Kubernetes behind a symbolic link,
 * replace the file instead of writing it. A changed file is read once it has stayed unchanged for a while, since half
 * a file may be a valid catalogue.
 *
 * @returns a function that stops it.
 */
export function startReloading({ file, readAt, replace, reloaded }: ReloadOptions): () => void {
  let loaded = readAt;
  let seen = readAt;
  let stillLooks = 0;

  function reload(): void {
    // Before the file is read: the next look then finds a change that happens meanwhile.
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

  const looking = setInterval(look, LOOK_EVERY_MS).unref();
  process.on('SIGHUP', reload);
  return () => {
    clearInterval(looking);
    process.off('SIGHUP', reload);
  };
}

/** Returns a stamp that distinguishes versions of a file; undefined if it does not exist or is not accessible. */
export function fileStamp(file: string): string | undefined {
  try {
    const { mtimeNs, ino, size } = statSync(file, { bigint: true });
    return [mtimeNs, ino, size].join(' ');
  } catch {
    return undefined;
  }
}
