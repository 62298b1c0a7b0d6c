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
import type { HttpRequest } from '#src/connectors/http-client.ts';
import { openProviderClient } from '#src/connectors/provider-client.ts';
import { agreementRequest, fromAgreement, fromAgreementLookUp } from './agreements.ts';
import { fromCompletion, fromLookUp, fromOperation, fromPayment } from './from-provider.ts';
import { isUnheardOf } from './read-answer.ts';
import { notificationReader } from './read-notification.ts';
import { readSettings, type SandboxSettings } from './settings.ts';
import {
  completionRequest,
  lookUpRequest,
  MAX_MINOR_UNITS,
  type OperationKind,
  operationRequest,
  paymentRequest,
  type Send,
} from './to-provider.ts';

/** Connector for the simulated provider, over HTTP. Settings: see settings.ts. */
export const sandboxConnector: Connector = { name: 'sandbox', connect };

/** Card number for which the connector tries to connect to an address where nothing listens. */
export const CONNECTION_REFUSED_CARD = '4000000000005001';

const CAPABILITIES: Capabilities = {
  methods: ['card', 'wallet_redirect', 'wallet_enrollment'],
  authorization: true,
  captures: 10,
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

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const sandbox = readSettings(settings, context.secrets);
  const { origin, basePath, acquirer, accountId, apiKey, timeoutMs, notificationSecrets } = sandbox;
  const asIs = (request: HttpRequest) => request;
  const provider = openProviderClient({ origin, timeoutMs }, asIs);
  const refusing = openProviderClient({ origin: REFUSING_ORIGIN, timeoutMs }, asIs);
  const { begin } = provider;
  const { providerId } = context;
  return {
    identity: [origin + basePath, acquirer, accountId ?? ''].join(' '),
    accountNamedBy: accountId === undefined ? apiKey : undefined,
    capabilities: CAPABILITIES,
    deadlineMs: timeoutMs,
    pay: (attempt) => {
      const client = isConnectionRefusedCard(attempt) ? refusing : provider;
      return pay(attempt, client.begin(), sandbox, providerId);
    },
    capture: (operation) => operate('capture', operation, begin(), sandbox, providerId),
    cancel: (operation) => operate('cancel', operation, begin(), sandbox, providerId),
    refund: (operation) => operate('refund', operation, begin(), sandbox, providerId),
    complete: (query) => complete(query, begin(), sandbox, providerId),
    lookUp: (query) => lookUp(query, begin(), sandbox, providerId),
    enrollWallet: (enrollment) => enrollWallet(enrollment, begin(), sandbox, providerId),
    lookUpEnrollment: (enrollment) => lookUpEnrollment(enrollment, begin(), sandbox, providerId),
    readNotification: notificationSecrets.length > 0 ? notificationReader(notificationSecrets) : undefined,
    probe: () => probe(begin(), sandbox),
    close: async () => {
      await Promise.all([provider.close(), refusing.close()]);
    },
  };
}

async function pay(
  attempt: PaymentAttempt,
  send: Send,
  settings: SandboxSettings,
  providerId: string,
): Promise<Outcome> {
  if (attempt.money.minorUnits > MAX_MINOR_UNITS) return TOO_LARGE;
  return fromPayment(await send(paymentRequest(attempt, settings)), attempt, providerId);
}

async function operate(
  kind: OperationKind,
  operation: Operation,
  send: Send,
  settings: SandboxSettings,
  providerId: string,
): Promise<Outcome> {
  return fromOperation(await send(operationRequest(kind, operation, settings)), kind, operation, providerId);
}

async function complete(
  query: LookUp,
  send: Send,
  settings: SandboxSettings,
  providerId: string,
): Promise<Outcome> {
  return fromCompletion(await send(completionRequest(query, settings)), query, providerId);
}

async function lookUp(
  query: LookUp,
  send: Send,
  settings: SandboxSettings,
  providerId: string,
): Promise<Outcome> {
  return fromLookUp(await send(lookUpRequest(query, settings)), query, providerId);
}

async function enrollWallet(
  enrollment: WalletEnrollment,
  send: Send,
  settings: SandboxSettings,
  providerId: string,
): Promise<Outcome> {
  const result = await send(agreementRequest(enrollment, settings));
  return fromAgreement(result, enrollment.enrollmentId, providerId);
}

async function lookUpEnrollment(
  { enrollmentId }: Pick<WalletEnrollment, 'enrollmentId'>,
  send: Send,
  settings: SandboxSettings,
  providerId: string,
): Promise<Outcome> {
  const query = { transactionId: enrollmentId, close: false };
  return fromAgreementLookUp(await send(lookUpRequest(query, settings)), enrollmentId, providerId);
}

/** Looks up a transaction that was never sent. */
async function probe(send: Send, settings: SandboxSettings): Promise<boolean> {
  const query = { transactionId: randomUUID(), close: false };
  return isUnheardOf(await send(lookUpRequest(query, settings)));
}

function isConnectionRefusedCard({ method }: PaymentAttempt): boolean {
  return method.kind === 'card' && method.card.number.reveal() === CONNECTION_REFUSED_CARD;
}
