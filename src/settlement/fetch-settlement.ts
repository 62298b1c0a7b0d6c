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
/** Days of the first report that is fetched without a period. */
const FIRST_DAYS = 7;
/** Days of the last report that the next one repeats, in case the provider has added lines to them. */
const OVERLAP_DAYS = 2;
/** Maximum number of days of one report. */
export const MAX_FETCHED_DAYS = 366;
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

/** The period to fetch, in whole days (UTC). What is absent follows from what was fetched before and what is complete. */
export type WantedPeriod = { readonly from?: Date | undefined; readonly before?: Date | undefined };

/**
 * Fetches a provider's report on a period, and imports it: all of it, or nothing. Lines that were imported before change
 * nothing, so a fetch may be repeated, by several replicas at once.
 *
 * @param options.actor for the audit log.
 * @param options.stop gives the fetch up while the provider writes the report; it then rejects.
 * @returns 'nothing to fetch' if everything complete was fetched before.
 * @throws SettlementFetchError, SettlementFileError.
 */
export async function fetchSettlement(
  database: Database,
  connection: SettledConnection,
  source: SettlementSource,
  options: WantedPeriod & {
    readonly actor: string;
    readonly stop?: AbortSignal;
    readonly firstPauseMs?: number;
  },
): Promise<FetchedReport | 'nothing to fetch'> {
  const { identity } = connection;
  const period = await periodOf(database, identity, source, options);
  if (!period) return 'nothing to fetch';
  const bytes = await readReport(source, period, options);
  const isFetchedByOther = options.before === undefined && (await isFetched(database, identity, period));
  if (isFetchedByOther) return 'nothing to fetch';
  const name = `${FETCHED} ${dayOf(period.from)} ${dayOf(period.before)}`;
  const file = { name, open: () => piecesOf(bytes), isFetched: true } as const;
  return { period, result: await importSettlement(database, connection, file, { actor: options.actor }) };
}

/** Returns the period to fetch; undefined if it has no day. */
async function periodOf(
  database: Database,
  identity: string,
  source: SettlementSource,
  wanted: WantedPeriod,
): Promise<SettlementPeriod | undefined> {
  const available = await source.available();
  const complete = startOfDay(available.before);
  if (wanted.before && wanted.before > complete) {
    throw new SettlementFetchError(
      `the provider's reports are complete for the days before ${dayOf(complete)} (UTC): fetch those, and the rest later`,
    );
  }
  const before = wanted.before ?? complete;
  const { before: last } = await lastFetched(database, identity);
  if (!wanted.from && !wanted.before && last && last >= before) return undefined;
  const usual = last && last < before ? daysBefore(last, OVERLAP_DAYS) : daysBefore(before, FIRST_DAYS);
  const from = new Date(Math.max((wanted.from ?? usual).getTime(), available.from.getTime()));
  if (from >= before) return undefined;
  if (before.getTime() - from.getTime() <= MAX_FETCHED_DAYS * DAY_MS) return { from, before };
  throw new SettlementFetchError(`a report has at most ${MAX_FETCHED_DAYS} days: fetch shorter periods`);
}

async function isFetched(database: Database, identity: string, { before }: SettlementPeriod) {
  const { before: last } = await lastFetched(database, identity);
  return last !== undefined && last >= before;
}

async function readReport(
  source: SettlementSource,
  period: SettlementPeriod,
  { stop, firstPauseMs = FIRST_PAUSE_MS }: { readonly stop?: AbortSignal; readonly firstPauseMs?: number },
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

function daysBefore(day: Date, days: number): Date {
  return new Date(day.getTime() - days * DAY_MS);
}

/** Returns the day (UTC) of a time, as YYYY-MM-DD. */
export function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10);
}
