import { createHmac, randomBytes } from 'node:crypto';
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';

/** An intent of the fake. */
export type FakeIntent = JsonObject & {
  id: string;
  status: string;
  amount: number;
  currency: string;
  metadata: JsonObject;
};

/** A response of the fake. */
export type Answer = { readonly status: number; readonly body: JsonObject };

/**
 * Ends a request with an error in Stripe's form. `saved` says whether the response is stored under the idempotency key.
 */
export class StripeError extends Error {
  readonly answer: Answer;
  readonly saved: boolean;

  constructor(status: number, error: JsonObject, saved: boolean) {
    super(`${status}`);
    this.answer = { status, body: { error } };
    this.saved = saved;
  }
}

/** A request that fails validation: nothing was started, and nothing is stored under its key. */
export function invalid(message: string, more: JsonObject = {}, status = 400): StripeError {
  return new StripeError(status, { type: 'invalid_request_error', message, ...more }, false);
}

/** An identifier as Stripe writes them. */
export function newId(prefix: string): string {
  return `${prefix}_${randomBytes(12).toString('base64url').replace(/[-_]/g, 'x')}`;
}

/** Reads a form whose names have brackets: `a[b]=1&c[0]=2` is `{ a: { b: '1' }, c: ['2'] }`. */
export function parseForm(text: string): JsonObject {
  const fields: JsonObject = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const steps = name.replaceAll(']', '').split('[');
    const last = steps.pop() ?? '';
    let inner = fields;
    for (const step of steps) {
      inner[step] ??= {};
      inner = inner[step] as JsonObject;
    }
    inner[last] = value;
  }
  return withLists(fields) as JsonObject;
}

function withLists(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]) => [name, withLists(inner)] as const);
  const isList = entries.length > 0 && entries.every(([name]) => /^\d*$/.test(name));
  return isList ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
}

/** The `Stripe-Signature` header of a notification. */
export function stripeSignature(body: string, secrets: readonly string[], atSeconds: number): string {
  const signatures = secrets.map(
    (secret) => `v1=${createHmac('sha256', secret).update(`${atSeconds}.${body}`).digest('hex')}`,
  );
  return [`t=${atSeconds}`, ...signatures, 'v0=00'].join(',');
}

/** Approves charges, or does something else instead. */
export type CardBehaviour =
  | { readonly kind: 'approve' }
  | { readonly kind: 'processing' }
  | {
      readonly kind: 'decline';
      readonly code: string;
      readonly declineCode?: string;
      readonly blocked?: true;
      /** Refused when the payment method is created, before anything can be charged. */
      readonly early?: true;
    }
  | { readonly kind: 'challenge'; readonly next: CardBehaviour };

const APPROVE: CardBehaviour = { kind: 'approve' };
const declined = (code: string, declineCode?: string): CardBehaviour => ({
  kind: 'decline',
  code,
  ...(declineCode !== undefined && { declineCode }),
});

/** Stripe's published test cards. */
export const TEST_CARDS: ReadonlyMap<string, CardBehaviour> = new Map([
  ['4242424242424242', APPROVE],
  ['4000000000000002', declined('card_declined', 'generic_decline')],
  ['4000000000009995', declined('card_declined', 'insufficient_funds')],
  ['4000000000009987', declined('card_declined', 'lost_card')],
  ['4000000000009979', declined('card_declined', 'stolen_card')],
  ['4000000000000069', declined('expired_card')],
  ['4000000000000127', declined('incorrect_cvc')],
  ['4000000000000119', declined('processing_error')],
  ['4242424242424241', { ...declined('incorrect_number'), early: true } as CardBehaviour],
  ['4100000000000019', { ...declined('card_declined', 'fraudulent'), blocked: true } as CardBehaviour],
  ['4000002760003184', { kind: 'challenge', next: APPROVE }],
  ['4000000000003220', { kind: 'challenge', next: APPROVE }],
  ['4000008260003178', { kind: 'challenge', next: declined('card_declined', 'insufficient_funds') }],
]);
