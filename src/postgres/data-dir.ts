import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';
import { canReach, postgresUser } from './embedded-postgres-user.ts';

/**
 * Directory for files that the user "postgres" must reach, used if root runs a checkout that "postgres" cannot reach.
 */
export const ROOT_HOME = '/var/lib/payments-service';

/**
 * Returns the data directory: `explicit`, or `data` in the checkout. If root starts the service from a checkout that
 * PostgreSQL's user cannot reach, the directory is below {@link ROOT_HOME}, with a name derived from the checkout's
 * path, so that two clones never share it. Creates nothing.
 *
 * @returns an absolute path.
 * @throws EmbeddedPostgresError if a file is in the way, or PostgreSQL's user cannot reach `explicit`.
 */
export function resolveDataDir(options: { explicit: string | undefined; checkoutDir: string }): string {
  const wanted = options.explicit ? resolve(options.explicit) : join(resolve(options.checkoutDir), 'data');
  const existing = existingPart(wanted);
  if (!statSync(existing).isDirectory()) throw unusable(wanted, `${existing} is not a directory`);
  const user = postgresUser();
  if (!user || canReach(user, existing)) return wanted;
  if (options.explicit) {
    throw new EmbeddedPostgresError(
      `The data directory ${wanted} cannot be used: PostgreSQL refuses to run as root, so it runs as the user "${user.name}", who cannot reach it. Set DATA_DIR to a directory that every user can reach, or start the service as an ordinary user.`,
    );
  }
  const checkout = realpathSync(options.checkoutDir);
  const digest = createHash('sha256').update(checkout).digest('hex').slice(0, 12);
  return join(ROOT_HOME, `${basename(checkout)}-${digest}`);
}

/** Returns the error for a data directory in which the service cannot keep its data. */
export function unusable(dataDir: string, why: string, cause?: unknown): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `The data directory ${dataDir} cannot be used: ${why}. Set DATA_DIR to a writable directory.`,
    { cause },
  );
}

/**
 * Creates a directory and its missing parents. Unlike `mkdirSync`, which never returns for a path below /proc, it only
 * searches upwards.
 *
 * @returns the first directory that it created, or undefined.
 */
export function makeDirectories(directory: string, mode: number): string | undefined {
  if (existsSync(directory)) return undefined;
  const first = makeDirectories(dirname(directory), mode);
  try {
    mkdirSync(directory, { mode });
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!existsSync(directory)) throw error;
  }
  return first ?? directory;
}

function existingPart(path: string): string {
  let part = path;
  while (!existsSync(part)) part = dirname(part);
  return part;
}
