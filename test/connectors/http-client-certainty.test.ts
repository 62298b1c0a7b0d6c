import type { Socket } from 'node:net';
import { type Dispatcher, Pool } from 'undici';
import { expect, it, vi } from 'vitest';
import { createHttpClient } from '#src/connectors/kit/http-client.ts';
import { httpAnswer, startScriptedServer } from './scripted-server.ts';

// HTTP libraries may resend requests with idempotent methods.
it.each(['POST', 'PUT'] as const)(
  '%s is sent at most once, or not at all if not_sent, to a server that disconnects at random',
  async (method) => {
    const seed = Number(process.env.SEED ?? 1);
    const random = randomOf(seed);
    const receipts = new Map<string, number>();
    const server = await startScriptedServer(
      (socket, text) => {
        const id = /x-id: (\d+)/.exec(text)?.[1] ?? '';
        receipts.set(id, (receipts.get(id) ?? 0) + 1);
        misbehave(socket, random());
      },
      {
        onConnection: (socket) => {
          if (random() < 0.05) socket.resetAndDestroy();
          // Idle keep-alive sockets die just before requests are written to them.
          else if (random() < 0.5) setTimeout(() => socket.end(), random() * 30);
        },
      },
    );
    const client = createHttpClient({
      origin: `http://127.0.0.1:${server.port}`,
      timeoutMs: 120,
      // One fewer than the workers below, so that some requests are refused at once.
      maxInFlight: 23,
      maxResponseBytes: 1_024,
    });
    const results = new Map<string, string>();
    await Promise.all(
      Array.from({ length: 24 }, async (_, worker) => {
        for (let i = 0; i < 25; i++) {
          const id = `${worker * 1_000 + i}`;
          const headers = { 'x-id': id };
          const result = await client.request({ method, path: '/pay', headers, body: '{}' });
          results.set(id, result.kind);
        }
      }),
    );
    await client.close();
    await server.close();

    const kinds = new Set(results.values());
    expect(kinds, `seed ${seed}`).toEqual(new Set(['answer', 'unknown', 'not_sent']));
    for (const [id, kind] of results) {
      const count = receipts.get(id) ?? 0;
      expect(count, `seed ${seed}: ${id} was sent twice`).toBeLessThanOrEqual(1);
      if (kind === 'not_sent') expect(count, `seed ${seed}: ${id} was not_sent`).toBe(0);
      if (kind === 'answer') expect(count, `seed ${seed}: ${id} was answered`).toBe(1);
    }
  },
);

it('a request that the HTTP library begins a second time is refused before anything is written again', async () => {
  const begin = (handler: Dispatcher.DispatchHandler) => {
    const controller = { abort: () => {} } as unknown as Dispatcher.DispatchController;
    handler.onRequestStart?.(controller, undefined);
  };
  // undici puts a request back in its queue when a socket closes for a reason of undici's own.
  const dispatch = vi.spyOn(Pool.prototype, 'dispatch').mockImplementation((_options, handler) => {
    begin(handler);
    expect(() => begin(handler)).toThrow('abandoned');
    return true;
  });
  const client = createHttpClient({
    origin: 'http://127.0.0.1:1',
    timeoutMs: 20_000,
    maxResponseBytes: 1_024,
  });
  const result = await client.request({ method: 'POST', path: '/pay', headers: {}, body: '{}' });
  dispatch.mockRestore();
  await client.close();
  expect(result).toEqual({ kind: 'unknown', detail: 'awaiting the response: RESEND_REFUSED' });
});

function misbehave(socket: Socket, dice: number): void {
  const ok = httpAnswer(200, '{}');
  if (dice < 0.6) socket.write(ok);
  else if (dice < 0.7) socket.end(ok);
  else if (dice < 0.8) socket.write(ok, () => socket.resetAndDestroy());
  else if (dice < 0.9) socket.resetAndDestroy();
  else if (dice < 0.95) socket.end(ok.slice(0, 20));
  // Otherwise the server hangs.
}

/** Mulberry32: small and deterministic for a seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
