import type http from 'node:http';
import type { Http2Server } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { createSlots } from '#src/slots.ts';
import type { ListenerLimits } from './listener-limits.ts';
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
  shareConnections(server, limits, deps.clientAt);
}

/** Closes connections on arrival that exceed their client's share, before their TLS handshake. */
function shareConnections(
  server: http.Server,
  limits: ListenerLimits,
  clientAt: (address: string) => string | undefined,
): void {
  const open = createSlots(limits.maxConnections);
  const fraction = limits.maxConnectionsPerClient / limits.maxConnections;
  const accept = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    // A connection that the peer has already closed has no address.
    const group = clientAt(socket.remoteAddress ?? '');
    if (group !== undefined) {
      const release = open.take([{ group, fraction }]);
      if (!release) {
        socket.destroy();
        return;
      }
      socket.once('close', release);
    }
    for (const listener of accept) listener.call(server, socket);
  });
}

/** No HTTP/1.1 method begins with these letters, so that servers without HTTP/2 refuse the preface. */
const HTTP2_PREFACE_START = Buffer.from('PRI');

/**
 * Waits for a connection's first bytes, which distinguish HTTP/2 with prior knowledge (RFC 9113, section 3.3) from
 * HTTP/1.1, and puts them back. Closes the connection if they do not arrive within `timeoutMs`.
 */
function sniff(socket: Socket, timeoutMs: number, decided: (isHttp2: boolean) => void): void {
  let seen: Buffer = Buffer.alloc(0);
  const giveUp = () => socket.destroy();
  const deadline = setTimeout(giveUp, timeoutMs).unref();
  const forget = () => clearTimeout(deadline);
  const onData = (chunk: Buffer) => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const start = seen.subarray(0, HTTP2_PREFACE_START.length);
    const mayBeHttp2 = HTTP2_PREFACE_START.subarray(0, start.length).equals(start);
    if (mayBeHttp2 && start.length < HTTP2_PREFACE_START.length) return;
    forget();
    socket.off('data', onData).off('end', giveUp).off('close', forget);
    socket.pause();
    socket.unshift(seen);
    decided(mayBeHttp2);
    // The HTTP/1.1 listener needs a flowing socket to receive the bytes; an HTTP/2 session reads them itself.
    if (!mayBeHttp2) socket.resume();
  };
  socket.on('data', onData).once('end', giveUp).once('close', forget);
}
