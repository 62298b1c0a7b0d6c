import { create } from '@bufbuild/protobuf';
import type { PaymentMethodType } from '#gen/payments/config/catalogue_pb.js';
import {
  type CardDataInput,
  type CardInput,
  type StoredCredentials,
  type StoredCredentialsInput,
  StoredCredentialsSchema,
  type ThreeDSecure,
  ThreeDSecureSchema,
  type ThreeDSecureSetup,
} from '#gen/payments/v1/payment_method_pb.js';
import { Payment_Workflow, Transaction_Category, Transaction_Type } from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import type { CardOptions as AttemptOptions } from '#src/connectors/attempt.ts';
import { type FieldError, fieldRefusal, invalidParameters, type ServiceError } from '#src/service-error.ts';

/** The payment method, with nothing left to guess: `detail` by category and workflow. */
export type ChosenMethod = {
  readonly type: string;
  readonly workflow: Payment_Workflow.DIRECT | Payment_Workflow.REDIRECT;
} & (
  | { readonly kind: 'card'; readonly card: CardDataInput; readonly options: CardOptions }
  | { readonly kind: 'vaulted_card'; readonly token: string; readonly options: CardOptions }
  | { readonly kind: 'wallet'; readonly token: string | undefined; readonly cardType: string | undefined }
);

/** Options that a card payment may set, beside the card. */
export type CardOptions = AttemptOptions & { readonly vaultOnSuccess: boolean };

/** The types that the catalogue offers, by name. */
export type MethodTypes = ReadonlyMap<string, PaymentMethodType>;

/**
 * Narrows the payment method of a valid request.
 *
 * @throws ServiceError PAYMENT_METHOD_NOT_AVAILABLE where the catalogue does not offer it, INVALID_PARAMETERS where the
 *   detail does not fit the type.
 */
export function chooseMethod(request: CreatePaymentRequest, types: MethodTypes): ChosenMethod {
  const input = request.paymentMethod;
  const offered = types.get(input?.type ?? '');
  if (!input || !offered) throw notAvailable('payment_method.type', 'is not offered');
  if (offered.countries.length > 0 && !offered.countries.includes(request.country)) {
    throw notAvailable('country', 'is not one in which this payment method is offered');
  }
  if (offered.currencies.length > 0 && !offered.currencies.includes(request.amount?.currency ?? '')) {
    throw notAvailable('amount.currency', 'is not one in which this payment method is offered');
  }
  const workflow = chooseWorkflow(request.workflow, offered.workflows);
  const { type } = input;
  const token = input.vaultedToken || undefined;
  const kind = input.detail?.kind;

  if (offered.category === Transaction_Category.WALLET) {
    if (kind?.case === 'card' && asksForCard(kind.value))
      throw refuse('payment_method.detail.card', 'NOT_ALLOWED', 'must not be sent with a wallet');
    const cardType = kind?.case === 'wallet' ? kind.value.cardData?.cardType || undefined : undefined;
    return { kind: 'wallet', type, workflow, token, cardType };
  }

  if (kind?.case === 'wallet')
    throw refuse('payment_method.detail.wallet', 'NOT_ALLOWED', 'must not be sent with a card');
  const card = kind?.value?.cardData;
  if (card && token) {
    throw refuse('payment_method.vaulted_token', 'NOT_ALLOWED', 'must not be sent with card_data');
  }
  const options = { ...cardOptions(kind?.value), vaultOnSuccess: input.vaultOnSuccess };
  if (card) return { kind: 'card', type, workflow, card, options };
  if (token) return { kind: 'vaulted_card', type, workflow, token, options };
  throw refuse(
    'payment_method.detail.card.card_data',
    'REQUIRED',
    'is required, unless vaulted_token is sent',
  );
}

/** Many merchants send a card's flags (`verify: false`) with every payment; that asks for nothing. */
function asksForCard(input: CardInput): boolean {
  const { verify, installments, threeDSecure, storedCredentials, softDescriptor } = cardOptions(input);
  const options = [verify, installments !== 1, threeDSecure, storedCredentials, softDescriptor];
  return input.cardData !== undefined || input.threeDSecure !== undefined || options.some(Boolean);
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

/** Returns true if the request carries results of 3-D Secure made elsewhere. */
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
 * The type of the transaction that is made. An authorization is told as a purchase, as the interface shows it, unless its
 * account has it told as what it is.
 */
export function transactionType(method: ChosenMethod, tellsAuthorized: boolean): Transaction_Type {
  if (method.kind === 'wallet') return Transaction_Type.PURCHASE;
  if (method.options.verify) return Transaction_Type.VERIFY;
  return tellsAuthorized && !method.options.capture ? Transaction_Type.AUTHORIZE : Transaction_Type.PURCHASE;
}

function chooseWorkflow(
  asked: Payment_Workflow,
  offered: readonly Payment_Workflow[],
): ChosenMethod['workflow'] {
  const only = offered.length === 1 ? offered[0] : undefined;
  const workflow = asked === Payment_Workflow.WORKFLOW_UNSPECIFIED ? only : asked;
  if (workflow !== Payment_Workflow.DIRECT && workflow !== Payment_Workflow.REDIRECT) {
    throw refuse('workflow', 'REQUIRED', 'is required, since this payment method offers DIRECT and REDIRECT');
  }
  if (!offered.includes(workflow)) {
    throw refuse('workflow', 'NOT_ALLOWED', `must be ${Payment_Workflow[only ?? 0]} for this payment method`);
  }
  return workflow;
}

function refuse(field: string, code: FieldError['code'], message: string): ServiceError {
  return invalidParameters([{ field, code, message }]);
}

function notAvailable(field: string, message: string): ServiceError {
  return fieldRefusal('PAYMENT_METHOD_NOT_AVAILABLE', field, 'NOT_ALLOWED', message);
}
