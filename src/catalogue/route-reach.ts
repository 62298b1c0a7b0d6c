import type { PaymentMethodType, Route } from '#gen/payments/v1/catalogue_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { isLocal } from '#src/payments/method/local-method.ts';
import type { Condition } from '#src/routing/condition.ts';
import { knownFacts } from '#src/routing/condition-facts.ts';
import { conditionOf } from '#src/routing/router.ts';

/** Some facts of a payment, by their names. The others are unknown. */
export type SomeFacts = Readonly<Record<string, string>>;

/** A way in which payers pay: a type that the catalogue offers, with one of its workflows. */
export type OfferedWay = {
  readonly type: PaymentMethodType;
  readonly workflow: Payment_Workflow;
  /** The facts that every payment of this kind has. */
  readonly facts: SomeFacts;
};

/** Judges conditions by some facts of a payment. */
export type Judge = {
  /** Returns whether a route's condition holds for all payments with these facts; undefined if other facts decide. */
  holds(route: Route, facts: SomeFacts): boolean | undefined;
  /** Returns true if a route's condition uses a fact. */
  uses(route: Route, fact: string): boolean;
  /** Returns true after the last evaluation: every other condition is undecided. */
  isSpent(): boolean;
};

/** At most about a tenth of a second of work, during which payments wait. */
const MAX_EVALUATIONS = 5_000;

/** Creates a judge, whose work is limited. */
export function createJudge(maxEvaluations: number = MAX_EVALUATIONS): Judge {
  let left = maxEvaluations;
  const known = new Map<Route, Map<string, boolean | undefined>>();

  function evaluate(condition: Condition, facts: SomeFacts): boolean | undefined {
    if (left === 0) return undefined;
    left -= 1;
    const outcome = condition.evaluate(knownFacts(facts));
    return typeof outcome === 'boolean' ? outcome : undefined;
  }

  return {
    holds(route, facts) {
      const condition = conditionOf(route);
      if (!condition) return true;
      let key = '';
      for (const name of condition.facts) key += facts[name] === undefined ? '' : `${name} ${facts[name]} `;
      if (key === '' && condition.facts.size > 0) return undefined;
      const outcomes = known.get(route) ?? new Map<string, boolean | undefined>();
      if (outcomes.size === 0) known.set(route, outcomes);
      if (!outcomes.has(key)) outcomes.set(key, evaluate(condition, facts));
      return outcomes.get(key);
    },
    uses: (route, fact) => conditionOf(route)?.facts.has(fact) ?? false,
    isSpent: () => left === 0,
  };
}

/** Lists the ways in which payers can pay. */
export function offeredWays(types: readonly PaymentMethodType[]): OfferedWay[] {
  return types.flatMap((type) =>
    type.workflows.map((workflow) => ({
      ...{ type, workflow },
      facts: {
        type: type.type,
        category: categoryFact(type),
        workflow: Payment_Workflow[workflow] ?? '',
      },
    })),
  );
}

function categoryFact({ category }: PaymentMethodType): string {
  if (isLocal(category) || category === Transaction_Category.WALLET) return Transaction_Category[category];
  return 'CARD';
}

/** The routes to which payments get. */
export type Reach = {
  /** For each route, the ways whose payments may get to it: no earlier route surely takes them. */
  readonly reaching: readonly (readonly OfferedWay[])[];
  /** The index of the first route that surely takes a way's payments, if there is one. */
  readonly takenBy: ReadonlyMap<OfferedWay, number>;
  /** The routes that may take payments of a type, each with the facts of a way that may get there. */
  readonly candidates: ReadonlyMap<PaymentMethodType, readonly Candidate[]>;
};

/** A route that may take the payments with these facts. */
export type Candidate = { readonly route: Route; readonly facts: SomeFacts };

/** Finds the routes to which the payments of each way get. Incomplete if the judge is spent. */
export function findReach(routes: readonly Route[], ways: readonly OfferedWay[], judge: Judge): Reach {
  const reaching: OfferedWay[][] = routes.map(() => []);
  const takenBy = new Map<OfferedWay, number>();
  const candidates = new Map(ways.map(({ type }) => [type, [] as Candidate[]]));
  for (const way of ways) {
    for (const [i, route] of routes.entries()) {
      if (judge.isSpent()) break;
      const outcome = judge.holds(route, way.facts);
      if (outcome === false) continue;
      reaching[i]?.push(way);
      candidates.get(way.type)?.push({ route, facts: way.facts });
      if (outcome === undefined) continue;
      takenBy.set(way, i);
      break;
    }
  }
  return { reaching, takenBy, candidates };
}

/** Payments of a type, by country and currency. An absent one is any that is not listed in the catalogue. */
export type Place = { readonly country?: string; readonly currency?: string };

/** Returns the countries and currencies of a type whose payments no route takes. */
export function findUnrouted(
  { countries, currencies }: PaymentMethodType,
  candidates: readonly Candidate[],
  { holds, uses }: Judge,
): Place[] {
  const listed = <Name extends string>(name: Name, values: readonly string[]) =>
    values.length > 0 ? values.map((value) => ({ [name]: value }) as Record<Name, string>) : [{}];
  /** Returns the candidates that may take a place's payments; undefined if one may wherever in the place they are. */
  const possibleIn = (some: readonly Candidate[], place: Place, inner: readonly string[]) => {
    const possible: Candidate[] = [];
    for (const candidate of some) {
      const outcome = holds(candidate.route, { ...candidate.facts, ...place });
      if (outcome === false) continue;
      if (outcome || !inner.some((fact) => uses(candidate.route, fact))) return undefined;
      possible.push(candidate);
    }
    return possible;
  };
  const somewhere = possibleIn(candidates, {}, ['country', 'currency']);
  if (!somewhere) return [];
  return listed('country', countries).flatMap((country): Place[] => {
    const here = possibleIn(somewhere, country, ['currency']);
    if (!here) return [];
    if (here.length === 0) return [country];
    return listed('currency', currencies)
      .map((currency): Place => ({ ...country, ...currency }))
      .filter((place) => possibleIn(here, place, [])?.length === 0);
  });
}
