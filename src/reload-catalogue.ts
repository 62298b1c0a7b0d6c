import { unwatchFile, watchFile } from 'node:fs';
import type { Catalogue } from '../gen/payments/config/catalogue_pb.js';
import { readCatalogue } from './catalogue.ts';

/** What reloading needs. */
export type ReloadOptions = {
  /** The path of the catalogue's file. */
  readonly file: string;
  /** Puts a catalogue in force, or throws and leaves the one before. */
  readonly replace: (catalogue: Catalogue) => void;
  /** Is told how it went; of a failure, that the catalogue before stays in force. */
  readonly reloaded: (failure: unknown) => void;
};

const LOOK_EVERY_MS = 1_000;

/**
 * Loads the catalogue's file again when it changes and on SIGHUP. A file is looked at rather than listened to, since it
 * is replaced as often as it is written: by editors, and by Kubernetes behind a symbolic link.
 *
 * @returns stops it.
 */
export function startReloading({ file, replace, reloaded }: ReloadOptions): () => void {
  const reload = () => {
    try {
      replace(readCatalogue(file));
    } catch (error) {
      reloaded(error);
      return;
    }
    reloaded(undefined);
  };
  watchFile(file, { interval: LOOK_EVERY_MS, persistent: false }, (now, before) => {
    if (now.mtimeMs !== before.mtimeMs || now.ino !== before.ino || now.size !== before.size) reload();
  });
  process.on('SIGHUP', reload);
  return () => {
    unwatchFile(file);
    process.off('SIGHUP', reload);
  };
}
