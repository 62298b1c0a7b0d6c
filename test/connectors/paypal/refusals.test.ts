import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { redirectAttempt } from '../attempts.ts';
import { lookUp, openedForEach } from '../under-test.ts';
import { failure, refusedFields, unprocessable } from './fake-ledger.ts';
import type { Trouble } from './fake-paypal.ts';
import { approved, CAPTURE, CREATE, complete, openPayPal, paid, sent } from './paypal-under-test.ts';

const paypal = openedForEach(openPayPal);

describe('orders that PayPal refuses', () => {
  const withPayer = (payer: object) => redirectAttempt({ customerPayer: create(CustomerPayerSchema, payer) });
  const created = () => paypal.fake.requests.filter(({ call }) => CREATE.test(call));

  it('an order that PayPal refuses for an optional field is created without the field, with a separate ID', async () => {
    const { attempt, orderId } = await sent(paypal, withPayer({ firstName: 'Ana', email: 'ana@example' }));
    const [first, second, ...others] = created();
    expect([first?.requestId, second?.requestId]).toEqual([
      attempt.transactionId,
      `${attempt.transactionId}:2`,
    ]);
    expect(JSON.parse(second?.body ?? '').payment_source.paypal).toMatchObject({
      name: { given_name: 'Ana' },
    });
    expect(second?.body).not.toContain('ana@example');
    expect(others).toEqual([]);
    // A look-up without a known order finds the same order.
    expect(await lookUp(paypal, attempt, undefined)).toMatchObject({
      kind: 'awaits_payer',
      reference: orderId,
    });
  });

  it.each([400, 422])(
    'an order that PayPal refuses with %i for several optional fields is created without them',
    async (status) => {
      const named = [
        '/payment_source/paypal/name/given_name',
        "/purchase_units/@reference_id=='x'/description",
      ];
      paypal.fake.trouble(CREATE, { ...refusedFields(named), status });
      await sent(paypal);
      const { payment_source: source, purchase_units: units } = JSON.parse(created()[1]?.body ?? '');
      expect([source.paypal.name, units[0].description, units[0].amount.value]).toEqual([
        {},
        undefined,
        '3000.00',
      ]);
    },
  );

  it.each([
    [['/purchase_units/0/amount/value'], '/purchase_units/0/amount/value'],
    [
      ['/payment_source/paypal/email_address', '/purchase_units/0/amount/value'],
      '/payment_source/paypal/email_address',
    ],
    [['/purchase_units/0/shipping/address'], '/purchase_units/0/shipping/address'],
    [[''], 'INVALID_PARAMETER_SYNTAX'],
  ])('an order that PayPal refuses for a required field is not sent again: %j', async (fields, refused) => {
    paypal.fake.trouble(CREATE, refusedFields(fields));
    expect(await paypal.connection.pay(withPayer({ email: 'ana@example.com' }))).toMatchObject({
      kind: 'not_sent',
      because: 'turned_away',
      refused,
    });
    expect(created()).toHaveLength(1);
  });
});

describe('a capture that PayPal refuses with an unknown issue', () => {
  const UNKNOWN = unprocessable('NEW_ISSUE_OF_PAYPAL');

  it('a capture refused with an unknown issue was not made if its order says so, and can be made later', async () => {
    const { attempt, orderId } = await approved(paypal);
    paypal.fake.trouble(CAPTURE, UNKNOWN);
    expect(await complete(paypal, attempt, orderId)).toMatchObject({
      kind: 'not_sent',
      refused: 'NEW_ISSUE_OF_PAYPAL',
    });
    expect(await complete(paypal, attempt, orderId)).toMatchObject({ kind: 'approved' });
  });

  it('a capture refused with an unknown issue was not made if its order still waits for the payer', async () => {
    const { attempt, orderId } = await sent(paypal);
    paypal.fake.trouble(CAPTURE, UNKNOWN);
    expect(await complete(paypal, attempt, orderId)).toMatchObject({
      kind: 'not_sent',
      refused: 'NEW_ISSUE_OF_PAYPAL',
    });
  });

  it('a capture refused with an unknown issue has the outcome that its order shows', async () => {
    const { attempt, orderId, reference } = await paid(paypal);
    paypal.fake.trouble(CAPTURE, UNKNOWN);
    expect(await complete(paypal, attempt, orderId)).toMatchObject({ kind: 'approved', reference });
  });

  it.each(['lost before', 'error before', failure(404, 'RESOURCE_NOT_FOUND', 'INVALID_RESOURCE_ID')])(
    'the outcome of a capture refused with an unknown issue stays unknown while its order is unreadable: %j',
    async (trouble) => {
      const { attempt, orderId } = await approved(paypal);
      paypal.fake.trouble(CAPTURE, UNKNOWN);
      paypal.fake.trouble(/GET .*orders/, trouble as Trouble);
      expect(await complete(paypal, attempt, orderId)).toMatchObject({ kind: 'unknown' });
    },
  );
});
