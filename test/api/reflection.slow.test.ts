import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import * as grpc from '@grpc/grpc-js';
import * as protoLoader from '@grpc/proto-loader';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Health } from '#gen/grpc/health/v1/health_pb.js';
import {
  ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionResponseSchema,
} from '#gen/grpc/reflection/v1/reflection_pb.js';
import { ServerReflection as ServerReflectionV1Alpha } from '#gen/grpc/reflection/v1alpha/reflection_pb.js';
import { PaymentService } from '#gen/payments/v1/payment_service_pb.js';
import { createHealth } from '#src/api/health.ts';
import { reflectionRoutes } from '#src/api/reflection.ts';
import { RPC_OPTIONS } from '#src/api/rpc.ts';
import { createListener } from '#src/listener/listener.ts';

const run = promisify(execFile);
const BUF = fileURLToPath(new URL('../../node_modules/.bin/buf', import.meta.url));
const SERVICES = [PaymentService, Health, ServerReflection, ServerReflectionV1Alpha];
const NAMES = [
  'grpc.health.v1.Health',
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
  'payments.v1.PaymentService',
];

let app: FastifyInstance;
let baseUrl: string;

beforeAll(async () => {
  const health = createHealth({
    canWrite: async () => true,
    services: SERVICES,
    draining: new AbortController().signal,
  });
  app = Fastify(createListener());
  await app.register(fastifyConnectPlugin, {
    ...RPC_OPTIONS,
    routes(router) {
      health.rpcRoutes(router);
      reflectionRoutes(SERVICES)(router);
    },
  });
  baseUrl = await app.listen({ port: 0, host: '127.0.0.1' });
});

const sessions: Http2SessionManager[] = [];
afterAll(async () => {
  for (const session of sessions) session.abort();
  await app.close();
});

function connect(): Transport {
  const sessionManager = new Http2SessionManager(baseUrl);
  sessions.push(sessionManager);
  return createGrpcTransport({ baseUrl, sessionManager });
}

type Question = ServerReflectionRequest['messageRequest'];

async function ask(
  service: typeof ServerReflection | typeof ServerReflectionV1Alpha,
  ...questions: Question[]
) {
  // The two versions differ only in their names, so the types of v1 fit both.
  const client = createClient(service as typeof ServerReflection, connect());
  const answers = client.serverReflectionInfo(
    (async function* () {
      for (const messageRequest of questions) yield { host: 'here', messageRequest };
    })(),
  );
  return await Array.fromAsync(answers);
}

/** Returns the names of the files in a response, and expects that it contains all their imports. */
async function filesOf(messageRequest: Question): Promise<string[]> {
  const [answer] = await ask(ServerReflection, messageRequest);
  if (answer?.messageResponse.case !== 'fileDescriptorResponse')
    throw new Error(`${answer?.messageResponse.case}`);
  const file = answer.messageResponse.value.fileDescriptorProto.map((bytes) =>
    fromBinary(FileDescriptorProtoSchema, bytes),
  );
  const names = file.map(({ name }) => name);
  for (const { dependency } of file) expect(names).toEqual(expect.arrayContaining(dependency));
  expect(new Set(names).size).toBe(names.length);
  return names;
}

describe.each([
  ['v1', ServerReflection],
  ['v1alpha', ServerReflectionV1Alpha],
])('server reflection %s', (_version, service) => {
  it('reflection lists the services', async () => {
    const question: Question = { case: 'listServices', value: '' };
    const [answer] = await ask(service, question);
    expect(answer).toMatchObject({
      validHost: 'here',
      originalRequest: { host: 'here', messageRequest: question },
    });
    const listed = answer?.messageResponse;
    if (listed?.case !== 'listServicesResponse') throw new Error(`${listed?.case}`);
    expect(listed.value.service.map(({ name }) => name)).toEqual(NAMES);
  });

  it('reflection answers several requests on one stream in order', async () => {
    const answers = await ask(
      service,
      { case: 'fileByFilename', value: 'payments/v1/payment.proto' },
      { case: 'fileByFilename', value: 'no/such.proto' },
      { case: 'listServices', value: '' },
    );
    expect(answers.map(({ messageResponse }) => messageResponse.case)).toEqual([
      'fileDescriptorResponse',
      'errorResponse',
      'listServicesResponse',
    ]);
    expect(answers[1]?.messageResponse.value).toMatchObject({ errorCode: grpc.status.NOT_FOUND });
  });
});

describe('files from reflection', () => {
  it('reflection returns a file first, followed by all its imports', async () => {
    const names = await filesOf({ case: 'fileByFilename', value: 'payments/v1/payment_service.proto' });
    expect(names[0]).toBe('payments/v1/payment_service.proto');
    expect(names).toEqual(
      expect.arrayContaining(['google/api/http.proto', 'google/protobuf/descriptor.proto']),
    );
  });

  it.each([
    ['a service', 'payments.v1.PaymentService', 'payments/v1/payment_service.proto'],
    ['a method', 'payments.v1.PaymentService.CreatePayment', 'payments/v1/payment_service.proto'],
    ['a message', 'payments.v1.Payment', 'payments/v1/payment.proto'],
    ['a nested enum', 'grpc.health.v1.HealthCheckResponse.ServingStatus', 'grpc/health/v1/health.proto'],
    ['a value of a nested enum', 'grpc.health.v1.HealthCheckResponse.SERVING', 'grpc/health/v1/health.proto'],
    ['a field', 'payments.v1.Payment.status', 'payments/v1/payment.proto'],
    [
      'a oneof',
      'grpc.reflection.v1.ServerReflectionRequest.message_request',
      'grpc/reflection/v1/reflection.proto',
    ],
    ['a message that is only imported', 'google.type.Decimal', 'google/type/decimal.proto'],
    ['an extension', 'payments.v1.null_when_empty', 'payments/v1/json_options.proto'],
  ])('reflection finds the file that defines %s', async (_kind, symbol, file) => {
    expect((await filesOf({ case: 'fileContainingSymbol', value: symbol }))[0]).toBe(file);
  });

  it('reflection finds the file that defines an extension', async () => {
    const value = { containingType: 'google.protobuf.MethodOptions', extensionNumber: 72295728 };
    const question = { case: 'fileContainingExtension', value } as Question;
    expect((await filesOf(question))[0]).toBe('google/api/annotations.proto');
  });
});

describe('extensions from reflection', () => {
  it('reflection lists the extension numbers of a type', async () => {
    const [some, none, unknown] = await ask(
      ServerReflection,
      { case: 'allExtensionNumbersOfType', value: 'google.protobuf.FieldOptions' },
      { case: 'allExtensionNumbersOfType', value: 'payments.v1.Payment' },
      { case: 'allExtensionNumbersOfType', value: 'no.such.Type' },
    );
    expect(some?.messageResponse.value).toMatchObject({
      baseTypeName: 'google.protobuf.FieldOptions',
      extensionNumber: expect.arrayContaining([50001]),
    });
    expect(none?.messageResponse.value).toMatchObject({ extensionNumber: [] });
    expect(unknown?.messageResponse.case).toBe('errorResponse');
  });
});

describe('unknown names in reflection', () => {
  it.each<Question>([
    { case: 'fileByFilename', value: '../../etc/passwd' },
    { case: 'fileContainingSymbol', value: '__proto__' },
    { case: 'fileContainingSymbol', value: '' },
    {
      case: 'fileContainingExtension',
      value: { containingType: 'payments.v1.Payment', extensionNumber: 1 } as never,
    },
  ])('an unknown name gets a NOT_FOUND error response: %j', async (question) => {
    const [answer] = await ask(ServerReflection, question);
    expect(answer?.messageResponse).toMatchObject({ case: 'errorResponse', value: { errorCode: 5 } });
  });
});

describe('limits of reflection', () => {
  const code = (answers: Promise<unknown>) => answers.catch((error) => ConnectError.from(error).code);

  it('a reflection request that asks for nothing is refused', async () => {
    expect(await code(ask(ServerReflection, { case: undefined }))).toBe(Code.InvalidArgument);
  });

  it('a reflection stream with more than 100 requests is ended', async () => {
    const question: Question = { case: 'fileByFilename', value: 'x' };
    const questions = (count: number) => Array.from({ length: count }, () => question);
    expect(await ask(ServerReflection, ...questions(100))).toHaveLength(100);
    expect(await code(ask(ServerReflection, ...questions(101)))).toBe(Code.ResourceExhausted);
  });

  it('one connection gets at most 4 MiB of reflection responses, and other connections are unaffected', async () => {
    const question: Question = { case: 'fileByFilename', value: 'payments/v1/payment_service.proto' };
    const transport = connect();
    const bytes = await answeredUntilRefused(transport, question);
    expect(bytes).toBeGreaterThan(3 * 2 ** 20);
    expect(bytes).toBeLessThanOrEqual(4 * 2 ** 20);
    // The limit still applies to this connection.
    expect(await answeredUntilRefused(transport, question)).toBe(0);
    expect(await ask(ServerReflection, question)).toHaveLength(1);
  });

  it('the limit on reflection responses includes the request that each response repeats', async () => {
    const question: Question = { case: 'fileByFilename', value: 'x'.repeat(100_000) };
    const bytes = await answeredUntilRefused(connect(), question);
    expect(bytes).toBeLessThanOrEqual(4 * 2 ** 20);
  });
});

/** Sends requests, ten per stream, until one is refused. @returns the size of the responses in bytes. */
async function answeredUntilRefused(transport: Transport, question: Question): Promise<number> {
  const client = createClient(ServerReflection, transport);
  let bytes = 0;
  for (let stream = 0; stream < 100; stream++) {
    const answers = client.serverReflectionInfo(
      (async function* () {
        for (let i = 0; i < 10; i++) yield { messageRequest: question };
      })(),
    );
    try {
      for await (const answer of answers) bytes += toBinary(ServerReflectionResponseSchema, answer).length;
    } catch (error) {
      expect(ConnectError.from(error).code).toBe(Code.ResourceExhausted);
      return bytes;
    }
  }
  throw new Error('no request was refused');
}

describe('reflection clients without .proto files', () => {
  const curl = async (...args: string[]) => (await run(BUF, ['curl', ...args], { timeout: 60_000 })).stdout;

  it.each([
    ['grpc', ['--http2-prior-knowledge']],
    ['grpcweb', []],
    ['grpcweb', ['--http2-prior-knowledge']],
    ['connect', []],
    ['connect', ['--http2-prior-knowledge']],
  ])('buf curl calls a method over %s %j', async (protocol, flags) => {
    const answer = await curl(
      '--protocol',
      protocol,
      ...flags,
      '-d',
      '{}',
      `${baseUrl}/grpc.health.v1.Health/Check`,
    );
    expect(JSON.parse(answer)).toEqual({ status: 'SERVING' });
  });

  it.each(['grpc-v1', 'grpc-v1alpha'])('buf curl lists services and methods over %s', async (version) => {
    const flags = ['--protocol', 'grpc', '--http2-prior-knowledge', '--reflect-protocol', version];
    expect((await curl(...flags, '--list-services', baseUrl)).trim().split('\n').sort()).toEqual(NAMES);
    expect(await curl(...flags, '--list-methods', baseUrl)).toContain(
      'payments.v1.PaymentService/CreatePayment',
    );
  });

  it('grpc-js calls a method with descriptors from reflection', async () => {
    const [answer] = await ask(ServerReflection, { case: 'fileContainingSymbol', value: Health.typeName });
    if (answer?.messageResponse.case !== 'fileDescriptorResponse') throw new Error('no files');
    const file = answer.messageResponse.value.fileDescriptorProto.map((bytes) =>
      fromBinary(FileDescriptorProtoSchema, bytes),
    );
    const loaded = protoLoader.loadFileDescriptorSetFromBuffer(
      Buffer.from(toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }))),
      { enums: String },
    );
    const Client = grpc.makeClientConstructor(
      loaded[Health.typeName] as grpc.ServiceDefinition,
      Health.typeName,
    );
    const client = new Client(new URL(baseUrl).host, grpc.credentials.createInsecure());
    const checked = await new Promise((resolve, reject) => {
      client.Check?.({ service: '' }, (error: Error | null, response: unknown) =>
        error ? reject(error) : resolve(response),
      );
    });
    client.close();
    expect(checked).toEqual({ status: 'SERVING' });
  });
});
