import { setTimeout as sleep } from 'node:timers/promises';
import {
  SettlementFetchError,
  type SettlementPeriod,
  type SettlementSource,
} from '#src/connectors/port/settlement-source.ts';
import type { Database } from '#src/store/engine/database.ts';
import { FETCHED, lastFetched } from '#src/store/tables/settlement-files.ts';
import { type ImportedFile, importSettlement, type SettledConnection } from './import-settlement.ts';

const DAY_MS = 86_400_000;
/** Days that are fetched first. */
const FIRST_DAYS = 7;
/** Days that are fetched once more, in case the provider has added lines to them. */
const REPEATED_DAYS = 2;
/** Maximum number of days of one report. */
const MAX_DAYS = 366;
/** Pauses between looks at a report that the provider is writing, and the time after which it is given up. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;
const GIVEN_UP_MS = 30 * 60_000;
const PIECE_BYTES = 64 * 1024;

/** A report that was fetched. */
export type FetchedReport = {
  readonly period: SettlementPeriod;
  readonly result: ImportedFile | 'already imported';
};

/** Options of a fetch. */
export type FetchOptions = {
  /** For the audit log. */
  readonly actor: string;
  /** Gives the fetch up while the provider writes the report: it then rejects. */
  readonly stop?: AbortSignal;
  readonly firstPauseMs?: number;
};

/**
 * Fetches what is not fetched yet of a provider's reports, day by day (UTC): after the last day that was fetched, which it
 * repeats together with the day before, or else the last seven days. Only days of which the provider has complete reports
 * are fetched. A day is imported all of it or not at all, and lines that were imported before change nothing, so several
 * replicas may do so at once.
 *
 * @throws SettlementFetchError, SettlementFileError.
 */
export async function* fetchNew(
  database: Database,
  connection: SettledConnection,
  source: SettlementSource,
  options: FetchOptions,
): AsyncGenerator<FetchedReport, void> {
  const { from: earliest, before } = await source.available();
  const complete = startOfDay(before).getTime();
  const last = await lastEnd(database, connection);
  if (last >= complete) return;
  const first = last === 0 ? complete - FIRST_DAYS * DAY_MS : last - REPEATED_DAYS * DAY_MS;
  for (let day = Math.max(first, startOfDay(earliest).getTime() + DAY_MS); day < complete; day += DAY_MS) {
    const end = day + DAY_MS;
    // Another replica may be ahead.
    if (end > last && (await lastEnd(database, connection)) >= end) continue;
    const period = { from: new Date(day), before: new Date(end) };
    yield { period, result: await fetchReport(database, connection, source, period, options) };
  }
}

/**
 * Fetches a provider's report on a period of whole days (UTC), and imports it: all of it, or nothing. Lines that were imported
 * before change nothing.
 *
 * @throws SettlementFetchError, SettlementFileError.
 */
export async function fetchPeriod(
  database: Database,
  connection: SettledConnection,
  source: SettlementSource,
  wanted: SettlementPeriod,
  options: FetchOptions,
): Promise<FetchedReport> {
  const { from: earliest, before } = await source.available();
  const complete = startOfDay(before);
  if (wanted.before > complete || wanted.from < earliest) {
    throw new SettlementFetchError(
      `the provider has complete reports on the days from ${dayOf(earliest)} and before ${dayOf(complete)} (UTC): fetch those`,
    );
  }
  if (wanted.before.getTime() - wanted.from.getTime() > MAX_DAYS * DAY_MS) {
    throw new SettlementFetchError(`a report has at most ${MAX_DAYS} days: fetch shorter periods`);
  }
  const last = await lastEnd(database, connection);
  // Later days than the next ones leave a gap, which is still to be fetched.
  const word = last === 0 || wanted.from.getTime() <= last ? FETCHED : 'period';
  return { period: wanted, result: await fetchReport(database, connection, source, wanted, options, word) };
}

async function fetchReport(
  database: Database,
  connection: SettledConnection,
  source: SettlementSource,
  period: SettlementPeriod,
  options: FetchOptions,
  word = FETCHED,
): Promise<FetchedReport['result']> {
  const bytes = await readReport(source, period, options);
  const name = `${word} ${dayOf(period.from)} ${dayOf(period.before)}`;
  const file = { name, open: () => piecesOf(bytes), isFetched: true } as const;
  return importSettlement(database, connection, file, { actor: options.actor });
}

/** Returns the end of the days that were fetched; 0 if none was. */
async function lastEnd(database: Database, { identity }: SettledConnection): Promise<number> {
  return (await lastFetched(database, identity))?.getTime() ?? 0;
}

async function readReport(
  source: SettlementSource,
  period: SettlementPeriod,
  { stop, firstPauseMs = FIRST_PAUSE_MS }: FetchOptions,
): Promise<Uint8Array> {
  const id = await source.request(period);
  const endMs = performance.now() + GIVEN_UP_MS;
  let pauseMs = firstPauseMs;
  while (performance.now() < endMs) {
    await sleep(pauseMs, undefined, { ...(stop && { signal: stop }) });
    const bytes = await source.read(id);
    if (bytes) return bytes;
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
  throw new SettlementFetchError(
    `the provider has been writing the report for ${GIVEN_UP_MS / 60_000} minutes: fetch it later`,
  );
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

function startOfDay(time: Date): Date {
  return new Date(Math.floor(time.getTime() / DAY_MS) * DAY_MS);
}

/** Returns the day (UTC) of a time, as YYYY-MM-DD. */
export function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10);
}
