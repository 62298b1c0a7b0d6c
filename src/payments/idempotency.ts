import { createHmac, timingSafeEqual } from 'node:crypto';
import { toBinary } from '@bufbuild/protobuf';
import type { Value } from '@bufbuild/protobuf/wkt';
import type { CardDataInput, CardInput, PaymentMethodInput } from '#gen/payments/v1/payment_method_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { ServiceError } from '#src/service-error.ts';
import type { KeyHolder } from '#src/store/payments.ts';

const KEY_FORM = /^[\x20-\x7e]{1,255}$/;

/**
 * The idempotency key of a call: 1 to 255 printable ASCII characters, opaque.
 *
 * @throws ServiceError IDEMPOTENCY_KEY_MISSING when it is absent or not of that form.
 */
export function requireIdempotencyKey(header: string | undefined): string {
  if (header !== undefined && KEY_FORM.test(header)) return header;
  const message = header === undefined ? 'is required' : 'must be 1 to 255 printable ASCII characters';
  throw new ServiceError('IDEMPOTENCY_KEY_MISSING', `x-idempotency-key: ${message}`, {
    fields: [
      { field: 'x-idempotency-key', code: header === undefined ? 'REQUIRED' : 'INVALID_FORMAT', message },
    ],
  });
}

/**
 * A keyed hash over the canonical request: its binary encoding (fields in the order of their numbers), without the
 * security code. Field order, white space, number or string, and the protocol used make no difference to it.
 */
export function hashRequest(key: Uint8Array, request: CreatePaymentRequest): Buffer {
  const bytes = toBinary(CreatePaymentRequestSchema, withOrderedMembers(withoutSecurityCode(request)), {
    writeUnknownFields: false,
  });
  return createHmac('sha256', key).update(bytes).digest();
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

/** Protobuf writes a map in the order in which it was read: that of free JSON's members means nothing. */
function withOrderedMembers(request: CreatePaymentRequest): CreatePaymentRequest {
  const { customerPayer } = request;
  if (!customerPayer || customerPayer.deviceFingerprints.length === 0) return request;
  const deviceFingerprints = customerPayer.deviceFingerprints.map(orderedMembers);
  return { ...request, customerPayer: { ...customerPayer, deviceFingerprints } };
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

/** @throws ServiceError IDEMPOTENCY_KEY_REUSED when the key is held by another request. */
export function requireSameRequest(held: KeyHolder, requestHash: Uint8Array): void {
  if (timingSafeEqual(held.requestHash, requestHash)) return;
  throw new ServiceError(
    'IDEMPOTENCY_KEY_REUSED',
    'x-idempotency-key: was used before, with another request',
    {
      fields: [
        { field: 'x-idempotency-key', code: 'NOT_ALLOWED', message: 'was used before, with another request' },
      ],
    },
  );
}

/** How a held key is waited for: by reading again, with growing pauses, up to a bound. */
export type Patience = {
  readonly waitMs: number;
  readonly retryAfterS: number;
  readonly pause: (ms: number) => Promise<unknown>;
};

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;

/**
 * Waits until the payment that holds a key has its answer.
 *
 * @param first the holder, when it was read already.
 * @param read reads the holder again.
 * @throws ServiceError REQUEST_IN_PROGRESS when it has none by then.
 */
export async function awaitAnswer(
  first: KeyHolder | undefined,
  read: () => Promise<KeyHolder | undefined>,
  patience: Patience,
): Promise<KeyHolder & { answer: Uint8Array }> {
  const deadline = performance.now() + patience.waitMs;
  let held = first ?? (await read());
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    const answer = held?.answer;
    if (held && answer) return { ...held, answer };
    if (performance.now() + pauseMs > deadline) {
      throw new ServiceError('REQUEST_IN_PROGRESS', 'the first request with this key has no answer yet', {
        retryAfterS: patience.retryAfterS,
      });
    }
    await patience.pause(pauseMs);
    held = await read();
  }
}
