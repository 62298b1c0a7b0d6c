import type { OutgoingHttpHeaders } from 'node:http';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { OverloadError } from '#src/service-error.ts';
import { grpcTrailers, toConnectError, toProblem } from './errors.ts';

/* Refusals by an overloaded service. Each is rendered only once, since most calls are refused in a flood. */

/** Sends the refusal of a call that exceeds a limit. */
export type RefuseCall = (error: OverloadError, request: FastifyRequest, reply: FastifyReply) => void;

/** Sends the refusal like any REST error, but bypasses Fastify, and writes headers and body at once. */
export const refuseRest: RefuseCall = (error, request, reply) => {
  const { headers, beforeId, afterId } = formsOf(error).rest;
  const body = beforeId + request.id + afterId;
  reply.hijack();
  const set = reply.getHeaders() as OutgoingHttpHeaders;
  reply.raw.writeHead(error.status, { ...set, ...headers, 'content-length': body.length });
  reply.raw.end(body);
};

/** Sends the refusal in the caller's rpc protocol. */
export const refuseRpc: RefuseCall = (error, request, reply) => {
  const forms = formsOf(error);
  const contentType = request.headers['content-type'] ?? '';
  if (contentType.startsWith('application/grpc')) {
    // In gRPC and gRPC-Web, the response has only headers.
    reply.code(200).headers(forms.grpc).type(contentType).send();
  } else {
    reply.code(error.status).headers(forms.connect).send(forms.connectBody);
  }
};

/** Returns the gRPC trailers for the refusal of a call that exceeds a limit; undefined for any other error. */
export function overloadTrailers(error: unknown): Readonly<Record<string, string>> | undefined {
  return error instanceof OverloadError ? formsOf(error).grpc : undefined;
}

/** Placeholder for the request's id in a rendered body. */
const REQUEST_ID = '{request id}';

const rendered = new WeakMap<OverloadError, ReturnType<typeof render>>();

function formsOf(error: OverloadError) {
  return rendered.getOrInsertComputed(error, render);
}

function render(error: OverloadError) {
  const ofRpc = toConnectError(error);
  const [beforeId = '', afterId = ''] = JSON.stringify(toProblem(error, REQUEST_ID)).split(REQUEST_ID);
  return {
    rest: {
      headers: { 'retry-after': String(error.retryAfterS), 'content-type': 'application/problem+json' },
      beforeId,
      afterId,
    },
    grpc: grpcTrailers(ofRpc),
    connect: { ...Object.fromEntries(ofRpc.metadata), 'content-type': 'application/json' },
    connectBody: Buffer.from(errorToJsonBytes(ofRpc, undefined)),
  };
}
