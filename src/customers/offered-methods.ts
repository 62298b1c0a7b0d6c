import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { PaymentMethodType } from '#gen/payments/config/catalogue_pb.js';
import {
  type OfferedPaymentMethod,
  OfferedPaymentMethodSchema,
} from '#gen/payments/v1/checkout_service_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { toDecimal } from '#src/money.ts';
import { hasTerms, takesType } from '#src/payments/create/session-terms.ts';
import { readMethod } from '#src/payments/method/payment-method.ts';
import { findWay } from '#src/payments/route/choose-route.ts';
import type { LiveCatalogue } from '#src/payments/route/live-catalogue.ts';
import { routingFacts } from '#src/payments/route/routing-facts.ts';
import { ServiceError } from '#src/service-error.ts';
import type { StoredSession } from '#src/store/tables/checkout-sessions.ts';

/**
 * Lists the catalogue's types with which a session can be paid, given its country, currency and amount: cards, and
 * wallets that have a route and redirect their payers.
 */
export function offeredMethods(
  catalogue: LiveCatalogue,
  session: StoredSession,
  now: Timestamp,
): OfferedPaymentMethod[] {
  const installments = takesInstallments(catalogue, session);
  return [...catalogue.types.values()]
    .filter((type) => isOffered(catalogue, type, session, now))
    .map((type) => {
      const isCard = type.category === Transaction_Category.CARD;
      return create(OfferedPaymentMethodSchema, {
        type: type.type,
        category: Transaction_Category[type.category] ?? '',
        name: isCard ? 'Card' : nameOf(type.type),
        installments: isCard && installments,
      });
    });
}

/** Returns true if the session allows installments and any connection can charge cards in them. */
export function takesInstallments(
  { connections }: Pick<LiveCatalogue, 'connections'>,
  { maxInstallments }: Pick<StoredSession, 'maxInstallments'>,
): boolean {
  if (maxInstallments === 1) return false;
  return [...connections.values()].some(({ capabilities }) => capabilities.installments);
}

/** Returns the display name of a wallet's type: WALLET_A_CHECKOUT_PRO becomes "Wallet A Checkout Pro". */
export function nameOf(type: string): string {
  return type
    .split('_')
    .map((word) => word.slice(0, 1) + word.slice(1).toLowerCase())
    .join(' ');
}

function isOffered(
  catalogue: LiveCatalogue,
  methodType: PaymentMethodType,
  session: StoredSession,
  now: Timestamp,
): boolean {
  const { type, category, workflows } = methodType;
  if (!isOfTerms(methodType, session)) return false;
  // The route may depend on the card, which the payer has yet to enter.
  if (category === Transaction_Category.CARD) return true;
  if (!workflows.includes(Payment_Workflow.REDIRECT)) return false;
  return !hasTerms(session) || hasRoute(catalogue, requestOf(session, type), now);
}

/**
 * Returns true if a session accepts a type and the type is usable in its country and currency. A session without terms
 * accepts all types.
 */
export function isOfTerms(
  { type, countries, currencies }: PaymentMethodType,
  session: StoredSession,
): boolean {
  if (!hasTerms(session)) return true;
  if (!takesType(session, type)) return false;
  const inCountry = countries.length === 0 || countries.includes(session.country);
  return inCountry && (currencies.length === 0 || currencies.includes(session.currency));
}

function requestOf(session: StoredSession, type: string): CreatePaymentRequest {
  const { currency, minorUnits } = session;
  return create(CreatePaymentRequestSchema, {
    accountId: session.accountId,
    country: session.country,
    amount: { currency, value: toDecimal({ currency, minorUnits }) },
    paymentMethod: { type },
    workflow: Payment_Workflow.REDIRECT,
  });
}

function hasRoute(catalogue: LiveCatalogue, request: CreatePaymentRequest, now: Timestamp): boolean {
  try {
    const method = readMethod(request, undefined, catalogue.types);
    const facts = routingFacts(request, method, undefined, now);
    const way = findWay(catalogue, { request, method, facts, seed: '' });
    return way !== undefined && way.targets.length > 0;
  } catch (error) {
    if (error instanceof ServiceError) return false;
    throw error;
  }
}
