import type { Attributes } from '@opentelemetry/api';
import type { FastifyInstance } from 'fastify';

/** Spans of what a request does. Attributes are names and identifiers of ours, never a request's data. */
export type Tracing = {
  /** Opens a span for each request of the application, the child of the caller's (W3C Trace Context). */
  readonly traceRequests: (app: FastifyInstance) => void;
  /** Runs work in a span, the child of the request's. */
  span<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>;
  /** Sends what is not sent yet, if it can; never rejects. */
  shutdown(): Promise<void>;
};

/** For a service without an endpoint to send to: costs nothing. */
export const NO_TRACING: Tracing = {
  traceRequests: () => {},
  span: (_name, _attributes, work) => work(),
  shutdown: async () => {},
};
