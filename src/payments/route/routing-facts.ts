import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { CardData } from '#gen/payments/v1/payment_method_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { type RoutingFacts, RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';
import { chargesCard } from '#src/connectors/port/attempt.ts';
import { categoryOf, type RequestedMethod, workflowOfMethod } from '#src/payments/method/payment-method.ts';

/**
 * Returns the facts about a valid request that conditions are evaluated on.
 *
 * @param cardData displayable data of the card, whether sent or vaulted.
 */
export function routingFacts(
  request: CreatePaymentRequest,
  method: RequestedMethod,
  cardData: CardData | undefined,
  time: Timestamp,
): RoutingFacts {
  const { capture, installments } = chargesCard(method) ? method : { capture: false, installments: 1 };
  return create(RoutingFactsSchema, {
    accountId: request.accountId,
    country: request.country,
    ...(request.amount?.value && { amount: request.amount.value }),
    currency: request.amount?.currency ?? '',
    type: method.type,
    category: Transaction_Category[categoryOf(method)] ?? '',
    workflow: Payment_Workflow[workflowOfMethod(method)] ?? '',
    installments,
    cardBrand: cardData?.brand ?? '',
    iin: cardData?.iin ?? '',
    issuerCountry: cardData?.countryCode ?? '',
    issuerType: cardData?.type ?? '',
    capture,
    hasAirline: request.additionalData?.airline !== undefined,
    hasOrder: request.additionalData?.order !== undefined,
    vaulted: Boolean(request.paymentMethod?.vaultedToken),
    merchantReference: request.merchantReference,
    time,
  });
}
