import { create, type JsonObject } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { AirlineSchema, OrderSchema } from '#gen/payments/v1/additional_data_pb.js';
import { ConnectionConfigSchema } from '#gen/payments/v1/catalogue_pb.js';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { PaymentMethodDetailSchema } from '#gen/payments/v1/payment_method_pb.js';
import {
  AmountSchema,
  CheckoutSchema,
  Payment_Status,
  Payment_Workflow,
  PaymentSchema,
  ProviderDataSchema,
} from '#gen/payments/v1/payment_pb.js';
import { jsonEncoder, memberOf } from '#src/wire/wire-json-encode.ts';

const checkoutText = (session: string) => jsonEncoder(CheckoutSchema)(create(CheckoutSchema, { session }));
const amountText = (value: string) => jsonEncoder(AmountSchema)(create(AmountSchema, { value: { value } }));

describe('jsonEncoder', () => {
  it('jsonEncoder writes every field under its .proto name and in its order, null if optional and absent, except one that is omitted when empty', () => {
    const json = jsonEncoder(PaymentSchema)(create(PaymentSchema));
    expect(Object.keys(JSON.parse(json))).toEqual([
      ...new Set(PaymentSchema.fields.map(memberOf).filter((member) => member !== 'created_with')),
    ]);
    expect(JSON.parse(json)).toMatchObject({
      id: '',
      created_at: null,
      payment_method: null,
      additional_data: null,
      transactions_history: [],
      split: [],
      callback_url: null,
      simplified_mode: false,
    });
  });

  it('jsonEncoder writes enum values by name, and unknown values as numbers', () => {
    const encode = jsonEncoder(PaymentSchema);
    const known = create(PaymentSchema, {
      status: Payment_Status.READY_TO_PAY,
      workflow: Payment_Workflow.REDIRECT,
    });
    expect(JSON.parse(encode(known))).toMatchObject({ status: 'READY_TO_PAY', workflow: 'REDIRECT' });
    const newer = create(PaymentSchema, { status: 99 as Payment_Status });
    expect(JSON.parse(encode(newer))).toMatchObject({ status: 99, workflow: 'WORKFLOW_UNSPECIFIED' });
  });

  it.each([
    ['3000.00', '3000.00'],
    ['1200', '1200.0'],
    ['-0.50', '-0.50'],
    ['0', '0.0'],
    ['123456789012345678901234567890.12', '123456789012345678901234567890.12'],
  ])('jsonEncoder writes the decimal "%s" as the number %s', (value, literal) => {
    expect(amountText(value)).toBe(
      `{"captured":null,"currency":"","currency_conversion":null,"refunded":null,"value":${literal}}`,
    );
  });

  it.each(['', '1e3', '1.', '.5', '+1', ' 1', '007', 'NaN', '1,"x":2'])(
    'jsonEncoder throws for the decimal "%s"',
    (value) => {
      expect(() => amountText(value)).toThrow('decimal');
    },
  );

  it.each([
    [1769850547n, 123_456_789, '2026-01-31T09:09:07.123456Z'],
    [1769850547n, 1_000, '2026-01-31T09:09:07.000001Z'],
    [1769850548n, 0, '2026-01-31T09:09:08.000000Z'],
    [0n, 999, '1970-01-01T00:00:00.000000Z'],
    [-1n, 999_999_999, '1969-12-31T23:59:59.999999Z'],
    [253402300799n, 0, '9999-12-31T23:59:59.000000Z'],
    [-62135596800n, 0, '0001-01-01T00:00:00.000000Z'],
  ])('jsonEncoder writes the timestamp %d s and %d ns as %s', (seconds, nanos, text) => {
    const encode = jsonEncoder(PaymentSchema);
    const payment = create(PaymentSchema, { createdAt: { seconds, nanos }, updatedAt: { seconds, nanos } });
    expect(JSON.parse(encode(payment))).toMatchObject({ created_at: text, updated_at: text });
  });

  it('jsonEncoder throws for a timestamp out of range', () => {
    const createdAt = create(TimestampSchema, { seconds: 253402300800n });
    expect(() => jsonEncoder(PaymentSchema)(create(PaymentSchema, { createdAt }))).toThrow('range');
  });

  it('jsonEncoder writes every member of a oneof, null except the one that is set', () => {
    const encode = jsonEncoder(PaymentMethodDetailSchema);
    expect(encode(create(PaymentMethodDetailSchema))).toBe('{"card":null,"wallet":null}');
    const wallet = create(PaymentMethodDetailSchema, {
      kind: { case: 'wallet', value: { redirectUrl: 'x' } },
    });
    expect(JSON.parse(encode(wallet))).toMatchObject({ card: null, wallet: { redirect_url: 'x' } });
  });

  it('jsonEncoder writes an empty list as null if its option says so, otherwise as []', () => {
    const encode = jsonEncoder(AirlineSchema);
    expect(JSON.parse(encode(create(AirlineSchema)))).toMatchObject({
      legs: [],
      passengers: [],
      tickets: null,
    });
    const some = create(AirlineSchema, { tickets: [{ ticketNumber: '1' }, { ticketNumber: '2' }] });
    expect(JSON.parse(encode(some)).tickets).toMatchObject([{ ticket_number: '1' }, { ticket_number: '2' }]);
  });

  it('jsonEncoder writes a Struct as its JSON, with the same casing and a member named __proto__', () => {
    const rawResponse = JSON.parse('{"Id":1,"a":[null,1.5,{"b":"\\"\\n"}],"__proto__":{"x":1},"toJSON":"y"}');
    const message = create(ProviderDataSchema, { rawResponse: rawResponse as JsonObject });
    const text = jsonEncoder(ProviderDataSchema)(message);
    expect(text).toContain(JSON.stringify(rawResponse));
    expect(JSON.parse(text).raw_response).toEqual(rawResponse);
  });

  it('jsonEncoder writes Value and ListValue as the JSON that they represent', () => {
    const payer = create(CustomerPayerSchema, {
      deviceFingerprints: [
        { kind: { case: 'stringValue', value: 'x' } },
        { kind: { case: 'nullValue', value: 0 } },
        {
          kind: {
            case: 'structValue',
            value: { fields: { a: { kind: { case: 'boolValue', value: true } } } },
          },
        },
      ],
    });
    expect(JSON.parse(jsonEncoder(CustomerPayerSchema)(payer)).device_fingerprints).toEqual([
      'x',
      null,
      { a: true },
    ]);
    const order = create(OrderSchema, {
      tickets: { values: [{ kind: { case: 'numberValue', value: 1.5 } }] },
    });
    expect(JSON.parse(jsonEncoder(OrderSchema)(order)).tickets).toEqual([1.5]);
  });

  it('jsonEncoder writes a map as an object', () => {
    const message = create(ConnectionConfigSchema, { secretsFromEnvironment: { 'api"key': 'A', b: 'C' } });
    const json = JSON.parse(jsonEncoder(ConnectionConfigSchema)(message));
    expect(json.secrets_from_environment).toEqual({ 'api"key': 'A', b: 'C' });
  });

  it.each(['', 'plain', 'Bogotá ☂ 😀', '"quoted"', 'back\\slash', 'a\u0000b\u001f\n\u2028', '</script>'])(
    'jsonEncoder writes the string %j so that it reads back the same',
    (text) => {
      expect(JSON.parse(checkoutText(text)).session).toBe(text);
    },
  );

  it('jsonEncoder escapes a lone surrogate, so that the bytes are valid UTF-8', () => {
    expect(checkoutText('a\ud800b')).toBe('{"session":"a\\ud800b","sdk_action_required":false}');
  });
});
