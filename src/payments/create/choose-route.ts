import type { ConnectionConfig } from '#gen/payments/config/catalogue_pb.js';
import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { ChosenRoute, Router } from '#src/routing/router.ts';
import { fieldRefusal } from '#src/service-error.ts';
import { lacksAt, notOffered } from './connection-lacks.ts';
import { usesProviderToken } from './payment-attempt.ts';
import type { ChosenMethod } from './payment-method.ts';

/**
 * Chooses the route and those of its targets that can handle the payment.
 *
 * @param seed see drawSeed.
 * @param enrolledAt the connection where a wallet was enrolled; no other connection can charge it.
 * @throws ServiceError PAYMENT_METHOD_NOT_AVAILABLE if no route accepts the payment, OPERATION_NOT_SUPPORTED if no
 * target of the route can handle it.
 */
export function chooseRoute(
  { router, connections }: Routed,
  method: ChosenMethod,
  facts: RoutingFacts,
  seed: string,
  enrolledAt?: string,
): RouteWithTargets {
  const lacks = lacksAt(connections, method);
  const chosen = router.choose(facts, seed, {
    isPinned: usesProviderToken(method) && enrolledAt === undefined,
    canTake: (connection) =>
      lacks(connection).length === 0 && (enrolledAt ?? connection.id) === connection.id,
  });
  const [first, ...others] = chosen?.targets ?? [];
  if (chosen && first) return { ...chosen, targets: [first, ...others] };
  if (chosen && enrolledAt !== undefined) {
    const message = "was enrolled at a connection outside this payment's route; nothing was sent";
    throw fieldRefusal('OPERATION_NOT_SUPPORTED', 'payment_method.vaulted_token', 'NOT_SUPPORTED', message);
  }
  if (chosen) throw notOffered(chosen.passedOver.flatMap(lacks));
  const message = 'is not accepted by any route for this payment';
  throw fieldRefusal('PAYMENT_METHOD_NOT_AVAILABLE', 'payment_method.type', 'NOT_ALLOWED', message);
}

/** A chosen route with at least one target that can handle the payment. */
export type RouteWithTargets = ChosenRoute & {
  readonly targets: readonly [ConnectionConfig, ...ConnectionConfig[]];
};

/** The router, and the connections on its routes. */
export type Routed = {
  readonly router: Router;
  /** The open connections, by id. */
  readonly connections: ReadonlyMap<string, ProviderConnection>;
};
