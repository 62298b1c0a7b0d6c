import { hash } from 'node:crypto';
import { Choice, type ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';

/** The connections that a route may send a payment to, and the rule that chooses the first. */
export type TargetPlan = {
  readonly targets: readonly { readonly connection: ConnectionConfig; readonly weight: number }[];
  readonly choice: Choice;
};

/** Current state of the connections. */
export type Signals = {
  /** Returns false while a connection's circuit is open or all its slots are taken: a payment would not be sent. */
  isAvailable(connectionId: string): boolean;
  /** Returns the recent approval rate, from 0 to 1, for payments like this one. */
  approvalRate(connectionId: string, facts: RoutingFacts): number;
};

/** The targets of one payment, first choice first. */
export type OrderedTargets = {
  readonly targets: readonly ConnectionConfig[];
  /** true if weights or health determined the order. */
  readonly smart: boolean;
};

/** Share of payments that SUCCESS_RATE sends to random targets, so that a target's recovery is noticed. */
const EXPLORED_SHARE = 0.05;

/** Returns the seed of a payment's draws, which is the same for all attempts under its key. */
export function drawSeed(accountId: string, idempotencyKey: string): string {
  return `${accountId}\n${idempotencyKey}`;
}

/**
 * Orders a payment's targets for its attempts. Targets that are not available come last, whatever the rule.
 *
 * @param seed see drawSeed; the only source of randomness.
 */
export function orderTargets(
  plan: TargetPlan,
  facts: RoutingFacts,
  seed: string,
  signals: Signals,
): OrderedTargets {
  const chosen = byChoice(plan, facts, seed, signals).map(({ connection }) => connection);
  const isUp = chosen.map(({ id }) => signals.isAvailable(id));
  const targets = [...chosen.filter((_, i) => isUp[i]), ...chosen.filter((_, i) => !isUp[i])];
  const isPriority = plan.choice === Choice.PRIORITY || plan.choice === Choice.CHOICE_UNSPECIFIED;
  return { targets, smart: !isPriority || targets.some((target, i) => target !== chosen[i]) };
}

function byChoice(
  { targets, choice }: TargetPlan,
  facts: RoutingFacts,
  seed: string,
  signals: Signals,
): TargetPlan['targets'] {
  switch (choice) {
    case Choice.SPLIT:
      return sortedBy(targets, ({ connection, weight }) => rank(draw(seed, connection.id), weight));
    case Choice.SUCCESS_RATE:
      if (draw(seed, '') < EXPLORED_SHARE) {
        return sortedBy(targets, ({ connection }) => rank(draw(seed, connection.id), 1));
      }
      return sortedBy(targets, ({ connection }) => -signals.approvalRate(connection.id, facts));
    default:
      return targets;
  }
}

function sortedBy<T>(items: readonly T[], key: (item: T) => number): T[] {
  return items
    .map((item) => ({ item, at: key(item) }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/**
 * Returns a target's rank in a weighted order. With uniform draws, each target comes first in proportion to its weight,
 * and likewise among the rest (Efraimidis and Spirakis, 2006). Adding or removing a target moves no payment between the
 * others. A weight of 0 comes last.
 */
function rank(drawn: number, weight: number): number {
  return weight === 0 ? Number.MAX_VALUE : -Math.log(drawn) / weight;
}

/** Returns a number between 0 and 1, exclusive, uniformly distributed over seeds. */
function draw(seed: string, name: string): number {
  const drawn = Number.parseInt(hash('sha256', `${name}\n${seed}`, 'hex').slice(0, 12), 16);
  return (drawn + 0.5) / 2 ** 48;
}
