import type { JsonObject } from '@bufbuild/protobuf';
import { acceptedReport, environmentAt, notAcceptedReport } from '../kit/account-report.ts';
import type { HttpRequest, HttpResult } from '../kit/http-client.ts';
import { sendCreation } from '../kit/lost-creation.ts';
import { judgeProbe, probeProblem, turnedAway, unknownOutcome } from '../kit/provider-answer.ts';
import { openProviderClient } from '../kit/provider-client.ts';
import type { AccountReport } from '../port/account-report.ts';
import { isLocalMethod, type PaymentAttempt } from '../port/attempt.ts';
import { CARDS_ONLY, type Capabilities } from '../port/capabilities.ts';
import type {
  Bank,
  ConnectContext,
  Connector,
  LookUp,
  Operation,
  OperationKind,
  ProviderConnection,
  ReportProblem,
} from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { PSP_REFERENCE, readAnswer, type ShownAs } from './answers.ts';
import {
  banksIn,
  fromDetails,
  fromOperation,
  fromPayment,
  isPaymentMethods,
  isTechnicalCancelTaken,
} from './from-provider.ts';
import { termsOf } from './methods.ts';
import { toAdyenAmount } from './money.ts';
import { CORRECTIONS, readNotifications } from './notifications.ts';
import { fromTransientError, isErrorBody } from './refusals.ts';
import { type AdyenSettings, FORM, NOTIFICATION_SECRETS, readSettings } from './settings.ts';
import { readAdyenSettlement } from './settlement.ts';
import {
  detailsRequest,
  methodFields,
  missingForChallenge,
  operationRequest,
  paymentMethodsRequest,
  paymentRequest,
  type Send,
  technicalCancelRequest,
} from './to-provider.ts';

const CAPABILITIES: Capabilities = {
  ...CARDS_ONLY,
  authorization: true,
  captures: 1,
  refunds: 'several',
  cancel: true,
  verify: true,
  challenge: true,
  missingForChallenge,
  externalThreeDSecure: true,
  storedCredentials: true,
  softDescriptor: true,
  authorizationValidDays: 7,
  redirectValidMinutes: 1_440,
};

/**
 * Connector for Adyen's Checkout API. Adyen offers no look-up: signed notifications report the outcome of every
 * capture, cancel and refund, and of a payment whose response was lost. A payment without a notification is canceled
 * using our reference, and an operation whose response was lost is sent again under its key. Settings: see settings.ts.
 */
export const adyenConnector: Connector = {
  name: 'adyen',
  corrections: CORRECTIONS,
  settlement: { read: readAdyenSettlement, windowHours: 10 * 24 },
  hosts: { TEST: ['checkout-test.adyen.com'], LIVE: ['*-checkout-live.adyenpayments.com'] },
  settings: FORM,
  notificationSecrets: NOTIFICATION_SECRETS,
  capabilities: CAPABILITIES,
  connect,
};

/** The context of one call of a connection. */
type Call = { readonly send: Send; readonly settings: AdyenSettings; readonly shownAs: ShownAs };
/** The fields of an operation that are sent to Adyen. */
type SentOperation = Pick<Operation, 'transactionId' | 'money' | 'reason' | 'payment'>;

/** Adyen keeps an idempotency key for at least 7 days. We rely on one day less, because requests may wait in queues. */
const REPEATABLE_MS = 6 * 86_400_000;
const NOT_OFFERED = turnedAway('its settings do not list this payment method');
const NO_TOKEN: Outcome = {
  kind: 'not_sent',
  because: 'turned_away',
  detail: "nothing was sent to the provider: the payment_token is not the wallet's whole answer",
  refused: 'payment_token',
};
const NOT_REPORTED = unknownOutcome('the provider has no look-up, and no notification has arrived yet');

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const adyen = readSettings(settings, context.secrets);
  const { origin, basePath, merchantAccount, timeoutMs, methods, hmacKeys } = adyen;
  const { begin, close } = openProviderClient(
    { origin, timeoutMs, proxy: context.proxy },
    (request: HttpRequest) => request,
  );
  const environment = environmentAt(adyenConnector.hosts, origin);
  const shownAs = { providerId: context.providerId, merchantAccount, environment };
  const call = (): Call => ({ send: begin(), settings: adyen, shownAs });
  return {
    identity: [origin + basePath, merchantAccount].join(' '),
    environment: environmentAt(adyenConnector.hosts, origin),
    capabilities: {
      ...CAPABILITIES,
      methods: methods.pages.size > 0 ? ['CARD', 'PAYER_PAGE'] : ['CARD'],
      localMethods: termsOf(methods),
      walletTokens: [...methods.walletTokens.keys()],
      installments: adyen.installments,
    },
    deadlineMs: timeoutMs,
    pay: (attempt) => pay(attempt, call()),
    capture: (operation) => operate('capture', operation, call()),
    cancel: (operation) => operate('cancel', operation, call()),
    refund: (operation) => operate('refund', operation, call()),
    complete: (query) => complete(query, call()),
    lookUp: undefined,
    technicalCancel: {
      afterMs: adyen.technicalCancelAfterMs,
      send: (query) => cancelTechnically(query, call()),
    },
    repeatOperation: (query) => repeatOperation(query, call()),
    listBanks: (type) => listBanks(type, call()),
    readNotification: async (notification, nowMs) =>
      readNotifications(notification, hmacKeys, shownAs, nowMs),
    probe: (report) => probe(call(), report),
    readAccount: () => readAccount(call()),
    close,
  };
}

async function pay(attempt: PaymentAttempt, { send, settings, shownAs }: Call): Promise<Outcome> {
  const { method } = attempt;
  const fields = methodFields(attempt, settings);
  if (!fields) return method.by === 'wallet_token' ? NO_TOKEN : NOT_OFFERED;
  const amount = toAdyenAmount(attempt.money);
  if (!amount) return turnedAway('it cannot express this amount in this currency');
  const isChallengeWanted = method.by === 'card' && method.threeDSecureSetupId !== undefined;
  if (isChallengeWanted && missingForChallenge(attempt.customerPayer.browserInfo).length > 0) {
    return turnedAway("3-D Secure needs the payer's browser_info");
  }
  const request = paymentRequest(attempt, amount, fields, settings);
  const result = isLocalMethod(method) ? await createCode(send, request) : await send(request);
  return fromPayment(result, attempt, shownAs);
}

/** Creates a local method's code, which takes no money, again under its key if the answer is lost. */
function createCode(send: Send, request: HttpRequest): Promise<HttpResult> {
  const sendOnce: Send = async (target) => {
    const result = await send(target);
    return fromTransientError(result) ?? result;
  };
  return sendCreation(sendOnce, request);
}

async function operate(kind: OperationKind, operation: SentOperation, call: Call): Promise<Outcome> {
  const { send, settings, shownAs } = call;
  const { reference = '' } = operation.payment;
  const amount = toAdyenAmount(operation.money);
  if (!PSP_REFERENCE.test(reference)) return turnedAway("the payment's pspReference is still unknown");
  if (!amount) return turnedAway('it cannot express this amount in this currency');
  const result = await send(operationRequest(settings, kind, operation, { pspReference: reference, amount }));
  return fromOperation(result, kind, operation, shownAs);
}

/** Completes a payment with the data that the payer's browser brought back from Adyen's page. */
async function complete(query: LookUp, { send, settings, shownAs }: Call): Promise<Outcome> {
  const redirectResult = new URLSearchParams(query.hint?.returnQuery).get('redirectResult');
  if (!redirectResult) return turnedAway('the payer returned without a redirectResult');
  const result = await send(detailsRequest(query.transactionId, redirectResult, settings));
  return fromDetails(result, query, shownAs);
}

async function cancelTechnically({ transactionId }: LookUp, call: Call): Promise<boolean> {
  const { send, settings, shownAs } = call;
  const result = await send(technicalCancelRequest(transactionId, settings));
  return isTechnicalCancelTaken(result, transactionId, shownAs);
}

/**
 * Repeats an operation: for a known key, Adyen repeats its first response; for a new key, it carries out the operation.
 */
async function repeatOperation(query: LookUp, call: Call): Promise<Outcome> {
  const { of, transactionId, money, reference, ageMs } = query;
  if (of.kind !== 'capture' && of.kind !== 'cancel' && of.kind !== 'refund') return NOT_REPORTED;
  // Once Adyen has the request, only a notification reports the outcome.
  if (reference !== undefined || ageMs > REPEATABLE_MS) return NOT_REPORTED;
  const outcome = await operate(of.kind, { ...of, transactionId, money }, call);
  // A repeat that is refused or gets no response proves nothing about the first request.
  return outcome.kind === 'not_sent' ? NOT_REPORTED : outcome;
}

/** Lists the banks that Adyen names as the issuers of a method. */
async function listBanks(type: string, { send, settings }: Call): Promise<readonly Bank[]> {
  const offered = settings.methods.local.get(type);
  const [country] = (offered && termsOf(settings.methods)[type]?.countries) ?? [];
  if (offered?.is !== 'PSE') return [];
  const filter = { countryCode: country, channel: 'Web', allowedPaymentMethods: [offered.adyen] };
  const result = await send(paymentMethodsRequest(settings, filter));
  const banks = banksIn(result, offered.adyen);
  if (banks.length === 0) throw new Error(`the banks cannot be listed: ${probeProblem(result)}`);
  return banks;
}

async function probe({ send, settings }: Call, report?: ReportProblem): Promise<boolean> {
  const result = await send(paymentMethodsRequest(settings));
  return judgeProbe(result, isPaymentMethods(result), report);
}

/** Asks for the payment methods of the merchant account, which Adyen refuses if the key may not use the account. */
async function readAccount({ send, settings }: Call): Promise<AccountReport> {
  const { merchantAccount, origin } = settings;
  const result = await send(paymentMethodsRequest(settings));
  if (!isPaymentMethods(result))
    return notAcceptedReport(result, (body, status) => isErrorBody(readAnswer(body), status));
  return acceptedReport(merchantAccount, environmentAt(adyenConnector.hosts, origin));
}
