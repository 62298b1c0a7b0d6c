import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import type { Capabilities } from '#src/connectors/capabilities.ts';
import type {
  ConnectContext,
  Connector,
  LookUp,
  Operation,
  Outcome,
  ProviderConnection,
} from '#src/connectors/connector.ts';
import type { WalletEnrollment } from '#src/connectors/enrollment.ts';
import { createHttpClient } from '#src/connectors/http-client.ts';
import { agreementRequest, fromAgreement, fromAgreementLookUp } from './agreements.ts';
import { fromCompletion, fromLookUp, fromOperation, fromProvider } from './from-provider.ts';
import { isUnheardOf } from './read-answer.ts';
import { notificationReader } from './read-notification.ts';
import { readSettings } from './settings.ts';
import {
  completionRequest,
  lookUpRequest,
  MAX_MINOR_UNITS,
  type OperationKind,
  operationRequest,
  toProvider,
} from './to-provider.ts';

/** Speaks HTTP to the simulated provider. Its settings: see settings.ts. */
export const sandboxConnector: Connector = { name: 'sandbox', connect };

/** With this card number the connector goes to an address where nothing listens, and really tries to connect. */
export const CONNECTION_REFUSED_CARD = '4000000000005001';

const CAPABILITIES: Capabilities = {
  methods: ['card', 'wallet_redirect', 'wallet_enrollment'],
  authorization: true,
  captures: 'several',
  refunds: 'several',
  cancel: true,
  verify: true,
  installments: true,
  challenge: true,
  externalThreeDSecure: true,
  storedCredentials: true,
  softDescriptor: true,
  authorizationValidDays: 7,
  redirectValidMinutes: 1_440,
};

const TOO_LARGE: Outcome = {
  kind: 'not_sent',
  detail: 'the amount is above what the provider takes',
  because: 'turned_away',
};

const REFUSING_ORIGIN = 'http://127.0.0.1:1';
const MAX_RESPONSE_BYTES = 256 * 1024;
const MAX_CONNECTIONS = 64;

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const sandbox = readSettings(settings, context.secrets);
  const limits = {
    timeoutMs: sandbox.timeoutMs,
    maxResponseBytes: MAX_RESPONSE_BYTES,
    maxConnections: MAX_CONNECTIONS,
  };
  const provider = createHttpClient({ origin: sandbox.origin, ...limits });
  const refusing = createHttpClient({ origin: REFUSING_ORIGIN, ...limits });

  async function pay(attempt: PaymentAttempt): Promise<Outcome> {
    if (attempt.money.minorUnits > MAX_MINOR_UNITS) return TOO_LARGE;
    const client = isConnectionRefusedCard(attempt) ? refusing : provider;
    const result = await client.request(toProvider(attempt, sandbox));
    return fromProvider(result, attempt, context.providerId);
  }

  const operate = (kind: OperationKind) => async (operation: Operation) => {
    const result = await provider.request(operationRequest(kind, operation, sandbox));
    return fromOperation(result, kind, operation, context.providerId);
  };

  async function complete(query: LookUp): Promise<Outcome> {
    const result = await provider.request(completionRequest(query, sandbox));
    return fromCompletion(result, query, context.providerId);
  }

  async function lookUp(query: LookUp): Promise<Outcome> {
    const result = await provider.request(lookUpRequest(query, sandbox));
    return fromLookUp(result, query, context.providerId);
  }

  async function enrollWallet(enrollment: WalletEnrollment): Promise<Outcome> {
    const result = await provider.request(agreementRequest(enrollment, sandbox));
    return fromAgreement(result, enrollment.enrollmentId, context.providerId);
  }

  async function lookUpEnrollment({
    enrollmentId,
  }: Pick<WalletEnrollment, 'enrollmentId'>): Promise<Outcome> {
    const query = { transactionId: enrollmentId, close: false };
    const result = await provider.request(lookUpRequest(query, sandbox));
    return fromAgreementLookUp(result, enrollmentId, context.providerId);
  }

  /** Looks up what nobody ever sent. */
  async function probe(): Promise<boolean> {
    const query = { transactionId: randomUUID(), close: false };
    return isUnheardOf(await provider.request(lookUpRequest(query, sandbox)));
  }

  async function close(): Promise<void> {
    await Promise.all([provider.close(), refusing.close()]);
  }

  const { origin, basePath, acquirer, accountId, apiKey, notificationSecrets } = sandbox;
  const identity = [origin + basePath, acquirer, accountId ?? ''].join(' ');
  const accountNamedBy = accountId === undefined ? apiKey : undefined;
  return {
    identity,
    accountNamedBy,
    capabilities: CAPABILITIES,
    deadlineMs: sandbox.timeoutMs,
    pay,
    capture: operate('capture'),
    cancel: operate('cancel'),
    refund: operate('refund'),
    complete,
    lookUp,
    enrollWallet,
    lookUpEnrollment,
    readNotification: notificationSecrets.length > 0 ? notificationReader(notificationSecrets) : undefined,
    probe,
    close,
  };
}

function isConnectionRefusedCard(attempt: PaymentAttempt): boolean {
  return attempt.method.kind === 'card' && attempt.method.card.number.reveal() === CONNECTION_REFUSED_CARD;
}
