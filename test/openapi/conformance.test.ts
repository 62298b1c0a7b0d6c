import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BAD_FIELDS, BAD_JSON_FIELDS, type BadField } from '../support/bad-fields.ts';
import { onService, server } from '../support/on-service.ts';
import { type Contract, type Operation, readContract, type Seen } from '../support/openapi-contract.ts';
import { ACCOUNT_TWO, cardPayment, headersOne, withField } from '../support/payment-requests.ts';
import { loadScenarios } from '../support/scenario.ts';

const contract: Contract = readContract();
const create = contract.find('POST', '/v1/payments');

onService();

async function call(
  verb: string,
  path: string,
  init: { readonly headers?: Record<string, string>; readonly body?: string } = {},
): Promise<Seen & { readonly operation: Operation; readonly faults: string[] }> {
  const { headers = headersOne(), body } = init;
  const response = await fetch(server.url + path, {
    method: verb,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body }),
  });
  const seen = { status: response.status, headers: response.headers, text: await response.text() };
  const operation = contract.find(verb, path);
  return { ...seen, operation, faults: contract.responseFaults(operation, seen) };
}

describe.each(loadScenarios())('scenario $name', ({ request, keys }) => {
  it('a scenario’s request, response, repeated response and later read conform to the OpenAPI document', async () => {
    expect(contract.requestFaults(create, JSON.parse(request))).toEqual([]);
    const headers = { 'x-idempotency-key': randomUUID(), ...keys };
    const first = await call('POST', '/v1/payments', { headers, body: request });
    expect([first.status, first.faults]).toEqual([201, []]);
    const again = await call('POST', '/v1/payments', { headers, body: request });
    expect([again.status, again.faults]).toEqual([201, []]);
    if (keys['private-secret-key'] === undefined) return;
    const read = await call('GET', `/v1/payments/${JSON.parse(first.text).id}`, { headers: keys });
    expect([read.status, read.faults]).toEqual([200, []]);
  });
});

/**
 * The codes of errors that the schema can express. The schema cannot express countries, currencies, check digits or
 * relations between fields.
 */
const TOLD_BY_SCHEMA = /^(REQUIRED|TOO_LONG|TOO_MANY|INVALID_TYPE|NOT_ALLOWED)/;
/** Errors that have one of these codes although only our rules find them, because they depend on several fields. */
const TOLD_BY_RULES_OF_PAYMENTS: readonly string[] = [
  // A vaulted token excludes card data, and card data excludes a wallet.
  'payment_method.vaulted_token NOT_ALLOWED',
  'payment_method.detail NOT_ALLOWED',
  'payment_method.detail REQUIRED',
  // A one-time token implies the type. Only a security code may be sent along with a vaulted token.
  'payment_method.type REQUIRED',
  'payment_method.detail.card.card_data.number REQUIRED',
  'payment_method.detail.card.card_data.expiration_month REQUIRED',
  'payment_method.detail.card.card_data.expiration_year REQUIRED',
  // A card number is allowed only in its own field.
  'description NOT_ALLOWED',
  'payment_method.detail.card.card_data.holder_name NOT_ALLOWED',
  'taxes NOT_ALLOWED',
  'metadata NOT_ALLOWED',
  'additional_data.order.items[1].quantity NOT_ALLOWED',
];

describe('bad fields', () => {
  const cases = [...BAD_FIELDS, ...BAD_JSON_FIELDS].map((badField) => ({
    badField,
    name: `${badField[0]} = ${(JSON.stringify(badField[1]) ?? 'nothing').slice(0, 40)}`,
  }));

  it.each(cases)('$name is refused as documented', async ({ badField }) => {
    const [path, value] = badField;
    const body = withField(cardPayment(), path, value);
    const refused = await call('POST', '/v1/payments', { body: JSON.stringify(body) });
    expect([refused.status, refused.faults]).toEqual([400, []]);
    if (isToldBySchema(badField)) expect(contract.requestFaults(create, body)).not.toEqual([]);
  });

  function isToldBySchema([path, , code]: BadField): boolean {
    return TOLD_BY_SCHEMA.test(code) && !TOLD_BY_RULES_OF_PAYMENTS.includes(`${path} ${code}`);
  }
});

const json = JSON.stringify(cardPayment());
const NOWHERE = '01900000-0000-7000-8000-000000000000';
const { 'x-idempotency-key': _, ...noKey } = headersOne();

describe('refused calls', () => {
  it.each<[string, number, string, string, Parameters<typeof call>[2]?]>([
    ['INVALID_CREDENTIALS', 401, 'POST', '/v1/payments', { headers: {}, body: json }],
    ['INVALID_REQUEST', 400, 'POST', '/v1/payments', { body: '{' }],
    ['IDEMPOTENCY_KEY_MISSING', 400, 'POST', '/v1/payments', { headers: noKey, body: json }],
    [
      'NOT_SUPPORTED',
      400,
      'POST',
      '/v1/payments',
      { body: JSON.stringify({ ...cardPayment(), split: [{}] }) },
    ],
    [
      'AUTHORIZATION_REQUIRED',
      403,
      'POST',
      '/v1/payments',
      { body: JSON.stringify({ ...cardPayment(), account_id: ACCOUNT_TWO }) },
    ],
    ['REQUEST_TOO_LARGE', 413, 'POST', '/v1/payments', { body: `${json}${' '.repeat(300_000)}` }],
    [
      'UNSUPPORTED_MEDIA_TYPE',
      415,
      'POST',
      '/v1/payments',
      { headers: { ...headersOne(), 'content-type': 'text/plain' }, body: json },
    ],
    ['PAYMENT_NOT_FOUND', 404, 'GET', `/v1/payments/${NOWHERE}`],
    ['PAYMENT_NOT_FOUND', 404, 'POST', `/v1/payments/${NOWHERE}/capture`, { body: '{}' }],
    ['DISPUTE_NOT_FOUND', 404, 'GET', `/v1/disputes/${NOWHERE}`],
    ['INVALID_PARAMETERS', 400, 'GET', '/v1/disputes?payment_id=1'],
    ['WEBHOOK_NOT_FOUND', 404, 'GET', `/v1/webhooks/${NOWHERE}`],
    ['INVALID_PARAMETERS', 400, 'GET', '/v1/payments?status=NONE'],
    ['INVALID_PARAMETERS', 400, 'POST', '/v1/webhooks', { body: '{}' }],
    ['INVALID_CREDENTIALS', 401, 'GET', '/v1/connections'],
  ])(
    'a call refused with %s (%i) gets the documented response: %s %s',
    async (code, status, verb, path, init) => {
      const refused = await call(verb, path, init);
      expect([refused.status, JSON.parse(refused.text).code, refused.faults]).toEqual([status, code, []]);
    },
  );

  it('a call refused with IDEMPOTENCY_KEY_REUSED (422) gets the documented response', async () => {
    const headers = headersOne();
    await call('POST', '/v1/payments', { headers, body: json });
    const other = JSON.stringify({ ...cardPayment(), description: 'Another book' });
    const refused = await call('POST', '/v1/payments', { headers, body: other });
    expect([refused.status, refused.faults]).toEqual([422, []]);
  });
});

describe('documented operations', () => {
  it.each(contract.operations)(
    'the operation $id is served, and requires the keys that the OpenAPI document names',
    async ({ verb, path, json }) => {
      const url = path.replaceAll(/\{[^}]+\}/g, NOWHERE);
      const body = json.requestBody ? { body: '{}' } : {};
      const without = await call(verb, url, { headers: {}, ...body });
      expect([without.status, without.faults]).toEqual([401, []]);
      const isForOperators = json.security.some((one: object) => 'operator-key' in one);
      const headers = isForOperators ? { 'operator-key': 'op_sandbox' } : headersOne();
      const withKeys = await call(verb, url, { headers, ...body });
      expect(withKeys.status).not.toBe(401);
      expect(withKeys.faults).toEqual([]);
    },
  );
});

describe('the OpenAPI document', () => {
  const schemas = schemasOf(
    JSON.parse(readFileSync(join(import.meta.dirname, '../../gen/openapi.json'), 'utf8')),
  );

  it('request amounts are an anyOf of number and digit string, since generators misread a list of types', () => {
    const isBoth = ({ type }: Schema) =>
      Array.isArray(type) && type.includes('number') && type.includes('string');
    expect(schemas.filter(isBoth)).toEqual([]);
    const text = { type: 'string', pattern: '^-?[0-9]+(\\.[0-9]+)?$', maxLength: 64 };
    const amounts = schemas.filter(({ anyOf }) => (anyOf as Schema[] | undefined)?.[0]?.type === 'number');
    expect(amounts.length).toBeGreaterThan(10);
    for (const { anyOf } of amounts) expect(anyOf).toContainEqual(text);
  });

  it('every list in the OpenAPI document has an item type', () => {
    const isList = ({ type, items }: Schema) => [type].flat().includes('array') && items !== undefined;
    const untyped = schemas.filter(isList).map(({ items }) => items as Schema);
    const withoutType = ({ type, $ref, anyOf, ...rest }: Schema) =>
      type === undefined && $ref === undefined && anyOf === undefined && Object.keys(rest).length > 0;
    expect(untyped.filter(withoutType)).toEqual([]);
  });
});

type Schema = Readonly<Record<string, unknown>>;

/** Returns every object within a document. */
function schemasOf(within: unknown): Schema[] {
  if (typeof within !== 'object' || within === null) return [];
  const inner = Object.values(within).flatMap(schemasOf);
  return Array.isArray(within) ? inner : [within as Schema, ...inner];
}
