import { createHash, createHmac } from 'node:crypto';
import {
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import type { Value } from '@bufbuild/protobuf/wkt';
import type { CardDataInput, CardInput, PaymentMethodInput } from '#gen/payments/v1/payment_method_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';

/** Hash of a request, with the fields that were hashed. */
export type RequestHash = {
  /** Keyed hash of the canonical request. */
  readonly hash: Uint8Array;
  /**
   * Digest of the fields that this release knows. Two hashes can be compared only if their shapes are equal: a release
   * that does not know a field ignores it, and hashes the same request differently.
   */
  readonly shape: Uint8Array;
};

/**
 * Raise this whenever a canonical form changes, below or in `wire/canonical-message`, so that hashes of the two forms
 * are never compared.
 */
const CANONICAL_FORM = 3;
/** The same for operations, whose ids are hashed in one form. */
export const OPERATION_FORM = 4;
const SHAPE_BYTES = 16;

/**
 * Returns a function that hashes requests of one type, by their binary encoding (the fields that are set, in the order
 * of their numbers, without unknown ones). Field order, white space, number or string, and the protocol make no
 * difference.
 *
 * @param canonical returns a copy of a request in the form to hash.
 * @param form number of that form.
 */
export function requestHasher<Desc extends DescMessage>(
  schema: Desc,
  canonical: (request: MessageShape<Desc>) => MessageShape<Desc> = (request) => request,
  form: number = CANONICAL_FORM,
): (key: Uint8Array, request: MessageShape<Desc>) => RequestHash {
  const shape = shapeOf(schema, form);
  return (key, request) => {
    const bytes = toBinary(schema, canonical(request), { writeUnknownFields: false });
    return { hash: createHmac('sha256', key).update(bytes).digest(), shape };
  };
}

/** Hashes the request for a payment, without its security code. */
export const hashPaymentRequest = requestHasher(CreatePaymentRequestSchema, (request) =>
  withOrderedMembers(withoutSecurityCode(request)),
);

/** Digests the number, name and type of every field of a message and of the messages within it. */
export function shapeOf(schema: DescMessage, form: number = CANONICAL_FORM): Uint8Array {
  const digest = createHash('sha256').update(`${form}\n`);
  // Each message is described once: those of free JSON refer to themselves.
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

/** Sorts the members of free JSON, whose order means nothing: Protobuf writes maps in the order in which they came. */
function withOrderedMembers(request: CreatePaymentRequest): CreatePaymentRequest {
  const { customerPayer, taxes, additionalData } = request;
  const sellerDetails = additionalData?.sellerDetails;
  const fingerprints = customerPayer?.deviceFingerprints.map(orderedMembers) ?? [];
  if (fingerprints.length === 0 && !taxes && !sellerDetails) return request;
  return {
    ...request,
    ...(customerPayer && { customerPayer: { ...customerPayer, deviceFingerprints: fingerprints } }),
    ...(taxes && { taxes: orderedJson(taxes) }),
    ...(sellerDetails && {
      additionalData: { ...additionalData, sellerDetails: orderedJson(sellerDetails) },
    }),
  };
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
  if (kind.case === 'listValue') {
    const list = { ...kind.value, values: kind.value.values.map(orderedMembers) };
    return { ...value, kind: { case: 'listValue', value: list } };
  }
  if (kind.case !== 'structValue') return value;
  const members = Object.entries(kind.value.fields).sort(([a], [b]) => (a < b ? -1 : 1));
  const fields = Object.fromEntries(members.map(([name, member]) => [name, orderedMembers(member)]));
  return { ...value, kind: { case: 'structValue', value: { ...kind.value, fields } } };
}
