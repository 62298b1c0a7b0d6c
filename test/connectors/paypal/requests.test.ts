import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { Ajv } from 'ajv';
import { beforeAll, describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import { additionalData, operationOn, redirectAttempt } from '../attempts.ts';
import { lookUp, lookUpOperation } from '../under-test.ts';
import { disputeEvent } from './fake-disputes.ts';
import type { Seen } from './fake-paypal.ts';
import { openPayPal, type PayPalUnderTest, paid, sent } from './paypal-under-test.ts';

const SPECS = join(import.meta.dirname, '../../../../shared/providers/specs');
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

/** Every kind of request that the connector makes, by the flow that makes it. */
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
  notification: (paypal) => {
    const { connection, fake } = paypal;
    return Promise.resolve(connection.readNotification?.(fake.notify(disputeEvent({})), Date.now()));
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
  it.each(Object.keys(FLOWS).filter((name) => name !== 'notification'))(
    'are those that are kept for review: %s',
    async (name) => {
      const shown = seen.get(name)?.map(({ call, requestId, headers, body }) => ({
        call: call.replace(/\b(?!0{17})[A-Z0-9]{17}\b/, '…'),
        requestId,
        prefer: headers.prefer,
        type: headers['content-type'],
        authorization: String(headers.authorization).split(' ')[0],
        body: body.startsWith('{') ? JSON.parse(body) : body,
      }));
      await expect(`${JSON.stringify(shown, undefined, 2)}\n`).toMatchFileSnapshot(`golden/${name}.json`);
    },
  );

  it('carry an id of at most 108 characters wherever they make something', () => {
    for (const { call, requestId } of [...seen.values()].flat()) {
      if (!call.startsWith('POST /v2/')) continue;
      expect(requestId).toMatch(/^[0-9a-f-]{36}(:capture)?$/);
    }
  });

  describe.skipIf(!existsSync(SPECS))(
    "are valid by PayPal's schema (skipped where the schema is not)",
    () => {
      it.each(Object.keys(FLOWS))('%s', (name) => {
        const requests = (seen.get(name) ?? []).filter(({ call }) => !call.endsWith('/oauth2/token'));
        expect(requests.length).toBeGreaterThan(0);
        for (const { call, body } of requests) {
          const { spec, schema } = operationOf(call);
          if (!schema) continue;
          const ajv = new Ajv({ strict: false, validateFormats: false });
          ajv.addSchema({ $id: 'spec', components: spec.components });
          const validate = ajv.compile(absolute(schema) as JsonObject);
          const sentBody = JSON.parse(body) as JsonObject;
          validate(sentBody);
          expect([call, validate.errors]).toEqual([call, null]);
          expect([call, unknownFields(sentBody, schema, spec)]).toEqual([call, []]);
        }
      });

      it('and would not be with a field that there is not, or a value of another kind', () => {
        const { spec, schema } = operationOf('POST /v2/checkout/orders');
        const order = { purchase_units: [{ amount: { value: '1', colour: 'red' } }] };
        expect(unknownFields(order, schema ?? {}, spec)).toEqual(['purchase_units.amount.colour']);
      });
    },
  );
});

/** The document that has a call, and the schema of the call's body. */
function operationOf(call: string): { spec: JsonObject; schema: JsonObject | undefined } {
  const [method = '', path = ''] = call.split(' ');
  const template = path.replace(/\/(orders|captures|refunds|authorizations)\/[^/]+/, '/$1/{id}');
  for (const file of ['paypal-orders-v2', 'paypal-payments-v2', 'paypal-webhooks-v1']) {
    const spec = JSON.parse(readFileSync(join(SPECS, `${file}.json`), 'utf8'));
    const known = Object.keys(spec.paths).find((it) => it.replace(/\{\w+\}/, '{id}') === template) ?? '';
    const operation = spec.paths[known]?.[method.toLowerCase()];
    if (operation) return { spec, schema: operation.requestBody?.content['application/json'].schema };
  }
  throw new Error(`the schema has no ${call}`);
}

function absolute(schema: JsonValue): JsonValue {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"spec#/components'));
}

/** A schema's parts, references and all. */
function partsOf(schema: JsonObject, spec: JsonObject): readonly JsonObject[] {
  const { $ref: reference, allOf } = schema;
  if (typeof reference === 'string') {
    const name = reference.split('/').at(-1) ?? '';
    const { schemas } = spec.components as { schemas: Record<string, JsonObject> };
    return partsOf(schemas[name] ?? {}, spec);
  }
  return [schema, ...((allOf as JsonObject[] | undefined) ?? []).flatMap((part) => partsOf(part, spec))];
}

/** Fields that a schema does not name: PayPal's allow any, so that validation alone finds no misspelt one. */
function unknownFields(value: JsonValue, schema: JsonObject, spec: JsonObject, path = ''): string[] {
  const parts = partsOf(schema, spec);
  if (Array.isArray(value)) {
    const items = parts.find((part) => part.items)?.items as JsonObject;
    return value.flatMap((inner) => unknownFields(inner, items, spec, path));
  }
  if (typeof value !== 'object' || value === null) return [];
  if (parts.some(({ additionalProperties }) => additionalProperties === true)) return [];
  const named: JsonObject = Object.assign({}, ...parts.map(({ properties }) => properties ?? {}));
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = path === '' ? name : `${path}.${name}`;
    return name in named ? unknownFields(inner, named[name] as JsonObject, spec, at) : [at];
  });
}
