import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { acceptedReport, notAcceptedReport } from '../kit/account-report.ts';
import { sendCreation } from '../kit/lost-creation.ts';
import { bodyOf, judgeProbe, turnedAway } from '../kit/provider-answer.ts';
import { accountAt, openProviderClient } from '../kit/provider-client.ts';
import type { AccountReport } from '../port/account-report.ts';
import type { PaymentAttempt } from '../port/attempt.ts';
import { CARDS_ONLY, type Capabilities } from '../port/capabilities.ts';
import type {
  ConnectContext,
  Connector,
  Operation,
  ProviderConnection,
  ReportProblem,
} from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { readSearch, readUser } from './answers.ts';
import { listBanks } from './banks.ts';
import { missingForCards, missingForResults } from './card-request.ts';
import { operate, payByCard } from './cards.ts';
import { sendPreference } from './creation.ts';
import { CORRECTIONS, fromCreation, fromRefundResult } from './from-provider.ts';
import { localMethodsOf, methodOf } from './local-methods.ts';
import { lookUp } from './look-up.ts';
import { createCode } from './payment-request.ts';
import { fromCodeCreation } from './payments.ts';
import { readNotification } from './read-notified.ts';
import { parseReference } from './reference.ts';
import { FORM, type MercadoPagoSettings, NOTIFICATION_SECRETS, readSettings } from './settings.ts';
import { readMercadoPagoSettlement } from './settlement.ts';
import {
  amountIn,
  type Call,
  createRefund,
  getUser,
  httpRequest,
  searchPayments,
  type Target,
} from './to-provider.ts';

const CAPABILITIES: Capabilities = {
  ...CARDS_ONLY,
  methods: ['CARD', 'PAYER_PAGE'],
  authorization: true,
  captures: 1,
  refunds: 'several',
  cancel: true,
  close: true,
  installments: true,
  softDescriptor: true,
  authorizationValidDays: 5,
};

/**
 * Connector for Mercado Pago. A redirected payer is sent to a preference (Checkout Pro), which moves no money; Mercado
 * Pago then takes the money by itself, and look-ups find the payments by our reference. A local method is a payment of
 * `/v1/payments`, which its payer pays later. A card is exchanged for a token, which such a payment charges at once.
 * Settings: see settings.ts.
 */
export const mercadoPagoConnector: Connector = {
  name: 'mercado-pago',
  corrections: CORRECTIONS,
  // Money is released for up to 30 days. The settlement report has it once it is approved; a week leaves room for news of
  // the success that comes late, and for captures, which may have their authorization's time.
  settlement: {
    read: readMercadoPagoSettlement,
    windowHours: 32 * 24,
    reportHours: { settlement: 7 * 24 },
  },
  // The account, not the host, tells the environment.
  hosts: { TEST: ['api.mercadopago.com'], LIVE: ['api.mercadopago.com'] },
  settings: FORM,
  notificationSecrets: NOTIFICATION_SECRETS,
  capabilities: CAPABILITIES,
  connect,
};

/** Enough for a search that returns fifty payments. */
const MAX_RESPONSE_BYTES = 1024 * 1024;

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const mercadoPago = readSettings(settings, context.secrets);
  const { origin, timeoutMs, accountId, accessToken, webhookSecrets } = mercadoPago;
  const { begin, close } = openProviderClient(
    { origin, timeoutMs, maxResponseBytes: MAX_RESPONSE_BYTES, proxy: context.proxy },
    (target: Target) => httpRequest(target, mercadoPago),
  );
  const shownAs = { providerId: context.providerId, accountId };
  const call = (): Call => ({ send: begin(), settings: mercadoPago, shownAs });
  return {
    ...accountAt([origin], accountId, accessToken),
    environment: isOfTest(mercadoPago) ? 'TEST' : undefined,
    accountCurrency: mercadoPago.currency,
    capabilities: capabilitiesOf(mercadoPago),
    deadlineMs: timeoutMs,
    pay: (attempt) => pay(attempt, call()),
    capture: (operation) => operate('capture', operation, call()),
    cancel: (operation) => operate('cancel', operation, call()),
    refund: (operation) => refund(operation, call()),
    complete: undefined,
    lookUp: (query) => lookUp(query, call()),
    listBanks: (type) => listBanks(methodOf(type, mercadoPago) ?? type, begin()),
    readNotification:
      webhookSecrets.length > 0
        ? (notification, nowMs) => readNotification(notification, nowMs, call())
        : undefined,
    probe: (report) => probe(call(), report),
    readAccount: () => readAccount(call()),
    close,
  };
}

function capabilitiesOf(settings: MercadoPagoSettings): Capabilities {
  return {
    ...CAPABILITIES,
    localMethods: localMethodsOf(settings),
    missingForCards: (sent) => missingForCards(sent, settings),
    storedCredentials: settings.withoutSecurityCode,
    externalThreeDSecure: settings.externalThreeDSecure,
    missingForResults,
  };
}

async function pay(attempt: PaymentAttempt, call: Call): Promise<Outcome> {
  const { send, settings, shownAs } = call;
  const { method, money, transactionId } = attempt;
  const amount = amountIn(money, settings);
  if (amount === undefined) return turnedAway('its account cannot express this amount in this currency');
  if (method.by === 'card') return payByCard({ ...attempt, method }, amount, call);
  if (method.by !== 'payer') return turnedAway('it accepts cards, redirects and local methods only');
  const asked = { transactionId, money, shownAs };
  if (method.show === 'page')
    return fromCreation(await sendPreference(attempt, amount, settings, send), asked);
  const id = methodOf(method.type, settings);
  if (id === undefined) return turnedAway(`its account does not offer ${method.type}`);
  const request = createCode({ ...attempt, method }, amount, id, settings);
  return fromCodeCreation(await sendCreation(send, request), asked);
}

async function refund(operation: Operation, { send, settings, shownAs }: Call): Promise<Outcome> {
  const { transactionId, money, payment } = operation;
  const { paymentId } = parseReference(payment.reference);
  const amount = amountIn(money, settings);
  if (paymentId === undefined || amount === undefined) {
    return turnedAway('it does not know this payment or amount');
  }
  const result = await send(createRefund(paymentId, amount, transactionId));
  return fromRefundResult(result, paymentId, { transactionId, money, shownAs });
}

/** Searches for payments with a new reference. */
async function probe({ send }: Call, report?: ReportProblem): Promise<boolean> {
  const result = await send(searchPayments(randomUUID()));
  return judgeProbe(result, Array.isArray(readSearch(bodyOf(result)).results), report);
}

/** Test users have tokens that look like any other. */
const isOfTest = ({ accessToken }: MercadoPagoSettings) => accessToken.reveal().startsWith('TEST-');

/** Reads the token's user. Mercado Pago's test accounts are users with a tag, whose tokens look like any other. */
async function readAccount({ send, settings }: Call): Promise<AccountReport> {
  const { accountId } = settings;
  const result = await send(getUser());
  const { id, tags } = readUser(bodyOf(result));
  if (id === undefined) return notAcceptedReport(result, (body) => typeof body.message === 'string');
  const isTest = isOfTest(settings) || tags.includes('test_user');
  return acceptedReport(id, isTest ? 'TEST' : 'LIVE', accountId);
}
