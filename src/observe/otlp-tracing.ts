import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { sentStatus, type Tracing } from './tracing.ts';

/** Time limit for sending a batch, so that an unreachable collector does not delay the shutdown for longer. */
const EXPORT_TIMEOUT_MS = 3_000;

/** Sends spans to an OTLP/HTTP endpoint (OpenTelemetry), such as http://127.0.0.1:4318. */
export function createTracing(otlpEndpoint: string): Tracing {
  const url = `${otlpEndpoint.replace(/\/+$/, '')}/v1/traces`;
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: EXPORT_TIMEOUT_MS });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'payments-service' }),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  const tracer = provider.getTracer('payments-service');
  const propagator = new W3CTraceContextPropagator();
  const current = new AsyncLocalStorage<Context>();

  return {
    traceRequests(app, isTrusted) {
      app.addHook('onRequest', (request, reply, done) => {
        const caller = propagator.extract(ROOT_CONTEXT, request.headers, HEADERS);
        const route = request.routeOptions.url ?? 'unknown';
        const parent = isTrusted(request) ? caller : ROOT_CONTEXT;
        const context = parent === caller ? undefined : trace.getSpanContext(caller);
        const options = { kind: SpanKind.SERVER, links: context ? [{ context }] : [] };
        const span = tracer.startSpan(`${request.method} ${route}`, options, parent);
        span.setAttributes({ 'http.request.method': request.method, 'http.route': route });
        reply.raw.once('close', () => {
          const status = sentStatus(reply.raw);
          span.setAttribute('http.response.status_code', status);
          if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        });
        current.run(trace.setSpan(parent, span), done);
      });
    },
    span(name, attributes, work) {
      const parent = current.getStore() ?? ROOT_CONTEXT;
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, parent);
      return current.run(trace.setSpan(parent, span), async () => {
        try {
          return await work();
        } catch (error) {
          span.setStatus({ code: SpanStatusCode.ERROR });
          throw error;
        } finally {
          span.end();
        }
      });
    },
    // Losing spans that the collector refuses must not fail the shutdown.
    shutdown: () => provider.shutdown().catch(() => {}),
  };
}

const HEADERS = {
  keys: (carrier: object) => Object.keys(carrier),
  get: (carrier: Record<string, string | string[] | undefined>, key: string) => carrier[key],
};
