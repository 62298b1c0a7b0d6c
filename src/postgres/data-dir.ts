import { createHash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';
import { canReach, postgresUser } from './embedded-postgres-user.ts';

/** Directory for files that the user "postgres" has to reach, if root runs a checkout that this user cannot reach. */
export const ROOT_HOME = '/var/lib/payments-service';

/**
 * Returns the data directory: `explicit`, or `data` in the checkout. If root starts the service from a checkout that
 * PostgreSQL's user cannot reach, the directory is below {@link ROOT_HOME}, under a name made from the checkout's path,
 * so that two clones never share it. Creates nothing.
 *
 * @returns an absolute path.
 * @throws EmbeddedPostgresError if PostgreSQL's user cannot reach `explicit`.
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
