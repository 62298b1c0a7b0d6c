import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { headersOne } from '../../support/payment-requests.ts';
import { exchange, type Order, paymentOf, send } from '../orders.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** Malicious clients: each gets a clear refusal, while others are served. */
export const HOSTILE: readonly Case[] = [
  {
    name: 'hostile input',
    async run(world) {
      const { url } = await world.startReplica();
      const served = serveOthers(world, url);
      const slow = slowBodies(url, 50);
      // A hostile body is not an order and must have no effect.
      const order = world.order();
      for (const { name, headers, body, status } of world.random.shuffled(hostileBodies(order))) {
        const answer = await exchange(`${url}/v1/payments`, {
          method: 'POST',
          headers: { ...headersOne(), 'content-type': 'application/json', ...headers },
          body,
        });
        world.expect(status.includes(answer.status ?? 0), `${name}: the response was ${answer.status}`);
        const echoes =
          answer.body.includes(order.cardNumber) || answer.body.includes(`"${order.securityCode}"`);
        world.expect(!echoes, `${name}: the response contains a secret`);
      }
      await manyStreams(url, 3_000);
      slow.end();
      await served.stop();
    },
  },
  {
    name: 'calls that never end',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const served = serveOthers(world, url);
      const holding = world.random.shuffled([
        ...Array.from({ length: 4 }, () => holdOn(url, 256, { window: 65_535, endsBody: false })),
        ...Array.from({ length: 4 }, () => holdOn(url, 256, { window: 0, endsBody: true })),
      ]);
      // Within this time the service gives up a stream whose body has not begun or whose response is not read.
      const isOver = () => holding.every(({ open }) => open() === 0);
      await world.until('streams that hold on to be given up', isOver, GIVEN_UP_MS);
      for (const { session } of holding) session.destroy();
      await served.stop();
    },
  },
];

type Hostile = {
  readonly name: string;
  readonly headers?: Record<string, string>;
  readonly body: string | Buffer;
  /** Allowed statuses; 0 stands for a broken connection. */
  readonly status: readonly number[];
};

const REFUSED = [400, 413, 415, 422];

function hostileBodies(order: Order): Hostile[] {
  const whole = JSON.parse(order.body);
  // Accepted bodies are charged with a separate reference, because another key makes another payment.
  let count = 0;
  const another = () => ({ ...whole, merchant_reference: `hostile ${count++}` });
  const wrongTypes = leaves(whole).flatMap((path) =>
    [[], {}, 1e21, -1, true, 'x'.repeat(300), '\u0000', [[[[]]]]].map((value) => ({
      name: `${path.join('.')} as ${JSON.stringify(value)?.slice(0, 20)}`,
      body: JSON.stringify(withValue(another(), path, value)),
      // Some fields accept some of these values; the request then makes a payment under a separate key.
      status: [...REFUSED, 201],
    })),
  );
  const depth = 30_000;
  return [
    ...wrongTypes,
    { name: 'deep arrays', body: '['.repeat(depth) + ']'.repeat(depth), status: REFUSED },
    { name: 'deep objects', body: `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`, status: REFUSED },
    { name: '__proto__', body: `{"__proto__":{"account_id":"x"},"constructor":{}}`, status: REFUSED },
    {
      name: 'a string of 1 MB',
      body: JSON.stringify({ ...whole, description: 'x'.repeat(2 ** 20) }),
      status: REFUSED,
    },
    {
      name: 'invalid UTF-8',
      body: Buffer.from(order.body.replace('JORDAN', '\xff\xfe'), 'latin1'),
      status: REFUSED,
    },
    {
      name: 'a gzip bomb',
      headers: { 'content-encoding': 'gzip' },
      body: gzipSync(Buffer.alloc(100 * 2 ** 20, 0x20)),
      status: REFUSED,
    },
    { name: 'no JSON', body: order.body.slice(0, -30), status: REFUSED },
    { name: 'nothing', body: '', status: REFUSED },
  ];
}

function leaves(value: unknown, path: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [[...path]];
  return [
    [...path],
    ...Object.entries(value).flatMap(([key, member]) => leaves(member, [...path, key])),
  ].filter((found) => found.length > 0);
}

function withValue(whole: object, path: readonly string[], value: unknown): object {
  const copy = structuredClone(whole) as Record<string, unknown>;
  let within = copy;
  for (const step of path.slice(0, -1)) within = within[step] as Record<string, unknown>;
  within[path.at(-1) ?? ''] = value;
  return copy;
}

/** Sends ordinary orders until stopped; each must get a response soon. */
function serveOthers(world: World, url: string): { stop(): Promise<void> } {
  let stopped = false;
  const running = (async () => {
    while (!stopped) {
      const answer = await send(url, world.order());
      world.expect(paymentOf(answer)?.status === 'SUCCEEDED', `meanwhile another order got ${answer.status}`);
      world.expect(answer.tookMs < 5_000, `meanwhile another order waited ${Math.round(answer.tookMs)} ms`);
      await sleep(50);
    }
  })();
  return {
    async stop() {
      stopped = true;
      await running;
    },
  };
}

/** Opens requests whose bodies never end. */
function slowBodies(url: string, count: number): { end(): void } {
  const { hostname, port } = new URL(url);
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(Number(port), hostname).on('error', () => {});
    socket.write('POST /v1/payments HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n');
    socket.write('content-length: 1000\r\n\r\n{');
    return socket;
  });
  return {
    end: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

const GIVEN_UP_MS = 60_000;

/** Makes calls with the public key alone on one connection; they never send their body or never read their response. */
function holdOn(url: string, count: number, how: { window: number; endsBody: boolean }) {
  const session = connectHttp2(url, { settings: { initialWindowSize: how.window } }).on('error', () => {});
  const { 'private-secret-key': _secret, ...publicKey } = headersOne();
  let open = 0;
  for (let i = 0; i < count; i++) {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/v1/payments',
      'content-type': 'application/json',
      ...publicKey,
    });
    open++;
    stream.on('error', () => {}).once('close', () => open--);
    // Without a listener, Node would discard the response.
    stream.on('response', () => {});
    if (how.endsBody) stream.end('{}');
  }
  const pings = setInterval(() => !session.destroyed && session.ping(() => {}), 1_000);
  session.once('close', () => clearInterval(pings));
  return { session, open: () => open };
}

/** Opens many streams at once on one connection; the service may refuse or reset any of them. */
async function manyStreams(url: string, count: number): Promise<void> {
  const session = connectHttp2(url).on('error', () => {});
  const ended = Array.from(
    { length: count },
    () =>
      new Promise<void>((resolve) => {
        if (session.destroyed) return resolve();
        const stream = session.request({ ':path': '/healthz' });
        stream.on('error', () => {});
        stream.once('close', resolve);
        stream.resume();
        stream.end();
      }),
  );
  await Promise.all(ended);
  session.destroy();
}
