import { Readable } from 'node:stream';
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  getOption,
  type Message,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { not_supported } from '#gen/payments/v1/json_options_pb.js';
import { type FieldError, invalidParameters, MAX_FIELD_ERRORS, ServiceError } from '#src/service-error.ts';
import { canonicalize, isTextAbsentIfEmpty } from '#src/wire/canonical-message.ts';
import { isJsonObject, parseJson, RawNumber } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { jsonEncoder, jsonFieldEncoder } from '#src/wire/wire-json-encode.ts';
import { admitBody, BODY_LIMIT_BYTES, type BodyLimit, bodyLimitOf } from './body-limit.ts';
import { expand } from './expand.ts';
import { type FieldPath, fieldPath, type HttpBinding, httpBindings } from './http-rule.ts';
import { checkRest } from './require-valid.ts';

/** A handler's response, for any protocol. */
export type CallResponse<M> = {
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
  ) => Promise<CallResponse<MessageShape<Service['method'][Rpc]['output']>>>;
};

/** A service with its handlers. */
export type ServedService<Service extends DescService, Call> = {
  readonly service: Service;
  readonly handlers: ServiceHandlers<Service, Call>;
  /** Opens a call before its body is read, so that a caller without permission is refused first. */
  readonly openCall: (request: FastifyRequest) => Promise<Call>;
  /** Admits the large body of an operator's call; undefined for a service of accounts, whose bodies are small. */
  readonly admitLarge?: BodyLimit<Call>['admitLarge'] | undefined;
};

/** A handler of any rpc. */
export type Handle<Call> = (message: Message, call: Call) => Promise<CallResponse<Message>>;

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
        const { openCall } = options;
        addRoute(app, { binding, method, handle, openCall, limit: bodyLimitOf(method, options.admitLarge) });
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
    readonly limit: BodyLimit<Call>;
  },
): void {
  const { binding, handle, openCall, limit } = route;
  const { input, output } = route.method;
  const decode = jsonDecoder(input, { check: checkRest(input) });
  const { responseBody } = binding;
  const encode = responseBody ? jsonFieldEncoder(responseBody) : jsonEncoder(output);
  const calls = new WeakMap<FastifyRequest, Call>();
  app.route({
    method: binding.verb,
    url: binding.url,
    bodyLimit: limit.bytes,
    onRequest: async (request) => {
      const call = await openCall(request);
      if (binding.body !== '') admitBody(limit, request, call);
      calls.set(request, call);
    },
    handler: async (request, reply) => {
      const message = decode(requestJson(request, binding, input));
      canonicalize(input, message);
      const response = await handle(message, calls.get(request) as Call);
      reply.headers({ ...response.headers, 'content-type': 'application/json' });
      if (output.typeName === EmptySchema.typeName) return reply.code(204).send();
      const link = responseBody && nextPageLink(response.message, request.url);
      if (link !== undefined) reply.header('link', link);
      const lookedAt = responseBody && fieldOf(response.message, 'lookedAt');
      if (lookedAt) reply.header('x-looked-at', String(lookedAt));
      if (response.created !== undefined) reply.code(201);
      if (response.created) reply.header('location', response.created);
      // As bytes: for a string, Fastify would add a charset parameter, which JSON's media type does not have (RFC
      // 8259).
      const body = response.json ?? Buffer.from(encode(response.message));
      if (body.length <= PIECE_BYTES) return reply.send(body);
      reply.header('content-length', body.length);
      return reply.send(Readable.from(pieces(body)));
    },
  });
}

/** The listener holds a limited number of bytes for a slow client, so a long body is sent as the client takes it. */
const PIECE_BYTES = 1024 * 1024;

function* pieces(body: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) yield body.subarray(at, at + PIECE_BYTES);
}

/** Reads JSON bodies up to the route's limit, and refuses any other body without reading it. */
function acceptJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  const parser = { parseAs: 'buffer' } as const;
  app.addContentTypeParser('application/json', parser, async (request: FastifyRequest, body: Buffer) => {
    if (!isUtf8Type(request.headers['content-type'])) throw unsupportedMediaType();
    // Many clients send a content type without a body, for example with DELETE.
    if (body.length === 0) return undefined;
    const { bodyLimit = BODY_LIMIT_BYTES } = request.routeOptions;
    return parseJson(await expand(body, request.headers['content-encoding'], bodyLimit));
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

/**
 * Builds a call's request message, as REST JSON, from the body, the path and the query string, as google.api.http
 * prescribes: the body is the message or one of its fields; the path's variables override both. Unless the body is the
 * whole message, query parameters set fields by name (`page_size=2`, `filter.country=CO`). An absent body is an empty
 * message.
 *
 * @throws ServiceError INVALID_PARAMETERS that names each unknown query parameter: a list that ignored a filter would
 * return what the caller did not ask for.
 */
function requestJson(request: FastifyRequest, binding: HttpBinding, input: DescMessage): unknown {
  const { body, variables } = binding;
  const sent = request.body === undefined ? {} : request.body;
  if (body === '*' && (variables.length === 0 || !isJsonObject(sent))) return sent;
  const json: JsonMembers = body === '*' ? { ...(sent as JsonMembers) } : queryJson(request, binding, input);
  if (body !== '' && body !== '*') json[body] = sent;
  const params = request.params as Record<string, string>;
  const mask = binding.verb === 'PATCH' ? updateMask(json, binding, input) : undefined;
  if (mask !== undefined) json.update_mask ??= mask;
  for (const [i, path] of variables.entries()) setField(json, path, params[`p${i}`] ?? '');
  return json;
}

/**
 * Lists the fields in a PATCH body, including those that are `null`, if the request has an `update_mask`. The mask
 * distinguishes a field to clear from an absent field, since both are unset in the message. It omits an empty string
 * that counts as absent.
 */
function updateMask(json: JsonMembers, { variables }: HttpBinding, input: DescMessage): string | undefined {
  const mask = input.fields.find(({ name }) => name === 'update_mask');
  if (mask?.message?.typeName !== 'google.protobuf.FieldMask') return undefined;
  // The path's variables only identify the object, and unsupported fields are refused or have no effect.
  const others = [mask, ...variables.map(([field]) => field)];
  return input.fields
    .filter((field) => !others.includes(field) && !isUnsupported(field))
    .filter((field) => Object.hasOwn(json, field.name))
    .filter((field) => json[field.name] !== '' || !isTextAbsentIfEmpty(field))
    .map(({ name }) => name)
    .join();
}

/** Reports whether a field, or every field of its message, is unsupported. */
function isUnsupported(field: DescField): boolean {
  const within = field.message?.fields ?? [];
  return getOption(field, not_supported) || (within.length > 0 && within.every(isUnsupported));
}

type JsonMembers = Record<string, unknown>;

function queryJson(request: FastifyRequest, { variables }: HttpBinding, input: DescMessage): JsonMembers {
  const json: JsonMembers = {};
  const unknown: FieldError[] = [];
  const inPath = variables.map(nameOf);
  for (const [name, value] of Object.entries(request.query as Record<string, string | string[]>)) {
    const path = inPath.includes(name) ? undefined : fieldPath(input, name);
    if (path) setField(json, path, value);
    else unknown.push(unknownParameter(name));
  }
  if (unknown.length > 0) throw invalidParameters(unknown.slice(0, MAX_FIELD_ERRORS));
  return json;
}

/** Returns a field's dotted path of .proto names. */
function nameOf(path: FieldPath): string {
  return path.map(({ name }) => name).join('.');
}

/** Names that a refusal may repeat. Others might hold a card number. */
const PLAIN_NAME = /^(?!.*\d{5})[\w.[\]-]{1,64}$/;

function unknownParameter(name: string): FieldError {
  const message = 'is not a query parameter of this call';
  if (PLAIN_NAME.test(name)) return { field: name, code: 'NOT_ALLOWED', message };
  return { field: '?', code: 'NOT_ALLOWED', message: 'contains a parameter that this call does not have' };
}

function setField(json: JsonMembers, path: FieldPath, value: string | readonly string[]): void {
  let within = json;
  for (const { name } of path.slice(0, -1)) {
    const inner = within[name];
    const copy: JsonMembers = isJsonObject(inner) ? { ...inner } : {};
    within[name] = copy;
    within = copy;
  }
  const field = path.at(-1) as DescField;
  const values = [value].flat();
  const read = values.map((text) => textToJson(field, text));
  // Several values for a non-list field stay an array, which the decoder refuses.
  within[field.name] = field.fieldKind === 'list' || read.length !== 1 ? read : read[0];
}

const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Converts a value from a path or query string to JSON. A value that does not match the field's type stays a string.
 */
function textToJson(field: DescField, text: string): unknown {
  switch (field.fieldKind === 'map' ? undefined : field.scalar) {
    case undefined:
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return text;
    case ScalarType.BOOL:
      return text === 'true' ? true : text === 'false' ? false : text;
    default:
      return NUMBER.test(text) ? new RawNumber(text) : text;
  }
}

/** Returns the value of a response's field; undefined if the message has no such field. */
function fieldOf(message: Message, name: string): unknown {
  return (message as Message & Record<string, unknown>)[name];
}

/**
 * Builds the Link header for the next page (RFC 8288), for a response whose body is only the list, without
 * `next_page_token` (AIP-158).
 *
 * @param url the call's path and query string, of which the link keeps everything but page_token.
 * @returns the header, with a relative reference; undefined on the last page, and for a response without that field.
 */
function nextPageLink(message: Message, url: string): string | undefined {
  const token = fieldOf(message, 'nextPageToken');
  if (typeof token !== 'string' || token === '') return undefined;
  const [path = '', ...query] = url.split('?');
  const parameters = new URLSearchParams(query.join('?'));
  parameters.set('page_token', token);
  return `<${path}?${parameters}>; rel="next"`;
}
