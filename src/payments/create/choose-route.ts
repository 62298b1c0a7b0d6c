import type { ConnectionConfig } from '#gen/payments/config/catalogue_pb.js';
import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';
import type { ChosenRoute, Router } from '#src/routing/router.ts';
import { fieldRefusal } from '#src/service-error.ts';
import { type Capable, type Lack, lacksAt, notOffered } from './connection-lacks.ts';
import type { ChosenMethod } from './payment-method.ts';

/**
 * Chooses the way of a payment that must have one.
 *
 * @param seed see drawSeed.
 * @param enrolledAt the connection where a wallet was enrolled; no other connection can charge it.
 * @throws ServiceError PAYMENT_METHOD_NOT_AVAILABLE if no route accepts the payment, OPERATION_NOT_SUPPORTED if no
 * target of the route can handle it.
 */
export function chooseRoute(
  routed: Routed,
  method: ChosenMethod,
  facts: RoutingFacts,
  seed: string,
  enrolledAt?: string,
): RouteWithTargets {
  const way = findWay(routed, method, facts, seed, enrolledAt);
  const [first, ...others] = way?.targets ?? [];
  if (way && first) return { ...way, targets: [first, ...others] };
  if (way) throw notOffered(way.passedOver.flatMap(way.lacks));
  const message = 'is not accepted by any route for this payment';
  throw fieldRefusal('PAYMENT_METHOD_NOT_AVAILABLE', 'payment_method.type', 'NOT_ALLOWED', message);
}

/** Finds the route of a payment, and those of its targets that can handle the payment; undefined if no route accepts it. */
export function findWay(
  { router, connections }: Routed,
  method: ChosenMethod,
  facts: RoutingFacts,
  seed: string,
  enrolledAt: string | undefined,
): Way | undefined {
  const lacks = lacksAt(connections, method, enrolledAt);
  const chosen = router.choose(facts, seed, (connection) => lacks(connection).length === 0);
  return chosen && { ...chosen, lacks };
}

/** A chosen route, and what each of its targets lacks for the payment. */
export type Way = ChosenRoute & { readonly lacks: (connection: ConnectionConfig) => Lack[] };

/** A chosen route with at least one target that can handle the payment. */
export type RouteWithTargets = Way & {
  readonly targets: readonly [ConnectionConfig, ...ConnectionConfig[]];
};

/** The router, and the connections on its routes. */
export type Routed = { readonly router: Router; readonly connections: Capable };
