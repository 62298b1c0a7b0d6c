import { create } from '@bufbuild/protobuf';
import type { PaymentMethodType } from '#gen/payments/config/catalogue_pb.js';
import type { BrowserInfo } from '#gen/payments/v1/customer_payer_pb.js';
import {
  type CardDataInput,
  type CardInput,
  type PaymentMethodInput,
  type StoredCredentials,
  type StoredCredentialsInput,
  StoredCredentialsSchema,
  type ThreeDSecure,
  ThreeDSecureSchema,
  type ThreeDSecureSetup,
  type WalletInput,
} from '#gen/payments/v1/payment_method_pb.js';
import { Payment_Workflow, Transaction_Category, Transaction_Type } from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import type { CardOptions as AttemptOptions } from '#src/connectors/attempt.ts';
import { fieldRefusal, invalidField, notAllowed, type ServiceError } from '#src/service-error.ts';

/** The payment method of a request, fully determined: its kind follows from the category and workflow. */
export type ChosenMethod = {
  readonly type: string;
  readonly workflow: Payment_Workflow.DIRECT | Payment_Workflow.REDIRECT;
} & (
  | { readonly kind: 'card'; readonly card: CardDataInput; readonly options: CardOptions }
  | {
      readonly kind: 'vaulted_card';
      readonly token: string;
      /** The security code that the payer re-entered; '' if none was sent. */
      readonly securityCode: string;
      readonly options: CardOptions;
    }
  | { readonly kind: 'token_card'; readonly options: CardOptions }
  | { readonly kind: 'wallet'; readonly token: string | undefined; readonly cardType: string | undefined }
);

/** Options for a card payment, besides the card. */
export type CardOptions = AttemptOptions & {
  readonly vaultOnSuccess: boolean;
  /** The payer's browser, without which some providers offer no challenge. */
  readonly browser: BrowserInfo | undefined;
};

/** Payment method type of one-time tokens. */
export const ONE_TIME_TOKEN_TYPE = 'CARD';

/** The types that the catalogue offers, by name. */
export type MethodTypes = ReadonlyMap<string, PaymentMethodType>;

/**
 * Determines the payment method of a valid request.
 *
 * @throws ServiceError PAYMENT_METHOD_NOT_AVAILABLE if the catalogue does not offer it, INVALID_PARAMETERS if the
 *   detail does not fit the type.
 */
export function chooseMethod(request: CreatePaymentRequest, types: MethodTypes): ChosenMethod {
  const input = request.paymentMethod;
  // A token implies its type. A type sent along with a token may be a name that only the shop uses.
  const type = input?.token && !types.has(input.type) ? ONE_TIME_TOKEN_TYPE : (input?.type ?? '');
  const offered = types.get(type);
  if (!input || !offered) throw notAvailable('payment_method.type', 'is not offered');
  if (offered.countries.length > 0 && !offered.countries.includes(request.country)) {
    throw notAvailable('country', 'is not a country where this payment method is offered');
  }
  if (offered.currencies.length > 0 && !offered.currencies.includes(request.amount?.currency ?? '')) {
    throw notAvailable('amount.currency', 'is not a currency that this payment method accepts');
  }
  const workflow = chooseWorkflow(request, offered);
  const token = input.vaultedToken || undefined;
  const kind = input.detail?.kind;

  if (offered.category === Transaction_Category.WALLET) {
    if (kind?.case === 'card' && asksForCard(kind.value))
      throw notAllowed('payment_method.detail.card', 'must not be sent with a wallet');
    const flag = kind?.value && flagNotForWallets(kind.value);
    if (flag) {
      const field = `payment_method.detail.${kind.case}.${flag}`;
      throw notAllowed(field, 'is not supported for wallets, which pay in full immediately');
    }
    if (input.token) throw notAllowed('payment_method.token', 'must not be sent with a wallet');
    const cardType = kind?.case === 'wallet' ? kind.value.cardData?.cardType || undefined : undefined;
    return { kind: 'wallet', type, workflow, token, cardType };
  }

  if (kind?.case === 'wallet')
    throw notAllowed('payment_method.detail.wallet', 'must not be sent with a card');
  const browser = request.customerPayer?.browserInfo;
  const options = { ...cardOptions(kind?.value), vaultOnSuccess: input.vaultOnSuccess, browser };
  return { type, workflow, options, ...chooseCard(input, kind?.value?.cardData) };
}

/** Requires exactly one of card data, a one-time token, and a stored card. */
function chooseCard(input: PaymentMethodInput, card: CardDataInput | undefined) {
  const { token, vaultedToken } = input;
  const codeAlone = card && vaultedToken && isCodeAlone(card);
  if ([card && !codeAlone, token, vaultedToken].filter(Boolean).length > 1) {
    const field = `payment_method.${token ? 'token' : 'vaulted_token'}`;
    throw notAllowed(field, 'must be sent alone: send only one of card_data, token and vaulted_token');
  }
  if (token) return { kind: 'token_card' as const };
  if (vaultedToken) {
    return { kind: 'vaulted_card' as const, token: vaultedToken, securityCode: card?.securityCode ?? '' };
  }
  if (card) return { kind: 'card' as const, card };
  const message = 'is required, unless a token or vaulted_token is sent';
  throw invalidField('payment_method.detail.card.card_data', 'REQUIRED', message);
}

/** Returns true if card data holds only a security code, which may accompany a vaulted token. */
export function isCodeAlone(card: CardDataInput): boolean {
  return (
    card.number === '' &&
    card.expirationMonth === 0 &&
    card.expirationYear === undefined &&
    card.holderName === ''
  );
}

/** Returns true if card options are requested. Default flags, which many merchants always send, do not count. */
function asksForCard(input: CardInput): boolean {
  const { verify, installments, threeDSecure, storedCredentials, softDescriptor } = cardOptions(input);
  const options = [verify, installments !== 1, threeDSecure, storedCredentials, softDescriptor];
  return input.cardData !== undefined || input.threeDSecure !== undefined || options.some(Boolean);
}

/** Returns the name of a flag that requests something no wallet offers. */
function flagNotForWallets({ verify, capture, installments }: CardInput | WalletInput): string | undefined {
  if (verify) return 'verify';
  if (capture === false) return 'capture';
  return installments !== undefined && installments > 1 ? 'installments' : undefined;
}

function cardOptions(input: CardInput | undefined): AttemptOptions {
  const verify = input?.verify ?? false;
  return {
    // A verification leaves nothing to capture.
    capture: verify || (input?.capture ?? true),
    verify,
    installments: input?.installments ?? 1,
    threeDSecureSetupId: input?.threeDSecure?.threeDSecureSetupId || undefined,
    threeDSecure: threeDSecureResults(input?.threeDSecure),
    storedCredentials: storedCredentials(input?.storedCredentials),
    softDescriptor: input?.softDescriptor ?? '',
  };
}

/** Returns true if the request carries 3-D Secure results from elsewhere. */
export function hasThreeDSecureResults(sent: ThreeDSecureSetup): boolean {
  const { version, electronicCommerceIndicator, cryptogram, transactionId, directoryServerTransactionId } =
    sent;
  return [version, electronicCommerceIndicator, cryptogram, transactionId, directoryServerTransactionId].some(
    (text) => text !== '',
  );
}

function threeDSecureResults(sent: ThreeDSecureSetup | undefined): ThreeDSecure | undefined {
  if (!sent || !hasThreeDSecureResults(sent)) return undefined;
  return create(ThreeDSecureSchema, {
    version: sent.version || undefined,
    electronicCommerceIndicator: sent.electronicCommerceIndicator || undefined,
    cryptogram: sent.cryptogram || undefined,
    transactionId: sent.transactionId || undefined,
    directoryServerTransactionId: sent.directoryServerTransactionId || undefined,
  });
}

function storedCredentials(sent: StoredCredentialsInput | undefined): StoredCredentials | undefined {
  if (!sent) return undefined;
  const { reason, usage, subscriptionAgreementId, networkTransactionId } = sent;
  if (!reason && !usage && !subscriptionAgreementId && !networkTransactionId) return undefined;
  return create(StoredCredentialsSchema, {
    reason: reason || undefined,
    usage: usage || undefined,
    subscriptionAgreementId: subscriptionAgreementId || undefined,
    networkTransactionId: networkTransactionId || undefined,
  });
}

/**
 * Returns the type of the transaction. As the interface specifies, an authorization is shown as a purchase unless the
 * account is set to show authorizations as AUTHORIZE.
 */
export function transactionType(method: ChosenMethod, tellsAuthorized: boolean): Transaction_Type {
  if (method.kind === 'wallet') return Transaction_Type.PURCHASE;
  if (method.options.verify) return Transaction_Type.VERIFY;
  return tellsAuthorized && !method.options.capture ? Transaction_Type.AUTHORIZE : Transaction_Type.PURCHASE;
}

function chooseWorkflow(
  { workflow: requested, checkout, paymentMethod }: CreatePaymentRequest,
  { workflows: offered, category }: PaymentMethodType,
): ChosenMethod['workflow'] {
  const only = offered.length === 1 ? offered[0] : undefined;
  if (requested === Payment_Workflow.SDK_CHECKOUT) {
    if (!checkout?.session)
      throw notAllowed('workflow', 'must be DIRECT or REDIRECT outside a checkout session');
    const isRedirect = category === Transaction_Category.WALLET && !paymentMethod?.vaultedToken;
    const workflow = isRedirect ? Payment_Workflow.REDIRECT : Payment_Workflow.DIRECT;
    if (offered.includes(workflow)) return workflow;
    throw notAllowed('workflow', 'must not be SDK_CHECKOUT for this payment method');
  }
  const workflow = requested === Payment_Workflow.WORKFLOW_UNSPECIFIED ? only : requested;
  if (workflow !== Payment_Workflow.DIRECT && workflow !== Payment_Workflow.REDIRECT) {
    throw invalidField(
      'workflow',
      'REQUIRED',
      'is required, since this payment method offers DIRECT and REDIRECT',
    );
  }
  if (!offered.includes(workflow)) {
    throw notAllowed('workflow', `must be ${Payment_Workflow[only ?? 0]} for this payment method`);
  }
  return workflow;
}

/** Returns the refusal of a payment method that the catalogue does not offer. */
export function notAvailable(field: string, message: string): ServiceError {
  return fieldRefusal('PAYMENT_METHOD_NOT_AVAILABLE', field, 'NOT_ALLOWED', message);
}
