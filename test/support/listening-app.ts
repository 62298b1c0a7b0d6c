import { readFileSync } from 'node:fs';
import http2 from 'node:http2';
import net from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { createListener, type ListenerOptions } from '#src/listener/listener.ts';

/** A self-signed certificate for localhost, for tests only. */
export const tls = {
  cert: readFileSync(new URL('tls/cert.pem', import.meta.url)),
  key: readFileSync(new URL('tls/key.pem', import.meta.url)),
};
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
export const EMPTY_SETTINGS = frame(4, 0, 0);
export const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

export const opened: { destroy(): unknown }[] = [];
export let app: FastifyInstance;
export let port: number;
/** Ends the responses of `/slow` and `/stream`. */
export let finishSlow: () => void;
let slowAsked: number;
/** Waits until `/slow` has been requested this number of times. */
export const untilSlowAsked = (times: number) => vi.waitFor(() => expect(slowAsked).toBe(times));

/** Closes everything that a test opened, and asserts that nothing was printed. */
export function endAfterEach(): void {
  beforeEach(() => {
    for (const method of ['log', 'info', 'warn', 'error'] as const) vi.spyOn(console, method);
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) one.destroy();
    finishSlow?.();
    await app?.close();
    for (const method of ['log', 'info', 'warn', 'error'] as const)
      expect(console[method]).not.toHaveBeenCalled();
    vi.restoreAllMocks();
  });
}

/** Starts a Fastify application behind the listener on its own port, with the routes that `mount` adds. */
export async function start(
  options: ListenerOptions = {},
  mount: (app: FastifyInstance) => void = () => {},
): Promise<void> {
  app = Fastify(createListener(options));
  const slow = Promise.withResolvers<void>();
  finishSlow = slow.resolve;
  slowAsked = 0;
  app.get('/', async (request) => ({ version: request.raw.httpVersion }));
  app.post('/', async (request) => request.body);
  app.get('/slow', async () => {
    slowAsked += 1;
    await slow.promise;
    return { slow: true };
  });
  app.get('/stream', async (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200);
    reply.raw.write('begun ');
    await slow.promise;
    reply.raw.end('ended');
  });
  mount(app);
  await app.listen({ port: 0, host: '127.0.0.1' });
  port = (app.server.address() as net.AddressInfo).port;
}

/** A raw connection: the data received so far, and its end. */
export function connect(...writes: (string | Buffer)[]) {
  const socket = net.connect(port, '127.0.0.1');
  opened.push(socket);
  let received = '';
  const closed = new Promise<string>((resolve) => {
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
  });
  for (const write of writes) socket.write(write);
  return {
    socket,
    closed,
    received: () => received,
    has: (text: string) => vi.waitFor(() => expect(received).toContain(text), 60_000),
  };
}

export function session(origin = `http://127.0.0.1:${port}`, options: http2.SecureClientSessionOptions = {}) {
  const client = http2.connect(origin, options);
  client.on('error', () => {});
  opened.push(client);
  return Object.assign(client, { ended: new Promise<void>((resolve) => client.once('close', resolve)) });
}

/** Status and body, or "reset" with the code. */
export function exchange(
  client: http2.ClientHttp2Session,
  headers: http2.OutgoingHttpHeaders,
  body?: string,
) {
  const stream = client.request(headers, { endStream: body === undefined });
  let status: number | undefined;
  let text = '';
  stream.on('response', (answer) => {
    status = answer[':status'];
  });
  stream.on('data', (chunk) => {
    text += chunk;
  });
  stream.on('error', () => {});
  if (body !== undefined) stream.end(body);
  const done = new Promise<string>((resolve) =>
    stream.once('close', () => resolve(stream.rstCode ? `reset ${stream.rstCode}` : `${status} ${text}`)),
  );
  return Object.assign(stream, { done });
}

/** A frame of RFC 9113, section 4.1. */
export function frame(
  type: number,
  flags: number,
  streamId: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

export const othersAreServed = async () =>
  expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200);

export const openConnections = () =>
  new Promise<number>((resolve, reject) =>
    app.server.getConnections((error, n) => (error ? reject(error) : resolve(n))),
  );
