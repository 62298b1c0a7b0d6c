import { randomBytes } from 'node:crypto';
import type { Http2ServerRequest } from 'node:http2';
import type { Readable } from 'node:stream';
import {
  create,
  createFileRegistry,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  type Message,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf';
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt';
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from '@connectrpc/connect';
import { compressedFlag } from '@connectrpc/connect/protocol';
import type { FastifyRequest } from 'fastify';
import { type Reason, ServiceError } from '#src/service-error.ts';
import { canonicalize } from '#src/wire/canonical-message.ts';
import { NESTING_LIMIT, parseJson } from '#src/wire/parse-json.ts';
import { readBinary } from '#src/wire/read-binary.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { admitBody, BODY_LIMIT_BYTES, type BodyLimit, bodyLimitOf, requireSendable } from './body-limit.ts';
import { isOurFault } from './error-handler.ts';
import { keepReason, reasonIn, rewriteConnectError, toConnectError, toServiceError } from './errors.ts';
import { RPC_COMPRESSIONS } from './expand.ts';
import { checkRest } from './require-valid.ts';
import type { Handle, ServedService } from './rest.ts';

/** Minimum size of a response to compress, if the caller accepts compression. Lists reach it; single records do not. */
export const COMPRESSED_FROM_BYTES = 16 * 1024;

/** Longest time-out that a timer supports. Payments have their own deadlines, whatever the client's time-out. */
export const MAX_TIMEOUT_MS = 2_147_483_647;

const requestKey = createContextKey<FastifyRequest | undefined>(undefined);

/** Limits and message formats of every rpc, for fastifyConnectPlugin. */
export const RPC_OPTIONS = {
  readMaxBytes: BODY_LIMIT_BYTES,
  maxTimeoutMs: MAX_TIMEOUT_MS,
  acceptCompression: RPC_COMPRESSIONS,
  // Compressing small responses costs CPU time and gains nothing between nearby machines.
  compressMinBytes: COMPRESSED_FROM_BYTES,
  binaryOptions: { recursionLimit: NESTING_LIMIT, readUnknownFields: false },
  // Connect's JSON has the wire's own names, and contains every field.
  jsonOptions: { useProtoFieldName: true, alwaysEmitImplicit: true },
  requestGate: (context: HandlerContext) => rewriteErrors(context, UNREADABLE),
  contextValues: (request: FastifyRequest) => createContextValues().set(requestKey, request),
} satisfies ConnectRouterOptions & { contextValues: unknown };

/** Returns an object that identifies a call's connection in any protocol, the same for every call on it. */
export function connectionOf(context: HandlerContext): object {
  const raw = context.values.get(requestKey)?.raw;
  // Each HTTP/2 request has a separate socket object.
  const session = (raw as Partial<Http2ServerRequest> | undefined)?.stream?.session;
  return session ?? raw?.socket ?? context;
}

/** Options for the rpc protocols. */
export type RpcOptions<Service extends DescService, Call> = ServedService<Service, Call> & {
  /** Receives every error that is not the caller's fault. */
  readonly onError: (error: unknown) => void;
};

/** Registers a service's unary rpcs with a router, for Connect, gRPC and gRPC-Web. */
export function rpcRoutes<Service extends DescService, Call>(
  options: RpcOptions<Service, Call>,
): (router: ConnectRouter) => void {
  const callKey = createContextKey<Call | undefined>(undefined);

  const requestGate = (limit: BodyLimit<Call>) => async (context: HandlerContext) => {
    rewriteErrors(context, undefined, (reason) => {
      const refused = context.values.get(requestKey);
      if (refused) keepReason(refused, reason);
    });
    const request = context.values.get(requestKey);
    if (!request) throw new Error('RPC_OPTIONS were not given to the plugin');
    try {
      const call = await options.openCall(request);
      admitBody(limit, request, call);
      context.values.set(callKey, call);
      if (isPrefixed(request)) requireKnownFlags((await firstByte(request.raw)) ?? 0);
    } catch (error) {
      throw refusal(error, options.onError);
    }
  };

  return (router) => {
    for (const method of options.service.methods) {
      const handler = options.handlers[method.localName] as unknown as Handle<Call>;
      const limit = bodyLimitOf(method, options.admitLarge);
      const rpc = { method, handler, limit, onError: options.onError };
      if (method.methodKind !== 'unary') throw new Error(`${method} is not unary`);
      const implementation = async (request: Message, context: HandlerContext) => {
        const call = context.values.get(callKey);
        if (call === undefined) throw new Error('the request gate did not run');
        const { signal } = context;
        signal.throwIfAborted();
        return Promise.race([respond(rpc, request, call, context), ended(signal)]);
      };
      const unread = { ...method, input: UnreadSchema } as DescMethodUnary;
      router.rpc(unread, implementation, {
        requestGate: requestGate(limit),
        readMaxBytes: limit.bytes,
        jsonOptions: { ...RPC_OPTIONS.jsonOptions, ...unreadJson(method.input) },
        binaryOptions: UNREAD_BINARY,
      });
    }
  };
}

/** Returns true for gRPC and gRPC-Web, which put a flag and a length before each message. */
function isPrefixed({ headers }: FastifyRequest): boolean {
  return /^application\/grpc/i.test(headers['content-type'] ?? '');
}

/**
 * Refuses the flags of a message that gRPC does not define: it defines only whether the message is compressed.
 *
 * @throws ServiceError
 */
export function requireKnownFlags(flags: number): void {
  if ((flags & ~compressedFlag) === 0) return;
  throw new ServiceError('INVALID_REQUEST', 'the message has flags other than 0 and 1 (compressed)');
}

/** Waits for the first byte of a body, and leaves it there. @returns undefined if the body is empty. */
async function firstByte(body: Readable): Promise<number | undefined> {
  for (;;) {
    const chunk: Buffer | null = body.read();
    if (chunk) {
      body.unshift(chunk);
      return chunk[0];
    }
    if (body.readableEnded || body.destroyed) return undefined;
    const more = Promise.withResolvers<void>();
    const events = ['readable', 'end', 'close'];
    for (const event of events) body.once(event, more.resolve);
    await more.promise;
    for (const event of events) body.off(event, more.resolve);
  }
}

/** Codes of Connect's errors for unreadable messages. */
const UNREADABLE: readonly Code[] = [Code.InvalidArgument, Code.Internal];

/**
 * Rewrites Connect's own errors. In every protocol, Connect aborts the call's signal with its error before writing it:
 * this is the only place to change the error before the caller sees it.
 */
function rewriteErrors(
  { signal }: HandlerContext,
  codes?: readonly Code[],
  rewritten: (reason: Reason) => void = () => {},
): void {
  signal.addEventListener('abort', () => {
    const { reason } = signal;
    if (!(reason instanceof ConnectError && (codes?.includes(reason.code) ?? true))) return;
    rewriteConnectError(reason);
    const code = reasonIn(reason);
    if (code) rewritten(code);
  });
}

type Rpc<Call> = {
  readonly method: DescMethod;
  readonly handler: Handle<Call>;
  readonly limit: BodyLimit<Call>;
  readonly onError: (error: unknown) => void;
};

async function respond<Call>(
  { method: { input, output }, handler, limit, onError }: Rpc<Call>,
  unread: Message,
  call: Call,
  context: HandlerContext,
): Promise<Message> {
  try {
    const request = readUnread(input, unread);
    canonicalize(input, request);
    const { message, headers } = await handler(request, call);
    if (Number.isFinite(limit.rpcResponseBytes)) requireSendable(encoded(output, message, context), limit);
    for (const [name, value] of Object.entries(headers ?? {})) context.responseHeader.set(name, value);
    return message;
  } catch (error) {
    throw refusal(error, onError);
  }
}

/** Encodes a response as Connect will. */
function encoded(output: DescMessage, message: Message, { requestHeader }: HandlerContext): Uint8Array {
  if (!/json/.test(requestHeader.get('content-type') ?? '')) return toBinary(output, message);
  return Buffer.from(toJsonString(output, message, RPC_OPTIONS.jsonOptions));
}

/**
 * Rejects at the caller's deadline, or when the caller disconnects. The work continues, and a retry gets its
 * response.
 */
function ended(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** Converts an error thrown by a handler, and reports it if the fault is ours. */
export function refusal(error: unknown, onError: (error: unknown) => void): ConnectError {
  const known = toServiceError(error);
  if (isOurFault(known)) onError(error);
  return toConnectError(known);
}

/*
 * Connect decodes every message without limits on its content. We therefore give it a message type without fields: the
 * content stays in unknown fields until we read it with our own rules and limits.
 */

/**
 * The field that contains a request decoded from JSON: a secret mark, then the message in binary. Its number is the
 * highest possible, which no message of ours uses.
 */
const FIELD = { name: 'read', jsonName: 'read', number: 2 ** 29 - 1 };
const MARK = randomBytes(16);
const file = create(FileDescriptorProtoSchema, {
  name: 'unread.proto',
  syntax: 'proto3',
  messageType: [
    {
      name: 'Unread',
      field: [
        { ...FIELD, label: FieldDescriptorProto_Label.OPTIONAL, type: FieldDescriptorProto_Type.BYTES },
      ],
    },
  ],
});

/** The message type that Connect uses for every request. */
const UnreadSchema = createFileRegistry(file, () => undefined).getMessage('Unread') as DescMessage;

/** Makes Connect read a binary request as a message of unknown fields. */
const UNREAD_BINARY = { readUnknownFields: true, recursionLimit: 1 };

/**
 * Makes Connect read a JSON request through a text decoder that applies REST's rules: exact numbers, errors that name
 * the field, no duplicate values and no unknown enum values.
 */
function unreadJson(input: DescMessage): object {
  const decode = jsonDecoder(input, { protobufJson: true, check: checkRest(input) });
  const textDecoder = {
    decode(bytes: Uint8Array): string {
      try {
        const read = Buffer.concat([MARK, toBinary(input, decode(parseJson(bytes)))]);
        return JSON.stringify({ [FIELD.jsonName]: read.toString('base64') });
      } catch (error) {
        throw toConnectError(toServiceError(error));
      }
    },
  };
  return { textDecoder };
}

/**
 * Decodes a request that Connect read as UnreadSchema.
 *
 * @throws ServiceError as readBinary does.
 */
function readUnread(input: DescMessage, unread: Message): Message {
  const { read } = unread as Message & { readonly read: Uint8Array };
  if (MARK.equals(read.subarray(0, MARK.length))) return fromBinary(input, read.subarray(MARK.length));
  return readBinary(input, toBinary(UnreadSchema, unread));
}
