import http2 from 'node:http2';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, vi } from 'vitest';
import {
  app,
  connect,
  EMPTY_SETTINGS,
  endAfterEach,
  exchange,
  finishSlow,
  GET,
  openConnections,
  opened,
  PREFACE,
  port,
  session,
  start,
  tls,
  untilSlowAsked,
} from '../support/listening-app.ts';

endAfterEach();

describe('closing the listener', () => {
  it('closing the listener ends idle connections, and those whose protocol is undecided, at once', async () => {
    await start();
    const idle = connect(GET);
    await idle.has('200 OK');
    const client = session();
    await exchange(client, { ':path': '/' }).done;
    const undecided = connect('P');
    await vi.waitFor(async () => expect(await openConnections()).toBe(3));
    const begun = performance.now();
    await app.close();
    await Promise.all([idle.closed, client.ended, undecided.closed]);
    expect(performance.now() - begun).toBeLessThan(10_000);
  });

  it('closing the listener ends idle TLS connections at once, even those that never sent a request', async () => {
    await start({ tls });
    const client = session(`https://127.0.0.1:${port}`, { ca: tls.cert });
    await exchange(client, { ':path': '/' }).done;
    const silent = connectTls({ port, host: '127.0.0.1', ca: tls.cert, ALPNProtocols: ['http/1.1'] });
    opened.push(silent);
    await new Promise((resolve) => silent.once('secureConnect', resolve));
    const begun = performance.now();
    await app.close();
    expect(performance.now() - begun).toBeLessThan(10_000);
  });

  it('a closing listener answers requests in flight: HTTP/1.1 with Connection: close, HTTP/2 until streams end', async () => {
    await start();
    const one = connect(GET.replace('/', '/slow'));
    const begun = connect(GET.replace('/', '/stream'));
    const client = session();
    const two = exchange(client, { ':path': '/slow' });
    await begun.has('begun');
    await untilSlowAsked(2);
    const goaway = new Promise((resolve) => client.once('goaway', resolve));
    const closed = app.close();
    expect(await goaway).toBe(http2.constants.NGHTTP2_NO_ERROR);
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
    finishSlow();
    expect(await one.closed).toMatch(
      /^HTTP\/1\.1 200 OK\r\n[\s\S]*connection: close\r\n[\s\S]*\{"slow":true\}$/i,
    );
    expect(await begun.closed).toContain('ended');
    expect(await two.done).toBe('200 {"slow":true}');
    await closed;
  });

  it('a closing listener delivers all pipelined responses', async () => {
    await start();
    const slow = GET.replace('/', '/slow');
    const client = connect(slow + slow + slow);
    await untilSlowAsked(3);
    const closed = app.close();
    finishSlow();
    expect((await client.closed).match(/\{"slow":true\}/g)).toHaveLength(3);
    await closed;
  });

  it('a closing listener cuts the remaining connections after the drain timeout', async () => {
    await start({ limits: { drainTimeoutMs: 200 } });
    const one = connect(GET.replace('/', '/slow'));
    const two = exchange(session(), { ':path': '/slow' });
    const deaf = connect(PREFACE, EMPTY_SETTINGS);
    await vi.waitFor(async () => expect(await openConnections()).toBe(3));
    await untilSlowAsked(2);
    const begun = performance.now();
    await app.close();
    expect(performance.now() - begun).toBeGreaterThan(190);
    expect(performance.now() - begun).toBeLessThan(10_000);
    expect(await one.closed).toBe('');
    await two.done;
    await deaf.closed;
  });
});
