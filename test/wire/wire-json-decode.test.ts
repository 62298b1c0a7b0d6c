import { create, equals, fromBinary, isMessage, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HttpRuleSchema } from '#gen/google/api/http_pb.js';
import { DecimalSchema } from '#gen/google/type/decimal_pb.js';
import { CatalogueSchema } from '#gen/payments/v1/catalogue_pb.js';
import { Payment_Workflow } from '#gen/payments/v1/payment_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { type FieldError, ServiceError } from '#src/service-error.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { runs } from '../support/fixed-seed.ts';

const decode = jsonDecoder(CreatePaymentRequestSchema);
const decodeProtobufJson = jsonDecoder(CreatePaymentRequestSchema, { protobufJson: true });
const fromText = (text: string): CreatePaymentRequest => decode(parseJson(Buffer.from(text)));
const decimalOf = (literal: string) => fromText(`{"amount":{"value":${literal}}}`).amount?.value?.value;

function faultsOf(run: () => unknown): readonly FieldError[] {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(ServiceError);
    expect((error as ServiceError).reason).toBe('INVALID_PARAMETERS');
    return (error as ServiceError).fields;
  }
  throw new Error('was not refused');
}
const fault = (json: unknown) => faultsOf(() => decode(json)).map(({ field, code }) => `${field} ${code}`);

describe('jsonDecoder', () => {
  it('jsonDecoder reads a request into messages', () => {
    const message = decode({
      account_id: 'a',
      amount: { currency: 'COP', value: 10 },
      workflow: 'DIRECT',
      payment_method: { detail: { card: { capture: false, installments: 6.0, card_data: { number: '4' } } } },
      customer_payer: {
        merchant_customer_created_at: '2026-01-31T09:08:07.5+01:30',
        device_fingerprints: ['x', null],
      },
    });
    const expected = create(CreatePaymentRequestSchema, {
      accountId: 'a',
      amount: { currency: 'COP', value: { value: '10' } },
      workflow: Payment_Workflow.DIRECT,
      paymentMethod: {
        detail: {
          kind: { case: 'card', value: { capture: false, installments: 6, cardData: { number: '4' } } },
        },
      },
      customerPayer: {
        merchantCustomerCreatedAt: { seconds: 1769845087n, nanos: 500_000_000 },
        deviceFingerprints: [
          { kind: { case: 'stringValue', value: 'x' } },
          { kind: { case: 'nullValue', value: 0 } },
        ],
      },
    });
    expect(message).toEqual(expected);
    expect(isMessage(message.amount?.value, DecimalSchema)).toBe(true);
    const bytes = toBinary(CreatePaymentRequestSchema, message);
    expect(equals(CreatePaymentRequestSchema, fromBinary(CreatePaymentRequestSchema, bytes), expected)).toBe(
      true,
    );
  });

  it('jsonDecoder treats null as absent, and ignores unknown members', () => {
    const json = {
      account_id: null,
      amount: null,
      workflow: null,
      additional_data: { order: { items: null } },
      x: [{}],
    };
    expect(decode(json)).toEqual(create(CreatePaymentRequestSchema, { additionalData: { order: {} } }));
    expect(
      decode({ payment_method: { detail: { card: null, wallet: {} } } }).paymentMethod?.detail?.kind.case,
    ).toBe('wallet');
  });

  it.each([
    ['10', '10'],
    ['"10"', '10'],
    ['10.00', '10'],
    ['"007.50"', '7.5'],
    ['-0.0', '0'],
    ['"-0"', '0'],
    ['0.0000001', '0.0000001'],
    ['12345678901234567890.123456789', '12345678901234567890.123456789'],
    ['0.1000000000000000000', '0.1'],
    ['1000000000000000000000', '1000000000000000000000'],
  ])('jsonDecoder reads the decimal %s exactly as "%s"', (literal, value) => {
    expect(decimalOf(literal)).toBe(value);
  });

  it.each(['1e2', '1E-7', '"1e2"', '" 1"', '"+1"', '"1."', '".5"', '"1,5"', `"${'1'.repeat(65)}"`])(
    'jsonDecoder refuses the decimal %s',
    (literal) => {
      expect(faultsOf(() => decimalOf(literal))).toMatchObject([
        { field: 'amount.value', code: 'INVALID_FORMAT' },
      ]);
    },
  );

  it.each([
    [{ account_id: 5 }, 'account_id INVALID_TYPE'],
    [{ account_id: ['a'] }, 'account_id INVALID_TYPE'],
    [{ account_id: '\ud800' }, 'account_id INVALID_FORMAT'],
    [{ amount: 'x' }, 'amount INVALID_TYPE'],
    [{ amount: [] }, 'amount INVALID_TYPE'],
    [{ amount: { value: true } }, 'amount.value INVALID_TYPE'],
    [{ amount: { value: { value: '10' } } }, 'amount.value INVALID_TYPE'],
    [{ workflow: 'SIDEWAYS' }, 'workflow NOT_ALLOWED'],
    [{ workflow: 'WORKFLOW_UNSPECIFIED' }, 'workflow NOT_ALLOWED'],
    [{ workflow: 1 }, 'workflow INVALID_TYPE'],
    [{ payment_method: { vault_on_success: 'true' } }, 'payment_method.vault_on_success INVALID_TYPE'],
    [
      { payment_method: { detail: { card: { installments: '6' } } } },
      'payment_method.detail.card.installments INVALID_TYPE',
    ],
    [
      { payment_method: { detail: { card: { installments: 1.5 } } } },
      'payment_method.detail.card.installments INVALID_TYPE',
    ],
    [
      { payment_method: { detail: { card: { installments: 2 ** 31 } } } },
      'payment_method.detail.card.installments OUT_OF_RANGE',
    ],
    [{ payment_method: { detail: { card: {}, wallet: {} } } }, 'payment_method.detail NOT_ALLOWED'],
    [{ additional_data: { order: { items: {} } } }, 'additional_data.order.items INVALID_TYPE'],
    [{ additional_data: { order: { items: [{}, null] } } }, 'additional_data.order.items[1] INVALID_TYPE'],
    [
      { additional_data: { order: { items: [{}, { quantity: 'x' }] } } },
      'additional_data.order.items[1].quantity INVALID_FORMAT',
    ],
    [
      { customer_payer: { device_fingerprints: [1, ['\udc00']] } },
      'customer_payer.device_fingerprints[1] INVALID_FORMAT',
    ],
    [{ additional_data: { seller_details: [] } }, 'additional_data.seller_details INVALID_TYPE'],
    [{ taxes: 'VAT' }, 'taxes INVALID_TYPE'],
    [{ taxes: [{ rate: '\udc00' }] }, 'taxes INVALID_FORMAT'],
  ])('jsonDecoder refuses %j: %s', (json, expected) => {
    expect(fault(json)).toEqual([expected]);
  });

  it.each([
    '2026-02-30T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:00:60Z',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '2026-01-01 00:00:00Z',
    '2026-01-01T00:00:00+24:00',
    '0000-12-31T23:59:59Z',
    '9999-12-31T23:59:59-01:00',
    ' ',
  ])('jsonDecoder refuses the timestamp "%s"', (text) => {
    expect(fault({ customer_payer: { merchant_customer_created_at: text } })).toEqual([
      'customer_payer.merchant_customer_created_at INVALID_FORMAT',
    ]);
  });

  it('jsonDecoder reports all faults at once, but at most 20', () => {
    expect(
      fault({ account_id: 1, amount: { currency: 2, value: 'x' }, country: 'CO', workflow: 'X' }),
    ).toEqual([
      'account_id INVALID_TYPE',
      'amount.currency INVALID_TYPE',
      'amount.value INVALID_FORMAT',
      'workflow NOT_ALLOWED',
    ]);
    const many = fault({ additional_data: { order: { items: Array(200).fill(7) } } });
    expect(many).toHaveLength(20);
    expect(many.at(-1)).toBe('additional_data.order.items[19] INVALID_TYPE');
  });

  it.each([null, [], 'x', 1, true, undefined])(
    'jsonDecoder refuses %j as a body, which must be an object',
    (json) => {
      expect(() => decode(json)).toThrow(expect.objectContaining({ reason: 'INVALID_REQUEST' }));
    },
  );

  it('jsonDecoder reads only own members, so __proto__, constructor and toString do no harm', () => {
    const hostile =
      '{"__proto__":{"account_id":"x"},"constructor":{"prototype":{"y":1}},"toString":1,"country":"CO"}';
    expect(fromText(hostile)).toEqual(create(CreatePaymentRequestSchema, { country: 'CO' }));
    const inStruct = fromText('{"additional_data":{"seller_details":{"__proto__":{"z":1e1}}}}');
    const details = inStruct.additionalData?.sellerDetails ?? {};
    expect(Object.getPrototypeOf(details)).toBe(Object.prototype);
    expect(JSON.stringify(details)).toBe('{"__proto__":{"z":10}}');
    const again = fromBinary(CreatePaymentRequestSchema, toBinary(CreatePaymentRequestSchema, inStruct));
    expect(JSON.stringify(again.additionalData?.sellerDetails)).toBe('{"__proto__":{"z":10}}');
  });

  it('jsonDecoder throws only ServiceError and repeats no value, for any JSON', () => {
    const planted = fc.constantFrom<unknown>('4111111111111111', 4111111111111111, ['4111111111111111'], {
      value: '4111111111111111',
      '4111111111111111': 1,
    });
    const anything = fc.oneof({ weight: 3, arbitrary: planted }, fc.jsonValue());
    const names = fc.constantFrom(
      'card',
      'wallet',
      'card_data',
      'number',
      'detail',
      'installments',
      'value',
      'amount',
    );
    const nested = fc.dictionary(names, fc.oneof(anything, fc.dictionary(names, anything)));
    const fields = fc.constantFrom(...CreatePaymentRequestSchema.fields.map((field) => field.name));
    fc.assert(
      fc.property(fc.dictionary(fields, fc.oneof(anything, nested)), (json) => {
        for (const read of [decode, decodeProtobufJson]) {
          try {
            read(parseJson(Buffer.from(JSON.stringify(json))));
          } catch (error) {
            expect(error).toBeInstanceOf(ServiceError);
            const { message, fields, cause, stack } = error as ServiceError;
            expect(JSON.stringify([message, fields, cause, stack])).not.toContain('4111');
          }
        }
      }),
      { numRuns: runs(200) },
    );
  });

  describe('with unknownFields: reject', () => {
    const decodeCatalogue = jsonDecoder(CatalogueSchema, { unknownFields: 'reject' });

    it('jsonDecoder with unknownFields: reject names unknown members at any depth', () => {
      const json = {
        routs: [],
        routes: [{ id: 1, conection: 'x' }],
        connections: [{ settings: { any: 1 } }],
      };
      expect(faultsOf(() => decodeCatalogue(json)).map(({ field }) => field)).toEqual([
        'routs',
        'routes[0].conection',
      ]);
    });

    it("jsonDecoder with unknownFields: reject reads maps and structs, and reports a map's faults at the map", () => {
      const connection = { settings: { url: 'x', n: [1] }, secrets_from_environment: { key: 'API_KEY' } };
      const [read] = decodeCatalogue({ connections: [connection] }).connections;
      expect(read?.settings).toEqual({ url: 'x', n: [1] });
      expect(read?.secretsFromEnvironment).toEqual({ key: 'API_KEY' });
      const wrong = { connections: [{ secrets_from_environment: { key: 5, other: null } }] };
      const path = 'connections[0].secrets_from_environment';
      expect(faultsOf(() => decodeCatalogue(wrong)).map(({ field }) => field)).toEqual([path, path]);
    });
  });

  describe('with protobufJson', () => {
    it('jsonDecoder with protobufJson accepts camelCase, enum numbers, integer strings and decimal objects', () => {
      const message = decodeProtobufJson({
        accountId: 'a',
        merchant_order_id: 'o',
        amount: { currency: 'COP', value: { value: '10.50' } },
        workflow: 2,
        paymentMethod: { detail: { card: { installments: '6' } } },
      });
      expect(message).toEqual(
        create(CreatePaymentRequestSchema, {
          accountId: 'a',
          merchantOrderId: 'o',
          amount: { currency: 'COP', value: { value: '10.5' } },
          workflow: Payment_Workflow.REDIRECT,
          paymentMethod: { detail: { kind: { case: 'card', value: { installments: 6 } } } },
        }),
      );
    });

    it('jsonDecoder refuses another spelling of a field’s name, unless it sets nothing', () => {
      for (const name of ['accountId', 'ACCOUNT_ID', 'account-id']) {
        expect(fault({ [name]: 'a' })).toEqual([`${name} NOT_ALLOWED`]);
        expect(decode({ [name]: null }).accountId).toBe('');
        // A long name is unknown, so that no error repeats it.
        expect(decode({ [`${name}${'_'.repeat(60)}`]: 'a' }).accountId).toBe('');
      }
    });
  });

  it('jsonDecoder reads a recursive message', () => {
    const rule = jsonDecoder(HttpRuleSchema)({ get: '/a', additional_bindings: [{ post: '/b', body: '*' }] });
    expect(rule.additionalBindings[0]?.pattern).toEqual({ case: 'post', value: '/b' });
    const twice = () => jsonDecoder(HttpRuleSchema)({ get: '/a', put: '/b' });
    expect(faultsOf(twice)).toMatchObject([{ field: '$', code: 'NOT_ALLOWED' }]);
  });
});
