import { create } from '@bufbuild/protobuf';
import type { PaymentMethodType } from '#gen/payments/v1/catalogue_pb.js';
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
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { type CardOptions, isLocalMethod, type Method } from '#src/connectors/port/attempt.ts';
import { Secret } from '#src/secret.ts';
import { fieldRefusal, invalidField, notAllowed, type ServiceError, unknownId } from '#src/service-error.ts';
import type { StoredToken } from '#src/store/tables/one-time-tokens.ts';
import type { StoredObjects, VaultedToken } from '#src/store/tables/stored-objects.ts';
import type { CardSource } from './card-source.ts';
import { featuresAsked } from './features.ts';
import { GROUP_NAMES, isLocal, readLocalMethod } from './local-method.ts';

/** The payment method of a request, decided. Its card has yet to be opened. */
export type RequestedMethod = Method<CardSource>;

/** Payment method type of one-time tokens. */
export const ONE_TIME_TOKEN_TYPE = 'CARD';

/** The types that the catalogue offers, by name. */
export type MethodTypes = ReadonlyMap<string, PaymentMethodType>;

/** The stored objects behind a request's tokens. */
export type MethodReferences = Partial<StoredObjects> & { readonly oneTimeToken?: StoredToken | undefined };

/**
 * Decides how a valid request pays: the only function that reads this from the request.
 *
 * @param references undefined if nothing was looked up: the request names no stored object, or is only explained.
 * @throws ServiceError PAYMENT_METHOD_NOT_AVAILABLE if the catalogue does not offer the method; INVALID_PARAMETERS if
 *   the detail does not fit the type; VAULTED_TOKEN_NOT_FOUND, INCORRECT_PAYMENT_METHOD_TYPE, INVALID_CUSTOMER_FOR_TOKEN.
 */
export function readMethod(
  request: CreatePaymentRequest,
  references: MethodReferences | undefined,
  types: MethodTypes,
): RequestedMethod {
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
  const isRedirect = chooseWorkflow(request, offered) === Payment_Workflow.REDIRECT;
  if (isLocal(offered.category)) return readLocalMethod(input, offered.category);
  const kind = input.detail?.kind;
  if (kind?.case === 'bankTransfer' || kind?.case === 'ticket') {
    throw notAllowed(`payment_method.detail.${GROUP_NAMES[kind.case]}`, `must not be sent with ${type}`);
  }
  if (offered.category === Transaction_Category.WALLET) {
    const wallet = kind?.case === 'wallet' ? kind.value : undefined;
    if (wallet?.paymentToken && !isRedirect) return readWalletToken(input, wallet);
    requireNoCardOptions(input);
    const stored = references && input.vaultedToken ? requireStored(type, references) : undefined;
    if (isRedirect) return { by: 'payer', type, show: 'page' };
    const { connectionId: at, providerToken: token } = stored ?? {};
    const enrolled = at !== undefined && token !== undefined ? { at, token } : undefined;
    return { by: 'wallet', type, enrolled, cardType: wallet?.cardData?.cardType || undefined };
  }
  if (kind?.case === 'wallet')
    throw notAllowed('payment_method.detail.wallet', 'must not be sent with a card');
  const stored = () => references && requireStored(type, references);
  const card = chooseCard(input, kind?.value?.cardData, stored, references?.oneTimeToken);
  return { by: 'card', type, card, ...cardOptions(kind?.value) };
}

/**
 * Reads a payment with a wallet's token. The token itself is the provider's to read; only a JSON object can be one.
 *
 * @throws ServiceError INVALID_PARAMETERS.
 */
function readWalletToken(
  { type, token, vaultedToken, vaultOnSuccess }: PaymentMethodInput,
  wallet: WalletInput,
): RequestedMethod {
  const field = 'payment_method.detail.wallet.payment_token';
  if (token || vaultedToken)
    throw notAllowed(field, 'must be sent alone: send only one of payment_token, token and vaulted_token');
  if (vaultOnSuccess) {
    const message = 'is not supported for the token of a wallet, which names no card that could be stored';
    throw notAllowed('payment_method.vault_on_success', message);
  }
  if (!isJsonObjectText(wallet.paymentToken)) {
    throw invalidField(field, 'INVALID_FORMAT', "must be the wallet's whole answer as a JSON object");
  }
  const { verify, capture, installments, softDescriptor, storedCredentials } = wallet;
  return {
    ...{
      by: 'wallet_token',
      type,
      token: new Secret(wallet.paymentToken),
      lastFour: wallet.cardData?.lfd ?? '',
    },
    ...cardOptions({ verify, capture, installments: installments || 1, softDescriptor, storedCredentials }),
  };
}

function isJsonObjectText(text: string): boolean {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === 'object' && json !== null && !Array.isArray(json);
  } catch {
    return false;
  }
}

/** Requires exactly one of card data, a one-time token, and a stored card. */
function chooseCard(
  { token, vaultedToken }: PaymentMethodInput,
  card: CardDataInput | undefined,
  stored: () => VaultedToken | undefined,
  oneTimeToken: StoredToken | undefined,
): CardSource {
  const codeAlone = card && vaultedToken && isCodeAlone(card);
  if ([card && !codeAlone, token, vaultedToken].filter(Boolean).length > 1) {
    const field = `payment_method.${token ? 'token' : 'vaulted_token'}`;
    throw notAllowed(field, 'must be sent alone: send only one of card_data, token and vaulted_token');
  }
  if (token) return { source: 'token', token: oneTimeToken };
  if (vaultedToken) return { source: 'stored', stored: stored(), securityCode: card?.securityCode ?? '' };
  if (card) return { source: 'sent', input: card };
  const message = 'is required, unless a token or vaulted_token is sent';
  throw invalidField('payment_method.detail.card.card_data', 'REQUIRED', message);
}

/** Returns the stored method that a request names, which must match its type and customer. */
function requireStored(type: string, { vaultedToken, customer }: MethodReferences): VaultedToken {
  const field = 'payment_method.vaulted_token';
  if (!vaultedToken) throw unknownId('VAULTED_TOKEN_NOT_FOUND', field);
  if (vaultedToken.type !== type) {
    const message = 'differs from the type of vaulted_token';
    throw fieldRefusal('INCORRECT_PAYMENT_METHOD_TYPE', 'payment_method.type', 'NOT_ALLOWED', message);
  }
  if (vaultedToken.customerId && customer && vaultedToken.customerId !== customer.id) {
    throw fieldRefusal('INVALID_CUSTOMER_FOR_TOKEN', field, 'NOT_ALLOWED', 'belongs to another customer');
  }
  return vaultedToken;
}

/**
 * Checks that a wallet's request asks for nothing that only cards offer. Default flags, which many merchants always
 * send, do not count.
 */
function requireNoCardOptions({ detail, token }: PaymentMethodInput): void {
  const kind = detail?.kind;
  if (kind?.case === 'wallet') {
    const { softDescriptor, storedCredentials } = kind.value;
    const field = softDescriptor ? 'soft_descriptor' : storedCredentials && 'stored_credentials';
    if (field) throw notAllowed(`payment_method.detail.wallet.${field}`, 'is only for a payment_token');
    if (kind.value.paymentToken) {
      const message = 'is not supported for a wallet that redirects its payer';
      throw notAllowed('payment_method.detail.wallet.payment_token', message);
    }
  }
  if (kind?.case === 'card' || kind?.case === 'wallet') {
    const { verify, capture, installments } = kind.value;
    const asked = featuresAsked(
      cardOptions(kind.case === 'card' ? kind.value : { verify, capture, installments }),
    );
    const isCard = kind.case === 'card' && (kind.value.cardData || kind.value.threeDSecure);
    if (isCard || (kind.case === 'card' && asked.some((field) => field !== 'capture')))
      throw notAllowed('payment_method.detail.card', 'must not be sent with a wallet');
    if (asked[0]) {
      const field = `payment_method.detail.${kind.case}.${asked[0]}`;
      throw notAllowed(field, 'is not supported for wallets, which pay in full immediately');
    }
  }
  if (token) throw notAllowed('payment_method.token', 'must not be sent with a wallet');
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

/** Returns the options that a request sets for a card payment. */
export function cardOptions(input: CardOptionsInput | undefined): CardOptions {
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

type CardOptionsInput = {
  readonly [Name in
    | 'verify'
    | 'capture'
    | 'installments'
    | 'threeDSecure'
    | 'storedCredentials'
    | 'softDescriptor']?: CardInput[Name] | undefined;
};

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

/** Returns the category of a method, as records and conditions show it. */
export function categoryOf(method: Method<unknown>): Transaction_Category {
  if (isLocalMethod(method)) return Transaction_Category[method.category];
  return method.by === 'card' ? Transaction_Category.CARD : Transaction_Category.WALLET;
}

/** Returns the workflow of a method: REDIRECT if the payer has to act. */
export function workflowOfMethod({ by }: Pick<Method, 'by'>): Payment_Workflow {
  return by === 'payer' ? Payment_Workflow.REDIRECT : Payment_Workflow.DIRECT;
}

function chooseWorkflow(
  { workflow: requested, checkout, paymentMethod }: CreatePaymentRequest,
  { workflows: offered, category }: PaymentMethodType,
): Payment_Workflow.DIRECT | Payment_Workflow.REDIRECT {
  const only = offered.length === 1 ? offered[0] : undefined;
  if (requested === Payment_Workflow.SDK_CHECKOUT) {
    if (!checkout?.session)
      throw notAllowed('workflow', 'must be DIRECT or REDIRECT outside a checkout session');
    const kind = paymentMethod?.detail?.kind;
    const isCharged = paymentMethod?.vaultedToken || (kind?.case === 'wallet' && kind.value.paymentToken);
    const isRedirect = category !== Transaction_Category.CARD && !isCharged;
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
