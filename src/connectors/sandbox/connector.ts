import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import type { Capabilities } from '#src/connectors/capabilities.ts';
import type {
  ConnectContext,
  Connector,
  LookUp,
  Operation,
  ProviderConnection,
} from '#src/connectors/connector.ts';
import type { WalletEnrollment } from '#src/connectors/enrollment.ts';
import type { HttpRequest } from '#src/connectors/http-client.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { turnedAway } from '#src/connectors/provider-answer.ts';
import { openProviderClient } from '#src/connectors/provider-client.ts';
import { agreementRequest, fromAgreement, fromAgreementLookUp } from './agreements.ts';
import { fromCompletion, fromLookUp, fromOperation, fromPayment } from './from-provider.ts';
import { isUnheardOf } from './read-answer.ts';
import { readNotification } from './read-notification.ts';
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

/** All that one call of a connection needs. */
type Call = { readonly send: Send; readonly settings: SandboxSettings; readonly providerId: string };

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

const REFUSING_ORIGIN = 'http://127.0.0.1:1';

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const sandbox = readSettings(settings, context.secrets);
  const { origin, basePath, acquirer, accountId, apiKey, timeoutMs, notificationSecrets } = sandbox;
  const asIs = (request: HttpRequest) => request;
  const provider = openProviderClient({ origin, timeoutMs }, asIs);
  const refusing = openProviderClient({ origin: REFUSING_ORIGIN, timeoutMs }, asIs);
  const { providerId } = context;
  const call = (client = provider): Call => ({ send: client.begin(), settings: sandbox, providerId });
  return {
    identity: [origin + basePath, acquirer, accountId ?? ''].join(' '),
    accountNamedBy: accountId === undefined ? apiKey : undefined,
    capabilities: CAPABILITIES,
    deadlineMs: timeoutMs,
    pay: (attempt) => pay(attempt, call(isConnectionRefusedCard(attempt) ? refusing : provider)),
    capture: (operation) => operate('capture', operation, call()),
    cancel: (operation) => operate('cancel', operation, call()),
    refund: (operation) => operate('refund', operation, call()),
    complete: (query) => complete(query, call()),
    lookUp: (query) => lookUp(query, call()),
    enrollWallet: (enrollment) => enrollWallet(enrollment, call()),
    lookUpEnrollment: ({ enrollmentId }) => lookUpEnrollment(enrollmentId, call()),
    readNotification:
      notificationSecrets.length > 0
        ? async (notification, nowMs) => readNotification(notification, notificationSecrets, nowMs)
        : undefined,
    probe: () => probe(call()),
    close: async () => {
      await Promise.all([provider.close(), refusing.close()]);
    },
  };
}

async function pay(attempt: PaymentAttempt, { send, settings, providerId }: Call): Promise<Outcome> {
  if (attempt.money.minorUnits > MAX_MINOR_UNITS) return turnedAway('the amount is above what it takes');
  return fromPayment(await send(paymentRequest(attempt, settings)), attempt, providerId);
}

async function operate(kind: OperationKind, operation: Operation, call: Call): Promise<Outcome> {
  const { send, settings, providerId } = call;
  return fromOperation(await send(operationRequest(kind, operation, settings)), kind, operation, providerId);
}

async function complete(query: LookUp, { send, settings, providerId }: Call): Promise<Outcome> {
  return fromCompletion(await send(completionRequest(query, settings)), query, providerId);
}

async function lookUp(query: LookUp, { send, settings, providerId }: Call): Promise<Outcome> {
  return fromLookUp(await send(lookUpRequest(query, settings)), query, providerId);
}

async function enrollWallet(enrollment: WalletEnrollment, call: Call): Promise<Outcome> {
  const { send, settings, providerId } = call;
  const result = await send(agreementRequest(enrollment, settings));
  return fromAgreement(result, enrollment.enrollmentId, providerId);
}

async function lookUpEnrollment(enrollmentId: string, call: Call): Promise<Outcome> {
  const { send, settings, providerId } = call;
  const query = { transactionId: enrollmentId, close: false };
  return fromAgreementLookUp(await send(lookUpRequest(query, settings)), enrollmentId, providerId);
}

/** Looks up a transaction that was never sent. */
async function probe({ send, settings }: Call): Promise<boolean> {
  const query = { transactionId: randomUUID(), close: false };
  return isUnheardOf(await send(lookUpRequest(query, settings)));
}

function isConnectionRefusedCard({ method }: PaymentAttempt): boolean {
  return method.kind === 'card' && method.card.number.reveal() === CONNECTION_REFUSED_CARD;
}
