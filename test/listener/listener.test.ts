import http from 'node:http';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConnectionOptions } from 'node:tls';
import Fastify from 'fastify';
import { describe, expect, it, vi } from 'vitest';
import { createListener } from '#src/listener/listener.ts';
import {
  connect,
  EMPTY_SETTINGS,
  endAfterEach,
  exchange,
  GET,
  openConnections,
  opened,
  othersAreServed,
  PREFACE,
  port,
  session,
  start,
  tls,
} from '../support/listening-app.ts';

endAfterEach();

describe('one port for both protocols', () => {
  it('HTTP/1.1 and HTTP/2 with prior knowledge are served on the same port', async () => {
    await start();
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).json()).toEqual({ version: '1.1' });
    expect(await exchange(session(), { ':path': '/' }).done).toBe('200 {"version":"2.0"}');
  });

  it('bodies arrive whole over both protocols', async () => {
    await start();
    const body = JSON.stringify({ text: 'x'.repeat(300_000) });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body });
    expect(await answer.text()).toBe(body);
    const posted = exchange(session(), { ':path': '/', ':method': 'POST', ...headers }, body);
    expect(await posted.done).toBe(`200 ${body}`);
  });

  it('the protocol is detected even if bytes arrive one at a time', async () => {
    await start();
    const one = connect();
    const two = connect();
    for (const byte of Buffer.from(GET)) {
      one.socket.write(Buffer.of(byte));
      await sleep(1);
    }
    for (const byte of Buffer.concat([PREFACE, EMPTY_SETTINGS])) {
      two.socket.write(Buffer.of(byte));
      await sleep(1);
    }
    await one.has('{"version":"1.1"}');
    // If the server accepts the preface, it sends its own SETTINGS frame.
    await vi.waitFor(() => expect(Buffer.from(two.received(), 'latin1')[3]).toBe(4));
  });

  it('both protocols are served over TLS by ALPN, and HTTP/1.1 without ALPN', async () => {
    await start({ tls });
    const get = (options: ConnectionOptions) =>
      new Promise<string>((resolve, reject) => {
        const request = https.get(
          { port, host: '127.0.0.1', ca: tls.cert, agent: false, ...options } as https.RequestOptions,
          (response) => {
            response.setEncoding('utf8').once('data', resolve);
          },
        );
        request.on('error', reject);
      });
    expect(await get({ ALPNProtocols: ['http/1.1'] })).toBe('{"version":"1.1"}');
    expect(await get({})).toBe('{"version":"1.1"}');
    const client = session(`https://127.0.0.1:${port}`, { ca: tls.cert });
    expect(await exchange(client, { ':path': '/' }).done).toBe('200 {"version":"2.0"}');
    expect(client.alpnProtocol).toBe('h2');
  });

  it('the listener survives cleartext and garbage on the TLS port', async () => {
    await start({ tls, limits: { sniffTimeoutMs: 100 } });
    await Promise.all([
      connect(GET).closed,
      connect(PREFACE).closed,
      connect('\x16\x03').closed,
      connect().closed,
    ]);
    const client = session(`https://127.0.0.1:${port}`, { ca: tls.cert });
    expect(await exchange(client, { ':path': '/' }).done).toBe('200 {"version":"2.0"}');
  });

  it('app.inject works without listening', async () => {
    const app = Fastify(createListener());
    app.get('/', async () => ({ ok: true }));
    expect((await app.inject('/')).json()).toEqual({ ok: true });
    await app.close();
  });
});

describe('connections of undecided protocol', () => {
  it('a connection that sends nothing, or sends the start of a preface slowly, is closed', async () => {
    await start({ limits: { sniffTimeoutMs: 100 } });
    const begun = performance.now();
    expect(await Promise.all([connect().closed, connect('P').closed, connect('PR').closed])).toEqual([
      '',
      '',
      '',
    ]);
    expect(performance.now() - begun).toBeGreaterThan(90);
  });

  it('a connection is closed if the client ends or resets it before its protocol is decided', async () => {
    await start();
    const ended = [connect(), connect('P')];
    for (const { socket } of ended) socket.end();
    await Promise.all(ended.map(({ closed }) => closed));
    const reset = connect('P');
    await sleep(20);
    reset.socket.resetAndDestroy();
    await vi.waitFor(async () => expect(await openConnections()).toBe(0));
    await othersAreServed();
  });
});

describe('HTTP/1.1 connections', () => {
  it('pipelined requests on one connection are answered in order', async () => {
    await start();
    const client = connect(GET, GET.replace('/', '/missing'), GET);
    await vi.waitFor(() =>
      expect(client.received().match(/HTTP\/1\.1 \d+/g)).toEqual([
        'HTTP/1.1 200',
        'HTTP/1.1 404',
        'HTTP/1.1 200',
      ]),
    );
    client.socket.write(GET);
    await vi.waitFor(() => expect(client.received().match(/HTTP\/1\.1 200/g)).toHaveLength(3));
  });

  it('a client that expects 100 Continue gets it', async () => {
    await start();
    const client = connect(
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n',
    );
    await client.has('HTTP/1.1 100 Continue\r\n\r\n');
    client.socket.write('{}');
    await client.has('HTTP/1.1 200 OK');
  });

  it('a request to upgrade is served without upgrading', async () => {
    await start();
    const client = connect(
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n',
    );
    await client.has('{"version":"1.1"}');
  });

  it('bytes that are not HTTP are refused with 400, not repeated, and the connection is closed', async () => {
    await start();
    for (const bad of [
      '4111111111111111\r\n\r\n',
      'GET / HTTP/1.1\r\nHost : 4111\r\n\r\n',
      '\x16\x03\x01\x00\xa5\x01\x00',
    ]) {
      expect(await connect(bad).closed).toBe(
        'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
      );
    }
    // Only HTTP/2 may use the method PRI, and these bytes are not an HTTP/2 preface.
    expect(await connect('PRI / HTTP/1.1\r\nHost: a\r\n\r\n').closed).not.toContain('HTTP/1.1');
    await othersAreServed();
  });

  it('a body framed in two ways, which a proxy could read differently, is refused', async () => {
    await start();
    const smuggled = connect(
      `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${GET}`,
    );
    expect(await smuggled.closed).toMatch(/^HTTP\/1\.1 400 [\s\S]*\r\n\r\n$/);
  });

  it('headers over the size limit are refused with 431', async () => {
    await start();
    expect(await connect(`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`).closed).toMatch(
      /^HTTP\/1\.1 431 /,
    );
  });

  it('header fields over the count limit are refused with 431, not dropped', async () => {
    await start();
    const fields = (n: number) => `GET / HTTP/1.1\r\nHost: a\r\n${'X: y\r\n'.repeat(n - 1)}\r\n`;
    await connect(fields(100)).has('200 OK');
    await connect(fields(101)).has('HTTP/1.1 431 ');
  });

  it('an invalid Host is refused with 400 over both protocols, and HTTP/1.0 needs none', async () => {
    await start();
    for (const host of ['[', 'a b', 'a:99999', ':::', '']) {
      await connect(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`).has('HTTP/1.1 400 ');
      expect(await exchange(session(), { ':path': '/', ':authority': host || '%' }).done).toMatch(
        /^(400|reset)/,
      );
    }
    for (const host of ['a', 'a.example:8080', '127.0.0.1:1', '[::1]:8080']) {
      await connect(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`).has('HTTP/1.1 200 ');
      expect(await exchange(session(), { ':path': '/', ':authority': host }).done).toMatch(/^200/);
    }
    expect(await connect('GET / HTTP/1.0\r\n\r\n').closed).toContain('{"version":"1.0"}');
  });

  it('a target in absolute form is served if it names the request’s Host, and refused with 400 if it names another', async () => {
    await start();
    for (const target of ['http://a/', 'HTTP://A:80/']) {
      await connect(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`).has('HTTP/1.1 200 ');
    }
    for (const target of ['http://b/', 'http://a:81/', 'http://a.b/', 'ftp:a', 'http://']) {
      await connect(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`).has('HTTP/1.1 400 ');
    }
  });

  it('requests with slow headers or slow bodies are refused with 408', async () => {
    await start({ limits: { headersTimeoutMs: 200, receiveTimeoutMs: 400 } });
    const slow = connect(
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n',
    );
    const dribble = setInterval(() => slow.socket.write(' '), 50);
    expect(await connect('GET / HTTP/1.1\r\nHo').closed).toMatch(/^HTTP\/1\.1 408 /);
    expect(await slow.closed).toMatch(/^HTTP\/1\.1 408 /);
    clearInterval(dribble);
  });
});

it('an http.Agent connection is kept open over many requests', async () => {
  await start();
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  opened.push(agent);
  const ports = new Set<number | undefined>();
  for (let i = 0; i < 20; i++) {
    await new Promise<void>((resolve) => {
      http.get({ port, host: '127.0.0.1', agent }, (response) => {
        ports.add(response.socket.localPort);
        response.resume().on('end', resolve);
      });
    });
  }
  expect(ports.size).toBe(1);
});
