import { create } from '@bufbuild/protobuf';
import { beforeAll, describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import { additionalData, operationOn } from '../attempts.ts';
import { lookUpOperation } from '../under-test.ts';
import type { Seen } from './fake-stripe.ts';
import { AUTHORIZE, cardWith, lookUp, openStripe, paid } from './stripe-under-test.ts';

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

/** Every kind of request that the connector makes, keyed by the flow that makes it. */
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
    // The first two requests are sent at the same time, in either order.
    const requests = [...stripe.fake.requests];
    if (/methods$/.test(requests[1]?.call ?? '')) requests.splice(0, 2, ...requests.slice(0, 2).reverse());
    seen.set(name, requests);
    await stripe.close();
  }
});

describe("the connector's requests", () => {
  it.each(Object.keys(FLOWS))('the requests to Stripe match the reviewed files: %s', async (name) => {
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

  it.each(Object.keys(FLOWS))('the requests to Stripe are all accepted by the fake: %s', async (name) => {
    expect(seen.get(name)?.length).toBeGreaterThan(2);
  });
});
