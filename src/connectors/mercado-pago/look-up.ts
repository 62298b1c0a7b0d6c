import type { JsonObject } from '@bufbuild/protobuf';
import {
  alarmingOutcome,
  isJsonObject,
  neverHappens,
  readJsonObject,
  unknownOutcome,
} from '../kit/provider-answer.ts';
import type { ProviderCall } from '../kit/provider-client.ts';
import type { LookedUp, LookUp, OperationKind } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import {
  type Payment,
  type Preference,
  providerDataOf,
  type Refund,
  readPayment,
  readPreference,
  readRefund,
  readSearch,
} from './answers.ts';
import {
  type Asked,
  FAILED,
  fromPreference,
  fromRefund,
  fromRefundResult,
  totalsOf,
} from './from-provider.ts';
import { toAmount } from './money.ts';
import { endedDisputesOf, fromFailed, fromPayments } from './payments.ts';
import { parseReference } from './reference.ts';
import type { MercadoPagoSettings } from './settings.ts';
import {
  BACKDATED_MS,
  closePreference,
  createRefund,
  getPayment,
  getPreference,
  listRefunds,
  type Send,
  searchPayments,
  type Target,
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

/** The context of one call of a connection. */
export type Call = ProviderCall<Target, MercadoPagoSettings>;

type OfRefund = Extract<LookedUp, { kind: OperationKind }>;

/** Looks up the outcome of a transaction. */
export async function lookUp(query: LookUp, { send, shownAs }: Call): Promise<Outcome> {
  const { of, transactionId, money } = query;
  const asked: Asked = { transactionId, money, shownAs };
  switch (of.kind) {
    case 'PAYER_PAGE':
      return lookUpPayer(query, send, asked);
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
  const payments = await readPayments(query.hint?.providerPaymentId, known.paymentId, send, asked);
  if ('fault' in payments) return unknownOutcome(payments.fault);
  const decision = fromPayments(payments.found, preferenceId, asked);
  if (decision.kind === 'approved') {
    const id = query.hint?.providerPaymentId ?? refundedId(payments.found, decision.providerPaymentId);
    return withLaterNews(decision, { id, hasRefunds: query.isRefunded === true }, send, asked);
  }
  if (decision.kind !== 'open') return decision;

  const { failed } = decision;
  const end = (forMs: number) => {
    if (forMs < 0) return undefined;
    if (forMs < SEARCH_LAG_MS) return CLOSED;
    return failed ? fromFailed(failed, preferenceId, asked) : expired(query.reference, asked);
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

/** Returns the id of the paid payment if it has been refunded since: no notification need name it then. */
function refundedId(payments: readonly Payment[], paidId: string | undefined): string | undefined {
  const paid = payments.find(({ id }) => id === paidId);
  return paid?.status === 'refunded' || paid?.transaction_amount_refunded ? paidId : undefined;
}

/**
 * Adds later events of a payment that a notification names or that was refunded: refunds, and disputes that have ended.
 * The payment is read by its id because a search may still return its earlier state.
 */
async function withLaterNews(
  approved: Extract<Outcome, { kind: 'approved' }>,
  { id: reportedId, hasRefunds }: { readonly id: string | undefined; readonly hasRefunds: boolean },
  send: Send,
  asked: Asked,
): Promise<Outcome> {
  if (reportedId === undefined) return approved;
  const answer = await read(send, getPayment(reportedId));
  if ('fault' in answer) return unknownOutcome(answer.fault);
  const payment = readPayment(answer.body);
  const { status, transaction_amount_refunded: isRefunded } = payment;
  const reported = { ...approved, endedDisputes: endedDisputesOf(payment) };
  // During a dispute, it is still undecided who gets the money. A second payment does not belong to this transaction.
  const isOwn = parseReference(approved.reference).paymentId === reportedId;
  if (!isOwn || (status !== 'approved' && status !== 'refunded')) return reported;
  const mustRead = isRefunded || hasRefunds || status === 'refunded';
  const refunds = mustRead ? await readRefunds(reportedId, send) : { found: [] };
  if ('fault' in refunds) return unknownOutcome(refunds.fault);
  const totals = totalsOf(refunds.found, reportedId, asked);
  return totals ? { ...reported, totals } : alarmingOutcome("the payment's refunds are unreadable");
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

function expired(reference: string | undefined, asked: Asked): Outcome {
  const providerData = providerDataOf({ status: 'expired' }, asked.shownAs);
  return { kind: 'expired', providerData, ...(reference !== undefined && { reference }) };
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

type Found = { readonly found: readonly Payment[] } | { readonly fault: string };

/**
 * Reads a transaction's payments, the newest first. The search result may still lack the payment just reported by a
 * notification or the payment already known, so both are read by id.
 */
async function readPayments(
  reportedId: string | undefined,
  knownId: string | undefined,
  send: Send,
  asked: Asked,
): Promise<Found> {
  const search = await read(send, searchPayments(asked.transactionId));
  if ('fault' in search) return search;
  const { results, paging } = readSearch(search.body);
  if (!Array.isArray(results) || !results.every(isJsonObject))
    return { fault: 'the response is not a search result' };
  if (paging.total === undefined || paging.total > results.length)
    return { fault: 'the response is not the complete search result' };
  const listed = results.map(readPayment);
  const known = await readUnlisted(knownId, listed, send);
  if ('fault' in known) return known;
  const reported = await readUnlisted(reportedId === knownId ? undefined : reportedId, listed, send);
  if ('fault' in reported) return reported;
  return { found: [...reported.found, ...listed, ...known.found] };
}

/** Reads a payment by its id unless the list contains it. */
async function readUnlisted(
  paymentId: string | undefined,
  listed: readonly Payment[],
  send: Send,
): Promise<Found> {
  if (paymentId === undefined || listed.some(({ id }) => id === paymentId)) return { found: [] };
  const payment = await read(send, getPayment(paymentId));
  return 'fault' in payment ? payment : { found: [readPayment(payment.body)] };
}

/**
 * Reads a payment's refunds, which arrive as a bare list. `nowMs` is the time on the provider's clock, which also dates
 * the refunds.
 */
async function readRefunds(
  paymentId: string,
  send: Send,
): Promise<{ readonly found: readonly Refund[]; readonly nowMs: number } | { readonly fault: string }> {
  const result = await send(listRefunds(paymentId));
  if (result.kind !== 'answer') return { fault: result.detail };
  const list = readJsonObject(Buffer.concat([Buffer.from('{"list":'), result.body, Buffer.from('}')]))?.list;
  const isList = result.status === 200 && Array.isArray(list) && list.every(isJsonObject);
  const nowMs = Date.parse(result.headers.date ?? '') || Date.now();
  return isList
    ? { found: list.map(readRefund), nowMs }
    : { fault: `the provider's response: ${result.status}` };
}

async function read(send: Send, target: Target): Promise<{ body: JsonObject } | { fault: string }> {
  const result = await send(target);
  if (result.kind !== 'answer') return { fault: result.detail };
  const body = readJsonObject(result.body);
  if (result.status !== 200 || !body) return { fault: `the provider's response: ${result.status}` };
  return { body };
}
