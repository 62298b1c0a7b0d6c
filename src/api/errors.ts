import { Code, ConnectError } from '@connectrpc/connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import type { FastifyError, FastifyRequest } from 'fastify';
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '#gen/google/rpc/error_details_pb.js';
import { describeFields, type FieldError, REASONS, type Reason, ServiceError } from '#src/service-error.ts';
import { isUnavailable } from '#src/store/engine/database-error.ts';
import { tooLarge } from './body-limit.ts';
import { unknownEncoding } from './expand.ts';

/** Domain of google.rpc.ErrorInfo, within which the reasons are unique. */
export const ERROR_DOMAIN = 'payments.v1';

const refusedFor = new WeakMap<FastifyRequest, Reason>();

/** Keeps the reason for which a call is refused, for the call's line in the log. */
export function keepReason(request: FastifyRequest, reason: Reason): void {
  refusedFor.set(request, reason);
}

/** Returns the reason for which a call was refused; undefined if it was not, or not yet. */
export function reasonOf(request: FastifyRequest): Reason | undefined {
  return refusedFor.get(request);
}

/** An error as REST sends it: RFC 9457, plus the members that merchants' code reads. */
export type Problem = {
  readonly type: 'about:blank';
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: Reason;
  readonly messages: readonly string[];
  readonly errors: readonly FieldError[];
  readonly request_id: string;
};

/** Converts an error to REST. */
export function toProblem(error: ServiceError, requestId: string): Problem {
  const messages = error.fields.map(({ field, message }) => `${field}: ${message}`);
  return {
    type: 'about:blank',
    title: REASONS[error.reason].title,
    status: error.status,
    detail: error.message,
    code: error.reason,
    messages: messages.length > 0 ? messages : [error.message],
    errors: error.fields,
    request_id: requestId,
  };
}

/** Converts an error to Connect, gRPC and gRPC-Web, with google.rpc details. */
export function toConnectError(error: ServiceError): ConnectError {
  const rendered = new ConnectError(rpcMessage(error), Code[error.rpc]);
  addDetails(rendered, error);
  return rendered;
}

/**
 * Returns an error's gRPC trailers. Connect escapes more of the message than gRPC requires (PROTOCOL-HTTP2.md,
 * Percent-Encoded), and grpc-js does not unescape the excess.
 */
export function grpcTrailers(error: ConnectError): Readonly<Record<string, string>> {
  const trailers = setTrailerStatus(new Headers(), error);
  trailers.set('grpc-message', error.rawMessage.replace(/[^ -$&-~]+/g, encodeURIComponent));
  return Object.fromEntries(trailers);
}

/** Maximum number of faults listed in an rpc error's message; the details list all of them. */
const MAX_NAMED = 3;

/** Returns a message short enough for gRPC's trailers, which contain it twice and which clients limit to 8 KB. */
function rpcMessage({ message, fields }: ServiceError): string {
  if (fields.length <= MAX_NAMED) return message;
  return `${describeFields(fields.slice(0, MAX_NAMED))}; and ${fields.length - MAX_NAMED} more`;
}

/**
 * Rewrites, in place, an error that Connect created (for example for an unreadable body), because its message may quote
 * the body. Errors with our details stay unchanged.
 */
export function rewriteConnectError(error: ConnectError): void {
  if (error.details.length > 0) return;
  const known = foreignRpcError(error);
  const code = keepsItsCode(error) ? error.code : Code[known.rpc];
  Object.assign(error, { code, rawMessage: known.message, message: known.message, cause: undefined });
  addDetails(error, known);
}

/** Returns the reason in the details of an rpc error. */
export function reasonIn(error: ConnectError): Reason | undefined {
  const [info] = error.findDetails(ErrorInfoSchema);
  return info && Object.hasOwn(REASONS, info.reason) ? (info.reason as Reason) : undefined;
}

/**
 * Reports whether the protocols prescribe the error's code, as they do for a call that ends early and for an unknown
 * compression.
 */
function keepsItsCode(error: ConnectError): boolean {
  if (error.code === Code.DeadlineExceeded || error.code === Code.Canceled) return true;
  return isUnknownCompression(error) || error.rawMessage.startsWith(NO_COMPRESSION);
}

function isUnknownCompression(error: ConnectError): boolean {
  return error.code === Code.Unimplemented && error.rawMessage.startsWith('unknown compression');
}

function addDetails(target: ConnectError, error: ServiceError): void {
  target.details.push({ desc: ErrorInfoSchema, value: { reason: error.reason, domain: ERROR_DOMAIN } });
  if (error.fields.length > 0) {
    const fieldViolations = error.fields.map(({ field, code, message }) => ({
      field,
      reason: code,
      description: message,
    }));
    target.details.push({ desc: BadRequestSchema, value: { fieldViolations } });
  }
  if (error.retryAfterS !== undefined) {
    target.details.push({
      desc: RetryInfoSchema,
      value: { retryDelay: { seconds: BigInt(error.retryAfterS) } },
    });
    target.metadata.set('retry-after', String(error.retryAfterS));
  }
}

/** Prefix of Connect's error for a message marked as compressed in a call that names no compression. */
const NO_COMPRESSION = 'received compressed envelope';
/** Prefixes of the internal errors that Connect reports for unreadable messages. */
const UNREADABLE = ['parse binary', 'decompression failed', NO_COMPRESSION];

/** Translates Connect's own errors. For some unreadable messages, Connect reports an internal error. */
function foreignRpcError(error: ConnectError): ServiceError {
  switch (error.code) {
    case Code.ResourceExhausted:
      return tooLarge('the message is larger');
    case Code.InvalidArgument:
      return new ServiceError('INVALID_REQUEST', 'the message cannot be read');
    case Code.Unimplemented:
      if (isUnknownCompression(error)) return unknownEncoding('content-encoding or grpc-encoding');
      return new ServiceError('NOT_FOUND', 'there is no such rpc, or it cannot be called in this form');
    case Code.Canceled:
    case Code.DeadlineExceeded:
      // Work that has begun continues.
      return new ServiceError('REQUEST_IN_PROGRESS', ENDED_EARLY, { retryAfterS: 1 });
    case Code.Unavailable:
    case Code.Aborted:
      return new ServiceError('SERVICE_UNAVAILABLE', ENDED_EARLY);
    default:
      return UNREADABLE.some((beginning) => error.rawMessage.startsWith(beginning))
        ? new ServiceError('INVALID_REQUEST', 'the message cannot be read')
        : new ServiceError('INTERNAL_ERROR', INTERNAL_MESSAGE);
  }
}

const ENDED_EARLY = 'the call ended before its response; retry with the same key to get the response';
const INTERNAL_MESSAGE = 'internal error; whether anything was sent is unknown; retry with the same key';

/**
 * Converts any error to a ServiceError: THE place where every protocol and page does so. The text of a foreign error is
 * dropped. An error of an unavailable database comes from work that precedes every provider call, since the work that
 * follows a claim converts it itself (`afterClaim`).
 */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  if (isUnavailable(error)) {
    const message = 'the database is unavailable; nothing was sent; retry later';
    return new ServiceError('SERVICE_UNAVAILABLE', message, { retryAfterS: 1, cause: error });
  }
  const { code = '', statusCode } = (error ?? {}) as Partial<FastifyError>;
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return tooLarge('the body is larger');
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new ServiceError('UNSUPPORTED_MEDIA_TYPE', 'the body must be application/json');
  }
  // A path segment longer than any identifier, or an unknown method.
  if (code === 'FST_ERR_MAX_PARAM_LENGTH' || code === 'FST_ERR_NOT_FOUND')
    return new ServiceError('NOT_FOUND', 'there is nothing at this path');
  // FST_…: Fastify refuses the request. ECONNRESET: the caller disconnected halfway.
  if ((code.startsWith('FST_') && statusCode === 400) || code === 'ECONNRESET') {
    return new ServiceError('INVALID_REQUEST', 'the request cannot be read');
  }
  return new ServiceError('INTERNAL_ERROR', INTERNAL_MESSAGE, { cause: error });
}
