import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect as connectTo, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { createHttpClient, type HttpClientOptions } from '#src/connectors/kit/http-client.ts';
import { isOnThisMachine } from '#src/connectors/kit/proxy-tunnel.ts';
import { Secret } from '#src/secret.ts';

const opened: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

function close(server: Server): void {
  server.closeAllConnections();
  server.close();
}

/** A provider that answers every request, and a proxy that tunnels to it whatever name is asked for. */
async function start(onConnect: (socket: Socket, tunnel: () => void) => void) {
  const received: string[] = [];
  const asked: (string | undefined)[][] = [];
  const provider = createServer((request, response) => {
    received.push(`${request.method} ${request.headers.host}${request.url}`);
    response.end('{}');
  });
  const proxy = createServer();
  proxy.on('connect', (request, socket: Socket) => {
    asked.push([request.url, request.headers['proxy-authorization']]);
    onConnect(socket, () => {
      const upstream = connectTo((provider.address() as AddressInfo).port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        upstream.pipe(socket).pipe(upstream);
      });
      upstream.on('error', () => socket.destroy());
      socket.on('error', () => upstream.destroy());
    });
  });
  for (const server of [provider, proxy]) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    opened.push({ close: () => close(server) });
  }
  const { port } = proxy.address() as AddressInfo;
  const client = (options: Partial<HttpClientOptions> = {}) => {
    const made = createHttpClient({
      ...{ origin: 'http://provider.example', timeoutMs: 1_000, maxResponseBytes: 1_000 },
      proxy: new Secret(`http://us%40er:pass@127.0.0.1:${port}`),
      ...options,
    });
    opened.unshift(made);
    return made;
  };
  return { client, received, asked };
}

const CALL = { method: 'POST', path: '/charge', headers: {}, body: '{}' } as const;

it('a call to a provider goes through the proxy, which learns only its name and port', async () => {
  const { client, received, asked } = await start((_socket, tunnel) => tunnel());
  const through = client({ timeoutMs: 1_500 });
  expect(await through.request(CALL)).toMatchObject({ kind: 'answer', status: 200 });
  // The limit on opening a tunnel does not end the tunnel.
  await setTimeout(1_600);
  expect(await through.request(CALL)).toMatchObject({ kind: 'answer', status: 200 });
  expect(received).toEqual(['POST provider.example/charge', 'POST provider.example/charge']);
  const credentials = `Basic ${Buffer.from('us@er:pass').toString('base64')}`;
  expect(asked).toEqual([['provider.example:80', credentials]]);
});

it.each([
  [
    'refuses the tunnel',
    (socket: Socket) => socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n'),
    'PROXY_REFUSED',
  ],
  ['closes the connection', (socket: Socket) => socket.destroy(), 'ECONNRESET'],
  ['does not answer', () => {}, 'DEADLINE'],
  ['answers with something else', (socket: Socket) => socket.end('SSH-2.0\r\n'), undefined],
])('a call was certainly not sent if the proxy %s', async (_what, onConnect, code) => {
  const { client, received } = await start(onConnect);
  const result = await client({ timeoutMs: 300 }).request(CALL);
  expect(result).toMatchObject({ kind: 'not_sent', because: 'unreachable' });
  if (code) expect(result).toMatchObject({ detail: `before sending: ${code}` });
  expect(received).toEqual([]);
});

it('a call was certainly not sent if the proxy is down', async () => {
  const { client } = await start(() => {});
  const proxy = new Secret('http://127.0.0.1:1');
  expect(await client({ proxy }).request(CALL)).toMatchObject({
    kind: 'not_sent',
    detail: 'before sending: ECONNREFUSED',
  });
});

it('a call was certainly not sent if TLS fails inside the tunnel', async () => {
  const { client, received, asked } = await start((_socket, tunnel) => tunnel());
  const result = await client({ origin: 'https://provider.example' }).request(CALL);
  expect(result).toMatchObject({ kind: 'not_sent' });
  expect([asked.map(([name]) => name), received]).toEqual([['provider.example:443'], []]);
});

it('the outcome of a call is unknown if the tunnel breaks after the call was sent', async () => {
  const { client } = await start((socket) => {
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    socket.on('data', () => socket.destroy());
  });
  expect(await client().request(CALL)).toMatchObject({ kind: 'unknown' });
});

it('a provider on this machine is reached without the proxy', async () => {
  const { client, received, asked } = await start((_socket, tunnel) => tunnel());
  const direct = createServer((_request, response) => response.end('{}'));
  await new Promise<void>((resolve) => direct.listen(0, '127.0.0.1', resolve));
  opened.push({ close: () => close(direct) });
  const origin = `http://127.0.0.1:${(direct.address() as AddressInfo).port}`;
  expect(await client({ origin }).request(CALL)).toMatchObject({ kind: 'answer', status: 200 });
  expect([received, asked]).toEqual([[], []]);
  expect(['http://localhost:1', 'http://[::1]:1', 'https://127.9.9.9'].every(isOnThisMachine)).toBe(true);
  expect(['https://api.stripe.com', 'http://10.0.0.1'].some(isOnThisMachine)).toBe(false);
});
