import type { HttpResult } from '../kit/http-client.ts';
import {
  alarmingOutcome,
  answeredAboutAnother,
  bodyOf,
  isTextLike,
  neverHappens,
  unknownOutcome,
} from '../kit/provider-answer.ts';
import type { ProviderCall } from '../kit/provider-client.ts';
import type { AttemptFacts } from '../port/attempt.ts';
import type { LookedUp, LookUp, OperationKind, Target } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import {
  errorDataOf,
  isErrorBody,
  PAYPAL_ID,
  type PayPalError,
  readError,
  readOrder,
  readTransaction,
  type Unit,
} from './answers.ts';
import { sendOrder } from './creation.ts';
import {
  type Asked,
  fromAnswer,
  fromCapture,
  fromOrder,
  fromRefund,
  isAbout,
  unitOf,
  withTotals,
} from './from-provider.ts';
import { toPayPalAmount } from './money.ts';
import type { PayPalSettings } from './settings.ts';
import { type ApiRequest, getCapture, getOrder, getRefund, refundCapture } from './to-provider.ts';

/** The context of one call of a connection. */
export type Call = ProviderCall<ApiRequest, PayPalSettings>;
type Refund = Extract<LookedUp, { kind: OperationKind }>;

/** The order of a payment, and its capture once it exists. */
export type References = { readonly orderId: string; readonly captureId: string | undefined };

const HOUR_MS = 3_600_000;
/**
 * PayPal remembers the request ids of orders for 6 hours. We rely on one hour less, because requests may wait in
 * queues.
 */
const REPEATABLE_MS = 5 * HOUR_MS;
/** Time that a payer has to approve an order. Afterwards, PayPal no longer finds the order. */
const ORDER_LIVES_MS = 3 * HOUR_MS;
/** Age after which PayPal cannot have accepted a refund that its order does not show. */
const REFUND_SHOWS_MS = 6 * HOUR_MS;
/**
 * PayPal remembers the request ids of refunds for 45 days. We rely on one day less, because requests may wait in
 * queues.
 */
const REFUND_REPEATABLE_MS = 44 * 24 * HOUR_MS;

/** Reads the ids in the `reference` of a payment's outcome. */
export function referencesOf(reference: string | undefined): References | undefined {
  const [orderId, captureId] = reference?.split('/') ?? [];
  if (!isTextLike(orderId, PAYPAL_ID)) return undefined;
  return { orderId, captureId: isTextLike(captureId, PAYPAL_ID) ? captureId : undefined };
}

/**
 * Looks up the outcome of a transaction. An order is read by its id. If the id is unknown, the creation is repeated
 * under the same request id, which returns the order in its current state. A refund is read by its id, or found in its
 * payment's order by our id. If the order does not contain it, the refund is repeated under the same request id, which
 * returns the outcome of the first request or carries it out.
 */
export async function lookUp(query: LookUp, call: Call): Promise<Outcome> {
  const { of } = query;
  const outcome =
    of.kind === 'PAYER_PAGE'
      ? await lookUpPayment(query, of.attempt, call)
      : of.kind === 'refund'
        ? await lookUpRefund(query, of, call)
        : unknownOutcome(`the connector sent no ${of.kind}`);
  // A failure to reach PayPal proves nothing.
  return outcome.kind === 'not_sent' && outcome !== NEVER ? unknownOutcome(outcome.detail) : outcome;
}

const NEVER = neverHappens('the provider has not received the request and never will');

async function lookUpPayment(query: LookUp, facts: AttemptFacts, call: Call): Promise<Outcome> {
  const { transactionId, money, close, ageMs } = query;
  const { send, settings, shownAs } = call;
  const references = referencesOf(query.reference);
  const asked: Asked = { transactionId, money, orderId: references?.orderId, shownAs };
  if (!references) {
    // No payer was sent to approve the order, and only our own capture could take its money.
    if (close || ageMs > REPEATABLE_MS) return NEVER;
    const amount = toPayPalAmount(money);
    if (!amount) return NEVER;
    const created = await sendOrder(facts, amount, settings, send);
    return fromAnswer(created, shownAs, (body) => fromOrder(readOrder(body), asked));
  }
  const result = await send(getOrder(references.orderId));
  const notFound = notFoundOf(result);
  if (notFound) {
    return ageMs > ORDER_LIVES_MS && references.captureId === undefined
      ? { kind: 'expired', providerData: errorDataOf(notFound, shownAs) }
      : unknownOutcome('the provider does not find the order');
  }
  const outcome = fromAnswer(result, shownAs, (body) => {
    const order = readOrder(body);
    return withTotals(fromOrder(order, asked), order, asked);
  });
  const hinted = query.hint?.providerPaymentId;
  if (outcome.kind === 'approved' && isTextLike(hinted, PAYPAL_ID) && hinted !== outcome.providerPaymentId) {
    const second = await secondCapture(hinted, references.orderId, asked, send);
    if (second) return second;
  }
  // Only our own capture could take the money, and none will follow.
  if (close && outcome.kind === 'awaits_payer') {
    const { show: _, ...reported } = outcome;
    return { ...reported, kind: 'expired' };
  }
  return outcome;
}

/** Reads a capture outside of our order. @returns its outcome if it took money under our transaction's id. */
async function secondCapture(
  captureId: string,
  orderId: string,
  asked: Asked,
  send: Call['send'],
): Promise<Outcome | undefined> {
  const capture = readTransaction(bodyOf(await send(getCapture(captureId))));
  if (capture.id !== captureId || !isAbout(capture, asked.transactionId)) return undefined;
  const outcome = fromCapture(capture, { id: orderId, raw: capture.raw }, asked);
  return outcome.kind === 'approved' ? outcome : undefined;
}

async function lookUpRefund(query: LookUp, of: Refund, call: Call): Promise<Outcome> {
  const { transactionId, money, reference, close, ageMs } = query;
  const { payment, target, description } = of;
  const { send, shownAs } = call;
  const asked = { transactionId, money, shownAs };
  if (isTextLike(reference, PAYPAL_ID)) {
    const result = await send(getRefund(reference));
    return fromAnswer(result, shownAs, (body) => {
      const refund = readTransaction(body);
      return refund.id === reference ? fromRefund(refund, asked) : answeredAboutAnother('id');
    });
  }
  const references = referencesOf(payment.reference);
  const captureId = captureIdOf(target, payment);
  const amount = toPayPalAmount(money);
  if (!references || captureId === undefined || !amount) {
    return unknownOutcome("the payment's order is unknown");
  }
  const { orderId } = references;
  const result = await send(getOrder(orderId));
  const reported = fromAnswer(result, shownAs, (body) => {
    const found = unitOf(readOrder(body), { ...payment, orderId, shownAs });
    if ('kind' in found) return found;
    const { payments } = found.unit;
    const ours = payments.refunds.filter(
      (refund) => isAbout(refund, transactionId) && !of.claimed.includes(refund.id ?? ''),
    );
    if (ours.length > 1) return alarmingOutcome('the refund was made more than once');
    if (ours[0]) return fromRefund(ours[0], asked);
    return close && ageMs > REFUND_SHOWS_MS && tellsAll(payments) ? NEVER : NOT_REPORTED;
  });
  if ((reported !== NEVER && reported !== NOT_REPORTED) || ageMs > REFUND_REPEATABLE_MS) return reported;
  const repeat = await send(refundCapture({ transactionId, description }, captureId, amount));
  const outcome = fromAnswer(repeat, shownAs, (body) => fromRefund(readTransaction(body), asked));
  // A repeat that was refused or never sent adds nothing to the order. A repeat whose response was lost may have
  // refunded the money.
  return outcome.kind === 'not_sent' ? reported : outcome;
}

const NOT_REPORTED = unknownOutcome('the provider has not received the request yet');

/** Returns the id of the capture to refund. */
export function captureIdOf(target: Target, payment: Target): string | undefined {
  return (referencesOf(target.reference) ?? referencesOf(payment.reference))?.captureId;
}

/** Returns true if an order lists all of its refunds: each contains a transaction's id, or nothing was refunded. */
function tellsAll({ captures, refunds }: Unit['payments']): boolean {
  const isRefunded = captures.length !== 1 || captures[0]?.status !== 'COMPLETED';
  return isRefunded
    ? refunds.length > 0 && refunds.every(({ custom_id: id }) => typeof id === 'string')
    : refunds.length === 0;
}

/** Returns PayPal's error if its response says that the requested object does not exist. */
export function notFoundOf(result: HttpResult): PayPalError | undefined {
  const body = bodyOf(result, 404);
  return body && isErrorBody(body) ? readError(body) : undefined;
}
