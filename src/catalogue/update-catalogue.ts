import { create } from '@bufbuild/protobuf';
import { type Catalogue, ConnectionConfigSchema } from '#gen/payments/v1/catalogue_pb.js';
import {
  type CatalogueDryRun,
  type UpdateCatalogueRequest,
  type UpdateCatalogueResponse,
  UpdateCatalogueResponseSchema,
} from '#gen/payments/v1/configuration_service_pb.js';
import { routingCatalogue } from '#src/payments/route/routing-catalogue.ts';
import { fieldRefusal, invalidField, MAX_FIELD_ERRORS, ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { readHead, type VersionSource } from '#src/store/tables/catalogue-versions.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { timestampText } from '#src/wire/wire-json-encode.ts';
import { CatalogueError } from './catalogue-error.ts';
import { changeCatalogue } from './change-catalogue.ts';
import { compareCatalogues } from './compare-catalogues.ts';
import { dryRun } from './dry-run.ts';
import { findDoubts } from './find-doubts.ts';
import { identitiesOf, type OpenedCatalogue } from './open-catalogue.ts';
import {
  catalogueHash,
  type PublishedCatalogue,
  publishCatalogue,
  readPublished,
  UnknownFormatError,
} from './publish-catalogue.ts';
import {
  type CheckedCatalogue,
  checkCatalogueMessage,
  checkCatalogueText,
  type PlacedFault,
  placeFaults,
} from './read-catalogue.ts';
import {
  type AddressRules,
  requireKnownAddresses,
  requireKnownSecrets,
  requireUnused,
} from './require-safe-change.ts';

/** Dependencies of a change of the catalogue. */
export type UpdateDeps = AddressRules & {
  readonly database: Database;
  /** Returns the catalogue of the file; undefined if the database has the catalogue. */
  readonly fromFile: (() => Catalogue) | undefined;
  /** The sandbox is mounted. */
  readonly sandbox: boolean;
  /** Opens a catalogue in the place of the one in force, and closes it again. @throws CatalogueError. */
  readonly tryOpen: (catalogue: Catalogue) => Promise<Pick<OpenedCatalogue, 'connections'>>;
};

/** The person who changes the catalogue. */
export type Publisher = {
  readonly source: Exclude<VersionSource, 'seed' | 'undo'>;
  /** As in the audit log. */
  readonly actor: string;
  /** The change may name variables of the environment. */
  readonly maySetSecrets: boolean;
  /** The change may name any address. */
  readonly maySetAddresses: boolean;
};

/** The catalogue that a change is made to. Without a publication, it comes from a file. */
type Base = {
  readonly catalogue: Catalogue;
  readonly published?: PublishedCatalogue;
  /** The head's revision, read before everything else; absent for a file. */
  readonly revision?: bigint;
};

/**
 * Checks a change of the catalogue, opens the changed catalogue to know that it can be put in force, and publishes it
 * unless only the checks were asked for. A change that changes nothing is done already.
 *
 * @returns the new version with what changes; with `validate_only`, every fault as data.
 * @throws ServiceError CATALOGUE_INVALID, VERSION_CHANGED, CONFIGURED_BY_FILE, SECRET_MISSING, CONNECTION_REPOINTED,
 * CONNECTION_IN_USE; INVALID_PARAMETERS if the change names something that the catalogue does not have.
 */
export async function updateCatalogue(
  deps: UpdateDeps,
  request: UpdateCatalogueRequest,
  publisher: Publisher,
): Promise<UpdateCatalogueResponse> {
  return againIfOvertaken('published', () => tryUpdate(deps, request, publisher));
}

/** A change that another one overtook is made again this often. */
const MOST_TRIES = 3;

/**
 * Makes a change of the configuration, again if another change overtook it.
 *
 * @param change returns undefined if it was overtaken.
 * @throws ServiceError VERSION_CHANGED if it is overtaken each time.
 */
export async function againIfOvertaken<T>(
  done: 'published' | 'stored',
  change: () => Promise<T | undefined>,
): Promise<T> {
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const changed = await change();
    if (changed !== undefined) return changed;
  }
  const message = `the configuration keeps changing; nothing was ${done}; try again`;
  throw new ServiceError('VERSION_CHANGED', message);
}

/** Makes the change, as `updateCatalogue`; undefined if another version or a changed secret overtook it. */
async function tryUpdate(
  deps: UpdateDeps,
  request: UpdateCatalogueRequest,
  publisher: Publisher,
): Promise<UpdateCatalogueResponse | undefined> {
  if (deps.fromFile && !request.validateOnly) throw configuredByFile();
  const base = await readBase(deps);
  const changed = await applyChange(deps, base, request);
  const { published } = base;
  if (changed.catalogue && isSame(changed.catalogue, base.catalogue)) {
    const inForce = await openBase(deps, base);
    const compared = await compareRoutes(deps, request, async () => inForce);
    return respond(0, doubtsOf(deps, request, inForce), base, base.catalogue, compared);
  }
  if (published) requireVersion(published, request.expectedVersion);
  const isRefused = changed.faults.length > 0;
  if (isRefused && !request.validateOnly) throw invalidCatalogue(changed.faults);
  if (isRefused || !changed.catalogue) return respond(0, changed.faults, base, changed.catalogue);

  const safe = await makeSafe(deps, base, changed.catalogue, request, publisher);
  const { catalogue } = safe;
  const all = [...safe.faults, ...doubtsOf(deps, request, safe)];
  const compared = await compareRoutes(deps, request, () => openBase(deps, base), safe);
  if (request.validateOnly || !published) return respond(0, all, base, catalogue, compared);
  const version = await publishCatalogue(deps.database, {
    ...{ catalogue, identities: identitiesOf(safe) },
    expected: published.version,
    revision: base.revision,
    source: request.change.case === 'undoTo' ? 'undo' : publisher.source,
    actor: publisher.actor,
    comment: request.comment,
  });
  return version === undefined ? undefined : respond(version, all, base, catalogue, compared);
}

/** A catalogue with its open connections. */
type WithConnections = Pick<SafeCatalogue, 'catalogue' | 'connections'>;

/**
 * Routes stored payments by both catalogues, if the request asks for it.
 *
 * @param after undefined if nothing changes.
 */
async function compareRoutes(
  { database }: UpdateDeps,
  { dryRunPayments: payments, since, accountId }: UpdateCatalogueRequest,
  openBefore: () => Promise<WithConnections>,
  after?: WithConnections,
): Promise<CatalogueDryRun | undefined> {
  if (payments === 0) return undefined;
  if (accountId !== '' && !isUuid(accountId))
    throw invalidField('account_id', 'INVALID_FORMAT', 'must be a UUID');
  const before = await openBefore();
  const inForce = routingCatalogue(before.catalogue, before.connections);
  const changed = after ? routingCatalogue(after.catalogue, after.connections) : inForce;
  return dryRun(database, inForce, changed, {
    ...{ payments, accountId: accountId || undefined, since: since && timestampText(since) },
  });
}

/**
 * Opens the catalogue in force. If a secret is gone, it has no connections: they then count as able to handle every
 * payment.
 */
async function openBase({ tryOpen }: UpdateDeps, { catalogue }: Base): Promise<WithConnections> {
  try {
    return { catalogue, connections: (await tryOpen(catalogue)).connections };
  } catch (error) {
    if (error instanceof CatalogueError) return { catalogue, connections: new Map() };
    throw error;
  }
}

/** Returns what is doubtful in an opened catalogue, with its places if its text was sent. */
function doubtsOf(
  { sandbox }: UpdateDeps,
  { change }: UpdateCatalogueRequest,
  { catalogue, connections }: WithConnections,
): PlacedFault[] {
  const doubts = findDoubts(catalogue, { connections, sandbox, hasAllSecrets: true });
  return placeFaults(change.case === 'yaml' ? change.value : undefined, doubts);
}

/** Reads the catalogue to change. @throws ServiceError NOT_SUPPORTED if only a later release can read it. */
export async function readBase({
  database,
  fromFile,
}: Pick<UpdateDeps, 'database' | 'fromFile'>): Promise<Base> {
  if (fromFile) return { catalogue: fromFile() };
  const head = await readHead(database);
  const published = head && (await readKnown(database, head.version));
  if (!published) throw new Error('the database has no catalogue');
  return { catalogue: published.catalogue, published, revision: head.revision };
}

/** Reads a version. @throws ServiceError NOT_SUPPORTED if only a later release knows its format. */
async function readKnown(database: Database, version: number): Promise<PublishedCatalogue | undefined> {
  try {
    return await readPublished(database, version);
  } catch (error) {
    if (error instanceof UnknownFormatError) {
      throw new ServiceError('NOT_SUPPORTED', `${error.message}; change the catalogue with that release`);
    }
    throw error;
  }
}

/** Returns the changed catalogue with its faults. */
async function applyChange(
  deps: UpdateDeps,
  { catalogue }: Base,
  { change }: UpdateCatalogueRequest,
): Promise<CheckedCatalogue> {
  if (change.case === undefined) {
    throw fieldRefusal('INVALID_PARAMETERS', 'change', 'REQUIRED', 'is required: send one of its fields');
  }
  if (change.case === 'yaml') return checkCatalogueText(change.value);
  const isUndo = change.case === 'undoTo';
  const earlier = isUndo && !deps.fromFile ? await readKnown(deps.database, change.value) : undefined;
  return checkCatalogueMessage(changeCatalogue(catalogue, change, earlier?.catalogue));
}

/** A catalogue that is known to open. */
type SafeCatalogue = Pick<OpenedCatalogue, 'connections'> & {
  readonly catalogue: Catalogue;
  readonly faults: readonly PlacedFault[];
};

/** Checks what the catalogue by itself does not say, and opens it. */
async function makeSafe(
  deps: UpdateDeps,
  { catalogue: before }: Base,
  changed: Catalogue,
  { change }: UpdateCatalogueRequest,
  publisher: Publisher,
): Promise<SafeCatalogue> {
  // What was in force once may be so again: an undo must work in an incident.
  const isUndo = change.case === 'undoTo';
  if (!isUndo && !publisher.maySetSecrets) requireKnownSecrets(before, changed);
  if (!isUndo && !publisher.maySetAddresses) requireKnownAddresses(before, changed, deps);
  await requireUnused(deps.database, before, changed);
  return openOnce(deps, changed, isUndo);
}

/**
 * Opens the catalogue.
 *
 * @param isUndo retires the connections whose secrets are gone, instead of a refusal.
 */
async function openOnce(
  { tryOpen }: UpdateDeps,
  changed: Catalogue,
  isUndo: boolean,
): Promise<SafeCatalogue> {
  let catalogue = changed;
  const faults: PlacedFault[] = [];
  for (;;) {
    try {
      const { connections } = await tryOpen(catalogue);
      return { catalogue, faults, connections };
    } catch (error) {
      if (!(error instanceof CatalogueError)) throw error;
      const all = [error, ...error.others];
      if (!isUndo || all.some(({ kind }) => kind !== 'SECRET_MISSING')) throw cannotOpen(catalogue, all);
      catalogue = withRetired(catalogue, all);
      for (const fault of all) {
        const message = `is retired, since a secret is missing (${fault.message})`;
        faults.push({ path: pathOf(catalogue, fault), ...RETIRED, message });
      }
    }
  }
}

const RETIRED = { code: 'NOT_FOUND', line: 0, column: 0, severity: 'WARNING' } as const;

/** Returns a catalogue whose connections that cannot be opened are retired, which may stay closed. */
function withRetired(catalogue: Catalogue, faults: readonly CatalogueError[]): Catalogue {
  const lost = new Set(faults.map(({ connectionId }) => connectionId));
  const connections = catalogue.connections.map((one) =>
    lost.has(one.id) ? create(ConnectionConfigSchema, { ...one, retired: true }) : one,
  );
  return { ...catalogue, connections };
}

/** Returns the refusal of a catalogue that cannot be opened, for the reason of the first fault. */
function cannotOpen(catalogue: Catalogue, faults: readonly CatalogueError[]): ServiceError {
  const fields = faults.slice(0, MAX_FIELD_ERRORS).map((fault) => {
    return { field: pathOf(catalogue, fault), code: 'NOT_ALLOWED', message: fault.message } as const;
  });
  const listed = fields.map(({ message }) => message).join('; ');
  const more = faults.length > fields.length ? `; and ${faults.length - fields.length} more` : '';
  return new ServiceError(faults[0]?.kind ?? 'CATALOGUE_INVALID', `${listed}${more}; nothing was published`, {
    fields,
  });
}

function pathOf({ connections }: Catalogue, { connectionId }: CatalogueError): string {
  const at = connections.findIndex(({ id }) => id === connectionId);
  return at < 0 ? 'connections' : `connections[${at}]`;
}

function respond(
  version: number,
  faults: readonly PlacedFault[],
  base?: Base,
  changed?: Catalogue,
  compared?: CatalogueDryRun,
): UpdateCatalogueResponse {
  const changes = base && changed ? compareCatalogues(base.catalogue, changed) : [];
  return create(UpdateCatalogueResponseSchema, {
    ...{ version, faults: [...faults], changes, ...(compared && { dryRun: compared }) },
  });
}

function isSame(one: Catalogue, other: Catalogue): boolean {
  return Buffer.compare(catalogueHash(one), catalogueHash(other)) === 0;
}

/** @throws ServiceError VERSION_CHANGED, or INVALID_PARAMETERS without a version. */
function requireVersion(published: PublishedCatalogue, expected: number): void {
  if (expected === 0) throw fieldRefusal('INVALID_PARAMETERS', 'expected_version', 'REQUIRED', 'is required');
  if (expected !== published.version) throw versionChanged(published);
}

function versionChanged({ version, actor, publishedAt }: PublishedCatalogue): ServiceError {
  const message = `version ${version} is in force, published by ${actor} at ${publishedAt.toISOString()}; nothing was published; read the catalogue and make the change again`;
  return new ServiceError('VERSION_CHANGED', message);
}

function configuredByFile(): ServiceError {
  const message = 'the catalogue comes from CATALOGUE_FILE; nothing was published; change the file';
  return new ServiceError('CONFIGURED_BY_FILE', message);
}

function invalidCatalogue(faults: readonly PlacedFault[]): ServiceError {
  const fields = faults
    .slice(0, MAX_FIELD_ERRORS)
    .map(({ path, code, message }) => ({ field: path || '$', code, message }));
  const listed = fields.map(({ field, message }) => `${field}: ${message}`).join('; ');
  const more = faults.length - fields.length;
  return new ServiceError('CATALOGUE_INVALID', more > 0 ? `${listed}; and ${more} more` : listed, { fields });
}
