import type { JsonObject } from '@bufbuild/protobuf';
import type { Money } from '#src/money.ts';
import { acceptedReport, notAcceptedReport } from '../kit/account-report.ts';
import type { HttpResult } from '../kit/http-client.ts';
import { alarmingOutcome, bodyOf, judgeProbe, turnedAway } from '../kit/provider-answer.ts';
import { accountAt, openProviderClient } from '../kit/provider-client.ts';
import type { AccountReport } from '../port/account-report.ts';
import { chargesCard, isLocalMethod, type PaymentAttempt } from '../port/attempt.ts';
import { CARDS_ONLY, type Capabilities } from '../port/capabilities.ts';
import type {
  ConnectContext,
  Connector,
  Operation,
  ProviderConnection,
  ReportProblem,
} from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { errorOf, readAccountId, readIntent } from './answers.ts';
import { createCode } from './create-code.ts';
import {
  type AskedIntent,
  CORRECTIONS,
  fromAnswer,
  fromIntent,
  fromRefund,
  type Open,
  referringTo,
} from './from-provider.ts';
import { localMethodsOf } from './local-methods.ts';
import { lookUp } from './look-up.ts';
import { toStripeMoney } from './money.ts';
import { readEvent } from './notifications.ts';
import { createIntent, createPaymentMethod, fromPreparation } from './preparations.ts';
import { FORM, NOTIFICATION_SECRETS, readSettings, type StripeSettings } from './settings.ts';
import { readStripeSettlement } from './settlement.ts';
import { openSettlementSource } from './settlement-source.ts';
import {
  type Call,
  type CardMethod,
  type ChargedMethod,
  cancelFields,
  captureFields,
  confirmFields,
  get,
  httpRequest,
  intentPath,
  missingForResults,
  post,
  refundFields,
  type Send,
  type StripeTarget,
} from './to-provider.ts';
import { readWalletToken } from './wallet-token.ts';

const CAPABILITIES: Capabilities = {
  ...CARDS_ONLY,
  authorization: true,
  captures: 1,
  refunds: 'several',
  close: true,
  cancel: true,
  challenge: true,
  externalThreeDSecure: true,
  missingForResults,
  softDescriptor: true,
  authorizationValidDays: 7,
};

/**
 * Connector for Stripe's PaymentIntents. An attempt creates a payment method and an unconfirmed intent, which charge
 * nothing, and then confirms the intent, which charges. A look-up can always find the intent and can cancel it, after
 * which Stripe refuses every confirmation. Settings: see settings.ts.
 */
export const stripeConnector: Connector = {
  name: 'stripe',
  corrections: CORRECTIONS,
  settlement: { read: readStripeSettlement, windowHours: 2 * 24 },
  // The key, not the host, tells the environment.
  hosts: { TEST: ['api.stripe.com'], LIVE: ['api.stripe.com'] },
  settings: FORM,
  notificationSecrets: NOTIFICATION_SECRETS,
  capabilities: CAPABILITIES,
  connect,
};

const LIST_ONE = get('/v1/payment_intents', { limit: 1 });

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const stripe = readSettings(settings, context.secrets);
  const { origin, accountId, apiKey, isLive, timeoutMs, webhookSecrets } = stripe;
  const { begin, close } = openProviderClient(
    { origin, timeoutMs, proxy: context.proxy },
    (target: StripeTarget) => httpRequest(target, apiKey),
  );
  const { close: closeFiles, ...settlementSource } = openSettlementSource(stripe, begin, context.proxy);
  const shownAs = { providerId: context.providerId, accountId };
  const call = (): Call => ({ send: begin(), settings: stripe, shownAs });
  return {
    ...accountAt([origin, isLive ? 'live' : 'test'], accountId, apiKey),
    environment: environmentOf(stripe),
    capabilities: capabilitiesOf(stripe),
    deadlineMs: timeoutMs,
    pay: (attempt) => pay(attempt, call()),
    capture: (operation) => operate('capture', operation, call()),
    cancel: (operation) => operate('cancel', operation, call()),
    refund: (operation) => refund(operation, call()),
    complete: undefined,
    lookUp: (query) => lookUp(query, call()),
    readNotification:
      webhookSecrets.length > 0
        ? async (notification, nowMs) => readEvent(notification, stripe, nowMs)
        : undefined,
    probe: (report) => probe(begin(), report),
    readAccount: () => readAccount(call()),
    settlementSource,
    close: async () => {
      await closeFiles();
      await close();
    },
  };
}

/** The key, not the host, tells the environment. */
const environmentOf = ({ isLive }: StripeSettings) => (isLive ? 'LIVE' : 'TEST');

function capabilitiesOf({ installments, localMethods, applePayTokens }: StripeSettings): Capabilities {
  return {
    ...CAPABILITIES,
    installments,
    localMethods: localMethodsOf(localMethods),
    walletTokens: ['GOOGLE_PAY', ...(applePayTokens ? ['APPLE_PAY'] : [])],
  };
}

async function pay(attempt: PaymentAttempt, call: Call): Promise<Outcome> {
  const { method } = attempt;
  const money = toStripeMoney(attempt.money);
  if (!money) return turnedAway('it cannot express this amount in this currency');
  if (isLocalMethod(method)) return payByCode(attempt, method.type, money, call);
  if (!chargesCard(method) || method.verify) return turnedAway('it accepts purchases by card only');
  if (method.by === 'card') return charge(attempt, method, method, money, call);
  const token = await readWalletToken(attempt.transactionId, method, call);
  return 'outcome' in token ? token.outcome : charge(attempt, method, token, money, call);
}

/** Makes a code, with which the payer pays later. @param money in Stripe's units. */
async function payByCode(
  attempt: PaymentAttempt,
  type: string,
  money: Money,
  { send, settings, shownAs }: Call,
): Promise<Outcome> {
  const stripeMethod = settings.localMethods.get(type);
  if (!stripeMethod) return turnedAway(`it does not offer ${type}`);
  const result = await createCode({ attempt, money, method: stripeMethod }, send, shownAs);
  if ('outcome' in result) return result.outcome;
  const payment = { transactionId: attempt.transactionId, money };
  const asked: AskedIntent = { intentId: undefined, payment, of: { kind: 'PAYER_CODE' }, shownAs };
  const outcome = fromAnswer(result, asked, (body) => named(body, fromIntent(body, asked)));
  // The look-up cancels an intent that could get another code, and only then it has ended.
  return outcome.kind === 'expired' ? { ...outcome, kind: 'unknown', detail: 'its code has ended' } : outcome;
}

/** Adds the id of an intent that has just been created, unless it is another payment's. */
function named(body: JsonObject, outcome: Outcome | Open): Outcome | Open {
  const { id } = readIntent(body);
  const isAnothers = outcome === 'open' || (outcome.kind === 'unknown' && outcome.alarm);
  return isAnothers || id === undefined ? outcome : referringTo(id, outcome);
}

/**
 * Charges a card, or authorizes a charge.
 *
 * @param source the card, or Stripe's token for it.
 * @param money in Stripe's units.
 */
async function charge(
  attempt: PaymentAttempt,
  method: ChargedMethod,
  source: CardMethod | { readonly token: string },
  money: Money,
  { send, settings, shownAs }: Call,
): Promise<Outcome> {
  const { transactionId } = attempt;
  const [methodResult, intentResult] = await Promise.all([
    createPaymentMethod(attempt, source, send),
    createIntent(attempt, money, method, send),
  ]);
  const paymentMethod = fromPreparation(methodResult, 'payment_method', shownAs);
  if ('outcome' in paymentMethod) return paymentMethod.outcome;
  const intent = fromPreparation(intentResult, 'payment_intent', shownAs);
  if ('outcome' in intent) return intent.outcome;

  const asked: AskedIntent = {
    intentId: undefined,
    payment: { transactionId, money },
    of: { kind: 'CARD', capture: method.capture },
    shownAs,
  };
  const created = fromIntent(intent.body, asked);
  if (created !== 'open') {
    return created.kind === 'unknown' ? created : alarmingOutcome('the payment was already confirmed');
  }
  const intentId = intent.id;
  const fields = confirmFields(attempt, method, paymentMethod.id, settings);
  const result = await send(post(intentPath(intentId, '/confirm'), fields, `${transactionId}:confirm`));
  const confirmed = { ...asked, intentId };
  return referringTo(
    intentId,
    fromAnswer(result, confirmed, (body) => fromIntent(body, confirmed)),
  );
}

async function operate(kind: 'capture' | 'cancel', operation: Operation, call: Call): Promise<Outcome> {
  const { send, shownAs } = call;
  const { transactionId, payment } = operation;
  const [paid, money] = [toStripeMoney(payment.money), toStripeMoney(operation.money)];
  const intentId = payment.reference;
  if (!paid || !money || intentId === undefined) return turnedAway('it does not know this payment or amount');
  const asked: AskedIntent = {
    intentId,
    payment: { transactionId: payment.transactionId, money: paid },
    of: { kind, transactionId, money, claimed: [] },
    shownAs,
  };
  const fields = kind === 'cancel' ? cancelFields(operation) : captureFields(operation, money);
  const result = await send(post(intentPath(intentId, `/${kind}`), fields, transactionId));
  // No reference: the intent's id refers only to the payment.
  return fromAnswer(result, asked, (body) => fromIntent(body, asked));
}

async function refund(operation: Operation, { send, shownAs }: Call): Promise<Outcome> {
  const { transactionId, payment } = operation;
  const money = toStripeMoney(operation.money);
  const intentId = payment.reference;
  if (!money || intentId === undefined) return turnedAway('it does not know this payment or amount');
  const asked = { intentId, refund: { transactionId, money }, shownAs };
  const result = await send(post('/v1/refunds', refundFields(operation, money, intentId), transactionId));
  return fromAnswer(result, asked, (body) => fromRefund(body, asked));
}

/** Lists one payment. A look-up needs the same permission, so a restricted key needs no additional one. */
async function probe(send: Send, report?: ReportProblem): Promise<boolean> {
  const result = await send(LIST_ONE);
  return judgeProbe(result, isList(result), report);
}

/** Reads the account. A restricted key that may not read it is tried as a probe does. */
async function readAccount({ send, settings }: Call): Promise<AccountReport> {
  const { accountId } = settings;
  const environment = environmentOf(settings);
  const result = await send(get('/v1/account', {}));
  const account = readAccountId(bodyOf(result)).id;
  if (account !== undefined) return acceptedReport(account, environment, accountId);
  const isForbidden = errorOf(bodyOf(result, 403)) !== undefined;
  const tried = isForbidden ? await send(LIST_ONE) : result;
  if (isForbidden && isList(tried)) return acceptedReport(undefined, environment);
  return notAcceptedReport(tried, (body) => errorOf(body) !== undefined);
}

function isList(result: HttpResult): boolean {
  return bodyOf(result)?.object === 'list';
}
