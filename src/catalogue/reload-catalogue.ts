import { statSync } from 'node:fs';
import type { Catalogue } from '#gen/payments/config/catalogue_pb.js';
import { readCatalogue } from './read-catalogue.ts';

/** Dependencies of reloading. */
export type ReloadOptions = {
  /** The path of the catalogue's file. */
  readonly file: string;
  /** Result of fileStamp right before the catalogue in force was read. */
  readonly readAt: string | undefined;
  /** Puts a catalogue in force, or throws and leaves the one before. */
  readonly replace: (catalogue: Catalogue) => void;
  /** Receives the outcome of a reload; after a failure the catalogue before stays in force. */
  readonly reloaded: (failure: unknown) => void;
};

const LOOK_EVERY_MS = 500;
/** A file that did not change between so many looks is taken to be whole. */
const STILL_LOOKS = 3;

/**
 * Loads the catalogue's file again when it has changed, and on SIGHUP. The file is looked at on a timer, and compared
 * with the version that was read: watchers lose what changes before their own first look, and the file may be replaced
 * rather than written, by editors and by Kubernetes behind a symbolic link. A changed file is read once it has been left
 * alone for a while, since half a file may be a valid catalogue.
 *
 * @returns stops it.
 */
export function startReloading({ file, readAt, replace, reloaded }: ReloadOptions): () => void {
  let loaded = readAt;
  let seen = readAt;
  let stillLooks = 0;

  function reload(): void {
    // Before it is read: what changes meanwhile is then found by the next look.
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

/** Tells one version of a file from another; undefined when it is not there, or cannot be looked at. */
export function fileStamp(file: string): string | undefined {
  try {
    const { mtimeNs, ino, size } = statSync(file, { bigint: true });
    return [mtimeNs, ino, size].join(' ');
  } catch {
    return undefined;
  }
}
