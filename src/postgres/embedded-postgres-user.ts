import { spawnSync } from 'node:child_process';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';

/** A user account of the operating system. */
export type SystemUser = { readonly name: string; readonly uid: number; readonly gid: number };

const NAME = 'postgres';

/**
 * Returns the user that PostgreSQL runs as. PostgreSQL refuses to run as root, so root runs it as the user "postgres",
 * creating that user if it is missing.
 *
 * @returns undefined for an ordinary user, who runs PostgreSQL directly.
 * @throws EmbeddedPostgresError if the user is missing and cannot be created.
 */
export function postgresUser(): SystemUser | undefined {
  if (process.geteuid?.() !== 0) return undefined;
  return lookUp() ?? create();
}

/** Returns true if a user can traverse a directory. Tried as that user, since modes, ACLs and mounts all matter. */
export function canReach(user: SystemUser, directory: string): boolean {
  return runAs(user, '/bin/sh', ['-c', 'test -x "$1"', 'sh', directory]).status === 0;
}

/** Runs a command to completion as a user (undefined: the current user), without our environment. */
export function runAs(user: SystemUser | undefined, command: string, args: readonly string[]) {
  return spawnSync(command, args, {
    ...(user && { uid: user.uid, gid: user.gid }),
    cwd: '/',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
    encoding: 'utf8',
    timeout: 30_000,
  });
}

function lookUp(): SystemUser | undefined {
  const uid = runAs(undefined, 'id', ['-u', NAME]);
  const gid = runAs(undefined, 'id', ['-g', NAME]);
  if (uid.status !== 0 || gid.status !== 0) return undefined;
  return { name: NAME, uid: Number(uid.stdout), gid: Number(gid.stdout) };
}

function create(): SystemUser {
  const group = runAs(undefined, 'groupadd', ['--system', '--force', NAME]);
  const account = ['--no-create-home', '--home-dir', '/', '--shell', '/usr/sbin/nologin'];
  const user = runAs(undefined, 'useradd', ['--system', '--gid', NAME, ...account, NAME]);
  // Another process may have created the user in the meantime, so only the user's presence counts.
  const created = lookUp();
  if (created) return created;
  const reason = [group, user].map((step) => step.error?.message ?? step.stderr).join(' ');
  throw new EmbeddedPostgresError(
    `PostgreSQL refuses to run as root, and the user "${NAME}" to run it as could not be created: ${reason.trim()}\nStart the service as an ordinary user, or create that user.`,
  );
}
