import http2 from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import {
  connect,
  EMPTY_SETTINGS,
  endAfterEach,
  exchange,
  finishSlow,
  frame,
  GET,
  openConnections,
  othersAreServed,
  PREFACE,
  session,
  start,
} from '../support/listening-app.ts';

endAfterEach();

describe('limits of HTTP/2 connections', () => {
  it('an HTTP/2 server announces its limits', async () => {
    await start({ limits: { maxConcurrentStreams: 7 } });
    const client = session();
    await new Promise((resolve) => client.once('remoteSettings', resolve));
    expect(client.remoteSettings).toMatchObject({ maxConcurrentStreams: 7, maxHeaderListSize: 16_384 });
  });

  it('streams over the limit are refused, and those within it are served', async () => {
    await start({ limits: { maxConcurrentStreams: 4 } });
    const client = session(undefined, { peerMaxConcurrentStreams: 100 });
    const streams = Array.from({ length: 10 }, () => exchange(client, { ':path': '/slow' }));
    const { NGHTTP2_REFUSED_STREAM } = http2.constants;
    await Promise.all(
      streams
        .slice(4)
        .map(async (stream) => expect(await stream.done).toBe(`reset ${NGHTTP2_REFUSED_STREAM}`)),
    );
    finishSlow();
    for (const stream of streams.slice(0, 4)) expect(await stream.done).toBe('200 {"slow":true}');
  });

  it('a stream with too large or too many headers is reset', async () => {
    await start();
    const client = session();
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`x-${i}`, 'y']));
    expect(await exchange(client, { ':path': '/', ...many }).done).toMatch(/^reset/);
    expect(await exchange(client, { ':path': '/', 'x-large': 'x'.repeat(17_000) }).done).toMatch(/^reset/);
    expect(await exchange(client, { ':path': '/' }).done).toBe('200 {"version":"2.0"}');
  });

  it('a stream with a slow body is reset, but a stream with a slow response is not', async () => {
    await start({ limits: { receiveTimeoutMs: 300 } });
    const client = session();
    const slowAnswer = exchange(client, { ':path': '/slow' });
    const slowBody = client.request({ ':path': '/', ':method': 'POST', 'content-type': 'application/json' });
    slowBody.on('error', () => {});
    const dribble = setInterval(() => slowBody.write(' '), 50);
    await new Promise((resolve) => slowBody.once('close', resolve));
    clearInterval(dribble);
    expect(slowBody.rstCode).toBe(http2.constants.NGHTTP2_CANCEL);
    await sleep(100);
    finishSlow();
    expect(await slowAnswer.done).toBe('200 {"slow":true}');
  });

  it('a client that resets streams as fast as it opens them is disconnected', async () => {
    await start({ limits: { streamResetBurst: 20, streamResetRatePerS: 1 } });
    const client = session();
    let code: number | undefined;
    client.on('goaway', (goaway) => {
      code = goaway;
    });
    for (let i = 0; i < 60 && !client.closed; i++) {
      const stream = client.request({ ':path': '/slow' });
      stream.on('error', () => {});
      await sleep(2);
      stream.close(http2.constants.NGHTTP2_CANCEL);
      await sleep(2);
    }
    await client.ended;
    expect(code).toBe(http2.constants.NGHTTP2_INTERNAL_ERROR);
    await othersAreServed();
  });

  it.each([
    ['a frame larger than allowed', frame(0, 0, 1, Buffer.alloc(20_000))],
    ['DATA on a stream that was never opened', frame(0, 0, 1, Buffer.alloc(10))],
    ['a SETTINGS frame of a wrong length', frame(4, 0, 0, Buffer.alloc(5))],
    ['too many settings', frame(4, 0, 0, Buffer.alloc(6 * 500))],
    ['a header block that is not HPACK', frame(1, 5, 1, Buffer.alloc(50, 0xff))],
    [
      'a window of more than 2^31',
      Buffer.concat([
        frame(8, 0, 0, Buffer.from([0x7f, 255, 255, 255])),
        frame(8, 0, 0, Buffer.from([0x7f, 255, 255, 255])),
      ]),
    ],
    [
      'endless CONTINUATION',
      Buffer.concat([
        frame(1, 1, 1, Buffer.from([0x82])),
        ...Array.from({ length: 500 }, () => frame(9, 0, 1, Buffer.from([0x82]))),
      ]),
    ],
    [
      'pings whose responses are not read',
      Buffer.concat(Array.from({ length: 200_000 }, () => frame(6, 0, 0, Buffer.alloc(8)))),
    ],
  ])('an HTTP/2 connection is closed after %s', async (_name, bytes) => {
    await start();
    const client = connect(PREFACE, EMPTY_SETTINGS);
    await vi.waitFor(() => expect(client.received()).not.toBe(''));
    client.socket.pause();
    client.socket.write(bytes);
    await vi.waitFor(async () => expect(await openConnections()).toBe(0), 12_000);
    await othersAreServed();
  });
});

describe('limits of connections', () => {
  it('a connection over the limit is closed on arrival', async () => {
    await start({ limits: { maxConnections: 2 } });
    const first = connect(GET);
    await first.has('200 OK');
    const second = connect();
    await vi.waitFor(async () => expect(await openConnections()).toBe(2));
    expect(await connect(GET).closed).toBe('');
    second.socket.destroy();
    await vi.waitFor(async () => expect(await openConnections()).toBe(1));
    await connect(GET).has('200 OK');
  });

  it('idle connections of both protocols are closed', async () => {
    await start({ limits: { idleTimeoutMs: 100 } });
    const client = session();
    await exchange(client, { ':path': '/' }).done;
    const silent = connect(PREFACE, EMPTY_SETTINGS);
    expect(await connect(GET).closed).toContain('200 OK');
    await Promise.all([client.ended, silent.closed]);
    await vi.waitFor(async () => expect(await openConnections()).toBe(0));
  });

  it('connections that wait for a response are kept, however long', async () => {
    await start({ limits: { idleTimeoutMs: 50 } });
    const one = connect(GET.replace('/', '/stream'));
    const two = exchange(session(), { ':path': '/stream' });
    await one.has('begun');
    await sleep(300);
    finishSlow();
    await one.has('ended');
    expect(await two.done).toBe('200 begun ended');
  });

  it('an HTTP/2 client that does not read its responses is disconnected', async () => {
    await start({ limits: { idleTimeoutMs: 100 } });
    const noWindow = frame(4, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]));
    // GET / in the static table of HPACK: method, scheme, path; then the authority "a".
    const request = frame(1, 5, 1, Buffer.from([0x82, 0x86, 0x84, 0x41, 0x01, 0x61]));
    await connect(PREFACE, noWindow, request).closed;
  });
});
