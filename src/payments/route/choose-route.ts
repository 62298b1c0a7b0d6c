import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';
import { isLocalMethod } from '#src/connectors/port/attempt.ts';
import {
  type Capable,
  type Lack,
  lacksAt,
  localNotOffered,
  notOffered,
} from '#src/payments/method/features.ts';
import type { RequestedMethod } from '#src/payments/method/payment-method.ts';
import type { ChosenRoute, Router } from '#src/routing/router.ts';
import { fieldRefusal } from '#src/service-error.ts';

/**
 * Chooses the way of a payment that must have one.
 *
 * @throws ServiceError PAYMENT_METHOD_NOT_AVAILABLE if no route accepts the payment, OPERATION_NOT_SUPPORTED if no
 * target of the route can handle it.
 */
export function chooseRoute(routed: Routed, payment: RoutedPayment): RouteWithTargets {
  const way = findWay(routed, payment);
  const [first, ...others] = way?.targets ?? [];
  if (way && first) return { ...way, targets: [first, ...others] };
  if (way && isLocalMethod(payment.method)) throw localNotOffered(way.passedOver.map(way.lacks));
  if (way) throw notOffered(way.passedOver.flatMap(way.lacks));
  const message = 'is not accepted by any route for this payment';
  throw fieldRefusal('PAYMENT_METHOD_NOT_AVAILABLE', 'payment_method.type', 'NOT_ALLOWED', message);
}

/**
 * Finds the route of a payment, and those of its targets that can handle the payment: for payments, explanations and
 * offers alike. undefined if no route accepts the payment.
 */
export function findWay(
  { router, connections }: Routed,
  { request, method, facts, seed }: RoutedPayment,
): Way | undefined {
  const lacks = lacksAt(connections, method, request, facts.time ? timestampMs(facts.time) : 0);
  const chosen = router.choose(facts, seed, (connection) => lacks(connection).length === 0);
  return chosen && { ...chosen, lacks };
}

/** A chosen route, and what each of its targets lacks for the payment. */
export type Way = ChosenRoute & { readonly lacks: (connection: ConnectionConfig) => Lack[] };

/** A chosen route with at least one target that can handle the payment. */
export type RouteWithTargets = Way & {
  readonly targets: readonly [ConnectionConfig, ...ConnectionConfig[]];
};

/** Facts about a payment that determine its way. */
export type RoutedPayment = {
  readonly request: CreatePaymentRequest;
  readonly method: RequestedMethod;
  readonly facts: RoutingFacts;
  /** See drawSeed. */
  readonly seed: string;
};

/** The router, and the connections on its routes. */
export type Routed = { readonly router: Router; readonly connections: Capable };
