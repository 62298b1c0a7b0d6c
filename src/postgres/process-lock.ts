import { writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

const SQLITE_BUSY = 5;

/**
 * The locks that this process holds. An unreferenced handle would be garbage-collected, which would release its lock.
 */
const openLocks = new Set<DatabaseSync>();

/**
 * Takes a lock that belongs to this process and is released when the process ends, however it ends. Node has no flock;
 * SQLite takes the kernel's lock on its file, which needs no clean-up after a `kill -9` and works across containers.
 *
 * @param path the lock file, which is created and stays empty. Nothing else in this process may open it: closing it
 * would release the lock (POSIX fcntl).
 * @param waitMs time to wait for another holder; blocks the thread.
 * @returns a function that releases the lock, or undefined if another process holds it.
 * @throws Error if the file cannot be created or opened.
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
