import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readDataConfig } from '#src/config.ts';
import { auditExport } from '#src/exports/audit-export.ts';
import {
  EXPORT_KINDS,
  type ExportKind,
  type ExportRequest,
  readExportRequest,
} from '#src/exports/export-request.ts';
import { describeTally, type OpenExport, openExport } from '#src/exports/open-export.ts';
import { renameDurably } from '#src/rename-durably.ts';
import { ServiceError } from '#src/service-error.ts';
import { actorOf } from './actor.ts';
import { withDatabase } from './command-database.ts';
import { type CommandIo, createCommand, parseArguments, runAsProcess, UsageError } from './command-line.ts';
import { explainFailure } from './explain-failure.ts';
import { createProgress, type Progress } from './progress.ts';

const USAGE = `Usage: npm run export -- ${EXPORT_KINDS.join('|')} month=<2026-09> [<parameter>=<value> …] [--directory <directory>]

Writes a CSV file of one account (account_id=…) or of all accounts, named by its period. The parameters are those of the
API (docs/api.md#exports), such as from and before instead of month, zone, currency or separator=semicolon, except
include: only keys get personal data.

The file has its name once it is whole; until then, the name ends with .part. The audit log has its rows and its sums.`;

async function main(argv: readonly string[], io: CommandIo): Promise<number> {
  const { positionals, values } = parseArguments(
    argv,
    { allowPositionals: true, options: { directory: { type: 'string', default: '.' } } },
    io.environment,
  );
  const asked = requestOf(positionals);
  const config = readDataConfig(io.environment);
  return withDatabase(config, io, async ({ database }) => {
    const file = await explained(openExport(database, asked));
    const audit = auditExport(database, file, { asked, actor: actorOf(config) });
    await audit.begun();
    const path = join(values.directory, file.fileName);
    const progress = createProgress(io.stderr);
    try {
      await write(`${path}.part`, file, progress);
      await audit.ended();
      renameDurably(`${path}.part`, path);
    } catch (error) {
      await rm(`${path}.part`, { force: true });
      await audit.brokeOff('it failed');
      throw error;
    }
    io.stdout.write(`${path}: ${describeTally(file.tally)}\n`);
    return 0;
  });
}

/** Writes a file to the disk, so that its owner alone can read it. */
async function write(path: string, { pieces, tally }: OpenExport, progress: Progress): Promise<void> {
  const file = await open(path, 'w', 0o600);
  try {
    for await (const piece of pieces()) {
      await file.writeFile(piece);
      progress.state(`${tally.rows} rows`);
    }
    await file.sync();
  } finally {
    progress.end();
    await file.close();
  }
}

function requestOf([kind = '', ...given]: readonly string[]): ExportRequest {
  if (!EXPORT_KINDS.some((known) => known === kind)) {
    throw new UsageError(`The first argument must be one of ${EXPORT_KINDS.join(', ')}.`);
  }
  const parameters = new Map<string, string>();
  for (const one of given) {
    const at = one.indexOf('=');
    const name = one.slice(0, at);
    if (at < 1) throw new UsageError('After the file, every argument must be <parameter>=<value>.');
    if (parameters.has(name)) throw new UsageError(`${name}: must be given once.`);
    if (name === 'include') throw new UsageError('include: is only for calls with a key.');
    parameters.set(name, one.slice(at + 1));
  }
  try {
    return readExportRequest(kind as ExportKind, Object.fromEntries(parameters));
  } catch (error) {
    throw usageError(error);
  }
}

async function explained<T>(opening: Promise<T>): Promise<T> {
  return opening.catch((error) => {
    throw usageError(error);
  });
}

/** Returns the refusal of a parameter as an error of the command line. */
function usageError(error: unknown): unknown {
  return error instanceof ServiceError ? new UsageError(`${error.message}.`) : error;
}

/** Runs the command. */
export const run = createCommand(USAGE, main, (error) => `No file: ${explainFailure(error)}`);

if (import.meta.main) await runAsProcess(run);
