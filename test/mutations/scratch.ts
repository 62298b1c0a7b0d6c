import { type ChildProcess, fork } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer, Question } from './session.ts';

/** Everything that tests read and that tsc checks: it refuses every mutant where an import leads nowhere. */
const PARTS = [
  'src',
  'sandbox',
  'tools',
  'examples',
  'gen',
  'config',
  'proto',
  'third_party',
  'test',
  'clients',
  'docs',
  '.ci',
];
const FILES = [
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
  'README.md',
  'biome.json',
  'buf.yaml',
  'buf.gen.yaml',
];

/** A copy of the checkout in which mutants are tried: the checkout itself is never changed. */
export type Scratch = {
  readonly path: string;
  write(file: string, text: string): void;
  /**
   * Runs test files in their order until a test fails.
   *
   * @returns undefined when there was no result in time.
   * @throws Stopped; Error when the process of the tests ended, which says nothing of the mutant.
   */
  runTests(question: Question, timeoutMs: number): Promise<Answer | undefined>;
  /** Ends the tests that are running, and runs no more. */
  stop(): Promise<void>;
  /** Ends the processes and removes the copy. */
  remove(): Promise<void>;
};

/** The run was stopped from outside: that tests have ended says nothing of the mutant. */
export class Stopped extends Error {
  constructor() {
    super('Stopped. Run it again to go on from here.');
  }
}

/** Copies the checkout. @param atOnce how many test files are run at once. */
export function createScratch(root: string, atOnce: number): Scratch {
  const home = mkdtempSync(join(tmpdir(), 'mutations-'));
  // As root, PostgreSQL runs as a user who has to pass through.
  chmodSync(home, 0o711);
  const path = join(home, 'checkout');
  const temporary = join(home, 'tmp');
  mkdirSync(path);
  mkdirSync(temporary);
  chmodSync(temporary, 0o1777);
  for (const part of [...PARTS, ...FILES]) cpSync(join(root, part), join(path, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'));

  let session: Promise<ChildProcess> | undefined;
  let isStopped = false;
  let ending: Promise<void> = Promise.resolve();
  function end(): Promise<void> {
    const ended = session;
    session = undefined;
    if (ended) ending = ended.then(killGroup);
    return ending;
  }

  return {
    path,
    write: (file, text) => writeFileSync(join(path, file), text),
    async runTests(question, timeoutMs) {
      if (isStopped) throw new Stopped();
      session ??= startSession(path, temporary, atOnce);
      const answer = await ask(await session, question, timeoutMs);
      if (isStopped) throw new Stopped();
      if (answer === 'gone') throw new Error('The process of the tests was ended from outside.');
      if (answer === 'late') await end();
      return answer === 'late' ? undefined : answer;
    },
    stop() {
      isStopped = true;
      return end();
    },
    async remove() {
      isStopped = true;
      await end();
      await removeDirectory(home);
    },
  };
}

/** `gone`: tests run in processes of their own, so no mutant ends this one. */
function ask(child: ChildProcess, question: Question, timeoutMs: number): Promise<Answer | 'late' | 'gone'> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => settle('late'), timeoutMs);
    const gone = () => settle('gone');
    const settle = (answer: Answer | 'late' | 'gone') => {
      clearTimeout(timer);
      child.off('message', settle);
      child.off('exit', gone);
      resolve(answer);
    };
    child.on('message', settle);
    child.on('exit', gone);
    if (child.connected) child.send(question);
    else gone();
  });
}

/** PostgreSQL may still be writing, when its process had to be killed. */
async function removeDirectory(path: string): Promise<void> {
  for (let attempt = 1; existsSync(path) && attempt <= 20; attempt++) {
    if (attempt > 1) await sleep(250);
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // Something was written into it meanwhile.
    }
  }
}

function startSession(path: string, temporary: string, atOnce: number): Promise<ChildProcess> {
  // A group of its own, so that what a stuck test has started ends with it.
  const child = fork(join(path, 'test/mutations/session.ts'), [String(atOnce)], {
    cwd: path,
    detached: true,
    env: { ...process.env, TMPDIR: temporary },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  return new Promise((resolve, reject) => {
    child.once('message', () => resolve(child));
    child.once('exit', (code) =>
      reject(new Error(`the process of the tests ended at its start, code ${code}`)),
    );
  });
}

/** Asks the session to end, with its PostgreSQL, and then kills whatever is left of its group. */
async function killGroup(child: ChildProcess): Promise<void> {
  if (child.connected) child.disconnect();
  if (child.exitCode === null && child.signalCode === null) {
    await Promise.race([
      new Promise((resolve) => child.once('exit', resolve)),
      new Promise((resolve) => setTimeout(resolve, 10_000).unref()),
    ]);
  }
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Nothing was left.
  }
}
