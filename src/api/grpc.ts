import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { type DescMethod, type DescService, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  compressedFlag,
  compressionNegotiate,
  encodeEnvelope,
  envelopeCompress,
  envelopeDecompress,
} from '@connectrpc/connect/protocol';
import { parseTimeout } from '@connectrpc/connect/protocol-grpc';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ServiceError } from '#src/service-error.ts';
import { canonicalize } from '#src/wire/canonical-message.ts';
import { readBinary } from '#src/wire/read-binary.ts';
import { BODY_LIMIT_BYTES, type BodyLimit, bodyLimitOf, requireSendable, tooLarge } from './body-limit.ts';
import { grpcTrailers, keepReason, reasonIn, rewriteConnectError } from './errors.ts';
import { RPC_COMPRESSIONS } from './expand.ts';
import { overloadTrailers } from './overload-responses.ts';
import type { Handle } from './rest.ts';
import { COMPRESSED_FROM_BYTES, MAX_TIMEOUT_MS, type RpcOptions, refusal, requireKnownFlags } from './rpc.ts';

/*
 * Unary binary gRPC over HTTP/2, for internal callers. It bypasses Connect, whose layers of streams took a third of the
 * CPU time; compression and time-outs still use Connect's functions. Calls in any other form (gRPC in JSON, gRPC-Web,
 * Connect) go to Connect.
 */

type Rpc<Call> = Pick<RpcOptions<DescService, Call>, 'openCall' | 'onError'> & {
  readonly method: DescMethod;
  readonly handle: Handle<Call>;
  readonly limit: BodyLimit<Call>;
};

/** A response. The body is the framed message; an error has no body. */
type GrpcResponse = {
  readonly headers: Readonly<Record<string, string>>;
  readonly trailers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
};

const CONTENT_TYPE = 'application/grpc+proto';
const BINARY = /^application\/grpc(?:\+proto)?$/i;
/** Size of the flag and length that precede each message. */
const PREFIX_BYTES = 5;

/** Serves binary gRPC calls before they reach Connect. */
export function serveGrpc<Call>(
  app: FastifyInstance,
  services: readonly RpcOptions<DescService, Call>[],
): void {
  const rpcs = new Map(
    services.flatMap(({ service, handlers, openCall, onError, admitLarge }) =>
      service.methods.map((method): [string, Rpc<Call>] => {
        const handle = handlers[method.localName] as unknown as Handle<Call>;
        const limit = bodyLimitOf(method, admitLarge);
        return [`/${service.typeName}/${method.name}`, { method, handle, openCall, onError, limit }];
      }),
    ),
  );
  app.addHook('preHandler', (request, reply, done) => {
    const rpc = rpcs.get(request.routeOptions.url ?? '');
    const isPost = request.method === 'POST' && request.raw.httpVersionMajor === 2;
    if (!rpc || !isPost || !BINARY.test(request.headers['content-type'] ?? '')) return done();
    reply.hijack();
    serve(rpc, request, reply).catch((error) => {
      rpc.onError(error);
      reply.raw.destroy();
    });
  });
}

/** Serves one call up to its trailers. Rejects only if the response cannot be written. */
async function serve<Call>(rpc: Rpc<Call>, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const timeout = parseTimeout(headerOf(request, 'grpc-timeout'), MAX_TIMEOUT_MS);
  const failed = (error: unknown): GrpcResponse => ({
    headers: {},
    trailers: trailersOf(error, rpc.onError, request),
  });
  // The work's errors are reported even after the deadline.
  const work = respond(rpc, request, timeout.error).catch(failed);
  const timeoutMs = timeout.error ? undefined : timeout.timeoutMs;
  send(reply, await withinTime(work, timeoutMs).catch(failed));
}

function trailersOf(
  error: unknown,
  onError: (error: unknown) => void,
  request: FastifyRequest,
): Readonly<Record<string, string>> {
  if (error instanceof ConnectError) rewriteConnectError(error);
  const beyondLimit = overloadTrailers(error);
  if (beyondLimit) return beyondLimit;
  const refused = error instanceof ConnectError ? error : refusal(error, onError);
  const reason = reasonIn(refused);
  if (reason) keepReason(request, reason);
  return grpcTrailers(refused);
}

const SUCCESS = { 'grpc-status': '0' };

/** Opens the call before reading its body, so that a caller without permission is refused first. */
async function respond<Call>(
  { method, handle, openCall, limit }: Rpc<Call>,
  request: FastifyRequest,
  timeoutError: ConnectError | undefined,
): Promise<GrpcResponse> {
  const call = await openCall(request);
  const compression = compressionNegotiate(
    RPC_COMPRESSIONS,
    headerOf(request, 'grpc-encoding'),
    headerOf(request, 'grpc-accept-encoding'),
    'grpc-accept-encoding',
  );
  if (compression.error) throw compression.error;
  if (timeoutError) throw timeoutError;

  const { bytes: limitBytes, admitLarge } = limit;
  const body = await readBody(request.raw, { limitBytes, admitLarge: () => admitLarge(call) });
  const { data } = await envelopeDecompress(readPrefixed(body), compression.request, limitBytes);
  const message = readBinary(method.input, data);
  canonicalize(method.input, message);
  const { message: response, headers } = await handle(message, call);

  const plain = { flags: 0, data: toBinary(method.output, response) };
  requireSendable(plain.data, limit);
  const sent = await envelopeCompress(plain, compression.response, COMPRESSED_FROM_BYTES);
  const isCompressed = (sent.flags & compressedFlag) !== 0;
  return {
    headers: { ...headers, ...(isCompressed && { 'grpc-encoding': compression.response?.name ?? '' }) },
    trailers: SUCCESS,
    body: encodeEnvelope(sent.flags, sent.data),
  };
}

/** Rejects at the caller's deadline, if any. The work continues, and a retry gets its response. */
async function withinTime<T>(work: Promise<T>, timeoutMs: number | undefined): Promise<T> {
  if (timeoutMs === undefined) return work;
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new ConnectError('the operation timed out', Code.DeadlineExceeded));
  }, timeoutMs);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Reads the body. Stops at the size limit, or if it is large and is not admitted. */
function readBody(
  stream: IncomingMessage,
  { limitBytes, admitLarge }: { readonly limitBytes: number; readonly admitLarge: () => void },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // The stream will emit no more events, so the promise would not settle before the deadline.
    if (stream.complete) throw new ConnectError('the client closed the call', Code.Canceled);
    const chunks: Buffer[] = [];
    let size = 0;
    const take = (chunk: Buffer) => {
      const before = size;
      size += chunk.length;
      if (size > PREFIX_BYTES + limitBytes) throw tooLarge('the message is larger');
      const isLarge = size > PREFIX_BYTES + BODY_LIMIT_BYTES;
      if (isLarge && before <= PREFIX_BYTES + BODY_LIMIT_BYTES) admitLarge();
      chunks.push(chunk);
    };
    stream.on('data', (chunk: Buffer) => {
      try {
        take(chunk);
      } catch (error) {
        stream.pause();
        reject(error);
      }
    });
    stream.once('end', () => resolve((chunks.length === 1 && chunks[0]) || Buffer.concat(chunks)));
    stream.once('close', () => reject(new ConnectError('the client closed the call', Code.Canceled)));
  });
}

function readPrefixed(body: Buffer): { flags: number; data: Uint8Array } {
  if (body.length < PREFIX_BYTES || body.length !== PREFIX_BYTES + body.readUInt32BE(1)) {
    throw new ServiceError('INVALID_REQUEST', 'the body is not one length-prefixed message');
  }
  const flags = body.readUInt8(0);
  requireKnownFlags(flags);
  return { flags, data: body.subarray(PREFIX_BYTES) };
}

function send(reply: FastifyReply, { headers, trailers, body }: GrpcResponse): void {
  const { raw } = reply;
  // The caller has disconnected.
  if (raw.destroyed || raw.headersSent) return;
  const set = reply.getHeaders() as OutgoingHttpHeaders;
  raw.writeHead(200, { ...set, ...headers, 'content-type': CONTENT_TYPE });
  raw.addTrailers(trailers);
  raw.end(body);
}

function headerOf({ headers }: FastifyRequest, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' ? value : null;
}
