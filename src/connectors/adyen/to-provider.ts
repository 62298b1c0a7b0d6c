import { createHash } from 'node:crypto';
import type { BrowserInfo, CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import type { StoredCredentials, ThreeDSecure } from '#gen/payments/v1/payment_method_pb.js';
import type { HttpRequest } from '../kit/http-client.ts';
import type { SendTarget } from '../kit/provider-client.ts';
import {
  type AttemptCard,
  type CardOptions,
  isLocalMethod,
  type Method,
  type PaymentAttempt,
} from '../port/attempt.ts';
import type { Operation, OperationKind } from '../port/connector.ts';
import { localFields } from './local-fields.ts';
import type { AdyenAmount } from './money.ts';
import { airlineOf, lineItemsOf } from './order-data.ts';
import { payerOf } from './payer-data.ts';
import type { AdyenSettings } from './settings.ts';
import { walletMethodOf } from './wallet-token.ts';

/** Sends a request within its call's deadline. */
export type Send = SendTarget<HttpRequest>;

const API_VERSION = '/v72';
const MAX_METADATA = 20;
const MAX_DESCRIPTOR_LENGTH = 22;
/** Matches characters that Adyen refuses on a statement, after accents are separated from their letters. */
const NOT_IN_DESCRIPTORS = /[^A-Za-z0-9 .,'_?+*/-]/g;

/** The fields of a request that depend on how the payer pays. */
export type MethodFields = {
  readonly paymentMethod: { readonly type: string };
  readonly [name: string]: unknown;
};

/**
 * Builds the request for the account's payment methods, which moves no money.
 *
 * @param filter limits the list; without it, the list is the account's.
 */
export function paymentMethodsRequest(settings: AdyenSettings, filter: object = {}): HttpRequest {
  const body = { merchantAccount: settings.merchantAccount, ...filter };
  return post(settings, '/paymentMethods', undefined, body);
}

/**
 * Returns the fields that depend on how an attempt's payer pays. They contain the card number and the security code, or
 * the wallet's token.
 *
 * @returns undefined if the connection cannot pay like this: it does not offer the method, or the token is not the
 *   wallet's answer.
 */
export function methodFields(attempt: PaymentAttempt, { methods }: AdyenSettings): MethodFields | undefined {
  const { method, customerPayer: payer } = attempt;
  if (method.by === 'card' || method.by === 'wallet_token') {
    const paymentMethod = method.by === 'card' ? cardMethodOf(method) : walletMethodOf(method, methods);
    return paymentMethod && { paymentMethod, ...chargeFields(method, browserInfoOf(payer)) };
  }
  const type = method.by === 'payer' ? methods.pages.get(method.type) : undefined;
  const fields = isLocalMethod(method)
    ? localFields(attempt, method, methods)
    : type !== undefined && { paymentMethod: { type } };
  return fields ? { ...fields, channel: 'Web', ...captureFields(true) } : undefined;
}

/**
 * Builds the request for an attempt. The body contains the secrets of `fields`, and must only be written to Adyen's
 * socket. Absent values are left out.
 */
export function paymentRequest(
  attempt: PaymentAttempt,
  amount: AdyenAmount,
  fields: MethodFields,
  settings: AdyenSettings,
): HttpRequest {
  const { customerPayer: payer, additionalData, transactionId } = attempt;
  const airline = additionalData?.airline && airlineOf(additionalData.airline, payer);
  return post(settings, '/payments', transactionId, {
    merchantAccount: settings.merchantAccount,
    reference: transactionId,
    amount,
    returnUrl: attempt.returnUrl,
    merchantOrderReference: attempt.merchantOrderId || undefined,
    countryCode: attempt.country || undefined,
    ...payerOf(payer, attempt.country),
    metadata: metadataOf(attempt),
    lineItems: lineItemsOf(attempt, amount, fields.paymentMethod.type),
    enhancedSchemeData: airline && { airline },
    ...fields,
  });
}

/**
 * Builds the request that completes a redirect or a challenge. The payer's return query may be forged, so each
 * `redirectResult` has its own key: a forged one does not use up the key of the real one.
 */
export function detailsRequest(
  transactionId: string,
  redirectResult: string,
  settings: AdyenSettings,
): HttpRequest {
  const digest = createHash('sha256').update(redirectResult).digest('hex').slice(0, 24);
  return post(settings, '/payments/details', `${transactionId}-${digest}`, { details: { redirectResult } });
}

/** Builds the request that cancels an authorization using our reference, even if Adyen has not received it. */
export function technicalCancelRequest(transactionId: string, settings: AdyenSettings): HttpRequest {
  return post(settings, '/cancels', `${transactionId}-cancel`, {
    merchantAccount: settings.merchantAccount,
    paymentReference: transactionId,
    reference: transactionId,
  });
}

/** Builds the request for a capture, a cancel or a refund. @param paid the payment's. */
export function operationRequest(
  settings: AdyenSettings,
  kind: OperationKind,
  operation: Pick<Operation, 'transactionId' | 'reason'>,
  { pspReference, amount }: { readonly pspReference: string; readonly amount: AdyenAmount },
): HttpRequest {
  const path = `/payments/${encodeURIComponent(pspReference)}/${kind}s`;
  return post(settings, path, operation.transactionId, {
    merchantAccount: settings.merchantAccount,
    reference: operationReference(kind, operation.transactionId),
    ...(kind !== 'cancel' && { amount }),
    ...(kind === 'refund' && { merchantRefundReason: refundReasonOf(operation.reason) }),
  });
}

/** Returns our reference for an operation. It differs from the bare id, which is the reference of a payment. */
export function operationReference(kind: OperationKind, transactionId: string): string {
  return `${kind}-${transactionId}`;
}

function post(
  settings: AdyenSettings,
  path: string,
  idempotencyKey: string | undefined,
  body: object,
): HttpRequest {
  return {
    method: 'POST',
    path: settings.basePath + API_VERSION + path,
    headers: {
      'x-api-key': settings.apiKey.reveal(),
      'content-type': 'application/json',
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    },
    body: JSON.stringify(body),
  };
}

function cardMethodOf({ card, storedCredentials }: Extract<Method, { by: 'card' }>) {
  const networkPaymentReference = storedCredentials?.networkTransactionId || undefined;
  return { ...cardOf(card), networkPaymentReference };
}

/** Returns the options of a charge of a card, or of the card behind a wallet. */
function chargeFields(options: CardOptions, browserInfo: object | undefined): object {
  const { capture, verify, installments, threeDSecure, storedCredentials } = options;
  const descriptor = options.softDescriptor.normalize('NFD').replace(NOT_IN_DESCRIPTORS, '');
  return {
    ...(!verify && captureFields(capture)),
    ...(threeDSecure || !browserInfo
      ? { authenticationData: { attemptAuthentication: 'never' } }
      : challengeFields(browserInfo, options.threeDSecureSetupId !== undefined)),
    mpiData: threeDSecure && mpiDataOf(threeDSecure),
    installments: installments > 1 ? { value: installments } : undefined,
    shopperStatement: descriptor.slice(0, MAX_DESCRIPTOR_LENGTH).trim() || undefined,
    ...storedCredentialsOf(storedCredentials),
  };
}

/** Fields for 3-D Secure with a redirect. Without a request from the merchant, Adyen's own rules decide. */
function challengeFields(browserInfo: object, isWanted: boolean): object {
  return {
    channel: 'Web',
    browserInfo,
    authenticationData: {
      ...(isWanted && { attemptAuthentication: 'always' }),
      threeDSRequestData: { nativeThreeDS: 'disabled' },
    },
  };
}

/** Returns the names of browser fields that a 3-D Secure challenge needs and that are missing or invalid. */
export function missingForChallenge(given: BrowserInfo | undefined): string[] {
  const { acceptHeader, userAgent, language, colorDepth, screenHeight, screenWidth } = given ?? {};
  const texts = { accept_header: acceptHeader, user_agent: userAgent, language };
  const numbers = { color_depth: colorDepth, screen_height: screenHeight, screen_width: screenWidth };
  const isNumber = (text: string | undefined) => Number.isSafeInteger(Number(text)) && Number(text) > 0;
  return [
    ...Object.entries(texts).filter(([, text]) => !text),
    ...Object.entries(numbers).filter(([, text]) => !isNumber(text)),
  ].map(([name]) => name);
}

/** @returns undefined unless all fields that 3-D Secure needs are present. */
function browserInfoOf({ browserInfo: given }: CustomerPayer): object | undefined {
  if (!given || missingForChallenge(given).length > 0) return undefined;
  const { acceptHeader, userAgent, language } = given;
  const [colorDepth, screenHeight, screenWidth] = [
    given.colorDepth,
    given.screenHeight,
    given.screenWidth,
  ].map(Number);
  const timeZoneOffset = Number(given.browserTimeDifference || 0);
  return {
    acceptHeader,
    userAgent,
    language,
    colorDepth,
    screenHeight,
    screenWidth,
    timeZoneOffset: Number.isSafeInteger(timeZoneOffset) ? timeZoneOffset : 0,
    javaEnabled: given.javaEnabled === 'true',
    javaScriptEnabled: given.javascriptEnabled ?? true,
  };
}

/** Fields that request an immediate or a manual capture, whatever the account's capture delay. */
function captureFields(capture: boolean): object {
  return capture ? { captureDelayHours: 0 } : { additionalData: { manualCapture: 'true' } };
}

function cardOf(card: AttemptCard) {
  return {
    type: 'scheme',
    number: card.number.reveal(),
    expiryMonth: String(card.expirationMonth).padStart(2, '0'),
    expiryYear: String(2000 + card.expirationYear),
    cvc: card.securityCode?.reveal(),
    holderName: card.holderName || undefined,
  };
}

/** Authentication status by ECI: succeeded (Y) or attempted (A). Any other ECI means neither. */
const STATUS_BY_ECI: Readonly<Record<string, string>> = { '02': 'Y', '05': 'Y', '01': 'A', '06': 'A' };

/** Results of external 3-D Secure. */
function mpiDataOf(result: ThreeDSecure): object {
  const eci = result.electronicCommerceIndicator?.padStart(2, '0');
  const status = /^[YNUA]$/.test(result.paresStatus ?? '') ? result.paresStatus : STATUS_BY_ECI[eci ?? ''];
  return {
    cavv: result.cryptogram || undefined,
    eci,
    dsTransID: result.directoryServerTransactionId || undefined,
    // Before version 2, issuers identify an authentication by its XID.
    xid: (result.version?.startsWith('1') && result.transactionId) || undefined,
    threeDSVersion: result.version || undefined,
    directoryResponse: status,
    authenticationResponse: status,
  };
}

const PROCESSING_MODELS: Readonly<Record<string, string>> = {
  CARD_ON_FILE: 'CardOnFile',
  SUBSCRIPTION: 'Subscription',
  UNSCHEDULED_CARD_ON_FILE: 'UnscheduledCardOnFile',
};
/**
 * Models of the payment with which the payer agrees to later ones. Adyen refuses the model of unscheduled payments there
 * (88), since only the merchant initiates those.
 */
const FIRST_MODELS: typeof PROCESSING_MODELS = {
  ...PROCESSING_MODELS,
  UNSCHEDULED_CARD_ON_FILE: 'CardOnFile',
};

function storedCredentialsOf(credentials: StoredCredentials | undefined): object {
  const { reason, usage, networkTransactionId } = credentials ?? {};
  // Only a previously stored card has the scheme's id of its first payment.
  const isUsed = usage === 'USED' || (!usage && networkTransactionId !== undefined);
  const kept = reason ?? (usage || isUsed ? 'CARD_ON_FILE' : '');
  return {
    // A payer with a stored card does not reenter the security code, so this is a continued authorization too.
    shopperInteraction: isUsed ? 'ContAuth' : 'Ecommerce',
    recurringProcessingModel: (isUsed ? PROCESSING_MODELS : FIRST_MODELS)[kept],
  };
}

/** Returns the merchant's metadata without the entries that Adyen would refuse. */
function metadataOf({ metadata }: PaymentAttempt): object | undefined {
  const kept = metadata
    .filter(({ key, value }) => key.length <= 20 && value.length <= 80)
    .slice(0, MAX_METADATA);
  return kept.length > 0 ? Object.fromEntries(kept.map(({ key, value }) => [key, value])) : undefined;
}

function refundReasonOf(reason: string | undefined): string | undefined {
  switch (reason) {
    case 'DUPLICATE':
      return 'DUPLICATE';
    case 'FRAUDULENT':
      return 'FRAUD';
    case 'REQUESTED_BY_CUSTOMER':
      return 'CUSTOMER REQUEST';
    default:
      return reason === undefined ? undefined : 'OTHER';
  }
}
