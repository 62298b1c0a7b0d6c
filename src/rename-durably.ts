import { closeSync, fsyncSync, openSync, renameSync } from 'node:fs';
import { dirname } from 'node:path';

/** Renames a file or directory whose contents are on the disk, and waits until its new name is there, too. */
export function renameDurably(from: string, to: string): void {
  renameSync(from, to);
  const directory = openSync(dirname(to), 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
