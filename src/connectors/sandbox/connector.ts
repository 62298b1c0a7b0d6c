import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { acceptedReport, notAcceptedReport } from '../kit/account-report.ts';
import type { HttpRequest } from '../kit/http-client.ts';
import { sendCreation } from '../kit/lost-creation.ts';
import { bodyOf, isSuccess, judgeProbe, turnedAway } from '../kit/provider-answer.ts';
import { accountAt, openProviderClient } from '../kit/provider-client.ts';
import { isLocalMethod } from '../port/attempt.ts';
import type { Capabilities } from '../port/capabilities.ts';
import type {
  ConnectContext,
  Connector,
  Operation,
  OperationKind,
  ProviderConnection,
} from '../port/connector.ts';
import { agreementRequest, fromAgreement, fromAgreementLookUp } from './agreements.ts';
import { isError, readAccountId, readAnswer } from './answers.ts';
import { banksOf } from './codes.ts';
import { CORRECTIONS, fromCompletion, fromLookUp, fromOperation, fromPayment } from './from-provider.ts';
import { termsOf } from './local-methods.ts';
import { readNotification } from './notifications.ts';
import { DECLINED, isNeverReceived } from './read-answer.ts';
import { FORM, NOTIFICATION_SECRETS, readSettings } from './settings.ts';
import { readSandboxSettlement } from './settlement.ts';
import {
  accountRequest,
  banksRequest,
  completionRequest,
  lookUpRequest,
  MAX_MINOR_UNITS,
  operationRequest,
  paymentRequest,
  type Send,
} from './to-provider.ts';

const CAPABILITIES: Omit<Capabilities, 'localMethods'> = {
  methods: ['CARD', 'PAYER_PAGE', 'WALLET'],
  walletTokens: ['APPLE_PAY', 'GOOGLE_PAY'],
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

/** Connector for the simulated provider, over HTTP. Settings: see settings.ts. */
export const sandboxConnector: Connector = {
  name: 'sandbox',
  corrections: CORRECTIONS,
  // It settles at once, within ten seconds.
  settlement: { read: readSandboxSettlement, windowHours: 1 / 360 },
  // A provider that someone runs: its host is the operator's.
  hosts: { TEST: [], LIVE: [] },
  settings: FORM,
  notificationSecrets: NOTIFICATION_SECRETS,
  capabilities: CAPABILITIES,
  connect,
};

const isOfCode = (status: number) => isSuccess(status) || status === DECLINED;

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
    environment: 'TEST',
    capabilities: { ...CAPABILITIES, localMethods: termsOf(sandbox.methods) },
    deadlineMs: timeoutMs,
    async pay(attempt) {
      if (attempt.money.minorUnits > MAX_MINOR_UNITS) return turnedAway('the amount exceeds its maximum');
      const request = paymentRequest(attempt, sandbox);
      const result = isLocalMethod(attempt.method)
        ? await sendCreation(provider.begin(), request, isOfCode)
        : await send(request);
      return fromPayment(result, attempt, providerId);
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
    listBanks: async (type) => banksOf(await send(banksRequest(type, sandbox))),
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
    async readAccount() {
      const result = await send(accountRequest(sandbox));
      const account = readAccountId(bodyOf(result)).id;
      if (account !== undefined) return acceptedReport(account, 'TEST', accountId);
      return notAcceptedReport(result, (body) => isError(readAnswer(body)));
    },
    close: () => provider.close(),
  };
}
