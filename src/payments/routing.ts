import type { AccountTargets, Catalogue, Connection, Route } from '../../gen/payments/config/catalogue_pb.js';
import type { RoutingFacts } from '../../gen/payments/v1/routing_facts_pb.js';
import { type Condition, compileCondition } from './condition.ts';
import { orderTargets, type Signals, type TargetPlan } from './order-targets.ts';

/** The way of one payment. */
export type ChosenRoute = {
  readonly route: Route;
  /** Where it may be sent, the first choice first; never empty. */
  readonly targets: readonly Connection[];
  /** Attempts in all, the first included. */
  readonly maxAttempts: number;
  /** Goes on after a soft decline, too. */
  readonly softDeclines: boolean;
  /** Whether weights or health made the choice. */
  readonly smart: boolean;
  /** Whether a circuit breaker guards the targets. */
  readonly monitored: boolean;
};

/** A route made ready for use. */
export type ReadyRoute = {
  readonly route: Route;
  /** undefined takes every payment. */
  readonly condition: Condition | undefined;
  /** Where payments of an account go. */
  readonly planOf: (accountId: string) => RoutePlan;
};

/** What a route does with the payments that it takes. */
export type RoutePlan = TargetPlan & Pick<ChosenRoute, 'maxAttempts' | 'softDeclines' | 'monitored'>;

/** The routes in order, and the choice among them. */
export type Router = {
  readonly routes: readonly ReadyRoute[];
  /**
   * The first route whose condition holds; undefined when none does.
   *
   * @param seed see lotSeed.
   */
  choose(facts: RoutingFacts, seed: string): ChosenRoute | undefined;
};

/** Makes the catalogue's routes ready. The catalogue is valid: conditions compile, and targets are in it. */
export function createRouter(
  catalogue: Catalogue,
  signals: Signals,
  conditionFailed: (routeId: number, error: unknown) => void = () => {},
): Router {
  const connections = new Map(catalogue.connections.map((connection) => [connection.id, connection]));
  const routes = catalogue.routes.map((route) => ({
    route,
    condition: route.condition
      ? compileCondition(route.condition, { failed: (error) => conditionFailed(route.id, error) })
      : undefined,
    planOf: plansOf(route, connections),
  }));
  return {
    routes,
    choose(facts, seed) {
      const taken = routes.find(({ condition }) => !condition || condition.matches(facts));
      return taken && chooseTargets(taken, facts, seed, signals);
    },
  };
}

function chooseTargets(
  { route, planOf }: ReadyRoute,
  facts: RoutingFacts,
  seed: string,
  signals: Signals,
): ChosenRoute {
  const plan = planOf(facts.accountId);
  const { connections, smart } = orderTargets(plan, facts, seed, signals);
  const { maxAttempts, softDeclines, monitored } = plan;
  return { route, targets: connections, maxAttempts, softDeclines, smart, monitored };
}

function plansOf(route: Route, connections: ReadonlyMap<string, Connection>): ReadyRoute['planOf'] {
  const usual = planOf(route, connections);
  const byAccount = new Map(
    route.accounts.flatMap((override) => {
      const plan = planOf(override, connections);
      return override.accountIds.map((accountId) => [accountId, plan] as const);
    }),
  );
  return (accountId) => byAccount.get(accountId) ?? usual;
}

function planOf(
  { targets, choice, failover }: Route | AccountTargets,
  connections: ReadonlyMap<string, Connection>,
): RoutePlan {
  const found = targets.map((target) => {
    const connection = connections.get(target.connection);
    if (!connection) throw new Error(`the catalogue has no connection ${target.connection}`);
    return { connection, weight: target.weight ?? 1 };
  });
  return {
    targets: found,
    choice,
    maxAttempts: Math.min(failover?.maxAttempts ?? found.length, found.length),
    softDeclines: failover?.softDeclines ?? false,
    monitored: found.some(({ connection }) => !connection.circuitBreaker?.off),
  };
}
