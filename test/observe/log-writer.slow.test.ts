import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, expect, it } from 'vitest';

const MODULE = new URL('../../src/observe/log-writer.ts', import.meta.url).href;
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Runs a script with `log` and `writer`, and returns the messages that it sends. */
function run(script: string, maxWaitingBytes = 1024 * 1024) {
  const source = `
    import { pino } from 'pino';
    import { createLogWriter } from ${JSON.stringify(MODULE)};
    const writer = createLogWriter({ maxWaitingBytes: ${maxWaitingBytes} });
    const log = pino({ base: null }, writer);
    const tell = (message) => new Promise((told) => process.send(message, told));
    ${script}`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

async function linesOf(child: ChildProcess): Promise<{ n?: number; dropped?: number; level: number }[]> {
  const text = (await child.stdout?.setEncoding('utf8').toArray())?.join('') ?? '';
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

it('every line is written whole and in order until the writer ends', async () => {
  const child = run(
    `
    for (let n = 0; n < 20_000; n++) {
      log.info({ n }, 'x'.repeat(n % 500));
      if (n % 100 === 0) await new Promise(setImmediate);
    }
    await tell(await writer.end(10_000));
    process.exit();`,
    64 * 1024 * 1024,
  );
  const reading = linesOf(child);
  const [isWritten] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  const lines = await reading;
  expect(isWritten).toBe(true);
  expect(lines.map(({ n }) => n)).toEqual(Array.from({ length: 20_000 }, (_, n) => n));
});

it('a line is written even if no other follows, and before its process is killed', async () => {
  const child = run(`log.info({ n: 1 }, 'alone'); setInterval(() => {}, 1000);`);
  const [text] = await once(child.stdout as NonNullable<ChildProcess['stdout']>, 'data');
  child.kill('SIGKILL');
  expect(JSON.parse(String(text))).toMatchObject({ n: 1 });
});

it('an unread pipe neither blocks logging nor grows the buffer beyond its bound, and drops are counted', async () => {
  const child = run(`
    for (let n = 0; n < 30_000; n++) {
      log.info({ n }, 'x'.repeat(300));
      if (n % 100 === 0) await new Promise(setImmediate);
    }
    await tell('logged');
    await new Promise((resolve) => process.once('message', resolve));
    log.info({ n: -1 });
    await writer.end(10_000);
    process.exit();`);
  // This message is sent although none of the 10 MB of logs was read; the pipe and the writer hold little more than 1
  // MB.
  await once(child, 'message');
  const lines = linesOf(child);
  child.send('read');
  const all = await lines;
  const dropped = all.reduce((sum, line) => sum + (line.dropped ?? 0), 0);
  expect(dropped).toBeGreaterThan(15_000);
  expect(all.filter(({ n }) => n !== undefined).length).toBeLessThan(10_000);
  expect(all.filter(({ n }) => n !== undefined).length + dropped).toBeGreaterThanOrEqual(30_000);
});

it('ending the writer takes a limited time even if nobody reads', async () => {
  const child = run(`
    for (let n = 0; n < 5_000; n++) log.info({ n }, 'x'.repeat(300));
    await tell(await writer.end(300));
    process.kill(process.pid, 'SIGKILL');`);
  const [isWritten] = await once(child, 'message');
  expect(isWritten).toBe(false);
});
