import { create, type JsonObject } from '@bufbuild/protobuf';
import type { Catalogue, ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import {
  type TestConnectionRequest,
  type TestConnectionResponse,
  TestConnectionResponseSchema,
} from '#gen/payments/v1/configuration_service_pb.js';
import type { AccountReport } from '#src/connectors/port/account-report.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { Secret } from '#src/secret.ts';
import { fieldRefusal, ServiceError } from '#src/service-error.ts';
import { createSlots } from '#src/slots.ts';
import { CatalogueError } from './catalogue-error.ts';
import type { Credentials, ReadCredentials, StoredSecret } from './credentials.ts';
import { type ReachRules, requirePublicAddresses } from './require-public-addresses.ts';
import { requireSafeConnection } from './require-safe-change.ts';

/** Dependencies of tests of connections. */
export type TestDeps = ReachRules & {
  /** The catalogue in force. @throws ServiceError SERVICE_UNAVAILABLE while there is none. */
  readonly inForce: () => Catalogue;
  /** Opens a single connection, which the caller closes. @throws CatalogueError. */
  readonly openOne: (definition: ConnectionConfig, credentials: Credentials) => ProviderConnection;
  readonly readCredentials: ReadCredentials;
};

/** Each holds a socket to a provider, and a call of an operator. */
const MAX_AT_ONCE = 4;
const TIMEOUT_MS = 10_000;

/**
 * Creates the function that asks a provider whether it accepts a connection's credentials. It calls no address that the
 * connection could not have in force, follows no redirect, and moves no money.
 *
 * @returns a function that throws ServiceError INVALID_PARAMETERS, CATALOGUE_INVALID, SECRET_MISSING, or
 * SERVICE_UNAVAILABLE while too many tests run.
 */
export function createConnectionTest(deps: TestDeps) {
  return async (request: TestConnectionRequest): Promise<TestConnectionResponse> => {
    const tested = findTested(deps, request);
    return withProviderSlot(async () => {
      await requirePublicAddresses(deps, tested.definition, tested.before);
      return testOne(deps, tested, request.secrets);
    });
  };
}

/** Shared by all operators' calls of this process that ask a provider. */
const slots = createSlots(MAX_AT_ONCE);

/** Runs a call of an operator that asks a provider. @throws ServiceError SERVICE_UNAVAILABLE while too many run. */
export async function withProviderSlot<T>(ask: () => Promise<T>): Promise<T> {
  const release = slots.take();
  if (!release) throw tooMany();
  try {
    return await ask();
  } finally {
    release();
  }
}

const ALTERNATIVE = 'is required, or connection';

/** A connection to test, and the one in force with its id, if any. */
type Tested = { readonly definition: ConnectionConfig; readonly before: ConnectionConfig | undefined };

function findTested(deps: TestDeps, { tested }: TestConnectionRequest): Tested {
  const { connections } = deps.inForce();
  const find = (id: string) => connections.find((one) => one.id === id);
  switch (tested.case) {
    case 'connectionId': {
      const definition = find(tested.value);
      if (definition) return { definition, before: definition };
      throw fieldRefusal('INVALID_PARAMETERS', 'connection_id', 'NOT_FOUND', 'is no connection in force');
    }
    case 'connection': {
      const before = find(tested.value.id);
      requireSafeConnection(deps, tested.value, before);
      return { definition: tested.value, before };
    }
    default:
      throw fieldRefusal('INVALID_PARAMETERS', 'connection_id', 'REQUIRED', ALTERNATIVE);
  }
}

async function testOne(
  { openOne, readCredentials }: TestDeps,
  { definition, before }: Tested,
  given: Readonly<Record<string, string>>,
): Promise<TestConnectionResponse> {
  // Another connector would send the stored secrets to another provider.
  const mayUseStored = before === undefined || before.connector === definition.connector;
  const credentials = withGiven(await readCredentials(), definition.id, given, mayUseStored);
  const connection = openTested(() => openOne(withDeadline(definition), credentials));
  try {
    const startMs = performance.now();
    const report = await connection.readAccount();
    return respond(report, performance.now() - startMs);
  } finally {
    await connection.close();
  }
}

/** Adds secrets to the stored ones, for one connection. */
function withGiven(
  { secrets, accounts }: Credentials,
  id: string,
  given: Readonly<Record<string, string>>,
  mayUseStored: boolean,
): Credentials {
  const own = new Map<string, StoredSecret>(mayUseStored ? secrets.get(id) : []);
  for (const [name, value] of Object.entries(given)) own.set(name, { id: '', value: new Secret(value) });
  return { accounts, secrets: new Map([[id, own]]) };
}

/** Limits the deadline of a connection's calls. A setting of another type is left to the connector's check. */
function withDeadline(definition: ConnectionConfig): ConnectionConfig {
  const settings: JsonObject = definition.settings ?? {};
  const { timeout_ms: wanted = TIMEOUT_MS } = settings;
  if (typeof wanted !== 'number') return definition;
  return { ...definition, settings: { ...settings, timeout_ms: Math.min(wanted, TIMEOUT_MS) } };
}

function openTested(open: () => ProviderConnection): ProviderConnection {
  try {
    return open();
  } catch (error) {
    if (error instanceof CatalogueError)
      throw new ServiceError(error.kind, `${error.message}; nothing was sent`);
    throw error;
  }
}

function respond(report: AccountReport, latencyMs: number): TestConnectionResponse {
  const shown =
    report.result === 'ACCEPTED'
      ? {
          providerAccount: report.account ?? '',
          environment: report.environment ?? '',
          message: 'the provider accepts the credentials',
        }
      : { message: report.detail };
  const { result } = report;
  return create(TestConnectionResponseSchema, { result, ...shown, latencyMs: Math.round(latencyMs) });
}

function tooMany(): ServiceError {
  const message = `${MAX_AT_ONCE} tests of connections are running; nothing was sent; retry later`;
  return new ServiceError('SERVICE_UNAVAILABLE', message, { retryAfterS: 1 });
}
