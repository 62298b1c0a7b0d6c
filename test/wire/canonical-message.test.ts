import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { canonicalize } from '#src/wire/canonical-message.ts';

describe('canonicalize', () => {
  it('canonicalize gives every decimal its canonical form, at any depth', () => {
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

  it('canonicalize leaves malformed decimals for validation to refuse', () => {
    const request = create(CreatePaymentRequestSchema, { amount: { value: { value: '1e2' } } });
    canonicalize(CreatePaymentRequestSchema, request);
    expect(request.amount?.value?.value).toBe('1e2');
  });

  it.each([
    ['ana@münchen.de', 'ana@xn--mnchen-3ya.de'],
    ['ana@Bücher.Example', 'ana@xn--bcher-kva.example'],
    ['ana@例え。テスト', 'ana@xn--r8jz45g.xn--zckzah'],
    ['Ana@Example.com', 'Ana@Example.com'],
    ['añá@example.com', 'añá@example.com'],
    ['ana@mün chen.de', 'ana@mün chen.de'],
    ['münchen.de', 'münchen.de'],
  ])('canonicalize converts the internationalized domain of the e-mail address %s', (email, canonical) => {
    const request = create(CreatePaymentRequestSchema, {
      customerPayer: { email },
      additionalData: { airline: { passengers: [{ email }] } },
    });
    canonicalize(CreatePaymentRequestSchema, request);
    expect(request.customerPayer?.email).toBe(canonical);
    expect(request.additionalData?.airline?.passengers[0]?.email).toBe(canonical);
  });

  it('canonicalize drops a field that only the service may set', () => {
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
  ])('canonicalize turns the decimal %j into the equal integer, if there is one', (quantityDecimal, item) => {
    const order = (one: object) =>
      create(CreatePaymentRequestSchema, { additionalData: { order: { items: [one] } } });
    const request = order({ quantityDecimal });
    canonicalize(CreatePaymentRequestSchema, request);
    expect(request).toEqual(order(item));
  });

  it('canonicalize leaves an item with both an integer and a decimal for validation to refuse', () => {
    const both = { quantity: 1, quantityDecimal: { value: '2' } };
    const init = { additionalData: { order: { items: [both] } } };
    const request = create(CreatePaymentRequestSchema, init);
    canonicalize(CreatePaymentRequestSchema, request);
    expect(request).toEqual(create(CreatePaymentRequestSchema, init));
  });

  it('canonicalize drops empty identifiers and messages that allow it at any depth, but keeps free text', () => {
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

  it('canonicalize drops unsupported fields only if they are null, false, zero or empty', () => {
    const value = (kind: object) => ({ kind }) as never;
    const request = create(CreatePaymentRequestSchema, {
      split: value({ case: 'listValue', value: { values: [] } }),
      subscription: value({ case: 'boolValue', value: false }),
      networkToken: value({ case: undefined }),
      paymentToken: value({ case: 'numberValue', value: 0 }),
      currencyConversion: value({ case: 'numberValue', value: 0.01 }),
      fraudScreening: value({
        case: 'structValue',
        value: { fields: { a: value({ case: 'stringValue', value: '' }) } },
      }),
    });
    canonicalize(CreatePaymentRequestSchema, request);
    const { split, subscription, networkToken, fraudScreening, paymentToken } = request;
    const cleared = [split, subscription, networkToken, fraudScreening, paymentToken];
    expect(cleared).toEqual(cleared.map(() => undefined));
    expect(request.currencyConversion).toBeDefined();
  });
});
