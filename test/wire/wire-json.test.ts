import {
  create,
  createFileRegistry,
  type DescField,
  type DescMessage,
  equals,
  getOption,
  type Message,
  ScalarType,
} from '@bufbuild/protobuf';
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  Int32ValueSchema,
} from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DecimalSchema } from '#gen/google/type/decimal_pb.js';
import { array_of, fraction_of } from '#gen/payments/v1/json_options_pb.js';
import { PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { ServiceError } from '#src/service-error.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';
import { runs } from '../support/fixed-seed.ts';

/** A message type with a single and a repeated field of every scalar type. */
function scalarsSchema(): DescMessage {
  const types = Object.entries(FieldDescriptorProto_Type).filter(
    (entry): entry is [string, FieldDescriptorProto_Type] =>
      typeof entry[1] === 'number' && !['GROUP', 'MESSAGE', 'ENUM'].includes(entry[0]),
  );
  const fields = types.flatMap(([name, type]) => [
    { name: name.toLowerCase(), type, number: type, label: FieldDescriptorProto_Label.OPTIONAL },
    {
      name: `${name.toLowerCase()}_list`,
      type,
      number: type + 100,
      label: FieldDescriptorProto_Label.REPEATED,
    },
  ]);
  const file = create(FileDescriptorProtoSchema, {
    name: 'scalars.proto',
    syntax: 'proto3',
    messageType: [{ name: 'Scalars', field: fields }],
  });
  return createFileRegistry(file, () => undefined).getMessage('Scalars') as DescMessage;
}

const Scalars = scalarsSchema();
const decodeScalars = jsonDecoder(Scalars) as (json: unknown) => Message & Record<string, unknown>;
const encodeScalars = jsonEncoder(Scalars);

/** Generates messages that JSON can represent: timestamps in microseconds, canonical decimals. */
function messages(desc: DescMessage): fc.Arbitrary<Message> {
  if (desc.typeName === 'google.type.Decimal') {
    const cents = fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n });
    return cents.map((n) => create(desc, { value: n % 10n === 0n ? String(n) : `${n}.25` }));
  }
  if (desc.typeName === 'google.protobuf.Timestamp') {
    const parts = fc.tuple(fc.integer({ min: -62_135_596_800, max: 253_402_300_799 }), fc.nat(999_999));
    return parts.map(([s, micros]) => create(desc, { seconds: BigInt(s), nanos: micros * 1000 }));
  }
  if (desc.typeName === 'google.protobuf.Value') {
    const kinds = fc.oneof(
      fc.record({ case: fc.constant('numberValue'), value: fc.integer() }),
      fc.record({ case: fc.constant('stringValue'), value: texts }),
    );
    return kinds.map((kind) => create(desc, { kind }));
  }
  const members = desc.members.map((member): [string, fc.Arbitrary<unknown>] => [
    member.localName,
    member.kind === 'field'
      ? values(member)
      : fc.oneof(
          ...member.fields.map((f) => fc.record({ case: fc.constant(f.localName), value: elements(f) })),
        ),
  ]);
  return fc.record(Object.fromEntries(members), { requiredKeys: [] }).map((init) => create(desc, init));
}

const texts = fc.string({ unit: 'binary', maxLength: 8 });

function values(field: DescField): fc.Arbitrary<unknown> {
  return field.fieldKind === 'list' ? fc.array(elements(field), { maxLength: 2 }) : elements(field);
}

function elements(field: DescField): fc.Arbitrary<unknown> {
  if (field.message?.typeName === 'google.protobuf.Struct') {
    return fc.dictionary(texts, fc.jsonValue({ noUnicodeString: false, maxDepth: 3 }).map(jsonAsParsed));
  }
  if (field.message) return messages(field.message);
  // The zero value means "unspecified", which can only be left out, not sent.
  if (field.enum)
    return fc.constantFrom(...field.enum.values.map((value) => value.number).filter((n) => n !== 0));
  switch (field.scalar) {
    case ScalarType.STRING:
      return texts;
    case ScalarType.BOOL:
      return fc.boolean();
    default:
      return fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
  }
}

/** JSON.stringify does not preserve minus zero. */
const jsonAsParsed = (value: unknown) => JSON.parse(JSON.stringify(value));

/** Sets the enums, which JSON cannot leave unspecified, and drops one of two fields that share a member. */
function specified<M extends Message>(desc: DescMessage, message: M): M {
  const members = message as Record<string, unknown>;
  for (const field of desc.fields) {
    const { localName } = field;
    if (field.fieldKind === 'enum' && members[localName] === 0) members[localName] = 1;
    const whole = desc.fields.find(({ name }) => name === getOption(field, fraction_of));
    if (whole && members[localName]) {
      // The two fields share a JSON member: a whole number sets one, a fraction the other.
      members[localName] = create(DecimalSchema, { value: '1.25' });
      members[whole.localName] = undefined;
    }
    const object = desc.fields.find(({ name }) => name === getOption(field, array_of));
    if (object && members[localName]) members[object.localName] = undefined;
    const inner = field.fieldKind === 'message' && !field.oneof ? members[localName] : undefined;
    if (field.fieldKind === 'message' && inner && !field.message.typeName.startsWith('google.')) {
      specified(field.message, inner as Message);
    }
    if (field.fieldKind === 'list' && field.message && !field.message.typeName.startsWith('google.')) {
      for (const item of members[localName] as Message[]) specified(field.message, item);
    }
  }
  return message;
}

describe('REST JSON round trips', () => {
  it.each([PaymentSchema, CreatePaymentRequestSchema])(
    'a message equals the original after a round trip through REST JSON: %s',
    (schema: DescMessage) => {
      const [encode, decode] = [jsonEncoder(schema), jsonDecoder(schema)];
      fc.assert(
        fc.property(messages(schema), (random) => {
          const message = specified(schema, random);
          const bytes = Buffer.from(encode(message));
          expect(equals(schema, decode(parseJson(bytes)), message)).toBe(true);
        }),
        { numRuns: runs(40) },
      );
    },
  );

  it('scalars of every type are equal after a round trip through REST JSON, at their bounds', () => {
    const json = {
      double: 1.7976931348623157e308,
      float: -3.4028234663852886e38,
      int64: '-9223372036854775808',
      uint64: '18446744073709551615',
      int32: -2147483648,
      fixed64: '0',
      fixed32: 4294967295,
      bool: true,
      string: 'é',
      bytes: 'AAEC/w==',
      uint32: 4294967295,
      sfixed32: 2147483647,
      sfixed64: '9223372036854775807',
      sint32: 0,
      sint64: '1',
    };
    const lists = Object.fromEntries(
      Object.entries(json).map(([name, value]) => [`${name}_list`, [value, value]]),
    );
    const message = decodeScalars(parseJson(Buffer.from(JSON.stringify({ ...json, ...lists }))));
    expect(message).toMatchObject({
      int64: -(2n ** 63n),
      uint64: 2n ** 64n - 1n,
      bytes: Uint8Array.of(0, 1, 2, 255),
    });
    expect(JSON.parse(encodeScalars(message))).toEqual({ ...json, ...lists });
    expect(JSON.parse(encodeScalars(create(Scalars)))).toMatchObject({
      int64: '0',
      double: 0,
      bytes: '',
      bool_list: [],
    });
  });

  it.each([
    ['uint32', '-1'],
    ['uint32', '4294967296'],
    ['int32', '2147483648'],
    ['int32', '1e2'],
    ['int32', '6.00000000000000000001'],
    ['int64', '9223372036854775808'],
    ['int64', '"-9223372036854775809"'],
    ['int64', `"${'9'.repeat(1000)}"`],
    ['int64', '1.5'],
    ['uint64', '"-1"'],
    ['uint64', '" "'],
    ['float', '3.5e38'],
    ['double', '1e400'],
    ['double', '"1"'],
    ['double', '"NaN"'],
    ['bytes', '"*"'],
    ['bytes', '[1]'],
    ['bool', '1'],
  ])('REST JSON refuses, in a field of type %s, the value %s', (field, literal) => {
    const read = () => decodeScalars(parseJson(Buffer.from(`{"${field}":${literal}}`)));
    expect(read).toThrow(ServiceError);
    expect(read).toThrow(new RegExp(`^${field}: `));
  });

  it.each([
    ['int32', '6.0', 6],
    ['int32', '6.00000000000000000000', 6],
    ['int32', '-0', 0],
    ['int64', '9007199254740993', 9007199254740993n],
    ['int64', '-0', 0n],
    ['double', '1e2', 100],
  ])('REST JSON reads, in a field of type %s, the value %s', (field, literal, value) => {
    const message = decodeScalars(parseJson(Buffer.from(`{"${field}":${literal}}`)));
    expect(message[field]).toBe(value);
  });

  it('creating a codec fails for message types without a REST JSON form', () => {
    expect(() => jsonEncoder(Int32ValueSchema)).toThrow('google.protobuf.Int32Value');
    expect(() => jsonDecoder(Int32ValueSchema)).toThrow('google.protobuf.Int32Value');
    expect(() => jsonEncoder(FileDescriptorProtoSchema)).toThrow('google.protobuf.FileDescriptorProto');
  });
});
