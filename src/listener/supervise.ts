import type { ServerResponse } from 'node:http';
import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { repeat } from '#src/repeat.ts';
import type { ListenerLimits } from './listener-limits.ts';
import { piecesTaken } from './taken.ts';

/** A request and its response, until both have ended. Times are from the peer clock. */
type Exchange = {
  readonly beganAtMs: number;
  /** Time from which the peer could have sent the first bytes of the body. */
  bodyDueSinceMs: number;
  /** Time since which written bytes have waited for the peer to read them; 0 if there are none. */
  unsentSinceMs: number;
  /** The pieces of a long response that the peer had taken at the last sweep. */
  taken: number;
};

/** An open connection. While its protocol is undecided, it has no session, streams or responses. */
export type Connection = {
  /** HTTP/2. */
  session: ServerHttp2Session | undefined;
  /** HTTP/2: the open streams. */
  readonly streams: Map<ServerHttp2Stream, Exchange>;
  /** HTTP/2: true if bodies were arriving at the last sweep. Other bodies may have to wait: all share one window. */
  isReceiving: boolean;
  /** HTTP/1.1: the latest response, finished or not. */
  response: ServerResponse | undefined;
  /** HTTP/1.1: the unfinished responses, in sending order. */
  readonly unfinished: Map<ServerResponse, Exchange>;
};

/** The open connections by socket. */
export type Connections = Map<Socket, Connection>;

/**
 * Pause between two sweeps, during which responses may exceed a connection's limits. A sweep of a thousand busy
 * connections takes well under a millisecond.
 */
const SWEEP_MS = 250;

/** Error code CANCEL (RFC 9113, section 7). */
const CANCEL = 8;

/** Clock for the peers' deadlines, in milliseconds. It stops while the process is suspended. */
export type PeerClock = {
  now(): number;
  /** Reports that `expectedMs` should have passed since the last tick. */
  tick(expectedMs: number): void;
};

/** Creates the clock. Bytes that arrived while the process was suspended are still unread, but not late. */
export function createPeerClock(): PeerClock {
  let stoodStillMs = 0;
  let tickedAtMs = performance.now();
  return {
    now: () => performance.now() - stoodStillMs,
    tick(expectedMs) {
      const nowMs = performance.now();
      const lateMs = nowMs - tickedAtMs - expectedMs;
      if (lateMs > expectedMs) stoodStillMs += lateMs;
      tickedAtMs = nowMs;
    },
  };
}

/**
 * Ends requests that do not arrive in time, and connections or streams whose peer leaves responses unread for too long
 * or leaves too many bytes unread. A single timer sweeps all connections, so requests need no timers.
 *
 * @param refuseLate refuses an HTTP/1.1 request whose body did not begin in time, and ends its connection.
 * @returns a function that stops the supervision.
 */
export function supervise(
  connections: Connections,
  clock: PeerClock,
  limits: ListenerLimits,
  refuseLate: (socket: Socket) => void,
): () => void {
  const shortestMs = Math.min(limits.firstBodyTimeoutMs, limits.receiveTimeoutMs, limits.takeTimeoutMs);
  const everyMs = Math.min(SWEEP_MS, Math.ceil(shortestMs / 4));
  clock.tick(0);
  const look = () => {
    clock.tick(everyMs);
    sweep(connections, clock.now(), limits, refuseLate);
  };
  return repeat(look, { intervalMs: everyMs, jitter: 0, isFirstLater: true }).stop;
}

/** Begins an exchange at the current time. */
export function beginExchange(clock: PeerClock): Exchange {
  const beganAtMs = clock.now();
  return { beganAtMs, bodyDueSinceMs: beganAtMs, unsentSinceMs: 0, taken: 0 };
}

/** Tracks the open streams of an HTTP/2 connection, and ends the connection when it is idle. */
export function superviseSession(
  session: ServerHttp2Session,
  { streams }: Connection,
  clock: PeerClock,
  limits: ListenerLimits,
): void {
  session.on('stream', (stream) => {
    streams.set(stream, beginExchange(clock));
    stream.once('close', () => streams.delete(stream));
    if (!stream.endAfterHeaders) skipUnreadBody(stream);
  });
  session.setTimeout(limits.idleTimeoutMs, () => {
    // An open stream with nothing to send is a quiet subscription.
    if (streams.size === 0 || [...streams.keys()].some(isUntaken)) session.destroy();
  });
}

/**
 * Discards a body whose response was sent before it was read. Otherwise, unread bodies would use up the connection's
 * memory until new streams are refused.
 */
function skipUnreadBody(stream: ServerHttp2Stream): void {
  stream.once('finish', () => {
    if (!stream.readableEnded) stream.removeAllListeners('data').resume();
  });
}

/** Reports whether the peer has not read everything. A stream closes once the peer has read the whole response. */
function isUntaken(stream: ServerHttp2Stream): boolean {
  return stream.writableLength > 0 || stream.writableEnded;
}

/** Returns a response's bytes in memory. Fastify writes a large response in pieces, and holds it until the last one. */
function heldBytes(stream: ServerHttp2Stream): number {
  return Math.max(stream.writableLength, Number(stream.sentHeaders?.['content-length'] ?? 0));
}

function sweep(
  connections: Connections,
  nowMs: number,
  limits: ListenerLimits,
  refuseLate: (socket: Socket) => void,
): void {
  let unsentBytes = 0;
  const holders: { readonly socket: Socket; readonly bytes: number }[] = [];
  for (const [socket, connection] of connections) {
    const bytes = connection.session
      ? sweepStreams(connection, nowMs, limits)
      : sweepResponses(socket, connection, nowMs, limits);
    if (bytes > limits.maxUnsentBytesPerConnection) socket.destroy();
    else if (bytes > 0) {
      unsentBytes += bytes;
      holders.push({ socket, bytes });
    } else if (isBodyLate(connection, nowMs, limits)) refuseLate(socket);
  }
  if (unsentBytes <= limits.maxUnsentBytes) return;
  holders.sort((one, other) => other.bytes - one.bytes);
  for (const { socket, bytes } of holders) {
    if (unsentBytes <= limits.maxUnsentBytes) break;
    socket.destroy();
    unsentBytes -= bytes;
  }
}

/** @returns the connection's unsent bytes; infinity if it must be ended. */
function sweepStreams(connection: Connection, nowMs: number, limits: ListenerLimits): number {
  let unsentBytes = 0;
  let isReceiving = false;
  for (const [stream, exchange] of connection.streams) {
    let isLate = false;
    if (!stream.endAfterHeaders && !stream.readableEnded) {
      const hasBegun = stream.readableDidRead || stream.readableLength > 0;
      isReceiving ||= hasBegun;
      if (connection.isReceiving) exchange.bodyDueSinceMs = nowMs;
      isLate =
        nowMs - exchange.beganAtMs > limits.receiveTimeoutMs ||
        (!hasBegun && nowMs - exchange.bodyDueSinceMs > limits.firstBodyTimeoutMs);
    }
    const isUnsent = isUntaken(stream);
    if (isUnsent) unsentBytes += heldBytes(stream);
    noteTaken(exchange, piecesTaken(stream));
    if (!isTakenLate(exchange, isUnsent, nowMs, limits) && !isLate) continue;
    // A peer that reads nothing does not read the reset either.
    if (stream.closed) return Number.POSITIVE_INFINITY;
    stream.close(CANCEL);
  }
  connection.isReceiving = isReceiving;
  return unsentBytes;
}

/** @returns the connection's unsent bytes; infinity if it must be ended. */
function sweepResponses(
  socket: Socket,
  { unfinished }: Connection,
  nowMs: number,
  limits: ListenerLimits,
): number {
  let unsentBytes = socket.writableLength;
  // The peer can read a response only once all those before it are written.
  let isPeersTurn = true;
  for (const [response, exchange] of unfinished) {
    const bytes = response.writableLength;
    // The bytes of the response that has the socket are counted with the socket's.
    if (response.socket === null) unsentBytes += bytes;
    noteTaken(exchange, piecesTaken(response));
    if (isTakenLate(exchange, isPeersTurn && bytes > 0, nowMs, limits)) return Number.POSITIVE_INFINITY;
    isPeersTurn &&= response.writableEnded;
  }
  return unsentBytes;
}

/** Starts the time again if the peer has taken a piece of a long response since the last sweep. */
function noteTaken(exchange: Exchange, taken: number): void {
  if (taken === exchange.taken) return;
  exchange.taken = taken;
  exchange.unsentSinceMs = 0;
}

function isTakenLate(exchange: Exchange, isUnsent: boolean, nowMs: number, limits: ListenerLimits): boolean {
  if (!isUnsent) exchange.unsentSinceMs = 0;
  else if (exchange.unsentSinceMs === 0) exchange.unsentSinceMs = nowMs;
  return isUnsent && nowMs - exchange.unsentSinceMs > limits.takeTimeoutMs;
}

/** Reports whether the body of the latest HTTP/1.1 request did not begin in time. Node limits the whole request. */
function isBodyLate({ response, unfinished }: Connection, nowMs: number, limits: ListenerLimits): boolean {
  const exchange = response && unfinished.get(response);
  if (!exchange || response.req.complete || response.headersSent) return false;
  const hasBegun = response.req.readableDidRead || response.req.readableLength > 0;
  return !hasBegun && nowMs - exchange.beganAtMs > limits.firstBodyTimeoutMs;
}
