import { createReadStream } from 'node:fs';
import { access } from 'node:fs/promises';
import { basename } from 'node:path';
import type { OpenedCatalogue } from '#src/catalogue/open-catalogue.ts';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { readCatalogueInForce } from '#src/catalogue/seed-catalogue.ts';
import { type Config, readConfig } from '#src/config.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { importSettlement, type SettledConnection } from '#src/settlement/import-settlement.ts';
import { matchSettlement, type SettledAccount } from '#src/settlement/match-settlement.ts';
import { installationKeys } from '#src/vault/key-file.ts';
import { actorOf } from './actor.ts';
import { type CommandStorage, withDatabase } from './command-database.ts';
import { type CommandIo, createCommand, parseArguments, runAsProcess, UsageError } from './command-line.ts';
import { explainFailure } from './explain-failure.ts';
import { credentialsHere, openHere } from './open-here.ts';
import { createProgress } from './progress.ts';

const USAGE = `Usage: npm run settlement -- import <file> --connection <id>

Imports a settlement report of the connection's provider, all of it or nothing, and finds the transactions that its
lines settle. Files and lines that were imported before change nothing. The reports: Stripe's
payout_reconciliation.itemized, Adyen's settlement details report, the answers of PayPal's Transaction Search, and Mercado
Pago's release and settlement reports (docs/finance.md).

Run it in the service's environment. Exit code: 0 imported or nothing to do, 1 refused, 2 wrong command line.`;

async function main(argv: readonly string[], io: CommandIo): Promise<number> {
  const { positionals, values } = parseArguments(
    argv,
    { allowPositionals: true, options: { connection: { type: 'string' } } },
    io.environment,
  );
  const [action, path, ...more] = positionals;
  if (action !== 'import' || path === undefined || more.length > 0) {
    throw new UsageError('The arguments must be import and one file.');
  }
  const { connection } = values;
  if (connection === undefined) throw new UsageError('--connection is required.');
  await access(path).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${path} cannot be read (${error.code}).`);
  });
  const config = readConfig(io.environment);
  return withDatabase(config, io, (storage) => importHere(config, storage, io, { path, connection }));
}

async function importHere(
  config: Config,
  storage: CommandStorage,
  io: CommandIo,
  asked: { readonly path: string; readonly connection: string },
): Promise<number> {
  const { database } = storage;
  const catalogue = await openInForce(config, storage);
  const { settled, account } = await connectionOf(catalogue, asked.connection).finally(() =>
    catalogue.close(),
  );
  const progress = createProgress(io.stderr);
  const file = { name: basename(asked.path), open: () => createReadStream(asked.path) };
  const onProgress = (lines: number) => progress.state(`${lines} lines`);
  const result = await importSettlement(database, settled, file, {
    actor: actorOf(config),
    onProgress,
  }).finally(() => progress.end());
  const counts = await matchSettlement(database, account);
  const imported =
    result === 'already imported'
      ? 'it was imported before'
      : `${result.added} new lines, ${result.repeated} repeated`;
  const { matched, unmatched, ambiguous } = counts;
  io.stdout.write(
    `${file.name}: ${imported}; ${matched} matched, ${unmatched} of unknown payments, ${ambiguous} ambiguous\n`,
  );
  return 0;
}

/** Opens the catalogue in force as the service does. It calls no provider. */
async function openInForce(config: Config, { database, dataDir }: CommandStorage): Promise<OpenedCatalogue> {
  const { hashKey } = installationKeys(config, dataDir);
  const stored =
    config.catalogueFile === undefined
      ? await readCatalogueInForce(database, credentialsHere(database, config, dataDir))
      : { catalogue: readCatalogue(config.catalogueFile), version: 0 };
  if (!stored) throw new UsageError('The database has no catalogue yet: start the service once.');
  return openHere({ ...config, hashKey }, stored);
}

async function connectionOf(
  { catalogue, connections }: OpenedCatalogue,
  id: string,
): Promise<{ readonly settled: SettledConnection; readonly account: SettledAccount }> {
  const definition = catalogue.connections.find((one) => one.id === id);
  const connection = connections.get(id);
  if (!definition || !connection) {
    throw new UsageError(`--connection: there is no connection ${id} in the catalogue in force.`);
  }
  const read = CONNECTORS.find(({ name }) => name === definition.connector)?.readSettlement;
  if (!read) throw new UsageError(`--connection: reports of ${definition.connector} cannot be imported.`);
  const { identity, accountCurrency: currency } = connection;
  const sameAccount = [...connections].filter(([, other]) => other.identity === identity);
  return {
    settled: { id, identity, read, currency },
    account: { identity, connectionIds: sameAccount.map(([other]) => other) },
  };
}

/** Runs the command. */
export const run = createCommand(USAGE, main, (error) => `Nothing was imported: ${explainFailure(error)}`);

if (import.meta.main) await runAsProcess(run);
