import { closeSync, fsyncSync, openSync, renameSync } from 'node:fs';
import { dirname } from 'node:path';

/** Renames a file or directory, and returns once the new name is on disk. The contents must already be on disk. */
export function renameDurably(from: string, to: string): void {
  renameSync(from, to);
  const directory = openSync(dirname(to), 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
