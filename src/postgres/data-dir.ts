import { createHash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';
import { canReach, postgresUser } from './embedded-postgres-user.ts';

/** Directory in which root keeps what the user "postgres" has to reach, when the checkout is private. */
export const ROOT_HOME = '/var/lib/payments-service';

/**
 * Returns the directory of the data: `explicit`, or `data` in the checkout. When root starts the service from a place that
 * PostgreSQL's user cannot reach, then below {@link ROOT_HOME} under a name made of the checkout's path, so that two
 * clones never share it. Nothing is created.
 *
 * @returns an absolute path.
 * @throws EmbeddedPostgresError when `explicit` cannot be reached by PostgreSQL's user.
 */
export function resolveDataDir(options: { explicit: string | undefined; checkoutDir: string }): string {
  const wanted = options.explicit ? resolve(options.explicit) : join(resolve(options.checkoutDir), 'data');
  const user = postgresUser();
  if (!user || canReach(user, existingPart(wanted))) return wanted;
  if (options.explicit) {
    throw new EmbeddedPostgresError(
      `The data directory ${wanted} cannot be used: PostgreSQL refuses to run as root, and the user "${user.name}", as whom it runs instead, cannot pass through to it. Choose one that every user can pass through, or start the service as an ordinary user.`,
    );
  }
  const checkout = realpathSync(options.checkoutDir);
  const digest = createHash('sha256').update(checkout).digest('hex').slice(0, 12);
  return join(ROOT_HOME, `${basename(checkout)}-${digest}`);
}

function existingPart(path: string): string {
  let part = path;
  while (!existsSync(part)) part = dirname(part);
  return part;
}
