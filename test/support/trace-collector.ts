import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** A stand-in for an OpenTelemetry collector. */
export type TraceCollector = {
  /** The service's `otlpEndpoint`. */
  readonly url: string;
  readonly received: { readonly path: string | undefined; readonly body: string }[];
  /** Responds to an export; replaceable. */
  respond: (response: http.ServerResponse) => void;
  /** Breaks its connections, and refuses new ones. */
  close(): void;
};

/** Starts a collector that accepts every export. */
export async function startTraceCollector(): Promise<TraceCollector> {
  const server = http.createServer(async (request, response) => {
    collector.received.push({ path: request.url, body: await text(request) });
    collector.respond(response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const collector: TraceCollector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    received: [],
    respond: (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return collector;
}
