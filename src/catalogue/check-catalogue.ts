import {
  type AccountTargets,
  type Catalogue,
  CatalogueSchema,
  Choice,
  type ConnectionConfig,
  type PaymentMethodType,
  type Route,
} from '#gen/payments/v1/catalogue_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { CARD_BRANDS } from '#src/card-number.ts';
import { readAgreedFee } from '#src/connectors/port/agreed-fee.ts';
import { CURRENCIES } from '#src/money.ts';
import { isLocal } from '#src/payments/method/local-method.ts';
import { COUNTRIES } from '#src/payments/request/check-request.ts';
import type { Domains } from '#src/routing/condition-check.ts';
import { ConditionError } from '#src/routing/condition-error.ts';
import { conditionOf } from '#src/routing/router.ts';
import type { FieldError } from '#src/service-error.ts';
import { validate } from '#src/wire/validate.ts';

/** A fault of a catalogue, or a doubt. `field` is the path of the field, as in a file. */
export type CatalogueFault = FieldError & {
  /** An ERROR prevents that the catalogue is used. */
  readonly severity: 'ERROR' | 'WARNING';
  /** The fault’s place within a condition, counted from 1. */
  readonly within?: { readonly line: number; readonly column: number };
};

const checkFields = validate(CatalogueSchema, Number.POSITIVE_INFINITY);

/**
 * Finds everything that is wrong in a catalogue: the rules of catalogue.proto, and the rules that it cannot express.
 * Connections' settings and secrets are checked by opening them (open-catalogue); find-doubts finds what is doubtful.
 */
export function checkCatalogue(catalogue: Catalogue): CatalogueFault[] {
  const broken = checkFields(catalogue).map((error): CatalogueFault => ({ ...error, severity: 'ERROR' }));
  return broken.length > 0 ? broken : checkRules(catalogue);
}

/** Checks the rules that catalogue.proto cannot express: conditions, and names that must exist or be unique. */
function checkRules(catalogue: Catalogue): CatalogueFault[] {
  const { paymentMethodTypes, connections, routes, bins } = catalogue;
  const connectionIds = new Set(connections.map(({ id }) => id));
  const types = new Set(paymentMethodTypes.map(({ type }) => type));
  return [
    ...repeated(paymentMethodTypes.map(({ type }) => type)).map((i) =>
      twice(`payment_method_types[${i}].type`),
    ),
    ...paymentMethodTypes.flatMap(checkWorkflows),
    ...repeated(connections.map(({ id }) => id)).map((i) => twice(`connections[${i}].id`)),
    ...connections.flatMap((connection, i) => checkFees(`connections[${i}]`, connection, types)),
    ...repeated(routes.map(({ id }) => id)).map((i) => twice(`routes[${i}].id`)),
    ...repeated(bins.map(({ prefix }) => prefix)).map((i) => twice(`bins[${i}].prefix`)),
    ...checkConditions(routes, conditionDomains(paymentMethodTypes)),
    ...routes.flatMap((route, i) => [
      ...checkTargets(`routes[${i}]`, route, connectionIds),
      ...checkAccounts(i, route, connectionIds),
    ]),
  ];
}

function checkWorkflows({ category, workflows }: PaymentMethodType, i: number): CatalogueFault[] {
  const field = `payment_method_types[${i}].workflows`;
  if (workflows.some((one) => one !== Payment_Workflow.DIRECT && one !== Payment_Workflow.REDIRECT)) {
    return [fault(field, 'must contain only DIRECT and REDIRECT, which checkout sessions use too')];
  }
  if (category === Transaction_Category.CARD && workflows.includes(Payment_Workflow.REDIRECT)) {
    return [fault(field, 'must be [DIRECT] for the category CARD, which has no page for its payers')];
  }
  if (isLocal(category) && workflows.join() !== String(Payment_Workflow.REDIRECT)) {
    const name = Transaction_Category[category];
    return [fault(field, `must be [REDIRECT] for the category ${name}, whose payers pay later`)];
  }
  return [];
}

function checkFees(
  connection: string,
  { agreedFees }: ConnectionConfig,
  types: ReadonlySet<string>,
): CatalogueFault[] {
  const fieldOf = (i: number, name: string) => `${connection}.agreed_fees[${i}].${name}`;
  const keys = agreedFees.map(({ currency, paymentMethodType }) => `${currency} ${paymentMethodType}`);
  return [
    ...agreedFees.flatMap((config, i) => {
      const read = readAgreedFee(config);
      return 'currency' in read ? [] : read.map(({ name, message }) => fault(fieldOf(i, name), message));
    }),
    ...agreedFees.flatMap(({ paymentMethodType: type }, i) =>
      type === '' || types.has(type)
        ? []
        : [fault(fieldOf(i, 'payment_method_type'), 'is not a payment method type of the catalogue')],
    ),
    ...repeated(keys).map((i) =>
      fault(fieldOf(i, 'currency'), 'is listed twice for the same payment method type'),
    ),
  ];
}

function fault(field: string, message: string): CatalogueFault {
  return { field, code: 'NOT_ALLOWED', message, severity: 'ERROR' };
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
    ['category', new Set(['CARD', 'WALLET', 'BANK_TRANSFER', 'TICKET'])],
    ['workflow', new Set(['DIRECT', 'REDIRECT'])],
    ['country', COUNTRIES],
    ['issuer_country', new Set(['', ...COUNTRIES])],
    ['currency', CURRENCIES],
    ['card_brand', new Set(['', ...CARD_BRANDS])],
  ]);
}

function checkConditions(routes: readonly Route[], domains: Domains): CatalogueFault[] {
  return routes.flatMap((route, i) => {
    try {
      conditionOf(route, domains);
      return [];
    } catch (error) {
      if (!(error instanceof ConditionError)) throw error;
      const { line, column } = error;
      return { ...fault(`routes[${i}].condition`, error.message), within: { line, column } };
    }
  });
}

function checkTargets(
  field: string,
  { targets, choice }: Route | AccountTargets,
  connectionIds: ReadonlySet<string>,
): CatalogueFault[] {
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
  if (choice === Choice.CHOICE_UNSPECIFIED) {
    faults.push(fault(`${field}.choice`, 'must be absent, or name a choice'));
  }
  if (targets.length > 0 && targets.every(({ weight }) => weight === 0)) {
    faults.push(fault(`${field}.targets`, 'must include a weight above 0'));
  }
  return faults;
}

function checkAccounts(i: number, { accounts }: Route, connectionIds: ReadonlySet<string>): CatalogueFault[] {
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
