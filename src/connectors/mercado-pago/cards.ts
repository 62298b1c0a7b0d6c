import { turnedAway, unknownOutcome } from '../kit/provider-answer.ts';
import type { AttemptFacts } from '../port/attempt.ts';
import type { LookedUp, LookUp, Operation } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { type CardMethod, createCardPayment, missingForCards } from './card-request.ts';
import { prepareCard } from './card-token.ts';
import { findOwnPayments, readPayments } from './find-payments.ts';
import {
  type AskedOperation,
  fromCardCreation,
  fromCards,
  fromOperated,
  fromOperation,
} from './from-card.ts';
import type { Asked } from './from-provider.ts';
import { withNewsOf } from './later-news.ts';
import { cancelPayment, capturePayment } from './payment-request.ts';
import { parseReference } from './reference.ts';
import { amountIn, type Call } from './to-provider.ts';

/**
 * Charges a card, or authorizes a charge. Only the last request takes money, and it is never repeated: its token pays
 * once, and the card is gone afterwards.
 */
export async function payByCard(
  attempt: AttemptFacts & { readonly method: CardMethod },
  amount: number,
  { send, settings, shownAs }: Call,
): Promise<Outcome> {
  const { method, customerPayer: payer, transactionId, money } = attempt;
  if (method.verify) return turnedAway('it verifies no cards');
  const hasSecurityCode = method.card.securityCode !== undefined;
  const [missing] = missingForCards({ payer, hasSecurityCode }, settings);
  if (missing !== undefined) return turnedAway(`it needs ${missing}`);
  const card = await prepareCard(method.card, payer, settings, send);
  if ('outcome' in card) return card.outcome;
  const result = await send(createCardPayment(attempt, amount, card, settings));
  return fromCardCreation(result, method.capture, { transactionId, money, shownAs });
}

/**
 * Looks up an attempt by card: by Mercado Pago's own id, or else by our reference. The search lags, and the card's token
 * may still arrive, so that absence proves nothing, and nothing can be closed.
 */
export async function lookUpCard(
  query: LookUp,
  { capture }: Extract<LookedUp, { kind: 'CARD' }>,
  { send }: Call,
  asked: Asked,
): Promise<Outcome> {
  const read = await findOwnPayments(query, send, asked);
  if ('fault' in read) return unknownOutcome(read.fault);
  const { found, isSearched } = read;
  const outcome = fromCards(found, capture, asked);
  // The search may still show an earlier state, in which nobody has refunded anything.
  if (outcome.kind !== 'approved' || isSearched) return outcome;
  const payment = found.find(({ id }) => id === outcome.providerPaymentId);
  return payment ? withNewsOf(payment, outcome, query, send, asked) : outcome;
}

/** Captures or cancels an authorization. */
export async function operate(
  kind: AskedOperation['kind'],
  operation: Pick<Operation, 'transactionId' | 'money' | 'payment'>,
  { send, settings, shownAs }: Call,
): Promise<Outcome> {
  const { transactionId, money, payment } = operation;
  const { paymentId } = parseReference(payment.reference);
  const amount = amountIn(money, settings);
  if (paymentId === undefined || amount === undefined) {
    return turnedAway('it does not know this payment or amount');
  }
  const request =
    kind === 'capture'
      ? capturePayment(paymentId, amount, transactionId)
      : cancelPayment(paymentId, transactionId);
  return fromOperation(await send(request), { kind, money, payment: { ...payment, shownAs }, claimed: [] });
}

/**
 * Looks up a capture or a cancel: the payment shows whether it happened. If the authorization is as it was before, the
 * request is sent again. It cannot take effect twice, since an authorization is captured or canceled only once.
 */
export async function lookUpOperation(
  query: LookUp,
  of: Extract<LookedUp, { kind: 'capture' | 'cancel' | 'refund' }> & {
    readonly kind: AskedOperation['kind'];
  },
  call: Call,
): Promise<Outcome> {
  const { transactionId, money } = query;
  const { kind, payment, claimed } = of;
  const { paymentId } = parseReference(payment.reference);
  if (paymentId === undefined) return unknownOutcome('the authorization is unknown');
  const read = await readPayments([paymentId], call.send);
  if ('fault' in read) return unknownOutcome(read.fault);
  const [found] = read.found;
  const asked = { kind, money, payment: { ...payment, shownAs: call.shownAs }, claimed };
  const outcome = found ? fromOperated(found, asked) : unknownOutcome('the payment was not read');
  if (outcome !== 'open') return outcome;
  const repeated = await operate(kind, { transactionId, money, payment }, call);
  // A refused repeat proves nothing about the first request.
  return repeated.kind === 'not_sent' ? unknownOutcome(repeated.detail) : repeated;
}
