import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import { CARDS_ONLY, type Capabilities } from '#src/connectors/capabilities.ts';
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
import { createHttpClient } from '#src/connectors/http-client.ts';
import { readJsonObject, turnedAway, unknownOutcome } from '#src/connectors/provider-answer.ts';
import { type Asked, fromCreation, fromRefundResult, isErrorBody } from './from-provider.ts';
import { lookUpPayer, lookUpRefund, type Send } from './look-up.ts';
import { verifyNotification } from './notifications.ts';
import { fromNotifiedPayment } from './payments.ts';
import { parseReference } from './reference.ts';
import { readSettings } from './settings.ts';
import {
  amountIn,
  createPreference,
  createRefund,
  getPayment,
  httpRequest,
  searchPayments,
} from './to-provider.ts';

/**
 * Speaks to Mercado Pago's Checkout Pro. An attempt makes a preference, which moves no money, and sends the payer to it;
 * Mercado Pago takes the money by itself, and payments are found by our reference. Its settings: see settings.ts.
 */
export const mercadoPagoConnector: Connector = { name: 'mercado-pago', connect };

const CAPABILITIES: Capabilities = { ...CARDS_ONLY, methods: ['wallet_redirect'], refunds: 'several' };
/** A search may hold fifty payments. */
const MAX_RESPONSE_BYTES = 1024 * 1024;
const MAX_CONNECTIONS = 64;

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const account = readSettings(settings, context.secrets);
  const { origin, timeoutMs, accountId, accessToken, webhookSecrets } = account;
  const client = createHttpClient({
    origin,
    timeoutMs,
    maxResponseBytes: MAX_RESPONSE_BYTES,
    maxConnections: MAX_CONNECTIONS,
  });
  const shownAs = { providerId: context.providerId, accountId };

  function begin(): Send {
    const deadlineAtMs = performance.now() + timeoutMs;
    return (target) => client.request({ ...httpRequest(target, account), deadlineAtMs });
  }

  async function pay(attempt: PaymentAttempt): Promise<Outcome> {
    const { method, money, transactionId } = attempt;
    const amount = amountIn(money, account);
    if (method.kind !== 'wallet_redirect') return turnedAway('it takes redirects only');
    if (amount === undefined) return turnedAway('its account has no such amount in this currency');
    const result = await begin()(createPreference(attempt, amount, account));
    return fromCreation(result, { transactionId, money, shownAs });
  }

  async function refund({ transactionId, money, payment }: Operation): Promise<Outcome> {
    const { paymentId } = parseReference(payment.reference);
    const amount = amountIn(money, account);
    if (paymentId === undefined || amount === undefined) {
      return turnedAway('it does not know this payment or amount');
    }
    const result = await begin()(createRefund(paymentId, amount, transactionId));
    return fromRefundResult(result, paymentId, { transactionId, money, shownAs });
  }

  async function lookUp(query: LookUp): Promise<Outcome> {
    const { of, transactionId, money } = query;
    const asked: Asked = { transactionId, money, shownAs };
    if (of.kind === 'wallet_redirect') {
      return lookUpPayer(query, of.attempt.expiresAtMs, begin(), asked, Date.now());
    }
    if (of.kind === 'refund') return lookUpRefund(query, of.payment.reference, begin(), asked, Date.now());
    return unknownOutcome('the provider does nothing of this kind');
  }

  /** A signature covers a payment's id and nothing else: whose payment it is, the provider tells. */
  async function readNotification(
    notification: RawNotification,
    nowMs: number,
  ): Promise<NotificationReading> {
    const reading = verifyNotification(notification, webhookSecrets, nowMs);
    if (reading.kind !== 'genuine') return reading;
    const result = await begin()(getPayment(reading.paymentId));
    const body = result.kind === 'answer' ? readJsonObject(result.body) : undefined;
    if (result.kind === 'answer' && body) {
      if (result.status === 200) return fromNotifiedPayment(body, reading.deduplicationKey, shownAs);
      // Another account's.
      if (result.status === 404 && isErrorBody(body, 404)) return { kind: 'ignored' };
    }
    return { kind: 'send_again', detail: 'the provider could not be asked whose payment it is about' };
  }

  /** Searches what nobody ever paid. */
  async function probe(): Promise<boolean> {
    const result = await begin()(searchPayments(randomUUID()));
    if (result.kind !== 'answer' || result.status !== 200) return false;
    return Array.isArray(readJsonObject(result.body)?.results);
  }

  return {
    identity: [origin, accountId ?? ''].join(' '),
    accountNamedBy: accountId === undefined ? accessToken : undefined,
    capabilities: CAPABILITIES,
    deadlineMs: timeoutMs,
    pay,
    capture: undefined,
    cancel: undefined,
    refund,
    complete: undefined,
    lookUp,
    readNotification: webhookSecrets.length === 0 ? undefined : readNotification,
    probe,
    close: () => client.close(),
  };
}
