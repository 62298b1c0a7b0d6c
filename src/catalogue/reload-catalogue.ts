import { type Stats, statSync, unwatchFile, watchFile } from 'node:fs';
import type { Catalogue } from '#gen/payments/config/catalogue_pb.js';
import { readCatalogue } from './read-catalogue.ts';

/** What reloading needs. */
export type ReloadOptions = {
  /** The path of the catalogue's file. */
  readonly file: string;
  /** What fileStamp gave right before it was read at the start. */
  readonly readAt: string | undefined;
  /** Puts a catalogue in force, or throws and leaves the one before. */
  readonly replace: (catalogue: Catalogue) => void;
  /** Is told how it went; of a failure, that the catalogue before stays in force. */
  readonly reloaded: (failure: unknown) => void;
};

const LOOK_EVERY_MS = 1_000;

/**
 * Loads the catalogue's file again when it has changed and on SIGHUP. A file is looked at rather than listened to, since
 * it is replaced as often as it is written: by editors, and by Kubernetes behind a symbolic link. It is read once it was
 * left alone for a while: half a file may be a valid one.
 *
 * @returns stops it.
 */
export function startReloading({ file, readAt, replace, reloaded }: ReloadOptions): () => void {
  let stillFor: NodeJS.Timeout | undefined;

  function reload(): void {
    try {
      replace(readCatalogue(file));
    } catch (error) {
      reloaded(error);
      return;
    }
    reloaded(undefined);
  }

  watchFile(file, { interval: LOOK_EVERY_MS, persistent: false }, (now, before) => {
    if (stampOf(now) === stampOf(before)) return;
    clearTimeout(stillFor);
    stillFor = setTimeout(reload, LOOK_EVERY_MS + LOOK_EVERY_MS / 2).unref();
  });
  process.on('SIGHUP', reload);
  // It may have changed while the service started.
  if (fileStamp(file) !== readAt) reload();
  return () => {
    clearTimeout(stillFor);
    unwatchFile(file);
    process.off('SIGHUP', reload);
  };
}

/** Tells one version of a file from another; undefined when it is not there. */
export function fileStamp(file: string): string | undefined {
  const found = statSync(file, { throwIfNoEntry: false });
  return found && stampOf(found);
}

function stampOf({ mtimeMs, ino, size }: Stats): string {
  return [mtimeMs, ino, size].join(' ');
}
