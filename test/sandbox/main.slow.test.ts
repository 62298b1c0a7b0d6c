import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { CHARGE } from './provider-under-test.ts';

const MAIN = join(import.meta.dirname, '../../sandbox/main.ts');

it('the provider runs as a process, keeps charges across a restart, and exits with 0 on a signal', async () => {
  const database = await createTestDatabase({ empty: true });
  const answers: string[] = [];
  for (let start = 0; start < 2; start++) {
    const child = run(['--database-url', database.url, '--port', '18790', '--api-key', 'key']);
    expect(await firstOutput(child)).toBe('sandbox provider: http://127.0.0.1:18790\n');
    const response = await fetch('http://127.0.0.1:18790/v1/charges', {
      method: 'POST',
      headers: {
        authorization: 'Bearer key',
        'content-type': 'application/json',
        'idempotency-key': 'a',
        connection: 'close',
      },
      body: JSON.stringify(CHARGE),
    });
    answers.push(await response.text());
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  }
  expect(answers[0]).toContain('"approved"');
  expect(answers[1]).toBe(answers[0]);
  await database.drop();
});

it('the provider refuses to start without a required setting, and names it', async () => {
  const child = run(['--port', '18790']);
  const message = firstOutput(child, 'stderr');
  expect(await once(child, 'exit')).toEqual([1, null]);
  expect(await message).toMatch(/^--database-url is required\nUsage: /);
});

function run(args: string[]) {
  return spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
}

async function firstOutput(
  child: ReturnType<typeof run>,
  stream: 'stdout' | 'stderr' = 'stdout',
): Promise<string> {
  const [chunk] = await once(child[stream], 'data');
  return String(chunk);
}
