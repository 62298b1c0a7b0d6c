import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import { CARDS_ONLY } from '#src/connectors/capabilities.ts';
import type {
  ConnectContext,
  Connector,
  LookUp,
  NotificationReading,
  Operation,
  Outcome,
  ProviderConnection,
  RawNotification,
} from '#src/connectors/connector.ts';
import { createHttpClient, type HttpClient, type HttpResult } from '#src/connectors/http-client.ts';
import { alarmingOutcome, bodyOf, turnedAway, unknownOutcome } from '#src/connectors/provider-answer.ts';
import { forged } from '#src/connectors/provider-signature.ts';
import { Secret } from '#src/secret.ts';
import { createAccessTokens } from './access-token.ts';
import { type Asked, fromAnswer, fromOrder, fromRefund, isErrorBody } from './from-provider.ts';
import { captureIdOf, lookUp, referencesOf, type Send } from './look-up.ts';
import { toPayPalAmount } from './money.ts';
import { readUnverified } from './notifications.ts';
import { readSettings } from './settings.ts';
import { type ApiRequest, captureOrder, createOrder, getOrder, refundCapture } from './to-provider.ts';

/**
 * Speaks to PayPal's Orders v2 as a wallet that the payer is sent to. Creating an order moves no money, and neither does
 * the payer's approval: `complete` captures the order, and only that does. Its settings: see settings.ts.
 */
export const paypalConnector: Connector = { name: 'paypal', connect };

const MAX_RESPONSE_BYTES = 512 * 1024;
const MAX_CONNECTIONS = 64;
/** Anybody can post what looks like a notification: asking PayPal about it takes no payment's socket. */
const MAX_VERIFYING_CONNECTIONS = 4;
/** An id of an order that there is not. */
const NO_ORDER = '00000000000000000';

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const paypal = readSettings(settings, context.secrets);
  const { origin, accountId, clientId, timeoutMs, webhookIds } = paypal;
  const limits = { origin, timeoutMs, maxResponseBytes: MAX_RESPONSE_BYTES };
  const client = createHttpClient({ ...limits, maxConnections: MAX_CONNECTIONS });
  const verifier = createHttpClient({ ...limits, maxConnections: MAX_VERIFYING_CONNECTIONS });
  const tokens = createAccessTokens(client, paypal);
  const shownAs = { providerId: context.providerId, accountId };

  /** Begins a call: each of its requests gets the same deadline. */
  function begin(via: HttpClient = client): Send {
    const deadlineAtMs = performance.now() + timeoutMs;

    async function sendOnce(request: ApiRequest): Promise<{ result: HttpResult; token?: Secret }> {
      const token = await tokens.get(deadlineAtMs);
      if (!(token instanceof Secret)) return { result: { kind: 'not_sent', ...token } };
      const result = await via.request({
        method: request.method,
        path: request.path,
        headers: headersOf(request, token),
        body: request.body,
        deadlineAtMs,
      });
      return { result, token };
    }

    return async (request) => {
      const first = await sendOnce(request);
      if (!first.token || !isTokenRefused(first.result)) return first.result;
      // What comes with a token that PayPal does not know is not carried out: it is asked once more with a new one.
      tokens.drop(first.token);
      return (await sendOnce(request)).result;
    };
  }

  async function pay(attempt: PaymentAttempt): Promise<Outcome> {
    const { transactionId, money, method } = attempt;
    const amount = toPayPalAmount(money);
    if (method.kind !== 'wallet_redirect') return turnedAway('it takes payers by redirect only');
    if (!amount || money.minorUnits === 0n) return turnedAway('it has no such amount in this currency');
    const asked: Asked = { transactionId, money, orderId: undefined, shownAs };
    const result = await begin()(createOrder(attempt, amount, paypal));
    const outcome = fromAnswer(result, shownAs, (order) => {
      const created = fromOrder(order, asked);
      if (created.kind === 'redirect' || isAlarm(created)) return created;
      return alarmingOutcome('the new order does not wait for its payer');
    });
    return harmless(outcome);
  }

  async function complete(query: LookUp): Promise<Outcome> {
    const { transactionId, money } = query;
    const orderId = referencesOf(query.reference)?.orderId;
    if (orderId === undefined) return turnedAway('it does not know this order');
    const asked: Asked = { transactionId, money, orderId, shownAs };
    const result = await begin()(captureOrder(orderId, transactionId));
    return fromAnswer(result, shownAs, (order) => {
      const outcome = fromOrder(order, asked);
      return outcome.kind === 'to_complete'
        ? unknownOutcome('the answer to a capture tells of none')
        : outcome;
    });
  }

  async function refund(operation: Operation): Promise<Outcome> {
    const { transactionId, money, target, payment } = operation;
    const amount = toPayPalAmount(money);
    const captureId = captureIdOf(target, payment);
    if (!amount || captureId === undefined) return turnedAway('it does not know this payment or amount');
    const result = await begin()(refundCapture(operation, captureId, amount));
    return fromAnswer(result, shownAs, (body) => fromRefund(body, { transactionId, money, shownAs }));
  }

  /** Asks PayPal whether it signed a notification, and for a webhook of ours. */
  async function readNotification(
    notification: RawNotification,
    nowMs: number,
  ): Promise<NotificationReading> {
    const read = readUnverified(notification, webhookIds, nowMs);
    if ('kind' in read) return read;
    const send = begin(verifier);
    for (const request of read.requests) {
      const answer = bodyOf(await send(request));
      if (answer?.verification_status === 'SUCCESS') return read.reading;
      if (answer?.verification_status !== 'FAILURE') {
        return { kind: 'send_again', detail: 'the provider could not be asked whether it signed it' };
      }
    }
    return forged('the signature is wrong');
  }

  /** Reads an order that there is not. */
  async function probe(): Promise<boolean> {
    const body = bodyOf(await begin()(getOrder(NO_ORDER)), 404);
    return body !== undefined && isErrorBody(body);
  }

  return {
    identity: [origin, accountId ?? ''].join(' '),
    accountNamedBy: accountId === undefined ? clientId : undefined,
    capabilities: {
      ...CARDS_ONLY,
      methods: ['wallet_redirect'],
      refunds: 'several',
    },
    deadlineMs: timeoutMs,
    pay,
    // A wallet is paid, never only authorized: there is nothing to capture or to cancel.
    capture: undefined,
    cancel: undefined,
    refund,
    complete,
    lookUp: (query) => lookUp(query, begin(), paypal, shownAs, Date.now()),
    readNotification: webhookIds.length > 0 ? readNotification : undefined,
    probe,
    close: async () => {
      await Promise.all([client.close(), verifier.close()]);
    },
  };
}

function headersOf({ requestId, body }: ApiRequest, token: Secret): Record<string, string> {
  return {
    authorization: `Bearer ${token.reveal()}`,
    accept: 'application/json',
    ...(body !== undefined && { 'content-type': 'application/json', prefer: 'return=representation' }),
    ...(requestId !== undefined && { 'paypal-request-id': requestId }),
  };
}

/** Returns true if PayPal says, in a form of its own, that it does not take the token. */
function isTokenRefused(result: HttpResult): boolean {
  const body = bodyOf(result, 401);
  return body !== undefined && isErrorBody(body);
}

/**
 * The outcome of creating an order, where nothing is lost by a lost answer: no money moves without the payer's approval,
 * and nobody was told where to give it. What contradicts what was asked stays an alarm.
 */
function harmless(outcome: Outcome): Outcome {
  if (outcome.kind !== 'unknown' || isAlarm(outcome)) return outcome;
  const detail = `no money can move by what was sent: ${outcome.detail}`;
  return { kind: 'not_sent', detail, because: 'unreachable' };
}

function isAlarm(outcome: Outcome): boolean {
  return outcome.kind === 'unknown' && outcome.alarm === true;
}
