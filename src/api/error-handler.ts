import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { OverloadError, ServiceError } from '#src/service-error.ts';
import { notFoundPage } from '#src/web/not-found-page.ts';
import { PAGE_HEADERS } from '#src/web/page.ts';
import { describeError } from './describe-error.ts';
import { grpcTrailers, toConnectError, toProblem, toServiceError } from './errors.ts';
import { refuseRest } from './overload-answers.ts';

/**
 * Answers errors of an application as application/problem+json (RFC 9457), and unknown paths in the caller's protocol or, to
 * a browser, as a page.
 */
export function answerErrors(app: FastifyInstance): void {
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(answerNotFound);
  // Before the body is read: whatever it is, the path is unknown.
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    answerNotFound(request, reply);
  });
}

function answerNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const contentType = request.headers['content-type'] ?? '';
  if (contentType.startsWith('application/grpc')) return answerUnimplemented(request, reply);
  if ('connect-protocol-version' in request.headers || CONNECT.test(contentType)) {
    return reply
      .code(404)
      .type('application/json')
      .send(Buffer.from(errorToJsonBytes(NO_RPC, undefined)));
  }
  return (
    answerPage(404, request, reply) ??
    answerProblem(new ServiceError('NOT_FOUND', 'there is nothing at this path'), request, reply)
  );
}

/** Answers a browser's request for an unknown address with a page. @returns undefined for any other client. */
function answerPage(
  status: 400 | 404,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply | undefined {
  const page = notFoundPage(request);
  return page === undefined ? undefined : reply.code(status).headers(PAGE_HEADERS).send(page);
}

/**
 * Answers one error. Fastify calls this itself for requests that it cannot route, such as a path that is not a URL.
 */
export function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = toServiceError(error);
  if (known instanceof OverloadError) {
    refuseRest(known, request, reply);
    return reply;
  }
  // The sender broke the body off, so nobody is left to read the response.
  const brokeOff = request.raw.errored !== null && request.raw.errored === error;
  if (isOurFault(known) && !brokeOff) request.log.error({ err: error }, 'a request failed');
  // Hooks do not run for a request that cannot be routed.
  reply.header('x-request-id', request.id);
  const page =
    known.status === 404 || known.status === 400 ? answerPage(known.status, request, reply) : undefined;
  return page ?? answerProblem(known, request, reply);
}

/** Returns true for an error to log: the caller is not at fault, and no limit refused the call. */
export function isOurFault(error: ServiceError): boolean {
  const isOurs = error.reason === 'INTERNAL_ERROR' || error.reason === 'SERVICE_UNAVAILABLE';
  return isOurs && !(error instanceof OverloadError);
}

/** Answers an error as application/problem+json. */
export function answerProblem(
  error: ServiceError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const problem = toProblem(error, request.id);
  if (error.retryAfterS !== undefined) reply.header('retry-after', error.retryAfterS);
  // Fastify closes after a body that it cannot parse; HTTP/2 has no such header, and Node would print a warning.
  if (request.raw.httpVersionMajor === 2) reply.removeHeader('connection');
  // As bytes: Fastify adds a charset to the media type of a string, and JSON's has none (RFC 8259).
  return reply
    .code(problem.status)
    .type('application/problem+json')
    .send(Buffer.from(JSON.stringify(problem)));
}

/**
 * Mounts routes on an application. Every other method of their paths gets 405 with the allowed methods (RFC 9110).
 */
export function refuseOtherMethods(app: FastifyInstance, mount: () => void): void {
  const known = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    known.set(url, new Set([...(known.get(url) ?? []), ...[method].flat()]));
  });
  mount();
  // Loaded last, so that all routes are known.
  app.register(async (others) => {
    for (const [url, methods] of [...known]) refuseMethodsBut(methods, others, url);
  });
}

function refuseMethodsBut(known: ReadonlySet<string>, app: FastifyInstance, url: string): void {
  const method = app.supportedMethods.filter((one) => !known.has(one));
  if (method.length === 0) return;
  // Fastify answers HEAD wherever it answers GET.
  const allowed = [...known].sort((a, b) => Number(a === 'HEAD') - Number(b === 'HEAD')).join(', ');
  const refuse = async (_request: FastifyRequest, reply: FastifyReply): Promise<never> => {
    reply.header('allow', allowed);
    throw new ServiceError('METHOD_NOT_ALLOWED', `this path allows only ${allowed}`);
  };
  // Before the body is read.
  app.route({ method, url, exposeHeadRoute: false, onRequest: refuse, handler: refuse });
}

/** Content types that only Connect uses. */
const CONNECT = /^application\/(?:proto|connect\+)/i;
const NO_RPC = toConnectError(new ServiceError('NOT_FOUND', 'there is no such rpc'));

/**
 * Answers calls of an unknown rpc as gRPC does: in trailers. gRPC-Web reads them from the headers of an empty
 * response.
 */
function answerUnimplemented(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const contentType = request.headers['content-type'];
  const status = grpcTrailers(NO_RPC);
  // Headers count as trailers only if nothing follows them, and Node's HTTP/2 ends with an empty frame.
  const inTrailers = request.raw.httpVersionMajor === 2 && !contentType?.startsWith('application/grpc-web');
  if (inTrailers) reply.raw.addTrailers(status);
  else reply.headers(status);
  return reply.code(200).header('content-type', contentType).send();
}

/** pino serializers that log nothing of requests and responses, and only the kind and origin of an error. */
export const LOG_SERIALIZERS = {
  err: describeError,
  error: describeError,
  req: () => undefined,
  res: () => undefined,
};
