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
import { bodyOf, turnedAway, unknownOutcome } from '#src/connectors/provider-answer.ts';
import { openProviderClient } from '#src/connectors/provider-client.ts';
import { type Asked, fromCreation, fromRefundResult, isErrorBody } from './from-provider.ts';
import { lookUpPayer, lookUpRefund } from './look-up.ts';
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
  type Target,
} from './to-provider.ts';

/**
 * Speaks to Mercado Pago's Checkout Pro. An attempt makes a preference, which moves no money, and sends the payer to it;
 * Mercado Pago takes the money by itself, and payments are found by our reference. Its settings: see settings.ts.
 */
export const mercadoPagoConnector: Connector = { name: 'mercado-pago', connect };

const CAPABILITIES: Capabilities = { ...CARDS_ONLY, methods: ['wallet_redirect'], refunds: 'several' };
/** A search may hold fifty payments. */
const MAX_RESPONSE_BYTES = 1024 * 1024;

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const account = readSettings(settings, context.secrets);
  const { origin, timeoutMs, accountId, accessToken, webhookSecrets } = account;
  const { begin, close } = openProviderClient(
    { origin, timeoutMs, maxResponseBytes: MAX_RESPONSE_BYTES },
    (target: Target) => httpRequest(target, account),
  );
  const shownAs = { providerId: context.providerId, accountId };

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
    const payment = bodyOf(result);
    if (payment) return fromNotifiedPayment(payment, reading.deduplicationKey, shownAs);
    const notFound = bodyOf(result, 404);
    // Another account's.
    if (notFound && isErrorBody(notFound, 404)) return { kind: 'ignored' };
    return { kind: 'send_again', detail: 'the provider could not be asked whose payment it is about' };
  }

  /** Searches what nobody ever paid. */
  async function probe(): Promise<boolean> {
    return Array.isArray(bodyOf(await begin()(searchPayments(randomUUID())))?.results);
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
    close,
  };
}
