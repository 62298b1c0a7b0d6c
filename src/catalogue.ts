import { readFileSync } from 'node:fs';
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { parseDocument } from 'yaml';
import { type Catalogue, CatalogueSchema, type Connection } from '../gen/payments/config/catalogue_pb.js';
import { validate } from './api/validate.ts';
import { jsonDecoder } from './api/wire-json-decode.ts';
import type { Connector, Connection as OpenConnection } from './connectors/connector.ts';
import { createBinTable } from './payments/bin-table.ts';
import { type FieldError, PaymentError } from './payments/payment-error.ts';
import type { OpenCatalogue } from './payments/prepare-payment.ts';
import { createRouter } from './payments/routing.ts';
import { Secret } from './secret.ts';

/** The catalogue file is wrong; the message names each place. */
export class CatalogueError extends Error {
  override readonly name = 'CatalogueError';
}

const MAX_FILE_BYTES = 16 * 1024 * 1024;
const decode = jsonDecoder(CatalogueSchema, { unknownFields: 'reject' });
const check = validate(CatalogueSchema);

/**
 * Reads a catalogue file: YAML (or JSON, which is YAML), whose keys are the field names of catalogue.proto.
 *
 * @throws CatalogueError.
 */
export function readCatalogue(file: string): Catalogue {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new CatalogueError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  return parseCatalogue(text, file);
}

/** Parses and checks the text of a catalogue file; `file` is for messages. @throws CatalogueError. */
export function parseCatalogue(text: string, file: string): Catalogue {
  if (text.length > MAX_FILE_BYTES)
    throw new CatalogueError(`${file} is larger than ${MAX_FILE_BYTES} bytes`);
  const document = parseDocument(text, { prettyErrors: true });
  const [syntaxError] = document.errors;
  if (syntaxError) throw new CatalogueError(`${file}: ${syntaxError.message}`);
  let catalogue: Catalogue;
  try {
    catalogue = decode(document.toJS({ maxAliasCount: 100 }));
  } catch (error) {
    // The yaml package throws a ReferenceError for aliases that would grow without end.
    const isOfTheFile = error instanceof PaymentError || error instanceof ReferenceError;
    throw isOfTheFile ? new CatalogueError(`${file}: ${error.message}`) : error;
  }
  const faults = [...check(catalogue), ...crossCheck(catalogue)];
  if (faults.length === 0) return catalogue;
  throw new CatalogueError(
    `${file}: ${faults.map(({ field, message }) => `${field}: ${message}`).join('; ')}`,
  );
}

/** What one entry says of another: names that must be there, and names that must be there once. */
function crossCheck(catalogue: Catalogue): FieldError[] {
  const { paymentMethodTypes, connections, routes, bins } = catalogue;
  const connectionIds = new Set(connections.map(({ id }) => id));
  const types = new Set(paymentMethodTypes.map(({ type }) => type));
  const faults: FieldError[] = [
    ...repeated(
      'payment_method_types',
      'type',
      paymentMethodTypes.map(({ type }) => type),
    ),
    ...repeated(
      'connections',
      'id',
      connections.map(({ id }) => id),
    ),
    ...repeated(
      'routes',
      'id',
      routes.map(({ id }) => id),
    ),
    ...repeated(
      'bins',
      'prefix',
      bins.map(({ prefix }) => prefix),
    ),
  ];
  for (const [i, route] of routes.entries()) {
    if (!connectionIds.has(route.connection)) {
      faults.push({ field: `routes[${i}].connection`, code: 'NOT_ALLOWED', message: 'names no connection' });
    }
    for (const [j, type] of route.types.entries()) {
      if (types.has(type)) continue;
      faults.push({
        field: `routes[${i}].types[${j}]`,
        code: 'NOT_ALLOWED',
        message: 'names no payment method type',
      });
    }
  }
  return faults;
}

function repeated(list: string, key: string, values: readonly unknown[]): FieldError[] {
  const seen = new Set();
  const faults: FieldError[] = [];
  for (const [i, value] of values.entries()) {
    if (seen.has(value))
      faults.push({ field: `${list}[${i}].${key}`, code: 'NOT_ALLOWED', message: 'is there twice' });
    seen.add(value);
  }
  return faults;
}

/** What a catalogue is opened with. */
export type OpenCatalogueOptions = {
  readonly connectors: readonly Connector[];
  /** Reads an environment variable that a connection's secret refers to. */
  readonly environment: (name: string) => string | undefined;
  /** What `$NAME` stands for in a setting: the address of the mounted sandbox. */
  readonly variables: Readonly<Record<string, string>>;
};

/**
 * Makes a catalogue ready for payments and opens its connections.
 *
 * @throws CatalogueError that names the connection and the setting at fault.
 */
export function openCatalogue(
  catalogue: Catalogue,
  options: OpenCatalogueOptions,
): OpenCatalogue & { close(): Promise<void> } {
  const connections = new Map(
    catalogue.connections.map((connection) => [connection.id, openConnection(connection, options)]),
  );
  return {
    types: new Map(catalogue.paymentMethodTypes.map((type) => [type.type, type])),
    route: createRouter(catalogue),
    bins: createBinTable(catalogue.bins),
    connections,
    async close() {
      await Promise.all([...connections.values()].map((connection) => connection.close()));
    },
  };
}

function openConnection(connection: Connection, options: OpenCatalogueOptions): OpenConnection {
  const place = `connection ${connection.id}`;
  const connector = options.connectors.find(({ name }) => name === connection.connector);
  if (!connector) throw new CatalogueError(`${place}: there is no connector "${connection.connector}"`);
  const secrets: Record<string, Secret> = {};
  for (const [name, variable] of Object.entries(connection.secretsFromEnvironment)) {
    const value = options.environment(variable);
    if (value === undefined)
      throw new CatalogueError(`${place}: the environment variable ${variable} is not set`);
    secrets[name] = new Secret(value);
  }
  const settings = substitute(connection.settings ?? {}, options.variables);
  try {
    return connector.connect(settings, { providerId: connection.providerId, secrets });
  } catch (error) {
    throw new CatalogueError(`${place}: ${(error as Error).message}`);
  }
}

function substitute(settings: JsonObject, variables: Readonly<Record<string, string>>): JsonObject {
  const replace = (value: JsonValue): JsonValue =>
    typeof value === 'string'
      ? value.replace(/\$([A-Z_]+)/g, (whole, name) => variables[name] ?? whole)
      : value;
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, replace(value)]));
}
