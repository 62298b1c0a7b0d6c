import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { PaymentMethodType } from '#gen/payments/v1/catalogue_pb.js';
import {
  type OfferedPaymentMethod,
  OfferedPaymentMethodSchema,
} from '#gen/payments/v1/checkout_service_pb.js';
import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import type { LocalMethod } from '#src/connectors/port/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { toDecimal } from '#src/money.ts';
import { hasTerms, takesType } from '#src/payments/create/session-terms.ts';
import type { Lack } from '#src/payments/method/features.ts';
import { isLocal } from '#src/payments/method/local-method.ts';
import { readMethod } from '#src/payments/method/payment-method.ts';
import { findWay, type Way } from '#src/payments/route/choose-route.ts';
import type { LiveCatalogue } from '#src/payments/route/live-catalogue.ts';
import { routingFacts } from '#src/payments/route/routing-facts.ts';
import { ServiceError } from '#src/service-error.ts';
import type { StoredSession } from '#src/store/tables/checkout-sessions.ts';

/** A method that a session offers. */
export type Offer = {
  readonly method: OfferedPaymentMethod;
  /** Set for a local method with a route. */
  readonly local?: LocalOffer;
};

/** Terms of a local method at the first listed connection that can take the session's payment. */
export type LocalOffer = Pick<LocalMethod, 'documents' | 'close'> & {
  /** Paths of the fields that the payer must send, since neither the session nor its customer has them. */
  readonly needs: readonly string[];
  readonly connection: ProviderConnection;
};

/** A session with what routing knows about its payment. */
export type SessionToPay = {
  readonly session: StoredSession;
  /** The stored data of the session's customer, if any. */
  readonly payer: CustomerPayer | undefined;
  readonly now: Timestamp;
};

/**
 * Lists the catalogue's types with which a session can be paid, given its country, currency and amount: cards, wallets
 * that have a route and redirect their payers, and local methods that have a route once the payer sends what it needs.
 */
export function offeredMethods(catalogue: LiveCatalogue, paying: SessionToPay): Offer[] {
  const installments = takesInstallments(catalogue, paying.session);
  return [...catalogue.types.values()].flatMap((type) => {
    const way = offerOf(catalogue, type, paying);
    if (way === undefined) return [];
    const isCard = type.category === Transaction_Category.CARD;
    const method = create(OfferedPaymentMethodSchema, {
      type: type.type,
      category: Transaction_Category[type.category] ?? '',
      name: isCard ? 'Card' : nameOf(type.type),
      installments: isCard && installments,
    });
    return [{ method, ...way }];
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

/** Names that are written in capitals. */
const CAPITALS: ReadonlySet<string> = new Set(['OXXO', 'PSE', 'SPEI']);

/** Returns the display name of a type: WALLET_A_CHECKOUT_PRO becomes "Wallet A Checkout Pro". */
export function nameOf(type: string): string {
  if (CAPITALS.has(type)) return type;
  return type
    .split('_')
    .map((word) => word.slice(0, 1) + word.slice(1).toLowerCase())
    .join(' ');
}

/** Returns what a session offers of a type besides its name; undefined if it does not offer the type. */
function offerOf(
  catalogue: LiveCatalogue,
  methodType: PaymentMethodType,
  paying: SessionToPay,
): Pick<Offer, 'local'> | undefined {
  const { type, category, workflows } = methodType;
  if (!isOfTerms(methodType, paying.session)) return undefined;
  // The route may depend on the card, which the payer has yet to enter.
  if (category === Transaction_Category.CARD) return {};
  if (!workflows.includes(Payment_Workflow.REDIRECT)) return undefined;
  if (!hasTerms(paying.session)) return {};
  const way = wayOf(catalogue, requestOf(paying, type), paying.now);
  if (!way) return undefined;
  if (isLocal(category)) {
    const local = localOffer(catalogue, way, type);
    return local && { local };
  }
  return way.targets.length > 0 ? {} : undefined;
}

/**
 * Returns the terms of the first listed connection that lacks nothing but the payer's data, which the payer has yet to
 * enter.
 */
function localOffer({ connections }: LiveCatalogue, way: Way, type: string): LocalOffer | undefined {
  const listed = way.plan.targets.map(({ connection }) => connection);
  const target = listed.find((one) => connections.has(one.id) && way.lacks(one).every(isAskable));
  const connection = target && connections.get(target.id);
  const local = connection?.capabilities.localMethods[type];
  if (!target || !connection || !local) return undefined;
  const { documents, close } = local;
  const needs = way
    .lacks(target)
    .map(({ field }) => field)
    .filter((field) => field !== 'customer_payer.ip_address');
  return { needs, close, connection, ...(documents && { documents }) };
}

const isAskable = ({ isMissing }: Lack) => isMissing === true;

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

function requestOf({ session, payer }: SessionToPay, type: string): CreatePaymentRequest {
  const { currency, minorUnits } = session;
  return create(CreatePaymentRequestSchema, {
    accountId: session.accountId,
    country: session.country,
    amount: { currency, value: toDecimal({ currency, minorUnits }) },
    paymentMethod: { type },
    workflow: Payment_Workflow.REDIRECT,
    ...(payer && { customerPayer: payer }),
  });
}

function wayOf(catalogue: LiveCatalogue, request: CreatePaymentRequest, now: Timestamp): Way | undefined {
  try {
    const method = readMethod(request, undefined, catalogue.types);
    const facts = routingFacts(request, method, undefined, now);
    return findWay(catalogue, { request, method, facts, seed: '' });
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}
