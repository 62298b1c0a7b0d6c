import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { beforeAll, describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import {
  type CardMethod,
  intentFields,
  paymentMethodFields,
  refundFields,
} from '#src/connectors/stripe/to-provider.ts';
import { additionalData, operationOn, tokenAttempt } from '../attempts.ts';
import { lookUpOperation } from '../under-test.ts';
import type { Seen } from './fake-stripe.ts';
import {
  AUTHORIZE,
  cardWith,
  codeAttempt,
  LOCAL_TYPES,
  lookUp,
  openStripe,
  paid,
} from './stripe-under-test.ts';

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

/** When the codes are made, by the fake's clock and by ours: close to midnight in São Paulo, and past it in London. */
const MADE_AT_MS = Date.UTC(2029, 11, 29, 2, 30);

for (const type of LOCAL_TYPES) {
  FLOWS[type.toLowerCase()] = async (stripe) => {
    stripe.fake.advance(MADE_AT_MS - stripe.fake.nowMs());
    const ids = { transactionId: attempt().transactionId, paymentId: attempt().paymentId };
    const code = codeAttempt(type, ids, MADE_AT_MS);
    const outcome = await stripe.connection.pay(code);
    await lookUp(stripe, code, undefined);
    await lookUp(stripe, code, outcome, { close: true, payerTimeLeftMs: -1 });
  };
}
for (const [type, token] of Object.entries({
  GOOGLE_PAY: { paymentMethodData: { tokenizationData: { token: '{"id":"tok_1","object":"token"}' } } },
  APPLE_PAY: { paymentData: { data: 'ciphertext' }, transactionIdentifier: 'AB12' },
})) {
  FLOWS[type.toLowerCase().replace('_', '-')] = async (stripe) => {
    stripe.fake.ledger.tokens.set('tok_1', { wallet: 'google_pay', number: APPROVE });
    const { transactionId, paymentId } = attempt();
    const options = { softDescriptor: 'Shop' };
    await stripe.connection.pay(
      tokenAttempt(type, JSON.stringify(token), { transactionId, paymentId }, options),
    );
  };
}

const seen = new Map<string, Seen[]>();

beforeAll(async () => {
  for (const [name, flow] of Object.entries(FLOWS)) {
    const stripe = await openStripe({ settings: { apple_pay_tokens: true } });
    await flow(stripe);
    // The first two requests are sent at the same time, in either order.
    const requests = [...stripe.fake.requests];
    const at = requests.findIndex(({ call }) => /methods$/.test(call));
    if (at > 0 && requests[at - 1]?.call === 'POST /v1/payment_intents') {
      requests.splice(at - 1, 2, ...requests.slice(at - 1, at + 1).reverse());
    }
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
    const text = JSON.stringify(shown, undefined, 2).replace(/\b(pi|pm|cus|tok)_\w{16}/g, '$1_…');
    await expect(`${text}\n`).toMatchFileSnapshot(`golden/${name}.json`);
  });

  it.each(Object.keys(FLOWS))('the requests to Stripe are all accepted by the fake: %s', async (name) => {
    expect(seen.get(name)?.length).toBeGreaterThan(2);
  });
});

describe('the fields of a payment at Stripe', () => {
  type Payer = MessageInitShape<typeof CustomerPayerSchema>;
  const withPayer = (customerPayer: Payer, over: object = {}) =>
    attempt(over, { customerPayer: create(CustomerPayerSchema, customerPayer) });
  const methodOf = (made: PaymentAttempt) => made.method as CardMethod;
  const billing = (made: PaymentAttempt) => paymentMethodFields(made, methodOf(made)).billing_details;

  it.each<[Payer, object]>([
    [{}, { name: 'Ana Gómez' }],
    [{ phone: { countryCode: '+57', number: '300' } }, { name: 'Ana Gómez', phone: '+57300' }],
    [{ phone: { number: '300' } }, { name: 'Ana Gómez', phone: '300' }],
    [{ phone: { countryCode: '57' } }, { name: 'Ana Gómez' }],
    [
      { billingAddress: { addressLine2: 'Torre B', state: 'DC' } },
      { name: 'Ana Gómez', address: { line2: 'Torre B', state: 'DC' } },
    ],
    [
      { billingAddress: { neighborhood: 'Chapinero', zipCode: '110231' } },
      { name: 'Ana Gómez', address: { line2: 'Chapinero', postal_code: '110231' } },
    ],
  ])('the fields of a payment at Stripe contain only what is known about the payer: %j', (payer, sent) => {
    expect(billing(withPayer(payer))).toEqual(sent);
  });

  it('the fields of a payment at Stripe leave out an unknown name and an absent security code', () => {
    const made = attempt({ holderName: '' });
    const { card } = methodOf(made);
    const method = { ...methodOf(made), card: { ...card, securityCode: undefined } };
    expect(paymentMethodFields(made, method)).toEqual({
      type: 'card',
      card: { number: APPROVE, exp_month: 12, exp_year: 2030 },
      billing_details: { email: 'ana@example.com' },
    });
  });

  const PLACE = { addressLine1: 'Calle 10', country: 'CO' };
  it.each<[Payer, object | undefined]>([
    [
      { firstName: 'Ana', shippingAddress: PLACE },
      { name: 'Ana', address: { line1: 'Calle 10', country: 'CO' } },
    ],
    [{ shippingAddress: PLACE }, undefined],
    [{ firstName: 'Ana' }, undefined],
    [{ firstName: 'Ana', shippingAddress: { country: 'CO' } }, undefined],
  ])(
    'the fields of a payment at Stripe have a shipping name and a street, or neither: %j',
    (payer, shipping) => {
      const made = withPayer(payer);
      expect(intentFields(made, made.money, methodOf(made)).shipping).toEqual(shipping);
    },
  );

  it('the fields of a payment at Stripe have a description of at most 1000 characters', () => {
    const made = attempt({}, { description: 'd'.repeat(1_001) });
    const fields = intentFields(made, made.money, methodOf(made));
    expect(fields.description).toBe('d'.repeat(1_000));
  });

  it('the fields of a refund at Stripe leave out an absent reason and reference', () => {
    const operation = operationOn(attempt(), 'pi_1', { merchantReference: '' });
    const { transactionId: transaction_id, money } = operation;
    expect(refundFields(operation, money, 'pi_1')).toEqual({
      payment_intent: 'pi_1',
      amount: 300_000,
      metadata: { transaction_id },
    });
  });
});
