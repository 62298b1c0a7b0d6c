import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';
import type { SystemUser } from './embedded-postgres-user.ts';

const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 30_000;
const POLL_MS = 20;
const ATTEMPTS = 7;
/** Number of restarts in a row after which a server that keeps exiting is given up. */
const MAX_RESTARTS = 5;
/** A server that exits after at least this time counts as one that ran. */
const SETTLED_MS = 60_000;
/** Matches transient failures: another process took the port, or a killed PostgreSQL's sessions are still ending. */
const PASSING = /Address already in use|pre-existing shared memory block/;

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  // Enough for a dozen workers and the sandbox's ledger.
  max_connections: '400',
  shared_buffers: '128MB',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  // Logs only starts, stops and recoveries. The service handles and reports errors itself, and PostgreSQL's messages
  // contain values (`Key (…)=(…) already exists`).
  logging_collector: 'off',
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_statement: 'none',
  log_checkpoints: 'off',
  log_parameter_max_length: '0',
  log_parameter_max_length_on_error: '0',
};
const UNSAFE_SETTINGS = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' };

/** Options for a server. */
export type ServerOptions = {
  /** Path of the `postgres` program. */
  readonly postgres: string;
  /** The user to run as; undefined for the current user. */
  readonly user: SystemUser | undefined;
  /** The cluster's directory (PGDATA). */
  readonly data: string;
  readonly logFile: string;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  readonly unsafeForTests: boolean;
  /** Called once if the server exited by itself and could not be started again. */
  readonly lost?: (() => void) | undefined;
};

/**
 * Starts a PostgreSQL server on a free loopback port and waits until it accepts connections. If the server exits by
 * itself, it is started again on the same port, a limited number of times.
 *
 * @throws EmbeddedPostgresError with the last lines of the server's log.
 */
export async function startServer(options: ServerOptions): Promise<{ port: number; stop(): Promise<void> }> {
  const port = await freePort();
  const server: RunningServer = { child: undefined, isStopping: false };
  const started = await startOn(port, options, server);
  const interrupt = () => void server.child?.kill('SIGINT');
  process.on('exit', interrupt);
  const ended = keepRunning(started, options, server).finally(() => process.off('exit', interrupt));
  return { port: started.port, stop: () => stop(server, ended) };
}

/** The server's current process. */
type RunningServer = { child: ChildProcess | undefined; isStopping: boolean };

type Started = { readonly child: ChildProcess; readonly port: number };

/**
 * Starts the server on a port. The first start takes another port if it is in use; a later one waits for the port,
 * which the clients know.
 */
async function startOn(port: number, options: ServerOptions, server: RunningServer): Promise<Started> {
  const isFirst = server.child === undefined;
  for (let attempt = 1, current = port; ; attempt++) {
    const child = spawnServer(options, current);
    server.child = child;
    const failure = await untilReady(child, options.data);
    if (!failure) return { child, port: current };
    const logTail = tail(options.logFile);
    if (attempt === ATTEMPTS || server.isStopping || !PASSING.test(logTail)) {
      throw new EmbeddedPostgresError(`PostgreSQL did not start in ${options.data}: ${failure}.`, {
        logTail,
      });
    }
    await sleep(attempt * 500);
    if (isFirst) current = await freePort();
  }
}

/**
 * Starts the server again whenever it exits by itself. Gives up if it keeps exiting or does not start.
 *
 * @returns a promise that resolves when the server has stopped for good.
 */
async function keepRunning(first: Started, options: ServerOptions, server: RunningServer): Promise<void> {
  const { log, logFile } = options;
  let current = first;
  for (let restarts = 1; ; restarts++) {
    const startedAtMs = performance.now();
    const exit = await exitOf(current.child);
    if (server.isStopping) return;
    if (performance.now() - startedAtMs > SETTLED_MS) restarts = 1;
    if (restarts > MAX_RESTARTS) {
      log.error({ ...exit, logFile }, 'PostgreSQL keeps exiting and is not restarted any more');
      options.lost?.();
      return;
    }
    log.error({ ...exit, logFile }, 'PostgreSQL exited unexpectedly and is being restarted');
    try {
      current = await startOn(current.port, options, server);
    } catch (err) {
      if (server.isStopping) return;
      log.error({ err, logFile }, 'PostgreSQL could not be restarted');
      options.lost?.();
      return;
    }
    if (server.isStopping) current.child.kill('SIGINT');
    else log.warn({ pid: current.child.pid }, 'PostgreSQL runs again');
  }
}

async function exitOf(child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return { code: child.exitCode, signal: child.signalCode };
}

/** Stops the server. SIGINT ends sessions and shuts down cleanly; SIGQUIT does not wait, and the next start recovers. */
async function stop(server: RunningServer, ended: Promise<void>): Promise<void> {
  if (!server.isStopping) server.child?.kill('SIGINT');
  server.isStopping = true;
  const quit = setTimeout(() => server.child?.kill('SIGQUIT'), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(quit);
}

function spawnServer(options: ServerOptions, port: number): ChildProcess {
  const settings = { ...SETTINGS, ...(options.unsafeForTests && UNSAFE_SETTINGS), port: String(port) };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const output = openSync(options.logFile, 'a', 0o600);
  try {
    return spawn(options.postgres, ['-D', options.data, ...flags], {
      ...(options.user && { uid: options.user.uid, gid: options.user.gid }),
      cwd: '/',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', output, output],
      // In a separate session, so that Ctrl-C in the terminal does not stop PostgreSQL before the service has drained.
      detached: true,
    });
  } finally {
    closeSync(output);
  }
}

/**
 * Waits for "ready" in postmaster.pid, as pg_ctl does. @returns the reason if it does not appear; undefined on success.
 */
async function untilReady(child: ChildProcess, data: string): Promise<string | undefined> {
  let failure: string | undefined;
  child.once('error', (error) => {
    failure = error.message;
  });
  child.once('exit', (code, signal) => {
    failure ??= `it exited (${signal ?? `status ${code}`})`;
  });
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline) {
    if (failure) return failure;
    const { pid, status } = readPidFile(data);
    if (pid !== undefined && pid === child.pid && status === 'ready') return undefined;
    await sleep(POLL_MS);
  }
  child.kill('SIGKILL');
  return `it was not ready within ${START_TIMEOUT_MS / 1000} s`;
}

/**
 * Stops a server that still runs on the cluster although its service is gone (the caller holds the service's lock), so
 * that every server is a child of its service. If the pid in postmaster.pid now belongs to another program, the file is
 * deleted, since it would prevent PostgreSQL from starting.
 *
 * @throws EmbeddedPostgresError if the server does not stop.
 */
export async function endOrphan(data: string, log: Pick<Logger, 'warn'>): Promise<void> {
  const { pid } = readPidFile(data);
  if (pid === undefined || !sendSignal(pid, 0)) return;
  if (!isServerOn(pid, data)) {
    rmSync(join(data, 'postmaster.pid'), { force: true });
    return;
  }
  log.warn({ pid }, 'stopping the PostgreSQL server that a killed service left running');
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    sendSignal(pid, signal);
    const deadline = Date.now() + STOP_TIMEOUT_MS;
    while (Date.now() < deadline) {
      if (!isServerOn(pid, data)) return;
      await sleep(POLL_MS);
    }
  }
  throw new EmbeddedPostgresError(
    `The PostgreSQL server that a killed service left running on ${data} did not stop. Kill process ${pid}, and start again.`,
  );
}

/** Returns the port of the server that runs on a cluster and accepts connections; undefined if there is none. */
export function runningPort(data: string): number | undefined {
  const { pid, port, status } = readPidFile(data);
  return pid !== undefined && status === 'ready' && isServerOn(pid, data) ? port : undefined;
}

function readPidFile(data: string): { pid?: number; port?: number; status?: string } {
  // Lines of PostgreSQL's file (miscadmin.h): the first is the pid, the fourth the port, the eighth the status.
  const lines = pidFileOf(data).split('\n');
  const pid = Number.parseInt(lines[0] ?? '', 10);
  return Number.isSafeInteger(pid) && pid > 0
    ? { pid, port: Number(lines[3]), status: (lines[7] ?? '').trim() }
    : {};
}

/**
 * Returns the contents of postmaster.pid; '' if it does not exist. A server that is shutting down may delete it at any
 * time.
 */
function pidFileOf(data: string): string {
  try {
    return readFileSync(join(data, 'postmaster.pid'), 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}

/**
 * Sends a signal; 0 only checks the process. @returns true if the process exists, even if it belongs to another user.
 */
function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Checks the command line, because the pid may belong to another program by now. A zombie has no command line. */
function isServerOn(pid: number, data: string): boolean {
  return commandLine(pid).includes(`-D ${data} `);
}

function commandLine(pid: number): string {
  if (process.platform !== 'linux') {
    return spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout;
  }
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/** Returns a port that is currently free. If another process takes it first, the server is started again. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  await once(probe.close(), 'close');
  return port;
}

function tail(logFile: string): string {
  return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-12).join('\n');
}
