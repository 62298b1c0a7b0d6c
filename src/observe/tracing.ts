import type { ServerResponse } from 'node:http';
import type { Attributes } from '@opentelemetry/api';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Spans of a request's steps. Attributes are our own names and ids, never request data. */
export type Tracing = {
  /**
   * Opens a span for each request of the application. A trusted peer's span (W3C Trace Context) becomes its parent; any
   * other caller's is only linked, so that no caller chooses our trace ids or turns sampling off.
   */
  readonly traceRequests: (app: FastifyInstance, isTrusted: (request: FastifyRequest) => boolean) => void;
  /** Runs work in a span, as a child of the request's. */
  span<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>;
  /** Sends the remaining spans if possible. Never rejects. */
  shutdown(): Promise<void>;
};

/** Tracing for a service without an endpoint for spans. Costs nothing. */
export const NO_TRACING: Tracing = {
  traceRequests: () => {},
  span: (_name, _attributes, work) => work(),
  shutdown: async () => {},
};

/** Status that proxies use for a call whose client disconnected before the response. */
const CLIENT_LEFT = 499;

/** Returns the status with which a closed response was sent. */
export function sentStatus(response: ServerResponse): number {
  // Over HTTP/2, a stream that the client resets counts as finished, even if nothing was written to it.
  return response.headersSent && response.writableFinished ? response.statusCode : CLIENT_LEFT;
}
