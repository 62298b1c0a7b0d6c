import type { OutgoingHttpHeaders } from 'node:http';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ServiceError } from '#src/service-error.ts';
import { OVERLOADED } from './admission.ts';
import { toConnectError, toProblem } from './errors.ts';

/*
 * Refusals of an overloaded service, rendered beforehand: in a flood, most calls are refused.
 */

/** Responds to a call that is not admitted; `error` is one of OVERLOADED. */
export type RefuseCall = (error: ServiceError, request: FastifyRequest, reply: FastifyReply) => void;

/** Sends the refusal as REST sends every error, but past Fastify, and with its body in the same write as its headers. */
export const refuseRest: RefuseCall = (error, request, reply) => {
  const { headers, beforeId, afterId } = answersOf(error).rest;
  const body = beforeId + request.id + afterId;
  reply.hijack();
  const set = reply.getHeaders() as OutgoingHttpHeaders;
  reply.raw.writeHead(error.status, { ...set, ...headers, 'content-length': body.length });
  reply.raw.end(body);
};

/** Sends the refusal in the caller's rpc protocol. */
export const refuseRpc: RefuseCall = (error, request, reply) => {
  const answers = answersOf(error);
  const contentType = request.headers['content-type'] ?? '';
  if (contentType.startsWith('application/grpc')) {
    // In gRPC and gRPC-Web, a response that has headers only.
    reply.code(200).headers(answers.grpc).type(contentType).send();
  } else {
    reply.code(error.status).headers(answers.connect).send(answers.connectBody);
  }
};

/** Returns the trailers of gRPC for one of OVERLOADED; undefined for any other error. */
export function overloadTrailers(error: unknown): Readonly<Record<string, string>> | undefined {
  return ANSWERS.get(error)?.grpc;
}

/** Stands for the id of the request in a rendered body. */
const REQUEST_ID = '{request id}';

const ANSWERS = new Map<unknown, ReturnType<typeof render>>(
  OVERLOADED.map((error) => [error, render(error)]),
);

function answersOf(error: ServiceError) {
  const answers = ANSWERS.get(error);
  if (!answers) throw new Error('not one of OVERLOADED');
  return answers;
}

function render(error: ServiceError) {
  const rendered = toConnectError(error);
  const [beforeId = '', afterId = ''] = JSON.stringify(toProblem(error, REQUEST_ID)).split(REQUEST_ID);
  return {
    rest: {
      headers: { 'retry-after': String(error.retryAfterS), 'content-type': 'application/problem+json' },
      beforeId,
      afterId,
    },
    grpc: Object.fromEntries(setTrailerStatus(new Headers(), rendered)),
    connect: { ...Object.fromEntries(rendered.metadata), 'content-type': 'application/json' },
    connectBody: Buffer.from(errorToJsonBytes(rendered, undefined)),
  };
}
