import { randomUUID } from 'node:crypto';
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

describe('an invalid field', () => {
  it.each(named(BAD_FIELDS))(
    'over every protocol, the response names $name and a code without repeating the value',
    async ({ badField }) => {
      for (const protocol of PROTOCOLS) await expectRefusal(protocol, badField);
    },
  );

  it.each(named(BAD_JSON_FIELDS))(
    'over REST, the response names $name and a code without repeating the value',
    async ({ badField }) => {
      await expectRefusal('rest', badField);
    },
  );

  it.each(named(BAD_JSON_FIELDS.filter(isBadInProtoJson)))(
    'over Connect JSON, the response names $name and a code without repeating the value',
    async ({ badField }) => {
      await expectRefusal('connectJson', badField);
    },
  );
});

/** Excludes values that ProtoJSON accepts: an enum's zero by name, and integers as strings. */
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
  // The message continues the field's name, as in `country: is required`.
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

/**
 * Expects that the response contains no sent value. Values shorter than four characters may occur within other words.
 */
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
  // The random request id may contain any four digits.
  const told = reply.raw.replace(/\b[0-9a-f]{24}\b/g, '');
  for (const text of sent) {
    if (text === undefined || String(text).length < 4) continue;
    expect(told).not.toContain(String(text));
  }
}

describe('a field that cannot be read', () => {
  it.each(['rest', 'connectJson'] as const)(
    'over %s, a field that cannot be read does not hide other faults and is not reported as missing',
    async (protocol) => {
      let request = withField(cardPayment(), 'amount', { currency: 'usd', value: '55,75' });
      request = withField(request, 'country', undefined);
      request = withField(request, `${CARD_DATA}.number`, '4111 1111 1111 1111');
      request = withField(request, `${ORDER}.items`, [
        { quantity: true, unit_amount: 1 },
        { name: text(256) },
      ]);
      const reply = await clients.create(protocol, request, headersOne());
      expect(reply.reason).toBe('INVALID_PARAMETERS');
      expect(reply.fields).toHaveLength(6);
      expect(Object.fromEntries(reply.fields.map((error) => [error.field, error.message]))).toMatchObject({
        'amount.value': 'must have a decimal point and no comma, as in 1055.75',
        'amount.currency': 'must be in upper case, such as USD',
        country: 'is required',
        [`${CARD_DATA}.number`]: 'must be 8 to 19 digits, without spaces or dashes',
        [`${ORDER}.items[0].quantity`]: 'must be an integer',
        [`${ORDER}.items[1].name`]: expect.stringContaining('255'),
      });
    },
  );

  it.each([
    ['payment_method.token', 5, ['payment_method.token']],
    ['payment_method.vaulted_token', {}, ['payment_method.vaulted_token']],
    ['payment_method.detail', 'card', ['payment_method.detail']],
    [`${ORDER}.items`, [{ name: text(256) }, 'x'], [`${ORDER}.items[1]`]],
  ])('the unreadable %s = %j causes no errors in other fields', async (path, value, fields) => {
    let request = withField(cardPayment(), path, value);
    // A request with a token may not contain the fields that the token replaces.
    if (path.endsWith('.token')) request = withField(request, 'payment_method.type', undefined);
    if (path.endsWith('vaulted_token')) request = withField(request, CARD_DATA, { security_code: '123' });
    const reply = await clients.create('rest', request, headersOne());
    expect(reply.fields.map(({ field }) => field)).toEqual(fields);
  });

  it('once 20 faults have been found, fields that have not been read are not reported as missing', async () => {
    const request = { taxes: 5, metadata: list(30, 5), ...cardPayment() };
    const reply = await clients.create('rest', request, headersOne());
    expect(reply.fields.map(({ field }) => field)).toHaveLength(20);
    expect(reply.fields.every(({ field }) => field.startsWith('metadata') || field === 'taxes')).toBe(true);
  });

  it('an unreadable field and an unsupported field are reported together', async () => {
    const request = { ...withField(cardPayment(), 'amount.value', '1e3'), split: [{ a: 1 }] };
    const { reason, fields } = await clients.create('rest', request, headersOne());
    expect([reason, fields.map(({ field }) => field).sort()]).toEqual([
      'INVALID_PARAMETERS',
      ['amount.value', 'split'],
    ]);
  });
});

const UNKNOWN = '01a20257-0000-7000-8000-000000000000';
it.each([
  ['/v1/payments', { customer_payer: { id: UNKNOWN } }, 'customer_payer.id'],
  ['/v1/payments', { checkout: { session: UNKNOWN } }, 'checkout.session'],
  ['/v1/payments', { payment_method: { token: UNKNOWN } }, 'payment_method.token'],
  [
    '/v1/payments',
    { payment_method: { type: 'CARD', vaulted_token: UNKNOWN } },
    'payment_method.vaulted_token',
  ],
  [`/v1/payments/${UNKNOWN}/refund`, {}, 'payment_id'],
  [`/v1/payments/${UNKNOWN}`, undefined, 'id'],
  [`/v1/customers/${UNKNOWN}`, undefined, 'id'],
  [`/v1/webhooks/${UNKNOWN}`, undefined, 'id'],
  [`/v1/checkout/sessions/${UNKNOWN}`, undefined, 'checkout_session'],
])(
  'an unknown id, sent to %s in %j, gets NOT_FOUND with the name of its field',
  async (path, changes, field) => {
    const sent = path === '/v1/payments' ? { ...cardPayment(), ...changes } : changes;
    const headers = { ...headersOne(), ...(sent && { 'content-type': 'application/json' }) };
    const body = sent && { method: 'POST', body: JSON.stringify(sent) };
    const problem = await (await fetch(server.url + path, { headers, ...body })).json();
    expect(problem).toMatchObject({ errors: [{ field, code: 'NOT_FOUND', message: expect.any(String) }] });
  },
);

describe('values at their limits', () => {
  it.each([
    ['description', text(255)],
    // The limit counts characters, not bytes or UTF-16 units.
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
  ])('%s = %j is accepted over every protocol', async (path, value) => {
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

  it('a request with unknown fields is accepted', async () => {
    const request = { ...cardPayment(), loyalty: { points: 7 }, __proto__x: 1 };
    expect((await clients.create('rest', request, headersOne())).status).toBe(201);
  });
});

describe('the idempotency key', () => {
  const post = (path: string, keys: string | string[]) =>
    new Promise<string>((resolve, reject) => {
      const { 'x-idempotency-key': _one, ...others } = headersOne();
      const headers = { ...others, 'x-idempotency-key': keys, 'content-type': 'application/json' };
      const request = http.request(server.url + path, { method: 'POST', headers }, (response) =>
        textOf(response).then(resolve, reject),
      );
      request.on('error', reject).end(JSON.stringify(cardPayment()));
    });

  it('a repeated x-idempotency-key header is refused over HTTP/1.1 and HTTP/2', async () => {
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

  it.each(PROTOCOLS)(
    'a list of equal keys in one header makes no second payment over %s',
    async (protocol) => {
      const key = randomUUID();
      const first = await clients.create(protocol, cardPayment(), headersOne(key));
      const before = await tables.counts();
      for (const joined of [`${key}, ${key}`, `${key},${key}`, `${key},`]) {
        const refused = await clients.create(protocol, cardPayment(), headersOne(joined));
        expect([refused.reason, refused.fields.map(({ field }) => field)]).toEqual([
          'IDEMPOTENCY_KEY_MISSING',
          ['x-idempotency-key'],
        ]);
      }
      expect(await tables.counts()).toEqual(before);
      expect((await clients.create(protocol, cardPayment(), headersOne(key))).record).toBe(first.record);
    },
  );

  it('a list of equal keys is refused for operations and for calls that a key makes repeatable', async () => {
    const key = randomUUID();
    const paid = JSON.parse((await clients.create('rest', cardPayment(), headersOne(key))).record);
    for (const path of [`/v1/payments/${paid.id}/refund`, '/v1/customers']) {
      const response = await fetch(server.url + path, {
        method: 'POST',
        headers: { ...headersOne(`${key}, ${key}`), 'content-type': 'application/json' },
        body: path === '/v1/customers' ? JSON.stringify({ merchant_customer_id: key }) : '{}',
      });
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining('x-idempotency-key'),
      ]);
    }
  });

  it('an idempotency key may contain commas', async () => {
    const headers = headersOne('cart 7, order 1, try 1');
    const first = await clients.create('grpc', cardPayment(), headers);
    expect(first.record).not.toBe('');
    const repeat = await post('/v1/payments', headers['x-idempotency-key'] as string);
    expect(repeat).toBe(first.record);
  });
});
