import {
  type AccountTargets,
  type Catalogue,
  Choice,
  type ConnectionConfig,
  type Route,
} from '#gen/payments/v1/catalogue_pb.js';
import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';
import { type Condition, compileCondition } from './condition.ts';
import type { Domains } from './condition-check.ts';
import { type FactValues, factValues } from './condition-facts.ts';
import { orderTargets, type Signals, type TargetPlan } from './order-targets.ts';

/** The route of a payment, with its targets. */
export type ChosenRoute = {
  readonly route: Route;
  /** The route's plan for the account's payments, with all targets. */
  readonly plan: RoutePlan;
  /** Connections that the payment may be sent to, first choice first; empty if every target was skipped. */
  readonly targets: readonly ConnectionConfig[];
  /** The route's other targets, which lack a feature that the payment needs. */
  readonly passedOver: readonly ConnectionConfig[];
  /** Maximum number of attempts, including the first. */
  readonly maxAttempts: number;
  /** true: the payment also fails over after a soft decline. */
  readonly softDeclines: boolean;
  /** true if weights or health determined the choice. */
  readonly smart: boolean;
  /** true if a circuit breaker guards the targets. */
  readonly monitored: boolean;
};

/** A route that is ready for use. */
export type ReadyRoute = {
  readonly route: Route;
  /** undefined if the route matches every payment. */
  readonly condition: Condition | undefined;
  /** Returns the plan for an account's payments. */
  readonly planOf: (accountId: string) => RoutePlan;
};

/** A route's plan for its payments. */
export type RoutePlan = TargetPlan & Pick<ChosenRoute, 'maxAttempts' | 'softDeclines' | 'monitored'>;

/** The routes in order, and the choice among them. */
export type Router = {
  readonly routes: readonly ReadyRoute[];
  /**
   * Returns the first route whose condition holds; undefined if none does.
   *
   * @param seed see drawSeed.
   * @param canTake returns true if a connection can handle the payment; others are skipped.
   */
  choose(facts: RoutingFacts, seed: string, canTake?: CanTake): ChosenRoute | undefined;
};

/** Limits the choice among a route's targets: returns true if a connection can handle the payment. */
export type CanTake = (connection: ConnectionConfig) => boolean;

/** Prepares the routes of a valid catalogue, in which conditions compile and targets exist. */
export function createRouter(
  catalogue: Catalogue,
  signals: Signals,
  conditionFailed: (routeId: number, error: Error) => void = () => {},
): Router {
  const connections = new Map(catalogue.connections.map((connection) => [connection.id, connection]));
  const routes = catalogue.routes.map((route) => ({
    route,
    condition: conditionOf(route),
    planOf: plansOf(route, connections),
  }));

  function takes({ route, condition }: ReadyRoute, values: FactValues): boolean {
    const outcome = condition ? condition.evaluate(values) : true;
    if (typeof outcome === 'boolean') return outcome;
    conditionFailed(route.id, outcome);
    return false;
  }

  return {
    routes,
    choose(facts, seed, canTake = () => true) {
      const values = factValues(facts);
      const chosen = routes.find((route) => takes(route, values));
      if (!chosen) return undefined;
      return targetsOf(chosen, { facts, seed, signals, canTake });
    },
  };
}

/** Facts that determine the order of a route's targets for one payment. */
type Choosing = {
  readonly facts: RoutingFacts;
  /** See drawSeed. */
  readonly seed: string;
  readonly signals: Signals;
  readonly canTake: CanTake;
};

/** Orders the targets of a chosen route that can handle the payment. */
function targetsOf({ route, planOf }: ReadyRoute, { facts, seed, signals, canTake }: Choosing): ChosenRoute {
  const plan = planOf(facts.accountId);
  const able = plan.targets.filter(({ connection }) => canTake(connection));
  const others = plan.targets.filter((target) => !able.includes(target));
  const { targets, smart } = orderTargets({ ...plan, targets: able }, facts, seed, signals);
  const { maxAttempts, softDeclines, monitored } = plan;
  return {
    ...{ route, plan, targets, passedOver: others.map(({ connection }) => connection) },
    ...{ maxAttempts: Math.min(maxAttempts, targets.length), softDeclines, smart, monitored },
  };
}

// Conditions compiled by the check of a catalogue, for reuse by the catalogue's router.
const compiled = new WeakMap<Route, Condition>();

/**
 * Returns a route's condition, compiled on the first call; undefined if the route matches every payment.
 *
 * @throws ConditionError.
 */
export function conditionOf(route: Route, domains?: Domains): Condition | undefined {
  if (!route.condition) return undefined;
  const condition = compiled.get(route) ?? compileCondition(route.condition, domains);
  compiled.set(route, condition);
  return condition;
}

function plansOf(route: Route, connections: ReadonlyMap<string, ConnectionConfig>): ReadyRoute['planOf'] {
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
  connections: ReadonlyMap<string, ConnectionConfig>,
): RoutePlan {
  const found = targets.map((target) => {
    const connection = connections.get(target.connection);
    if (!connection) throw new Error(`the catalogue has no connection ${target.connection}`);
    return { connection, weight: target.weight ?? 1 };
  });
  return {
    targets: found,
    choice: choice ?? Choice.PRIORITY,
    maxAttempts: Math.min(failover?.maxAttempts ?? found.length, found.length),
    softDeclines: failover?.softDeclines ?? false,
    monitored: found.some(({ connection }) => !connection.circuitBreaker?.off),
  };
}
