import { create, fromJson, type JsonObject, type JsonValue, toBinary, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { ServiceError } from '#src/service-error.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { readBinary } from '#src/wire/read-binary.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';

const decode = jsonDecoder(CreatePaymentRequestSchema);
const withNumber = (literal: string) =>
  decode(parseJson(Buffer.from(`{"customer_payer":{"device_fingerprints":[{"n":[${literal}]}]}}`)));

it.each([
  '9007199254740991',
  '-9007199254740992',
  '9007199254740994',
  '1e2',
  '1E+23',
  '0.1',
  '0.30000000000000004',
  '100000000000000000000',
  '5e-324',
  '0.0000000000000000000000',
  '-0.0',
  '1.7976931348623157e308',
])('free-form JSON accepts the number %s, which a double represents', (literal) => {
  const [value] = withNumber(literal).customerPayer?.deviceFingerprints ?? [];
  expect(value && toJson(ValueSchema, value)).toEqual({ n: [Number(literal)] });
});

it.each([
  '9007199254740993',
  '-9007199254740993',
  '123456789012345678901234567890',
  '0.1234567890123456789',
  '9007199254740993e0',
  '1e-400',
  '1e400',
  `0.${'0'.repeat(200_000)}1`,
])(
  'free-form JSON refuses the number %.30s with the name of the field, since a double would change it',
  (literal) => {
    try {
      withNumber(literal);
      expect.unreachable();
    } catch (error) {
      expect((error as ServiceError).fields).toMatchObject([
        { field: 'customer_payer.device_fingerprints[0]', code: 'OUT_OF_RANGE' },
      ]);
    }
  },
);

/** Returns the parsed value, or the reason and text of the refusal. */
function outcome(read: () => object): unknown {
  try {
    return read();
  } catch (error) {
    const { reason, message } = error as ServiceError;
    return [reason, message];
  }
}

const PLACES = [
  (taxes: JsonObject) => ({ taxes }),
  (sellerDetails: JsonObject) => ({ additionalData: { sellerDetails } }),
  (one: JsonObject) => ({ customerPayer: { deviceFingerprints: [fromJson(ValueSchema, one)] } }),
];

const depthOf = (json: JsonValue): number =>
  typeof json === 'object' && json !== null ? 1 + Math.max(0, ...Object.values(json).map(depthOf)) : 0;

it('free-form JSON accepts 32 levels and refuses deeper nesting with the same error in JSON and binary', () => {
  const wraps = fc.constantFrom<(inner: JsonValue) => JsonValue>(
    (inner) => [inner],
    (inner) => ({ a: inner }),
  );
  const deep = fc
    .tuple(
      fc.constantFrom<JsonValue>(null, 'core', [], {}),
      fc.array(wraps, { minLength: 23, maxLength: 35 }),
    )
    .map(([core, around]) => around.reduce((inner, wrap) => wrap(inner), core));
  fc.assert(
    fc.property(fc.constantFrom(...PLACES), deep, (place, inner) => {
      const message = create(CreatePaymentRequestSchema, place({ o: inner }));
      const json = toJson(CreatePaymentRequestSchema, message, { useProtoFieldName: true });
      const bytes = toBinary(CreatePaymentRequestSchema, message);
      const fromBytes = outcome(() => readBinary(CreatePaymentRequestSchema, bytes));
      expect(fromBytes).toEqual(outcome(() => decode(parseJson(Buffer.from(JSON.stringify(json))))));
      expect(Array.isArray(fromBytes)).toBe(depthOf(json) > 32);
    }),
  );
});
