import { once } from 'node:events';
import http2 from 'node:http2';
import { gunzipSync, gzipSync } from 'node:zlib';
import { create, type DescMessage, fromBinary, toBinary } from '@bufbuild/protobuf';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { GetCustomerRequestSchema } from '#gen/payments/v1/customer_service_pb.js';
import { type Payment, PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import {
  type ListPaymentsResponse,
  ListPaymentsResponseSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { apiClients, requestBody } from '../support/api-clients.ts';
import { onService, server } from '../support/on-service.ts';
import { CUSTOMER, cardPayment, headersOne, withField } from '../support/payment-requests.ts';
import { openTables, WAITING } from '../support/tables.ts';

/* Unary gRPC calls over bare HTTP/2, because the service implements this protocol itself. */

const CREATE = '/payments.v1.PaymentService/CreatePayment';
const LIST = '/payments.v1.PaymentService/ListPayments';

/** A response's message with its flag, headers and trailers, and the status and error message in the trailers. */
type Reply = {
  readonly headers: http2.IncomingHttpHeaders;
  readonly trailers: http2.IncomingHttpHeaders;
  readonly status: string | undefined;
  readonly refused: string | undefined;
  readonly flag: number | undefined;
  readonly message: Buffer;
};

let session: http2.ClientHttp2Session;

onService({ config: { inProgressWaitMs: 300 } });
beforeAll(async () => {
  session = http2.connect(server.url);
});
afterAll(() => session?.destroy());

async function call(path: string, body: Uint8Array, headers: Record<string, string> = {}): Promise<Reply> {
  const all = { 'content-type': 'application/grpc', te: 'trailers', ...headersOne(), ...headers };
  const stream = session.request({ ':method': 'POST', ':path': path, ...all });
  stream.end(body);
  return replyOf(stream);
}

async function replyOf(stream: http2.ClientHttp2Stream): Promise<Reply> {
  let headers: http2.IncomingHttpHeaders = {};
  let trailers: http2.IncomingHttpHeaders = {};
  const chunks: Buffer[] = [];
  stream.on('response', (received) => (headers = received));
  stream.on('trailers', (received) => (trailers = received));
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(stream, 'end');
  const body = Buffer.concat(chunks);
  return {
    headers,
    trailers,
    status: trailers['grpc-status'] as string | undefined,
    refused: findTrailerError(new Headers(Object.entries(trailers) as [string, string][]))?.message,
    flag: body[0],
    message: body.subarray(5),
  };
}

/** Frames a message with its flag and length. */
function framed(message: Uint8Array, flag = 0): Buffer {
  const prefix = Buffer.from([flag, 0, 0, 0, 0]);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Counts the calls that were logged as abandoned by their caller. */
const leftCalls = () => server.logLines.filter((line) => line.includes('"status":499')).length;

const message = (card?: string) => requestBody('grpc', cardPayment(card));
const request = () => framed(message());
const read = <T>(schema: DescMessage, message: Buffer) => fromBinary(schema, message) as T;

describe('a gRPC call', () => {
  it.each(['application/grpc', 'application/grpc+proto', 'application/GRPC'])(
    'a gRPC call with the content type %s gets one message, and its status in trailers',
    async (contentType) => {
      const reply = await call(CREATE, request(), { 'content-type': contentType });
      expect([reply.headers[':status'], reply.headers['content-type'], reply.status, reply.flag]).toEqual([
        200,
        'application/grpc+proto',
        '0',
        0,
      ]);
      expect(read<Payment>(PaymentSchema, reply.message).merchantOrderId).toBe(
        cardPayment().merchant_order_id,
      );
    },
  );

  it('a gRPC message may be compressed with gzip', async () => {
    const reply = await call(CREATE, framed(gzipSync(message()), 1), { 'grpc-encoding': 'gzip' });
    expect(reply.status).toBe('0');
  });

  it('a gRPC message with the compressed flag but no encoding gets INTERNAL', async () => {
    const reply = await call(CREATE, framed(message(), 1));
    expect([reply.status, reply.refused]).toEqual([
      '13',
      expect.stringContaining('the message cannot be read'),
    ]);
  });

  it('a gRPC message in an unknown encoding gets UNIMPLEMENTED, and the error lists the known encodings', async () => {
    const reply = await call(CREATE, request(), { 'grpc-encoding': 'snappy' });
    expect([reply.status, reply.refused]).toEqual(['12', expect.stringContaining('gzip, br or identity')]);
  });

  it('a gRPC call past its deadline gets DEADLINE_EXCEEDED, and a retry with its key succeeds', async () => {
    const headers = headersOne();
    const slow = framed(message('4000000000007007'));
    const late = await call(CREATE, slow, { ...headers, 'grpc-timeout': '50m' });
    expect([late.status, late.refused]).toEqual(['4', expect.stringContaining('retry with the same key')]);
    await expect.poll(async () => (await call(CREATE, slow, headers)).status).toBe('0');
  });

  it.each(['5', 'soon', '99999999H'])(
    'a gRPC call with the timeout %s gets INVALID_ARGUMENT',
    async (timeout) => {
      expect((await call(CREATE, request(), { 'grpc-timeout': timeout })).status).toBe('3');
    },
  );

  it.each([
    ['no message', () => Buffer.alloc(0)],
    ['half a prefix', () => request().subarray(0, 3)],
    ['a message cut off', () => request().subarray(0, -1)],
    ['two messages', () => Buffer.concat([request(), request()])],
    ['a wrong length', () => Buffer.concat([Buffer.from([0, 255, 255, 255, 255]), request()])],
  ])('a gRPC body with %s gets INVALID_ARGUMENT', async (_name, body) => {
    const reply = await call(CREATE, body());
    expect([reply.status, reply.message.length]).toEqual(['3', 0]);
  });

  it('a gRPC body above the size limit is refused before all of it has arrived', async () => {
    const stream = session.request({
      ':method': 'POST',
      ':path': CREATE,
      ...{ 'content-type': 'application/grpc', te: 'trailers', ...headersOne() },
    });
    const reply = replyOf(stream);
    stream.write(Buffer.alloc(300 * 1024));
    expect((await reply).status).toBe('8');
    stream.close();
  });

  it('a gRPC call with invalid credentials is refused before its body arrives', async () => {
    const headers = { 'content-type': 'application/grpc', te: 'trailers', 'private-secret-key': 'no' };
    const stream = session.request({ ':method': 'POST', ':path': CREATE, ...headers });
    expect((await replyOf(stream)).status).toBe('16');
    stream.close();
  });

  it('a canceled gRPC call is logged with status 499, and a retry gets its payment', async () => {
    const headers = headersOne();
    const slow = framed(message('4000000000007007'));
    const all = { 'content-type': 'application/grpc', te: 'trailers', ...headers };
    const stream = session.request({ ':method': 'POST', ':path': CREATE, ...all });
    stream.end(slow);
    stream.on('error', () => {});
    await expect.poll(async () => (await call(CREATE, slow, headers)).status).not.toBe('0');
    const before = leftCalls();
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await expect.poll(leftCalls).toBe(before + 1);
    await expect.poll(async () => (await call(CREATE, slow, headers)).status).toBe('0');
  });
});

it('a gRPC call whose caller disconnects during the look-up of its keys leaves no deadline timer behind', async () => {
  const tables = await openTables(server.databaseUrl);
  const [begun, ended] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'clearTimeout')];
  await tables.query('BEGIN');
  await tables.query('LOCK TABLE public_key IN ACCESS EXCLUSIVE MODE');
  const keys = { 'public-api-key': 'pk_sandbox_two', 'private-secret-key': 'sk_sandbox_two' };
  const all = { 'content-type': 'application/grpc', te: 'trailers', ...keys, 'grpc-timeout': '10H' };
  const stream = session.request({ ':method': 'POST', ':path': CREATE, ...all });
  stream.on('error', () => {});
  stream.end(request());
  await expect.poll(() => tables.query(WAITING)).toHaveLength(1);
  const before = leftCalls();
  stream.close(http2.constants.NGHTTP2_CANCEL);
  await expect.poll(leftCalls).toBe(before + 1);
  await tables.query('COMMIT');
  const deadline = begun.mock.calls.findIndex(([, ms]) => ms === 10 * 3_600_000);
  const timer = begun.mock.results[deadline]?.value;
  expect(timer).toBeDefined();
  await expect.poll(() => ended.mock.calls.some(([one]) => one === timer)).toBe(true);
  vi.restoreAllMocks();
  await tables.close();
});

it('a gRPC call that fails after its deadline is logged', async () => {
  const tables = await openTables(server.databaseUrl);
  const failures = () => server.logLines.filter((line) => line.includes('an rpc failed')).length;
  const before = failures();
  await tables.query('BEGIN');
  await tables.query('LOCK TABLE customer IN ACCESS EXCLUSIVE MODE');
  const customer = toBinary(GetCustomerRequestSchema, create(GetCustomerRequestSchema, { id: CUSTOMER }));
  const begun = vi.spyOn(globalThis, 'setTimeout');
  const reply = call('/payments.v1.CustomerService/GetCustomer', framed(customer), { 'grpc-timeout': '10H' });
  await expect.poll(() => tables.query(WAITING)).toHaveLength(1);
  // Now the deadline passes.
  begun.mock.calls.find(([, ms]) => ms === 10 * 3_600_000)?.[0]();
  vi.restoreAllMocks();
  expect((await reply).status).toBe('4');
  await tables.query(`SELECT pg_terminate_backend(pid) FROM (${WAITING}) AS waiting`);
  await expect.poll(failures).toBe(before + 1);
  await tables.query('COMMIT');
  await tables.close();
});

describe('a gRPC response', () => {
  it('the trailers of a refusal with many fields stay below 8 KB, the limit of some clients', async () => {
    const leg = { departure_airport_country: 'br', arrival_airport_country: 'mx' };
    const legs = withField(cardPayment(), 'additional_data.airline', { legs: Array(40).fill(leg) });
    const reply = await call(CREATE, framed(requestBody('grpc', legs)));
    expect(reply.status).toBe('3');
    const sizes = Object.entries(reply.trailers).map(([name, value]) => name.length + `${value}`.length + 32);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(8 * 1_024);
  });

  it('a long gRPC response is compressed if the client accepts it, but a single record is not', async () => {
    const takesGzip = { 'grpc-accept-encoding': 'identity,deflate,gzip' };
    const record = await call(CREATE, request(), takesGzip);
    expect([record.flag, record.headers['grpc-encoding']]).toEqual([0, undefined]);

    for (let i = 0; i < 15; i++) await call(CREATE, request());
    const list = await call(LIST, Buffer.from([0, 0, 0, 0, 0]), takesGzip);
    expect([list.flag, list.headers['grpc-encoding']]).toEqual([1, 'gzip']);
    const { payments } = read<ListPaymentsResponse>(ListPaymentsResponseSchema, gunzipSync(list.message));
    expect(payments.length).toBeGreaterThan(15);
  });

  it('a gRPC call in JSON returns the same payment as one in binary', async () => {
    const clients = apiClients(server.url);
    const headers = headersOne();
    const made = await clients.create('grpc', cardPayment(), headers);
    const json = Buffer.from(JSON.stringify(cardPayment()));
    const reply = await call(CREATE, framed(json), {
      ...headers,
      'content-type': 'application/grpc+json',
    });
    clients.close();
    expect(reply.status).toBe('0');
    expect(JSON.parse(reply.message.toString()).id).toBe(JSON.parse(made.record).id);
  });
});
