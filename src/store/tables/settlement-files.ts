import type { SettlementLine } from '#src/connectors/port/settlement-line.ts';
import { type Database, queriesOf } from '../engine/database.ts';
import { NIL_UUID } from '../engine/rows.ts';
import { type AuditedAction, recordAction } from './audit-log.ts';
import { countImport } from './settlement-progress.ts';

/** Minutes after which an import that wrote nothing counts as stopped. */
export const STOPPED_MINUTES = 5;
/** Number of rows that a statement deletes. */
const DELETED_AT_ONCE = 5_000;
const TIMEOUT_MS = 30_000;

/** A file that is about to be imported. */
export type NewSettlementFile = {
  readonly id: string;
  readonly connectionId: string;
  readonly connectionIdentity: string;
  readonly name: string;
  readonly sha256: Uint8Array;
  readonly bytes: number;
  readonly actor: string;
};

const IS_IMPORTED = {
  name: 'is_settlement_file_imported',
  text: `
    SELECT 1 AS one FROM settlement_file
    WHERE account_id = $1 AND connection_identity = $2 AND sha256 = $3 AND completed_at IS NOT NULL`,
};

/** Returns true if a file with this content was imported for the same account at the provider. */
export async function isImported(
  database: Database,
  { connectionIdentity, sha256 }: Pick<NewSettlementFile, 'connectionIdentity' | 'sha256'>,
): Promise<boolean> {
  return (await database.query(IS_IMPORTED, [NIL_UUID, connectionIdentity, sha256])).rows.length > 0;
}

/** The first word of the name of a fetched report, which the first day of its period follows, and the day after its last. */
export const FETCHED = 'fetched';

const LAST_FETCHED = {
  name: 'last_fetched_settlement_file',
  text: `
    SELECT max(split_part(name, ' ', 3)) AS before FROM settlement_file
    WHERE account_id = $1 AND connection_identity = $2 AND completed_at IS NOT NULL AND split_part(name, ' ', 1) = $3`,
};

/** Returns the end of the days of which an account's reports were fetched; undefined if none was. */
export async function lastFetched(database: Database, identity: string): Promise<Date | undefined> {
  const values = [NIL_UUID, identity, FETCHED];
  const { rows } = await database.query<{ before: string | null }>(LAST_FETCHED, values);
  const before = rows[0]?.before;
  return before ? new Date(before) : undefined;
}

const BEGIN = {
  name: 'begin_settlement_file',
  text: `
    INSERT INTO settlement_file (account_id, id, connection_id, connection_identity, name, sha256, bytes, actor)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT DO NOTHING RETURNING id`,
};

/** Begins an import. @returns false if another one for the same account at the provider is under way. */
export async function beginFile(database: Database, file: NewSettlementFile): Promise<boolean> {
  const { id, connectionId, connectionIdentity, name, sha256, bytes, actor } = file;
  const values = [NIL_UUID, id, connectionId, connectionIdentity, name, sha256, bytes, actor];
  return (await database.query(BEGIN, values)).rows.length > 0;
}

// The lock on the file's row keeps its lines from being taken away meanwhile.
const TOUCH = `
  UPDATE settlement_file SET seen_at = now() WHERE account_id = $1 AND id = $2 AND completed_at IS NULL RETURNING id`;

const COLUMNS = {
  connection_identity: 'text',
  line_key: 'text',
  connection_id: 'text',
  file_id: 'uuid',
  line_number: 'integer',
  report: 'text',
  kind: 'text',
  raw_kind: 'text',
  our_id: 'uuid',
  provider_reference: 'text',
  parent_reference: 'text',
  dispute_reference: 'text',
  payout_reference: 'text',
  amount_minor_units: 'bigint',
  currency: 'text',
  gross: 'bigint',
  fee: 'bigint',
  tax: 'bigint',
  net: 'bigint',
  fee_parts: 'smallint',
  settlement_currency: 'text',
  exchange_rate: 'text',
  occurred_at: 'timestamptz',
} as const;
const ARRAYS = Object.values(COLUMNS).map((type, i) => `$${i + 2}::${type}[]`);

const ADD = `
  INSERT INTO settlement_line (account_id, ${Object.keys(COLUMNS)})
  SELECT $1, * FROM unnest(${ARRAYS}) ON CONFLICT DO NOTHING RETURNING line_number`;

/**
 * Adds lines to a file, except those that an earlier file had.
 *
 * @returns the number of added lines; undefined if the import was taken away because it had stopped for too long.
 */
export async function addLines(
  database: Database,
  file: NewSettlementFile,
  lines: readonly SettlementLine[],
): Promise<number | undefined> {
  const rows = lines.map((line) => rowOf(file, line));
  const columns = Object.keys(COLUMNS).map((_, i) => rows.map((row) => row[i] ?? null));
  return database.transaction(async (run) => {
    if ((await run(TOUCH, [NIL_UUID, file.id])).rows.length === 0) return undefined;
    return (await run(ADD, [NIL_UUID, ...columns])).rows.length;
  }, TIMEOUT_MS);
}

function rowOf(file: NewSettlementFile, line: SettlementLine): unknown[] {
  return [
    ...[
      file.connectionIdentity,
      line.key,
      file.connectionId,
      file.id,
      line.lineNumber,
      line.report,
      line.kind,
    ],
    ...[line.rawKind, line.ourId, line.providerReference, line.parentReference, line.disputeReference],
    ...[
      line.payoutReference,
      line.amount?.minorUnits,
      line.amount?.currency,
      line.gross,
      line.fee,
      line.tax,
      line.net,
      line.feeParts,
    ],
    ...[line.settlementCurrency, line.exchangeRate, line.occurredAt],
  ];
}

const COUNT = 'SELECT count(*)::integer AS n FROM settlement_line WHERE account_id = $1 AND file_id = $2';
const COMPLETE = `
  UPDATE settlement_file SET completed_at = now(), new_lines = $3, repeated_lines = $4
  WHERE account_id = $1 AND id = $2 AND completed_at IS NULL RETURNING id`;

/**
 * Makes the lines of a file count, if all of them are there, together with the entry in the audit log.
 *
 * @returns false, with nothing changed, if lines were taken away because the import had stopped for too long.
 */
export async function completeFile(
  database: Database,
  file: NewSettlementFile,
  lines: { readonly added: number; readonly repeated: number },
  audited: AuditedAction,
): Promise<boolean> {
  return database.transaction(async (run) => {
    if ((await run(TOUCH, [NIL_UUID, file.id])).rows.length === 0) return false;
    const stored = (await run<{ n: number }>(COUNT, [NIL_UUID, file.id])).rows[0]?.n;
    if (stored !== lines.added) return false;
    await run(COMPLETE, [NIL_UUID, file.id, lines.added, lines.repeated]);
    await countImport(run, file.connectionIdentity);
    await recordAction(queriesOf(run), audited);
    return true;
  }, TIMEOUT_MS);
}

const FIND_STOPPED = {
  name: 'find_stopped_settlement_files',
  text: `
    SELECT id FROM settlement_file WHERE account_id = $1 AND completed_at IS NULL
      AND (id = $2 OR seen_at < now() - make_interval(mins => $3::integer))`,
};
const LOCK_STOPPED = `
  SELECT id FROM settlement_file WHERE account_id = $1 AND id = $2 AND completed_at IS NULL
    AND ($3::boolean OR seen_at < now() - make_interval(mins => $4::integer)) FOR UPDATE`;
const DELETE_LINES = `
  DELETE FROM settlement_line WHERE account_id = $1 AND (connection_identity, line_key) IN (
    SELECT connection_identity, line_key FROM settlement_line
    WHERE account_id = $1 AND file_id = $2 ORDER BY line_number LIMIT ${DELETED_AT_ONCE}
  ) RETURNING line_number`;
const DELETE_FILE = 'DELETE FROM settlement_file WHERE account_id = $1 AND id = $2 RETURNING id';

/**
 * Deletes the files whose imports have stopped, with their lines, in short transactions.
 *
 * @param own an unfinished file to delete at once, by the import that gives it up.
 */
export async function deleteStoppedFiles(database: Database, own?: string): Promise<void> {
  const values = [NIL_UUID, own ?? NIL_UUID, STOPPED_MINUTES];
  for (const { id } of (await database.query<{ id: string }>(FIND_STOPPED, values)).rows) {
    let isDone = false;
    while (!isDone) {
      isDone = await database.transaction(async (run) => {
        const locked = await run(LOCK_STOPPED, [NIL_UUID, id, id === own, STOPPED_MINUTES]);
        if (locked.rows.length === 0) return true;
        if ((await run(DELETE_LINES, [NIL_UUID, id])).rows.length > 0) return false;
        await run(DELETE_FILE, [NIL_UUID, id]);
        return true;
      }, TIMEOUT_MS);
    }
  }
}

/** An imported file. */
export type ListedReport = Omit<NewSettlementFile, 'sha256'> & {
  readonly newLines: number;
  readonly repeatedLines: number;
  readonly completedAt: Date;
  /** New lines whose transactions have not been searched yet. */
  readonly openLines: number;
};

const LISTED = `id, connection_id AS "connectionId", connection_identity AS "connectionIdentity", name, bytes, actor,
      new_lines AS "newLines", repeated_lines AS "repeatedLines", completed_at AS "completedAt", (
        SELECT count(*)::integer FROM settlement_line l WHERE l.account_id = $1 AND l.file_id = f.id AND l.result IS NULL
      ) AS "openLines"`;
const LIST = {
  name: 'list_settlement_files',
  text: `
    SELECT ${LISTED} FROM settlement_file f
    WHERE account_id = $1 AND completed_at IS NOT NULL AND ($2::text IS NULL OR connection_id = $2)
      AND ($3::uuid IS NULL OR id < $3)
    ORDER BY id DESC LIMIT $4::integer`,
};

/**
 * Lists imported files, newest first.
 *
 * @param filter.connectionId undefined for every connection.
 * @param filter.before the file after which the page begins; undefined for the first page.
 */
export async function listFiles(
  database: Database,
  filter: { readonly connectionId?: string | undefined; readonly before?: string | undefined },
  limit: number,
): Promise<ListedReport[]> {
  const values = [NIL_UUID, filter.connectionId ?? null, filter.before ?? null, limit];
  return (await database.query<ListedReport>(LIST, values)).rows;
}

const READ = {
  name: 'read_settlement_file',
  text: `
    SELECT ${LISTED}, EXISTS (
        SELECT 1 FROM settlement_progress p
        WHERE p.account_id = $1 AND p.connection_identity = f.connection_identity AND p.imports > p.matched_imports
      ) AS "isMatchDue"
    FROM settlement_file f WHERE account_id = $1 AND id = $2 AND completed_at IS NOT NULL`,
};

/**
 * Reads an imported file; undefined if there is none. `isMatchDue` is true until all work on the imports of its account at the
 * provider is done.
 */
export async function readFile(
  database: Database,
  id: string,
): Promise<(ListedReport & { readonly isMatchDue: boolean }) | undefined> {
  const values = [NIL_UUID, id];
  return (await database.query<ListedReport & { isMatchDue: boolean }>(READ, values)).rows[0];
}

const RESULTS = {
  name: 'count_settlement_results',
  text: `
    SELECT coalesce(result, 'not searched') AS result, count(*)::integer AS lines FROM settlement_line
    WHERE account_id = $1 AND file_id = $2 GROUP BY 1`,
};

/** Counts the lines of a file by the result of the search for their transactions. */
export async function countResults(database: Database, fileId: string): Promise<ReadonlyMap<string, number>> {
  const { rows } = await database.query<{ result: string; lines: number }>(RESULTS, [NIL_UUID, fileId]);
  return new Map(rows.map(({ result, lines }) => [result, lines]));
}
