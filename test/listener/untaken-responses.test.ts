import http2 from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
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

/** More than any socket buffer takes. */
const LARGE_BYTES = 8 * 2 ** 20;

/** Starts with `/large`, which answers with more than the peer's and our kernel hold. */
async function startWithLarge(limits: Parameters<typeof start>[0] = {}): Promise<void> {
  await start(limits, (server) => {
    server.get('/large', async (_request, reply) => reply.send(Buffer.alloc(LARGE_BYTES)));
  });
}

const GET_LARGE = 'GET /large HTTP/1.1\r\nHost: a\r\n\r\n';
/** SETTINGS that give every stream a window of 0 bytes. */
const NO_WINDOW = frame(4, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]));
const PING = frame(6, 0, 0, Buffer.alloc(8));

/** GET / on a stream, by the static table of HPACK: method, scheme, path; then the authority "a". */
const getOn = (streamId: number) => frame(1, 5, streamId, Buffer.from([0x82, 0x86, 0x84, 0x41, 0x01, 0x61]));

/** Asks for it and reads nothing of it. */
function askLarge(client: http2.ClientHttp2Session): http2.ClientHttp2Stream {
  const stream = client.request({ ':path': '/large' });
  stream.on('error', () => {});
  // Without a listener for it Node would throw the response away.
  return stream.on('response', () => {});
}

const untilOpen = () => vi.waitFor(async () => expect(await openConnections()).toBe(1));
const untilClosed = () => vi.waitFor(async () => expect(await openConnections()).toBe(0), 12_000);

describe('a response that its client does not take', () => {
  it('is given up after the deadline over HTTP/2, however often the client pings', async () => {
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

  it('costs its HTTP/2 connection no other stream', async () => {
    await startWithLarge({ limits: { takeTimeoutMs: 200, maxUnsentBytesPerConnection: 2 * LARGE_BYTES } });
    const client = session();
    await new Promise((resolve) => client.once('connect', resolve));
    // Room for the other stream beside the window of the one that nobody reads.
    client.setLocalWindowSize(2 ** 20);
    const untaken = askLarge(client);
    const cut = new Promise((resolve) => untaken.once('close', resolve));
    const other = exchange(client, { ':path': '/slow' });
    await cut;
    expect(untaken.rstCode).toBe(http2.constants.NGHTTP2_CANCEL);
    finishSlow();
    expect(await other.done).toBe('200 {"slow":true}');
  });

  it('ends its connection after the deadline over HTTP/1.1', async () => {
    await startWithLarge({ limits: { takeTimeoutMs: 200, maxUnsentBytesPerConnection: 2 * LARGE_BYTES } });
    const client = connect(GET_LARGE);
    client.socket.pause();
    await untilOpen();
    await untilClosed();
    await othersAreServed();
  });

  it('ends an HTTP/2 connection that reads nothing at all', async () => {
    await startWithLarge({ limits: { takeTimeoutMs: 200, maxUnsentBytesPerConnection: 2 * LARGE_BYTES } });
    // A window of 2^30 for streams, and as much for the connection, so that TCP alone holds it up.
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

  it('counts against the deadline from its own first byte when it was asked for behind others', async () => {
    await startWithLarge({
      limits: { takeTimeoutMs: 300, maxUnsentBytesPerConnection: 2 ** 30, maxUnsentBytes: 2 ** 30 },
    });
    const client = connect(GET_LARGE.repeat(8));
    client.socket.pause();
    await untilOpen();
    // Half a response at a time, so that each would be in time, were it counted from the end of the one before.
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

  it('is not held against a client that waits for the response before it', async () => {
    await startWithLarge({ limits: { takeTimeoutMs: 150 } });
    const client = connect('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await untilOpen();
    await sleep(500);
    finishSlow();
    await client.has('{"slow":true}');
    await client.has('{"version":"1.1"}');
  });
});

describe('unsent bytes', () => {
  it('are bounded for one HTTP/1.1 connection, pipelined requests included', async () => {
    await startWithLarge({ limits: { maxUnsentBytesPerConnection: LARGE_BYTES } });
    const client = connect(GET_LARGE.repeat(4));
    client.socket.pause();
    await untilOpen();
    await untilClosed();
    await othersAreServed();
  });

  it('are bounded for one HTTP/2 connection', async () => {
    await startWithLarge({ limits: { maxUnsentBytesPerConnection: LARGE_BYTES } });
    const client = session();
    for (let i = 0; i < 4; i++) askLarge(client);
    await client.ended;
    await othersAreServed();
  });

  it('are bounded in all, and those who hold most are cut first', async () => {
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

  it('are none of a client that takes what it asks for', async () => {
    await startWithLarge({ limits: { maxUnsentBytesPerConnection: 2 * LARGE_BYTES, takeTimeoutMs: 5_000 } });
    const client = session();
    for (let i = 0; i < 5; i++) {
      expect((await exchange(client, { ':path': '/large' }).done).length).toBe('200 '.length + LARGE_BYTES);
    }
    expect(app.server.listening).toBe(true);
  });
});

describe('a body that does not begin', () => {
  it('is refused with 408 over HTTP/1.1 after the time for its first bytes', async () => {
    await start({ limits: { firstBodyTimeoutMs: 200 } });
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n';
    expect(await connect(head).closed).toContain('408 Request Timeout');
    await othersAreServed();
  });

  it('resets its stream over HTTP/2, once no other body arrives', async () => {
    await start({ limits: { firstBodyTimeoutMs: 200 } });
    const client = session();
    const headers = { ':path': '/', ':method': 'POST', 'content-type': 'application/json' };
    const begun = client.request(headers);
    begun.write('[');
    // Its body may wait for the one that has begun.
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

describe('a stall of our own', () => {
  it('does not count against a client whose body came meanwhile', async () => {
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

describe('the authority', () => {
  it('is refused with 400 when an HTTP/1.1 request names it twice, alike or not', async () => {
    await start();
    for (const second of ['Host: a', 'HOST: b']) {
      const client = connect(`GET / HTTP/1.1\r\nHost: a\r\n${second}\r\n\r\n`);
      await client.has('400 Bad Request');
    }
  });

  it('is refused with 400 when an HTTP/2 request has a Host that differs from it', async () => {
    await start();
    const client = session();
    const get = (host: string) => exchange(client, { ':path': '/', ':authority': 'a.example', host }).done;
    expect(await get('b.example')).toBe('400 ');
    expect(await get('A.example')).toBe('200 {"version":"2.0"}');
  });
});
