import { create, type JsonValue, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { stringify } from 'yaml';
import { type Catalogue, CatalogueSchema } from '#gen/payments/v1/catalogue_pb.js';
import {
  type CatalogueChange,
  type CatalogueDryRun,
  type UpdateCatalogueRequest,
  UpdateCatalogueRequestSchema,
} from '#gen/payments/v1/configuration_service_pb.js';
import { CatalogueError } from '#src/catalogue/catalogue-error.ts';
import { emptyCatalogue } from '#src/catalogue/change-catalogue.ts';
import { changedFees } from '#src/catalogue/compare-catalogues.ts';
import { NO_CREDENTIALS, type ReadCredentials } from '#src/catalogue/credentials.ts';
import { findDoubts, type Surroundings } from '#src/catalogue/find-doubts.ts';
import type { OpenedCatalogue, VersionedCatalogue } from '#src/catalogue/open-catalogue.ts';
import type { PublishedCatalogue } from '#src/catalogue/publish-catalogue.ts';
import {
  checkCatalogueText,
  placeFaults,
  readCatalogue,
  readTextFile,
} from '#src/catalogue/read-catalogue.ts';
import { readCatalogueInForce, type StoredCatalogue, seedCatalogue } from '#src/catalogue/seed-catalogue.ts';
import { updateCatalogue } from '#src/catalogue/update-catalogue.ts';
import { type Config, ConfigError, readConfig } from '#src/config.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { listReplicas, listVersions } from '#src/store/tables/catalogue-versions.ts';
import { installationKeys } from '#src/vault/key-file.ts';
import { actorOf } from './actor.ts';
import { type CommandStorage, withDatabase } from './command-database.ts';
import { type CommandIo, createCommand, parseArguments, runAsProcess, UsageError } from './command-line.ts';
import { explainFailure } from './explain-failure.ts';
import { credentialsHere, openableHere, openHere } from './open-here.ts';
import { type NamedSecret, storeSecretHere } from './store-secret.ts';
import { table } from './table.ts';

const USAGE = `Usage: npm run catalogue -- <action>

  show                  who published the catalogue in force, when and why, and which version each process runs
  export                prints the catalogue in force as YAML, without any secret
  versions              the newest versions of the catalogue
  check <file>          every fault of a file, without a database
  diff <file>           what publishing a file would change, and every reason why it would be refused
  try <file>            diff, and which of the newest stored payments would take another way
  publish <file>        publishes a file; every replica puts it in force within two seconds
  undo <version>        publishes an earlier version again
  secret <connection> <name>   stores a secret, whose value is read from standard input

  --comment <text>             says why; required by publish and undo
  --expect <version>           publishes only if this version is in force
  --payments <number>          for try: number of payments, 1,000 unless set, at most 10,000
  --secrets-from-environment   lets the file name other variables of the environment than the version in force
  --keep-previous <seconds>    for secret: how long notifications may have the replaced value, a day unless set
  --no-test                    for secret: stores it without asking the provider
  --confirm-same-account       for secret: it belongs to the same account, if the provider does not tell

Run it in the service's environment. Exit code: 0 in force or nothing to do, 1 refused, 2 wrong command line, 3 another
version was published in the meantime.`;

const OPTIONS = {
  comment: { type: 'string' },
  expect: { type: 'string' },
  payments: { type: 'string' },
  'secrets-from-environment': { type: 'boolean', default: false },
  'keep-previous': { type: 'string' },
  'no-test': { type: 'boolean', default: false },
  'confirm-same-account': { type: 'boolean', default: false },
} as const;

const OPERANDS = {
  ...{ show: 0, export: 0, versions: 0, check: 1, diff: 1, try: 1, publish: 1, undo: 1, secret: 2 },
} as const;
type Action = keyof typeof OPERANDS;

/** Exit code for a publication that lost to another one. */
const LOST = 3;

async function main(argv: readonly string[], io: CommandIo): Promise<number> {
  const { positionals, values } = parseArguments(
    argv,
    { allowPositionals: true, options: OPTIONS },
    io.environment,
  );
  const [action = '', ...operands] = positionals;
  if (!Object.hasOwn(OPERANDS, action)) throw new UsageError('The first argument must be an action.');
  const wanted = OPERANDS[action as Action];
  if (operands.length !== wanted || operands.includes('')) {
    throw new UsageError(`${action} takes ${['no arguments', 'one argument', 'two arguments'][wanted]}.`);
  }
  const [operand = '', name = ''] = operands;
  if (action === 'check') return check(operand, io);
  const config = readConfig(io.environment);
  if (action === 'secret') {
    const secret = secretOf(operand, name, values);
    return withDatabase(config, io, (storage) => storeSecretHere(config, storage, io, secret));
  }
  const request = requestOf(action as Action, operand, values);
  return withDatabase(config, io, (storage) => {
    const here: Here = { config, storage, io };
    if (!request) return read(here, action as Action);
    const { 'secrets-from-environment': maySetSecrets } = values;
    return update(here, { file: operand, request, maySetSecrets });
  });
}

type Here = { readonly config: Config; readonly storage: CommandStorage; readonly io: CommandIo };
type Values = { readonly comment?: string; readonly expect?: string; readonly payments?: string };

type SecretValues = {
  readonly 'keep-previous'?: string;
  readonly 'no-test': boolean;
  readonly 'confirm-same-account': boolean;
};

/** Returns the change that an action makes; undefined if it only reads. @throws UsageError; CatalogueError. */
function requestOf(
  action: Action,
  operand: string,
  { comment = '', expect = '0', payments = '1000' }: Values,
): UpdateCatalogueRequest | undefined {
  const isPublishing = action === 'publish' || action === 'undo';
  if (isPublishing && comment === '') throw new UsageError('--comment is required.');
  const expectedVersion = versionOf('--expect', expect, 0);
  const dryRunPayments = action === 'try' ? paymentsOf(payments) : 0;
  const base = { comment, expectedVersion, validateOnly: !isPublishing, dryRunPayments };
  if (action === 'undo') {
    const change = { case: 'undoTo', value: versionOf('The version', operand, 1) } as const;
    return create(UpdateCatalogueRequestSchema, { ...base, change });
  }
  if (action !== 'publish' && action !== 'diff' && action !== 'try') return undefined;
  return create(UpdateCatalogueRequestSchema, {
    ...base,
    change: { case: 'yaml', value: readTextFile(operand) },
  });
}

function secretOf(connectionId: string, name: string, values: SecretValues): NamedSecret {
  const { 'keep-previous': keep, 'no-test': noTest, 'confirm-same-account': confirmSameAccount } = values;
  if (keep !== undefined && !/^\d{1,6}$/.test(keep))
    throw new UsageError('--keep-previous must be in seconds.');
  const keepPreviousS = keep === undefined ? undefined : Number(keep);
  return { connectionId, name, keepPreviousS, test: !noTest, confirmSameAccount };
}

function versionOf(what: string, text: string, least: number): number {
  const version = /^\d{1,9}$/.test(text) ? Number(text) : -1;
  if (version < least) throw new UsageError(`${what} must be the number of a version.`);
  return version;
}

function paymentsOf(text: string): number {
  const payments = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (payments < 1 || payments > 10_000) throw new UsageError('--payments must be from 1 to 10000.');
  return payments;
}

async function check(file: string, { environment, stdout }: CommandIo): Promise<number> {
  const text = readTextFile(file);
  const { catalogue, faults } = checkCatalogueText(text);
  printFaults(file, faults, stdout);
  if (!catalogue || faults.length > 0) return 1;
  const doubts = findDoubts(catalogue, await surroundingsHere(environment, catalogue));
  printFaults(file, placeFaults(text, doubts), stdout);
  stdout.write(`${file}: valid\n`);
  return 0;
}

/** Returns what the environment says about a catalogue; nothing if the service could not start in it. */
async function surroundingsHere(
  environment: CommandIo['environment'],
  catalogue: Catalogue,
): Promise<Surroundings> {
  try {
    const config = readConfig(environment);
    const connections = await openableHere(config, catalogue);
    // The database may have more secrets than the environment.
    return { connections, sandbox: config.sandbox, hasAllSecrets: config.catalogueFile !== undefined };
  } catch (error) {
    if (error instanceof ConfigError) return { connections: new Map(), sandbox: false, hasAllSecrets: false };
    throw error;
  }
}

async function read({ config, storage: { database }, io: { stdout } }: Here, action: Action) {
  if (action === 'versions') {
    const versions = (await listVersions(database, 100)).map((one) => [
      ...[String(one.version), one.source, one.publishedAt.toISOString(), one.actor, one.comment],
    ]);
    stdout.write(`${table([['version', 'source', 'published', 'by', 'comment'], ...versions])}\n`);
    return 0;
  }
  const { catalogueFile } = config;
  const published = catalogueFile === undefined ? await readInForce(database) : undefined;
  const catalogue = published?.catalogue ?? readCatalogue(catalogueFile ?? '');
  if (action === 'export') {
    stdout.write(yamlOf(catalogue));
    return 0;
  }
  const source = published ? describeVersion(published) : `${catalogueFile}, a file`;
  stdout.write(`${source}\n${sizesOf(catalogue)}\n`);
  for (const { name, version, fault } of published ? await listReplicas(database) : []) {
    stdout.write(`${name} runs version ${version}${fault === '' ? '' : `: ${fault}`}\n`);
  }
  return 0;
}

async function readInForce(
  database: Database,
  readCredentials: ReadCredentials = async () => NO_CREDENTIALS,
): Promise<StoredCatalogue> {
  const published = await readCatalogueInForce(database, readCredentials);
  if (!published) throw new CatalogueError('the database has none yet: start the service once');
  return published;
}

function describeVersion({ version, source, publishedAt, actor, comment }: PublishedCatalogue): string {
  const why = comment === '' ? '' : `: ${comment}`;
  return `version ${version} (${source}), published by ${actor} at ${publishedAt.toISOString()}${why}`;
}

function sizesOf({ paymentMethodTypes, connections, routes, bins }: Catalogue): string {
  return `${paymentMethodTypes.length} payment method types, ${connections.length} connections, ${routes.length} routes, ${bins.length} bins`;
}

function yamlOf(catalogue: Catalogue): string {
  return stringify(toJson(CatalogueSchema, catalogue, { useProtoFieldName: true }));
}

type Wanted = {
  readonly file: string;
  readonly request: UpdateCatalogueRequest;
  readonly maySetSecrets: boolean;
};

async function update(here: Here, { file, request, maySetSecrets }: Wanted): Promise<number> {
  const { config, storage, io } = here;
  const { database, dataDir } = storage;
  const { catalogueFile } = config;
  const fromFile = catalogueFile === undefined ? undefined : () => readCatalogue(catalogueFile);
  // A catalogue can be published before the service starts for the first time.
  const isFirst = !fromFile && !request.validateOnly;
  if (isFirst) await seedCatalogue(database, undefined, emptyCatalogue(), actorOf(config));
  const readHere = async (): Promise<VersionedCatalogue> =>
    fromFile
      ? { catalogue: fromFile(), version: 0 }
      : readInForce(database, credentialsHere(database, config, dataDir));
  const expectedVersion = request.expectedVersion || (await readHere()).version;
  const { hashKey } = installationKeys(config, dataDir);
  const keyed = { ...config, hashKey };
  const deps = {
    ...{ database, fromFile, connectors: CONNECTORS, connectionHosts: config.connectionHosts },
    sandbox: config.sandbox,
    // The secrets are read again each time: one that changed after the change began must not be missed.
    tryOpen: async (catalogue: Catalogue) => tryOpen(keyed, await readHere(), catalogue),
  };
  const publisher = {
    source: 'command',
    actor: actorOf(config),
    maySetSecrets,
    maySetAddresses: true,
  } as const;
  try {
    const answer = await updateCatalogue(deps, { ...request, expectedVersion }, publisher);
    const { version, faults, changes, dryRun } = answer;
    printFaults(file, faults, io.stdout);
    for (const change of changes) io.stdout.write(`${describeChange(change)}\n`);
    if (dryRun) io.stdout.write(dryRunText(dryRun));
    if (faults.some(({ severity }) => severity === 'ERROR')) return 1;
    if (version > 0) io.stdout.write(`version ${version} is published\n`);
    else if (changes.length === 0) io.stdout.write('nothing to do\n');
    return 0;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const text = request.change.case === 'yaml' ? request.change.value : '';
    if (error.reason === 'CATALOGUE_INVALID') {
      const faults = text === '' ? [] : checkCatalogueText(text).faults;
      printFaults(file, faults, io.stdout);
      // A valid catalogue may have settings or secrets with which a connection cannot be opened.
      const why = faults.length > 0 ? 'nothing was published; correct the faults' : error.message;
      io.stderr.write(`Not done (CATALOGUE_INVALID): ${why}\n`);
      return 1;
    }
    const faults = error.fields.map((fault) => ({ ...fault, severity: 'ERROR' }) as const);
    printFaults(file, placeFaults(text, faults), io.stdout);
    io.stderr.write(`Not done (${error.reason}): ${error.message}\n`);
    return error.reason === 'VERSION_CHANGED' ? LOST : 1;
  }
}

/** Opens a catalogue in the place of the one in force, if that one can be opened here, and closes both. */
async function tryOpen(
  config: Parameters<typeof openHere>[0],
  inForce: VersionedCatalogue,
  catalogue: Catalogue,
): Promise<OpenedCatalogue> {
  let before: OpenedCatalogue | undefined;
  try {
    before = openHere(config, inForce);
  } catch (error) {
    // A secret of the version in force may be gone, which is no fault of the new one.
    if (!(error instanceof CatalogueError)) throw error;
  }
  try {
    const tried = openHere(config, { ...inForce, catalogue }, before);
    await tried.close(before);
    return tried;
  } finally {
    await before?.close();
  }
}

/** Describes a dry run: one line for each group of payments that take another way. */
function dryRunText({ examined, unchanged, approximate, ...groups }: CatalogueDryRun): string {
  const [moved, refused, taken] = [groups.moved, groups.refusedNow, groups.takenNow].map((some) =>
    some.map(({ from, to, payments, amounts, samples }) => {
      const sums = amounts.map(({ currency, value }) => `${value?.value} ${currency}`);
      return [
        `${from || 'refused'} → ${to || 'refused'}`,
        String(payments),
        sums.join(', '),
        samples.join(' '),
      ];
    }),
  );
  const rows = [...(moved ?? []), ...(refused ?? []), ...(taken ?? [])];
  const head = `${examined} payments: ${unchanged} unchanged, ${examined - unchanged} take another way${approximate > 0 ? `, ${approximate} known only approximately` : ''}\n`;
  return rows.length === 0 ? head : `${head}${table([['way', 'payments', 'amounts', 'such as'], ...rows])}\n`;
}

function describeChange({ path, kind, before, after }: CatalogueChange): string {
  const json = (value: CatalogueChange['before']) => {
    const plain = value && toPlain(value);
    return plain === undefined
      ? ''
      : (changedFees(path, plain)?.replaceAll('\n', '; ') ?? JSON.stringify(plain));
  };
  if (kind === 'CHANGED') return `${kind} ${path}: ${json(before) || 'absent'} → ${json(after) || 'absent'}`;
  return `${kind} ${path}`;
}

function toPlain(value: NonNullable<CatalogueChange['before']>): JsonValue {
  return toJson(ValueSchema, value);
}

type Listed = Pick<
  ReturnType<typeof checkCatalogueText>['faults'][number],
  'path' | 'message' | 'line' | 'column'
> & {
  readonly severity: string;
};

/** Prints faults in the form that editors open: file:line:column. */
function printFaults(file: string, faults: readonly Listed[], stdout: CommandIo['stdout']): void {
  for (const { path, message, line, column, severity } of faults) {
    const position = line > 0 ? `${file}:${line}:${column}: ` : '';
    const field = path === '' ? '' : `${path}: `;
    stdout.write(`${position}${severity === 'ERROR' ? 'error' : 'warning'}: ${field}${message}\n`);
  }
}

/** Explains a failure. An unpublished catalogue is the one that the command line names. */
function explain(error: unknown): string {
  return error instanceof CatalogueError && error.version === 0 ? error.message : explainFailure(error);
}

/** Runs the command. */
export const run = createCommand(USAGE, main, (error) => `Not done: ${explain(error)}`);

if (import.meta.main) await runAsProcess(run);
