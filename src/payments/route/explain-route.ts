import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { Choice, type ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import {
  type Connection,
  Connection_Circuit,
  ConnectionSchema,
  type ExplainRouteResponse,
  ExplainRouteResponse_Choice,
  ExplainRouteResponseSchema,
} from '#gen/payments/v1/operator_service_pb.js';
import type { CardData } from '#gen/payments/v1/payment_method_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';
import type { ConnectionHealth } from '#src/connectors/guards/circuit-breaker.ts';
import type { BinTable } from '#src/payments/method/bin-table.ts';
import { cardData } from '#src/payments/method/card.ts';
import { describeLack } from '#src/payments/method/features.ts';
import { type RequestedMethod, readMethod } from '#src/payments/method/payment-method.ts';
import { drawSeed, type Signals } from '#src/routing/order-targets.ts';
import type { ReadyRoute } from '#src/routing/router.ts';
import type { VaultedToken } from '#src/store/tables/stored-objects.ts';
import { findWay, type RoutedPayment, type Way } from './choose-route.ts';
import { asRecorded, type RecordedPayment } from './recorded-payment.ts';
import type { RoutingCatalogue } from './routing-catalogue.ts';
import { routingFacts } from './routing-facts.ts';

/** A catalogue that can explain routes. */
export type ExplainedCatalogue = RoutingCatalogue & {
  /** Its version; 0 for a catalogue from a file. */
  readonly version: number;
  readonly signals: Signals;
  readonly health: CircuitStates;
};

/** Circuits by connection id. A connection without a circuit breaker has no entry. */
export type CircuitStates = ReadonlyMap<string, Pick<ConnectionHealth, 'state'>>;

/** Facts about an explained payment besides its request. */
export type Explained = {
  /** The idempotency key with which the payment would be made. */
  readonly idempotencyKey: string;
  readonly time: Timestamp;
  /** The stored method of the request's vaulted token; undefined if it was not looked up. */
  readonly stored?: VaultedToken | undefined;
};

/**
 * Explains which route a payment would take, and why. Pure: it sends, writes, reads and learns nothing.
 *
 * @param request must satisfy the rules of its .proto and checkRequest.
 * @throws ServiceError as for a payment, if the catalogue does not offer the method or the detail does not fit it.
 */
export function explainRoute(
  catalogue: ExplainedCatalogue,
  request: CreatePaymentRequest,
  { idempotencyKey, time, stored }: Explained,
): ExplainRouteResponse {
  const method = readMethod(request, stored && { vaultedToken: stored }, catalogue.types);
  const facts = routingFacts(request, method, sentCard(method, catalogue.bins), time);
  const seed = drawSeed(facts.accountId, idempotencyKey);
  return explainRouted(catalogue, { request, method, facts, seed }, notesOn(method, request));
}

/**
 * Explains which route a stored payment takes, and why, as it was made.
 *
 * @throws ServiceError as for a payment, if the catalogue does not offer the method.
 */
export function explainRecorded(
  catalogue: ExplainedCatalogue,
  recorded: RecordedPayment,
): ExplainRouteResponse {
  return explainRouted(catalogue, asRecorded(recorded, catalogue.connections)(catalogue), []);
}

function explainRouted(
  catalogue: ExplainedCatalogue,
  routed: RoutedPayment,
  notes: string[],
): ExplainRouteResponse {
  const { facts } = routed;
  const way = findWay(catalogue, routed);
  const routes = routesUntil(way, catalogue.router.routes, facts);
  return create(ExplainRouteResponseSchema, {
    ...(way && explainWay(catalogue, way, facts)),
    ...{ facts, routes, notes, catalogueVersion: catalogue.version },
  });
}

function sentCard(method: RequestedMethod, bins: BinTable): CardData | undefined {
  if (method.by !== 'card' || method.card.source !== 'sent') return undefined;
  const { input } = method.card;
  return cardData(input, bins(input.number));
}

function notesOn(method: RequestedMethod, { paymentMethod }: CreatePaymentRequest): string[] {
  if (method.by === 'card') return method.card.source === 'sent' ? [] : [CARD_NOT_READ];
  if (method.by !== 'wallet' || !paymentMethod?.vaultedToken) return [];
  return [method.enrolled ? ONE_CONNECTION : WALLET_NOT_READ];
}

const CARD_NOT_READ =
  'The card behind the payment_method token was not looked up, so card_brand, iin, issuer_country and issuer_type are ' +
  'unknown here. The payment itself knows them, and may therefore take another route.';
const ONE_CONNECTION =
  'Only the connection that enrolled the wallet behind payment_method.vaulted_token can charge it.';
const WALLET_NOT_READ = `${ONE_CONNECTION} The wallet was not looked up, so every target of the route is listed here.`;

/** Lists the routes up to the chosen one, each with the reason why the payment does not take it. */
function routesUntil(way: Way | undefined, all: readonly ReadyRoute[], facts: RoutingFacts) {
  const end = way ? all.findIndex(({ route }) => route === way.route) + 1 : all.length;
  return all.slice(0, end).map(({ route, condition }) => {
    const isChosen = route === way?.route;
    const whyNot = isChosen ? '' : (condition?.whyNot(facts) ?? '');
    return { id: route.id, name: route.name, taken: isChosen, whyNot };
  });
}

function explainWay({ signals, health }: ExplainedCatalogue, way: Way, facts: RoutingFacts) {
  const { route, plan, targets, smart, passedOver, lacks, maxAttempts } = way;
  const weights = new Map(plan.targets.map(({ connection, weight }) => [connection.id, weight]));
  return {
    targets: targets.map((connection) => ({
      connection: describeConnection(connection, signals, health),
      ...(plan.choice === Choice.SPLIT && { weight: weights.get(connection.id) ?? 0 }),
      ...(plan.choice === Choice.SUCCESS_RATE && {
        approvalRate: signals.approvalRate(connection.id, facts),
      }),
    })),
    passedOver: passedOver.map((connection) => ({
      connection: describeConnection(connection, signals, health),
      lacks: lacks(connection).map(describeLack),
    })),
    choice: CHOICES[plan.choice],
    maxAttempts,
    softDeclines: plan.softDeclines,
    smartRouting: smart,
    monitors: plan.monitored,
    accountOverride: route.accounts.some(({ accountIds }) => accountIds.includes(facts.accountId)),
  };
}

const CHOICES = {
  [Choice.CHOICE_UNSPECIFIED]: ExplainRouteResponse_Choice.PRIORITY,
  [Choice.PRIORITY]: ExplainRouteResponse_Choice.PRIORITY,
  [Choice.SPLIT]: ExplainRouteResponse_Choice.SPLIT,
  [Choice.SUCCESS_RATE]: ExplainRouteResponse_Choice.SUCCESS_RATE,
} as const;

/** Describes a connection to operators, omitting its settings and secrets. */
export function describeConnection(
  definition: ConnectionConfig,
  signals: Signals,
  health: CircuitStates,
): Connection {
  const { id, name, providerId, connector, retired, accountIds } = definition;
  const known = health.get(id);
  const circuit = known ? Connection_Circuit[known.state()] : Connection_Circuit.UNGUARDED;
  return create(ConnectionSchema, {
    id,
    name,
    providerId,
    connector,
    circuit,
    available: signals.isAvailable(id),
    retired,
    accountIds,
  });
}
