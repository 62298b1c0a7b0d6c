import type { PaymentMethodType } from '#gen/payments/config/catalogue_pb.js';
import type { CardDataInput, CardInput } from '#gen/payments/v1/payment_method_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { type FieldError, invalidParameters, ServiceError } from '#src/service-error.ts';

/** How the payer pays, with nothing left to guess: what `detail` may hold, by category and workflow. */
export type ChosenMethod = {
  readonly type: string;
  readonly workflow: Payment_Workflow.DIRECT | Payment_Workflow.REDIRECT;
} & (
  | { readonly kind: 'card'; readonly card: CardDataInput; readonly options: CardOptions }
  | { readonly kind: 'vaulted_card'; readonly token: string; readonly options: CardOptions }
  | { readonly kind: 'wallet'; readonly token: string | undefined; readonly cardType: string | undefined }
);

/** What a card payment may ask for, beside the card. */
export type CardOptions = {
  /** false: authorization only. */
  readonly capture: boolean;
  readonly installments: number;
  readonly threeDSecureSetupId: string | undefined;
  readonly vaultOnSuccess: boolean;
};

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
  if (!input || !offered)
    throw notAvailable('payment_method.type', 'this payment method type is not offered');
  if (offered.countries.length > 0 && !offered.countries.includes(request.country)) {
    throw notAvailable('country', 'the payment method is not offered in this country');
  }
  if (offered.currencies.length > 0 && !offered.currencies.includes(request.amount?.currency ?? '')) {
    throw notAvailable('amount.currency', 'the payment method is not offered in this currency');
  }
  const workflow = chooseWorkflow(request.workflow, offered.workflows);
  const { type } = input;
  const token = input.vaultedToken || undefined;
  const kind = input.detail?.kind;

  if (offered.category === Transaction_Category.WALLET) {
    if (kind?.case === 'card' && asksForCard(kind.value))
      throw refuse('payment_method.detail.card', 'NOT_ALLOWED', 'a wallet takes no card');
    const cardType = kind?.case === 'wallet' ? kind.value.cardData?.cardType || undefined : undefined;
    return { kind: 'wallet', type, workflow, token, cardType };
  }

  if (kind?.case === 'wallet')
    throw refuse('payment_method.detail.wallet', 'NOT_ALLOWED', 'a card takes no wallet');
  const card = kind?.value?.cardData;
  if (card && token) {
    throw refuse(
      'payment_method.vaulted_token',
      'NOT_ALLOWED',
      'send either card_data or vaulted_token, not both',
    );
  }
  const options: CardOptions = {
    capture: kind?.value?.capture ?? true,
    installments: kind?.value?.installments ?? 1,
    threeDSecureSetupId: kind?.value?.threeDSecure?.threeDSecureSetupId || undefined,
    vaultOnSuccess: input.vaultOnSuccess,
  };
  if (card) return { kind: 'card', type, workflow, card, options };
  if (token) return { kind: 'vaulted_card', type, workflow, token, options };
  throw refuse('payment_method.detail.card.card_data', 'REQUIRED', 'send either card_data or vaulted_token');
}

/** Many merchants send a card's flags (`verify: false`) with every payment; that asks for nothing. */
function asksForCard({ cardData, installments = 1, threeDSecure }: CardInput): boolean {
  return cardData !== undefined || installments !== 1 || threeDSecure !== undefined;
}

function chooseWorkflow(
  asked: Payment_Workflow,
  offered: readonly Payment_Workflow[],
): ChosenMethod['workflow'] {
  const only = offered.length === 1 ? offered[0] : undefined;
  const workflow = asked === Payment_Workflow.WORKFLOW_UNSPECIFIED ? only : asked;
  if (workflow !== Payment_Workflow.DIRECT && workflow !== Payment_Workflow.REDIRECT) {
    throw refuse('workflow', 'REQUIRED', 'this payment method offers DIRECT and REDIRECT');
  }
  if (!offered.includes(workflow)) {
    throw refuse('workflow', 'NOT_ALLOWED', `this payment method offers ${Payment_Workflow[only ?? 0]} only`);
  }
  return workflow;
}

function refuse(field: string, code: FieldError['code'], message: string): ServiceError {
  return invalidParameters([{ field, code, message }]);
}

function notAvailable(field: string, message: string): ServiceError {
  return new ServiceError('PAYMENT_METHOD_NOT_AVAILABLE', `${field}: ${message}`, {
    fields: [{ field, code: 'NOT_ALLOWED', message }],
  });
}
