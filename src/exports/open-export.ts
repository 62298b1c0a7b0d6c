import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { invalidField, ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { findAccount } from '#src/store/tables/accounts.ts';
import {
  type ExportedPaymentRow,
  exportEnd,
  nextAccounts,
  ROWS_A_PAGE,
  type RowsOf,
  readDisputes,
  readExportedRecords,
  readMovements,
  readPayments,
  readTransactions,
  sumTransactions,
} from '#src/store/tables/exported-rows.ts';
import {
  type ExportedLine,
  type ExportedMatch,
  readDifferences,
  readMatches,
  readMatching,
  readUnmatchedLines,
  withLines,
} from '#src/store/tables/exported-settlement.ts';
import {
  type Column,
  DISPUTE_COLUMNS,
  type FullTransaction,
  MOVEMENT_COLUMNS,
  movementMoney,
  PAYER_COLUMNS,
  PAYMENT_COLUMNS,
  type SummedPayment,
  type Told,
  TRANSACTION_COLUMNS,
} from './columns.ts';
import { type Cell, csvLine, csvStart } from './csv.ts';
import type { ExportKind, ExportRequest } from './export-request.ts';
import { createPace, type Pace } from './pace.ts';
import { momentName } from './period.ts';
import { DIFFERENCE_COLUMNS, SETTLEMENT_COLUMNS } from './settlement-columns.ts';

/** A file that can be read once. */
export type OpenExport = {
  /** Names the file by its period and zone, such as `movements-2026-09-01-2026-10-01-UTC.csv`. */
  readonly fileName: string;
  /**
   * Pieces of whole lines, of PIECE_CHARS and a line at most. A page is read only when the pieces before it are taken.
   *
   * @throws ServiceError SERVICE_UNAVAILABLE, before the last piece, if lines have moved between accounts meanwhile.
   */
  readonly pieces: () => AsyncGenerator<string, void>;
  /** Counts the pieces so far. */
  readonly tally: Tally;
};

/** The rows of a file, and the sums of its column of money by currency, in minor units. */
export type Tally = { rows: number; readonly sums: Map<string, bigint> };

const PIECE_CHARS = 16 * 1024;

/**
 * Opens an export. Its end is fixed here, so that no row comes twice and none is missed, whatever is written meanwhile.
 *
 * @throws ServiceError INVALID_PARAMETERS for an unknown account, and for a period that has yet to begin.
 */
export async function openExport(database: Database, request: ExportRequest): Promise<OpenExport> {
  const { kind, accountId, period } = request;
  const { zone, from, before } = period;
  const account = accountId === undefined ? undefined : await findAccount(database, accountId);
  if (accountId !== undefined && !account) throw invalidField('account_id', 'NOT_FOUND', 'is unknown');
  const bounds = {
    from: from.toInstant().toString(),
    until: await exportEnd(database, before.toInstant().toString()),
  };
  const until = Temporal.Instant.from(bounds.until).toZonedDateTimeISO(zone);
  if (Temporal.ZonedDateTime.compare(until, from) <= 0) {
    const field = 'from';
    throw invalidField(field, 'OUT_OF_RANGE', 'must be at least 30 seconds ago: the period has yet to begin');
  }
  const names = [kind, momentName(from), momentName(until), zone.replaceAll('/', '-').replaceAll(':', '')];
  const tally: Tally = { rows: 0, sums: new Map() };
  const accounts = account ? () => [account] : () => allAccounts(database, SOURCES[kind].hasNone);
  return {
    fileName: `${names.join('-')}.csv`,
    tally,
    pieces: () => writePieces(database, request, { bounds, accounts, tally }),
  };
}

/** Describes what a file contains, for the audit log: its rows, and its sums by currency. */
export function describeTally({ rows, sums }: Tally): string {
  const line = csvLine({ separator: ',', hasBom: false, isRaw: true });
  const written = [...sums].map(
    ([currency, minorUnits]) => `${currency} ${line([{ minorUnits, currency }]).trim()}`,
  );
  return [`${rows} rows`, ...written.sort()].join(', ');
}

type Account = { readonly id: string; readonly name: string };

/** @param withNone adds NIL_UUID at the end, for rows of no account. */
async function* allAccounts(database: Database, withNone = false): AsyncGenerator<Account, void> {
  for (let after: string | undefined; ; ) {
    const accounts = await nextAccounts(database, after);
    yield* accounts;
    after = accounts.at(-1)?.id;
    if (after === undefined) break;
  }
  if (withNone) yield { id: NIL_UUID, name: '' };
}

/** The source of a file's rows. */
type Source<Read, Row> = {
  readonly columns: readonly Column<Told<Row>>[];
  /** Reads the page after a row, up to ROWS_A_PAGE. */
  readonly read: (database: Database, rows: RowsOf, after: Read | undefined) => Promise<Read[]>;
  /** Returns the file's rows for some of a page. */
  readonly rowsFor: (database: Database, some: readonly Read[]) => readonly Row[] | Promise<readonly Row[]>;
  /** true if the columns need the records of payments. */
  readonly readsRecords: boolean;
  /** The column whose sums are told; `amount` by default. */
  readonly summed?: string;
  /** true if rows may be of no account. */
  readonly hasNone?: boolean;
  /** true if the matching of reports moves rows from no account to others. */
  readonly areMoved?: boolean;
};

/** A row as the writing of every file needs it. */
type AnyRow = { readonly paymentId: string };

const sourceOf = <Read, Row>(source: Source<Read, Row>) => source as unknown as Source<AnyRow, AnyRow>;

const SOURCES: Readonly<Record<ExportKind, Source<AnyRow, AnyRow>>> = {
  movements: sourceOf({
    columns: MOVEMENT_COLUMNS,
    read: readMovements,
    rowsFor: (_database, some) => some.filter((row) => movementMoney(row) !== undefined),
    readsRecords: false,
  }),
  transactions: sourceOf({
    columns: TRANSACTION_COLUMNS,
    read: readPayments,
    rowsFor: transactionsOf,
    readsRecords: true,
  }),
  disputes: sourceOf({
    columns: DISPUTE_COLUMNS,
    read: readDisputes,
    rowsFor: (_database, some) => some,
    readsRecords: false,
  }),
  settlement: sourceOf({
    columns: SETTLEMENT_COLUMNS,
    read: (database, rows, after: ExportedMatch | ExportedLine | undefined) =>
      rows.accountId === NIL_UUID
        ? readUnmatchedLines(database, rows, after as ExportedLine | undefined)
        : readMatches(database, rows, after),
    rowsFor: (database, some) => (some.every(isWhole) ? some : withLines(database, some)),
    readsRecords: false,
    ...{ summed: 'net', hasNone: true, areMoved: true },
  }),
  differences: sourceOf({
    columns: DIFFERENCE_COLUMNS,
    read: readDifferences,
    rowsFor: (_database, some) => some,
    ...{ readsRecords: false, hasNone: true },
  }),
  payments: sourceOf({ columns: PAYMENT_COLUMNS, read: readPayments, rowsFor: withSums, readsRecords: true }),
};

const isWhole = (line: ExportedMatch | ExportedLine): line is ExportedLine => 'result' in line;

async function transactionsOf(
  database: Database,
  payments: readonly ExportedPaymentRow[],
): Promise<FullTransaction[]> {
  const found = await ofPayments(readTransactions, database, payments);
  return payments.flatMap((payment) => found(payment.paymentId).map((one) => ({ ...payment, ...one })));
}

async function withSums(
  database: Database,
  payments: readonly ExportedPaymentRow[],
): Promise<SummedPayment[]> {
  const found = await ofPayments(sumTransactions, database, payments);
  return payments.map((payment) => ({ ...payment, sums: found(payment.paymentId) }));
}

/** Reads what payments of one account have. @returns a function that returns what a payment has. */
async function ofPayments<Row extends AnyRow>(
  read: (database: Database, accountId: string, paymentIds: readonly string[]) => Promise<Row[]>,
  database: Database,
  payments: readonly ExportedPaymentRow[],
): Promise<(paymentId: string) => readonly Row[]> {
  const ids = payments.map(({ paymentId }) => paymentId);
  const rows = await read(database, payments[0]?.accountId ?? '', ids);
  const by = Map.groupBy(rows, ({ paymentId }) => paymentId);
  return (paymentId) => by.get(paymentId) ?? [];
}

type Writing = {
  readonly bounds: Omit<RowsOf, 'accountId'>;
  readonly accounts: () => Iterable<Account> | AsyncIterable<Account>;
  readonly tally: Tally;
};

async function* writePieces(
  database: Database,
  request: ExportRequest,
  { bounds, accounts, tally }: Writing,
): AsyncGenerator<string, void> {
  const { kind, accountId, format, includesPayer } = request;
  const source = SOURCES[kind];
  const columns = [...source.columns, ...(includesPayer ? PAYER_COLUMNS : [])] as readonly Column<
    Told<AnyRow>
  >[];
  const line = csvLine(format);
  const names = columns.map(([name]) => name);
  const passes = filterOf(names, request.filters);
  const add = tallyOf(names.indexOf(source.summed ?? 'amount'), tally);
  const pace = createPace(database);
  const since = source.areMoved && accountId === undefined ? await requireNoMatching(database) : undefined;
  let piece = csvStart(format) + line(names);
  for await (const account of accounts()) {
    const rows = { ...bounds, accountId: account.id };
    const withRecords = source.readsRecords || includesPayer;
    for await (const some of readRows(database, { source, rows, account, withRecords, pace })) {
      for (const row of some) {
        const cells = columns.map(([, cell]) => cell(row));
        if (!passes(cells)) continue;
        add(cells);
        piece += line(cells);
        if (piece.length < PIECE_CHARS) continue;
        yield piece;
        piece = '';
      }
    }
  }
  if (since !== undefined) await requireNoMatching(database, since);
  if (piece !== '') yield piece;
}

/** Seconds after which a file is asked for again. */
const RETRY_AFTER_S = 60;

/**
 * Makes sure that no line is moved while the accounts are read one after another: it could be missing, or come twice.
 *
 * @returns the present, the next call's `since`.
 */
async function requireNoMatching(database: Database, since?: string): Promise<string> {
  const { now, isMatching } = await readMatching(database, since);
  if (!isMatching) return now;
  const message =
    'reports are being matched, which moves their lines to payments: there is no whole file of all accounts meanwhile; retry once it has ended';
  throw new ServiceError('SERVICE_UNAVAILABLE', message, { retryAfterS: RETRY_AFTER_S });
}

/** Returns a function that tells whether cells have the values of all filters. */
function filterOf(names: readonly string[], filters: ExportRequest['filters']) {
  const wanted = Object.entries(filters).map(([name, value]) => [names.indexOf(name), value] as const);
  return (cells: readonly Cell[]) => wanted.every(([at, value]) => cells[at] === value);
}

/** Returns a function that adds a row to a tally. @param at the column of money; -1 for none. */
function tallyOf(at: number, tally: Tally) {
  return (cells: readonly Cell[]) => {
    tally.rows++;
    const amount = cells[at];
    if (amount === undefined || typeof amount === 'string') return;
    tally.sums.set(amount.currency, (tally.sums.get(amount.currency) ?? 0n) + amount.minorUnits);
  };
}

type Reading = {
  readonly source: Source<AnyRow, AnyRow>;
  readonly rows: RowsOf;
  readonly account: Account;
  readonly withRecords: boolean;
  readonly pace: Pace;
};

/** Reads an account's rows page by page, at its pace. @returns the rows for up to AT_ONCE rows of a page at a time. */
async function* readRows(
  database: Database,
  { source, rows, account, withRecords, pace }: Reading,
): AsyncGenerator<Told<AnyRow>[], void> {
  for (let after: AnyRow | undefined; ; ) {
    const last = after;
    const page = await pace(() => source.read(database, rows, last));
    for (let at = 0; at < page.length; at += AT_ONCE) {
      const some = page.slice(at, at + AT_ONCE);
      const records = withRecords ? await pace(() => recordsOf(database, account.id, some)) : NO_RECORDS;
      const own = await pace(() => source.rowsFor(database, some));
      yield own.map((row) => ({ ...row, accountName: account.name, record: records(row.paymentId) }));
    }
    after = page.at(-1);
    if (page.length < ROWS_A_PAGE) return;
  }
}

/** The number of payments whose records and transactions are read at once: a record may have a hundred kilobytes. */
const AT_ONCE = 100;
const NO_RECORDS = () => undefined;

/** Reads the records of rows' payments. @returns a function that decodes the record of a payment, once. */
async function recordsOf(database: Database, accountId: string, rows: readonly AnyRow[]) {
  const ids = [...new Set(rows.map(({ paymentId }) => paymentId).filter(Boolean))];
  const stored = await readExportedRecords(database, accountId, ids);
  const decoded = new Map<string, Payment | undefined>();
  return (paymentId: string) =>
    decoded.getOrInsertComputed(paymentId, () => {
      const record = stored.get(paymentId);
      return record && decodeRecord(record);
    });
}
