import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { Choice, type ConnectionConfig } from '#gen/payments/config/catalogue_pb.js';
import {
  type Connection,
  Connection_Circuit,
  ConnectionSchema,
  type ExplainRouteResponse,
  ExplainRouteResponse_Choice,
  ExplainRouteResponseSchema,
} from '#gen/payments/v1/operator_service_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';
import type { ConnectionHealth } from '#src/connectors/circuit-breaker.ts';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import { drawSeed, type Signals } from '#src/routing/order-targets.ts';
import { chooseTargets, type ReadyRoute } from '#src/routing/router.ts';
import { cardData } from '../create/card.ts';
import { describeLack, lacksAt } from '../create/connection-lacks.ts';
import type { LiveCatalogue } from '../create/live-catalogue.ts';
import { usesProviderToken } from '../create/payment-attempt.ts';
import { type ChosenMethod, chooseMethod } from '../create/payment-method.ts';
import { routingFacts } from '../create/routing-facts.ts';

/** The parts of a catalogue that an explanation uses. */
export type ExplainedCatalogue = Pick<LiveCatalogue, 'types' | 'router' | 'bins'> & {
  /** Open connections by id. A connection that is not open counts as able to handle every payment. */
  readonly connections: ReadonlyMap<string, Pick<ProviderConnection, 'capabilities'>>;
  readonly signals: Signals;
  readonly health: CircuitStates;
};

/** Circuits by connection id. A connection without a circuit breaker has no entry. */
export type CircuitStates = ReadonlyMap<string, Pick<ConnectionHealth, 'state'>>;

/**
 * Explains which route a payment would take, and why. Pure: it sends, writes, reads and learns nothing.
 *
 * @param request must satisfy the rules of its .proto and checkRequest.
 * @param idempotencyKey the idempotency key with which the payment would be made.
 * @throws ServiceError as for a payment, if the catalogue does not offer the method or the detail does not fit it.
 */
export function explainRoute(
  catalogue: ExplainedCatalogue,
  request: CreatePaymentRequest,
  idempotencyKey: string,
  time: Timestamp,
): ExplainRouteResponse {
  const method = chooseMethod(request, catalogue.types);
  const card = method.kind === 'card' ? cardData(method.card, catalogue.bins(method.card.number)) : undefined;
  const facts = routingFacts(request, method, card, time);
  const { routes, taken: chosen } = findRoute(catalogue.router.routes, facts);
  const way =
    chosen && explainWay(catalogue, chosen, facts, drawSeed(facts.accountId, idempotencyKey), method);
  const notes = method.kind === 'vaulted_card' || method.kind === 'token_card' ? [CARD_NOT_READ] : [];
  if (usesProviderToken(method)) notes.push(ONE_PROVIDER);
  return create(ExplainRouteResponseSchema, { ...way, facts, routes, notes });
}

const CARD_NOT_READ =
  'The card behind the payment_method token was not looked up, so card_brand, iin, issuer_country and issuer_type are ' +
  'unknown here. The payment itself knows them, and may therefore take another route.';
const ONE_PROVIDER =
  "Only the provider of the route's first target knows the method behind payment_method.vaulted_token.";

function findRoute(all: readonly ReadyRoute[], facts: RoutingFacts) {
  const routes: { id: number; name: string; taken: boolean; whyNot: string }[] = [];
  for (const ready of all) {
    const { id, name } = ready.route;
    const whyNot = ready.condition?.whyNot(facts);
    routes.push({ id, name, taken: whyNot === undefined, whyNot: whyNot ?? '' });
    if (whyNot === undefined) return { routes, taken: ready };
  }
  return { routes, taken: undefined };
}

function explainWay(
  { signals, health, connections }: ExplainedCatalogue,
  ready: ReadyRoute,
  facts: RoutingFacts,
  seed: string,
  method: ChosenMethod,
) {
  const isPinned = usesProviderToken(method);
  const lacks = lacksAt(connections, method);
  const canTake = (connection: ConnectionConfig) => lacks(connection).length === 0;
  const chosen = chooseTargets(ready, facts, seed, signals, { isPinned, canTake });
  const { route, targets, smart, passedOver } = chosen;
  const plan = ready.planOf(facts.accountId, isPinned);
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
    maxAttempts: chosen.maxAttempts,
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
  const { id, name, providerId, connector } = definition;
  const known = health.get(id);
  const circuit = known ? Connection_Circuit[known.state()] : Connection_Circuit.UNGUARDED;
  return create(ConnectionSchema, {
    id,
    name,
    providerId,
    connector,
    circuit,
    available: signals.isAvailable(id),
  });
}
