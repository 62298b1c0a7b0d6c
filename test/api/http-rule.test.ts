import {
  create,
  createFileRegistry,
  type DescService,
  type MessageInitShape,
  setExtension,
} from '@bufbuild/protobuf';
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  MethodOptionsSchema,
} from '@bufbuild/protobuf/wkt';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { http } from '#gen/google/api/annotations_pb.js';
import { HttpRuleSchema } from '#gen/google/api/http_pb.js';
import { refuseOtherMethods } from '#src/api/error-handler.ts';
import { toServiceError } from '#src/api/errors.ts';
import { restRoutes } from '#src/api/rest.ts';
import { REASONS } from '#src/service-error.ts';

type Rule = MessageInitShape<typeof HttpRuleSchema>;

/** The service of a library, with these annotations. No code of ours knows it. */
function libraryService(rules: Readonly<Record<string, Rule>>): DescService {
  const { STRING, INT32, BOOL, MESSAGE } = FieldDescriptorProto_Type;
  const { OPTIONAL, REPEATED } = FieldDescriptorProto_Label;
  const method = Object.entries(rules).map(([name, rule]) => {
    const options = create(MethodOptionsSchema);
    setExtension(options, http, create(HttpRuleSchema, rule));
    return { name, inputType: '.library.Book', outputType: '.library.Book', options };
  });
  const file = create(FileDescriptorProtoSchema, {
    name: 'library.proto',
    package: 'library',
    syntax: 'proto3',
    messageType: [
      {
        name: 'Book',
        field: [
          { name: 'id', number: 1, type: STRING, label: OPTIONAL },
          { name: 'page_count', number: 2, type: INT32, label: OPTIONAL },
          { name: 'lent', number: 3, type: BOOL, label: OPTIONAL },
          { name: 'next_page_token', number: 6, type: STRING, label: OPTIONAL },
          { name: 'tags', number: 4, type: STRING, label: REPEATED },
          { name: 'shelf', number: 5, type: MESSAGE, typeName: '.library.Shelf', label: OPTIONAL },
        ],
      },
      {
        name: 'Shelf',
        field: [
          { name: 'room', number: 1, type: STRING, label: OPTIONAL },
          { name: 'number', number: 2, type: INT32, label: OPTIONAL },
        ],
      },
    ],
    service: [{ name: 'Library', method }],
  });
  return createFileRegistry(file, () => undefined).getService('library.Library') as DescService;
}

const echo = async (message: object) => ({ message: message as never });

/** An application with the routes of a service whose methods all return their request. */
function appOf(service: DescService): FastifyInstance {
  const handlers = Object.fromEntries(service.methods.map((method) => [method.localName, echo]));
  const app = Fastify();
  app.setErrorHandler(renderError);
  refuseOtherMethods(app, () => {
    app.register(restRoutes({ service, handlers, openCall: async () => undefined }));
  });
  return app;
}

const renderError: Parameters<FastifyInstance['setErrorHandler']>[0] = (error, _request, reply) => {
  const { reason, message, fields } = toServiceError(error);
  return reply.code(REASONS[reason].status).send({ code: reason, message, fields });
};

describe('routes from HTTP annotations', () => {
  const service = libraryService({
    GetBook: { pattern: { case: 'get', value: '/v1/books/{id}' } },
    MoveBook: { pattern: { case: 'put', value: '/v1/shelves/{shelf.number}/books/{id}' }, body: '*' },
    PlaceBook: {
      pattern: { case: 'patch', value: '/v1/books/{id}' },
      body: 'shelf',
      additionalBindings: [{ pattern: { case: 'post', value: '/v1/books' }, body: '*' }],
    },
    ListTags: { pattern: { case: 'get', value: '/v1/tags' }, responseBody: 'tags' },
    GetShelf: { pattern: { case: 'get', value: '/v1/shelf' }, responseBody: 'shelf' },
    CountPages: { pattern: { case: 'get', value: '/v1/pages' }, responseBody: 'page_count' },
    DropBook: { pattern: { case: 'delete', value: '/v1/books/{id}' } },
  });
  let app: FastifyInstance;

  beforeAll(async () => {
    app = appOf(service);
    await app.ready();
  });
  afterAll(() => app.close());

  const call = async (
    method: 'GET' | 'PUT' | 'PATCH' | 'DELETE' | 'POST' | 'HEAD',
    url: string,
    payload?: object,
  ) => {
    const response = await app.inject({ method, url, ...(payload && { payload }) });
    return {
      status: response.statusCode,
      headers: response.headers,
      body: response.body ? response.json() : undefined,
    };
  };
  const book = (members: object) => ({
    id: '',
    page_count: 0,
    lent: false,
    tags: [],
    shelf: null,
    next_page_token: '',
    ...members,
  });

  it('fields are read from the path and the query string according to their types', async () => {
    const { status, body } = await call(
      'GET',
      '/v1/books/a%2Fb?page_count=3&lent=true&tags=x&shelf.number=7',
    );
    expect(status).toBe(200);
    expect(body).toEqual(
      book({ id: 'a/b', page_count: 3, lent: true, tags: ['x'], shelf: { room: '', number: 7 } }),
    );
    expect((await call('GET', '/v1/books/1?tags=x&tags=y')).body.tags).toEqual(['x', 'y']);
  });

  it('a query string with values of the wrong type is refused', async () => {
    const { status, body } = await call('GET', '/v1/books/1?page_count=x&lent=1&shelf.number=1.5&shelf=2');
    expect(status).toBe(400);
    expect(body.fields.map((f: { field: string }) => f.field)).toEqual(['page_count', 'lent', 'shelf']);
    expect((await call('GET', '/v1/books/1?page_count=1&page_count=2')).status).toBe(400);
  });

  it('a query string with unknown names, even __proto__ and constructor, is refused by name', async () => {
    const names = ['other', '__proto__.id', 'constructor', 'shelf.__proto__', 'id'];
    const { status, body } = await call('GET', `/v1/books/1?${names.map((name) => `${name}=x`).join('&')}`);
    expect(status).toBe(400);
    expect(body.fields.map((f: { field: string }) => f.field)).toEqual(names);
  });

  it('the path takes precedence over the body, even for a field within a message', async () => {
    const { body } = await call('PUT', '/v1/shelves/9/books/b1', {
      id: 'x',
      shelf: { room: 'r', number: 1 },
      lent: true,
    });
    expect(body).toEqual(book({ id: 'b1', lent: true, shelf: { room: 'r', number: 9 } }));
  });

  it('the body can be a single field that the annotation names, with other fields in the query', async () => {
    const { body } = await call('PATCH', '/v1/books/b1?page_count=2&shelf.number=5', { room: 'r' });
    expect(body).toEqual(book({ id: 'b1', page_count: 2, shelf: { room: 'r', number: 0 } }));
    const wrong = await call('PATCH', '/v1/books/b1', { room: 1 });
    expect(wrong.body.fields).toMatchObject([{ field: 'shelf.room', code: 'INVALID_TYPE' }]);
  });

  it('each binding of an rpc has a route, and DELETE takes no body', async () => {
    expect((await call('POST', '/v1/books', { id: 'n' })).body).toEqual(book({ id: 'n' }));
    expect((await call('DELETE', '/v1/books/d')).body).toEqual(book({ id: 'd' }));
  });

  it('the response can be a single field that the annotation names, even if it is empty', async () => {
    expect((await call('GET', '/v1/tags?tags=a&tags=b')).body).toEqual(['a', 'b']);
    expect((await call('GET', '/v1/tags')).body).toEqual([]);
    expect((await call('GET', '/v1/shelf?shelf.number=5')).body).toEqual({ room: '', number: 5 });
    expect((await call('GET', '/v1/shelf')).body).toBeNull();
    expect((await call('GET', '/v1/pages?page_count=3')).body).toBe(3);
  });

  it('a list response has a Link header to the next page, which keeps the query', async () => {
    const url = '/v1/tags?tags=a%26b&id=%E2%82%AC%3E&next_page_token=n%3E%222';
    const { headers, body } = await call('GET', url);
    expect(body).toEqual(['a&b']);
    expect(headers.link).toBe(
      '</v1/tags?tags=a%26b&id=%E2%82%AC%3E&next_page_token=n%3E%222&page_token=n%3E%222>; rel="next"',
    );
    const marked = await call('GET', '/v1/tags?tags=a?b&next_page_token=n');
    expect([marked.body, marked.headers.link]).toEqual([
      ['a?b'],
      '</v1/tags?tags=a%3Fb&next_page_token=n&page_token=n>; rel="next"',
    ]);
    expect((await call('GET', '/v1/tags?tags=a')).headers.link).toBeUndefined();
    expect((await call('GET', '/v1/books/b?next_page_token=n')).headers.link).toBeUndefined();
  });

  it('a path allows the methods of all its rpcs, and HEAD wherever GET is allowed', async () => {
    const { status, headers } = await call('POST', '/v1/books/1');
    expect([status, headers.allow]).toEqual([405, 'GET, PATCH, DELETE, HEAD']);
    expect((await call('HEAD', '/v1/books/1')).status).toBe(200);
  });

  it.each<[string, Rule]>([
    ['a pattern within a variable', { pattern: { case: 'get', value: '/v1/{id=books/*}' } }],
    ['a wildcard', { pattern: { case: 'get', value: '/v1/books/*' } }],
    ['a verb after a colon', { pattern: { case: 'post', value: '/v1/books/{id}:lend' }, body: '*' }],
    ['a variable that is not a field', { pattern: { case: 'get', value: '/v1/books/{isbn}' } }],
    ['a variable that is a message', { pattern: { case: 'get', value: '/v1/books/{shelf}' } }],
    ['a variable that is a list', { pattern: { case: 'get', value: '/v1/books/{tags}' } }],
    ['a path without a leading slash', { pattern: { case: 'get', value: 'v1/books' } }],
    ['a body that is not a field', { pattern: { case: 'post', value: '/v1/books' }, body: 'isbn' }],
    ['a response body that is not a field', { pattern: { case: 'get', value: '/v1' }, responseBody: 'isbn' }],
    ['the response body *', { pattern: { case: 'get', value: '/v1/books' }, responseBody: '*' }],
    ['a custom verb', { pattern: { case: 'custom', value: { kind: 'LEND', path: '/v1' } } }],
    ['no pattern', {}],
  ])('the application does not start with %s, and the error names the rpc', async (_name, rule) => {
    const broken = appOf(libraryService({ LendBook: rule }));
    await expect(broken.ready()).rejects.toThrow('LendBook');
    await broken.close();
  });
});
