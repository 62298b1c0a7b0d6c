import { randomUUID } from 'node:crypto';
import type { Catalogue, ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import type {
  DeleteConnectionSecretRequest,
  SetConnectionSecretRequest,
} from '#gen/payments/v1/configuration_service_pb.js';
import type { AccountReport } from '#src/connectors/port/account-report.ts';
import type { Connector, ProviderConnection } from '#src/connectors/port/connector.ts';
import { Secret } from '#src/secret.ts';
import { invalidField, notAllowed, ServiceError } from '#src/service-error.ts';
import { INSTALLATION } from '#src/store/tables/audit-log.ts';
import {
  type ConnectionAccount,
  deleteSecret,
  listSecretEntries,
  type SecretEntry,
  type SecretName,
  storeSecret,
} from '#src/store/tables/connection-secrets.ts';
import type { CardVault } from '#src/vault/card-vault.ts';
import { CatalogueError } from './catalogue-error.ts';
import { secretNames } from './connector-form.ts';
import {
  boundTo,
  type Credentials,
  isOfAccount,
  type ReadCredentials,
  withoutSecret,
  withSecret,
} from './credentials.ts';
import { type ReachRules, requirePublicAddresses } from './require-public-addresses.ts';
import { requireSafeConnection } from './require-safe-change.ts';
import { requireSameAccount } from './same-account.ts';
import { withProviderSlot } from './test-connection.ts';
import { againIfOvertaken, readBase, type UpdateDeps } from './update-catalogue.ts';

/** Dependencies of a change of a secret. */
export type SecretDeps = Pick<UpdateDeps, 'database' | 'fromFile'> &
  ReachRules & {
    readonly readCredentials: ReadCredentials;
    /** Opens a single connection, which the caller closes. @throws CatalogueError. */
    readonly openOne: (definition: ConnectionConfig, credentials: Credentials) => ProviderConnection;
    readonly vault: Pick<CardVault, 'seal'>;
  };

/** A secret that was just stored. */
export type StoredReport = SecretEntry & {
  /** The provider accepted the credentials. */
  readonly tested: boolean;
  /** As the provider names the account; undefined if it was not asked or did not tell. */
  readonly providerAccount: string | undefined;
};

const DEFAULT_KEEP_PREVIOUS_S = 86_400;

/**
 * Stores a secret of a connection, which every process opens anew within two seconds.
 *
 * @param actor as in the audit log.
 * @throws ServiceError CONFIGURED_BY_FILE, CREDENTIALS_REFUSED, CONNECTION_REPOINTED, INVALID_PARAMETERS; VERSION_CHANGED
 * if other changes overtook it. In each case, nothing is stored.
 */
export function setConnectionSecret(
  deps: SecretDeps,
  request: SetConnectionSecretRequest,
  actor: string,
): Promise<StoredReport> {
  return untilStored(deps, (state) => trySet(deps, state, request, actor));
}

/**
 * Deletes a stored secret. A secret that is not stored is deleted already.
 *
 * @param actor as in the audit log.
 * @throws ServiceError CONFIGURED_BY_FILE; SECRET_MISSING while a connection in force needs the secret;
 * CONNECTION_REPOINTED if the environment's belongs to another account; VERSION_CHANGED if other changes overtook it.
 */
export function deleteConnectionSecret(
  deps: SecretDeps,
  { connectionId, name }: DeleteConnectionSecretRequest,
  actor: string,
): Promise<true> {
  return untilStored(deps, async ({ catalogue, credentials, revision }) => {
    if (!credentials.secrets.get(connectionId)?.has(name)) return true;
    const definition = catalogue.connections.find(({ id }) => id === connectionId);
    if (definition) requireUnneeded(deps, definition, credentials, name);
    const audited = auditedAction('delete-connection-secret', { connectionId, name }, actor);
    return (await deleteSecret(deps.database, { connectionId, name, revision, audited })) || undefined;
  });
}

/** The configuration in force when a change was checked. */
type State = {
  readonly catalogue: Catalogue;
  readonly credentials: Credentials;
  readonly revision: bigint;
};

/** Makes a change, again if another one was made in the meantime. @param change returns undefined in that case. */
async function untilStored<T>(
  deps: SecretDeps,
  change: (state: State) => Promise<T | undefined>,
): Promise<T> {
  if (deps.fromFile) throw new ServiceError('CONFIGURED_BY_FILE', CONFIGURED_BY_FILE);
  return againIfOvertaken('stored', async () => {
    const { catalogue, revision = 0n } = await readBase(deps);
    return change({ catalogue, credentials: await deps.readCredentials(), revision });
  });
}

/** Twice the connections of a catalogue. */
const MOST_CONNECTIONS = 2_000;

function tooManyConnections(): ServiceError {
  return invalidField(
    'connection_id',
    'TOO_MANY',
    `${MOST_CONNECTIONS} connections have stored secrets; delete the secrets of another one first`,
  );
}

const CONFIGURED_BY_FILE =
  'the catalogue comes from CATALOGUE_FILE, so its secrets are those of the environment; nothing was stored; change the environment';

async function trySet(
  deps: SecretDeps,
  state: State,
  request: SetConnectionSecretRequest,
  actor: string,
): Promise<StoredReport | undefined> {
  const { connectionId, name, keepPreviousS = DEFAULT_KEEP_PREVIOUS_S } = request;
  const { secrets } = state.credentials;
  if (secrets.size >= MOST_CONNECTIONS && !secrets.has(connectionId)) throw tooManyConnections();
  const secret = new Secret(request.value);
  const known = findDefinition(deps, state, request);
  const checked = known && (await withProviderSlot(() => checkSecret(deps, state, request, known)));
  const report = {
    tested: checked?.report?.result === 'ACCEPTED',
    providerAccount: accountOf(checked?.report),
  };
  const present = state.credentials.secrets.get(connectionId)?.get(name)?.value;
  const isStored = present?.equals(secret) ?? false;
  // A repeated call must not make the value its own predecessor.
  if (!isStored || checked?.account) {
    const isChanged = await storeSecret(deps.database, {
      ...{ connectionId, name, keepPreviousS, actor, revision: state.revision },
      ...{ id: randomUUID(), sealed: await deps.vault.seal(secret, boundTo(request)) },
      isInForce: known?.isInForce ?? false,
      isKept: isStored,
      account: checked?.account,
      audited: auditedAction(
        'set-connection-secret',
        request,
        actor,
        `keeps the previous for ${keepPreviousS} s`,
      ),
    });
    if (!isChanged) return undefined;
  }
  const isOwn = (entry: SecretEntry) => entry.connectionId === connectionId && entry.name === name;
  const entry = (await listSecretEntries(deps.database)).find(isOwn);
  return entry && { ...entry, ...report };
}

/** A connection whose secret is set. */
type KnownDefinition = {
  readonly definition: ConnectionConfig;
  readonly connector: Connector;
  readonly isInForce: boolean;
};

/** Finds the connection in force, or in the request. @throws ServiceError INVALID_PARAMETERS. */
function findDefinition(
  deps: SecretDeps,
  { catalogue }: State,
  { connectionId, name, connection }: SetConnectionSecretRequest,
): KnownDefinition | undefined {
  const inForce = catalogue.connections.find(({ id }) => id === connectionId);
  if (inForce && connection) throw notAllowed('connection', 'must be absent: the connection is in force');
  const definition = inForce ?? connection;
  if (!definition) return undefined;
  if (definition.id !== connectionId) throw notAllowed('connection.id', 'must be the same as connection_id');
  const connector = deps.connectors.find((one) => one.name === definition.connector);
  if (!connector) throw invalidField('connection.connector', 'NOT_FOUND', 'is no connector');
  if (!secretNames(connector).includes(name)) {
    throw invalidField('name', 'NOT_FOUND', `is no secret of the connector ${connector.name}`);
  }
  if (!inForce) requireSafeConnection(deps, definition, undefined);
  return { definition, connector, isInForce: inForce !== undefined };
}

/** A check of a secret that may be stored. */
type CheckedSecret = {
  /** undefined: the provider was not asked. */
  readonly report: AccountReport | undefined;
  /** The account to store; undefined if it is stored as it is, or not known. */
  readonly account: ConnectionAccount | undefined;
};

/** Opens the connection with the secret, and asks the provider. */
async function checkSecret(
  deps: SecretDeps,
  { credentials }: State,
  request: SetConnectionSecretRequest,
  { definition, connector, isInForce }: KnownDefinition,
): Promise<CheckedSecret | undefined> {
  const { name, test = true, confirmSameAccount } = request;
  const value = new Secret(request.value);
  const opened = tryOpen(deps, definition, withSecret(credentials, definition.id, name, value));
  // Another secret of the connection is missing, so it cannot be in use.
  if (!opened) return undefined;
  try {
    if (!isInForce) await requirePublicAddresses(deps, definition, undefined);
    const stored = credentials.accounts.get(definition.id);
    const present = isInForce ? await presentAccount(deps, definition, credentials) : undefined;
    const known = stored ?? present;
    const isAnother = known && !isOfAccount(known, opened.identity);
    const isTested = test && !connector.notificationSecrets.includes(name);
    const report = isTested || isAnother ? await opened.readAccount() : undefined;
    if (isTested && report) requireAccepted(report);
    if (!known) return { report, account: undefined };
    const askPresent = () => askAccount(deps, definition, credentials);
    const { database } = deps;
    const account = await requireSameAccount({
      database,
      known,
      opened,
      present: present?.identity,
      report,
      askPresent,
      confirmSameAccount,
    });
    return { report, account };
  } finally {
    await opened.close();
  }
}

/** @returns undefined if a secret is missing. @throws ServiceError INVALID_PARAMETERS. */
function tryOpen(
  { openOne }: SecretDeps,
  definition: ConnectionConfig,
  credentials: Credentials,
): ProviderConnection | undefined {
  try {
    return openOne(definition, credentials);
  } catch (error) {
    if (!(error instanceof CatalogueError)) throw error;
    if (error.kind === 'SECRET_MISSING') return undefined;
    throw invalidField('value', 'INVALID_FORMAT', `cannot be used: ${error.message}`);
  }
}

/** Returns the account of a connection's present secrets; undefined if it cannot be opened with them. */
async function presentAccount(
  deps: SecretDeps,
  definition: ConnectionConfig,
  credentials: Credentials,
): Promise<ConnectionAccount | undefined> {
  const present = openPresent(deps, definition, credentials);
  if (!present) return undefined;
  await present.close();
  const { identity } = present;
  return { connectionId: definition.id, identity, laterIdentities: [], providerAccount: null };
}

async function askAccount(
  deps: SecretDeps,
  definition: ConnectionConfig,
  credentials: Credentials,
): Promise<string | undefined> {
  const present = openPresent(deps, definition, credentials);
  if (!present) return undefined;
  try {
    return accountOf(await present.readAccount());
  } finally {
    await present.close();
  }
}

/** Opens a connection with its present secrets; undefined if it cannot be opened. */
function openPresent(
  { openOne }: SecretDeps,
  definition: ConnectionConfig,
  credentials: Credentials,
): ProviderConnection | undefined {
  try {
    return openOne(definition, credentials);
  } catch {
    return undefined;
  }
}

function accountOf(report: AccountReport | undefined): string | undefined {
  return report?.result === 'ACCEPTED' ? report.account : undefined;
}

function requireAccepted(report: AccountReport): void {
  if (report.result === 'REFUSED') {
    const message = `the provider refuses the credentials (${report.detail}); nothing was stored; correct the value`;
    throw new ServiceError('CREDENTIALS_REFUSED', message);
  }
  if (report.result === 'UNREACHABLE') {
    const message = `the provider could not be asked (${report.detail}); nothing was stored; try again, or set test to false`;
    throw new ServiceError('CREDENTIALS_REFUSED', message);
  }
}

function requireUnneeded(
  { openOne }: SecretDeps,
  definition: ConnectionConfig,
  credentials: Credentials,
  name: string,
): void {
  const { id } = definition;
  let opened: ProviderConnection;
  try {
    opened = openOne(definition, withoutSecret(credentials, id, name));
  } catch (error) {
    if (!(error instanceof CatalogueError)) throw error;
    const message = `connection ${id} needs the secret ${name}; nothing was deleted; remove the connection first`;
    throw new ServiceError('SECRET_MISSING', message);
  }
  void opened.close();
  const account = credentials.accounts.get(id);
  if (!account || isOfAccount(account, opened.identity)) return;
  const message = `connection ${id}: the environment's ${name} is not known to belong to the same account; nothing was deleted; store the environment's value instead`;
  throw new ServiceError('CONNECTION_REPOINTED', message);
}

function auditedAction(action: string, { connectionId, name }: SecretName, actor: string, more = '') {
  const detail = more === '' ? name : `${name}; ${more}`;
  return { accountId: INSTALLATION, actor, action, subject: connectionId, detail };
}
