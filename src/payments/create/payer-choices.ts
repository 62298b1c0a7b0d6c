import { create, fromBinary, isFieldSet, toBinary } from '@bufbuild/protobuf';
import { type CustomerPayer, CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import {
  type CardInput,
  CardInputSchema,
  type PaymentMethodDetailInput,
  PaymentMethodDetailInputSchema,
  PaymentMethodInputSchema,
} from '#gen/payments/v1/payment_method_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { saysNothing } from './new-record.ts';

/** The choices that a payer makes with a one-time token. */
export type PayerChoices = {
  readonly vaultOnSuccess: boolean;
  readonly installments: number | undefined;
  readonly threeDSecureSetupId: string | undefined;
  readonly customer: CustomerPayer | undefined;
};

/** Encodes the choices to store with a token: as the part of a CreatePaymentRequest that states them. */
export function encodeChoices(choices: PayerChoices): Uint8Array {
  const { vaultOnSuccess, installments, threeDSecureSetupId, customer } = choices;
  const threeDSecure = threeDSecureSetupId ? { threeDSecureSetupId } : undefined;
  const hasOptions = installments !== undefined || threeDSecure !== undefined;
  const card = create(CardInputSchema, { installments, ...(threeDSecure && { threeDSecure }) });
  const method = { vaultOnSuccess, ...(hasOptions && { detail: detailOf(card) }) };
  const request = create(CreatePaymentRequestSchema, {
    ...(customer && { customerPayer: customer }),
    ...((vaultOnSuccess || hasOptions) && { paymentMethod: create(PaymentMethodInputSchema, method) }),
  });
  return toBinary(CreatePaymentRequestSchema, request);
}

/**
 * Completes a payment's request with the choices stored with its one-time token. The request wins, and so does the
 * stored customer: a payer's browser cannot change a customer's data.
 *
 * @param choices as encodeChoices returns them; undefined without a token.
 * @param stored the data of the payment's stored customer, if any.
 */
export function withChoices(
  request: CreatePaymentRequest,
  choices: Uint8Array | undefined,
  stored: CustomerPayer | undefined,
): CreatePaymentRequest {
  const { paymentMethod } = request;
  if (!choices?.length || !paymentMethod) return request;
  const { customerPayer, paymentMethod: chosen } = fromBinary(CreatePaymentRequestSchema, choices);
  const chosenCard = cardOptionsOf(chosen?.detail);
  const detail = chosenCard ? withCardChoices(paymentMethod.detail, chosenCard) : paymentMethod.detail;
  const vaultOnSuccess = paymentMethod.vaultOnSuccess || (chosen?.vaultOnSuccess ?? false);
  return {
    ...request,
    paymentMethod: { ...paymentMethod, vaultOnSuccess, ...(detail && { detail }) },
    ...(customerPayer && { customerPayer: withPayerData(request.customerPayer, customerPayer, stored) }),
  };
}

function withCardChoices(
  detail: PaymentMethodDetailInput | undefined,
  chosen: CardInput,
): PaymentMethodDetailInput | undefined {
  if (detail?.kind.case === 'wallet') return detail;
  const sent = cardOptionsOf(detail) ?? create(CardInputSchema);
  const threeDSecure = sent.threeDSecure ?? chosen.threeDSecure;
  const installments = sent.installments ?? chosen.installments;
  return detailOf({
    ...sent,
    ...(installments !== undefined && { installments }),
    ...(threeDSecure && { threeDSecure }),
  });
}

function withPayerData(
  sent: CustomerPayer | undefined,
  chosen: CustomerPayer,
  stored: CustomerPayer | undefined,
): CustomerPayer {
  const merged = { ...(sent ?? create(CustomerPayerSchema)) };
  for (const field of CustomerPayerSchema.fields) {
    if (!isFieldSet(chosen, field)) continue;
    const name = field.localName as keyof CustomerPayer;
    if (isKnown(sent, name) || isKnown(stored, name)) continue;
    Object.assign(merged, { [name]: chosen[name] });
  }
  return merged;
}

/** Returns true if the payer's data has a value for a field. */
function isKnown(payer: CustomerPayer | undefined, name: keyof CustomerPayer): boolean {
  const value = payer?.[name];
  return Array.isArray(value) ? value.length > 0 : !saysNothing(value);
}

function cardOptionsOf(detail: PaymentMethodDetailInput | undefined): CardInput | undefined {
  return detail?.kind.case === 'card' ? detail.kind.value : undefined;
}

function detailOf(card: CardInput): PaymentMethodDetailInput {
  return create(PaymentMethodDetailInputSchema, { kind: { case: 'card', value: card } });
}
