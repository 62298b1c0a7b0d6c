import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Logger } from 'pino';
import { renameDurably } from '#src/rename-durably.ts';
import { makeDirectories, unusable } from './data-dir.ts';
import { findBinaries, makePassable, type PostgresBinaries } from './embedded-postgres-binaries.ts';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';
import { endOrphan, runningPort, startServer } from './embedded-postgres-server.ts';
import { postgresUser, type SystemUser } from './embedded-postgres-user.ts';
import { holdLock } from './process-lock.ts';

/** Options for an embedded PostgreSQL. */
export type EmbeddedPostgresOptions = {
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
