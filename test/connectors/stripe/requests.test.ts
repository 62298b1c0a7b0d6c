import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { Ajv, type ValidateFunction } from 'ajv';
import { beforeAll, describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import { additionalData, operationOn } from '../attempts.ts';
import { lookUpOperation } from '../under-test.ts';
import type { Seen } from './fake-stripe.ts';
import { AUTHORIZE, cardWith, lookUp, openStripe, paid } from './stripe-under-test.ts';

const SPEC = join(import.meta.dirname, '../../../../shared/providers/specs/stripe-2023-08-16.json');
const FORM = 'application/x-www-form-urlencoded';
const APPROVE = '4242424242424242';
const OPERATION_ID = '5d0c1a52-0f39-4a5b-9d7b-5f5d1c9c2a22';

const payer = create(CustomerPayerSchema, {
  firstName: 'Ana',
  lastName: 'Gómez',
  email: 'ana@example.com',
  phone: { countryCode: '57', number: '3001234567' },
  billingAddress: {
    addressLine1: 'Carrera 7 # 71-21',
    addressLine2: 'Torre B',
    neighborhood: 'Chapinero',
    city: 'Bogotá',
    state: 'DC',
    zipCode: '110231',
    country: 'CO',
  },
  shippingAddress: { addressLine1: 'Calle 10 # 5-51', city: 'Medellín', country: 'CO' },
});

function attempt(options: object = {}, over: Partial<PaymentAttempt> = {}): PaymentAttempt {
  return {
    ...cardWith(APPROVE, options),
    transactionId: '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11',
    paymentId: '1c9d6a52-0f39-4a5b-9d7b-5f5d1c9c2a33',
    ...over,
  };
}

type Stripe = Awaited<ReturnType<typeof openStripe>>;

/** Every kind of request that the connector makes, by the flow that makes it. */
const FLOWS: Record<string, (stripe: Stripe) => Promise<unknown>> = {
  purchase: ({ connection }) =>
    connection.pay(
      attempt(
        { softDescriptor: 'Hotel Tequendama' },
        {
          customerPayer: payer,
          additionalData: additionalData({ airline: { pnr: 'ABC123' } }),
          metadata: [{ key: 'sales channel', value: 'app' }],
        },
      ),
    ),
  authorization: ({ connection }) => connection.pay(attempt(AUTHORIZE)),
  'plain-purchase': ({ connection }) => {
    const bare = { description: '', merchantOrderId: '', merchantReference: '' };
    return connection.pay(attempt({}, { ...bare, customerPayer: create(CustomerPayerSchema) }));
  },
  installments: ({ connection }) => connection.pay(attempt({ installments: 6 })),
  'three-d-secure-made-elsewhere': ({ connection }) =>
    connection.pay(
      attempt({
        threeDSecure: {
          version: '2.2.0',
          cryptogram: 'M6+990I6FLD8Y6rZz9d5QbfrMNY=',
          electronicCommerceIndicator: '05',
          directoryServerTransactionId: 'ds-transaction',
        },
      }),
    ),
  'three-d-secure-asked-for': ({ connection }) => connection.pay(attempt({ threeDSecureSetupId: 'setup' })),
  capture: async (stripe) => {
    const { reference } = await paid(stripe, attempt(AUTHORIZE));
    const money = { minorUnits: 100_000n, currency: 'USD' };
    const operation = operationOn(attempt(), reference, { transactionId: OPERATION_ID, money });
    await stripe.connection.capture?.(operation);
    await lookUpOperation(stripe, 'capture', operation);
  },
  cancel: async (stripe) => {
    const { reference } = await paid(stripe, attempt(AUTHORIZE));
    const reason = 'REQUESTED_BY_CUSTOMER';
    const operation = operationOn(attempt(), reference, { transactionId: OPERATION_ID, reason });
    await stripe.connection.cancel?.(operation);
  },
  refund: async (stripe) => {
    const { reference } = await paid(stripe, attempt());
    const operation = operationOn(attempt(), reference, { transactionId: OPERATION_ID, reason: 'DUPLICATE' });
    await lookUpOperation(stripe, 'refund', operation, { close: true });
    await stripe.connection.refund?.({ ...operation, transactionId: OPERATION_ID.replace('5d', '6d') });
  },
  'look-up': async (stripe) => {
    await lookUp(stripe, attempt(), undefined, { close: true });
    await lookUp(stripe, attempt(), undefined, { ageMs: 2 * 86_400_000 });
    await stripe.connection.probe?.();
  },
};

const seen = new Map<string, Seen[]>();

beforeAll(async () => {
  for (const [name, flow] of Object.entries(FLOWS)) {
    const stripe = await openStripe();
    await flow(stripe);
    // The first two go out at once.
    const requests = [...stripe.fake.requests];
    if (/methods$/.test(requests[1]?.call ?? '')) requests.splice(0, 2, ...requests.slice(0, 2).reverse());
    seen.set(name, requests);
    await stripe.close();
  }
});

describe("the connector's requests", () => {
  it.each(Object.keys(FLOWS))('are those that are kept for review: %s', async (name) => {
    const shown = seen.get(name)?.map(({ call, key, fields, headers }) => ({
      call,
      key,
      version: headers['stripe-version'],
      type: headers['content-type'],
      fields,
    }));
    const text = JSON.stringify(shown, undefined, 2).replace(/\b(pi|pm)_\w{16}/g, '$1_…');
    await expect(`${text}\n`).toMatchFileSnapshot(`golden/${name}.json`);
  });

  it.each(Object.keys(FLOWS))('are all accepted by the fake: %s', async (name) => {
    expect(seen.get(name)?.length).toBeGreaterThan(2);
  });

  describe.skipIf(!existsSync(SPEC))("are valid by Stripe's schema (skipped where the schema is not)", () => {
    let validatorOf: (call: string) => ValidateFunction;
    beforeAll(() => {
      validatorOf = readSchema();
    });

    it.each(Object.keys(FLOWS))('%s', (name) => {
      for (const { call, fields } of seen.get(name) ?? []) {
        const validate = validatorOf(call);
        const { known, younger } = withoutYounger(fields);
        expect(younger).toBe(name === 'three-d-secure-made-elsewhere' && call.endsWith('/confirm'));
        validate(known);
        expect([call, validate.errors]).toEqual([call, null]);
      }
    });

    it('and would not be with a field that there is not', () => {
      const validate = validatorOf('POST /v1/payment_intents/pi_1/confirm');
      validate({ payment_method_options: { card: { three_d_secure: {} } } });
      expect(validate.errors).not.toBeNull();
    });
  });
});

/** Results of 3-D Secure made elsewhere are younger than the schema at hand: they are held by its successor's docs only. */
function withoutYounger(fields: JsonObject): { known: JsonObject; younger: boolean } {
  const known = structuredClone(fields);
  const card = (known.payment_method_options as JsonObject | undefined)?.card as JsonObject | undefined;
  const younger = card?.three_d_secure !== undefined;
  delete card?.three_d_secure;
  return { known, younger };
}

type Operation = {
  parameters?: { name: string; in: string; schema: JsonObject }[];
  requestBody?: { content: Record<string, { schema: JsonObject }> };
};

function readSchema(): (call: string) => ValidateFunction {
  const spec = JSON.parse(readFileSync(SPEC, 'utf8'));
  const ajv = new Ajv({ strict: false, coerceTypes: true, validateFormats: false });
  ajv.addSchema({ $id: 'spec', components: spec.components });
  return (call) => {
    const [method = '', path = ''] = call.split(' ');
    const template = path.replace(/(intents|refunds)\/(?!search)[^/]+/, '$1/{id}');
    const known = Object.keys(spec.paths).find((it) => it.replace(/\{\w+\}/, '{id}') === template) ?? '';
    const operation: Operation | undefined = spec.paths[known]?.[method.toLowerCase()];
    if (!operation) throw new Error(`the schema has no ${call}`);
    const body = operation.requestBody?.content[FORM]?.schema;
    return ajv.compile(closed(method === 'POST' ? (body ?? {}) : queryOf(operation)) as JsonObject);
  };
}

function queryOf({ parameters = [] }: Operation): JsonObject {
  const query = parameters.filter((it) => it.in === 'query');
  return { type: 'object', properties: Object.fromEntries(query.map(({ name, schema }) => [name, schema])) };
}

/** The schema, in which objects take the fields that it names and no others. */
function closed(schema: JsonValue): JsonValue {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  const isObject = schema.type === 'object' && typeof schema.properties === 'object';
  return isObject ? { additionalProperties: false, ...inner } : inner;
}
