import { create } from '@bufbuild/protobuf';
import {
  type AccountTargets,
  type Catalogue,
  CatalogueSchema,
  Choice,
  FailoverSchema,
  type Route,
} from '#gen/payments/config/catalogue_pb.js';
import type { SimulatedDay } from '#gen/payments/config/simulation_pb.js';
import { SimulationError } from './read-day.ts';
import { SIMULATED } from './simulated-connector.ts';

/** A routing strategy to compare with others. */
export type Strategy = {
  /** Name of the rule that chooses the first target. */
  readonly choice: string;
  /** true: soft declines fail over to the next target; undefined leaves that to the catalogue's routes. */
  readonly failover: boolean | undefined;
  /** The catalogue, with simulated connections. */
  readonly catalogue: Catalogue;
};

/**
 * Returns the strategies to compare: the catalogue as configured, if there is one, and each choice over its routes and
 * targets, with and without failover after soft declines.
 *
 * @param configured if undefined, a single route leads to the scenario's connections in their order.
 * @throws SimulationError if the scenario names a connection that the catalogue does not have.
 */
export function strategiesOf(day: SimulatedDay, configured: Catalogue | undefined): Strategy[] {
  const catalogue = simulated(configured ?? plainCatalogue(day), day);
  const compared = CHOICES.flatMap(([choice, name]) =>
    [false, true].map((failover) => ({
      choice: name,
      failover,
      catalogue: withChoice(catalogue, choice, failover),
    })),
  );
  return configured ? [{ choice: 'as configured', failover: undefined, catalogue }, ...compared] : compared;
}

const CHOICES = [
  [Choice.PRIORITY, 'priority'],
  [Choice.SPLIT, 'split'],
  [Choice.SUCCESS_RATE, 'success rate'],
] as const;

function plainCatalogue(day: SimulatedDay): Catalogue {
  return create(CatalogueSchema, {
    connections: day.connections.map(({ id }) => ({ id })),
    routes: [{ id: 1, targets: day.connections.map(({ id }) => ({ connection: id })) }],
  });
}

/** Returns the catalogue with simulated connections. */
function simulated(catalogue: Catalogue, day: SimulatedDay): Catalogue {
  const known = new Set(catalogue.connections.map(({ id }) => id));
  for (const [i, { id }] of day.connections.entries()) {
    if (known.has(id)) continue;
    throw new SimulationError(
      `the scenario's connections[${i}].id is ${id}, but the catalogue has only ${[...known].join(', ')}`,
    );
  }
  const connections = catalogue.connections.map((connection) => ({
    ...connection,
    connector: SIMULATED,
    settings: { connection: connection.id },
    secretsFromEnvironment: {},
  }));
  return create(CatalogueSchema, { ...catalogue, connections });
}

function withChoice(catalogue: Catalogue, choice: Choice, failover: boolean): Catalogue {
  const changed = <T extends Route | AccountTargets>(route: T): T => ({
    ...route,
    choice,
    failover: create(FailoverSchema, { ...route.failover, softDeclines: failover }),
  });
  const routes = catalogue.routes.map((route) => ({
    ...changed(route),
    accounts: route.accounts.map(changed),
  }));
  return create(CatalogueSchema, { ...catalogue, routes });
}
