import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect } from 'vitest';
import { COMPILED } from './compiled.ts';

/** The result of a process, with its complete output. */
export type Ended = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
};

/** A program from the checkout in a separate process. */
export type RunningProgram = {
  readonly child: ChildProcess;
  /** Its output so far. */
  readonly printed: { stdout: string; stderr: string };
  readonly ended: Promise<Ended>;
};

/** The service in a separate process, at `url`. */
export type ServiceProcess = RunningProgram & { readonly url: string };

const CHECKOUT = join(import.meta.dirname, '../..');
/** Nothing else in the tests' environment may affect a test. */
const { PATH, [COMPILED]: compiled } = process.env;
const running = new Set<ChildProcess>();

/** Starts a program from the checkout with only these environment variables. */
export function startProgram(
  file: string,
  environment: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): RunningProgram {
  const child = spawn(process.execPath, [join(CHECKOUT, file), ...args], {
    env: { PATH, WORKERS: '1', ...(compiled !== undefined && { [COMPILED]: compiled }), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const printed = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text) => {
      printed[stream] += text;
    });
  }
  const ended = once(child, 'close').then(([code, signal]) => {
    running.delete(child);
    return { code, signal, ...printed };
  });
  return { child, printed, ended };
}

const SERVES = /^Payments service: (\S+) /m;

/** Starts the service on a free port and waits until it accepts calls. */
export async function startService(environment: Readonly<Record<string, string>>): Promise<ServiceProcess> {
  const program = startProgram('src/main.ts', { PORT: '0', ...environment });
  const url = new Promise<string>((resolve) => {
    program.child.stderr?.on('data', () => {
      const serves = SERVES.exec(program.printed.stderr)?.[1];
      if (serves) resolve(serves);
    });
  });
  const failed = program.ended.then(({ stderr }) => {
    throw new Error(`the service did not start: ${stderr}`);
  });
  return { ...program, url: await Promise.race([url, failed]) };
}

/** Waits until the service accepts no more connections, which is the case while it drains. */
export async function refusesConnections({ url }: ServiceProcess): Promise<void> {
  // A connection made just as the last worker closes is neither answered nor refused until the service exits.
  const signal = () => AbortSignal.timeout(1_000);
  const isRefused = () =>
    fetch(`${url}/healthz`, { headers: { connection: 'close' }, signal: signal() }).then(
      () => false,
      ({ name }) => name !== 'TimeoutError',
    );
  await expect.poll(isRefused).toBe(true);
}

/** Runs the service until it exits by itself, as it does if it cannot start. */
export function runService(environment: Readonly<Record<string, string>>): Promise<Ended> {
  return startProgram('src/main.ts', { PORT: '0', ...environment }).ended;
}

/** Runs a command from src/commands in a separate process until it exits, with only these environment variables. */
export function spawnCommand(
  name: string,
  environment: Readonly<Record<string, string>>,
  ...args: string[]
): Promise<Ended> {
  return startProgram(`src/commands/${name}.ts`, environment, args).ended;
}

/** The pid of the PostgreSQL server that runs on a data directory; undefined if none is running. */
export function postgresPid(dataDir: string): number | undefined {
  const file = join(dataDir, 'postgres/data/postmaster.pid');
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : undefined;
}

/**
 * Creates a data directory for a file's tests. After each test, kills processes that are still running; at the end,
 * kills a PostgreSQL that has lost its service, and removes the directory.
 */
export function ownDataDir(): string {
  const home = mkdtempSync(join(tmpdir(), 'service-process-'));
  // As root, PostgreSQL runs as another user, who needs access to the directory.
  chmodSync(home, 0o711);
  const dataDir = join(home, 'data');
  endAfterEach();
  afterAll(() => {
    const orphan = postgresPid(dataDir);
    if (orphan !== undefined) process.kill(orphan, 'SIGKILL');
    rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  });
  return dataDir;
}

/** After each test, kills the processes that the test left running. */
export function endAfterEach(): void {
  afterEach(async () => {
    const closed = [...running].map((child) => once(child, 'close'));
    for (const child of running) child.kill('SIGKILL');
    await Promise.all(closed);
  });
}
