import { randomUUID } from 'node:crypto';
import http from 'node:http';
import http2 from 'node:http2';
import net, { BlockList } from 'node:net';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { restCalls } from '../customers/calls.ts';
import { checkoutCalls } from '../customers/checkout.ts';
import { onService, server } from '../support/on-service.ts';

/* One client at 127.0.0.1 tries to keep all others away; the others connect from 127.0.0.2. */

/** The path of an open session's checkout page. */
let checkout: string;
const RETURN = `/v1/payments/${randomUUID()}/return`;
const NOTIFICATIONS = '/v1/providers/sandbox-one/notifications';
const OTHER = '127.0.0.2';

const open: { destroy(): unknown }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.destroy();
});

/** Makes a request from another address. @returns the status. */
function fromElsewhere(path: string, method = 'GET'): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = http.request(server.url + path, { localAddress: OTHER, method, agent: false });
    request.on('response', (response) => resolve(response.resume().statusCode));
    request.on('error', reject).end();
  });
}

const othersAreServed = async () => {
  expect(await fromElsewhere(checkout)).toBe(200);
  expect(await fromElsewhere(RETURN)).toBe(404);
  expect(await fromElsewhere(NOTIFICATIONS, 'POST')).toBe(401);
  expect(await fromElsewhere('/dashboard/sign-in')).toBe(200);
};

/** Opens an HTTP/2 connection. Its streams' errors are expected. */
function connect(options: http2.ClientSessionOptions = {}) {
  const session = http2.connect(server.url, options);
  session.on('error', () => {});
  open.push(session);
  return (headers: http2.OutgoingHttpHeaders) => {
    const stream = session.request(headers, { endStream: headers[':method'] !== 'POST' });
    return stream.on('error', () => {});
  };
}

const statusOf = (stream: http2.ClientHttp2Stream) =>
  new Promise<number | undefined>((resolve) => {
    stream.once('response', (head) => resolve(head[':status']));
    stream.once('close', () => resolve(undefined));
  });

describe('one client and the requests without account keys', () => {
  onService();
  beforeAll(async () => {
    checkout = `/checkout/${await checkoutCalls(restCalls(server.url)).openSession()}`;
  });

  it('224 pages that a client does not read keep nobody else from a page, a return or a notification', async () => {
    const request = connect({ settings: { initialWindowSize: 0 } });
    for (const path of [checkout, RETURN, '/dashboard/sign-in', '/checkout/assets/checkout.js']) {
      const unread = Array.from({ length: 56 }, () => request({ ':path': path }));
      await Promise.all(unread.map(statusOf));
    }
    await othersAreServed();
  });

  it('a page that its client does not read is given up after five seconds', async () => {
    const request = connect({ settings: { initialWindowSize: 0 } });
    const stream = request({ ':path': checkout });
    const startedMs = performance.now();
    await new Promise((resolve) => stream.once('close', resolve));
    expect(stream.rstCode).toBe(http2.constants.NGHTTP2_CANCEL);
    expect(performance.now() - startedMs).toBeLessThan(12_000);
  });

  it('a notification to an unknown connection is refused before its body, and 100 of them take no slot', async () => {
    const request = connect();
    const bodiless = Array.from({ length: 100 }, () =>
      request({
        ':method': 'POST',
        ':path': '/v1/providers/unknown/notifications',
        'content-type': 'text/plain',
      }),
    );
    expect(new Set(await Promise.all(bodiless.map(statusOf)))).toEqual(new Set([401]));
    await othersAreServed();
  });

  it('bodies that a client sends slowly to a known connection, or to the sign-in, take no slot', async () => {
    const request = connect();
    for (let i = 0; i < 100; i++) {
      for (const [path, type] of [
        [NOTIFICATIONS, 'application/json'],
        ['/dashboard/sign-in', 'application/x-www-form-urlencoded'],
      ] as const) {
        const headers = { ':method': 'POST', ':path': path, 'content-type': type };
        request({ ...headers, origin: server.url, 'sec-fetch-site': 'same-origin' }).write('a');
      }
    }
    await othersAreServed();
    // The client itself is still served, too.
    expect((await fetch(server.url + checkout)).status).toBe(200);
  });
});

describe('one client and the connections', () => {
  const trustedProxies = new BlockList();
  trustedProxies.addAddress('127.0.0.3');
  // 41 of 4,096 connections.
  onService({ config: { addressSharePercent: 1, trustedProxies } });

  /** Opens idle connections from an address. @returns the number that stay open. */
  async function staying(localAddress: string, count: number): Promise<number> {
    const { hostname, port } = new URL(server.url);
    let closed = 0;
    const connected = Array.from({ length: count }, () => {
      const socket = net.connect({ host: hostname, port: Number(port), localAddress });
      open.push(socket);
      socket
        .on('error', () => {})
        .on('close', () => {
          closed += 1;
        });
      return new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
    });
    await Promise.all(connected);
    // A connection over the limit is closed on arrival, and its client notices a little later.
    await vi.waitFor(async () => {
      const before = closed;
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(closed).toBe(before);
    });
    return count - closed;
  }

  it('one address holds only its share of the connections, and others connect', async () => {
    const stayed = await staying('127.0.0.1', 60);
    // The service's own calls from this address have connections, too.
    expect(stayed).toBeGreaterThan(30);
    expect(stayed).toBeLessThanOrEqual(41);
    expect(await fromElsewhere('/healthz')).toBe(200);
    for (const one of open.splice(0)) one.destroy();
    await vi.waitFor(async () => expect((await fetch(`${server.url}/healthz`)).status).toBe(200));
  });

  it('a trusted proxy, which connects for many clients, holds as many connections as it likes', async () => {
    expect(await staying('127.0.0.3', 60)).toBe(60);
  });
});
