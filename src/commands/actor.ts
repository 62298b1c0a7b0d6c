import { hostname, userInfo } from 'node:os';
import type { DataConfig } from '#src/config.ts';

/**
 * Returns the name of the person who runs this process, for the audit log: the operating system's user and host
 * (`alice@host1`), preceded by ACTOR if it is set (`Alice Jones (alice@host1)`).
 */
export function actorOf({ actor }: Pick<DataConfig, 'actor'>): string {
  const user = `${userName()}@${hostname()}`;
  return actor === undefined ? user : `${actor} (${user})`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container, the user may have no name.
    return `uid ${process.getuid?.() ?? '?'}`;
  }
}
