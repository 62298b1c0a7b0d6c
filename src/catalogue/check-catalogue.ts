import type {
  AccountTargets,
  Catalogue,
  PaymentMethodType,
  Route,
} from '#gen/payments/config/catalogue_pb.js';
import { Choice } from '#gen/payments/config/catalogue_pb.js';
import { Payment_Workflow } from '#gen/payments/v1/payment_pb.js';
import { CURRENCIES } from '#src/money.ts';
import { CARD_BRANDS } from '#src/payments/create/card.ts';
import { COUNTRIES } from '#src/payments/create/check-request.ts';
import type { Domains } from '#src/routing/condition-check.ts';
import { ConditionError } from '#src/routing/condition-error.ts';
import { conditionOf } from '#src/routing/router.ts';
import type { FieldError } from '#src/service-error.ts';

/** Returns the position in the catalogue file of a line and column within a condition, both counted from 1. */
export type Locate = (route: number, line: number, column: number) => string;

/** Checks the rules that catalogue.proto cannot express: conditions, and names that must exist or be unique. */
export function checkCatalogue(catalogue: Catalogue, locate: Locate): FieldError[] {
  const { paymentMethodTypes, connections, routes, bins } = catalogue;
  const connectionIds = new Set(connections.map(({ id }) => id));
  return [
    ...repeated(paymentMethodTypes.map(({ type }) => type)).map((i) =>
      twice(`payment_method_types[${i}].type`),
    ),
    ...paymentMethodTypes.flatMap(({ workflows }, i) =>
      workflows.includes(Payment_Workflow.SDK_CHECKOUT)
        ? fault(
            `payment_method_types[${i}].workflows`,
            'must contain only DIRECT and REDIRECT, which checkout sessions use too',
          )
        : [],
    ),
    ...repeated(connections.map(({ id }) => id)).map((i) => twice(`connections[${i}].id`)),
    ...repeated(routes.map(({ id }) => id)).map((i) => twice(`routes[${i}].id`)),
    ...repeated(bins.map(({ prefix }) => prefix)).map((i) => twice(`bins[${i}].prefix`)),
    ...checkConditions(routes, conditionDomains(paymentMethodTypes), locate),
    ...routes.flatMap((route, i) => [
      ...checkTargets(`routes[${i}]`, route, connectionIds),
      ...checkAccounts(i, route, connectionIds),
    ]),
  ];
}

function fault(field: string, message: string): FieldError {
  return { field, code: 'NOT_ALLOWED', message };
}

const twice = (field: string) => fault(field, 'is listed twice');

/** Returns the indexes of values that occurred earlier in the list. */
function repeated(values: readonly unknown[]): number[] {
  const seen = new Set();
  return [...values.entries()].flatMap(([i, value]) => {
    const isRepeated = seen.has(value);
    seen.add(value);
    return isRepeated ? [i] : [];
  });
}

/** Returns the facts with a closed set of values. A comparison with any other value is a misspelling. */
function conditionDomains(types: readonly PaymentMethodType[]): Domains {
  return new Map<string, ReadonlySet<string>>([
    ['type', new Set(types.map(({ type }) => type))],
    ['category', new Set(['CARD', 'WALLET'])],
    ['workflow', new Set(['DIRECT', 'REDIRECT'])],
    ['country', COUNTRIES],
    ['issuer_country', new Set(['', ...COUNTRIES])],
    ['currency', CURRENCIES],
    ['card_brand', new Set(['', ...CARD_BRANDS])],
  ]);
}

function checkConditions(routes: readonly Route[], domains: Domains, locate: Locate): FieldError[] {
  const unconditional = routes.findIndex(({ condition }) => condition === '');
  return routes.flatMap((route, i) => {
    if (unconditional >= 0 && i > unconditional) {
      return fault(`routes[${i}]`, `is never reached, since routes[${unconditional}] accepts every payment`);
    }
    try {
      conditionOf(route, domains);
      return [];
    } catch (error) {
      if (!(error instanceof ConditionError)) throw error;
      return fault(`routes[${i}].condition`, `${error.message}, at ${locate(i, error.line, error.column)}`);
    }
  });
}

function checkTargets(
  field: string,
  { targets, choice }: Route | AccountTargets,
  connectionIds: ReadonlySet<string>,
): FieldError[] {
  const faults = repeated(targets.map(({ connection }) => connection)).map((i) =>
    twice(`${field}.targets[${i}].connection`),
  );
  for (const [i, { connection, weight }] of targets.entries()) {
    if (!connectionIds.has(connection)) {
      faults.push(fault(`${field}.targets[${i}].connection`, 'is not the id of a connection'));
    }
    if (weight !== undefined && choice !== Choice.SPLIT) {
      faults.push(fault(`${field}.targets[${i}].weight`, 'is used only with choice SPLIT'));
    }
  }
  if (targets.length > 0 && targets.every(({ weight }) => weight === 0)) {
    faults.push(fault(`${field}.targets`, 'must include a weight above 0'));
  }
  return faults;
}

function checkAccounts(i: number, { accounts }: Route, connectionIds: ReadonlySet<string>): FieldError[] {
  const ids = accounts.flatMap(({ accountIds }, j) => accountIds.map((id, k) => ({ id, j, k })));
  return [
    ...repeated(ids.map(({ id }) => id)).map((at) =>
      twice(`routes[${i}].accounts[${ids[at]?.j}].account_ids[${ids[at]?.k}]`),
    ),
    ...accounts.flatMap((override, j) =>
      checkTargets(`routes[${i}].accounts[${j}]`, override, connectionIds),
    ),
  ];
}
