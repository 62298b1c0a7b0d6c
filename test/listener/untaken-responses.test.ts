import http2 from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { pieceTaken } from '#src/listener/taken.ts';
import {
  app,
  connect,
  endAfterEach,
  exchange,
  finishSlow,
  frame,
  openConnections,
  othersAreServed,
  PREFACE,
  session,
  start,
} from '../support/listening-app.ts';

endAfterEach();

/** More than any socket buffer holds. */
const LARGE_BYTES = 8 * 2 ** 20;

/** Starts with `/large`, whose response is larger than both kernels' buffers. */
async function startWithLarge(limits: Parameters<typeof start>[0] = {}): Promise<void> {
  await start(limits, (server) => {
    server.get('/large', async (_request, reply) => reply.send(Buffer.alloc(LARGE_BYTES)));
  });
}

const GET_LARGE = 'GET /large HTTP/1.1\r\nHost: a\r\n\r\n';
/** SETTINGS that give every stream a window of 0 bytes. */
const NO_WINDOW = frame(4, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]));
const PING = frame(6, 0, 0, Buffer.alloc(8));

/** GET / on a stream, in the static table of HPACK: method, scheme, path; then the authority "a". */
const getOn = (streamId: number) => frame(1, 5, streamId, Buffer.from([0x82, 0x86, 0x84, 0x41, 0x01, 0x61]));

/** Requests `/large` and reads none of the response. */
function askLarge(client: http2.ClientHttp2Session): http2.ClientHttp2Stream {
  const stream = client.request({ ':path': '/large' });
  stream.on('error', () => {});
  // Node discards a response that has no listener.
  return stream.on('response', () => {});
}

const untilOpen = () => vi.waitFor(async () => expect(await openConnections()).toBe(1));
const untilClosed = () => vi.waitFor(async () => expect(await openConnections()).toBe(0), 12_000);

describe('responses that the client does not read', () => {
  it('an unread HTTP/2 response is given up after the deadline, however often the client pings', async () => {
    await start({ limits: { takeTimeoutMs: 200 } });
    const client = connect(PREFACE, NO_WINDOW, getOn(1));
    const pings = setInterval(() => client.socket.write(PING), 20);
    try {
      // RST_STREAM (type 3) of stream 1 with CANCEL.
      await client.has(frame(3, 0, 1, Buffer.from([0, 0, 0, 8])).toString('latin1'));
      await vi.waitFor(() => expect(client.received().split('\x06\x01\0\0\0\0').length).toBeGreaterThan(3));
    } finally {
      clearInterval(pings);
    }
  });

  it('an unread HTTP/2 response does not end the connection’s other streams', async () => {
    await startWithLarge({ limits: { takeTimeoutMs: 200, maxUnsentBytesPerConnection: 2 * LARGE_BYTES } });
    const client = session();
    await new Promise((resolve) => client.once('connect', resolve));
    // Leaves capacity for the other stream in addition to the window of the unread one.
    client.setLocalWindowSize(2 ** 20);
    const untaken = askLarge(client);
    const cut = new Promise((resolve) => untaken.once('close', resolve));
    const other = exchange(client, { ':path': '/slow' });
    await cut;
    expect(untaken.rstCode).toBe(http2.constants.NGHTTP2_CANCEL);
    finishSlow();
    expect(await other.done).toBe('200 {"slow":true}');
  });

  it('an unread HTTP/1.1 response ends its connection after the deadline', async () => {
    await startWithLarge({ limits: { takeTimeoutMs: 200, maxUnsentBytesPerConnection: 2 * LARGE_BYTES } });
    const client = connect(GET_LARGE);
    client.socket.pause();
    await untilOpen();
    await untilClosed();
    await othersAreServed();
  });

  it('an HTTP/2 client that reads nothing at all is disconnected', async () => {
    await startWithLarge({ limits: { takeTimeoutMs: 200, maxUnsentBytesPerConnection: 2 * LARGE_BYTES } });
    // Windows of 2^30 for streams and the connection, so that only TCP limits the flow.
    const wide = frame(4, 0, 0, Buffer.from([0, 4, 0x40, 0, 0, 0]));
    const widen = frame(8, 0, 0, Buffer.from([0x40, 0, 0, 0]));
    const large = Buffer.from([0x82, 0x86, 0x04, 0x06, ...Buffer.from('/large'), 0x41, 0x01, 0x61]);
    const client = connect(PREFACE, wide, widen);
    await vi.waitFor(() => expect(client.received()).not.toBe(''));
    client.socket.pause();
    client.socket.write(frame(1, 5, 1, large));
    await untilClosed();
    await othersAreServed();
  });

  it('a long response goes on as long as its pieces are taken, and ends once none is', async () => {
    const PIECE = 32 * 1024;
    await start({ limits: { takeTimeoutMs: 400 } }, (server) => {
      server.get('/pieces', (_request, reply) => {
        reply.hijack();
        const { raw } = reply;
        raw.writeHead(200);
        const next = () =>
          raw.write(Buffer.alloc(PIECE), (error) => {
            if (error) return;
            pieceTaken(raw);
            next();
          });
        next();
      });
    });
    const pieces = Buffer.from([0x82, 0x86, 0x04, 0x07, ...Buffer.from('/pieces'), 0x41, 0x01, 0x61]);
    const client = connect(PREFACE, frame(4, 0, 0), frame(1, 5, 1, pieces));
    const window = Buffer.alloc(4);
    window.writeUInt32BE(PIECE);
    const begunMs = performance.now();
    // The windows grow by a piece every 150 ms, for much longer than the deadline.
    for (let n = 0; n < 12; n++) {
      await sleep(150);
      client.socket.write(Buffer.concat([frame(8, 0, 0, window), frame(8, 0, 1, window)]));
    }
    await sleep(50);
    expect(performance.now() - begunMs).toBeGreaterThan(1_600);
    expect(client.received().length).toBeGreaterThan(12 * PIECE);
    const reset = frame(3, 0, 1, Buffer.from([0, 0, 0, 8])).toString('latin1');
    expect(client.received()).not.toContain(reset);
    await client.has(reset);
  });

  it('a pipelined response has its own deadline, counted from its first byte', async () => {
    await startWithLarge({
      limits: { takeTimeoutMs: 300, maxUnsentBytesPerConnection: 2 ** 30, maxUnsentBytes: 2 ** 30 },
    });
    const client = connect(GET_LARGE.repeat(8));
    client.socket.pause();
    await untilOpen();
    // Half a response at a time: each would be in time if counted from the end of the previous one.
    const half = setInterval(() => client.socket.resume(), 100);
    let taken = 0;
    client.socket.on('data', (chunk) => {
      if (Math.floor((2 * taken) / LARGE_BYTES) < Math.floor((2 * (taken + chunk.length)) / LARGE_BYTES)) {
        client.socket.pause();
      }
      taken += chunk.length;
    });
    await client.closed;
    clearInterval(half);
    expect(taken).toBeLessThan(8 * LARGE_BYTES);
  });

  it('a client that waits for an earlier response is not penalized', async () => {
    await startWithLarge({ limits: { takeTimeoutMs: 150 } });
    const client = connect('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await untilOpen();
    await sleep(500);
    finishSlow();
    await client.has('{"slow":true}');
    await client.has('{"version":"1.1"}');
  });
});

describe('limits of unsent bytes', () => {
  it('unsent bytes are limited for an HTTP/1.1 connection, including pipelined requests', async () => {
    await startWithLarge({ limits: { maxUnsentBytesPerConnection: LARGE_BYTES } });
    const client = connect(GET_LARGE.repeat(4));
    client.socket.pause();
    await untilOpen();
    await untilClosed();
    await othersAreServed();
  });

  it('unsent bytes are limited for an HTTP/2 connection', async () => {
    await startWithLarge({ limits: { maxUnsentBytesPerConnection: LARGE_BYTES } });
    const client = session();
    for (let i = 0; i < 4; i++) askLarge(client);
    await client.ended;
    await othersAreServed();
  });

  it('unsent bytes are limited in total, and the connections with the most are cut first', async () => {
    await startWithLarge({
      limits: { maxUnsentBytesPerConnection: 10 * LARGE_BYTES, maxUnsentBytes: 4 * LARGE_BYTES },
    });
    const modest = session();
    const small = exchange(modest, { ':path': '/large' });
    small.pause();
    const greedy = session();
    for (let i = 0; i < 6; i++) askLarge(greedy);
    await greedy.ended;
    expect(modest.destroyed).toBe(false);
    small.resume();
    expect((await small.done).length).toBe('200 '.length + LARGE_BYTES);
    await othersAreServed();
  });

  it('a client that reads its responses may receive more than the limit in total', async () => {
    await startWithLarge({ limits: { maxUnsentBytesPerConnection: 2 * LARGE_BYTES, takeTimeoutMs: 5_000 } });
    const client = session();
    for (let i = 0; i < 5; i++) {
      expect((await exchange(client, { ':path': '/large' }).done).length).toBe('200 '.length + LARGE_BYTES);
    }
    expect(app.server.listening).toBe(true);
  });
});

describe('bodies that do not begin', () => {
  it('an HTTP/1.1 body that does not begin in time is refused with 408', async () => {
    await start({ limits: { firstBodyTimeoutMs: 200 } });
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n';
    expect(await connect(head).closed).toContain('408 Request Timeout');
    await othersAreServed();
  });

  it('an HTTP/2 stream whose body does not begin is reset once no other body arrives', async () => {
    await start({ limits: { firstBodyTimeoutMs: 200 } });
    const client = session();
    const headers = { ':path': '/', ':method': 'POST', 'content-type': 'application/json' };
    const begun = client.request(headers);
    begun.write('[');
    // This stream's body may wait for the body that has begun.
    const waiting = client.request(headers);
    waiting.on('error', () => {});
    let isReset = false;
    const reset = new Promise<void>((resolve) => {
      waiting.once('close', () => {
        isReset = true;
        resolve();
      });
    });
    await sleep(500);
    expect(isReset).toBe(false);
    begun.end(']');
    expect((await begun.toArray()).join('')).toBe('[]');
    await reset;
    expect(waiting.rstCode).toBe(http2.constants.NGHTTP2_CANCEL);
  });
});

describe('stalls of the service', () => {
  it('a stall of the service does not count against a client whose body arrived meanwhile', async () => {
    await start({ limits: { firstBodyTimeoutMs: 200 } });
    const client = connect(
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n',
    );
    await new Promise((resolve) => app.server.once('request', resolve));
    client.socket.write('[]');
    const until = performance.now() + 500;
    while (performance.now() < until);
    await client.has('HTTP/1.1 200 OK');
  });
});

describe('the authority of a request', () => {
  it('an HTTP/1.1 request that names its host twice is refused with 400', async () => {
    await start();
    for (const second of ['Host: a', 'HOST: b']) {
      const client = connect(`GET / HTTP/1.1\r\nHost: a\r\n${second}\r\n\r\n`);
      await client.has('400 Bad Request');
    }
  });

  it('an HTTP/2 request whose Host differs from its authority is refused with 400', async () => {
    await start();
    const client = session();
    const get = (host: string) => exchange(client, { ':path': '/', ':authority': 'a.example', host }).done;
    expect(await get('b.example')).toBe('400 ');
    expect(await get('A.example')).toBe('200 {"version":"2.0"}');
  });
});
