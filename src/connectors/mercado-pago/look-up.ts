import { alarmingOutcome, neverHappens, unknownOutcome } from '../kit/provider-answer.ts';
import type { LookedUp, LookUp, OperationKind } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { type Payment, type Preference, readPreference } from './answers.ts';
import { lookUpCard, lookUpOperation } from './cards.ts';
import { findPayments, read } from './find-payments.ts';
import { type Asked, FAILED, fromPreference, fromRefund, fromRefundResult } from './from-provider.ts';
import { readRefunds, withLaterNews } from './later-news.ts';
import { localMethodsOf } from './local-methods.ts';
import { expiredUnseen, lookUpCode } from './look-up-code.ts';
import { toAmount } from './money.ts';
import { fromFailed, fromPayments } from './payments.ts';
import { parseReference } from './reference.ts';
import {
  BACKDATED_MS,
  type Call,
  closePreference,
  createRefund,
  getPreference,
  type Send,
} from './to-provider.ts';

/**
 * Time from a preference's expiry until a search is sure to list all of its payments. Mercado Pago guarantees no
 * consistency.
 */
const SEARCH_LAG_MS = 10 * 60_000;
/** Time for which we can rely on an idempotency key being kept. The actual lifetime is undocumented. */
const KEY_LIVES_MS = 10 * 60_000;

/** Milliseconds by which the provider's own clocks may differ, including the rounding of the date header. */
const CLOCKS_DIFFER_MS = 60_000;

type OfRefund = Extract<LookedUp, { kind: OperationKind }>;

/** Looks up the outcome of a transaction. */
export async function lookUp(query: LookUp, call: Call): Promise<Outcome> {
  const { send, settings, shownAs } = call;
  const { of, transactionId, money } = query;
  const asked: Asked = { transactionId, money, shownAs };
  switch (of.kind) {
    case 'PAYER_PAGE':
      return lookUpPayer(query, send, asked);
    case 'PAYER_CODE':
      return lookUpCode(query, localMethodsOf(settings)[of.type]?.close ?? false, send, asked);
    case 'CARD':
      return lookUpCard(query, of, call, asked);
    case 'capture':
    case 'cancel':
      return lookUpOperation(query, { ...of, kind: of.kind }, call);
    case 'refund':
      return lookUpRefund(query, of, send, asked);
    default:
      return unknownOutcome('the provider does not support this kind of transaction');
  }
}

/**
 * Looks up the outcome for a payer who was sent to a preference. Payments are found by our reference. A found payment
 * is proof, but an empty result is proof only long after the preference was closed.
 */
async function lookUpPayer(query: LookUp, send: Send, asked: Asked): Promise<Outcome> {
  // Measured before the first request: an empty result proves nothing about later payments.
  const { ageMs, payerTimeLeftMs } = query;
  const known = parseReference(query.reference);
  const { preferenceId } = known;
  let endedForMs = -payerTimeLeftMs;
  if (query.close && preferenceId !== undefined) {
    const closed = await close(preferenceId, ageMs, send);
    if ('fault' in closed) return unknownOutcome(`closing the preference: ${closed.fault}`);
    endedForMs = Math.max(endedForMs, closed.forMs);
  }
  const payments = await findPayments(query.hint?.providerPaymentId, known.paymentId, send, asked);
  if ('fault' in payments) return unknownOutcome(payments.fault);
  const decision = fromPayments(payments.found, preferenceId, asked);
  if (decision.kind === 'approved') {
    return withLaterNews(decision, payments.found, query, send, asked);
  }
  if (decision.kind !== 'open') return decision;

  const { failed } = decision;
  const end = (forMs: number) => {
    if (forMs < 0) return undefined;
    if (forMs < SEARCH_LAG_MS) return CLOSED;
    return failed ? fromFailed(failed, preferenceId, asked) : expiredUnseen(query.reference, asked);
  };
  const ended = end(endedForMs);
  if (preferenceId === undefined) {
    return ended && ended !== CLOSED ? ended : neverSentAway(query.close, failed);
  }
  if (ended) return ended;
  const answer = await read(send, getPreference(preferenceId));
  if ('fault' in answer) return unknownOutcome(answer.fault);
  const preference = readPreference(answer.body);
  // The preference may have been closed early.
  const redirect = fromPreference(preference, asked) ?? unknownOutcome('the response is not a preference');
  return redirect.kind === 'awaits_payer' ? (end(closedForMs(preference, ageMs)) ?? redirect) : redirect;
}

const CLOSED = unknownOutcome('the preference is closed, but its last payments might not be listed yet');

/**
 * Closes a preference unless it is already closed: closing it again would change its end time.
 *
 * @returns the time since it ended.
 */
async function close(
  preferenceId: string,
  ageMs: number,
  send: Send,
): Promise<{ readonly forMs: number } | { readonly fault: string }> {
  const preference = await read(send, getPreference(preferenceId));
  if ('fault' in preference) return preference;
  const forMs = closedForMs(readPreference(preference.body), ageMs);
  if (forMs >= 0) return { forMs };
  const closed = await read(send, closePreference(preferenceId, Date.now()));
  return 'fault' in closed ? closed : { forMs: 0 };
}

/**
 * Returns how long ago a preference stopped being payable; negative while it still is. This is its age minus the time
 * that it was open according to its own fields. The result is too small if our clock was ahead when the preference was
 * closed.
 *
 * @param ageMs the preference's age, taken from its transaction, which was stored just before it was created.
 */
function closedForMs(
  { expires, expiration_date_to: end, date_created: made }: Preference,
  ageMs: number,
): number {
  const openMs = Date.parse(end) + BACKDATED_MS - Date.parse(made);
  return expires !== true || Number.isNaN(openMs) ? Number.NEGATIVE_INFINITY : ageMs - openMs;
}

/**
 * Looks up the outcome of a refund. If the response was lost, the refund's id is unknown: a later refund of the same
 * amount that no other transaction claims must be this one. Otherwise the request is repeated: under its key while the
 * key is sure to be kept, and later only if the payment has no unclaimed refund of that amount.
 */
async function lookUpRefund(query: LookUp, of: OfRefund, send: Send, asked: Asked): Promise<Outcome> {
  const { paymentId } = parseReference(of.payment.reference);
  const amount = toAmount(query.money);
  if (paymentId === undefined || amount === undefined)
    return unknownOutcome("the refund's payment is unknown");
  const refunds = await readRefunds(paymentId, send);
  if ('fault' in refunds) return unknownOutcome(refunds.fault);
  if (query.reference !== undefined) {
    const own = refunds.found.find(({ id }) => id === query.reference);
    return own ? fromRefund(own, paymentId, asked) : unknownOutcome('the refund is not listed');
  }
  const unclaimed = refunds.found.filter(
    (refund) => refund.amount === amount && !of.claimed.includes(refund.id ?? ''),
  );
  const sentAtMs = refunds.nowMs - query.ageMs - CLOCKS_DIFFER_MS;
  // A refund with an unreadable date may be later.
  const since = unclaimed.filter(({ date_created: date }) => !(Date.parse(date) < sentAtMs));
  const own = since.find(({ status }) => !FAILED.some((failed) => failed === status)) ?? since[0];
  if (own) return fromRefund(own, paymentId, asked);
  if (unclaimed.length > 0 && query.ageMs >= KEY_LIVES_MS) {
    return unknownOutcome('the payment has a refund of this amount that may or may not be this one');
  }
  const result = await send(createRefund(paymentId, amount, query.transactionId));
  const outcome = fromRefundResult(result, paymentId, asked);
  // A refused repeat proves nothing about the first request.
  return outcome.kind === 'not_sent' ? unknownOutcome(outcome.detail) : outcome;
}

/**
 * Returns the outcome for a transaction without a reference: the outcome of creating its preference was not stored, so
 * the payer never got the URL.
 *
 * @param failed a failed payment, which would mean that someone had the URL after all.
 */
function neverSentAway(close: boolean, failed: Payment | undefined): Outcome {
  if (failed) return alarmingOutcome('someone tried to pay a preference that no payer was sent to');
  return close
    ? neverHappens('no payer was ever sent to its preference')
    : unknownOutcome('no payment was found');
}
