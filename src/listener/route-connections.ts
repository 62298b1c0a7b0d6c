import type http from 'node:http';
import type { Http2Server } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ListenerLimits } from './listener-limits.ts';
import { sniff } from './sniff.ts';
import { type Connection, type Connections, type PeerClock, superviseSession } from './supervise.ts';

/** Takes new connections from Node's HTTP/1.1 listener, and gives each to the server for its protocol. */
export function routeConnections(deps: {
  readonly server: http.Server;
  readonly http2Server: Http2Server;
  readonly connections: Connections;
  readonly clock: PeerClock;
  readonly limits: ListenerLimits;
  readonly isTls: boolean;
  readonly clientAt: (address: string) => string | undefined;
}): void {
  const { server, http2Server, connections, clock, limits, isTls } = deps;
  const event = isTls ? 'secureConnection' : 'connection';
  const serveHttp1 = server.listeners(event);
  server.removeAllListeners(event);
  const serve = (socket: Socket, connection: Connection, isHttp2: boolean) => {
    if (!isHttp2) {
      for (const listener of serveHttp1) listener.call(server, socket);
      return;
    }
    // In HTTP/1.1 the parser ends a half-closed connection; an HTTP/2 session expects the socket to do so.
    socket.allowHalfOpen = false;
    http2Server.once('session', (session) => {
      connection.session = session;
      superviseSession(session, connection, clock, limits);
    });
    http2Server.emit('connection', socket);
  };
  server.on(event, (socket: Socket | TLSSocket) => {
    const connection: Connection = {
      session: undefined,
      streams: new Map(),
      isReceiving: false,
      response: undefined,
      unfinished: new Map(),
    };
    connections.set(socket, connection);
    socket.once('close', () => connections.delete(socket));
    // The server that takes the socket handles its errors. Until then, this keeps an error from ending the process.
    socket.on('error', () => {});
    // A TLS handshake may complete after the drain has begun.
    if (!server.listening) socket.destroy();
    else if (isTls) serve(socket, connection, (socket as TLSSocket).alpnProtocol === 'h2');
    else sniff(socket, limits.sniffTimeoutMs, (isHttp2) => serve(socket, connection, isHttp2));
  });
  shareConnections(server, limits.maxConnectionsPerClient, deps.clientAt);
}

/** Closes connections on arrival that exceed their client's share, before their TLS handshake. */
function shareConnections(
  server: http.Server,
  most: number,
  clientAt: (address: string) => string | undefined,
): void {
  const open = new Map<string, number>();
  const accept = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    // A connection that the peer has already closed has no address.
    const client = clientAt(socket.remoteAddress ?? '');
    if (client !== undefined) {
      const before = open.get(client) ?? 0;
      if (before >= most) {
        socket.destroy();
        return;
      }
      open.set(client, before + 1);
      socket.once('close', () => {
        const left = (open.get(client) ?? 0) - 1;
        if (left > 0) open.set(client, left);
        else open.delete(client);
      });
    }
    for (const listener of accept) listener.call(server, socket);
  });
}
