import type {
  AccountTargets,
  Catalogue,
  ConnectionConfig,
  PaymentMethodType,
  Route,
} from '#gen/payments/v1/catalogue_pb.js';
import type { Capabilities } from '#src/connectors/port/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { offersType } from '#src/payments/method/features.ts';
import { isLocal } from '#src/payments/method/local-method.ts';
import type { FieldCode } from '#src/service-error.ts';
import type { CatalogueFault } from './check-catalogue.ts';
import {
  createJudge,
  findReach,
  findUnrouted,
  type Judge,
  type OfferedWay,
  offeredWays,
  type Place,
  type Reach,
} from './route-reach.ts';

/** Facts that a catalogue alone does not say. */
export type Surroundings = {
  /** The connections that could be opened, by id. Of others, nothing is presumed. */
  readonly connections: ReadonlyMap<
    string,
    Pick<ProviderConnection, 'capabilities' | 'environment' | 'readNotification'>
  >;
  /** The connections were opened with all their secrets, so a connection that reads no notifications gets none. */
  readonly hasAllSecrets: boolean;
  /** The sandbox is mounted, whose accounts have published keys. */
  readonly sandbox: boolean;
};

/**
 * Finds what is allowed in a valid catalogue, and is probably a mistake. Conditions are judged by type, category, workflow,
 * country and currency; if other facts decide, a condition counts as one that may hold, and no doubt follows from it.
 */
export function findDoubts(catalogue: Catalogue, around: Surroundings): CatalogueFault[] {
  const { paymentMethodTypes: types, routes } = catalogue;
  const ofConnections = [
    ...findRetired(catalogue),
    ...(around.sandbox ? findLive(catalogue, around) : []),
    ...(around.hasAllSecrets ? findUnnotified(catalogue, around) : []),
  ];
  if (types.length === 0) return ofConnections;
  if (routes.length === 0) {
    return [...ofConnections, doubt('routes', 'are missing, so every payment is refused')];
  }
  const judge = createJudge();
  const configs = new Map(catalogue.connections.map((one) => [one.id, one]));
  const ways = offeredWays(types);
  const reach = findReach(routes, ways, judge);
  if (judge.isSpent()) return ofConnections;
  return [
    ...ofConnections,
    ...types.flatMap((type, i) => describeUnrouted(type, i, reach, judge)),
    ...routes.flatMap((route, i) => {
      const own = reach.reaching[i] ?? [];
      if (own.length === 0) return [unreached(routes, i, reach, judge)];
      return findUnable(route, i, {
        ...around,
        configs,
        ways: own,
        holds: (facts) => judge.holds(route, facts),
      });
    }),
  ];
}

/** Finds the connections that get no notifications. */
function findUnnotified({ connections }: Catalogue, opened: Surroundings): CatalogueFault[] {
  return connections.flatMap(({ id, retired }, i) => {
    const connection = opened.connections.get(id);
    if (retired || !connection || connection.readNotification) return [];
    const message = `${id} gets no notifications, since nothing that verifies them is configured; changes at the provider are found by look-ups only`;
    return [doubt(`connections[${i}]`, message, 'REQUIRED')];
  });
}

function doubt(field: string, message: string, code: FieldCode = 'NOT_ALLOWED'): CatalogueFault {
  return { field, code, message, severity: 'WARNING' };
}

/** Finds the routes whose targets are all retired. */
function findRetired({ connections, routes }: Catalogue): CatalogueFault[] {
  const retired = new Set(connections.flatMap(({ id, retired }) => (retired ? [id] : [])));
  return routes.flatMap(({ id, targets }, i) => {
    const isDead = targets.length > 0 && targets.every(({ connection }) => retired.has(connection));
    return isDead
      ? [doubt(`routes[${i}].targets`, `of route ${id} are all retired, so it refuses its payments`)]
      : [];
  });
}

/** Finds the connections that move real money beside the sandbox. */
function findLive({ connections }: Catalogue, opened: Surroundings): CatalogueFault[] {
  return connections.flatMap(({ id, retired }, i) => {
    if (retired || opened.connections.get(id)?.environment !== 'LIVE') return [];
    const message = `${id} moves real money, and SANDBOX is on: anyone may pay with the sandbox’s published keys; set SANDBOX=off, or use a test account`;
    return [doubt(`connections[${i}]`, message)];
  });
}

/** Number of examples in a message. */
const MAX_EXAMPLES = 3;

/** Lists the first names and counts the others: `a, b, c and 2 more`. */
function examplesOf(names: readonly string[]): string {
  const more = names.length - MAX_EXAMPLES;
  return `${names.slice(0, MAX_EXAMPLES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Describes the payments of a type that no route takes: one doubt for the type. */
function describeUnrouted(
  type: PaymentMethodType,
  at: number,
  { candidates }: Reach,
  judge: Judge,
): CatalogueFault[] {
  const unrouted = findUnrouted(type, candidates.get(type) ?? [], judge);
  if (unrouted.length === 0) return [];
  const whole = unrouted.filter(({ currency }) => currency === undefined).length;
  const field = `payment_method_types[${at}]`;
  if (whole === Math.max(1, type.countries.length)) {
    return [
      doubt(
        field,
        `${type.type} is accepted by no route, so its payments are refused; add a route, or remove it`,
      ),
    ];
  }
  const places = examplesOf(unrouted.map(inPlace));
  const message = `${type.type} is offered ${places}, where no route accepts it, so such payments are refused; add a route, or list fewer countries and currencies`;
  return [doubt(field, message)];
}

function inPlace({ country, currency }: Place): string {
  const words = [country && `in ${country}`, currency && `with ${currency}`];
  return words.filter(Boolean).join(' ');
}

/** Describes a route that no payment reaches. */
function unreached(
  routes: readonly Route[],
  at: number,
  { takenBy }: Reach,
  { holds }: Judge,
): CatalogueFault {
  const route = routes[at] as Route;
  const takers = [...takenBy].flatMap(([{ facts }, i]) =>
    i < at && holds(route, facts) !== false ? [i] : [],
  );
  const earlier = [...new Set(takers)].sort((a, b) => a - b).map((i) => `route ${routes[i]?.id}`);
  const names = examplesOf(earlier);
  const message =
    (earlier.length === 0 &&
      'accepts no payment method that the catalogue offers; change its condition, or remove it') ||
    (earlier.length === 1 &&
      `is never reached, since ${names} accepts every payment that it accepts; move it before that route, or remove it`) ||
    `is never reached, since ${names} accept every payment that it accepts; move it before them, or remove it`;
  return doubt(`routes[${at}]`, `route ${routes[at]?.id} ${message}`);
}

type OnRoute = Surroundings & {
  readonly configs: ReadonlyMap<string, ConnectionConfig>;
  /** The ways whose payments may get to the route. */
  readonly ways: readonly OfferedWay[];
  /** As in Judge, of the route. */
  readonly holds: (facts: OfferedWay['facts']) => boolean | undefined;
};

/** Finds the targets of a route that can take none of its payments. */
function findUnable({ targets, accounts }: Route, at: number, around: OnRoute): CatalogueFault[] {
  const elsewhere = new Set(accounts.flatMap(({ accountIds }) => accountIds));
  const find = (
    some: Pick<AccountTargets, 'targets'>,
    path: string,
    isHere: (accountId: string) => boolean,
  ) =>
    some.targets.flatMap(({ connection }, i) => {
      const config = around.configs.get(connection);
      const why = config && !config.retired ? whyUnable(config, isHere, around) : undefined;
      return why === undefined ? [] : [doubt(`${path}.targets[${i}].connection`, why, 'NOT_SUPPORTED')];
    });
  return [
    ...find({ targets }, `routes[${at}]`, (id) => !elsewhere.has(id)),
    ...accounts.flatMap((override, i) =>
      find(override, `routes[${at}].accounts[${i}]`, (id) => override.accountIds.includes(id)),
    ),
  ];
}

/** @param isHere returns true for an account whose payments may go to the target. */
function whyUnable(
  { id, accountIds }: ConnectionConfig,
  isHere: (accountId: string) => boolean,
  { connections, ways, holds }: OnRoute,
): string | undefined {
  if (accountIds.length > 0 && !accountIds.some(isHere)) {
    return `${id} is reserved for other accounts than those whose payments come here; remove the target, or change the connection’s account_ids`;
  }
  const can = connections.get(id)?.capabilities;
  if (!can || ways.some((way) => isAble(way, can, holds))) return undefined;
  const types = [...new Set(ways.map(({ type }) => type.type))];
  return `${id} supports nothing that the route accepts (${examplesOf(types)}); remove the target, or change the condition`;
}

/** Returns true if a connection may take payments that a route may accept. */
function isAble({ type, workflow, facts }: OfferedWay, can: Capabilities, holds: OnRoute['holds']): boolean {
  if (!offersType(type, workflow, can)) return false;
  const local = can.localMethods[type.type];
  if (!local || !isLocal(type.category)) return true;
  const both = (offered: readonly string[], own: readonly string[]) =>
    own.filter((one) => offered.length === 0 || offered.includes(one));
  return both(type.countries, local.countries).some((country) =>
    both(type.currencies, local.currencies).some(
      (currency) => holds({ ...facts, country, currency }) !== false,
    ),
  );
}
