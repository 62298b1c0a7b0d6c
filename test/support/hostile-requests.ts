import fc from 'fast-check';
import {
  CARD_DATA,
  cardPayment,
  type RequestJson,
  VAULTED_CARD,
  walletPayment,
  withField,
} from './payment-requests.ts';

/**
 * Secrets that every hostile request contains in their proper fields; if they appear anywhere else, they have leaked.
 */
export const PLANTED = {
  cardNumber: '4539578763621486',
  securityCode: '91740283',
  secretKey: 'sk_planted_c0ffee5ec2e7',
  payerEmail: 'planted.c0ffee@payer.example',
  payerDocument: '7060504030201',
};

const EVERYTHING: RequestJson = {
  ...cardPayment(PLANTED.cardNumber),
  merchant_reference: 'ref-1',
  callback_url: 'shop.example.com/back',
  customer_payer: {
    first_name: 'Ana',
    email: 'ana@example.com',
    date_of_birth: '1990-02-28',
    nationality: 'CO',
    ip_address: '192.0.2.7',
    document: { document_type: 'CC', document_number: '1032456789' },
    phone: { country_code: '57', number: '3001234567' },
    billing_address: { address_line_1: 'Calle 1', country: 'CO', city: 'Cali' },
    browser_info: { user_agent: 'curl', javascript_enabled: true },
    device_fingerprints: [{ a: 1 }],
    merchant_customer_created_at: '2020-01-01T00:00:00Z',
  },
  additional_data: {
    order: { fee_amount: 1.5, items: [{ id: '1', name: 'x', quantity: 2, unit_amount: '3.10' }] },
    airline: {
      pnr: 'ABC',
      legs: [{ departure_airport: 'BOG', base_fare: 10, base_fare_currency: 'USD' }],
      passengers: [{ first_name: 'Ana', date_of_birth: '1990-02-28', document: { country: 'CO' } }],
      tickets: [{ ticket_number: '1', total_fare_amount: 1, issue: { country: 'CO', date: '2026-01-01' } }],
    },
  },
};

const VAULTED: RequestJson = {
  ...withField(cardPayment(), 'payment_method.detail', undefined),
  payment_method: { type: 'CARD', vaulted_token: VAULTED_CARD, vault_on_success: true },
};

const base = fc.constantFrom(
  EVERYTHING,
  EVERYTHING,
  cardPayment(PLANTED.cardNumber),
  VAULTED,
  walletPayment(),
);

/** Every path of a request, including nested ones. */
function pathsOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inner = Object.entries(value).flatMap(([key, member]) =>
    pathsOf(member, Array.isArray(value) ? `${path}[${key}]` : path ? `${path}.${key}` : key),
  );
  return path === '' ? inner : [path, ...inner];
}

/** JSON text that JSON.stringify would not write; it replaces a placeholder. */
const RAW = (text: string) => `@@raw:${Buffer.from(text).toString('hex')}@@`;

const deep = (open: string, close: string, depth: number) =>
  RAW(open.repeat(depth) + (close === '}' ? '1' : '') + close.repeat(depth));

/** Texts of every kind, as long as a megabyte. */
export const hostileText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  fc.constantFrom(
    '',
    ' ',
    '\0',
    'a\0b',
    '\ud800',
    'x\udc00y',
    '\u202e\u202dpay\u2066',
    'e\u0301'.repeat(300),
    `Z${'\u0352'.repeat(2_000)}`,
    '\ufeff',
    '\ufffe\uffff',
    'x'.repeat(1 << 20),
    '\u{1f4b3}'.repeat(70_000),
    '9'.repeat(10_000),
    '-'.repeat(5_000),
    `${'0'.repeat(60)}.1`,
    '1e5',
    'NaN',
    'Infinity',
    '0x1f',
    '١٢٣',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    "'; DROP TABLE payment; --",
    '{{7*7}}%s%n',
    '\r\nset-cookie: a=b',
    `a@${'a.'.repeat(120)}`,
    `${'a'.repeat(250)}@`,
    'http://[::1',
    `http://${'a'.repeat(500)}`,
    `${'a-'.repeat(200)}.`,
    '9999-99-99',
    '0000-00-00',
    '2020-01-01T00:00:00+23:59',
    '0001-01-01T00:00:00+14:00',
    '70CE0000-0000-4000-8000-000000000002',
  ),
);

const hostileNumber = fc.oneof(
  fc.constantFrom(
    0,
    -0,
    -1,
    2 ** 31,
    -(2 ** 31) - 1,
    2 ** 53 + 2,
    1e21,
    1e-7,
    5e-324,
    1.7976931348623157e308,
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc
    .constantFrom(
      '1e400',
      '-1e400',
      '1E-400',
      '9'.repeat(5_000),
      `0.${'0'.repeat(5_000)}1`,
      '-0',
      '1e5',
      '10.0e-1',
    )
    .map(RAW),
);

const hostileKey = fc.oneof(
  fc.constantFrom(
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    '',
    '\0',
    '\ud800',
    'value',
    '$typeName',
    'case',
  ),
  fc.string({ unit: 'binary', maxLength: 20 }),
);

const hostileStructure = fc.oneof(
  fc.constantFrom(
    deep('[', ']', 30_000),
    deep('{"a":', '}', 30_000),
    deep('[', ']', 33),
    deep('{"a":', '}', 26),
    RAW(`[${'['.repeat(30_000)}`),
    RAW('{"a":1,"a":2,"__proto__":{"polluted":1}}'),
    RAW(`[${'{},'.repeat(20_000)}{}]`),
    RAW(`{${Array.from({ length: 10_000 }, (_, i) => `"k${i}":0`).join()}}`),
    RAW(''),
    RAW('undefined'),
    RAW("'x'"),
    RAW('"\\ud800\\u0000"'),
    RAW('[1,]'),
  ),
  fc.dictionary(hostileKey, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5, noNullPrototype: true }),
  fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 5 }),
);

const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  hostileText,
  hostileNumber,
  hostileStructure,
  fc.constantFrom(null, true, false, [], {}),
);

/** A request as JSON text: a valid request with up to four changed values or additional members. */
export const hostileJson: fc.Arbitrary<string> = base.chain((request) =>
  fc
    .tuple(
      fc.array(fc.tuple(fc.constantFrom(...pathsOf(request)), hostileValue), { minLength: 1, maxLength: 4 }),
      fc.array(fc.tuple(fc.constantFrom(...pathsOf(request)), hostileKey, hostileValue), { maxLength: 1 }),
      fc.constantFrom(false, false, true),
    )
    .map(([replaced, added, wrapSecrets]) => {
      let json = wrapSecrets ? withField(request, CARD_DATA, misplacedSecrets()) : request;
      for (const [path, value] of replaced) json = tryWithField(json, path, value);
      for (const [path, key, value] of added) json = tryWithField(json, path, { [key]: value, kept: 1 });
      return printed(json);
    }),
);

/** The secrets in the right fields, in the wrong types. */
function misplacedSecrets(): RequestJson {
  return {
    number: [PLANTED.cardNumber],
    security_code: { code: PLANTED.securityCode },
    expiration_month: PLANTED.cardNumber,
    expiration_year: Number(PLANTED.cardNumber),
    holder_name: { [PLANTED.cardNumber]: PLANTED.securityCode },
  };
}

/** A path may no longer exist after one of its parents has been replaced. */
function tryWithField(json: RequestJson, path: string, value: unknown): RequestJson {
  try {
    return withField(json, path, value);
  } catch {
    return json;
  }
}

function printed(json: unknown): string {
  return JSON.stringify(json).replace(/"@@raw:([0-9a-f]*)@@"/g, (_mark, hex) =>
    Buffer.from(hex, 'hex').toString(),
  );
}
