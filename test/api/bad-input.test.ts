import http from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { PROTOCOLS, type Protocol, type Reply } from '../support/api-clients.ts';
import {
  AIRLINE,
  BAD_FIELDS,
  BAD_JSON_FIELDS,
  type BadField,
  list,
  ORDER,
  PAYER,
  text,
} from '../support/bad-fields.ts';
import { clients, onService, server, tables } from '../support/on-service.ts';
import {
  CARD_DATA,
  cardPayment,
  headersOne,
  type RequestJson,
  withField,
} from '../support/payment-requests.ts';

onService();

const named = (cases: readonly BadField[]) =>
  cases.map((badField) => ({
    badField,
    name: `${badField[0]} = ${(JSON.stringify(badField[1]) ?? 'nothing').slice(0, 40)}`,
  }));

describe('a field at fault is named with its code, and its value is not repeated', () => {
  it.each(named(BAD_FIELDS))('$name, over every protocol', async ({ badField }) => {
    for (const protocol of PROTOCOLS) await expectRefusal(protocol, badField);
  });

  it.each(named(BAD_JSON_FIELDS))('$name, over REST', async ({ badField }) => {
    await expectRefusal('rest', badField);
  });

  it.each(named(BAD_JSON_FIELDS.filter(isBadInProtoJson)))(
    '$name, over Connect JSON',
    async ({ badField }) => {
      await expectRefusal('connectJson', badField);
    },
  );
});

/** ProtoJSON takes an enum's zero by name, and whole numbers as strings. */
function isBadInProtoJson([path, value]: BadField): boolean {
  return value !== 'WORKFLOW_UNSPECIFIED' && !(path.endsWith('quantity') && value === '2');
}

async function expectRefusal(protocol: Protocol, [path, value, code, field = path]: BadField): Promise<void> {
  const before = await tables.counts();
  const request = withField(cardPayment(), path, value);
  const reply = await clients.create(protocol, request, headersOne());
  expect({ protocol, ...outline(reply) }).toEqual({ protocol, ...INVALID_PARAMETERS(protocol) });
  const named = reply.fields.find((error) => error.field === field);
  expect(named, `${protocol}: ${JSON.stringify(reply.fields)}`).toBeDefined();
  expect(code.split('|')).toContain(named?.code);
  // It continues the field's name, as in `country: is required`.
  expect(named?.message).toMatch(/^(is|must|does not) .*[^. ]$/);
  expectNoEcho(reply, request, value);
  expect(await tables.counts()).toEqual(before);
}

const outline = ({ status, code, reason, record }: Reply) => ({ status, code, reason, record });

const INVALID_PARAMETERS = (protocol: Protocol) => ({
  status: protocol === 'grpc' || protocol === 'grpcWeb' ? 200 : 400,
  code: protocol === 'rest' ? undefined : 'InvalidArgument',
  reason: 'INVALID_PARAMETERS',
  record: '',
});

/** Short values are part of other words; these cannot be. */
function expectNoEcho(reply: Reply, request: RequestJson, value: unknown): void {
  const card = (request.payment_method as RequestJson | undefined)?.detail as {
    card?: { card_data?: RequestJson };
  };
  const sent = [
    card?.card?.card_data?.number,
    'WHITFIELD',
    '7391',
    typeof value === 'string' && value !== 'false' ? value : undefined,
  ];
  // A request's id is drawn at random, and may hold any four digits.
  const told = reply.raw.replace(/\b[0-9a-f]{24}\b/g, '');
  for (const text of sent) {
    if (text === undefined || String(text).length < 4) continue;
    expect(told).not.toContain(String(text));
  }
}

describe('limits are met by', () => {
  it.each([
    ['description', text(255)],
    // Characters are counted, not bytes or UTF-16 units.
    ['description', '\u{1f4b3}'.repeat(255)],
    ['amount.value', '1000000000000'],
    ['amount.value', '10.500'],
    ['amount.value', 0.01],
    ['callback_url', `shop.example.com/${text(509)}`],
    ['callback_url', 'localhost:3000/back?order=1'],
    ['callback_url', 'HTTPS://shop.example.com'],
    ['payment_method.detail.card.installments', 99],
    [`${CARD_DATA}.number`, '00000000'],
    [`${CARD_DATA}.number`, '6304000000000000000'],
    [`${CARD_DATA}.security_code`, '0000'],
    [`${CARD_DATA}.expiration_year`, 2031],
    [`${CARD_DATA}.expiration_year`, 0],
    [`${PAYER}.date_of_birth`, '2024-02-29'],
    [`${PAYER}.ip_address`, '2001:db8::1'],
    [`${PAYER}.device_fingerprints`, list(200, { vendor: 'x', scores: [1, null, true] })],
    [`${PAYER}.device_fingerprints`, [JSON.parse('{"__proto__": {"polluted": 7}, "constructor": 1}')]],
    [`${ORDER}.items`, list(200, { name: 'x', unit_amount: 1 })],
    [`${AIRLINE}.legs`, list(200, { base_fare: '10.000', base_fare_currency: 'KWD' })],
  ])('%s = %j', async (path, value) => {
    for (const protocol of PROTOCOLS) {
      const reply = await clients.create(protocol, withField(cardPayment(), path, value), headersOne());
      expect({ protocol, reason: reply.reason, fields: reply.fields }).toEqual({
        protocol,
        reason: undefined,
        fields: [],
      });
      const { customer_payer } = JSON.parse(reply.record);
      if (path === `${PAYER}.device_fingerprints`) expect(customer_payer.device_fingerprints).toEqual(value);
    }
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  it('a request with fields that nobody knows', async () => {
    const request = { ...cardPayment(), loyalty: { points: 7 }, __proto__x: 1 };
    expect((await clients.create('rest', request, headersOne())).status).toBe(201);
  });
});

describe('an idempotency key', () => {
  const post = (path: string, keys: string | string[]) =>
    new Promise<string>((resolve, reject) => {
      const { 'x-idempotency-key': _one, ...others } = headersOne();
      const headers = { ...others, 'x-idempotency-key': keys, 'content-type': 'application/json' };
      const request = http.request(server.url + path, { method: 'POST', headers }, (response) =>
        textOf(response).then(resolve, reject),
      );
      request.on('error', reject).end(JSON.stringify(cardPayment()));
    });

  it('that is sent twice is malformed, over HTTP/1.1 and HTTP/2, and is no key of both with a comma', async () => {
    const before = await tables.counts();
    for (const keys of [
      ['a', 'b'],
      ['a', 'a'],
      ['a', ''],
    ]) {
      for (const path of ['/v1/payments', '/payments.v1.PaymentService/CreatePayment']) {
        expect(await post(path, keys)).toContain('must be 1 to 255 printable ASCII characters, sent once');
      }
      const twice = { ...headersOne(), 'x-idempotency-key': keys as never };
      const refused = await clients.create('grpc', cardPayment(), twice);
      expect([refused.code, refused.reason]).toEqual(['InvalidArgument', 'IDEMPOTENCY_KEY_MISSING']);
    }
    expect(await tables.counts()).toEqual(before);
  });

  it('may have commas of its own', async () => {
    const headers = headersOne('cart 7, order 1, try 1');
    const first = await clients.create('grpc', cardPayment(), headers);
    expect(first.record).not.toBe('');
    const repeat = await post('/v1/payments', headers['x-idempotency-key'] as string);
    expect(repeat).toBe(first.record);
  });
});
