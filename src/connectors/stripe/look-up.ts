import type { JsonObject } from '@bufbuild/protobuf';
import { alarmingOutcome, bodyOf, isTextLike, neverHappens, unknownOutcome } from '../kit/provider-answer.ts';
import type { ShownAs } from '../kit/provider-client.ts';
import type { LookedUp, LookUp, OperationKind } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { INTENT_ID, readFound, readIntent, readRefund, readRefunds } from './answers.ts';
import {
  type AskedIntent,
  type AskedRefund,
  fromIntent,
  fromRefund,
  type Open,
  referringTo,
  totalsOf,
} from './from-provider.ts';
import { toStripeMoney } from './money.ts';
import { createIntent } from './preparations.ts';
import { isKeyUsed } from './refusals.ts';
import { get, intentPath, post, type Send } from './to-provider.ts';

/**
 * Stripe keeps idempotency keys for at least 24 hours. We rely on one hour less, because requests may wait in queues.
 * Later, a repeat under the same key would be a new request.
 */
const REPEATABLE_MS = 23 * 3_600_000;
const MAX_REFUNDS = 100;
const NO_REFUNDS = { refunds: [], isWhole: true };
const CANNOT_BE_ASKED = unknownOutcome('the provider cannot be reached');
const TOO_MANY = unknownOutcome('the payment has more refunds than one list contains');

type Card = Extract<LookedUp, { kind: 'CARD' }>;
type Approved = Extract<Outcome, { kind: 'approved' }>;
type Operated = Extract<LookedUp, { kind: OperationKind }>;
/** Reads the current state at Stripe. */
type Read = () => Promise<Outcome | Open>;

/**
 * Looks up the outcome of a transaction.
 *
 * - A payment: its creation is repeated under its key, which returns its intent or creates an unconfirmed one. To close
 *   a payment, a still open intent is canceled: Stripe then refuses a late confirmation.
 * - A capture, a cancel or a refund: the payment, or the list of its refunds, shows whether it happened. To close it, a
 * harmless request uses up its key, so that Stripe refuses the original request if it arrives late.
 */
export async function lookUp(query: LookUp, send: Send, shownAs: ShownAs): Promise<Outcome> {
  const { of } = query;
  switch (of.kind) {
    case 'CARD':
      return lookUpPayment(query, of, send, shownAs);
    case 'capture':
    case 'cancel':
    case 'refund':
      return lookUpOperation(query, of, send, shownAs);
    default:
      return unknownOutcome(`the connector sent no ${of.kind}`);
  }
}

async function lookUpPayment(query: LookUp, of: Card, send: Send, shownAs: ShownAs): Promise<Outcome> {
  const { transactionId } = query;
  const money = toStripeMoney(query.money);
  if (!money) return unknownOutcome('the provider cannot express this amount in this currency');
  const asked = { payment: { transactionId, money }, of, shownAs };

  const hinted = query.hint?.providerPaymentId;
  const second = isTextLike(hinted, INTENT_ID) && hinted !== query.reference ? hinted : undefined;
  if (query.reference !== undefined && second !== undefined) {
    // Another intent with our id: if it is approved, the core raises the alarm.
    const outcome = await askForIntent({ ...asked, intentId: second }, send);
    if (outcome !== 'open' && outcome.kind === 'approved') return referringTo(second, outcome);
  }
  const reported = query.reference ?? hinted;
  const intentId = isTextLike(reported, INTENT_ID) ? reported : await findIntent(query, of, send);
  if (typeof intentId !== 'string') return intentId;
  const read = () =>
    askForIntent({ ...asked, intentId }, send, (approved, body) =>
      withTotals(approved, body, send, query.isRefunded),
    );
  let outcome = await read();
  if (query.close && (outcome === 'open' || outcome.kind === 'awaits_payer')) {
    // The cancel needs no key, since a second cancel changes nothing. Only the state read afterwards counts.
    await send(post(intentPath(intentId, '/cancel'), { cancellation_reason: 'abandoned' }, undefined));
    outcome = await read();
    if (outcome !== 'open' && outcome.kind === 'awaits_payer') {
      outcome = unknownOutcome('the payment could not be closed, and its payer may still pay');
    }
  }
  if (outcome === 'open')
    return referringTo(intentId, unknownOutcome('the payment is not confirmed, but may still be'));
  return referringTo(intentId, outcome);
}

/** Finds the id of a payment's intent if Stripe's response was lost. */
async function findIntent(query: LookUp, of: Card, send: Send): Promise<string | Outcome> {
  const { transactionId, ageMs } = query;
  const money = toStripeMoney(query.money);
  if (money && ageMs < REPEATABLE_MS) {
    const result = await createIntent(of.attempt, money, of, send);
    const { id } = readIntent(bodyOf(result));
    if (id !== undefined) return id;
    // A creation with other fields (for example without a refused one) has used the key, so the intent exists.
    if (!isKeyUsed(result)) return unknownOutcome('the creation cannot be repeated now');
  }
  // The search index may be an hour behind, so an empty result proves nothing.
  const search = { query: `metadata['transaction_id']:'${transactionId}'` };
  const { data: found } = readFound(bodyOf(await send(get('/v1/payment_intents/search', search))));
  const ours = found.filter(({ metadata }) => metadata.transaction_id === transactionId);
  if (ours.length > 1) {
    const ids = ours.map(({ id }) => id).join(', ');
    return alarmingOutcome(`the provider has several payments for this transaction: ${ids}`);
  }
  return (
    ours[0]?.id ??
    unknownOutcome('the search found nothing, and the creation cannot be repeated; this needs manual review')
  );
}

async function lookUpOperation(query: LookUp, of: Operated, send: Send, shownAs: ShownAs): Promise<Outcome> {
  const { transactionId } = query;
  const intentId = of.payment.reference;
  const money = toStripeMoney(query.money);
  const paid = toStripeMoney(of.payment.money);
  if (!money || !paid || intentId === undefined) return unknownOutcome('the payment is unknown');
  const payment = { transactionId: of.payment.transactionId, money: paid };
  const { kind, claimed } = of;
  const read: Read =
    kind === 'refund'
      ? () => askForRefund({ intentId, refund: { transactionId, money }, shownAs }, claimed, send)
      : () => askForIntent({ intentId, payment, of: { kind, transactionId, money, claimed }, shownAs }, send);
  const outcome = await read();
  if (outcome !== 'open') return outcome;
  if (!query.close) return unknownOutcome('the provider has not received the request yet');
  return closeOperation(query, intentId, read, send);
}

/** Ensures that Stripe can no longer carry out a request that it has not received. */
async function closeOperation(
  { transactionId, ageMs }: LookUp,
  intentId: string,
  read: Read,
  send: Send,
): Promise<Outcome> {
  // After a day, the request can no longer arrive, and its key may be forgotten.
  if (ageMs < REPEATABLE_MS) {
    const used = bodyOf(
      await send(post(intentPath(intentId), { metadata: { closed: transactionId } }, transactionId)),
    );
    if (!used)
      return unknownOutcome(
        "the request's key cannot be used up: the request is in progress, or the provider cannot be reached",
      );
  }
  const outcome = await read();
  if (outcome !== 'open') return outcome;
  return neverHappens('the provider will refuse the request from now on');
}

async function askForIntent(
  asked: AskedIntent & { readonly intentId: string },
  send: Send,
  complete = async (approved: Approved, _body: JsonObject): Promise<Outcome> => approved,
): Promise<Outcome | Open> {
  const body = bodyOf(await send(get(intentPath(asked.intentId), { expand: ['latest_charge'] })));
  if (!body) return CANNOT_BE_ASKED;
  const outcome = fromIntent(body, asked);
  return outcome !== 'open' && outcome.kind === 'approved' ? complete(outcome, body) : outcome;
}

/** Adds a payment's captured and refunded totals; if there are or were refunds, lists them first. */
async function withTotals(
  approved: Approved,
  body: JsonObject,
  send: Send,
  hasRefunds = false,
): Promise<Outcome> {
  const intent = readIntent(body);
  const isRefunded = intent.latest_charge.amount_refunded || hasRefunds;
  const list = isRefunded ? await listRefunds(String(intent.id), send) : NO_REFUNDS;
  if (!list) return CANNOT_BE_ASKED;
  if (!list.isWhole) return TOO_MANY;
  const totals = totalsOf(intent, list.refunds.map(readRefund));
  return totals ? { ...approved, totals } : alarmingOutcome("the payment's refunds are unreadable");
}

async function askForRefund(
  asked: AskedRefund,
  claimed: readonly string[],
  send: Send,
): Promise<Outcome | Open> {
  const list = await listRefunds(asked.intentId, send);
  if (!list) return CANNOT_BE_ASKED;
  const found = list.refunds.find((it) => {
    const { id = '', metadata } = readRefund(it);
    return metadata.transaction_id === asked.refund.transactionId && !claimed.includes(id);
  });
  if (found) return fromRefund(found, asked);
  return list.isWhole ? 'open' : TOO_MANY;
}

async function listRefunds(
  intentId: string,
  send: Send,
): Promise<{ readonly refunds: readonly JsonObject[]; readonly isWhole: boolean } | undefined> {
  const list = bodyOf(await send(get('/v1/refunds', { payment_intent: intentId, limit: MAX_REFUNDS })));
  const { data, has_more: hasMore } = readRefunds(list);
  return data && { refunds: data, isWhole: hasMore === false };
}
