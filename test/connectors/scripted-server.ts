import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

/** Reaction of a scripted server to a complete request; `text` is the whole request, head and body. */
export type Script = (socket: Socket, text: string) => void;

/** A server on bare sockets that misbehaves as instructed, and records requests. */
export type ScriptedServer = {
  readonly port: number;
  readonly requests: readonly string[];
  /** Sockets open now. */
  openSockets(): number;
  close(): Promise<void>;
};

export type ScriptedServerOptions = {
  /** Certificate with which the server listens. */
  readonly tls?: { cert: Buffer; key: Buffer };
  /** Reaction to a connection, before any request. */
  readonly onConnection?: (socket: Socket) => void;
};

/** Starts a scripted server on a free loopback port. */
export async function startScriptedServer(
  script: Script,
  options: ScriptedServerOptions = {},
): Promise<ScriptedServer> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const serve = (socket: Socket) => {
    socket.on('error', () => {});
    options.onConnection?.(socket);
    readRequests(socket, (text) => {
      requests.push(text);
      script(socket, text);
    });
  };
  const server: Server = options.tls ? createTlsServer(options.tls, serve) : createServer(serve);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    port: (server.address() as { port: number }).port,
    requests,
    openSockets: () => sockets.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** An HTTP/1.1 response with a JSON body and, unless `headers` say otherwise, its length. */
export function httpAnswer(
  status: number,
  body: string,
  headers: Record<string, string | number> = {},
): string {
  const all = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Scripted\r\n${lines.join('')}\r\n${body}`;
}

function readRequests(socket: Socket, onRequest: (text: string) => void): void {
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    for (;;) {
      const headEnd = received.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1] ?? 0);
      const end = headEnd + 4 + length;
      if (received.length < end) return;
      const text = received.slice(0, end);
      received = received.slice(end);
      onRequest(text);
    }
  });
}
