import { writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

const SQLITE_BUSY = 5;

/** The locks that this process holds. A handle that nothing refers to would be collected, and its lock with it. */
const openLocks = new Set<DatabaseSync>();

/**
 * Takes a lock that belongs to this process and ends with it, however it ends. Node has no flock; SQLite takes the
 * kernel's lock on its file, which needs no cleaning up after a `kill -9` and is seen across containers.
 *
 * @param path of the lock's file, which is created and stays empty. Nothing else may open it in this process: closing
 *   it there would let the lock go (POSIX fcntl).
 * @param waitMs for how long another holder is waited for, with the thread blocked.
 * @returns the release, or undefined when another holds it.
 * @throws Error when the file cannot be created or opened.
 */
export function holdLock(path: string, waitMs = 0): (() => void) | undefined {
  createPrivately(path);
  const file = new DatabaseSync(path, { timeout: waitMs });
  try {
    file.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    file.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
  openLocks.add(file);
  return () => {
    if (openLocks.delete(file)) file.close();
  };
}

function createPrivately(path: string): void {
  try {
    writeFileSync(path, '', { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
