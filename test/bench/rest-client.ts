import net from 'node:net';
import type { Send } from './closed-loop.ts';
import { patch, restTemplate } from './request.ts';

/** A client for one protocol: a connection for each slot, or one for all. */
export type Client = { readonly send: Send; close(): void };

/**
 * HTTP/1.1 with a kept-alive connection per slot. Uses bare sockets because client and server share the machine, so a
 * costly client would slow the server.
 */
export async function openRestClient(port: number, slots: number, runId: string): Promise<Client> {
  const connections = await Promise.all(Array.from({ length: slots }, () => openConnection(port, runId)));
  return clientOf(connections, () => openConnection(port, runId));
}

/**
 * Like the HTTP/1.1 client, but opens a connection when its slot is first used, because the service closes inactive
 * connections.
 */
export function restClientOnDemand(port: number, runId: string): Client {
  return clientOf([], () => openConnection(port, runId));
}

function clientOf(connections: Connection[], open: () => Promise<Connection>): Client {
  return {
    send(slot, sequence, done) {
      const connection = connections[slot];
      if (connection?.isOpen()) {
        connection.send(sequence, done);
        return;
      }
      open().then(
        (opened) => {
          connections[slot] = opened;
          opened.send(sequence, done);
        },
        () => done(false),
      );
    },
    close() {
      for (const connection of connections) connection?.close();
    },
  };
}

type Connection = {
  isOpen(): boolean;
  send(sequence: number, done: (ok: boolean) => void): void;
  close(): void;
};

async function openConnection(port: number, runId: string): Promise<Connection> {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const request = restTemplate(`127.0.0.1:${port}`);
  let done: ((ok: boolean) => void) | undefined;
  let received: Buffer = Buffer.alloc(0);

  function end(ok: boolean): void {
    received = Buffer.alloc(0);
    const callback = done;
    done = undefined;
    callback?.(ok);
  }
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const length = answerLength(received);
    if (length !== undefined && received.length >= length) end(isCreated(received));
  });
  socket.on('error', () => {});
  socket.on('close', () => end(false));

  return {
    isOpen: () => socket.writable,
    send(sequence, callback) {
      done = callback;
      patch(request, runId, sequence);
      socket.write(request.bytes);
    },
    close: () => socket.destroy(),
  };
}

const CONTENT_LENGTH = /\r\ncontent-length: (\d+)\r\n/i;

/** The total length of head and body; undefined until the head is complete. */
function answerLength(received: Buffer): number | undefined {
  const headEnd = received.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const match = CONTENT_LENGTH.exec(received.toString('latin1', 0, headEnd + 2));
  return headEnd + 4 + Number(match?.[1] ?? 0);
}

function isCreated(received: Buffer): boolean {
  return received.toString('latin1', 0, 12) === 'HTTP/1.1 201';
}
