import { create } from '@bufbuild/protobuf';
import { EmptySchema, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type Catalogue, CatalogueSchema } from '#gen/payments/v1/catalogue_pb.js';
import {
  CatalogueReplicaSchema,
  type CatalogueVersion,
  CatalogueVersionSchema,
  type ConfigurationService,
  DeleteConnectionSecretRequestSchema,
  type GetCatalogueRequest,
  GetCatalogueRequestSchema,
  type GetCatalogueResponse,
  GetCatalogueResponseSchema,
  ListCatalogueVersionsRequestSchema,
  ListCatalogueVersionsResponseSchema,
  ListConnectorsResponseSchema,
  SetConnectionSecretRequestSchema,
  SetConnectionSecretResponseSchema,
  TestConnectionRequestSchema,
  UpdateCatalogueRequestSchema,
} from '#gen/payments/v1/configuration_service_pb.js';
import { compareCatalogues } from '#src/catalogue/compare-catalogues.ts';
import { connectorForm } from '#src/catalogue/connector-form.ts';
import {
  type PublishedCatalogue,
  readPublished,
  UnknownFormatError,
} from '#src/catalogue/publish-catalogue.ts';
import {
  deleteConnectionSecret,
  type SecretDeps,
  type StoredReport,
  setConnectionSecret,
} from '#src/catalogue/set-secret.ts';
import { createConnectionTest, type TestDeps } from '#src/catalogue/test-connection.ts';
import { type UpdateDeps, updateCatalogue } from '#src/catalogue/update-catalogue.ts';
import type { Connector } from '#src/connectors/port/connector.ts';
import type { Caller } from '#src/payments/caller.ts';
import { fieldRefusal, invalidParameters, ServiceError } from '#src/service-error.ts';
import {
  listReplicas,
  listVersions,
  readHead,
  type VersionEntry,
} from '#src/store/tables/catalogue-versions.ts';
import { validate } from '#src/wire/validate.ts';
import type { Operator } from './authenticate.ts';
import type { ServiceHandlers } from './rest.ts';

/** Dependencies of the configuration's service. */
export type ConfigurationDeps = UpdateDeps &
  SecretDeps &
  Omit<TestDeps, 'inForce'> & {
    /** The catalogue in force in this process. @throws ServiceError SERVICE_UNAVAILABLE while there is none. */
    readonly opened: () => { readonly catalogue: Catalogue; readonly version: number };
    /** Every connector, by name. */
    readonly connectors: readonly Connector[];
  };

const DEFAULT_PAGE = 20;
const checkGet = validate(GetCatalogueRequestSchema);
const checkList = validate(ListCatalogueVersionsRequestSchema);
const checkTest = validate(TestConnectionRequestSchema);
const checkUpdate = validate(UpdateCatalogueRequestSchema);
const checkSecret = validate(SetConnectionSecretRequestSchema);
const checkDeleted = validate(DeleteConnectionSecretRequestSchema);
/** Fields of a changed catalogue, whose faults have the paths of the catalogue instead. */
const OF_CATALOGUE = /^(catalogue|put_connection|put_route\.route|put_payment_method_type)[.[]/;

/**
 * The handlers of payments.v1.ConfigurationService, the same for every protocol and for the dashboard.
 *
 * @param source of the versions that they publish.
 */
export function configurationService(
  deps: ConfigurationDeps,
  source: 'api' | 'dashboard' = 'api',
): ServiceHandlers<typeof ConfigurationService, Caller & { readonly operator?: Operator }> {
  const testConnection = createConnectionTest({ ...deps, inForce: () => deps.opened().catalogue });
  return {
    async getCatalogue(request) {
      const faults = checkGet(request);
      if (faults.length > 0) throw invalidParameters(faults);
      const found = await getCatalogue(deps, request);
      const { connectionId: id } = request;
      return { message: id === '' ? found : onlyConnection(found, id) };
    },
    async listCatalogueVersions(request) {
      const faults = checkList(request);
      if (faults.length > 0) throw invalidParameters(faults);
      const { pageSize, before } = request;
      const entries = await listVersions(deps.database, pageSize || DEFAULT_PAGE, before || undefined);
      return { message: create(ListCatalogueVersionsResponseSchema, { versions: entries.map(versionOf) }) };
    },
    async listConnectors() {
      const connectors = deps.connectors.map(connectorForm);
      return { message: create(ListConnectorsResponseSchema, { connectors }) };
    },
    async testConnection(request, { operator }) {
      if (!operator) throw new Error('an operator’s call has no operator');
      if (operator.mayOnlyRead) throw mayNotTest();
      const faults = checkTest(request);
      if (faults.length > 0) throw invalidParameters(faults);
      return { message: await testConnection(request) };
    },
    async updateCatalogue(request, { operator }) {
      if (!operator) throw new Error('an operator’s call has no operator');
      if (!request.validateOnly) requireWriter(operator);
      const faults = checkUpdate(request).filter(({ field }) => !OF_CATALOGUE.test(field));
      if (faults.length > 0) throw invalidParameters(faults);
      const { actor } = operator;
      const publisher = { source, actor, maySetSecrets: false, maySetAddresses: false } as const;
      return { message: await updateCatalogue(deps, request, publisher) };
    },
    async setConnectionSecret(request, { operator }) {
      const { actor } = requireWriter(operator);
      const faults = checkSecret(request);
      if (faults.length > 0) throw invalidParameters(faults);
      return { message: storedOf(await setConnectionSecret(deps, request, actor)) };
    },
    async deleteConnectionSecret(request, { operator }) {
      const { actor } = requireWriter(operator);
      const faults = checkDeleted(request);
      if (faults.length > 0) throw invalidParameters(faults);
      await deleteConnectionSecret(deps, request, actor);
      return { message: create(EmptySchema) };
    },
  };
}

async function getCatalogue(
  deps: ConfigurationDeps,
  { version }: GetCatalogueRequest,
): Promise<GetCatalogueResponse> {
  const { database, opened, fromFile } = deps;
  if (version > 0) {
    const published = await readKnown(deps, version);
    if (!published) throw unknownVersion();
    const before = await readKnown(deps, published.replaced);
    const changes = before ? compareCatalogues(before.catalogue, published.catalogue) : [];
    return create(GetCatalogueResponseSchema, { ...shown(published), changes });
  }
  if (fromFile) {
    return create(GetCatalogueResponseSchema, { source: 'FILE', catalogue: fromFile() });
  }
  const head = await readHead(database);
  // If only a later release can read the newest version, this one still has its own in force.
  const published =
    (head && (await readKnown(deps, head.version))) ?? (await readKnown(deps, opened().version));
  if (!published) throw unknownVersion();
  const replicas = (await listReplicas(database)).map(({ name: replica, seenAt, ...rest }) =>
    create(CatalogueReplicaSchema, { replica, ...rest, seenAt: timestampFromDate(seenAt) }),
  );
  return create(GetCatalogueResponseSchema, { ...shown(published), replicas });
}

/** Returns a response with only one connection, and its changes. */
function onlyConnection(found: GetCatalogueResponse, id: string): GetCatalogueResponse {
  const connections = found.catalogue?.connections.filter((one) => one.id === id) ?? [];
  if (connections.length === 0) {
    throw fieldRefusal(
      'INVALID_PARAMETERS',
      'connection_id',
      'NOT_FOUND',
      'is no connection of this version',
    );
  }
  const changes = found.changes.filter(({ path }) => path.startsWith(`connections[${id}]`));
  return { ...found, catalogue: create(CatalogueSchema, { connections }), changes };
}

/** Reads a version; undefined if there is none, or only a later release can read it. */
async function readKnown(
  { database }: ConfigurationDeps,
  version: number,
): Promise<PublishedCatalogue | undefined> {
  try {
    return await readPublished(database, version);
  } catch (error) {
    if (error instanceof UnknownFormatError) return undefined;
    throw error;
  }
}

function shown({ version, source, catalogue, publishedAt, actor, comment }: PublishedCatalogue) {
  return { version, source, catalogue, publishedAt: timestampFromDate(publishedAt), actor, comment };
}

function versionOf({ publishedAt, hash, ...entry }: VersionEntry): CatalogueVersion {
  return create(CatalogueVersionSchema, {
    ...entry,
    publishedAt: timestampFromDate(publishedAt),
    hash: Buffer.from(hash).toString('hex'),
  });
}

function unknownVersion(): ServiceError {
  return fieldRefusal(
    'INVALID_PARAMETERS',
    'version',
    'NOT_FOUND',
    'is no version that this release can read',
  );
}

/** @throws ServiceError AUTHORIZATION_REQUIRED for a key that may only read. */
function requireWriter(operator: Operator | undefined): Operator {
  if (!operator) throw new Error('an operator’s call has no operator');
  if (!operator.mayOnlyRead) return operator;
  const message = 'this operator key may only read, and check with validate_only; nothing was changed';
  throw new ServiceError('AUTHORIZATION_REQUIRED', message);
}

function storedOf({ setAt, actor, previousUntil, tested, providerAccount = '' }: StoredReport) {
  return create(SetConnectionSecretResponseSchema, {
    setAt: timestampFromDate(setAt),
    ...(previousUntil && { previousUntil: timestampFromDate(previousUntil) }),
    ...{ actor, tested, providerAccount },
  });
}

function mayNotTest(): ServiceError {
  const message = 'this operator key may only read; nothing was sent; use another key';
  return new ServiceError('AUTHORIZATION_REQUIRED', message);
}
