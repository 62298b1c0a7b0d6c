import { hostname } from 'node:os';
import { equals } from '@bufbuild/protobuf';
import type { Logger } from 'pino';
import { type Catalogue, CatalogueSchema } from '#gen/payments/v1/catalogue_pb.js';
import { describeError } from '#src/api/describe-error.ts';
import { LOG_SERIALIZERS } from '#src/api/error-handler.ts';
import { emptyCatalogue } from '#src/catalogue/change-catalogue.ts';
import { createCredentialsReader } from '#src/catalogue/credentials.ts';
import { followCatalogue } from '#src/catalogue/follow-catalogue.ts';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { fileStamp, startReloading } from '#src/catalogue/reload-catalogue.ts';
import { readCatalogueInForce, seedCatalogue } from '#src/catalogue/seed-catalogue.ts';
import { actorOf } from '#src/commands/actor.ts';
import { readArguments } from '#src/commands/command-line.ts';
import { explainFailure } from '#src/commands/explain-failure.ts';
import { createLog, createLogWriter } from '#src/observe/log-writer.ts';
import { describeUnaskable } from '#src/payments/check/open-outcomes.ts';
import { type BinTable, createBinTable } from '#src/payments/method/bin-table.ts';
import { resolveDataDir } from '#src/postgres/data-dir.ts';
import { startEmbeddedPostgres } from '#src/postgres/embedded-postgres.ts';
import { checkKeys } from '#src/server/check-keys.ts';
import { addSandboxFixtures, SANDBOX_ACCOUNT } from '#src/server/sandbox-fixtures.ts';
import { openDatabase, PATIENT_CONNECT_MS } from '#src/store/engine/database.ts';
import { assertDurable } from '#src/store/engine/durability.ts';
import { compareSchema, MIGRATIONS, migrate } from '#src/store/engine/migrate.ts';
import { assertDirect, assertPooler } from '#src/store/engine/pooler.ts';
import { countSandboxKeys } from '#src/store/tables/accounts.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { hashKeys, installationKeys } from '#src/vault/key-file.ts';
import { startWorkers, WorkerFailedError } from '#src/workers/start-workers.ts';
import { connectionsOfWorker, type Storage } from '#src/workers/storage.ts';
import { type Parent, parentOfWorker } from '#src/workers/worker.ts';
import { CHECKOUT_DIR, type Config, readConfig, SANDBOX_CATALOGUE, SANDBOX_OPERATOR_KEY } from './config.ts';

const USAGE = `Usage: npm start

Starts the service. It takes no options: its settings are environment variables, which docs/configuration.md lists.`;

const SANDBOX_KEYS_REFUSED =
  'this database has the sandbox’s accounts, whose keys are public knowledge; they are refused, since SANDBOX is off. Revoke them for good with: npm run account -- close-sandbox';

/** Time limit for all steps after the drain, in case a database does not respond, for example. */
const END_MARGIN_MS = 15_000;

/** Time limit for the log's reader to accept the last lines. */
const LOG_MS = 2_000;
const logWriter = createLogWriter();

/*
 * Small buffers share a block, which stays in memory as long as one of them is used. With Node's blocks of 64 KiB, a
 * payment that waits for its provider kept three times as much memory.
 */
Buffer.poolSize = 8 * 1024;

/** The functions that undo completed steps when the process ends, in reverse order. */
const ending: (() => Promise<void>)[] = [];

/** Set if this process is a worker of another process of this program. */
const parent: Parent | undefined = parentOfWorker();

let config: Config | undefined;
let ended: Promise<never> | undefined;
const starting = start();

async function start(): Promise<void> {
  if (!parent) readArguments(USAGE, {});
  try {
    config = readConfig();
    await serve(config);
  } catch (error) {
    // The worker itself has already reported why it failed.
    if (!(error instanceof WorkerFailedError)) console.error(`Cannot start: ${explainFailure(error)}`);
    await end(1);
  }
}

/** Starts everything and returns. The process runs until a signal. */
async function serve(config: Config): Promise<void> {
  const base = parent ? { worker: process.pid } : null;
  const log = createLog({ level: config.logLevel, serializers: LOG_SERIALIZERS, base }, logWriter);
  onSignals(log);
  if (parent) {
    const { address, warnings } = await serveHere(config, await parent.storage(), log);
    parent.serving(address, warnings);
    return;
  }
  // An unreadable catalogue must stop the start before anything else has begun.
  const fromFile = config.catalogueFile === undefined ? undefined : readCatalogue(config.catalogueFile);
  const ofSandbox = config.sandbox ? readCatalogue(SANDBOX_CATALOGUE) : undefined;
  const storage = await openStorage(config, log);
  const withFixtures = config.sandbox && storage.dataDir !== undefined;
  const fixtureBins = withFixtures ? createBinTable((fromFile ?? ofSandbox)?.bins ?? []) : undefined;
  const { sandboxKeys } = await prepareDatabase(config, storage, log, { fixtureBins, ofSandbox });
  const { address, warnings } =
    config.workers > 1 ? await serveByWorkers(config, storage, log) : await serveHere(config, storage, log);
  console.error(`Payments service: ${address} (REST at /v1/payments, Connect, gRPC, gRPC-Web)`);
  if (config.workers > 1) console.error(`Workers: ${config.workers} processes`);
  for (const warning of warnings) console.error(`Warning: ${warning}`);
  if (!config.sandbox && sandboxKeys > 0) console.error(`Warning: ${SANDBOX_KEYS_REFUSED}`);
  console.error(`Catalogue: ${config.catalogueFile ?? 'in the database (npm run catalogue)'}`);
  console.error(`Data: ${storage.dataDir ?? 'the database at DATABASE_URL'}`);
  if (config.homePage) console.error(`Home page: ${address}/`);
  if (config.sandbox) console.error('Sandbox provider: mounted (no real money moves)');
  if (withFixtures) console.error(`Sandbox account: ${SANDBOX_ACCOUNT.id}, keys ${SANDBOX_ACCOUNT.keys}`);
  if (config.dashboard) console.error(`Dashboard: ${address}/dashboard`);
  if (config.operatorKeys.includes(SANDBOX_OPERATOR_KEY)) {
    console.error(`Sandbox operator key: ${SANDBOX_OPERATOR_KEY}`);
  }
}

/**
 * Checks and migrates the database.
 *
 * @param sandbox.fixtureBins the issuers of the sandbox's fixtures; undefined adds no fixtures.
 * @param sandbox.ofSandbox the sandbox's catalogue, if it is mounted.
 * @returns the number of valid keys of the sandbox's accounts.
 */
async function prepareDatabase(
  config: Config,
  { databaseUrl, keys }: Storage,
  log: Logger,
  sandbox: { readonly fixtureBins: BinTable | undefined; readonly ofSandbox: Catalogue | undefined },
): Promise<{ readonly sandboxKeys: number }> {
  const forStart = { maxConnections: 1, connectTimeoutMs: PATIENT_CONNECT_MS, log };
  const directUrl = config.databaseDirectUrl;
  const database = openDatabase({ ...forStart, url: databaseUrl, isPooled: directUrl !== undefined });
  const direct = directUrl ? openDatabase({ ...forStart, url: directUrl }) : database;
  try {
    await assertDirect(direct);
    if (directUrl) await assertPooler({ url: databaseUrl, log });
    const unavailable = await assertDurable(database, config.allowUnsafeDatabase);
    if (unavailable.length > 0)
      log.warn({ nodes: unavailable }, 'database nodes are unavailable; they are asked when they return');
    await migrate(direct, MIGRATIONS);
    const { later } = await compareSchema(direct, MIGRATIONS);
    if (later.length > 0)
      log.warn({ migrations: later }, 'a later release has migrated the database; this release continues');
    await checkKeys(database, keys);
    if (config.catalogueFile === undefined) {
      await seedCatalogue(database, sandbox.ofSandbox, emptyCatalogue(), actorOf(config));
    }
    if (sandbox.fixtureBins) {
      const { fingerprintKey } = hashKeys(keys.hashKey);
      const { displayName } = SANDBOX_ACCOUNT;
      const vault = cardVault(keys.vaultKeys);
      const { fixtureBins: bins } = sandbox;
      await addSandboxFixtures(database, { vault, fingerprintKey, bins, displayName });
    }
    return { sandboxKeys: await countSandboxKeys(database) };
  } finally {
    await database.close();
    if (direct !== database) await direct.close();
  }
}

type Serving = { readonly address: string; readonly warnings: readonly string[] };

/** Serves requests from this process. */
async function serveHere(config: Config, storage: Storage, log: Logger): Promise<Serving> {
  const { catalogueFile } = config;
  const readAt = catalogueFile === undefined ? undefined : fileStamp(catalogueFile);
  const fromFile = catalogueFile === undefined ? undefined : readCatalogue(catalogueFile);
  const { keys, databaseUrl } = storage;
  const database = openDatabase({
    url: databaseUrl,
    maxConnections: connectionsOfWorker(config.databaseMaxConnections, config.workers),
    isPooled: config.databaseDirectUrl !== undefined,
    log,
  });
  ending.push(() => database.close());
  const readCredentials = createCredentialsReader(database, cardVault(keys.vaultKeys));
  const catalogue = fromFile
    ? { catalogue: fromFile, version: 0 }
    : await readCatalogueInForce(database, readCredentials);
  // The first process publishes one before it starts the others.
  if (!catalogue) throw new Error('the database has no catalogue');
  // Loaded only here, since the parent of workers does not need it.
  const { createServer } = await import('#src/server/server.ts');
  const server = await createServer({
    config,
    catalogue,
    keys,
    database,
    databaseUrl: config.databaseDirectUrl ?? databaseUrl,
    log,
    ...(parent && { parent }),
  });
  ending.push(() => server.close());
  const address = await server.listen();
  const { replaceCatalogue, reloaded } = server;
  if (catalogueFile === undefined && 'revision' in catalogue) {
    const replica = `${hostname()} ${process.pid} ${new Date().toISOString()}`;
    const following = followCatalogue({
      ...{ database, replica, readCredentials, reloaded },
      started: catalogue,
      replace: replaceCatalogue,
    });
    ending.push(() => following.stop());
  } else if (catalogueFile !== undefined) {
    let inForce = catalogue.catalogue;
    const replace = (changed: Catalogue) => {
      replaceCatalogue({ catalogue: changed, version: 0 });
      const isChanged = !equals(CatalogueSchema, changed, inForce);
      inForce = changed;
      for (const doubt of isChanged ? server.doubts() : []) log.warn({ doubt }, 'the catalogue is doubtful');
    };
    const stopReloading = startReloading({ file: catalogueFile, readAt, replace, reloaded });
    ending.push(async () => stopReloading());
  }
  const doubts = fromFile ? server.doubts() : [];
  return { address, warnings: [...doubts, ...server.unaskable().map(describeUnaskable)] };
}

/** Serves requests from worker processes. */
async function serveByWorkers(config: Config, storage: Storage, log: Logger): Promise<Serving> {
  const workers = await startWorkers({ count: config.workers, storage, log });
  process.on('SIGHUP', workers.reload);
  ending.push(async () => {
    if (!(await workers.stop())) throw new WorkerFailedError('a worker did not exit cleanly');
  });
  return workers;
}

/** Returns the configured database with its keys, or starts an embedded one. */
async function openStorage(config: Config, log: Logger): Promise<Storage> {
  const { databaseUrl, vaultKeys, hashKey } = config;
  if (databaseUrl && vaultKeys && hashKey) return { databaseUrl, keys: { vaultKeys, hashKey } };
  const dataDir = resolveDataDir({ explicit: config.dataDir, checkoutDir: CHECKOUT_DIR });
  // Without its database, the service can only respond with 503; a supervisor can start it anew.
  const lost = () => void starting.then(() => end(1));
  const postgres = await startEmbeddedPostgres({ dataDir, log, lost });
  ending.push(() => postgres.stop());
  return {
    databaseUrl: postgres.url,
    dataDir: postgres.dataDir,
    keys: installationKeys(config, postgres.dataDir),
  };
}

function onSignals(log: Logger): void {
  let asked = false;
  // Once a catalogue is in force, this signal reloads it. Until then, the signal must not end the process, as it would
  // by default.
  process.on('SIGHUP', () => {});
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (asked) return;
      asked = true;
      log.info({ signal }, 'draining');
      // First completes a start in progress: an interrupted start would leave things behind.
      void starting.then(() => end(0));
    });
  }
  process.on('unhandledRejection', (error) => {
    log.fatal({ err: error }, 'unhandled rejection');
    void end(1);
  });
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'uncaught exception');
    void end(1);
  });
}

/** Undoes the completed steps, then exits. Only the first call counts. */
function end(code: number): Promise<never> {
  ended ??= undoAll(code);
  return ended;
}

async function undoAll(code: number): Promise<never> {
  let exitCode = code;
  const giveUp = () => {
    console.error('The shutdown took too long and was cut short; the next start recovers.');
    process.exit(1);
  };
  setTimeout(giveUp, (config?.drainTimeoutMs ?? 0) + END_MARGIN_MS).unref();
  for (const undo of ending.splice(0).reverse()) {
    try {
      await undo();
    } catch (error) {
      console.error(JSON.stringify(describeError(error)));
      exitCode = 1;
    }
  }
  if (!(await logWriter.end(LOG_MS))) {
    console.error('The last lines of the log were lost: the reader did not accept them in time.');
    // A hanging write would prevent an orderly exit.
    process.kill(process.pid, 'SIGKILL');
  }
  process.exit(exitCode);
}
