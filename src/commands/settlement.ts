import { createReadStream, createWriteStream } from 'node:fs';
import { access } from 'node:fs/promises';
import { basename } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { openLedger } from '#sandbox/ledger.ts';
import { SANDBOX_ACCOUNT, writeSettlementReport } from '#sandbox/settlement-report.ts';
import type { OpenedCatalogue } from '#src/catalogue/open-catalogue.ts';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { readCatalogueInForce } from '#src/catalogue/seed-catalogue.ts';
import { type Config, readConfig } from '#src/config.ts';
import type { SettlementPeriod } from '#src/connectors/port/settlement-source.ts';
import { mayHoldCardNumber } from '#src/luhn.ts';
import { dayOf, fetchNew, fetchPeriod } from '#src/settlement/fetch-settlement.ts';
import { FILE_LIMITS, type ImportedFile, importSettlement } from '#src/settlement/import-settlement.ts';
import { type MatchCounts, matchSettlement } from '#src/settlement/match-settlement.ts';
import { type SettledAccount, settledConnection } from '#src/settlement/settled-connection.ts';
import type { Database } from '#src/store/engine/database.ts';
import {
  decideDifference,
  listDifferences,
  type StoredDifference,
} from '#src/store/tables/settlement-differences.ts';
import { installationKeys } from '#src/vault/key-file.ts';
import { actorOf } from './actor.ts';
import { type CommandStorage, withDatabase } from './command-database.ts';
import { type CommandIo, createCommand, parseArguments, runAsProcess, UsageError } from './command-line.ts';
import { explainFailure } from './explain-failure.ts';
import { credentialsHere, openHere } from './open-here.ts';
import { createProgress } from './progress.ts';

const USAGE = `Usage: npm run settlement -- <action> --connection <id>

  import <file>                        imports a report of the connection's provider, all of it or nothing, and finds the
                                       transactions that its lines settle
  fetch [--from <day> --before <day>]  fetches the report at Stripe and imports it as if it were a file; days as in
                                       2026-09-30 (UTC), --before exclusive; without them, the days not fetched yet
  match                                searches the lines of unknown payments again, and compares unexpected fees again,
                                       all of them
  sandbox-report <file>                writes the report of a connection to the sandbox
  differences                          what reports say differently from the record, unresolved first
  resolve <kind> <subject> --note <why>   ends the work on a difference; a change of its amounts opens it again
  reopen <kind> <subject> --note <why>

Files and lines that were imported before change nothing. The reports: Stripe's payout_reconciliation.itemized, Adyen's
settlement details report, the answers of PayPal's Transaction Search, Mercado Pago's release and settlement reports, and
the sandbox's (docs/finance.md).

Run it in the service's environment. Exit code: 0 done or nothing to do, 1 refused, 2 wrong command line, 3 the provider
settled a payment that the record has as unsuccessful or open.`;

const OPERANDS = {
  ...{ import: 1, fetch: 0, match: 0, 'sandbox-report': 1, differences: 0, resolve: 2, reopen: 2 },
} as const;
const IMPORTS: ReadonlySet<string> = new Set(['import', 'fetch']);
/** Maximum number of differences that are printed, from each node of a distributed database. */
const MAX_LISTED = 1_000;
const STATUS_DIFFERS = 3;

async function main(argv: readonly string[], io: CommandIo): Promise<number> {
  const { action, first, second, connection, note, period } = readArguments(argv, io);
  if (action === 'import') {
    await access(first).catch((error: NodeJS.ErrnoException) => {
      throw new UsageError(`${first} cannot be read (${error.code}).`);
    });
  }
  const config = readConfig(io.environment);
  return withDatabase(config, io, async (storage) => {
    if (action === 'import') return importHere(config, storage, io, { path: first, connection });
    if (action === 'fetch') return fetchHere(config, storage, io, { period, connection });
    if (action === 'match') return matchHere(config, storage, io, connection);
    if (action === 'sandbox-report') return writeReport(config, storage, { path: first, connection });
    const catalogue = await openInForce(config, storage);
    const { account } = await connectionOf(catalogue, connection).finally(() => catalogue.close());
    const found = await listDifferences(storage.database, account, MAX_LISTED);
    if (action === 'differences') return printDifferences(found, io);
    const decision = {
      identity: account.identity,
      isResolved: action === 'resolve',
      actor: actorOf(config),
      note,
    };
    const one = found.find(({ kind, subject }) => kind === first && subject === second);
    if (one && (await decideDifference(storage.database, one, decision))) return 0;
    io.stderr.write(`Nothing was done: there is no difference ${first} ${second}\n`);
    return 1;
  });
}

function readArguments(argv: readonly string[], io: CommandIo) {
  const text = { type: 'string' } as const;
  const options = { connection: text, note: text, from: text, before: text };
  const { positionals, values } = parseArguments(argv, { allowPositionals: true, options }, io.environment);
  const [action = '', ...operands] = positionals;
  if (!Object.hasOwn(OPERANDS, action)) throw new UsageError('The first argument must be an action.');
  const wanted = OPERANDS[action as keyof typeof OPERANDS];
  if (operands.length !== wanted) throw new UsageError(`${action} takes ${wanted} arguments.`);
  const [first = '', second = ''] = operands;
  const { connection, note = '' } = values;
  if (connection === undefined) throw new UsageError('--connection is required.');
  if (wanted === 2 && (note === '' || note.length > 900)) {
    throw new UsageError('--note is required, of at most 900 characters.');
  }
  if (mayHoldCardNumber(note)) throw new UsageError('--note must not contain what may be a card number.');
  const [from, before] = [dayIn('--from', values.from), dayIn('--before', values.before)];
  if (action !== 'fetch' && (from || before)) throw new UsageError('--from and --before are for fetch.');
  if (!from !== !before) throw new UsageError('--from and --before go together.');
  if (from && before && from >= before) throw new UsageError('--from must be earlier than --before.');
  const period = from && before && { from, before };
  return { action, first, second, connection, note, period };
}

function dayIn(option: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const day = new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? text : Number.NaN);
  if (!Number.isNaN(day.getTime()) && dayOf(day) === text) return day;
  throw new UsageError(`${option} must be a day, as in 2026-09-30.`);
}

function printDifferences(found: readonly StoredDifference[], { stdout }: CommandIo): number {
  for (const { kind, subject, paymentId, detail, openedAt, resolvedAt } of found) {
    const state = resolvedAt ? 'resolved' : 'open';
    const payment = paymentId === undefined ? '' : `, payment ${paymentId}`;
    stdout.write(`${openedAt.toISOString()} ${state} ${kind} ${subject}: ${detail}${payment}\n`);
  }
  if (found.length === 0) stdout.write('no differences\n');
  return 0;
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
  const counts = await matchStored(database, account);
  io.stdout.write(`${file.name}: ${linesInWords(result)}; ${inWords(counts)}\n`);
  return printAlarms(database, account, io);
}

function linesInWords(result: ImportedFile | 'already imported'): string {
  if (result === 'already imported') return 'it was imported before';
  return `${result.added} new lines, ${result.repeated} repeated`;
}

async function fetchHere(
  config: Config,
  storage: CommandStorage,
  io: CommandIo,
  { connection: id, period }: { readonly connection: string; readonly period: SettlementPeriod | undefined },
): Promise<number> {
  const { database } = storage;
  const catalogue = await openInForce(config, storage);
  try {
    const { settled, account, source } = await connectionOf(catalogue, id);
    if (!source) {
      const { connector } = catalogue.catalogue.connections.find((one) => one.id === id) ?? {};
      const advice = `download the report and run: npm run settlement -- import <file> --connection ${id}`;
      throw new UsageError(`--connection: the reports of ${connector} are files: ${advice}`);
    }
    const options = { actor: actorOf(config) };
    const fetched = period
      ? [await fetchPeriod(database, settled, source, period, options)]
      : fetchNew(database, settled, source, options);
    let reports = 0;
    for await (const { period: days, result } of fetched) {
      io.stdout.write(`${dayOf(days.from)} to ${dayOf(days.before)} (exclusive): ${linesInWords(result)}\n`);
      reports += 1;
    }
    if (reports === 0) io.stdout.write('all that the provider has completed was fetched before\n');
    io.stdout.write(`${inWords(await matchStored(database, account))}\n`);
    return await printAlarms(database, account, io);
  } finally {
    await catalogue.close();
  }
}

async function matchHere(
  config: Config,
  storage: CommandStorage,
  io: CommandIo,
  id: string,
): Promise<number> {
  const { database } = storage;
  const catalogue = await openInForce(config, storage);
  const { account } = await connectionOf(catalogue, id).finally(() => catalogue.close());
  const counts = await matchStored(database, account, { again: FILE_LIMITS.lines });
  io.stdout.write(`${inWords(counts)}\n`);
  return printAlarms(database, account, io);
}

/** The lines are stored, but not all are matched. */
class UnmatchedError extends Error {}

/** Matches the stored lines. @throws UnmatchedError */
async function matchStored(
  database: Database,
  account: SettledAccount,
  options?: { readonly again: number },
): Promise<MatchCounts> {
  try {
    return await matchSettlement(database, account, options);
  } catch (cause) {
    throw new UnmatchedError('not all lines are matched', { cause });
  }
}

function inWords({ matched, unmatched, ambiguous }: MatchCounts): string {
  return `${matched} matched, ${unmatched} of unknown payments, ${ambiguous} ambiguous`;
}

/** Prints the payments that were settled against the record. @returns the exit code. */
async function printAlarms(database: Database, account: SettledAccount, io: CommandIo): Promise<number> {
  const alarming = (await listDifferences(database, account, MAX_LISTED)).filter(
    ({ kind, resolvedAt }) => kind === 'status_differs' && !resolvedAt,
  );
  if (alarming.length === 0) return 0;
  io.stderr.write('ALARM: the provider settled payments that the record has as unsuccessful or open:\n');
  printDifferences(alarming, { ...io, stdout: io.stderr });
  return STATUS_DIFFERS;
}

/** Writes the report that the mounted sandbox provider has for a connection. */
async function writeReport(
  config: Config,
  storage: CommandStorage,
  asked: { readonly path: string; readonly connection: string },
): Promise<number> {
  const opened = await openInForce(config, storage);
  await opened.close();
  const definition = opened.catalogue.connections.find(({ id }) => id === asked.connection);
  if (definition?.connector !== 'sandbox') {
    throw new UsageError(`--connection: ${asked.connection} is no connection to the sandbox.`);
  }
  const { acquirer = SANDBOX_ACCOUNT.acquirer, account_id = SANDBOX_ACCOUNT.account } =
    definition.settings ?? {};
  const ledger = openLedger(storage.url);
  try {
    const of = { acquirer: String(acquirer), account: String(account_id) };
    await pipeline(writeSettlementReport(ledger, of), createWriteStream(asked.path));
  } finally {
    await ledger.close();
  }
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

async function connectionOf(opened: OpenedCatalogue, id: string) {
  const found = settledConnection(opened, id);
  if (found === 'no such connection') {
    throw new UsageError(`--connection: there is no connection ${id} in the catalogue in force.`);
  }
  if (found === 'no reports') {
    throw new UsageError(`--connection: the reports of the provider of ${id} cannot be imported.`);
  }
  return found;
}

/** Runs the command. */
export const run = createCommand(USAGE, main, (error, [action = '']) => {
  if (error instanceof UnmatchedError)
    return `The lines are stored, but not all are matched: ${explainFailure(error.cause)}. A running service goes on within two minutes; without one, run: npm run settlement -- match --connection <id>`;
  const failed = IMPORTS.has(action) ? 'Nothing was imported' : `${action} failed`;
  return `${failed}: ${explainFailure(error)}`;
});

if (import.meta.main) await runAsProcess(run);
