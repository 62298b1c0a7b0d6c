import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compiledIn } from '../support/compiled.ts';

/** A process, of the service or of the test, that can be killed. */
export type Process = {
  /** The URL at which it listens. */
  readonly url: string;
  readonly pid: number;
  /** Returns the complete output of both its streams. */
  readonly output: () => string;
  /** Sends SIGKILL and waits until the process has exited. */
  kill(): Promise<void>;
  /** Freezes the process (SIGSTOP) and thaws it (SIGCONT). */
  freeze(): void;
  thaw(): void;
  /** Sends SIGTERM and waits. @returns its exit status. */
  end(): Promise<number | null>;
  readonly isAlive: () => boolean;
  /** Returns its number of open file descriptors and its resident memory. */
  usage(): { readonly handles: number; readonly rssBytes: number };
};

const START_TIMEOUT_MS = 120_000;
const END_TIMEOUT_MS = 30_000;

/** Starts a Node program whose output is collected. */
export function startNode(options: {
  readonly checkout: string;
  readonly program: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeOptions?: readonly string[];
}) {
  const { checkout, program, args = [], nodeOptions = [] } = options;
  const child = spawn(process.execPath, [...nodeOptions, join(checkout, program), ...args], {
    cwd: checkout,
    // The environment of this process must not affect the process under test.
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      // A replica is a single process, which a case can kill or freeze.
      WORKERS: '1',
      ...compiledIn(checkout),
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const chunks: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => chunks.push(chunk));
  }
  return { child, output: () => chunks.join('') };
}

/**
 * Starts a Node program and waits for the line with its URL.
 *
 * @param options.announces matches that line; the first group is the URL.
 * @throws Error if the program exits or prints no URL in time; `cause` is its output.
 */
export async function startProcess(
  options: Parameters<typeof startNode>[0] & { readonly announces: RegExp },
): Promise<Process> {
  const { child, output } = startNode(options);
  const gone = once(child, 'exit');
  const url = await announced(child, output, options.announces);
  const pid = child.pid ?? 0;
  const isAlive = () => child.exitCode === null && child.signalCode === null;
  const kill = async () => {
    child.kill('SIGKILL');
    await gone;
  };
  return {
    url,
    pid,
    output,
    isAlive,
    kill,
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    async end() {
      if (!isAlive()) return child.exitCode;
      child.kill('SIGCONT');
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), END_TIMEOUT_MS);
      await gone;
      clearTimeout(late);
      return child.exitCode;
    },
    usage: () => ({
      handles: readdirSync(`/proc/${pid}/fd`).length,
      rssBytes: Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024,
    }),
  };
}

function announced(child: ChildProcess, output: () => string, announces: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      child.kill('SIGKILL');
      reject(new Error(`${why}:\n${output().slice(-2_000)}`, { cause: output() }));
    };
    const timer = setTimeout(() => fail('a process did not start in time'), START_TIMEOUT_MS);
    const onClose = (code: number | null, signal: NodeJS.Signals | null) =>
      fail(`a process ended at its start with ${signal ?? code}`);
    // All output has been read by then.
    child.once('close', onClose);
    const look = () => {
      const url = announces.exec(output())?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      child.off('close', onClose);
      for (const stream of [child.stdout, child.stderr]) stream?.off('data', look);
      resolve(url);
    };
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', look);
  });
}
