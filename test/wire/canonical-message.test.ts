import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { canonicalize } from '#src/wire/canonical-message.ts';

describe('canonicalize', () => {
  it('gives every decimal, however deep, its one spelling', () => {
    const request = create(CreatePaymentRequestSchema, {
      amount: { currency: 'USD', value: { value: '0010.50' } },
      additionalData: {
        order: { items: [{ unitAmount: { value: '-0.0' } }, { unitAmount: { value: '7.00' } }] },
      },
    });
    canonicalize(CreatePaymentRequestSchema, request);
    expect(request.amount?.value?.value).toBe('10.5');
    expect(request.additionalData?.order?.items.map((item) => item.unitAmount?.value)).toEqual(['0', '7']);
  });

  it('leaves what is no decimal for validation to refuse', () => {
    const request = create(CreatePaymentRequestSchema, { amount: { value: { value: '1e2' } } });
    canonicalize(CreatePaymentRequestSchema, request);
    expect(request.amount?.value?.value).toBe('1e2');
  });

  it('drops what only the service may say', () => {
    const request = create(CreatePaymentRequestSchema, {
      checkout: { session: 's', sdkActionRequired: true },
    });
    canonicalize(CreatePaymentRequestSchema, request);
    expect(request).toEqual(create(CreatePaymentRequestSchema, { checkout: { session: 's' } }));
  });

  it.each([
    [{ value: '2.00' }, { quantity: 2 }],
    [{ value: '-0' }, { quantity: 0 }],
    [{ value: '-2147483648' }, { quantity: -2147483648 }],
    [{ value: '2147483648' }, { quantityDecimal: { value: '2147483648' } }],
    [{ value: '1.50' }, { quantityDecimal: { value: '1.5' } }],
    [{ value: '1.0000000000000000000001' }, { quantityDecimal: { value: '1.0000000000000000000001' } }],
    [{ value: 'two' }, { quantityDecimal: { value: 'two' } }],
  ])('has the decimal %j as the integer for which it stands, where it is one', (quantityDecimal, item) => {
    const order = (one: object) =>
      create(CreatePaymentRequestSchema, { additionalData: { order: { items: [one] } } });
    const request = order({ quantityDecimal });
    canonicalize(CreatePaymentRequestSchema, request);
    expect(request).toEqual(order(item));
  });

  it('leaves an integer and a decimal that were both sent for validation to refuse', () => {
    const both = { quantity: 1, quantityDecimal: { value: '2' } };
    const init = { additionalData: { order: { items: [both] } } };
    const request = create(CreatePaymentRequestSchema, init);
    canonicalize(CreatePaymentRequestSchema, request);
    expect(request).toEqual(create(CreatePaymentRequestSchema, init));
  });

  it('drops empty texts and messages that name nothing, however deep, and keeps free text and what is set', () => {
    const request = create(CreatePaymentRequestSchema, {
      callbackUrl: '',
      checkout: { session: '' },
      customerPayer: { id: '', deviceFingerprint: '', email: '', browserInfo: { userAgent: '' } },
    });
    canonicalize(CreatePaymentRequestSchema, request);
    expect(request).toEqual(create(CreatePaymentRequestSchema));

    const init = {
      callbackUrl: 'shop.example',
      customerPayer: { firstName: '', browserInfo: { platform: '' }, billingAddress: {} },
    };
    const said = create(CreatePaymentRequestSchema, init);
    canonicalize(CreatePaymentRequestSchema, said);
    expect(said).toEqual(create(CreatePaymentRequestSchema, init));
  });

  it('drops what is not supported only where it asks for nothing', () => {
    const value = (kind: object) => ({ kind }) as never;
    const request = create(CreatePaymentRequestSchema, {
      split: value({ case: 'listValue', value: { values: [] } }),
      subscription: value({ case: 'boolValue', value: false }),
      networkToken: value({ case: undefined }),
      paymentToken: value({ case: 'numberValue', value: 0 }),
      fraudScreening: value({
        case: 'structValue',
        value: { fields: { a: value({ case: 'stringValue', value: '' }) } },
      }),
    });
    canonicalize(CreatePaymentRequestSchema, request);
    const { split, subscription, networkToken, fraudScreening, paymentToken } = request;
    expect([split, subscription, networkToken, fraudScreening]).toEqual(Array(4).fill(undefined));
    expect(paymentToken).toBeDefined();
  });
});
