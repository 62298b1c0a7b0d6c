import { createHash, createHmac } from 'node:crypto';
import {
  type DescField,
  type DescMessage,
  getOption,
  type JsonObject,
  type JsonValue,
  type Message,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import type { ListValue, Value } from '@bufbuild/protobuf/wkt';
import { not_supported } from '#gen/payments/v1/json_options_pb.js';
import type { CardDataInput, CardInput, PaymentMethodInput } from '#gen/payments/v1/payment_method_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';

/** Hash of a request, and a digest of the fields it covers. */
export type RequestHash = {
  /** Keyed hash of the canonical request. */
  readonly hash: Uint8Array;
  /**
   * Digest of the fields that this release knows. Two hashes can be compared only if their shapes are equal, since a
   * release ignores fields it does not know and so hashes the same request differently.
   */
  readonly shape: Uint8Array;
};

/**
 * Increment whenever a canonical form changes, here or in `wire/canonical-message`, so that hashes in different forms
 * are never compared.
 */
const CANONICAL_FORM = 4;
/** Form of operation requests, whose ids are hashed in one spelling. */
export const OPERATION_FORM = 5;
const SHAPE_BYTES = 16;

/**
 * Returns a function that hashes requests of one type by their binary encoding: the set fields in order of their
 * numbers, without unknown fields and with the members of free-form JSON sorted. Field order, white space, numbers sent
 * as strings, and the protocol make no difference.
 *
 * @param canonical returns a copy of a request in the form to hash.
 * @param form the number of that form.
 */
export function requestHasher<Desc extends DescMessage>(
  schema: Desc,
  canonical: (request: MessageShape<Desc>) => MessageShape<Desc> = (request) => request,
  form: number = CANONICAL_FORM,
): (key: Uint8Array, request: MessageShape<Desc>) => RequestHash {
  const shape = shapeOf(schema, form);
  const ordered = orderOf(schema) as typeof canonical | undefined;
  return (key, request) => {
    const hashed = ordered ? ordered(canonical(request)) : canonical(request);
    const bytes = toBinary(schema, hashed, { writeUnknownFields: false });
    return { hash: createHmac('sha256', key).update(bytes).digest(), shape };
  };
}

type Order = (value: never) => unknown;

const orders = new WeakMap<DescMessage, Order | 'holds no free-form JSON'>();

/** Hashes a payment request without its security code. */
export const hashPaymentRequest = requestHasher(CreatePaymentRequestSchema, withoutSecurityCode);

/** Digests the number, name and type of every field of a message and its nested messages. */
export function shapeOf(schema: DescMessage, form: number = CANONICAL_FORM): Uint8Array {
  const digest = createHash('sha256').update(`${form}\n`);
  // Each message is described once, since the types of free-form JSON refer to themselves.
  const messages = new Set([schema]);
  for (const message of messages) {
    const fields = message.fields.toSorted((a, b) => a.number - b.number);
    for (const field of fields) {
      digest.update(`${message.typeName} ${field.number} ${field.name} ${typeOf(field)}\n`);
      if (field.message) messages.add(field.message);
    }
  }
  return digest.digest().subarray(0, SHAPE_BYTES);
}

function typeOf(field: DescField): string {
  const { scalar, enum: ofEnum, message } = field;
  const key = field.fieldKind === 'map' ? field.mapKey : '';
  return [field.fieldKind, key, scalar, ofEnum?.typeName, message?.typeName, field.presence].join(' ');
}

function withoutSecurityCode(request: CreatePaymentRequest): CreatePaymentRequest {
  const { paymentMethod } = request;
  const { detail } = paymentMethod ?? {};
  if (!paymentMethod || detail?.kind.case !== 'card' || !detail.kind.value.cardData) return request;
  const cardData: CardDataInput = { ...detail.kind.value.cardData, securityCode: '' };
  const card: CardInput = { ...detail.kind.value, cardData };
  const method: PaymentMethodInput = {
    ...paymentMethod,
    detail: { ...detail, kind: { case: 'card', value: card } },
  };
  return { ...request, paymentMethod: method };
}

/**
 * Returns a function that copies a message with the members of its free-form JSON sorted, since Protobuf writes maps in
 * order of arrival and their order has no meaning. Built once per type; undefined if messages of the type contain no
 * free-form JSON.
 */
function orderOf(desc: DescMessage): Order | undefined {
  switch (desc.typeName) {
    case 'google.protobuf.Struct':
      return orderedJson;
    case 'google.protobuf.Value':
      return orderedMembers;
    case 'google.protobuf.ListValue':
      return orderedList;
  }
  const known = orders.get(desc);
  if (known !== undefined) return typeof known === 'function' ? known : undefined;
  const steps = desc.fields.flatMap((field) => {
    // Unsupported fields are refused when set.
    const order = field.message && !getOption(field, not_supported) && orderOf(field.message);
    if (!order) return [];
    if (field.oneof || field.fieldKind === 'map') throw new Error(`${field} cannot hold free-form JSON`);
    return { name: field.localName, order: order as (value: unknown) => unknown };
  });
  const order = (message: Message & Record<string, unknown>) => {
    const copied = { ...message };
    for (const { name, order } of steps) {
      const value = message[name];
      if (Array.isArray(value)) copied[name] = value.map(order);
      else if (value !== undefined) copied[name] = order(value);
    }
    return copied;
  };
  orders.set(desc, steps.length > 0 ? order : 'holds no free-form JSON');
  return steps.length > 0 ? order : undefined;
}

function orderedJson(object: JsonObject): JsonObject {
  const ordered = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(ordered);
    return typeof value === 'object' && value !== null ? orderedJson(value) : value;
  };
  const members = Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, value]) => [name, ordered(value)]));
}

function orderedMembers(value: Value): Value {
  const { kind } = value;
  if (kind.case === 'listValue')
    return { ...value, kind: { case: 'listValue', value: orderedList(kind.value) } };
  if (kind.case !== 'structValue') return value;
  const members = Object.entries(kind.value.fields).sort(([a], [b]) => (a < b ? -1 : 1));
  const fields = Object.fromEntries(members.map(([name, member]) => [name, orderedMembers(member)]));
  return { ...value, kind: { case: 'structValue', value: { ...kind.value, fields } } };
}

function orderedList(list: ListValue): ListValue {
  return { ...list, values: list.values.map(orderedMembers) };
}
