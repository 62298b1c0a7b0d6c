import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { OverloadError, ServiceError } from '#src/service-error.ts';
import { notFoundPage } from '#src/web/not-found-page.ts';
import { PAGE_HEADERS } from '#src/web/page.ts';
import { describeError } from './describe-error.ts';
import { grpcTrailers, keepReason, toConnectError, toProblem, toServiceError } from './errors.ts';
import { refuseRest } from './overload-responses.ts';

/**
 * Makes an application send errors as application/problem+json (RFC 9457). For an unknown path, the response is in the
 * caller's protocol, or a page for a browser.
 */
export function sendErrors(app: FastifyInstance): void {
  app.setErrorHandler(sendError);
  app.setNotFoundHandler(sendNotFound);
  // Runs before the body is read, since the body does not matter.
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    sendNotFound(request, reply);
  });
}

function sendNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const contentType = request.headers['content-type'] ?? '';
  if (contentType.startsWith('application/grpc')) return sendUnimplemented(request, reply);
  if ('connect-protocol-version' in request.headers || CONNECT.test(contentType)) {
    return reply
      .code(404)
      .type('application/json')
      .send(Buffer.from(errorToJsonBytes(NO_RPC, undefined)));
  }
  return (
    sendErrorPage(404, request, reply) ??
    sendProblem(new ServiceError('NOT_FOUND', 'there is nothing at this path'), request, reply)
  );
}

/** Sends a browser an error page. @returns undefined for any other client. */
function sendErrorPage(
  status: 400 | 404,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply | undefined {
  const page = notFoundPage(request);
  return page === undefined ? undefined : reply.code(status).headers(PAGE_HEADERS).send(page);
}

/** Sends one error. Fastify itself calls this for requests that it cannot route, such as one with an invalid URL. */
export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = toServiceError(error);
  if (known instanceof OverloadError) {
    refuseRest(known, request, reply);
    return reply;
  }
  // The client disconnected in the middle of the body, so nobody can read the response.
  const brokeOff = request.raw.errored !== null && request.raw.errored === error;
  if (isOurFault(known) && !brokeOff) request.log.error({ err: error }, 'a request failed');
  // Hooks do not run for a request that cannot be routed.
  reply.header('x-request-id', request.id);
  const page =
    known.status === 404 || known.status === 400 ? sendErrorPage(known.status, request, reply) : undefined;
  return page ?? sendProblem(known, request, reply);
}

/** Reports whether to log an error: only if the caller is not at fault and no limit refused the call. */
export function isOurFault(error: ServiceError): boolean {
  const isOurs = error.reason === 'INTERNAL_ERROR' || error.reason === 'SERVICE_UNAVAILABLE';
  return isOurs && !(error instanceof OverloadError);
}

/** Sends an error as application/problem+json. */
export function sendProblem(error: ServiceError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  keepReason(request, error.reason);
  const problem = toProblem(error, request.id);
  if (error.retryAfterS !== undefined) reply.header('retry-after', error.retryAfterS);
  // Fastify sets this header after a body that it cannot parse, but HTTP/2 has no such header, and Node would print a
  // warning.
  if (request.raw.httpVersionMajor === 2) reply.removeHeader('connection');
  // As bytes: for a string, Fastify would add a charset parameter, which JSON's media type does not have (RFC 8259).
  return reply
    .code(problem.status)
    .type('application/problem+json')
    .send(Buffer.from(JSON.stringify(problem)));
}

/**
 * Mounts routes on an application. Other methods on their paths get a 405 that lists the allowed methods (RFC 9110).
 */
export function refuseOtherMethods(app: FastifyInstance, mount: () => void): void {
  const known = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    known.set(url, new Set([...(known.get(url) ?? []), ...[method].flat()]));
  });
  mount();
  // Loaded last, when all routes are known.
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
 * Responds in trailers to a call to an unknown rpc, as gRPC does. gRPC-Web reads them from the headers of an empty
 * response.
 */
function sendUnimplemented(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const contentType = request.headers['content-type'];
  const status = grpcTrailers(NO_RPC);
  // Headers count as trailers only if nothing follows them, but Node's HTTP/2 sends an empty frame at the end.
  const inTrailers = request.raw.httpVersionMajor === 2 && !contentType?.startsWith('application/grpc-web');
  if (inTrailers) reply.raw.addTrailers(status);
  else reply.headers(status);
  return reply.code(200).header('content-type', contentType).send();
}

/** pino serializers that omit requests and responses, and log only the kind and origin of an error. */
export const LOG_SERIALIZERS = {
  err: describeError,
  error: describeError,
  req: () => undefined,
  res: () => undefined,
};
