import { readFileSync } from 'node:fs';
import { type Document, isScalar, LineCounter, parseDocument } from 'yaml';
import {
  type AccountTargets,
  type Catalogue,
  CatalogueSchema,
  Choice,
  type PaymentMethodType,
  type Route,
} from '#gen/payments/config/catalogue_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { CARD_BRANDS } from '#src/card-number.ts';
import { CURRENCIES } from '#src/money.ts';
import { isLocal } from '#src/payments/method/local-method.ts';
import { COUNTRIES } from '#src/payments/request/check-request.ts';
import type { Domains } from '#src/routing/condition-check.ts';
import { ConditionError } from '#src/routing/condition-error.ts';
import { conditionOf } from '#src/routing/router.ts';
import { describeFields, type FieldError, ServiceError } from '#src/service-error.ts';
import { validate } from '#src/wire/validate.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { CatalogueError } from './catalogue-error.ts';

const MAX_FILE_BYTES = 16 * 1024 * 1024;
const decode = jsonDecoder(CatalogueSchema, { unknownFields: 'reject' });
const check = validate(CatalogueSchema);
const refuse = (message: string) => new CatalogueError(message);

/**
 * Reads a catalogue file: YAML (or JSON, a subset of YAML) with the field names of catalogue.proto as keys.
 *
 * @throws CatalogueError.
 */
export function readCatalogue(file: string): Catalogue {
  return parseCatalogue(readTextFile(file, refuse), file);
}

/** Parses and checks the contents of a catalogue file. @param file path for messages. @throws CatalogueError. */
export function parseCatalogue(text: string, file: string): Catalogue {
  if (text.length > MAX_FILE_BYTES)
    throw new CatalogueError(`${file} is larger than ${MAX_FILE_BYTES} bytes`);
  const yaml = parseYaml(text, file, refuse);
  let catalogue: Catalogue;
  try {
    catalogue = decode(yaml.document.toJS({ maxAliasCount: 100 }));
  } catch (error) {
    // The yaml package throws a ReferenceError for aliases that would expand endlessly.
    const isOfTheFile = error instanceof ServiceError || error instanceof ReferenceError;
    throw isOfTheFile ? new CatalogueError(`${file}: ${error.message}`) : error;
  }
  const faults = check(catalogue);
  if (faults.length === 0) faults.push(...checkCatalogue(catalogue, locateIn(yaml, text)));
  if (faults.length === 0) return catalogue;
  throw new CatalogueError(`${file}: ${describeFields(faults)}`);
}

/**
 * Returns a function that finds a position within a condition in the file. If YAML folds or escapes the condition, its
 * text in the file differs, and the position within the condition is returned.
 */
function locateIn({ document, lineCounter }: YamlFile, text: string): Locate {
  return (route, line, column) => {
    const node = document.getIn(['routes', route, 'condition'], true);
    const within = `line ${line}, column ${column} of the condition`;
    if (!isScalar(node) || !node.range || typeof node.value !== 'string') return within;
    const wanted = node.value.split('\n')[line - 1] ?? '';
    let from = node.range[0];
    for (let earlier = 1; earlier < line; earlier++) from = text.indexOf('\n', from) + 1;
    const at = text.indexOf(wanted, from);
    if (at < 0 || at + wanted.length > node.range[2]) return within;
    const { line: fileLine, col } = lineCounter.linePos(at + column - 1);
    return `line ${fileLine}, column ${col}`;
  };
}

/** Returns the position in the catalogue file of a line and column within a condition, both counted from 1. */
type Locate = (route: number, line: number, column: number) => string;

/** Checks the rules that catalogue.proto cannot express: conditions, and names that must exist or be unique. */
function checkCatalogue(catalogue: Catalogue, locate: Locate): FieldError[] {
  const { paymentMethodTypes, connections, routes, bins } = catalogue;
  const connectionIds = new Set(connections.map(({ id }) => id));
  return [
    ...repeated(paymentMethodTypes.map(({ type }) => type)).map((i) =>
      twice(`payment_method_types[${i}].type`),
    ),
    ...paymentMethodTypes.flatMap(checkWorkflows),
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

function checkWorkflows({ category, workflows }: PaymentMethodType, i: number): FieldError[] {
  const field = `payment_method_types[${i}].workflows`;
  if (workflows.includes(Payment_Workflow.SDK_CHECKOUT)) {
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
    ['category', new Set(['CARD', 'WALLET', 'BANK_TRANSFER', 'TICKET'])],
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

/** Creates the error that reports a fault in a file. */
type Refuse = (message: string) => Error;

/** A YAML document (JSON is YAML too), with a counter that maps positions to lines. */
type YamlFile = { readonly document: Document; readonly lineCounter: LineCounter };

/** Reads an operator's file. @throws the error from `refuse` if it cannot be read. */
function readTextFile(file: string, refuse: Refuse): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw refuse(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/**
 * Parses a file's text. `file` is used only in messages.
 *
 * @throws the error from `refuse`, with the line, if the text is not YAML.
 */
function parseYaml(text: string, file: string, refuse: Refuse): YamlFile {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { prettyErrors: true, lineCounter });
  const [syntaxError] = document.errors;
  if (syntaxError) throw refuse(`${file}: ${syntaxError.message}`);
  return { document, lineCounter };
}
