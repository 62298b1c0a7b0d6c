import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { cardAttempt } from '../attempts.ts';
import { openedForEach } from '../under-test.ts';
import { refusal } from './answers.ts';
import { cardWith, lookUp, openStripe, paid } from './stripe-under-test.ts';

const APPROVE = '4242424242424242';
const CREATE = /POST .*intents$/;
const METHOD = /POST .*methods$/;
const CONFIRM = /confirm$/;

const stripe = openedForEach(openStripe);

const requestsOf = (call: RegExp) => stripe.fake.requests.filter((request) => call.test(request.call));
const withPayer = (payer: object) =>
  cardAttempt(APPROVE, { customerPayer: create(CustomerPayerSchema, payer) });
const refusing = (param: string) => ({ answer: { status: 400, body: refusal({ param }) } });

describe('a soft descriptor', () => {
  it.each([
    ['Hotel Tequendama', 'Hotel Tequendama'],
    ['Café Müller', 'Cafe Muller'],
    ['Straße & Bjørn Łódź', 'Strasse & Bjorn Lodz'],
    ['ßẞæÆœŒøØłŁ', 'ssSSaeAEoeOEoOlL'],
    ['đĐðÐþÞı', 'dDdDthTHi'],
    ['Магазин Shop', 'Shop'],
    ['<"Shop\\*\'>', 'Shop'],
    ['a very long name of a shop', 'a very long name of a'],
    ['1234567890123456789012 Shop', null],
    ['12345', null],
    ['Магазин', null],
    ['日本', null],
    ['...', null],
    ['😀', null],
  ])(
    'a soft descriptor is sent in the form that Stripe accepts, and never costs the sale: %s',
    async (softDescriptor, sent) => {
      await paid(stripe, cardWith(APPROVE, { softDescriptor }));
      expect(stripe.intent().statement_descriptor_suffix).toBe(sent);
      expect(requestsOf(CREATE)).toHaveLength(1);
    },
  );
});

describe('a shipping address', () => {
  const PAYER = {
    firstName: 'Ana',
    lastName: 'Gómez',
    shippingAddress: { addressLine1: '7-35 # 12', city: 'Bogotá', country: 'CO' },
  };
  const SHIPPING = { name: 'Ana Gómez', address: { line1: '7-35 # 12', city: 'Bogotá', country: 'CO' } };

  it('a shipping address is sent with the intent, which charges nothing, not with the confirmation', async () => {
    await paid(stripe, withPayer(PAYER));
    expect(requestsOf(CREATE)[0]?.fields.shipping).toEqual(SHIPPING);
    expect(requestsOf(CONFIRM)[0]?.fields).not.toHaveProperty('shipping');
  });

  it.each(['shipping[address][line1]', 'shipping[address][country]', 'shipping[phone]', 'shipping'])(
    'a payment whose shipping address Stripe refuses (%s) is made without the address, and found by a look-up',
    async (param) => {
      stripe.fake.fail(CREATE, refusing(param));
      const { attempt } = await paid(stripe, withPayer(PAYER));
      const [first, second, ...others] = requestsOf(CREATE);
      expect([first?.fields.shipping, second?.fields.shipping, others]).toEqual([SHIPPING, undefined, []]);
      expect(second?.key).toBe(first?.key);
      expect(requestsOf(CONFIRM)).toHaveLength(1);
      stripe.fake.advance(120_000);
      expect(await lookUp(stripe, attempt, undefined)).toMatchObject({ kind: 'approved' });
    },
  );
});

describe('fields that Stripe refuses before charging', () => {
  it.each([
    [{ email: 'ana@example', phone: { number: '300' } }, { phone: '300' }],
    [{ email: 'ana@example.com', phone: { number: '3'.repeat(21) } }, { email: 'ana@example.com' }],
  ])('a refused field is left out of a second request under a separate key: %j', async (payer, sent) => {
    const { attempt } = await paid(stripe, withPayer(payer));
    const [first, second, ...others] = requestsOf(METHOD);
    expect(second?.fields.billing_details).toEqual({ name: 'Ana Gómez', ...sent });
    expect([first?.key, second?.key]).toEqual([
      `${attempt.transactionId}:pm`,
      `${attempt.transactionId}:pm:2`,
    ]);
    expect(others).toEqual([]);
    expect(requestsOf(CONFIRM)).toHaveLength(1);
  });

  it('only one refused field is left out: a second refusal is final, and nothing is charged', async () => {
    const attempt = withPayer({ email: 'ana@example', phone: { number: '3'.repeat(21) } });
    expect(await stripe.connection.pay(attempt)).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    expect(requestsOf(METHOD)).toHaveLength(2);
    expect(requestsOf(CONFIRM)).toEqual([]);
  });

  it.each(['card[number]', 'type', 'billing_details[tax_id]', 'billing_details[constructor]'])(
    'a refused field that is part of the payment or was not sent is not left out: %s',
    async (param) => {
      stripe.fake.fail(METHOD, refusing(param));
      expect(await stripe.connection.pay(cardAttempt(APPROVE))).toMatchObject({ kind: 'not_sent' });
      expect(requestsOf(METHOD)).toHaveLength(1);
    },
  );

  it('a refused field is left out of the intent under the same key, so that a payment has one intent', async () => {
    stripe.fake.fail(CREATE, refusing('statement_descriptor_suffix'));
    const { attempt } = await paid(stripe, cardWith(APPROVE, { softDescriptor: 'Shop' }));
    expect(stripe.intent()).toMatchObject({ status: 'succeeded', statement_descriptor_suffix: null });
    expect(requestsOf(CREATE).map(({ key }) => key)).toEqual([attempt.transactionId, attempt.transactionId]);
  });

  it('a refused field does not prevent a look-up from finding the intent created without it', async () => {
    stripe.fake.fail(CREATE, refusing('statement_descriptor_suffix'));
    const { attempt, reference } = await paid(stripe, cardWith(APPROVE, { softDescriptor: 'Shop' }));
    expect(await lookUp(stripe, attempt, undefined, { close: true })).toMatchObject({ kind: 'unknown' });
    stripe.fake.advance(120_000);
    expect(await lookUp(stripe, attempt, undefined, { close: true })).toMatchObject({
      kind: 'approved',
      reference,
    });
  });

  it('a refused field does not prevent a look-up from closing a payment that was never sent', async () => {
    const attempt = cardWith(APPROVE, { softDescriptor: 'Shop' });
    stripe.fake.fail(CREATE, refusing('statement_descriptor_suffix'));
    expect(await lookUp(stripe, attempt, undefined, { close: true })).toMatchObject({ kind: 'not_sent' });
    expect(stripe.intent()).toMatchObject({ status: 'canceled' });
  });

  it('a refused field is not left out of a confirmation, which charges', async () => {
    stripe.fake.fail(CONFIRM, refusing('return_url'));
    expect(await stripe.connection.pay(cardAttempt(APPROVE))).toMatchObject({ kind: 'not_sent' });
    expect(requestsOf(CONFIRM)).toHaveLength(1);
  });
});
