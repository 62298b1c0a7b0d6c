import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { create } from '@bufbuild/protobuf';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
  ListPaymentsResponseSchema,
  PaymentService,
  SearchPaymentsResponseSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { BODY_LIMIT_BYTES } from '#src/api/body-limit.ts';
import { toServiceError } from '#src/api/errors.ts';
import { restRoutes } from '#src/api/rest.ts';
import { REASONS, ServiceError } from '#src/service-error.ts';

const renderError: Parameters<FastifyInstance['setErrorHandler']>[0] = (error, _request, reply) => {
  const { reason, message, fields } = toServiceError(error);
  return reply.code(REASONS[reason].status).send({ code: reason, message, fields });
};

describe('REST routes', () => {
  let app: FastifyInstance;
  let url: string;
  let port: number;
  const seen: CreatePaymentRequest[] = [];

  beforeAll(async () => {
    app = Fastify();
    app.setErrorHandler(renderError);
    app.register(
      restRoutes<typeof PaymentService, { key: unknown }>({
        service: PaymentService,
        openCall: async (request) => {
          const key = request.headers['public-api-key'];
          if (key === 'unknown') throw new ServiceError('INVALID_CREDENTIALS', 'No.');
          return { key };
        },
        handlers: {
          createPayment: async (message, call) => {
            seen.push(message);
            const payment = create(PaymentSchema, { id: 'p1', description: String(call.key) });
            const json = message.description === 'replay' ? Buffer.from('{"stored":1.10}') : undefined;
            return {
              message: payment,
              headers: { 'Idempotent-Replayed': 'true' },
              ...(json ? { json } : { created: '/v1/payments/p1' }),
            };
          },
          getPayment: async ({ id }) => ({ message: create(PaymentSchema, { id }) }),
          listPayments: async () => ({ message: create(ListPaymentsResponseSchema) }),
          searchPayments: async () => ({ message: create(SearchPaymentsResponseSchema) }),
          capturePayment: async ({ paymentId }) => ({ message: create(PaymentSchema, { id: paymentId }) }),
          cancelPayment: async ({ paymentId }) => ({ message: create(PaymentSchema, { id: paymentId }) }),
          refundPayment: async ({ paymentId }) => ({ message: create(PaymentSchema, { id: paymentId }) }),
          cancelOrRefundPayment: async ({ paymentId }) => ({
            message: create(PaymentSchema, { id: paymentId }),
          }),
        },
      }),
    );
    url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/v1/payments`;
    port = Number(new URL(url).port);
  });
  afterAll(() => app.close());

  const JSON_HEADERS = { 'content-type': 'application/json' };
  const post = async (
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = JSON_HEADERS,
  ) => {
    const response = await fetch(url, { method: 'POST', body, headers });
    const text = await response.text();
    return { response, text, json: JSON.parse(text) as Record<string, unknown> };
  };
  const refusal = async (body: string | Uint8Array<ArrayBuffer>, headers?: Record<string, string>) => {
    const { response, json } = await post(body, headers);
    return `${response.status} ${json.code}`;
  };

  it('a created object gets 201, a Location header and JSON with its content length', async () => {
    const { response, text, json } = await post('{"account_id":"a"}', {
      ...JSON_HEADERS,
      'public-api-key': 'pk',
    });
    expect(response.status).toBe(201);
    expect(response.headers.get('location')).toBe('/v1/payments/p1');
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
    expect(response.headers.get('idempotent-replayed')).toBe('true');
    expect(json).toMatchObject({ id: 'p1', description: 'pk', additional_data: null });
    expect(seen.at(-1)?.accountId).toBe('a');
  });

  it('a stored body is sent unchanged', async () => {
    const { response, text } = await post('{"description":"replay"}');
    expect([response.status, text]).toEqual([200, '{"stored":1.10}']);
  });

  it('a refusal lists the invalid fields, beginning with those that cannot be read', async () => {
    const { response, json } = await post('{"payment_method":{"detail":{"card":{"installments":"4111"}}}}');
    expect(response.status).toBe(400);
    const missing = ['account_id', 'merchant_order_id', 'country', 'amount', 'payment_method.type'];
    expect(json.fields).toEqual([
      {
        field: 'payment_method.detail.card.installments',
        code: 'INVALID_TYPE',
        message: 'must be an integer',
      },
      ...missing.map((field) => ({ field, code: 'REQUIRED', message: 'is required' })),
    ]);
  });

  it('invalid credentials are refused before the body is read', async () => {
    // The body never arrives, but the response does.
    const head = 'POST /v1/payments HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n';
    const answer = await exchange(`${head}public-api-key: unknown\r\ncontent-length: 1000\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
  });

  it.each([
    ['application/json; charset=utf-8', 201],
    ['Application/JSON;Charset="UTF-8"', 201],
    ['application/json; v=1', 201],
    ['application/json; charset=latin1', 415],
    ['application/json;   charset=utf-16', 415],
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/jsonx', 415],
    ['nonsense', 415],
  ])('a request of content type %s gets %d', async (contentType, status) => {
    expect((await post('{}', { 'content-type': contentType })).response.status).toBe(status);
  });

  it('a body without a content type gets 415', async () => {
    expect(await refusal(new Uint8Array([0x7b, 0x7d]), {})).toBe('415 UNSUPPORTED_MEDIA_TYPE');
  });

  it.each([{}, JSON_HEADERS])(
    'a call with the headers %j and no body is read as an empty message',
    async (headers) => {
      expect((await fetch(url, { method: 'POST', headers })).status).toBe(201);
      expect(seen.at(-1)).toEqual(create(CreatePaymentRequestSchema));
    },
  );

  it.each(['[]', 'null', '"x"', '{"a":', '{"a":1}}', '{"a":NaN}', '\ufeff{}', "{'a':1}"])(
    'the body %j gets 400',
    async (body) => {
      expect(await refusal(body)).toBe('400 INVALID_REQUEST');
    },
  );

  it('a body at the size limit is accepted, and a body one byte larger gets 413', async () => {
    const frame = '{"x":""}';
    const body = (size: number) => `{"x":"${'y'.repeat(size - frame.length)}"}`;
    expect((await post(body(BODY_LIMIT_BYTES))).response.status).toBe(201);
    expect(await refusal(body(BODY_LIMIT_BYTES + 1))).toBe('413 REQUEST_TOO_LARGE');
  });

  it('a chunked body is refused as soon as it exceeds the limit', async () => {
    const head = 'POST /v1/payments HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n';
    const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`;
    // Without a last chunk, so that the body never ends.
    const answer = await exchange(`${head}transfer-encoding: chunked\r\n\r\n${chunk.repeat(5)}`);
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    expect(answer).toContain('REQUEST_TOO_LARGE');
  });

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ])('a body compressed with %s is read', async (encoding, compress) => {
    await post(compress('{"account_id":"squeezed"}') as Uint8Array<ArrayBuffer>, {
      ...JSON_HEADERS,
      'content-encoding': encoding,
    });
    expect(seen.at(-1)?.accountId).toBe('squeezed');
  });

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ])(
    'the size limit of a body compressed with %s applies to its expanded size',
    async (encoding, compress) => {
      const headers = { ...JSON_HEADERS, 'content-encoding': encoding };
      const frame = '{"x":""}';
      const noise = randomBytes(BODY_LIMIT_BYTES).toString('hex');
      const body = (size: number) => compress(`{"x":"${noise.slice(0, size - frame.length)}"}`);
      expect((await post(body(BODY_LIMIT_BYTES), headers)).response.status).toBe(201);
      expect(await refusal(body(BODY_LIMIT_BYTES + 1), headers)).toBe('413 REQUEST_TOO_LARGE');
      expect(await refusal(compress(Buffer.alloc(50 * 1024 * 1024)), headers)).toBe('413 REQUEST_TOO_LARGE');
    },
  );

  it('a corrupt body gets 400, and an unknown encoding gets 415', async () => {
    const corrupt = gzipSync('{"account_id":"a"}').subarray(0, 20) as Uint8Array<ArrayBuffer>;
    expect(await refusal(corrupt, { ...JSON_HEADERS, 'content-encoding': 'gzip' })).toBe(
      '400 INVALID_REQUEST',
    );
    const deflated = deflateSync('{}') as Uint8Array<ArrayBuffer>;
    expect(await refusal(deflated, { ...JSON_HEADERS, 'content-encoding': 'deflate' })).toBe(
      '415 UNSUPPORTED_MEDIA_TYPE',
    );
  });

  /** Sends bytes. @returns the first bytes received. */
  function exchange(request: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket: Socket = connect(port, '127.0.0.1', () => socket.write(request));
      socket.setTimeout(5000, () => socket.destroy(new Error('no answer')));
      socket.on('error', reject);
      socket.once('data', (data) => {
        socket.destroy();
        resolve(data.toString());
      });
    });
  }
});
