import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { expect, vi } from 'vitest';

/** A message that a receiver got. */
export type Received = {
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: any message, for comparison with the expected one.
  readonly json: any;
};

/** Responds to a message, or never does. */
export type Answer = (response: ServerResponse, received: Received, nth: number) => void;

/** A merchant's server on a real socket. */
export type Receiver = {
  readonly url: string;
  readonly port: number;
  readonly received: readonly Received[];
  /** Sets how it responds to later messages. */
  answer(answer: Answer): void;
  /** Waits until `count` messages have arrived. */
  has(count: number): Promise<readonly Received[]>;
  /** Returns the current and the highest number of requests in progress. */
  readonly open: () => { now: number; most: number };
  close(): Promise<void>;
};

/** Responds with a status. */
export const status =
  (code: number): Answer =>
  (response) => {
    response.writeHead(code).end();
  };

export const NO_ANSWER: Answer = () => {};

/** Starts a receiver that responds with 204 by default. */
export async function startReceiver(first: Answer = status(204)): Promise<Receiver> {
  const received: Received[] = [];
  const sockets = new Set<Socket>();
  let answer = first;
  let now = 0;
  let most = 0;
  const server = http.createServer(async (request: IncomingMessage, response) => {
    now += 1;
    most = Math.max(most, now);
    response.once('close', () => {
      now -= 1;
    });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const one = { headers: request.headers as Record<string, string>, text, json: JSON.parse(text) };
    received.push(one);
    answer(response, one, received.length);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    received,
    answer: (next) => {
      answer = next;
    },
    has: async (count) => {
      await vi.waitFor(() => expect(received.length).toBeGreaterThanOrEqual(count));
      return received;
    },
    open: () => ({ now, most }),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** Verifies a message with the scheme's own library, as a receiver does. @throws Error if it is not genuine. */
export function verify(secret: string, { text, headers }: Received): unknown {
  return new Webhook(secret).verify(text, headers);
}
