import {
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  type Message,
  toJsonString,
} from '@bufbuild/protobuf';
import {
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  createContextKey,
  type HandlerContext,
} from '@connectrpc/connect';
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node';
import { canonicalizeDecimals } from './canonical-decimal.ts';
import { rewriteConnectError, toConnectError, toPaymentError } from './errors.ts';
import { NESTING_LIMIT, parseJson } from './parse-json.ts';
import { type Answer, BODY_LIMIT_BYTES, type ServiceHandlers } from './rest.ts';
import { jsonDecoder } from './wire-json-decode.ts';

/** The limits and the form of messages of every rpc, for fastifyConnectPlugin. */
export const RPC_OPTIONS = {
  readMaxBytes: BODY_LIMIT_BYTES,
  maxTimeoutMs: 300_000,
  acceptCompression: [compressionGzip, compressionBrotli],
  binaryOptions: { recursionLimit: NESTING_LIMIT, readUnknownFields: false },
  // Connect's JSON has the wire's own names, and says every field.
  jsonOptions: { useProtoFieldName: true, alwaysEmitImplicit: true },
} satisfies ConnectRouterOptions;

/** What the rpc protocols are served with. */
export type RpcOptions<Service extends DescService, Call> = {
  readonly service: Service;
  readonly handlers: ServiceHandlers<Service, Call>;
  /** Authenticates a call from its headers, before its body is read. */
  readonly openCall: (header: (name: string) => string | undefined) => Promise<Call>;
  /** Is told of every error that is not the caller's. */
  readonly onError: (error: unknown) => void;
};

/** Puts a service's unary rpcs on a router, for Connect, gRPC and gRPC-Web alike; knows no payment. */
export function rpcRoutes<Service extends DescService, Call>(
  options: RpcOptions<Service, Call>,
): (router: ConnectRouter) => void {
  const callKey = createContextKey<Call | undefined>(undefined);

  async function requestGate(context: HandlerContext): Promise<void> {
    // Connect aborts a call's signal with the error before it writes that error, whichever protocol it is. It is the one
    // place where the errors that Connect makes itself can be seen before the caller sees them.
    context.signal.addEventListener('abort', () => {
      if (context.signal.reason instanceof ConnectError) rewriteConnectError(context.signal.reason);
    });
    try {
      context.values.set(
        callKey,
        await options.openCall((name) => context.requestHeader.get(name) ?? undefined),
      );
    } catch (error) {
      throw refusal(error, options.onError);
    }
  }

  return (router) => {
    for (const method of options.service.methods) {
      const handler = options.handlers[method.localName] as unknown as Handle<Call>;
      if (method.methodKind !== 'unary') throw new Error(`${method} is not unary`);
      const implementation = async (request: Message, context: HandlerContext) => {
        const call = context.values.get(callKey);
        if (call === undefined) throw new Error('the request gate did not run');
        return answer(method.input, handler, request, call, context, options.onError);
      };
      router.rpc(method as DescMethodUnary, implementation, {
        requestGate,
        jsonOptions: strictJson(method.input),
      });
    }
  };
}

type Handle<Call> = (message: Message, call: Call) => Promise<Answer<Message>>;

async function answer<Call>(
  input: DescMessage,
  handler: Handle<Call>,
  request: Message,
  call: Call,
  context: HandlerContext,
  onError: (error: unknown) => void,
): Promise<Message> {
  try {
    canonicalizeDecimals(input, request);
    const { message, headers } = await handler(request, call);
    for (const [name, value] of Object.entries(headers ?? {})) context.responseHeader.set(name, value);
    return message;
  } catch (error) {
    throw refusal(error, onError);
  }
}

function refusal(error: unknown, onError: (error: unknown) => void): ConnectError {
  const known = toPaymentError(error);
  if (known.reason === 'INTERNAL_ERROR' || known.reason === 'SERVICE_UNAVAILABLE') onError(error);
  return toConnectError(known);
}

/**
 * JSON by the rules of REST: exact numbers, named fields in errors, no value repeated, unknown enum values refused. Connect
 * reads JSON through a text decoder, which hands it what our own decoder understood, written canonically.
 */
function strictJson(input: DescMessage): typeof RPC_OPTIONS.jsonOptions {
  const decode = jsonDecoder(input, { protobufJson: true });
  const textDecoder = {
    decode(bytes: Uint8Array): string {
      try {
        return toJsonString(input, decode(parseJson(bytes)));
      } catch (error) {
        throw toConnectError(toPaymentError(error));
      }
    },
  };
  return { ...RPC_OPTIONS.jsonOptions, ...{ textDecoder } };
}
