import type { JsonObject } from '@bufbuild/protobuf';
import type { AttemptFacts } from '#src/connectors/attempt.ts';
import type { LookedUp, LookUp, Outcome, Target } from '#src/connectors/connector.ts';
import type { HttpResult } from '#src/connectors/http-client.ts';
import {
  alarmingOutcome,
  bodyOf,
  isTextLike,
  neverHappens,
  objectAt,
  objectsAt,
  unknownOutcome,
} from '#src/connectors/provider-answer.ts';
import {
  type Asked,
  fromAnswer,
  fromOrder,
  fromRefund,
  isAbout,
  isErrorBody,
  PAYPAL_ID,
  unitOf,
} from './from-provider.ts';
import { toPayPalAmount } from './money.ts';
import { errorDataOf, type ShownAs } from './provider-data.ts';
import type { PayPalSettings } from './settings.ts';
import { createOrder, getOrder, getRefund, refundCapture, type Send } from './to-provider.ts';

type Refund = Extract<LookedUp, { kind: 'capture' | 'cancel' | 'refund' }>;

/** The order of a payment, and its capture once there is one. */
export type References = { readonly orderId: string; readonly captureId: string | undefined };

const HOUR_MS = 3_600_000;
/** Orders keep the ids of requests for 6 hours; with an hour less for clocks and queues. */
const REPEATABLE_MS = 5 * HOUR_MS;
/** For so long a payer can approve an order, which is not found afterwards. */
const ORDER_LIVES_MS = 3 * HOUR_MS;
/** By then a refund that the capture knows nothing of was never taken up. */
const REFUND_SHOWS_MS = 6 * HOUR_MS;
/** Refunds keep the ids of requests for 45 days; with a day less. */
const REFUND_REPEATABLE_MS = 44 * 24 * HOUR_MS;

/** Reads what an outcome's `reference` told of a payment. */
export function referencesOf(reference: string | undefined): References | undefined {
  const [orderId, captureId] = reference?.split('/') ?? [];
  if (!isTextLike(orderId, PAYPAL_ID)) return undefined;
  return { orderId, captureId: isTextLike(captureId, PAYPAL_ID) ? captureId : undefined };
}

/**
 * Learns what became of a transaction. An order is read by its id; where that was never learned, creating the order is
 * repeated under the same id, which tells the same order as it is now. A refund is read by its id, or found with its
 * payment's order by ours; where the order does not tell of it, it is repeated under the same id, which tells what became
 * of the first request, or carries it out.
 */
export async function lookUp(
  query: LookUp,
  send: Send,
  settings: PayPalSettings,
  shownAs: ShownAs,
  nowMs: number,
): Promise<Outcome> {
  const { of } = query;
  const outcome =
    of.kind === 'wallet_redirect'
      ? await lookUpPayment(query, of.attempt, send, settings, shownAs, nowMs)
      : of.kind === 'refund'
        ? await lookUpRefund(query, of, send, shownAs, nowMs)
        : unknownOutcome(`the connector sent no ${of.kind}`);
  // That PayPal could not be asked is not its word.
  return outcome.kind === 'not_sent' && outcome !== NEVER ? unknownOutcome(outcome.detail) : outcome;
}

const NEVER = neverHappens('the provider has not heard of it, and never will');

async function lookUpPayment(
  query: LookUp,
  facts: AttemptFacts,
  send: Send,
  settings: PayPalSettings,
  shownAs: ShownAs,
  nowMs: number,
): Promise<Outcome> {
  const { transactionId, money, close, sentAtMs } = query;
  const references = referencesOf(query.reference);
  const asked: Asked = { transactionId, money, orderId: references?.orderId, shownAs };
  const age = nowMs - sentAtMs;
  if (!references) {
    // Nobody was told where to approve the order, and only our own capture could take its money.
    if (close || age > REPEATABLE_MS) return NEVER;
    const amount = toPayPalAmount(money);
    if (!amount) return NEVER;
    const created = await send(createOrder(facts, amount, settings));
    return fromAnswer(created, shownAs, (body) => fromOrder(body, asked));
  }
  const result = await send(getOrder(references.orderId));
  const notFound = notFoundOf(result);
  if (notFound) {
    return age > ORDER_LIVES_MS && references.captureId === undefined
      ? { kind: 'expired', providerData: errorDataOf(notFound, shownAs) }
      : unknownOutcome('the provider does not find the order');
  }
  const outcome = fromAnswer(result, shownAs, (body) => fromOrder(body, asked));
  // Only our own capture takes the money, and there will be none.
  if (close && outcome.kind === 'redirect') {
    const { redirectUrl: _, ...told } = outcome;
    return { ...told, kind: 'expired' };
  }
  return outcome;
}

async function lookUpRefund(
  { transactionId, money, reference, close, sentAtMs }: LookUp,
  { payment, target, description }: Refund,
  send: Send,
  shownAs: ShownAs,
  nowMs: number,
): Promise<Outcome> {
  const asked = { transactionId, money, shownAs };
  if (isTextLike(reference, PAYPAL_ID)) {
    const result = await send(getRefund(reference));
    return fromAnswer(result, shownAs, (body) =>
      body.id === reference
        ? fromRefund(body, asked)
        : alarmingOutcome("the provider's answer is not about this attempt: its id differs"),
    );
  }
  const references = referencesOf(payment.reference);
  const captureId = captureIdOf(target, payment);
  const amount = toPayPalAmount(money);
  if (!references || captureId === undefined || !amount) {
    return unknownOutcome("the payment's order is not known");
  }
  const { orderId } = references;
  const age = nowMs - sentAtMs;
  const result = await send(getOrder(orderId));
  const told = fromAnswer(result, shownAs, (order) => {
    const found = unitOf(order, { ...payment, orderId, shownAs });
    if ('kind' in found) return found;
    const payments = objectAt(found.unit, 'payments');
    const refunds = objectsAt(payments, 'refunds');
    const ours = refunds.filter((refund) => isAbout(refund, transactionId));
    if (ours.length > 1) return alarmingOutcome('the refund was made more than once');
    if (ours[0]) return fromRefund(ours[0], asked);
    return close && age > REFUND_SHOWS_MS && tellsAll(payments, refunds) ? NEVER : NOT_TOLD;
  });
  if ((told !== NEVER && told !== NOT_TOLD) || age > REFUND_REPEATABLE_MS) return told;
  const repeat = await send(refundCapture({ transactionId, description }, captureId, amount));
  const outcome = fromAnswer(repeat, shownAs, (body) => fromRefund(body, asked));
  // That a repeat is refused, or its answer lost, says nothing about the first.
  const saysNothing = outcome.kind === 'not_sent' || (outcome.kind === 'unknown' && !outcome.alarm);
  return saysNothing ? told : outcome;
}

const NOT_TOLD = unknownOutcome('the provider has not heard of it yet');

/** The capture whose money a refund gives back. */
export function captureIdOf(target: Target, payment: Target): string | undefined {
  return (referencesOf(target.reference) ?? referencesOf(payment.reference))?.captureId;
}

/** Returns true if what an order tells of refunds leaves none out: each names its transaction, or there is none at all. */
function tellsAll(payments: JsonObject, refunds: readonly JsonObject[]): boolean {
  const captures = objectsAt(payments, 'captures');
  const isRefunded = captures.length !== 1 || captures[0]?.status !== 'COMPLETED';
  return isRefunded
    ? refunds.length > 0 && refunds.every(({ custom_id: id }) => typeof id === 'string')
    : refunds.length === 0;
}

/** PayPal's own word that there is no such order. */
function notFoundOf(result: HttpResult): JsonObject | undefined {
  const body = bodyOf(result, 404);
  return body && isErrorBody(body) ? body : undefined;
}
