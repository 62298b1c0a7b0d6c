import { brotliCompressSync, gzipSync } from 'node:zlib';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { OrderSchema } from '#gen/payments/v1/additional_data_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { PROTOCOLS, type Protocol, requestBody } from '../support/api-clients.ts';
import { clients, onService } from '../support/on-service.ts';
import { cardPayment, headersOne, withField } from '../support/payment-requests.ts';

const ITEMS = 'additional_data.order.items';
const BINARY_PROTOCOLS: readonly Protocol[] = ['connectProto', 'grpc', 'grpcWeb'];
/** Many empty items as encoded in a message: each is a tag and the length 0. */
const EMPTY_ITEMS = Buffer.alloc(2_000, Buffer.from([(OrderSchema.field.items.number << 3) | 2, 0]));

onService();

const encodingHeader = (protocol: Protocol) =>
  protocol === 'grpc' || protocol === 'grpcWeb' ? 'grpc-encoding' : 'content-encoding';

type Init = Extract<MessageInitShape<typeof CreatePaymentRequestSchema>, { $typeName?: never }>;
const binary = (init: Init) => toBinary(CreatePaymentRequestSchema, create(CreatePaymentRequestSchema, init));

describe.each(PROTOCOLS)('reading limits over %s', (protocol) => {
  it('a list of 80,000 elements is refused with its path before its invalid last element is read', async () => {
    const items: unknown[] = Array.from({ length: 80_000 }, () => ({}));
    if (protocol === 'rest' || protocol === 'connectJson') items[79_999] = 'no object';
    const body = Buffer.from(requestBody(protocol, withField(cardPayment(), ITEMS, items)));
    // An element whose length exceeds the rest of the body.
    if (BINARY_PROTOCOLS.includes(protocol))
      body[body.lastIndexOf(EMPTY_ITEMS) + EMPTY_ITEMS.length - 1] = 0x7f;
    const reply = await clients.send(protocol, body, headersOne());
    expect([reply.reason, reply.fields]).toMatchObject([
      'INVALID_PARAMETERS',
      [{ field: ITEMS, code: 'TOO_MANY', message: 'must have at most 200 elements' }],
    ]);
  });

  it('compressed lists of 200 elements are accepted', async () => {
    const many = (element: object) => Array.from({ length: 200 }, (_, i) => ({ ...element, name: `n${i}` }));
    const request = {
      ...cardPayment(),
      customer_payer: { device_fingerprints: many({ vendor: 'x' }) },
      additional_data: {
        order: { items: many({ unit_amount: 1.5, quantity: 2 }) },
        airline: { tickets: many({ total_fare_amount: 1, issue: { city: 'Cali' } }) },
      },
    };
    // Only known fields, because a binary protocol cannot send others.
    for (const ticket of request.additional_data.airline.tickets) delete (ticket as { name?: string }).name;
    const body = gzipSync(requestBody(protocol, request));
    const reply = await clients.send(protocol, body, { ...headersOne(), [encodingHeader(protocol)]: 'gzip' });
    expect([reply.reason, reply.fields]).toEqual([undefined, []]);
  });

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ])('the size limit of a %s body applies to its expanded size', async (encoding, compress) => {
    const send = (length: number) => {
      const body = compress(requestBody(protocol, { ...cardPayment(), description: 'x'.repeat(length) }));
      return clients.send(protocol, body, { ...headersOne(), [encodingHeader(protocol)]: encoding });
    };
    expect((await send(255)).reason).toBe(undefined);
    const [read, tooLarge] = [await send(250_000), await send(262_145)];
    expect([read.reason, read.fields[0]?.field]).toEqual(['INVALID_PARAMETERS', 'description']);
    expect(tooLarge.reason).toBe('REQUEST_TOO_LARGE');
  });

  it('an unknown encoding is refused, and the refusal names the encoding header', async () => {
    const headers = { ...headersOne(), [encodingHeader(protocol)]: 'zstd, zstd' };
    const reply = await clients.send(protocol, requestBody(protocol, cardPayment()), headers);
    expect(reply.reason).toBe('UNSUPPORTED_MEDIA_TYPE');
    expect(reply.fields[0]?.field).toContain('encoding');
    expect(reply.raw).not.toContain('zstd');
  });
});

const FREE_JSON = [
  'INVALID_PARAMETERS',
  [
    {
      field: 'customer_payer.device_fingerprints[1]',
      code: 'TOO_MANY',
      message: expect.stringContaining('10000 values'),
    },
  ],
];

it.each(['rest', 'connectJson'] as const)(
  'over %s, a free-form JSON field with too many values is refused',
  async (protocol) => {
    const fingerprints = [1, Array(100).fill(Array(100).fill({}))];
    const body = JSON.stringify(withField(cardPayment(), 'customer_payer.device_fingerprints', fingerprints));
    const reply = await clients.send(protocol, body, headersOne());
    expect([reply.reason, reply.fields.slice(0, 1)]).toEqual(FREE_JSON);
  },
);

it.each(BINARY_PROTOCOLS)('over %s, a free-form field with too many values is refused', async (protocol) => {
  const one = { kind: { case: 'boolValue' as const, value: true } };
  const list = { kind: { case: 'listValue' as const, value: { values: Array(20_000).fill(one) } } };
  const body = binary({ customerPayer: { deviceFingerprints: [one, list] } });
  const reply = await clients.send(protocol, body, headersOne());
  expect([reply.reason, reply.fields]).toEqual(FREE_JSON);
});

it.each(BINARY_PROTOCOLS)(
  'over %s, a list that is sent in several pieces is limited as a whole',
  async (protocol) => {
    const piece = binary({
      customerPayer: { deviceFingerprints: Array(150).fill({ kind: { case: 'boolValue', value: true } }) },
    });
    const reply = await clients.send(protocol, Buffer.concat([piece, piece]), headersOne());
    expect(reply.fields.map(({ field, code }) => `${field} ${code}`)).toContain(
      'customer_payer.device_fingerprints TOO_MANY',
    );
  },
);
