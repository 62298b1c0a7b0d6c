import { createHash, createHmac } from 'node:crypto';
import { create, createFileRegistry, type DescMessage, toBinary } from '@bufbuild/protobuf';
import {
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { hashPaymentRequest, requestHasher, shapeOf } from '#src/payments/keys/request-hash.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { CARD_DATA, cardPayment, type RequestJson, withField } from '../support/payment-requests.ts';

const KEY = Buffer.alloc(32, 1);
const decode = jsonDecoder(CreatePaymentRequestSchema);
const hashText = (text: string, key = KEY) =>
  Buffer.from(hashPaymentRequest(key, decode(parseJson(Buffer.from(text)))).hash).toString('hex');
const hash = (request: RequestJson) => hashText(JSON.stringify(request));

/** The same JSON with the members of every object in another order. */
function shuffled(value: unknown, turn: number): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffled(item, turn));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]) => [name, shuffled(inner, turn)]);
  const at = entries.length === 0 ? 0 : turn % entries.length;
  return Object.fromEntries([...entries.slice(at), ...entries.slice(0, at)].reverse());
}

describe('the hash of a request', () => {
  const described = {
    ...cardPayment(),
    taxes: { type: 'VAT', lines: [{ value: 1, rate: { of: 19, per: 100 } }] },
    additional_data: {
      seller_details: { name: 'Shop', address: { city: 'Lima', zip: '1' } },
      order: {
        taxes: [{ type: 'VAT', value: 1 }],
        discounts: [{ id: '1', unit_amount: 2 }],
        tickets: [[{ id: '1', seat: 'A1' }]],
        fulfillment: { type: 'PICKUP', store: { id: 1, city: 'Lima' } },
        shipping: { carrier: 'Post', days: 3 },
      },
      airline: { legs: [{ id: { of: 'a', at: 1 } }], passengers: [{ id: { of: 'a', at: 1 } }] },
    },
  };
  const rich = withField(described, 'customer_payer', {
    email: 'a@example.com',
    device_fingerprints: [{ vendor: 'x', scores: { a: 1, b: [2, { d: 4, c: 3 }] } }, 'text', null],
    billing_address: { city: 'Bogotá', country: 'CO' },
  });

  it('the hash of a request is the same for any order of fields, even in arbitrary JSON', () => {
    fc.assert(
      fc.property(fc.nat({ max: 30 }), (turn) => {
        expect(hash(shuffled(rich, turn) as RequestJson)).toBe(hash(rich));
      }),
    );
  });

  it('the hash of a request is the same for any white space, and for null and absent fields', () => {
    expect(hashText(JSON.stringify(rich, null, 4))).toBe(hash(rich));
    expect(hash({ ...rich, merchant_reference: null, unknown: 'x' })).toBe(hash(rich));
  });

  it.each([10, '10', '10.0', '10.00', '010'])(
    'the hash of a request is the same for the amount %j as for 10',
    (value) => {
      expect(hash(withField(rich, 'amount.value', value))).toBe(hash(rich));
    },
  );

  it.each(['10.00', '1.0000e1', '10.000'])(
    'the hash of a request is the same for the literal %s, if it is a decimal',
    (literal) => {
      const text = JSON.stringify(rich).replace('"value":10', `"value":${literal}`);
      if (literal.includes('e')) expect(() => hashText(text)).toThrow('without exponent');
      else expect(hashText(text)).toBe(hash(rich));
    },
  );

  it.each(['0000', '999', undefined])('the hash of a request leaves out the security code: %s', (code) => {
    expect(hash(withField(rich, `${CARD_DATA}.security_code`, code))).toBe(hash(rich));
  });

  it.each([
    ['customer_payer', { device_fingerprints: [{ vendor: 'x', score: 1, at: { x: 1, y: 2 } }] }],
    ['taxes', { type: 'VAT', rate: { of: 19, per: 100 } }],
    ['taxes', [{ type: 'VAT', rate: 19 }]],
    ['additional_data', { order: { shipping: { carrier: 'Post', days: 3 } } }],
    ['additional_data', { airline: { legs: [{}, { id: { of: 'a', at: 1 } }] } }],
    ['additional_data', { seller_details: { name: 'Shop', city: 'Lima' } }],
  ])(
    'the hash of a request is the same for arbitrary JSON in another order if only %s has some',
    (path, value) => {
      const request = withField(cardPayment(), path, value);
      expect(hash(withField(request, path, shuffled(value, 0)))).toBe(hash(request));
      expect(hash(request)).not.toBe(hash(cardPayment()));
    },
  );

  it('the hash of a request is an HMAC of the request without its security code, the same in every release', () => {
    const request = decode(parseJson(Buffer.from(JSON.stringify(cardPayment()))));
    const card = request.paymentMethod?.detail?.kind;
    if (card?.case === 'card' && card.value.cardData) card.value.cardData.securityCode = '';
    const bytes = toBinary(CreatePaymentRequestSchema, request);
    expect(hash(cardPayment())).toBe(createHmac('sha256', KEY).update(bytes).digest('hex'));
  });

  it.each([
    ['amount.value', 10.01],
    ['amount.currency', 'EUR'],
    ['country', 'MX'],
    ['description', 'Another book'],
    ['merchant_order_id', 'order-9'],
    ['workflow', undefined],
    ['payment_method.vault_on_success', true],
    ['payment_method.detail.card.capture', false],
    [`${CARD_DATA}.number`, '4111111111111111'],
    [`${CARD_DATA}.expiration_year`, 32],
    ['customer_payer.billing_address.city', 'Bogota'],
    ['customer_payer.device_fingerprints[0].scores.b[1].c', 5],
    ['additional_data.order.items', [{ name: 'x' }]],
  ])('the hash of a request differs when %s is %j', (path, value) => {
    expect(hash(withField(rich, path, value))).not.toBe(hash(rich));
  });

  it('the hash of a request differs with another key, so that it reveals nothing about the request', () => {
    expect(hashText(JSON.stringify(rich), Buffer.alloc(32, 2))).not.toBe(hash(rich));
  });

  it('the hash of a request leaves the request unchanged', () => {
    const request = decode(parseJson(Buffer.from(JSON.stringify(rich))));
    const before = structuredClone(request);
    hashPaymentRequest(KEY, request);
    expect(request).toEqual(before);
  });
});

type Field = { name: string; number: number; type?: Type; label?: Label; typeName?: string };

/** A request of one release: message Request with its own fields, and message Inner with others. */
function release(request: readonly Field[], inner: readonly Field[] = []): DescMessage {
  const fields = (all: readonly Field[]) =>
    all.map((field) => ({ type: Type.STRING, label: Label.OPTIONAL, ...field }));
  const file = create(FileDescriptorProtoSchema, {
    name: 'release.proto',
    syntax: 'proto3',
    messageType: [
      { name: 'Request', field: fields(request) },
      { name: 'Inner', field: fields(inner) },
    ],
  });
  return createFileRegistry(file, () => undefined).getMessage('Request') as DescMessage;
}

describe('the shape of a request', () => {
  const [a, b] = [
    { name: 'a', number: 1 },
    { name: 'b', number: 2 },
  ];
  const nested = { name: 'inner', number: 3, type: Type.MESSAGE, typeName: '.Inner' };
  const shape = (...of: Parameters<typeof release>) => Buffer.from(shapeOf(release(...of))).toString('hex');

  it('the shape of a request is the same for the same fields, in any order of declaration', () => {
    expect(shape([a, b, nested], [a])).toBe(shape([nested, b, a], [a]));
    expect(shapeOf(CreatePaymentRequestSchema)).toEqual(hashPaymentRequest(KEY, decode({})).shape);
  });

  it.each([
    ['knows another field', [a, b], []],
    ['knows a field by another name', [{ ...a, name: 'c' }], []],
    ['knows a field by another number', [{ ...a, number: 9 }], []],
    ['reads a field as another type', [{ ...a, type: Type.INT64 }], []],
    ['reads a field as a list', [{ ...a, label: Label.REPEATED }], []],
    ['knows one more message', [a, nested], []],
  ])('the shape of a request differs for a release that %s', (_name, request, inner) => {
    expect(shape(request, inner)).not.toBe(shape([a]));
  });

  it('the shape of a request is the digest of a fixed description with a form number', () => {
    const described =
      '4\nRequest 1 a scalar  9   2\nRequest 3 inner message    Inner 1\nInner 1 a scalar  9   2\n';
    const digest = createHash('sha256').update(described).digest('hex');
    expect(shape([a, nested], [a])).toBe(digest.slice(0, 32));
  });

  it('the shape of a request differs if an inner message has another field, at any depth', () => {
    expect(shape([nested], [a])).not.toBe(shape([nested], [a, b]));
    const within = { ...nested, name: 'itself' };
    expect(shape([nested], [a, within])).not.toBe(shape([nested], [a, b, within]));
  });

  it('an added field does not change the hash of requests without it', () => {
    const [before, after] = [release([a]), release([a, b])];
    const hashOf = (schema: DescMessage, init: object) =>
      requestHasher(schema)(KEY, create(schema, init as never));
    expect(hashOf(after, { a: 'x' }).hash).toEqual(hashOf(before, { a: 'x' }).hash);
    expect(hashOf(after, { a: 'x', b: 'y' }).hash).not.toEqual(hashOf(before, { a: 'x' }).hash);
  });

  it('the hash of a request leaves unknown fields out', () => {
    const schema = release([a]);
    const message = create(schema, { a: 'x' } as never);
    const known = requestHasher(schema)(KEY, message).hash;
    message.$unknown = [{ no: 2, wireType: 0, data: new Uint8Array([1]) }];
    expect(requestHasher(schema)(KEY, message).hash).toEqual(known);
  });
});
