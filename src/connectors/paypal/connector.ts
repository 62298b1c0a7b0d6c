import type { JsonObject } from '@bufbuild/protobuf';
import { Secret } from '#src/secret.ts';
import { acceptedReport, notAcceptedReport } from '../kit/account-report.ts';
import { bodyOf, judgeProbe, turnedAway, unknownOutcome } from '../kit/provider-answer.ts';
import { accountAt } from '../kit/provider-client.ts';
import type { AccountReport } from '../port/account-report.ts';
import type { PaymentAttempt } from '../port/attempt.ts';
import { CARDS_ONLY, type Capabilities } from '../port/capabilities.ts';
import type {
  ConnectContext,
  Connector,
  LookUp,
  Operation,
  ProviderConnection,
  ReportProblem,
} from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { isErrorBody, readOrder, readTransaction, readUser } from './answers.ts';
import { sendOrder } from './creation.ts';
import { type Asked, CORRECTIONS, fromAnswer, fromCreation, fromOrder, fromRefund } from './from-provider.ts';
import { type Call, captureIdOf, lookUp, referencesOf } from './look-up.ts';
import { toPayPalAmount } from './money.ts';
import { openPayPalClient } from './paypal-client.ts';
import { FORM, HOSTS, type PayPalSettings, readSettings } from './settings.ts';
import { readPayPalSettlement } from './settlement.ts';
import { captureOrder, getOrder, getUser, refundCapture, type Send } from './to-provider.ts';
import { createVerification } from './verification.ts';

/** Wallet payments are never only authorized, so there is nothing to capture or cancel. */
const CAPABILITIES: Capabilities = {
  ...CARDS_ONLY,
  methods: ['PAYER_PAGE'],
  refunds: 'several',
  close: true,
  // PayPal forgets an unapproved order after three hours, so the payment is closed before that.
  redirectValidMinutes: 170,
};

/**
 * Connector for PayPal's Orders v2: a wallet to which the payer is redirected. Neither the creation of an order nor the
 * payer's approval moves money; only `complete`, which captures the order, does. Settings: see settings.ts.
 */
export const paypalConnector: Connector = {
  name: 'paypal',
  corrections: CORRECTIONS,
  settlement: { read: readPayPalSettlement, windowHours: 2 * 24 },
  hosts: HOSTS,
  settings: FORM,
  notificationSecrets: [],
  capabilities: CAPABILITIES,
  connect,
};

/** Id of an order that does not exist. */
const NO_ORDER = '00000000000000000';

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const paypal = readSettings(settings, context.secrets);
  const { origin, accountId, clientId, timeoutMs, webhookIds } = paypal;
  const { begin, beginVerification, beginAccount, close } = openPayPalClient(paypal, context.proxy);
  const verification = createVerification(paypal, beginVerification, context.proxy);
  const shownAs = { providerId: context.providerId, accountId };
  const call = (): Call => ({ send: begin(), settings: paypal, shownAs });
  return {
    ...accountAt([origin], accountId, clientId),
    environment: paypal.environment,
    capabilities: CAPABILITIES,
    deadlineMs: timeoutMs,
    pay: (attempt) => pay(attempt, call()),
    capture: undefined,
    cancel: undefined,
    refund: (operation) => refund(operation, call()),
    complete: (query) => complete(query, call()),
    lookUp: (query) => lookUp(query, call()),
    readNotification: webhookIds.length > 0 ? verification.readNotification : undefined,
    probe: (report) => probe(begin(), report),
    readAccount: () => readAccount(beginAccount(), paypal),
    close: async () => {
      await verification.close();
      await close();
    },
  };
}

async function pay(attempt: PaymentAttempt, { send, settings, shownAs }: Call): Promise<Outcome> {
  const { method, transactionId, money } = attempt;
  const amount = toPayPalAmount(money);
  if (method.by !== 'payer') return turnedAway('it accepts redirects only');
  if (!amount || money.minorUnits === 0n) return turnedAway('it cannot express this amount in this currency');
  const result = await sendOrder(attempt, amount, settings, send);
  return fromCreation(result, { transactionId, money, orderId: undefined, shownAs });
}

async function refund(operation: Operation, { send, shownAs }: Call): Promise<Outcome> {
  const { transactionId, money, target, payment } = operation;
  const amount = toPayPalAmount(money);
  const captureId = captureIdOf(target, payment);
  if (!amount || captureId === undefined) return turnedAway('it does not know this payment or amount');
  const result = await send(refundCapture(operation, captureId, amount));
  return fromAnswer(result, shownAs, (body) =>
    fromRefund(readTransaction(body), { transactionId, money, shownAs }),
  );
}

async function complete(query: LookUp, { send, shownAs }: Call): Promise<Outcome> {
  const { transactionId, money } = query;
  const orderId = referencesOf(query.reference)?.orderId;
  if (orderId === undefined) return turnedAway('it does not know this order');
  const asked = { transactionId, money, orderId, shownAs };
  const result = await send(captureOrder(orderId, transactionId));
  const outcome = fromAnswer(result, shownAs, (body) => {
    const reported = fromOrder(readOrder(body), asked);
    return reported.kind === 'to_complete'
      ? unknownOutcome('the response to a capture contains no capture')
      : reported;
  });
  const isUnknownIssue = outcome.kind === 'not_sent' && bodyOf(result, 422) !== undefined;
  return isUnknownIssue ? whatOrderTells(outcome, asked, send) : outcome;
}

/**
 * Reads the order after PayPal refused a capture with an issue that we do not know: the order shows whether a capture
 * exists.
 */
async function whatOrderTells(
  refusal: Outcome,
  asked: Asked & { readonly orderId: string },
  send: Send,
): Promise<Outcome> {
  const order = await send(getOrder(asked.orderId));
  const reported = fromAnswer(order, asked.shownAs, (body) => fromOrder(readOrder(body), asked));
  if (reported.kind === 'to_complete' || reported.kind === 'awaits_payer') return refusal;
  return reported.kind === 'not_sent'
    ? unknownOutcome(`the order is unreadable: ${reported.detail}`)
    : reported;
}

/** Requests a nonexistent order. */
async function probe(send: Send, report?: ReportProblem): Promise<boolean> {
  const result = await send(getOrder(NO_ORDER));
  const body = bodyOf(result, 404);
  return judgeProbe(result, body !== undefined && isErrorBody(body), report);
}

/** Asks for a token, and then for its account, which PayPal names only if the app may read it. */
async function readAccount(
  { renewToken, send }: ReturnType<ReturnType<typeof openPayPalClient>['beginAccount']>,
  { environment, accountId }: PayPalSettings,
): Promise<AccountReport> {
  const { token, result } = await renewToken();
  if (!(token instanceof Secret)) return notAcceptedReport(result, isErrorBody);
  const told = await send(getUser());
  if (!bodyOf(told)) {
    const report = notAcceptedReport(told, isErrorBody);
    if (report.result === 'UNREACHABLE') return report;
  }
  return acceptedReport(readUser(bodyOf(told)).payer_id, environment, accountId);
}
