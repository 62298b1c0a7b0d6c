import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createHttpClient, type HttpClient, type HttpRequest } from '#src/connectors/http-client.ts';
import {
  closedPort,
  httpAnswer,
  type Script,
  type ScriptedServer,
  startScriptedServer,
} from './scripted-server.ts';

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const it of opened.splice(0).reverse()) await it.close();
});

async function serve(script: Script, onConnection?: (socket: Socket) => void): Promise<ScriptedServer> {
  const server = await startScriptedServer(script, onConnection ? { onConnection } : {});
  opened.push(server);
  return server;
}

function clientOf(port: number, limits: { timeoutMs?: number; maxConnections?: number } = {}): HttpClient {
  const { timeoutMs = 1_000, maxConnections = 8 } = limits;
  const origin = `http://127.0.0.1:${port}`;
  const client = createHttpClient({ origin, timeoutMs, maxConnections, maxResponseBytes: 64 * 1024 });
  opened.push(client);
  return client;
}

function post(id: string): HttpRequest {
  return { method: 'POST', path: '/pay', headers: { 'x-id': id }, body: `{"id":"${id}"}` };
}

const answerOk: Script = (socket) => socket.write(httpAnswer(201, '{"ok":true}'));

describe('an answer', () => {
  it('is its status and its bytes', async () => {
    const server = await serve(answerOk);
    const result = await clientOf(server.port).request(post('a'));
    expect(result).toMatchObject({ kind: 'answer', status: 201 });
    expect(result.kind === 'answer' && Buffer.from(result.body).toString()).toBe('{"ok":true}');
    expect(server.requests[0]).toMatch(
      /^POST \/pay HTTP\/1\.1\r\n[\s\S]*\r\nx-id: a\r\n[\s\S]*\{"id":"a"\}$/,
    );
  });

  it('is put together from chunks', async () => {
    const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
    const server = await serve((socket) => socket.write(`${head}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`));
    const result = await clientOf(server.port).request(post('a'));
    expect(result.kind === 'answer' && Buffer.from(result.body).toString()).toBe('abcde');
  });

  it('is the final one, whatever 103 came before', async () => {
    const server = await serve((socket) =>
      socket.write(`HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${httpAnswer(200, '{}')}`),
    );
    expect(await clientOf(server.port).request(post('a'))).toMatchObject({ kind: 'answer', status: 200 });
  });

  it('is given for a redirect, which is not followed', async () => {
    const server = await serve((socket) => socket.write(httpAnswer(307, '', { location: '/elsewhere' })));
    expect(await clientOf(server.port).request(post('a'))).toMatchObject({ kind: 'answer', status: 307 });
    expect(server.requests).toHaveLength(1);
  });

  it('leaves its socket to later requests', async () => {
    const server = await serve(answerOk);
    const client = clientOf(server.port);
    for (let i = 0; i < 10; i++) expect(await client.request(post(`${i}`))).toMatchObject({ kind: 'answer' });
    // A socket rests for one turn of the event loop after an answer; meanwhile a second one is opened.
    expect(server.openSockets()).toBeLessThanOrEqual(2);
  });
});

describe('not_sent', () => {
  it('is what a refused connection gives', async () => {
    expect(await clientOf(await closedPort()).request(post('a'))).toEqual({
      kind: 'not_sent',
      detail: 'before sending: ECONNREFUSED',
      because: 'unreachable',
    });
  });

  it('is what a header that cannot be sent gives', async () => {
    const server = await serve(answerOk);
    const request = { ...post('a'), headers: { authorization: 'Bearer secret\r\nx: y' } };
    expect(await clientOf(server.port).request(request)).toEqual({
      kind: 'not_sent',
      detail: 'before sending: UND_ERR_INVALID_ARG',
      because: 'unreachable',
    });
  });

  it('is what a request gets whose deadline passed while it waited for a socket; it is not sent later either', async () => {
    const server = await serve((socket, text) => {
      if (!text.includes('hangs')) answerOk(socket, text);
    });
    const client = clientOf(server.port, { timeoutMs: 200, maxConnections: 1 });
    const [hung, waited] = await Promise.all([client.request(post('hangs')), client.request(post('waits'))]);
    expect(hung).toEqual({ kind: 'unknown', detail: 'awaiting the answer: DEADLINE' });
    expect(waited).toEqual({ kind: 'not_sent', detail: 'before sending: DEADLINE', because: 'unreachable' });
    expect(await client.request(post('next'))).toMatchObject({ kind: 'answer' });
    expect(server.requests.filter((text) => text.includes('waits'))).toEqual([]);
  });

  it('is what a request gets at once when too many wait already', async () => {
    const server = await serve(() => {});
    const client = clientOf(server.port, { timeoutMs: 300, maxConnections: 1 });
    const results = await Promise.all(Array.from({ length: 9 }, (_, i) => client.request(post(`${i}`))));
    expect(results[8]).toEqual({
      kind: 'not_sent',
      detail: 'before sending: TOO_MANY_WAITING',
      because: 'turned_away',
    });
    expect(server.requests).toHaveLength(1);
  });

  it('is what a request gets after close', async () => {
    const server = await serve(answerOk);
    const client = clientOf(server.port);
    await client.close();
    expect(await client.request(post('a'))).toEqual({
      kind: 'not_sent',
      detail: 'before sending: CLOSED',
      because: 'unreachable',
    });
    expect(server.requests).toEqual([]);
  });
});

describe('unknown', () => {
  it('is what an answer over the limit gives, and its socket is destroyed', async () => {
    const server = await serve((socket) => socket.write(httpAnswer(200, 'x'.repeat(65 * 1024))));
    const result = await clientOf(server.port).request(post('a'));
    expect(result).toEqual({ kind: 'unknown', detail: 'reading the answer: ANSWER_TOO_LARGE' });
    await expect.poll(() => server.openSockets()).toBe(0);
  });

  it('is what a deadline between head and end of the answer gives, and its socket is destroyed', async () => {
    const server = await serve((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf'));
    const result = await clientOf(server.port, { timeoutMs: 150 }).request(post('a'));
    expect(result).toEqual({ kind: 'unknown', detail: 'reading the answer: DEADLINE' });
    await expect.poll(() => server.openSockets()).toBe(0);
  });

  it('is what a keep-alive socket gives that the server resets when it is used again, and nothing is sent twice', async () => {
    let answered = 0;
    const server = await serve((socket, text) => {
      if (answered++ === 0) answerOk(socket, text);
      else socket.resetAndDestroy();
    });
    const client = clientOf(server.port);
    await client.request(post('first'));
    expect(await client.request(post('second'))).toMatchObject({ kind: 'unknown' });
    await sleep(50);
    expect(server.requests).toHaveLength(2);
  });

  it('holds nothing of request or address in its detail', async () => {
    const server = await serve((socket) => socket.end('4111111111111111 secret\r\n\r\n'));
    const result = await clientOf(server.port).request(post('4111111111111111'));
    expect(result).toMatchObject({ kind: 'unknown' });
    expect(JSON.stringify(result)).not.toMatch(/4111|secret|127\.0\.0\.1/);
  });
});

describe('close', () => {
  it('waits for requests in flight and leaves no socket open', async () => {
    const server = await serve((socket) => setTimeout(() => socket.write(httpAnswer(200, '{}')), 150));
    const client = clientOf(server.port);
    const results = Promise.all([client.request(post('a')), client.request(post('b'))]);
    await expect.poll(() => server.requests.length).toBe(2);
    await client.close();
    await expect.poll(() => server.openSockets()).toBe(0);
    expect((await results).map((result) => result.kind)).toEqual(['answer', 'answer']);
  });
});

describe('certainty', () => {
  it('holds against a server that breaks off at random: sent at most once, not_sent never received', async () => {
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
    const random = randomOf(seed);
    const receipts = new Map<string, number>();
    const server = await serve(
      (socket, text) => {
        const id = /x-id: (\d+)/.exec(text)?.[1] ?? '';
        receipts.set(id, (receipts.get(id) ?? 0) + 1);
        misbehave(socket, random());
      },
      (socket) => {
        if (random() < 0.05) socket.resetAndDestroy();
        // Idle keep-alive sockets die while requests are about to be written to them.
        else if (random() < 0.5) setTimeout(() => socket.end(), random() * 30);
      },
    );
    const client = clientOf(server.port, { timeoutMs: 120, maxConnections: 6 });
    const results = new Map<string, string>();
    await Promise.all(
      Array.from({ length: 24 }, async (_, worker) => {
        for (let i = 0; i < 25; i++) {
          const id = `${worker * 1_000 + i}`;
          results.set(id, (await client.request(post(id))).kind);
        }
      }),
    );
    await client.close();

    const kinds = new Set(results.values());
    expect(kinds, `seed ${seed}`).toEqual(new Set(['answer', 'unknown', 'not_sent']));
    for (const [id, kind] of results) {
      const count = receipts.get(id) ?? 0;
      expect(count, `seed ${seed}: ${id} was sent twice`).toBeLessThanOrEqual(1);
      if (kind === 'not_sent') expect(count, `seed ${seed}: ${id} was not_sent`).toBe(0);
      if (kind === 'answer') expect(count, `seed ${seed}: ${id} was answered`).toBe(1);
    }
  });
});

function misbehave(socket: Socket, dice: number): void {
  const ok = httpAnswer(200, '{}');
  if (dice < 0.6) socket.write(ok);
  else if (dice < 0.7) socket.end(ok);
  else if (dice < 0.8) socket.write(ok, () => socket.resetAndDestroy());
  else if (dice < 0.9) socket.resetAndDestroy();
  else if (dice < 0.95) socket.end(ok.slice(0, 20));
  // Else it hangs.
}

/** Mulberry32: small, and the same everywhere for a seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
