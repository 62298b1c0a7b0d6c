import type { DescMethod, DescService, Message, MessageShape } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ServiceError } from '#src/service-error.ts';
import { canonicalize } from '#src/wire/canonical-message.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { jsonEncoder, jsonFieldEncoder } from '#src/wire/wire-json-encode.ts';
import { BODY_LIMIT_BYTES, expand } from './expand.ts';
import { type HttpBinding, httpBindings } from './http-rule.ts';
import { nextPageLink } from './next-page-link.ts';
import { checkRest } from './require-valid.ts';
import { requestJson } from './rest-request.ts';

/** A handler's response, for any protocol. */
export type Answer<M> = {
  readonly message: M;
  /** A stored body in REST JSON, sent instead of encoding `message`. */
  readonly json?: Uint8Array | undefined;
  /** Headers of the response (gRPC: metadata). */
  readonly headers?: Readonly<Record<string, string>>;
  /** Path of the created object. Unless it is "", REST responds with 201 and this path as Location. */
  readonly created?: string;
};

/** A handler for each rpc of a service. `Call` holds the headers and the caller. */
export type ServiceHandlers<Service extends DescService, Call> = {
  readonly [Rpc in keyof Service['method']]: (
    message: MessageShape<Service['method'][Rpc]['input']>,
    call: Call,
  ) => Promise<Answer<MessageShape<Service['method'][Rpc]['output']>>>;
};

/** A service with its handlers. */
export type ServedService<Service extends DescService, Call> = {
  readonly service: Service;
  readonly handlers: ServiceHandlers<Service, Call>;
  /** Opens a call before its body is read, so that a caller without permission is refused first. */
  readonly openCall: (request: FastifyRequest) => Promise<Call>;
};

/** A handler of any rpc. */
export type Handle<Call> = (message: Message, call: Call) => Promise<Answer<Message>>;

/**
 * Returns a Fastify plugin with a route for every rpc that is annotated with google.api.http. The annotation alone
 * defines how HTTP maps to the request message. Routes throw ServiceError and Fastify's errors.
 *
 * @throws Error at registration, for an unsupported annotation.
 */
export function restRoutes<Service extends DescService, Call>(
  options: ServedService<Service, Call>,
): (app: FastifyInstance) => Promise<void> {
  return async (app) => {
    acceptJsonOnly(app);
    for (const method of options.service.methods) {
      const handle = options.handlers[method.localName] as unknown as Handle<Call>;
      for (const binding of httpBindings(method)) {
        addRoute(app, { binding, method, handle, openCall: options.openCall });
      }
    }
  };
}

function addRoute<Call>(
  app: FastifyInstance,
  route: Pick<ServedService<DescService, Call>, 'openCall'> & {
    readonly binding: HttpBinding;
    readonly method: DescMethod;
    readonly handle: Handle<Call>;
  },
): void {
  const { binding, handle, openCall } = route;
  const { input, output } = route.method;
  const decode = jsonDecoder(input, { check: checkRest(input) });
  const { responseBody } = binding;
  const encode = responseBody ? jsonFieldEncoder(responseBody) : jsonEncoder(output);
  const calls = new WeakMap<FastifyRequest, Call>();
  app.route({
    method: binding.verb,
    url: binding.url,
    onRequest: async (request) => {
      calls.set(request, await openCall(request));
    },
    handler: async (request, reply) => {
      const message = decode(requestJson(request, binding, input));
      canonicalize(input, message);
      const answer = await handle(message, calls.get(request) as Call);
      reply.headers({ ...answer.headers, 'content-type': 'application/json' });
      if (output.typeName === EmptySchema.typeName) return reply.code(204).send();
      const link = responseBody && nextPageLink(output, answer.message, request.url);
      if (link !== undefined) reply.header('link', link);
      if (answer.created !== undefined) reply.code(201);
      if (answer.created) reply.header('location', answer.created);
      // As bytes: for a string, Fastify would add a charset parameter, which JSON's media type does not have (RFC
      // 8259).
      return reply.send(answer.json ?? Buffer.from(encode(answer.message)));
    },
  });
}

/** Reads JSON bodies up to the limit, and refuses any other body without reading it. */
function acceptJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  const parser = { parseAs: 'buffer', bodyLimit: BODY_LIMIT_BYTES } as const;
  app.addContentTypeParser('application/json', parser, async (request: FastifyRequest, body: Buffer) => {
    if (!isUtf8Type(request.headers['content-type'])) throw unsupportedMediaType();
    // Many clients send a content type without a body, for example with DELETE.
    if (body.length === 0) return undefined;
    return parseJson(await expand(body, request.headers['content-encoding']));
  });
  app.addContentTypeParser('*', (_request, _body, done) => done(unsupportedMediaType(), undefined));
}

/** JSON is always UTF-8 (RFC 8259); other parameters are ignored. */
function isUtf8Type(contentType = ''): boolean {
  const charset = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(contentType)?.[1];
  return charset === undefined || /^utf-?8$/i.test(charset);
}

function unsupportedMediaType(): ServiceError {
  return new ServiceError('UNSUPPORTED_MEDIA_TYPE', 'the body must be application/json in UTF-8');
}
