/** Limits on clients. Each applies to both protocols unless it names one. */
export const LISTENER_LIMITS = {
  /** Concurrent connections; any more are closed on arrival. Each takes a file descriptor and about 20 KB. */
  maxConnections: 4096,
  /** Concurrent connections of one client, so that it cannot hold them all; any more are closed on arrival. */
  maxConnectionsPerClient: 2048,
  /**
   * From connecting to the first bytes, and for a TLS handshake, so that clients that send nothing do not hold
   * connections.
   */
  sniffTimeoutMs: 5_000,
  /** HTTP/1.1: from a request's first byte to the end of its headers. */
  headersTimeoutMs: 10_000,
  /**
   * From a request's headers to the first byte of its body, which an honest client sends at once. Over HTTP/2, the time
   * restarts while other bodies arrive on the connection, since they may use up the connection's window.
   */
  firstBodyTimeoutMs: 5_000,
  /** From a request's start to the last byte of its body. The response may take longer. */
  receiveTimeoutMs: 30_000,
  /**
   * From a response's first unsent byte until the peer has received all of it. After that, the HTTP/2 stream is reset,
   * or the HTTP/1.1 connection closed. At 20 KB per second, the largest response (about 300 KB) arrives in time. For a
   * response that is sent in pieces (taken.ts), the time starts again with each piece.
   */
  takeTimeoutMs: 15_000,
  /**
   * Unsent response bytes of one connection, enough for a dozen of the largest. Beyond that, the connection is closed.
   */
  maxUnsentBytesPerConnection: 4 * 2 ** 20,
  /**
   * Unsent response bytes of all connections together, for a heap of 1 GB. Beyond that, the connections with the most
   * are closed.
   */
  maxUnsentBytes: 64 * 2 ** 20,
  /**
   * Idle time after which a connection is closed. Longer than the 60 s of common load balancers, so that they close
   * first.
   */
  idleTimeoutMs: 72_000,
  /** Bytes of all headers of a request: Node's default for HTTP/1.1. */
  maxHeaderBytes: 16_384,
  /** Header fields of a request. More are refused: Node would silently drop them from HTTP/1.1 requests. */
  maxHeaderFields: 100,
  /** HTTP/2: open streams of one connection. Node's default is 4,294,967,295. */
  maxConcurrentStreams: 256,
  /**
   * HTTP/2: streams that a client may reset at once, and per second after that, before the connection is closed
   * (CVE-2023-44487, rapid reset). The burst lets a client cancel all its open calls.
   */
  streamResetBurst: 256,
  streamResetRatePerS: 32,
  /** HTTP/2: megabytes of memory that one connection may use before new streams are refused. */
  maxSessionMegabytes: 10,
  /** HTTP/2: invalid frames before the connection is closed. */
  maxInvalidFrames: 100,
  /** From `close` until connections that are still open are cut. */
  drainTimeoutMs: 25_000,
};

/** A value for each limit. */
export type ListenerLimits = typeof LISTENER_LIMITS;
