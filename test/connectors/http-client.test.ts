import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createHttpClient, type HttpClient, type HttpRequest } from '#src/connectors/kit/http-client.ts';
import { collectGarbage } from '../support/collect-garbage.ts';
import { freePort } from '../support/free-port.ts';
import { untilAsked } from './conformance-calls.ts';
import { httpAnswer, type Script, type ScriptedServer, startScriptedServer } from './scripted-server.ts';

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const it of opened.splice(0).reverse()) await it.close();
});

async function serve(script: Script, onConnection?: (socket: Socket) => void): Promise<ScriptedServer> {
  const server = await startScriptedServer(script, onConnection ? { onConnection } : {});
  opened.push(server);
  return server;
}

function clientOf(port: number, limits: { timeoutMs?: number; maxInFlight?: number } = {}): HttpClient {
  const { timeoutMs = 20_000, maxInFlight = 64 } = limits;
  const origin = `http://127.0.0.1:${port}`;
  const client = createHttpClient({ origin, timeoutMs, maxInFlight, maxResponseBytes: 64 * 1024 });
  opened.push(client);
  return client;
}

function post(id: string): HttpRequest {
  return { method: 'POST', path: '/pay', headers: { 'x-id': id }, body: `{"id":"${id}"}` };
}

const answerOk: Script = (socket) => socket.write(httpAnswer(201, '{"ok":true}'));

describe('responses to an HTTP request', () => {
  it('a response has the status and the bytes', async () => {
    const server = await serve(answerOk);
    const result = await clientOf(server.port).request(post('a'));
    expect(result).toMatchObject({ kind: 'answer', status: 201 });
    expect(result.kind === 'answer' && Buffer.from(result.body).toString()).toBe('{"ok":true}');
    expect(server.requests[0]).toMatch(
      /^POST \/pay HTTP\/1\.1\r\n[\s\S]*\r\nx-id: a\r\n[\s\S]*\{"id":"a"\}$/,
    );
  });

  it('a response is assembled from chunks', async () => {
    const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
    const server = await serve((socket) => socket.write(`${head}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`));
    const result = await clientOf(server.port).request(post('a'));
    expect(result.kind === 'answer' && Buffer.from(result.body).toString()).toBe('abcde');
  });

  it('a response is the final one, even after a 103', async () => {
    const server = await serve((socket) =>
      socket.write(`HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${httpAnswer(200, '{}')}`),
    );
    expect(await clientOf(server.port).request(post('a'))).toMatchObject({ kind: 'answer', status: 200 });
  });

  it('a response is returned for a redirect, which is not followed', async () => {
    const server = await serve((socket) => socket.write(httpAnswer(307, '', { location: '/elsewhere' })));
    expect(await clientOf(server.port).request(post('a'))).toMatchObject({ kind: 'answer', status: 307 });
    expect(server.requests).toHaveLength(1);
  });

  it('a response contains the headers that distinguish outcomes, and no others', async () => {
    const told = {
      'Transient-Error': 'true',
      'idempotent-replayed': 'true',
      'stripe-should-retry': 'false',
      'retry-after': '3',
      'request-id': 'req_1',
      'x-request-id': 'x-1',
      'paypal-debug-id': 'f1',
      pspReference: 'PSP1',
    };
    const others = { 'set-cookie': 'card=4111111111111111', server: 'scripted' };
    const server = await serve((socket) => socket.write(httpAnswer(201, '{}', { ...told, ...others })));
    const result = await clientOf(server.port).request(post('a'));
    const names = Object.entries(told).map(([name, value]) => [name.toLowerCase(), value]);
    expect(result.kind === 'answer' && result.headers).toEqual({
      'content-type': 'application/json',
      ...Object.fromEntries(names),
    });
  });

  it('a response omits headers that are too long or sent twice, and the headers of a preceding 103', async () => {
    const server = await serve((socket) =>
      socket.write(
        'HTTP/1.1 103 Early Hints\r\ntransient-error: true\r\n\r\nHTTP/1.1 500 No\r\ncontent-length: 0\r\n' +
          `request-id: ${'x'.repeat(257)}\r\nstripe-should-retry: true\r\nstripe-should-retry: false\r\n\r\n`,
      ),
    );
    const result = await clientOf(server.port).request(post('a'));
    expect(result).toMatchObject({ kind: 'answer', status: 500, headers: {} });
    expect(result.kind === 'answer' && result.headers).toEqual({});
  });

  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const)(
    'a response is returned for %s',
    async (method) => {
      const server = await serve(answerOk);
      const body = method === 'GET' || method === 'DELETE' ? undefined : 'a=1';
      const result = await clientOf(server.port).request({ ...post('a'), method, body });
      expect(result).toMatchObject({ kind: 'answer', status: 201 });
      expect(server.requests).toEqual([
        expect.stringMatching(new RegExp(`^${method} /pay [^]*${body ?? ''}$`)),
      ]);
    },
  );

  it('a response leaves its socket open for later requests', async () => {
    const server = await serve(answerOk);
    const client = clientOf(server.port);
    for (let i = 0; i < 10; i++) expect(await client.request(post(`${i}`))).toMatchObject({ kind: 'answer' });
    // A socket rests for one turn of the event loop after a response; meanwhile a second one is opened.
    expect(server.openSockets()).toBeLessThanOrEqual(2);
  });
});

it('a request in flight keeps only its own bytes in memory', async () => {
  const server = await serve(() => {});
  const client = clientOf(server.port);
  const beforeBytes = bufferBytes();
  const waiting = Array.from({ length: 64 }, (_, i) => {
    // Uses up the current block, so that a body in a shared block would keep a block to itself.
    Buffer.allocUnsafe(Buffer.poolSize / 2 - 1).fill(0);
    Buffer.allocUnsafe(Buffer.poolSize / 2 - 1).fill(0);
    return client.request(post(`${i}`));
  });
  await vi.waitFor(() => expect(server.requests).toHaveLength(64));
  // Memory is given back in the background, some time after a collection.
  await vi.waitFor(() => expect(bufferBytes() - beforeBytes).toBeLessThan((64 * Buffer.poolSize) / 4), 5_000);
  await server.close();
  await Promise.all(waiting);
});

/** Collects garbage. @returns the bytes of the buffers that are left. */
function bufferBytes(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

describe('requests that are not sent', () => {
  it('a request to a port that refuses connections is not_sent', async () => {
    expect(await clientOf(await freePort()).request(post('a'))).toEqual({
      kind: 'not_sent',
      detail: 'before sending: ECONNREFUSED',
      because: 'unreachable',
    });
  });

  it('a request with a header that cannot be sent is not_sent', async () => {
    const server = await serve(answerOk);
    const request = { ...post('a'), headers: { authorization: 'Bearer secret\r\nx: y' } };
    expect(await clientOf(server.port).request(request)).toEqual({
      kind: 'not_sent',
      detail: 'before sending: UND_ERR_INVALID_ARG',
      because: 'unreachable',
    });
  });

  it('a request whose deadline passes before its socket is connected is not_sent, and is not sent later', async () => {
    const server = await serve(answerOk);
    const client = clientOf(server.port);
    const late = client.request({ ...post('waits'), deadlineAtMs: performance.now() + 20 });
    // Once the event loop runs again, the deadline comes before the connection.
    const blockedUntilMs = performance.now() + 60;
    while (performance.now() < blockedUntilMs);
    expect(await late).toEqual({
      kind: 'not_sent',
      detail: 'before sending: DEADLINE',
      because: 'unreachable',
    });
    expect(await client.request(post('next'))).toMatchObject({ kind: 'answer' });
    expect(server.requests.filter((text) => text.includes('waits'))).toEqual([]);
  });

  it('a request is not_sent at once if too many requests are already in flight', async () => {
    const server = await serve(() => {});
    const client = clientOf(server.port, { timeoutMs: 300, maxInFlight: 8 });
    const waiting = Array.from({ length: 8 }, () => client.request(post('waits')));
    expect(await client.request(post('exceeds'))).toEqual({
      kind: 'not_sent',
      detail: 'before sending: TOO_MANY_IN_FLIGHT',
      because: 'turned_away',
    });
    await Promise.all(waiting);
    expect(server.requests.filter((text) => text.includes('exceeds'))).toEqual([]);
  });

  it('a request after close is not_sent', async () => {
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

describe('the deadline of a request', () => {
  it("a request's own deadline ends it before the client's time limit", async () => {
    const { results, openSockets } = await untilAsked(async () => {
      const server = await serve(() => {});
      const client = clientOf(server.port, { timeoutMs: 60_000 });
      const deadlineAtMs = performance.now() + 400;
      const results = await Promise.all(
        ['a', 'b'].map((id) => client.request({ ...post(id), deadlineAtMs })),
      );
      return { ...server, results };
    }, 2);
    const late = { kind: 'unknown', detail: 'awaiting the response: DEADLINE' };
    expect(results).toEqual([late, late]);
    await expect.poll(openSockets).toBe(0);
  });

  it("a request's own deadline does not extend the client's time limit", async () => {
    const { result } = await untilAsked(async () => {
      const server = await serve(() => {});
      const client = clientOf(server.port, { timeoutMs: 400 });
      const result = await client.request({ ...post('a'), deadlineAtMs: performance.now() + 60_000 });
      return { ...server, result };
    });
    expect(result).toEqual({ kind: 'unknown', detail: 'awaiting the response: DEADLINE' });
  });

  it('a request whose own deadline has passed is not sent', async () => {
    const server = await serve(answerOk);
    const client = clientOf(server.port);
    // Its socket is ready for the next request.
    expect(await client.request(post('a'))).toMatchObject({ kind: 'answer' });
    const result = await client.request({ ...post('b'), deadlineAtMs: performance.now() - 1 });
    expect(result).toEqual({ kind: 'not_sent', detail: 'before sending: DEADLINE', because: 'unreachable' });
    expect(server.requests).toHaveLength(1);
  });
});

describe('requests with an unknown result', () => {
  it('a response over the size limit leaves the result unknown, and its socket is destroyed', async () => {
    const server = await serve((socket) => socket.write(httpAnswer(200, 'x'.repeat(65 * 1024))));
    const result = await clientOf(server.port).request(post('a'));
    expect(result).toEqual({ kind: 'unknown', detail: 'reading the response: ANSWER_TOO_LARGE' });
    await expect.poll(() => server.openSockets()).toBe(0);
  });

  it('a response that ends after the deadline leaves the result unknown, and its socket is destroyed', async () => {
    const server = await serve((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf'));
    const result = await clientOf(server.port, { timeoutMs: 2_000 }).request(post('a'));
    expect(result).toEqual({ kind: 'unknown', detail: 'reading the response: DEADLINE' });
    await expect.poll(() => server.openSockets()).toBe(0);
  });

  it('if the server resets a reused keep-alive socket, the result is unknown, and nothing is sent twice', async () => {
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

  it('the detail of an unknown result contains no part of the request or the address', async () => {
    const server = await serve((socket) => socket.end('4111111111111111 secret\r\n\r\n'));
    const result = await clientOf(server.port).request(post('4111111111111111'));
    expect(result).toMatchObject({ kind: 'unknown' });
    expect(JSON.stringify(result)).not.toMatch(/4111|secret|127\.0\.0\.1/);
  });
});

describe('close', () => {
  it('closing the client waits for requests in flight and leaves no socket open', async () => {
    const server = await serve((socket) => setTimeout(() => socket.write(httpAnswer(200, '{}')), 150));
    const client = clientOf(server.port);
    const results = Promise.all([client.request(post('a')), client.request(post('b'))]);
    await expect.poll(() => server.requests.length).toBe(2);
    await client.close();
    await expect.poll(() => server.openSockets()).toBe(0);
    expect((await results).map((result) => result.kind)).toEqual(['answer', 'answer']);
  });
});
