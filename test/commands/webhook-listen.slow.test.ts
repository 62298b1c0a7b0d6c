import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { onService, server, tables } from '../support/on-service.ts';

const COMMAND = join(import.meta.dirname, '../../src/commands/webhook-listen.ts');
const KEYS = { 'public-api-key': 'pk_sandbox_one', 'private-secret-key': 'sk_sandbox_one' };

onService();

function listen(...args: string[]) {
  const child = spawn(process.execPath, [COMMAND, '--port', '0', ...args]);
  const printed = { text: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      printed.text += text;
    });
  }
  return { child, printed, ended: once(child, 'close') };
}

it('webhook-listen registers itself, prints verified events, refuses forged ones, and removes itself', async () => {
  const { child, printed, ended } = listen('--service', server.url);
  const shows = (text: string | RegExp) => vi.waitFor(() => expect(printed.text).toMatch(text), 60_000);
  await shows(/^Listening at \S+ as webhook \S+\./m);
  const [, address = '', id = ''] = /Listening at (\S+) as webhook ([0-9a-f-]+)/.exec(printed.text) ?? [];
  await fetch(`${server.url}/v1/webhooks/${id}/test`, { method: 'POST', headers: KEYS });
  await shows(/^✓ webhook\.test$/m);
  const forged = await fetch(address, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', 'webhook-id': 'a', 'webhook-signature': 'v1,AAAA' },
      'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
    },
    body: '{}',
  });
  expect(forged.status).toBe(401);
  child.kill('SIGINT');
  expect(await ended).toEqual([0, null]);
  expect(await tables.query('SELECT id FROM webhook')).toEqual([]);
});

it('webhook-listen removes only the webhook that a killed predecessor left behind', async () => {
  const started = async (...args: string[]) => {
    const { child, printed, ended } = listen('--service', server.url, ...args);
    await vi.waitFor(() => expect(printed.text).toContain('Listening at '), 60_000);
    const [, url = '', id] = /Listening at (\S+) as webhook ([0-9a-f-]+)/.exec(printed.text) ?? [];
    return { child, ended, url, id };
  };
  const killed = await started();
  killed.child.kill('SIGKILL');
  await killed.ended;
  const body = JSON.stringify({
    url: killed.url,
    events: ['payment.purchase'],
    description: 'the shop’s own',
  });
  const headers = { ...KEYS, 'content-type': 'application/json' };
  await fetch(`${server.url}/v1/webhooks`, { method: 'POST', headers, body });
  const next = await started('--port', new URL(killed.url).port);
  expect(await tables.query('SELECT url, description FROM webhook ORDER BY created_at')).toEqual([
    { url: next.url, description: 'the shop’s own' },
    { url: next.url, description: 'npm run webhook-listen' },
  ]);
  next.child.kill('SIGHUP');
  expect(await next.ended).toEqual([0, null]);
  expect(await tables.query(`SELECT FROM webhook WHERE id = '${next.id}'`)).toEqual([]);
});
