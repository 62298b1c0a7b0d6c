import type { JsonValue } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { errorFromJson } from '@connectrpc/connect/protocol-connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { describe, expect, it } from 'vitest';
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '#gen/google/rpc/error_details_pb.js';
import { describeError } from '#src/api/describe-error.ts';
import {
  grpcTrailers,
  rewriteConnectError,
  toConnectError,
  toProblem,
  toServiceError,
} from '#src/api/errors.ts';
import { REASONS, type Reason, ServiceError } from '#src/service-error.ts';
import { ConnectionLostError, DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { PROTOCOLS, RPC_PROTOCOLS, requestBody } from '../support/api-clients.ts';
import { clients, onService, server, tables } from '../support/on-service.ts';
import { cardPayment, headersOne, withField } from '../support/payment-requests.ts';

const CARD = '4012888888881881';
const fields = [{ field: 'amount.value', code: 'OUT_OF_RANGE', message: 'must be above zero' }] as const;

/** The table of errors in the contract. */
const TABLE: Record<Reason, [status: number, rpc: keyof typeof Code]> = {
  INVALID_PARAMETERS: [400, 'InvalidArgument'],
  INVALID_REQUEST: [400, 'InvalidArgument'],
  IDEMPOTENCY_KEY_MISSING: [400, 'InvalidArgument'],
  PAYMENT_METHOD_NOT_AVAILABLE: [400, 'InvalidArgument'],
  CUSTOMER_NOT_FOUND: [400, 'InvalidArgument'],
  CUSTOMER_ID_DUPLICATED: [400, 'AlreadyExists'],
  CHECKOUT_SESSION_NOT_FOUND: [400, 'InvalidArgument'],
  TOKEN_NOT_FOUND: [400, 'InvalidArgument'],
  ORIGIN_NOT_ALLOWED: [403, 'PermissionDenied'],
  INVALID_CUSTOMER_FOR_TOKEN: [400, 'InvalidArgument'],
  INCORRECT_PAYMENT_METHOD_TYPE: [400, 'InvalidArgument'],
  VAULTED_TOKEN_NOT_FOUND: [400, 'InvalidArgument'],
  NOT_SUPPORTED: [400, 'InvalidArgument'],
  INVALID_AMOUNT: [400, 'FailedPrecondition'],
  CURRENCY_NOT_ALLOWED: [400, 'InvalidArgument'],
  INVALID_STATUS: [400, 'FailedPrecondition'],
  OPERATION_NOT_SUPPORTED: [400, 'FailedPrecondition'],
  INVALID_CREDENTIALS: [401, 'Unauthenticated'],
  AUTHORIZATION_REQUIRED: [403, 'PermissionDenied'],
  PAYMENT_NOT_FOUND: [404, 'NotFound'],
  TRANSACTION_NOT_FOUND: [404, 'NotFound'],
  DISPUTE_NOT_FOUND: [404, 'NotFound'],
  WEBHOOK_NOT_FOUND: [404, 'NotFound'],
  DELIVERY_NOT_FOUND: [404, 'NotFound'],
  NOT_FOUND: [404, 'Unimplemented'],
  METHOD_NOT_ALLOWED: [405, 'Unimplemented'],
  OPERATION_IN_PROGRESS: [409, 'Aborted'],
  OPERATION_LIMIT_REACHED: [409, 'FailedPrecondition'],
  REQUEST_IN_PROGRESS: [409, 'Aborted'],
  STORED_METHOD_LIMIT_REACHED: [409, 'FailedPrecondition'],
  WEBHOOK_LIMIT_REACHED: [409, 'FailedPrecondition'],
  WEBHOOK_OFF: [409, 'FailedPrecondition'],
  CATALOGUE_INVALID: [400, 'InvalidArgument'],
  SECRET_MISSING: [400, 'FailedPrecondition'],
  VERSION_CHANGED: [409, 'Aborted'],
  CONFIGURED_BY_FILE: [409, 'FailedPrecondition'],
  CREDENTIALS_REFUSED: [409, 'FailedPrecondition'],
  CONNECTION_REPOINTED: [409, 'FailedPrecondition'],
  CONNECTION_IN_USE: [409, 'FailedPrecondition'],
  REQUEST_TOO_LARGE: [413, 'ResourceExhausted'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'InvalidArgument'],
  IDEMPOTENCY_KEY_REUSED: [422, 'FailedPrecondition'],
  RATE_LIMITED: [429, 'ResourceExhausted'],
  SERVICE_UNAVAILABLE: [503, 'Unavailable'],
  INTERNAL_ERROR: [500, 'Internal'],
};

describe('error reasons', () => {
  it.each(Object.entries(TABLE))(
    'the error reason %s has the HTTP status and the rpc code %j',
    (reason, [status, rpc]) => {
      const error = new ServiceError(reason as Reason, 'text', { fields, retryAfterS: 3 });
      const problem = toProblem(error, 'r1');
      expect(problem).toMatchObject({
        type: 'about:blank',
        status,
        code: reason,
        detail: 'text',
        request_id: 'r1',
      });
      expect(problem.title).not.toBe('');
      expect([problem.errors, problem.messages]).toEqual([fields, ['amount.value: must be above zero']]);

      const rendered = toConnectError(error);
      expect([Code[rendered.code], rendered.rawMessage]).toEqual([rpc, 'text']);
      expect(rendered.details.map((detail) => ('desc' in detail ? [detail.desc, detail.value] : []))).toEqual(
        [
          [ErrorInfoSchema, { reason, domain: 'payments.v1' }],
          [
            BadRequestSchema,
            {
              fieldViolations: [
                { field: 'amount.value', reason: 'OUT_OF_RANGE', description: 'must be above zero' },
              ],
            },
          ],
          [RetryInfoSchema, { retryDelay: { seconds: 3n } }],
        ],
      );
    },
  );

  it("every error reason is in the contract's table", () => {
    expect(Object.keys(REASONS).sort()).toEqual(Object.keys(TABLE).sort());
  });
});

it('the grpc-message trailer escapes only percent signs and characters outside printable ASCII', () => {
  const printable = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i))
    .join('')
    .trim();
  const { 'grpc-message': sent } = grpcTrailers(new ConnectError(`${printable}é€😀\n\x7f`, Code.Internal));
  expect(sent).toBe(`${printable.replace('%', '%25')}%C3%A9%E2%82%AC%F0%9F%98%80%0A%7F`);
});

describe('unexpected errors', () => {
  it('an unexpected error becomes INTERNAL_ERROR without its message', () => {
    for (const thrown of [new Error(CARD), CARD, undefined, null, { code: CARD }]) {
      const error = toServiceError(thrown);
      expect(error.reason).toBe('INTERNAL_ERROR');
      expect(JSON.stringify([toProblem(error, ''), toConnectError(error).message])).not.toContain(CARD);
    }
  });

  it('an unavailable database is reported as such, unlike a caller who breaks the connection', () => {
    const broken = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    for (const error of [new DatabaseUnavailableError(broken), new ConnectionLostError(broken)]) {
      expect(toServiceError(error)).toMatchObject({
        ...{ reason: 'SERVICE_UNAVAILABLE', retryAfterS: 1, cause: error },
        message: 'the database is unavailable; nothing was sent; retry later',
      });
    }
    expect(toServiceError(broken).reason).toBe('INVALID_REQUEST');
  });

  it('an unexpected error is logged with its name, code, cause and stack, but without its message', () => {
    const error = new TypeError(`cannot read ${CARD}\n    of ${CARD}`, {
      cause: new Error(`due to ${CARD}`),
    });
    const described = describeError(Object.assign(error, { code: 'E_BAD' }));
    expect(described).toMatchObject({ name: 'TypeError', code: 'E_BAD', cause: { name: 'Error' } });
    expect((described.stack as string[])[0]).toMatch(/^at .*errors\.test\.ts/);
    expect(JSON.stringify(described)).not.toContain(CARD);
    expect(describeError(CARD)).toEqual({ name: 'string' });
  });

  it('an error from Connect is stripped of its message and is given our details only once', () => {
    const error = new ConnectError(`cannot decode ${CARD}`, Code.InvalidArgument, undefined, undefined, CARD);
    rewriteConnectError(error);
    rewriteConnectError(error);
    expect([Code[error.code], error.details.length]).toEqual(['InvalidArgument', 1]);
    expect(
      JSON.stringify([error.message, error.rawMessage, error.cause, error.stack?.slice(0, 0)]),
    ).not.toContain(CARD);
  });
});

describe('errors over the wire', () => {
  onService();

  async function problemOf(path: string, init: RequestInit = {}) {
    const response = await fetch(server.url + path, init);
    const problem = (await response.json()) as Record<string, unknown>;
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    expect(Object.keys(problem).sort()).toEqual(
      ['code', 'detail', 'errors', 'messages', 'request_id', 'status', 'title', 'type'].sort(),
    );
    expect(problem.status).toBe(response.status);
    expect(problem.request_id).toBe(response.headers.get('x-request-id'));
    expect(JSON.stringify(problem)).not.toContain(CARD);
    return { ...problem, headers: response.headers };
  }

  it('a REST error is problem+json with every member, and its request id is in the log', async () => {
    const body = JSON.stringify(withField(cardPayment(), 'amount.value', 0));
    const headers = { ...headersOne(), 'content-type': 'application/json' };
    const problem = await problemOf('/v1/payments', { method: 'POST', headers, body });
    expect(problem).toMatchObject({
      type: 'about:blank',
      title: 'Invalid parameters',
      status: 400,
      detail: 'amount.value: must be above zero',
      code: 'INVALID_PARAMETERS',
      messages: ['amount.value: must be above zero'],
      errors: fields,
    });
    const { request_id } = problem as unknown as { request_id: string };
    await expect.poll(() => server.logLines.some((line) => line.includes(request_id))).toBe(true);
  });

  it.each(RPC_PROTOCOLS)(
    'an error over %s has its code and the details ErrorInfo and BadRequest',
    async (protocol) => {
      const reply = await clients.create(protocol, withField(cardPayment(), 'amount.value', 0), headersOne());
      expect(reply).toMatchObject({ code: 'InvalidArgument', reason: 'INVALID_PARAMETERS', fields });
      expect(reply.raw).toContain('payments.v1');
      expect(reply.headers.get('x-request-id')).toMatch(/^[0-9a-f]{24}$/);
    },
  );

  it.each(PROTOCOLS)(
    'an error over %s lists at most 20 invalid fields, which gRPC libraries can receive',
    async (protocol) => {
      const items = Array.from({ length: 200 }, () => ({
        unit_amount: '0.000000000000000000001',
        quantity: -1,
      }));
      const request = withField(cardPayment(), 'additional_data.order.items', items);
      const reply = await clients.create(protocol, request, headersOne());
      expect([reply.reason, reply.fields.length]).toEqual(['INVALID_PARAMETERS', 20]);
      // The default limit of gRPC C-core is 16 KiB of metadata; half of that is safe.
      if (protocol === 'grpc') expect([...reply.headers].join().length).toBeLessThan(8 * 1024);
    },
  );

  it.each([
    ['/nowhere', {}, 404, 'NOT_FOUND'],
    ['/v2/payments', { method: 'POST', body: '{}' }, 404, 'NOT_FOUND'],
    ['/v1/payments/a/b', { method: 'POST', body: '{}' }, 404, 'NOT_FOUND'],
    ['/v1/%zz4012888888881881', {}, 400, 'INVALID_REQUEST'],
    ['/payments.v1.PaymentService/Nothing', { method: 'POST', body: '{}' }, 404, 'NOT_FOUND'],
    ['/v1/payments', { method: 'PUT', body: '{}' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/v1/payments', { method: 'DELETE' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/v1/payments/p1/refund', { method: 'GET' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/v1/payments/p1/return', { method: 'POST' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/v1/enrollments/e1/return?a=1', { method: 'DELETE' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/v1/providers/sandbox-one/notifications', { method: 'GET' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/healthz', { method: 'POST', body: '{}' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/readyz/', { method: 'PUT' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/metrics', { method: 'POST' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/openapi.json', { method: 'PUT' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/', { method: 'OPTIONS' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/checkout/s1', { method: 'POST' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/dashboard/sign-in', { method: 'PATCH' }, 405, 'METHOD_NOT_ALLOWED'],
    ['/v1/payments', { method: 'POST', body: 'a=1' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['/v1/payments', { method: 'POST' }, 400, 'INVALID_PARAMETERS'],
    [
      '/v1/payments',
      { method: 'POST', body: new Blob(['{}'], { type: 'application/grpc' }) },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
  ] satisfies [string, RequestInit, number, string][])(
    'a request to %s with %j gets a problem with the status %i and the code %s',
    async (path, init, status, code) => {
      const problem = await problemOf(path, { ...init, headers: headersOne() });
      expect(problem).toMatchObject({ status, code });
      if (status === 405)
        expect(problem.headers.get('allow')).toMatch(/^(POST|(POST, )?GET, HEAD|GET, POST, HEAD)$/);
    },
  );

  it.each(['application/grpc', 'application/grpc-web+proto'])(
    'a call of an unknown rpc with the content type %s gets UNIMPLEMENTED',
    async (contentType) => {
      const headers = { ...headersOne(), 'content-type': contentType };
      const response = await fetch(`${server.url}/payments.v1.PaymentService/Nothing`, {
        method: 'POST',
        headers,
      });
      expect([response.status, response.headers.get('grpc-status')]).toEqual([200, '12']);
      const error = findTrailerError(response.headers);
      expect(error?.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: 'NOT_FOUND' }]);
    },
  );

  it.each([
    ['application/json', { 'connect-protocol-version': '1' }],
    ['application/proto', {}],
    ['application/connect+json', {}],
  ])('a Connect call of an unknown rpc gets UNIMPLEMENTED: %s %j', async (contentType, more) => {
    const headers = { 'content-type': contentType, ...more };
    const path = '/payments.v1.PaymentService/Nothing';
    const response = await fetch(server.url + path, { method: 'POST', headers });
    expect([response.status, response.headers.get('content-type')]).toEqual([404, 'application/json']);
    const none = new ConnectError('no Connect error', Code.Unknown);
    const error = errorFromJson((await response.json()) as JsonValue, undefined, none);
    expect([error.code, error.rawMessage]).toEqual([Code.Unimplemented, 'there is no such rpc']);
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: 'NOT_FOUND' }]);
  });

  it.each(RPC_PROTOCOLS)(
    'a truncated message is refused over %s, and the response contains none of it',
    async (protocol) => {
      const whole = requestBody(protocol, cardPayment());
      const reply = await clients.send(protocol, whole.subarray(0, whole.length - 1), headersOne());
      expect(reply).toMatchObject({ code: 'InvalidArgument', reason: 'INVALID_REQUEST' });
      expect(reply.raw).not.toMatch(/4012888888881881|WHITFIELD|parse binary|JSON\.parse|Unexpected/);
    },
  );

  it('an internal failure gets a 500 without details over every protocol, and its SQLSTATE is in the log', async () => {
    await tables.query('ALTER TABLE payment RENAME COLUMN record TO renamed');
    try {
      for (const protocol of PROTOCOLS) {
        const reply = await clients.create(protocol, cardPayment(), headersOne());
        expect(reply.reason).toBe('INTERNAL_ERROR');
        expect(protocol === 'rest' ? reply.status : reply.code).toBe(protocol === 'rest' ? 500 : 'Internal');
        expect(reply.raw).not.toMatch(/column|record|relation|renamed|SELECT|INSERT|4012888888881881/i);
      }
      expect(server.logLines.join('')).toMatch(/"code":"42703"/);
      expect(server.logLines.join('')).not.toContain('does not exist');
    } finally {
      await tables.query('ALTER TABLE payment RENAME COLUMN renamed TO record');
    }
    expect((await clients.create('rest', cardPayment(), headersOne())).status).toBe(201);
  });
});
