import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { PROTOCOLS, type Protocol, type Reply, RPC_PROTOCOLS, requestBody } from '../support/api-clients.ts';
import { clients, onService, server, tables } from '../support/on-service.ts';
import { cardPayment, headersOne, withField } from '../support/payment-requests.ts';
import type { Counts } from '../support/tables.ts';

const LIMIT = 256 * 1024;
const MEBIBYTE = 1024 * 1024;
const JSON_PROTOCOLS = ['rest', 'connectJson'] as const;
const BINARY_PROTOCOLS = ['connectProto', 'grpc', 'grpcWeb'] as const;
const FINGERPRINTS = 'customer_payer.device_fingerprints';

let before: Counts;

onService();

beforeEach(async () => {
  before = await tables.counts();
  vi.spyOn(console, 'error');
});

afterEach(() => {
  // Connect logs some failures there, with the text that it could not read.
  expect(console.error).not.toHaveBeenCalled();
  vi.restoreAllMocks();
});

const STATUS = { INVALID_REQUEST: 400, INVALID_PARAMETERS: 400, REQUEST_TOO_LARGE: 413 } as const;

/** Expects a refusal in the protocol's form, with nothing stored and the service still ready. */
async function expectRefused(protocol: Protocol, reply: Reply, reason: keyof typeof STATUS): Promise<void> {
  expect({ protocol, reason: reply.reason, record: reply.record }).toEqual({ protocol, reason, record: '' });
  if (protocol === 'rest') expect(reply.status).toBe(STATUS[reason]);
  else expect(reply.code).toBe(reason === 'REQUEST_TOO_LARGE' ? 'ResourceExhausted' : 'InvalidArgument');
  expect(reply.raw).not.toContain('4012888888881881');
  expect(await tables.counts()).toEqual(before);
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
}

async function expectAccepted(protocol: Protocol, reply: Reply): Promise<void> {
  expect({ protocol, reason: reply.reason, fields: reply.fields }).toEqual({
    protocol,
    reason: undefined,
    fields: [],
  });
  expect(JSON.parse(reply.record).status).toBe('SUCCEEDED');
}

/** Returns a request of exactly `size` bytes: JSON is padded with spaces, a message with an unknown field. */
function padded(protocol: Protocol, size: number): Uint8Array {
  const body = requestBody(protocol, cardPayment());
  if (protocol === 'rest' || protocol === 'connectJson') {
    return Buffer.concat([body, Buffer.alloc(size - body.length, ' ')]);
  }
  // The tag of field 1999 with wire type LEN, followed by a length encoded in three bytes.
  const fill = size - body.length - 5;
  const length = [(fill & 0x7f) | 0x80, ((fill >> 7) & 0x7f) | 0x80, fill >> 14];
  return Buffer.concat([body, Buffer.from([0xfa, 0x7c, ...length]), Buffer.alloc(fill)]);
}

function compressed(protocol: Protocol, encoding: 'gzip' | 'br'): Record<string, string> {
  const header = protocol === 'grpc' || protocol === 'grpcWeb' ? 'grpc-encoding' : 'content-encoding';
  return { ...headersOne(), [header]: encoding };
}

describe.each(PROTOCOLS)('the size of a body over %s', (protocol) => {
  it('a body of 256 KiB is accepted', async () => {
    await expectAccepted(protocol, await clients.send(protocol, padded(protocol, LIMIT), headersOne()));
  });

  it('a body of 256 KiB and one byte is refused', async () => {
    const reply = await clients.send(protocol, padded(protocol, LIMIT + 1), headersOne());
    await expectRefused(protocol, reply, 'REQUEST_TOO_LARGE');
    expect(reply.raw.replaceAll('%20', ' ')).toContain('larger than 256 KiB');
  });

  it('a gzip or brotli bomb is refused for its expanded size', async () => {
    const zeros = Buffer.alloc(64 * MEBIBYTE);
    const bombs = {
      gzip: gzipSync(zeros, { level: 1 }),
      br: brotliCompressSync(zeros, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
    };
    for (const encoding of ['gzip', 'br'] as const) {
      // Connect refuses a larger bomb by its compressed size, without expanding it.
      const bomb =
        bombs[encoding].length < LIMIT ? bombs[encoding] : gzipSync(zeros.subarray(0, 8 * MEBIBYTE));
      const reply = await clients.send(protocol, bomb, compressed(protocol, encoding));
      await expectRefused(protocol, reply, 'REQUEST_TOO_LARGE');
    }
  });

  it('a body may be compressed with gzip or brotli', async () => {
    const body = requestBody(protocol, cardPayment());
    const gzip = await clients.send(protocol, gzipSync(body), compressed(protocol, 'gzip'));
    await expectAccepted(protocol, gzip);
    const br = await clients.send(protocol, brotliCompressSync(body), compressed(protocol, 'br'));
    await expectAccepted(protocol, br);
  });

  it('a body that claims to be gzip but is not compressed is refused', async () => {
    const reply = await clients.send(
      protocol,
      requestBody(protocol, cardPayment()),
      compressed(protocol, 'gzip'),
    );
    await expectRefused(protocol, reply, 'INVALID_REQUEST');
  });

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ] as const)('a truncated %s body is refused', async (encoding, compress) => {
    const half = compress(requestBody(protocol, cardPayment())).subarray(0, -9);
    const reply = await clients.send(protocol, half, compressed(protocol, encoding));
    await expectRefused(protocol, reply, 'INVALID_REQUEST');
  });
});

/** JSON with `levels` levels of nesting, including the request, the payer and the list. */
function nested(levels: number, wrap: (inner: unknown) => unknown): object {
  let inner: unknown = 'core';
  for (let level = 3; level < levels; level++) inner = wrap(inner);
  return withField(cardPayment(), FINGERPRINTS, [inner]);
}

describe('nesting in a body', () => {
  const wraps = { arrays: (inner: unknown) => [inner], objects: (inner: unknown) => ({ a: inner }) };
  const cases = Object.entries(wraps).map(([name, wrap]) => ({ name, wrap }));

  it.each(cases)(
    '32 levels of nested $name are accepted and returned, even to a repeated request',
    async ({ wrap }) => {
      for (const protocol of PROTOCOLS) {
        const headers = headersOne();
        const request = nested(32, wrap);
        const first = await clients.create(protocol, request, headers);
        await expectAccepted(protocol, first);
        expect(JSON.parse(first.record).customer_payer).toMatchObject(
          (request as { customer_payer: object }).customer_payer,
        );
        expect((await clients.create(protocol, request, headers)).record).toBe(first.record);
      }
    },
  );

  it.each(cases)('33 levels of nested $name are refused', async ({ wrap }) => {
    for (const protocol of JSON_PROTOCOLS) {
      const reply = await clients.create(protocol, nested(33, wrap), headersOne());
      await expectRefused(protocol, reply, 'INVALID_REQUEST');
    }
  });

  it('30,000 nested arrays or objects are refused', async () => {
    for (const protocol of JSON_PROTOCOLS) {
      for (const body of [
        '['.repeat(30_000),
        `${'['.repeat(30_000)}${']'.repeat(30_000)}`,
        '{"a":'.repeat(30_000),
      ]) {
        await expectRefused(protocol, await clients.send(protocol, body, headersOne()), 'INVALID_REQUEST');
      }
    }
  });

  it('deeply nested messages or groups are refused', async () => {
    const groups = Buffer.concat([Buffer.alloc(30_000, 0x7b), Buffer.alloc(30_000, 0x7c)]);
    const bodies = [nestedValues(30), nestedValues(10_000), groups];
    for (const protocol of BINARY_PROTOCOLS) {
      for (const body of bodies) {
        await expectRefused(protocol, await clients.send(protocol, body, headersOne()), 'INVALID_REQUEST');
      }
    }
  });
});

/**
 * A request whose device_fingerprints[0] is nested lists (google.protobuf.Value of ListValue), beginning at level 4.
 */
function nestedValues(levels: number): Buffer {
  let value: Buffer = Buffer.from([0x20, 0x01]);
  for (let level = 0; level < levels; level++) value = delimited(6, delimited(1, value));
  return delimited(7, delimited(12, value));
}

function delimited(field: number, bytes: Buffer): Buffer {
  const length: number[] = [];
  for (let rest = bytes.length; ; rest >>>= 7) {
    length.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
    if (rest <= 0x7f) break;
  }
  return Buffer.concat([Buffer.from([(field << 3) | 2, ...length]), bytes]);
}

describe('unreadable bodies', () => {
  const bodies = [
    ' ',
    '{',
    '{"amount":1,}',
    "{'a':1}",
    'null',
    '[]',
    '"4012888888881881"',
    'NaN',
    '\ufeff{}',
  ];

  it.each(JSON_PROTOCOLS)('a body over %s that is not a JSON object is refused', async (protocol) => {
    for (const body of bodies) {
      await expectRefused(protocol, await clients.send(protocol, body, headersOne()), 'INVALID_REQUEST');
    }
  });

  it.each(PROTOCOLS)('a body over %s that is not UTF-8 is refused', async (protocol) => {
    const body = Buffer.from(requestBody(protocol, withField(cardPayment(), 'description', 'Z____Z')));
    body.write('\xff\xfe\xc0\x80', body.indexOf('____'), 'latin1');
    await expectRefused(protocol, await clients.send(protocol, body, headersOne()), 'INVALID_REQUEST');
  });

  it.each(BINARY_PROTOCOLS)('a body over %s that is not a valid message is refused', async (protocol) => {
    const whole = requestBody(protocol, cardPayment());
    const bodies = [
      Buffer.from('{"account_id": "4012888888881881"}'),
      whole.subarray(0, -1),
      Buffer.alloc(64, 0xff),
    ];
    for (const body of bodies) {
      await expectRefused(protocol, await clients.send(protocol, body, headersOne()), 'INVALID_REQUEST');
    }
  });

  it.each(RPC_PROTOCOLS)(
    'an invalid value over %s is refused with its path but not its value',
    async (protocol) => {
      const reply = await clients.create(protocol, withField(cardPayment(), 'country', 'QZ'), headersOne());
      await expectRefused(protocol, reply, 'INVALID_PARAMETERS');
      expect(reply.raw).toContain('country');
      expect(reply.raw).not.toMatch(/\bQZ\b/);
    },
  );
});

type Init = Extract<MessageInitShape<typeof CreatePaymentRequestSchema>, { $typeName?: never }>;

describe.each(BINARY_PROTOCOLS)('values without a JSON form over %s', (protocol) => {
  const value = (kind: object): Init => ({ customerPayer: { deviceFingerprints: [{ kind } as never] } });
  const list = (kind: object) => value({ case: 'listValue', value: { values: [{ kind }] } });
  const struct = (kind: object) => value({ case: 'structValue', value: { fields: { a: { kind } } } });
  const at = (seconds: bigint, nanos = 0): Init => ({
    customerPayer: { merchantCustomerCreatedAt: { seconds, nanos } },
  });
  const CREATED_AT = 'customer_payer.merchant_customer_created_at';

  it.each<[name: string, init: Init, field: string]>([
    ['NaN', value({ case: 'numberValue', value: Number.NaN }), `${FINGERPRINTS}[0]`],
    [
      'Infinity in a list',
      list({ case: 'numberValue', value: Number.POSITIVE_INFINITY }),
      `${FINGERPRINTS}[0]`,
    ],
    ['no kind', value({ case: undefined }), `${FINGERPRINTS}[0]`],
    ['no kind in an object', struct({ case: undefined }), `${FINGERPRINTS}[0]`],
    ['a time before the year 1', at(-62_135_596_801n), CREATED_AT],
    ['a time after the year 9999', at(253_402_300_800n), CREATED_AT],
    ['the last representable time', at(2n ** 63n - 1n), CREATED_AT],
    ['negative nanoseconds', at(0n, -1), CREATED_AT],
    ['too many nanoseconds', at(0n, 1_000_000_000), CREATED_AT],
    ['an unknown workflow', { workflow: 99 as never }, 'workflow'],
  ])('%s is refused, and nothing is stored', async (_name, init, field) => {
    const extra = toBinary(CreatePaymentRequestSchema, create(CreatePaymentRequestSchema, init));
    // Concatenated messages are one message.
    const body = Buffer.concat([requestBody(protocol, cardPayment()), extra]);
    const reply = await clients.send(protocol, body, headersOne());
    await expectRefused(protocol, reply, 'INVALID_PARAMETERS');
    expect(reply.fields.map((error) => error.field)).toContain(field);
  });
});
