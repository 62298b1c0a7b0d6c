import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import type { HttpRequest } from '../kit/http-client.ts';
import { judgeProbe, turnedAway } from '../kit/provider-answer.ts';
import { accountAt, openProviderClient } from '../kit/provider-client.ts';
import type { Capabilities } from '../port/capabilities.ts';
import type {
  ConnectContext,
  Connector,
  Operation,
  OperationKind,
  ProviderConnection,
} from '../port/connector.ts';
import { agreementRequest, fromAgreement, fromAgreementLookUp } from './agreements.ts';
import { CORRECTIONS, fromCompletion, fromLookUp, fromOperation, fromPayment } from './from-provider.ts';
import { readNotification } from './notifications.ts';
import { isNeverReceived } from './read-answer.ts';
import { readSettings } from './settings.ts';
import {
  completionRequest,
  lookUpRequest,
  MAX_MINOR_UNITS,
  operationRequest,
  paymentRequest,
  type Send,
} from './to-provider.ts';

/** Connector for the simulated provider, over HTTP. Settings: see settings.ts. */
export const sandboxConnector: Connector = { name: 'sandbox', corrections: CORRECTIONS, connect };

const CAPABILITIES: Capabilities = {
  methods: ['CARD', 'PAYER_PAGE', 'WALLET'],
  localMethods: {},
  walletTokens: [],
  authorization: true,
  captures: 10,
  refunds: 'several',
  cancel: true,
  close: true,
  verify: true,
  installments: true,
  challenge: true,
  externalThreeDSecure: true,
  storedCredentials: true,
  softDescriptor: true,
  authorizationValidDays: 7,
  redirectValidMinutes: 1_440,
};

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const sandbox = readSettings(settings, context.secrets);
  const { origin, basePath, acquirer, accountId, apiKey, timeoutMs, notificationSecrets } = sandbox;
  const asIs = (request: HttpRequest) => request;
  const provider = openProviderClient({ origin, timeoutMs, proxy: context.proxy }, asIs);
  const { providerId } = context;
  const send: Send = (request) => provider.begin()(request);
  const operate = (kind: OperationKind) => async (operation: Operation) =>
    fromOperation(await send(operationRequest(kind, operation, sandbox)), kind, operation, providerId);
  return {
    ...accountAt([origin + basePath, acquirer], accountId, apiKey),
    capabilities: CAPABILITIES,
    deadlineMs: timeoutMs,
    async pay(attempt) {
      if (attempt.money.minorUnits > MAX_MINOR_UNITS) return turnedAway('the amount exceeds its maximum');
      return fromPayment(await send(paymentRequest(attempt, sandbox)), attempt, providerId);
    },
    capture: operate('capture'),
    cancel: operate('cancel'),
    refund: operate('refund'),
    complete: async (query) =>
      fromCompletion(await send(completionRequest(query, sandbox)), query, providerId),
    lookUp: async (query) => fromLookUp(await send(lookUpRequest(query, sandbox)), query, providerId),
    async enrollWallet(enrollment) {
      const result = await send(agreementRequest(enrollment, sandbox));
      return fromAgreement(result, enrollment.enrollmentId, providerId);
    },
    async lookUpEnrollment({ enrollmentId }) {
      const query = { transactionId: enrollmentId, close: false };
      return fromAgreementLookUp(await send(lookUpRequest(query, sandbox)), enrollmentId, providerId);
    },
    readNotification:
      notificationSecrets.length > 0
        ? async (notification, nowMs) => readNotification(notification, notificationSecrets, nowMs)
        : undefined,
    async probe(report) {
      // Looks up a transaction that was never sent.
      const query = { transactionId: randomUUID(), close: false };
      const result = await send(lookUpRequest(query, sandbox));
      return judgeProbe(result, isNeverReceived(result), report);
    },
    close: () => provider.close(),
  };
}
