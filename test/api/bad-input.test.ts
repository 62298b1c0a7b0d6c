import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiClients, apiClients, PROTOCOLS, type Protocol, type Reply } from '../support/api-clients.ts';
import {
  CARD_DATA,
  cardPayment,
  headersOne,
  type RequestJson,
  withField,
} from '../support/payment-requests.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { openTables, type Tables } from '../support/tables.ts';

let server: TestServer;
let clients: ApiClients;
let tables: Tables;

beforeAll(async () => {
  server = await startTestServer();
  clients = apiClients(server.url);
  tables = await openTables(server.databaseUrl);
});

afterAll(async () => {
  clients?.close();
  await tables?.close();
  await server?.close();
});

const text = (length: number) => 'x'.repeat(length);
const list = (length: number, item: unknown) => Array.from({ length }, () => item);
const ORDER = 'additional_data.order';
const AIRLINE = 'additional_data.airline';
const PAYER = 'customer_payer';

/** Path, value, and the code of the field error; the field named is the path, unless a fourth says otherwise. */
type BadField = readonly [path: string, value: unknown, code: string, field?: string];

/** Faults that a message can have, tried over every protocol. */
const BAD_FIELDS: readonly BadField[] = [
  ['account_id', undefined, 'REQUIRED'],
  ['account_id', '', 'REQUIRED'],
  ['merchant_order_id', undefined, 'REQUIRED'],
  ['merchant_order_id', text(256), 'TOO_LONG'],
  ['country', undefined, 'REQUIRED|INVALID_FORMAT'],
  ['country', 'us', 'INVALID_FORMAT'],
  ['country', 'XX', 'INVALID_FORMAT'],
  ['country', 'USA', 'INVALID_FORMAT'],
  ['description', text(256), 'TOO_LONG'],
  ['description', 'a\0b', 'INVALID_FORMAT'],
  ['merchant_reference', text(256), 'TOO_LONG'],
  ['amount', undefined, 'REQUIRED'],
  ['amount.currency', undefined, 'REQUIRED'],
  ['amount.currency', 'usd', 'INVALID_FORMAT'],
  ['amount.currency', 'ZZZ', 'INVALID_FORMAT'],
  ['amount.value', undefined, 'REQUIRED'],
  ['amount.value', 0, 'OUT_OF_RANGE'],
  ['amount.value', '-0.00', 'OUT_OF_RANGE'],
  ['amount.value', -1, 'OUT_OF_RANGE'],
  ['amount.value', 10.001, 'INVALID_FORMAT'],
  ['amount.value', '1000000000000.01', 'OUT_OF_RANGE'],
  ['callback_url', 'javascript:alert(7391)', 'INVALID_FORMAT'],
  ['callback_url', 'ftp://shop.example.com', 'INVALID_FORMAT'],
  ['callback_url', 'shop.example.com/a b', 'INVALID_FORMAT'],
  ['callback_url', 'https://', 'INVALID_FORMAT'],
  ['callback_url', 'https://shop.example.com:99999/', 'INVALID_FORMAT'],
  ['callback_url', '//shop.example.com/', 'INVALID_FORMAT'],
  ['callback_url', `shop.example.com/${text(510)}`, 'TOO_LONG'],
  ['payment_method', undefined, 'REQUIRED'],
  ['payment_method.type', undefined, 'REQUIRED'],
  ['payment_method.type', text(256), 'TOO_LONG'],
  ['payment_method.vaulted_token', text(256), 'TOO_LONG'],
  ['payment_method.vaulted_token', '70ce0000-0000-4000-8000-000000000002', 'NOT_ALLOWED'],
  ['payment_method.detail', undefined, 'REQUIRED', CARD_DATA],
  ['payment_method.detail', { wallet: {} }, 'NOT_ALLOWED', 'payment_method.detail.wallet'],
  ['payment_method.detail.card.installments', 0, 'OUT_OF_RANGE'],
  ['payment_method.detail.card.installments', 100, 'OUT_OF_RANGE'],
  ['payment_method.detail.card.three_d_secure.three_d_secure_setup_id', text(256), 'TOO_LONG'],
  [`${CARD_DATA}.number`, undefined, 'REQUIRED'],
  [`${CARD_DATA}.number`, '4012888888881882', 'INVALID_FORMAT'],
  [`${CARD_DATA}.number`, '4012 8888 8888 1881', 'INVALID_FORMAT'],
  [`${CARD_DATA}.number`, '0000000', 'INVALID_FORMAT'],
  [`${CARD_DATA}.number`, '00000000000000000000', 'INVALID_FORMAT'],
  [`${CARD_DATA}.expiration_month`, 0, 'REQUIRED|OUT_OF_RANGE'],
  [`${CARD_DATA}.expiration_month`, 13, 'OUT_OF_RANGE'],
  [`${CARD_DATA}.expiration_year`, undefined, 'REQUIRED'],
  [`${CARD_DATA}.expiration_year`, -1, 'OUT_OF_RANGE'],
  [`${CARD_DATA}.expiration_year`, 100, 'OUT_OF_RANGE'],
  [`${CARD_DATA}.expiration_year`, 2100, 'OUT_OF_RANGE'],
  [`${CARD_DATA}.security_code`, '12', 'INVALID_FORMAT'],
  [`${CARD_DATA}.security_code`, '12345', 'INVALID_FORMAT'],
  [`${CARD_DATA}.security_code`, '73a', 'INVALID_FORMAT'],
  [`${CARD_DATA}.holder_name`, text(256), 'TOO_LONG'],
  [`${PAYER}.first_name`, text(256), 'TOO_LONG'],
  [`${PAYER}.email`, 'not an address', 'INVALID_FORMAT'],
  [`${PAYER}.email`, `${text(250)}@example.com`, 'TOO_LONG|INVALID_FORMAT'],
  [`${PAYER}.ip_address`, '300.1.1.1', 'INVALID_FORMAT'],
  [`${PAYER}.date_of_birth`, '2023-02-29', 'INVALID_FORMAT'],
  [`${PAYER}.date_of_birth`, '29/02/2024', 'INVALID_FORMAT'],
  [`${PAYER}.nationality`, 'XX', 'INVALID_FORMAT'],
  [`${PAYER}.document.document_number`, text(41), 'TOO_LONG'],
  [`${PAYER}.phone.number`, text(33), 'TOO_LONG'],
  [`${PAYER}.phone.country_code`, 'five', 'INVALID_FORMAT'],
  [`${PAYER}.billing_address.country`, 'XX', 'INVALID_FORMAT'],
  [`${PAYER}.shipping_address.city`, text(256), 'TOO_LONG'],
  [`${PAYER}.shipping_address.city`, 'Bogot\0', 'INVALID_FORMAT'],
  [`${PAYER}.device_fingerprints`, list(201, 'f'), 'TOO_MANY'],
  [`${PAYER}.device_fingerprints`, [{ a: ['\0'] }], 'INVALID_FORMAT', `${PAYER}.device_fingerprints[0]`],
  [`${ORDER}.items`, list(201, {}), 'TOO_MANY'],
  [`${ORDER}.items[1].unit_amount`, 0.001, 'INVALID_FORMAT'],
  [`${ORDER}.items[0].quantity`, -1, 'OUT_OF_RANGE'],
  [`${ORDER}.items[0].name`, text(256), 'TOO_LONG'],
  [`${ORDER}.fee_amount`, '1000000000000.01', 'OUT_OF_RANGE'],
  [`${AIRLINE}.legs`, list(201, {}), 'TOO_MANY'],
  [`${AIRLINE}.passengers`, list(201, {}), 'TOO_MANY'],
  [`${AIRLINE}.tickets`, list(201, {}), 'TOO_MANY'],
  [`${AIRLINE}.legs[0].base_fare_currency`, 'ZZZ', 'INVALID_FORMAT'],
  [`${AIRLINE}.passengers[0].document.country`, 'XX', 'INVALID_FORMAT'],
  [`${AIRLINE}.passengers[1].date_of_birth`, '2024-13-01', 'INVALID_FORMAT'],
  [`${AIRLINE}.tickets[0].issue.country`, 'XX', 'INVALID_FORMAT'],
  [`${AIRLINE}.tickets[2].total_fare_amount`, 0.001, 'INVALID_FORMAT'],
];

/** Faults that only JSON can have. */
const BAD_JSON_FIELDS: readonly BadField[] = [
  ['amount', 'ten-7391', 'INVALID_TYPE'],
  ['amount', [], 'INVALID_TYPE'],
  ['amount.value', '1e3', 'INVALID_FORMAT'],
  ['amount.value', ' 10', 'INVALID_FORMAT'],
  ['amount.value', '+10', 'INVALID_FORMAT'],
  ['amount.value', '10.', 'INVALID_FORMAT'],
  ['amount.value', '.5', 'INVALID_FORMAT'],
  ['amount.value', '0x10', 'INVALID_FORMAT'],
  ['amount.value', '1,000.00', 'INVALID_FORMAT'],
  ['amount.value', '9'.repeat(65), 'INVALID_FORMAT'],
  ['amount.value', true, 'INVALID_TYPE'],
  ['country', 7391, 'INVALID_TYPE'],
  ['description', { text: 'secret-7391' }, 'INVALID_TYPE'],
  ['workflow', 'BOTH-7391', 'NOT_ALLOWED'],
  ['workflow', 'WORKFLOW_UNSPECIFIED', 'NOT_ALLOWED'],
  ['workflow', 'direct', 'NOT_ALLOWED'],
  ['payment_method', 'CARD', 'INVALID_TYPE'],
  ['payment_method.vault_on_success', 'yes', 'INVALID_TYPE'],
  ['payment_method.detail.card.installments', 1.5, 'INVALID_TYPE'],
  ['payment_method.detail.card.installments', 2 ** 31, 'OUT_OF_RANGE'],
  ['payment_method.detail.card.capture', 'false', 'INVALID_TYPE'],
  [`${CARD_DATA}.number`, 4012888888881881, 'INVALID_TYPE'],
  [`${CARD_DATA}.security_code`, 737, 'INVALID_TYPE'],
  [`${PAYER}`, [], 'INVALID_TYPE'],
  [`${PAYER}.first_name`, 'lone \ud800 surrogate', 'INVALID_FORMAT'],
  [`${PAYER}.device_fingerprints[0]`, { '\udc00': 1 }, 'INVALID_FORMAT'],
  [`${PAYER}.merchant_customer_created_at`, 'yesterday', 'INVALID_FORMAT'],
  [`${PAYER}.merchant_customer_created_at`, '2023-02-29T00:00:00Z', 'INVALID_FORMAT'],
  [`${ORDER}.items`, {}, 'INVALID_TYPE'],
  [`${ORDER}.items[0]`, null, 'INVALID_TYPE'],
  [`${ORDER}.items[0].quantity`, '2', 'INVALID_TYPE'],
];

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
