import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { requestBody } from './api-clients.ts';
import { hostileBinary, mutate } from './hostile-bytes.ts';
import { PLANTED } from './hostile-requests.ts';
import { cardPayment, VAULTED_CARD } from './payment-requests.ts';

/** A call as sent on the wire, before framing. */
export type WireCall = {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
  /** The way in which HTTP/1.1 marks the end of the body. */
  readonly framing: 'length' | 'short' | 'long' | 'chunked' | 'both' | 'none';
};

const RPC = '/payments.v1.PaymentService/CreatePayment';
const GET_RPC = '/payments.v1.PaymentService/GetPayment';
const JSON_BODY = requestBody('rest', cardPayment(PLANTED.cardNumber));
const PROTO_BODY = requestBody('grpc', cardPayment(PLANTED.cardNumber));

function enveloped(flags: number, length: number, message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flags);
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

/** A path with its media type and body. */
const FORMS: readonly { path: string; type: string; body: Uint8Array }[] = [
  { path: '/v1/payments', type: 'application/json', body: JSON_BODY },
  { path: RPC, type: 'application/json', body: JSON_BODY },
  { path: RPC, type: 'application/proto', body: PROTO_BODY },
  { path: RPC, type: 'application/grpc+proto', body: enveloped(0, PROTO_BODY.length, PROTO_BODY) },
  { path: RPC, type: 'application/grpc-web+proto', body: enveloped(0, PROTO_BODY.length, PROTO_BODY) },
];

const keyHeaders = (): [string, string][] => [
  ['public-api-key', 'pk_sandbox_one'],
  ['private-secret-key', 'sk_sandbox_one'],
  ['x-idempotency-key', randomUUID()],
];

/** A completely valid call. */
export const plainCall: fc.Arbitrary<WireCall> = fc.constantFrom(...FORMS).map(({ path, type, body }) => ({
  method: 'POST',
  path,
  headers: [['host', 'localhost'], ['content-type', type], ...keyHeaders()],
  body,
  framing: 'length',
}));

const method = fc.constantFrom(
  'POST',
  'POST',
  'POST',
  'GET',
  'HEAD',
  'PUT',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'PATCH',
  'PROPFIND',
  'QUERY',
  'post',
  'P\0ST',
  '',
);

const segment = fc.oneof(
  fc.string({ unit: 'binary-ascii', maxLength: 40 }).map(encodeURIComponent),
  fc.constantFrom(
    '%',
    '%zz',
    '%00',
    '%2e%2e%2f',
    '..',
    '%ff%fe',
    '%u0000',
    'a'.repeat(5_000),
    VAULTED_CARD,
    `${VAULTED_CARD}%0a`,
    '%c0%af',
    '{id}',
    '*',
    ':id',
    '__proto__',
    '%e2%80%ae',
  ),
);

const hostilePath = fc.oneof(
  fc.constantFrom(
    '/',
    '',
    '*',
    '//',
    '/..;/',
    '//evil.example/v1/payments',
    `http://evil.example${RPC}`,
    'http://',
    'evil.example:443',
    '/metrics/../v1/payments',
    '/v1/payments/',
    '/V1/payments',
    `${RPC}/`,
    `/${RPC}`,
    `${RPC}#x`,
    '/v1\\payments',
    '/sandbox/checkout/wo_1',
    '/sandbox/v1/charges',
    '/grpc.health.v1.Health/Check',
    '/grpc.health.v1.Health/Watch',
    '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
    '/healthz',
    '/metrics',
    '/readyz',
  ),
  segment.map((text) => `/v1/payments/${text}`),
  segment.map((text) => `/sandbox/checkout/${text}`),
  segment.map((text) => `/sandbox/v1/by-idempotency-key/${text}`),
  segment.map((text) => `/${text}`),
  segment.map((text) => `/v1/payments?id=${text}&id=${text}&__proto__[a]=1&constructor=2`),
  segment.map((text) => `${GET_RPC}?connect=v1&encoding=json&base64=1&message=${text}`),
  segment.map((text) => `${GET_RPC}?encoding=proto&compression=gzip&message=${text}`),
  segment.map((text) => `${RPC}?${text}`),
);

const headerValue = fc.oneof(
  fc.string({ unit: 'binary-ascii', maxLength: 60 }),
  fc.constantFrom(
    '',
    ' ',
    '\0',
    'a\0b',
    'a\rb',
    'a\nb: c',
    '\x7f',
    '\xff\xfe',
    '\u00e9',
    'x'.repeat(256),
    'x'.repeat(8_192),
    'x'.repeat(15_000),
    '-1',
    '1e9',
    '99999999999999999999',
    'gzip',
    'br, gzip',
    'deflate',
    'identity;q=0',
    'chunked',
    'application/json; charset=utf-16',
    'application/json; charset="',
    'application/grpc+json',
    'application/grpc+evil',
    'application/connect+proto',
    'application/grpc-web-text',
    'multipart/form-data; boundary=',
    '*/*',
    '\t',
    'null',
    '[object Object]',
    '100-continue',
    'bogus',
    '1n',
    '100000000H',
    '9'.repeat(12),
    'h2c',
    'websocket',
    'trailers',
    '00-00000000000000000000000000000000-0000000000000000-00',
  ),
);

const headerName = fc.constantFrom(
  'x-idempotency-key',
  'x-idempotency-key',
  'public-api-key',
  'private-secret-key',
  'content-type',
  'content-type',
  'content-encoding',
  'grpc-encoding',
  'grpc-accept-encoding',
  'accept-encoding',
  'connect-protocol-version',
  'connect-timeout-ms',
  'grpc-timeout',
  'connect-content-encoding',
  'content-length',
  'transfer-encoding',
  'expect',
  'host',
  'te',
  'upgrade',
  'connection',
  'traceparent',
  'x-forwarded-for',
  'origin',
  'cookie',
  'accept',
  'trailer',
  ':path',
  ':authority',
  'x y',
  '',
  '__proto__',
  'constructor',
  'x-bin',
  'grpc-status',
  'range',
  'if-match',
);

const secretHeaders: [string, string][] = [['private-secret-key', PLANTED.secretKey]];

/** A call in which anything may be wrong: the method, the path, headers, the body and its end. */
export const hostileCall: fc.Arbitrary<WireCall> = fc
  .record({
    form: fc.constantFrom(...FORMS),
    method: fc.oneof({ weight: 3, arbitrary: fc.constant('POST') }, { weight: 1, arbitrary: method }),
    path: fc.option(hostilePath, { freq: 2 }),
    headers: fc.array(fc.tuple(headerName, headerValue), { maxLength: 4 }),
    many: fc.constantFrom(0, 0, 0, 0, 0, 90, 110, 3_000),
    body: fc.oneof(
      fc.constant(undefined),
      fc.constant(undefined),
      mutate,
      fc.oneof(hostileBinary, fc.constant(Buffer.alloc(400_000, '['))).map((bytes) => () => bytes),
      fc
        .tuple(
          fc.integer({ min: 0, max: 255 }),
          fc.constantFrom(0, 1, 0x7fffffff, 0x80000000, 0xffffffff),
          hostileBinary,
        )
        .map(
          ([flags, length, bytes]) =>
            () =>
              enveloped(flags, length, bytes),
        ),
    ),
    framing: fc.constantFrom<WireCall['framing'][]>(
      'length',
      'length',
      'length',
      'short',
      'long',
      'chunked',
      'both',
      'none',
    ),
    credentials: fc.constantFrom('right', 'right', 'planted'),
  })
  .map(({ form, method, path, headers, many, body, framing, credentials }) => ({
    method,
    path: path ?? form.path,
    headers: [
      ['host', 'localhost'],
      ['content-type', form.type],
      ...(credentials === 'right'
        ? keyHeaders()
        : [...keyHeaders().filter(([name]) => name !== 'private-secret-key'), ...secretHeaders]),
      ...headers,
      ...Array.from({ length: many }, (_, i): [string, string] => [`x-${i}`, 'y']),
    ],
    body: body ? body(form.body) : form.body,
    framing,
  }));
