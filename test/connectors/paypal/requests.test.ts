import { type Schema, validateAndMap, validateAndUnmap } from '@apimatic/schema';
import { create } from '@bufbuild/protobuf';
import { beforeAll, describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { additionalData, operationOn, redirectAttempt } from '../attempts.ts';
import { lookUp, lookUpOperation } from '../under-test.ts';
import type { Seen } from './fake-paypal.ts';
import { openPayPal, type PayPalUnderTest, paid, sent } from './paypal-under-test.ts';

// The package does not export the library's schemas.
const MODELS = '../../../node_modules/@paypal/paypal-server-sdk/dist/esm/models';
const { orderRequestSchema } = await import(`${MODELS}/orderRequest.js`);
const { orderCaptureRequestSchema } = await import(`${MODELS}/orderCaptureRequest.js`);
const { refundRequestSchema } = await import(`${MODELS}/refundRequest.js`);
const TRANSACTION = '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11';
const REFUND = '5d0c1a52-0f39-4a5b-9d7b-5f5d1c9c2a22';

const payer = create(CustomerPayerSchema, {
  firstName: 'Ana',
  lastName: 'Gómez',
  email: 'ana@example.com',
  shippingAddress: {
    addressLine1: 'Carrera 7 # 71-21',
    addressLine2: 'Torre B',
    city: 'Bogotá',
    state: 'DC',
    zipCode: '110231',
    country: 'CO',
  },
});
const items = additionalData({
  order: {
    shippingAmount: { value: '100' },
    feeAmount: { value: '50' },
    items: [
      { name: 'Night', quantity: 2, unitAmount: { value: '1399.995' }, skuCode: 'N-1' },
      { name: 'Breakfast', quantity: 1, unitAmount: { value: '50.00' } },
    ],
  },
});

function attempt(over: Partial<PaymentAttempt> = {}): PaymentAttempt {
  return redirectAttempt({ transactionId: TRANSACTION, ...over });
}

/** Every kind of request that the connector makes, keyed by the flow that makes it. */
const FLOWS: Record<string, (paypal: PayPalUnderTest) => Promise<unknown>> = {
  payment: (paypal) => paid(paypal, attempt()),
  'payment-with-everything': (paypal) =>
    sent(paypal, attempt({ customerPayer: payer, additionalData: items })),
  'plain-payment': (paypal) =>
    sent(
      paypal,
      attempt({
        description: '',
        customerPayer: create(CustomerPayerSchema),
        money: { minorUnits: 5_000n, currency: 'JPY' },
      }),
    ),
  'items-that-do-not-add-up': (paypal) =>
    sent(paypal, attempt({ additionalData: items, money: { minorUnits: 300_001n, currency: 'USD' } })),
  'long-texts': (paypal) => sent(paypal, attempt({ description: `${'x'.repeat(126)}😀 and more` })),
  refund: async (paypal) => {
    const { reference } = await paid(paypal, attempt());
    const money = { minorUnits: 100_000n, currency: 'USD' };
    const description = 'One night\nless';
    const operation = operationOn(attempt(), reference, { transactionId: REFUND, money, description });
    await paypal.connection.refund?.(operation);
    await lookUpOperation(paypal, 'refund', operation);
  },
  'look-up': async (paypal) => {
    await lookUp(paypal, attempt(), undefined);
    await paypal.connection.probe?.();
  },
};

const seen = new Map<string, readonly Seen[]>();

beforeAll(async () => {
  for (const [name, flow] of Object.entries(FLOWS)) {
    const settings = { brand_name: 'Hotel Tequendama', locale: 'es-CO', send_shipping_address: true };
    const paypal = await openPayPal(name === 'payment-with-everything' ? { settings } : {});
    await flow(paypal);
    seen.set(name, paypal.fake.requests);
    await paypal.close();
  }
});

describe("the connector's requests", () => {
  it.each(Object.keys(FLOWS))('the requests to PayPal match the reviewed files: %s', async (name) => {
    const shown = seen.get(name)?.map(({ call, requestId, headers, body }) => ({
      call: call.replace(/\b(?!0{17})[A-Z0-9]{17}\b/, '…'),
      requestId,
      prefer: headers.prefer,
      type: headers['content-type'],
      authorization: String(headers.authorization).split(' ')[0],
      body: body.startsWith('{') ? JSON.parse(body) : body,
    }));
    await expect(`${JSON.stringify(shown, undefined, 2)}\n`).toMatchFileSnapshot(`golden/${name}.json`);
  });

  it('the requests to PayPal that create something have an ID of at most 108 characters', () => {
    for (const { call, requestId } of [...seen.values()].flat()) {
      if (!call.startsWith('POST /v2/')) continue;
      expect(requestId).toMatch(/^[0-9a-f-]{36}(:capture)?$/);
    }
  });

  it.each(Object.keys(FLOWS))(
    'the requests to PayPal are valid for its own library, and contain no field unknown to it: %s',
    (name) => {
      for (const { call, body } of seen.get(name) ?? []) {
        const schema = schemaOf(call);
        if (!schema) continue;
        expect([call, known(JSON.parse(body), schema)]).toEqual([call, JSON.parse(body)]);
      }
    },
  );

  it("the check with PayPal's library finds a misspelled field and a value of another type", () => {
    const unit = { amount: { currency_code: 'USD', value: '1' } };
    const order = { intent: 'CAPTURE', purchase_units: [unit] };
    const misspelt = { ...order, purchase_units: [{ ...unit, colour: 'red' }] };
    expect(known(misspelt, orderRequestSchema)).toEqual(order);
    expect(known({ ...order, intent: 7 }, orderRequestSchema)).toMatchObject([{ path: ['intent'] }]);
  });
});

function schemaOf(call: string): Schema<unknown> | undefined {
  if (/POST .*\/orders$/.test(call)) return orderRequestSchema;
  if (/POST .*\/capture$/.test(call)) return orderCaptureRequestSchema;
  return /POST .*\/refund$/.test(call) ? refundRequestSchema : undefined;
}

/** Returns a body as PayPal's library reads and writes it, without unknown fields, or the library's errors. */
function known(body: object, schema: Schema<unknown>): unknown {
  const read = validateAndMap(body, schema);
  if (read.errors) return read.errors;
  const written = validateAndUnmap(read.result, schema);
  return written.errors || written.result;
}
