import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PaymentError, type Reason } from '../payments/payment-error.ts';
import { describeError, toPaymentError, toProblem } from './errors.ts';

/** Answers every error of an application as application/problem+json (RFC 9457), and unknown paths in the caller's protocol. */
export function answerErrors(app: FastifyInstance): void {
  app.setErrorHandler((error, request, reply) => {
    const known = toPaymentError(error);
    if (OURS.has(known.reason)) request.log.error({ err: error }, 'a request failed');
    return answerProblem(known, request, reply);
  });
  app.setNotFoundHandler((request, reply) => {
    if (request.headers['content-type']?.startsWith('application/grpc'))
      return answerUnimplemented(request, reply);
    return answerProblem(new PaymentError('NOT_FOUND', 'there is nothing at this path'), request, reply);
  });
}

/** Errors that are not the caller's. */
const OURS: ReadonlySet<Reason> = new Set(['INTERNAL_ERROR', 'SERVICE_UNAVAILABLE']);

function answerProblem(error: PaymentError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = toProblem(error, request.id);
  if (error.retryAfterS !== undefined) reply.header('retry-after', error.retryAfterS);
  // As bytes, since Fastify gives the media type of a text a charset, which JSON's has not (RFC 8259).
  return reply
    .code(problem.status)
    .type('application/problem+json')
    .send(Buffer.from(JSON.stringify(problem)));
}

const GRPC_UNIMPLEMENTED = '12';

/** An rpc that is not there, as gRPC says it: with headers only. */
function answerUnimplemented(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply
    .code(200)
    .headers({
      'content-type': request.headers['content-type'],
      'grpc-status': GRPC_UNIMPLEMENTED,
      'grpc-message': 'there is no such rpc',
    })
    .send();
}

/** What pino may print: identifiers and kinds of ours, and of an error only where it arose. */
export const LOG_SERIALIZERS = {
  err: describeError,
  error: describeError,
  req: () => undefined,
  res: () => undefined,
};
