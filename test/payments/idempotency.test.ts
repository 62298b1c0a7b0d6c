import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import {
  awaitAnswer,
  hashRequest,
  requireIdempotencyKey,
  requireSameRequest,
} from '#src/payments/idempotency.ts';
import type { KeyHolder } from '#src/store/payments.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { CARD_DATA, cardPayment, type RequestJson, withField } from '../support/payment-requests.ts';

const KEY = Buffer.alloc(32, 1);
const decode = jsonDecoder(CreatePaymentRequestSchema);
const hashText = (text: string, key = KEY) =>
  hashRequest(key, decode(parseJson(Buffer.from(text)))).toString('hex');
const hash = (request: RequestJson) => hashText(JSON.stringify(request));

/** The same JSON with the members of every object in another order. */
function shuffled(value: unknown, turn: number): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffled(item, turn));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]) => [name, shuffled(inner, turn)]);
  const at = entries.length === 0 ? 0 : turn % entries.length;
  return Object.fromEntries([...entries.slice(at), ...entries.slice(0, at)].reverse());
}

describe('requireIdempotencyKey', () => {
  it.each(['a', 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6', ' key with spaces ~', 'x'.repeat(255)])(
    'takes %j',
    (key) => {
      expect(requireIdempotencyKey(key)).toBe(key);
    },
  );

  it.each([undefined, '', 'x'.repeat(256), 'schlüssel', 'tab\t', 'line\n', '\x7f', '\0'])(
    'refuses %j',
    (key) => {
      expect(() => requireIdempotencyKey(key)).toThrow(
        expect.objectContaining({ reason: 'IDEMPOTENCY_KEY_MISSING', fields: [expect.anything()] }),
      );
    },
  );
});

describe('the hash of a request', () => {
  const rich = withField(cardPayment(), 'customer_payer', {
    email: 'a@example.com',
    device_fingerprints: [{ vendor: 'x', scores: { a: 1, b: [2, { d: 4, c: 3 }] } }, 'text', null],
    billing_address: { city: 'Bogotá', country: 'CO' },
  });

  it('is the same whatever the order of fields, also in free JSON', () => {
    fc.assert(
      fc.property(fc.nat({ max: 30 }), (turn) => {
        expect(hash(shuffled(rich, turn) as RequestJson)).toBe(hash(rich));
      }),
    );
  });

  it('is the same whatever the white space, and for null as for absent', () => {
    expect(hashText(JSON.stringify(rich, null, 4))).toBe(hash(rich));
    expect(hash({ ...rich, merchant_reference: null, unknown: 'x' })).toBe(hash(rich));
  });

  it.each([10, '10', '10.0', '10.00', '010'])('is the same for the amount %j as for 10', (value) => {
    expect(hash(withField(rich, 'amount.value', value))).toBe(hash(rich));
  });

  it.each(['10.00', '1.0000e1', '10.000'])(
    'is the same for the literal %s, if it is a decimal',
    (literal) => {
      const text = JSON.stringify(rich).replace('"value":10', `"value":${literal}`);
      if (literal.includes('e')) expect(() => hashText(text)).toThrow('without exponent');
      else expect(hashText(text)).toBe(hash(rich));
    },
  );

  it.each(['0000', '999', undefined])('leaves out the security code: %s', (code) => {
    expect(hash(withField(rich, `${CARD_DATA}.security_code`, code))).toBe(hash(rich));
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
  ])('is another when %s is %j', (path, value) => {
    expect(hash(withField(rich, path, value))).not.toBe(hash(rich));
  });

  it('is another under another key, so that it tells nobody what was sent', () => {
    expect(hashText(JSON.stringify(rich), Buffer.alloc(32, 2))).not.toBe(hash(rich));
  });

  it('leaves the request as it was', () => {
    const request = decode(parseJson(Buffer.from(JSON.stringify(rich))));
    const before = structuredClone(request);
    hashRequest(KEY, request);
    expect(request).toEqual(before);
  });
});

const held: KeyHolder = {
  paymentId: 'p',
  requestHash: Buffer.alloc(32, 1),
  record: Buffer.from('record'),
  answer: undefined,
};

describe('a held key', () => {
  it('is refused to another request', () => {
    expect(() => requireSameRequest(held, Buffer.alloc(32, 1))).not.toThrow();
    expect(() => requireSameRequest(held, Buffer.alloc(32, 2))).toThrow(
      expect.objectContaining({ reason: 'IDEMPOTENCY_KEY_REUSED' }),
    );
  });

  const patience = { waitMs: 1_000, retryAfterS: 1, pause: async () => {} };

  it('is read again until there is an answer', async () => {
    const answer = Buffer.from('answer');
    let reads = 0;
    const read = async () => ({ ...held, ...(++reads === 3 && { answer }) });
    expect(await awaitAnswer(held, read, patience)).toMatchObject({ answer });
    expect(reads).toBe(3);
  });

  it('is in progress once patience ends', async () => {
    const read = async () => held;
    await expect(awaitAnswer(held, read, { ...patience, waitMs: 0 })).rejects.toMatchObject({
      reason: 'REQUEST_IN_PROGRESS',
      retryAfterS: 1,
    });
  });
});
