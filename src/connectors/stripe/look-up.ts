import type { JsonObject } from '@bufbuild/protobuf';
import type { Money } from '#src/money.ts';
import type { HttpResult } from '../kit/http-client.ts';
import {
  alarmingOutcome,
  bodyOf,
  isTextLike,
  neverHappens,
  readMoney,
  unknownOutcome,
} from '../kit/provider-answer.ts';
import type { ShownAs } from '../kit/provider-client.ts';
import type { AttemptFacts } from '../port/attempt.ts';
import type { LookedUp, LookUp, OperationKind } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import {
  INTENT_ID,
  moneyOf,
  readCashBalance,
  readFound,
  readIntent,
  readRefund,
  readRefunds,
} from './answers.ts';
import { createCode, preventCode } from './create-code.ts';
import { isReusable, receivedMoney } from './from-code.ts';
import {
  type AskedIntent,
  type AskedRefund,
  fromIntent,
  fromRefund,
  type Open,
  referringTo,
  totalsOf,
} from './from-provider.ts';
import { canClose } from './local-methods.ts';
import { toStripeMoney } from './money.ts';
import { createIntent } from './preparations.ts';
import { isKeyUsed } from './refusals.ts';
import { type Call, get, intentPath, post, type Send } from './to-provider.ts';

/**
 * Stripe keeps idempotency keys for at least 24 hours. We rely on one hour less, because requests may wait in queues.
 * Later, a repeat under the same key would be a new request.
 */
const REPEATABLE_MS = 23 * 3_600_000;
const MAX_REFUNDS = 100;
const NO_REFUNDS = { refunds: [], isWhole: true };
const CANNOT_BE_ASKED = unknownOutcome('the provider cannot be reached');
const TOO_MANY = unknownOutcome('the payment has more refunds than one list contains');

/** A payment by card, or with a code. */
type Paid = Extract<LookedUp, { kind: 'CARD' }> | CodeLookedUp;
type CodeLookedUp = {
  readonly kind: 'PAYER_CODE';
  readonly type: string;
  readonly attempt: AttemptFacts;
};
type Operated = Extract<LookedUp, { kind: OperationKind }>;
/** Reads the current state at Stripe. */
type Read = () => Promise<Outcome | Open>;

/**
 * Looks up the outcome of a transaction.
 *
 * - A payment: its creation is repeated under its key, which returns its intent or creates it: unconfirmed for a card,
 *   with a code for a local method. To close a payment, a still open intent is canceled: Stripe then refuses a late
 *   confirmation, and the code is worthless. A code that Stripe has yet to make is prevented.
 * - A capture, a cancel or a refund: the payment, or the list of its refunds, shows whether it happened. To close it, a
 * harmless request uses up its key, so that Stripe refuses the original request if it arrives late.
 */
export async function lookUp(query: LookUp, call: Call): Promise<Outcome> {
  const { of } = query;
  switch (of.kind) {
    case 'CARD':
      return lookUpPayment(query, of, call);
    case 'PAYER_CODE':
      return lookUpPayment(query, { ...of, kind: 'PAYER_CODE' }, call);
    case 'capture':
    case 'cancel':
    case 'refund':
      return lookUpOperation(query, of, call.send, call.shownAs);
    default:
      return unknownOutcome(`the connector sent no ${of.kind}`);
  }
}

async function lookUpPayment(query: LookUp, of: Paid, call: Call): Promise<Outcome> {
  const { send, shownAs } = call;
  const { transactionId } = query;
  const money = toStripeMoney(query.money);
  if (!money) return unknownOutcome('the provider cannot express this amount in this currency');
  const askedOf = of.kind === 'CARD' ? of : ({ kind: 'PAYER_CODE' } as const);
  const asked = { payment: { transactionId, money }, of: askedOf, shownAs };

  const hinted = query.hint?.providerPaymentId;
  const second = isTextLike(hinted, INTENT_ID) && hinted !== query.reference ? hinted : undefined;
  if (query.reference !== undefined && second !== undefined) {
    // Another intent with our id: if it is approved, the core raises the alarm.
    const outcome = await askForIntent({ ...asked, intentId: second }, send);
    if (outcome !== 'open' && outcome.kind === 'approved') return referringTo(second, outcome);
  }
  const reported = query.reference ?? hinted;
  const intentId = isTextLike(reported, INTENT_ID) ? reported : await findIntent(query, of, call);
  if (typeof intentId !== 'string') return intentId;
  const read = () =>
    askForIntent({ ...asked, intentId }, send, async (outcome, body) =>
      of.kind === 'PAYER_CODE'
        ? withReceived(await withTotals(outcome, body, send, query.isRefunded), body, send)
        : withTotals(outcome, body, send, query.isRefunded),
    );
  const found = await read();
  const outcome = isToBeCanceled(found, query, call) ? await cancel(intentId, found, read, send) : found;
  if (outcome === 'open')
    return referringTo(intentId, unknownOutcome('the payment is not confirmed, but may still be'));
  return referringTo(intentId, outcome);
}

/** Returns true for a payment that is to be closed, and for one whose code has ended but that could get a new one. */
function isToBeCanceled(found: Outcome | Open, query: LookUp, { settings }: Call): boolean {
  const { of, close, payerTimeLeftMs } = query;
  const isOpen = found === 'open' || found.kind === 'awaits_payer';
  if (of.kind !== 'PAYER_CODE') return close && isOpen;
  if (isReusable(found)) return true;
  const method = settings.localMethods.get(of.type);
  // Nothing else ends a transfer, which never expires at Stripe.
  const isOver = method === 'customer_balance' && payerTimeLeftMs <= 0;
  const mayClose = found === 'open' || (method !== undefined && canClose(method));
  return isOpen && (isOver || (close && mayClose));
}

/** Cancels an intent. The cancel needs no key, since a second cancel changes nothing. Only the state read afterwards counts. */
async function cancel(
  intentId: string,
  found: Outcome | Open,
  read: Read,
  send: Send,
): Promise<Outcome | Open> {
  await send(post(intentPath(intentId, '/cancel'), { cancellation_reason: 'abandoned' }, undefined));
  const outcome = await read();
  if (outcome === 'open') return outcome;
  if (outcome.kind === 'awaits_payer') {
    return unknownOutcome('the payment could not be closed, and its payer may still pay');
  }
  if (isReusable(outcome)) return unknownOutcome('the payment has ended, but could not be canceled');
  const isPartlyPaid = outcome.kind === 'expired' && found !== 'open' && 'received' in found;
  return isPartlyPaid && found.received ? { received: found.received, ...outcome } : outcome;
}

/** Finds the id of a payment's intent if Stripe's response was lost. */
async function findIntent(query: LookUp, of: Paid, call: Call): Promise<string | Outcome> {
  const { transactionId, ageMs } = query;
  const money = toStripeMoney(query.money);
  if (money && ageMs < REPEATABLE_MS) {
    const result = await createAgain(query, of, money, call);
    const { id } = readIntent(result && bodyOf(result));
    if (id !== undefined) return id;
    // A creation with other fields (for example without a refused one) has used the key, so the intent exists. A code's
    // creation may also have failed at Stripe after it had begun.
    const isSearched = of.kind === 'PAYER_CODE' || (result && isKeyUsed(result));
    if (!isSearched) return unknownOutcome('the creation cannot be repeated now');
  }
  // The search index may be an hour behind, so an empty result proves nothing.
  const search = { query: `metadata['transaction_id']:'${transactionId}'` };
  const { data: found } = readFound(bodyOf(await call.send(get('/v1/payment_intents/search', search))));
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

/**
 * Repeats the creation of a payment's intent under its key; undefined if that is not possible. To close a payment, the key
 * of a code's creation is used up instead.
 */
async function createAgain(
  { close }: LookUp,
  of: Paid,
  money: Money,
  { send, settings, shownAs }: Call,
): Promise<HttpResult | undefined> {
  const { attempt } = of;
  if (of.kind === 'CARD') return createIntent(attempt, money, of, send);
  const method = settings.localMethods.get(of.type);
  if (!method) return undefined;
  if (close) return preventCode({ attempt, money, method }, send);
  const result = await createCode({ attempt, money, method }, send, shownAs);
  return 'outcome' in result ? undefined : result;
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
  complete = async (outcome: Outcome, _body: JsonObject): Promise<Outcome> => outcome,
): Promise<Outcome | Open> {
  const body = bodyOf(await send(get(intentPath(asked.intentId), { expand: ['latest_charge'] })));
  if (!body) return CANNOT_BE_ASKED;
  const outcome = fromIntent(body, asked);
  return outcome === 'open' ? outcome : complete(outcome, body);
}

/**
 * Adds the money that a payer has transferred, if it is not the amount: what is left on the balance of the payment's own
 * customer. If it cannot be read, the outcome counts without it.
 */
async function withReceived(outcome: Outcome, body: JsonObject, send: Send): Promise<Outcome> {
  if (outcome.kind !== 'approved' && outcome.kind !== 'expired') return outcome;
  const intent = readIntent(body);
  const whole = moneyOf(intent);
  if (intent.customer === undefined || !whole) return outcome;
  const balance = await send(get(`/v1/customers/${intent.customer}/cash_balance`, {}));
  if (balance.kind !== 'answer' || balance.status >= 500) return CANNOT_BE_ASKED;
  const { available } = readCashBalance(bodyOf(balance));
  const left = readMoney(available[whole.currency.toLowerCase()], whole.currency, 'minor_units');
  if (!left || left.minorUnits === 0n) return outcome;
  const settled = outcome.kind === 'approved' ? whole.minorUnits : 0n;
  return { ...outcome, ...receivedMoney({ ...whole, minorUnits: settled + left.minorUnits }) };
}

/** Adds the captured and refunded totals of an approved payment; if there are or were refunds, lists them first. */
async function withTotals(
  outcome: Outcome,
  body: JsonObject,
  send: Send,
  hasRefunds = false,
): Promise<Outcome> {
  if (outcome.kind !== 'approved') return outcome;
  const intent = readIntent(body);
  const isRefunded = intent.latest_charge.amount_refunded || hasRefunds;
  const list = isRefunded ? await listRefunds(String(intent.id), send) : NO_REFUNDS;
  if (!list) return CANNOT_BE_ASKED;
  if (!list.isWhole) return TOO_MANY;
  const totals = totalsOf(intent, list.refunds.map(readRefund));
  return totals ? { ...outcome, totals } : alarmingOutcome("the payment's refunds are unreadable");
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
