import { setTimeout as sleep } from 'node:timers/promises';
import { Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { type Loop, repeat } from '#src/repeat.ts';
import type { Database } from '#src/store/engine/database.ts';
import { addUp } from '#src/store/engine/search-accounts.ts';
import { listAccounts } from '#src/store/tables/accounts.ts';
import { isNightDone, markNight } from '#src/store/tables/payment-totals.ts';
import {
  addTotals,
  addUpPayments,
  type DeclinedPayment,
  type HoursOf,
  type HourTotal,
  listDeclined,
  type RecentTotal,
  replaceTotals,
} from '#src/store/tables/replace-totals.ts';

const INTERVAL_MS = 5 * 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Payments change for weeks: refunds, disputes, late outcomes. */
const NIGHTLY_DAYS = 35;
/** Days for which countries and codes are counted: a day, and the day before. */
const RECENT_DAYS = 2;
/** Hours whose totals are written together. */
const STEP_MS = 6 * HOUR_MS;
/** A pause after each statement lasts as long as the statement, since payments have priority; this is the longest. */
const MAX_PAUSE_MS = 500;
/** Pause after records have been decoded. */
const PAUSE_MS = 20;

/**
 * Starts to write the hourly totals of payments: of the last two hours every five minutes, and of the last 35 days once a
 * day, at its beginning (UTC). Any number of replicas may do so at once: they write the same.
 */
export function startTotals(
  database: Database,
  { onError }: { readonly onError: (error: unknown) => void },
): Loop {
  let mayBeNight = false;
  const write = (stop: AbortSignal) => {
    const work = writeRecentTotals(database, new Date(), { stop, mayBeNight });
    // A service that has just started has other work.
    mayBeNight = true;
    return work;
  };
  return repeat(write, { intervalMs: INTERVAL_MS, onError });
}

/**
 * Writes the totals of the last two hours, and once a day those of the last 35 days.
 *
 * @throws the first error, once all accounts have had their turn: the others' figures go on while a node is down.
 */
export async function writeRecentTotals(
  database: Database,
  now: Date,
  { stop, mayBeNight = true }: { readonly stop?: AbortSignal; readonly mayBeNight?: boolean } = {},
): Promise<void> {
  const end = ceil(now.getTime() + 1, HOUR_MS);
  const day = new Date(ceil(now.getTime() + 1, DAY_MS) - DAY_MS);
  const isNight = mayBeNight && !(await isNightDone(database, day));
  const begin = isNight ? end - NIGHTLY_DAYS * DAY_MS : end - 3 * HOUR_MS;
  const recentFrom = new Date(end - RECENT_DAYS * DAY_MS);
  const failed: unknown[] = [];
  for (const { id: accountId } of await listAccounts(database)) {
    try {
      for (let from = begin; from < end; from += STEP_MS) {
        if (stop?.aborted) return;
        const hours = { accountId, from: new Date(from), before: new Date(Math.min(from + STEP_MS, end)) };
        await writeTotals(database, hours, recentFrom);
      }
    } catch (error) {
      failed.push(error);
    }
  }
  if (failed.length > 0) throw failed[0];
  if (isNight) await markNight(database, day);
}

/** Writes an account's totals of some hours again, with the countries and codes of those from `recentFrom`. */
async function writeTotals(database: Database, hours: HoursOf, recentFrom: Date): Promise<void> {
  let totals: HourTotal[] = [];
  let recent: RecentTotal[] = [];
  for (let after: Parameters<typeof addUpPayments>[2]; ; ) {
    const last = after;
    const part = await paced(() => addUpPayments(database, hours, last));
    totals = addUp([...totals, ...part.totals], keyOfTotal, addTotals);
    const countries = part.totals
      .filter(({ hour }) => hour >= recentFrom)
      .map(
        ({ hour, country: name, outcome, payments }) =>
          ({ hour, kind: 'COUNTRY', name, outcome, payments }) as const,
      );
    recent = addUp([...recent, ...countries], keyOfRecent, sumRecent);
    after = part.next;
    if (!after) break;
  }
  if (hours.before > recentFrom && totals.some(({ outcome }) => outcome === 'DECLINED')) {
    const from = hours.from > recentFrom ? hours.from : recentFrom;
    for await (const declined of listDeclined(database, { ...hours, from })) {
      recent = addUp([...recent, ...declined.map(codeTotalOf)], keyOfRecent, sumRecent);
      await sleep(PAUSE_MS);
    }
  }
  await replaceTotals(database, hours, { totals, recent });
}

/** Reads, and pauses as long as that took. */
async function paced<Rows>(read: () => Promise<Rows>): Promise<Rows> {
  const begunMs = performance.now();
  const rows = await read();
  await sleep(Math.min(performance.now() - begunMs, MAX_PAUSE_MS));
  return rows;
}

function codeTotalOf({ hour, record }: DeclinedPayment): RecentTotal {
  const declines = decodeRecord(record).transactionsHistory.filter(
    (one) => one.parentTransactionId === '' && one.status === Transaction_Status.DECLINED,
  );
  return { hour, kind: 'CODE', name: declines.at(-1)?.responseCode ?? '', outcome: 'DECLINED', payments: 1 };
}

const keyOfTotal = ({ hour, connectionId, methodType, currency, outcome }: HourTotal) =>
  [hour.getTime(), connectionId, methodType, currency, outcome].join('\n');

const keyOfRecent = ({ hour, kind, name, outcome }: RecentTotal) =>
  [hour.getTime(), kind, name, outcome].join('\n');

function sumRecent(a: RecentTotal, b: RecentTotal): RecentTotal {
  return { ...a, payments: a.payments + b.payments };
}

function ceil(ms: number, unit: number): number {
  return Math.ceil(ms / unit) * unit;
}
