import { createHash } from 'node:crypto';
import {
  type ReadSettlement,
  SettlementFileError,
  type SettlementLine,
} from '#src/connectors/port/settlement-line.ts';
import { newId } from '#src/new-id.ts';
import type { Database } from '#src/store/engine/database.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { INSTALLATION } from '#src/store/tables/audit-log.ts';
import {
  addLines,
  beginFile,
  completeFile,
  deleteStoppedFiles,
  FETCHED,
  isImported,
  type NewSettlementFile,
  STOPPED_MINUTES,
} from '#src/store/tables/settlement-files.ts';

/** Limits on a file. */
export const FILE_LIMITS = { bytes: 4 * 1024 ** 3, lines: 10_000_000 };
/** Number of lines that a statement stores. */
const BATCH = 1_000;

/** Error for an import while another one for the same account at the provider is under way. */
export class ImportUnderWayError extends SettlementFileError {}

/** A connection whose provider's reports are imported. */
export type SettledConnection = {
  readonly id: string;
  /** The account at the provider, as its transactions have it. */
  readonly identity: string;
  readonly read: ReadSettlement;
  /** The account's only currency; undefined if it has several. */
  readonly currency: string | undefined;
};

/** A file to import, which is read twice. */
export type GivenFile = {
  readonly name: string;
  readonly open: () => AsyncIterable<Uint8Array>;
  /**
   * true: the provider's report on the period in its name. It may have no line, and it is another file than the report on another
   * period with the same content.
   */
  readonly isFetched?: true;
};

/** The lines of an imported file. */
export type ImportedFile = {
  readonly fileId: string;
  /** Lines that are new. */
  readonly added: number;
  /** Lines that an earlier file had. */
  readonly repeated: number;
};

/**
 * Imports a provider's report: all of it, or nothing. Its lines count once the last is stored, so an import that is
 * killed changes nothing; what it leaves is deleted by a later import or by age.
 *
 * @param options.actor for the audit log.
 * @param options.onProgress called after each batch, with the number of lines so far.
 * @returns 'already imported' for a file with the same content.
 * @throws SettlementFileError if the file is not what the connection's provider writes; ImportUnderWayError.
 */
export async function importSettlement(
  database: Database,
  connection: SettledConnection,
  given: GivenFile,
  options: { readonly actor: string; readonly onProgress?: (lines: number) => void },
): Promise<ImportedFile | 'already imported'> {
  const file: NewSettlementFile = {
    ...{ id: newId(NIL_UUID), connectionId: connection.id, connectionIdentity: connection.identity },
    ...{ name: nameOf(given), actor: options.actor, ...(await digest(given)) },
  };
  if (await isImported(database, file)) return 'already imported';
  await deleteStoppedFiles(database);
  if (!(await beginFile(database, file))) {
    const advice = `if it was killed, repeat in ${STOPPED_MINUTES} minutes`;
    throw new ImportUnderWayError(
      `another import for the same account at the provider is under way: ${advice}`,
    );
  }
  try {
    return await store(database, connection, given, file, options);
  } catch (error) {
    // What cannot be deleted now is deleted by age.
    await deleteStoppedFiles(database, file.id).catch(() => {});
    // Another replica may have imported it meanwhile.
    if (await isImported(database, file).catch(() => false)) return 'already imported';
    throw error;
  }
}

/** Returns the name to store. Only a fetched report has the name of one, which tells the next fetch where to begin. */
function nameOf({ name, isFetched }: GivenFile): string {
  const isLikeFetched = !isFetched && name.split(' ', 1)[0] === FETCHED;
  return (isLikeFetched ? `file ${name}` : name).slice(-255);
}

async function store(
  database: Database,
  connection: SettledConnection,
  given: GivenFile,
  file: NewSettlementFile,
  { actor, onProgress }: { readonly actor: string; readonly onProgress?: (lines: number) => void },
): Promise<ImportedFile> {
  let lines = 0;
  let added = 0;
  const add = async (batch: readonly SettlementLine[]) => {
    const more = await addLines(database, file, batch);
    if (more === undefined) throw new SettlementFileError('the import had stopped for too long: repeat it');
    added += more;
    lines += batch.length;
    if (lines > FILE_LIMITS.lines)
      throw new SettlementFileError(`the file has more than ${FILE_LIMITS.lines} lines`);
    onProgress?.(lines);
  };
  let batch: SettlementLine[] = [];
  for await (const line of connection.read(decoded(given.open()), { currency: connection.currency })) {
    batch.push(line);
    if (batch.length < BATCH) continue;
    await add(batch);
    batch = [];
  }
  if (batch.length > 0) await add(batch);
  if (lines === 0 && !given.isFetched) throw new SettlementFileError('the file has no line to import');
  const result = { fileId: file.id, added, repeated: lines - added };
  const detail = `${connection.id}: ${added} new lines, ${result.repeated} repeated`;
  const audited = { accountId: INSTALLATION, actor, action: 'import-settlement', subject: file.name, detail };
  if (!(await completeFile(database, file, result, audited))) {
    throw new SettlementFileError('the import had stopped for too long: repeat it');
  }
  return result;
}

/** Returns the size and the hash of a file. @throws SettlementFileError if it is too large. */
async function digest({
  name,
  open,
  isFetched,
}: GivenFile): Promise<Pick<NewSettlementFile, 'sha256' | 'bytes'>> {
  const hash = createHash('sha256');
  if (isFetched) hash.update(`${name}\n`);
  let bytes = 0;
  for await (const piece of open()) {
    hash.update(piece);
    bytes += piece.length;
    if (bytes > FILE_LIMITS.bytes)
      throw new SettlementFileError(`the file has more than ${FILE_LIMITS.bytes} bytes`);
  }
  return { sha256: hash.digest(), bytes };
}

async function* decoded(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  try {
    for await (const piece of pieces) yield decoder.decode(piece, { stream: true });
    yield decoder.decode();
  } catch (error) {
    if (error instanceof TypeError) throw new SettlementFileError('the file is not UTF-8 text');
    throw error;
  }
}
