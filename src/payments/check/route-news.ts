import { type Prompted, promptCheck } from '#src/store/engine/checks.ts';
import type { Database } from '#src/store/engine/database.ts';
import { isUnavailable } from '#src/store/engine/database-error.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import {
  endSearch,
  findNotifiedTransaction,
  moveNews,
  type NewsName,
  takeDueNews,
  takeNamedNews,
  type UnroutedNews,
} from '#src/store/tables/notifications.ts';
import { settleNews } from '#src/store/tables/open-news.ts';
import { findNotifiedEnrollment, promptEnrollment } from '#src/store/tables/wallet-enrollments.ts';
import { NEWS_PAUSES } from '../model/schedule.ts';

/** Dependencies of the functions that route news to checks. */
export type RouteDeps = {
  readonly database: Database;
  readonly settled: (connectionId: string, result: NewsResult) => void;
};

/**
 * Result of processing news. 'waiting': the news may apply later; 'unanswered': the provider did not answer;
 * 'unmatched': its transaction was not found.
 */
export type NewsResult = 'applied' | 'unchanged' | 'waiting' | 'unanswered' | 'unmatched';

/** Minimum time between two checks of a transaction that are prompted by news. */
export const PROMPTED_APART_S = 2;
/** Age at which unmatched news is abandoned. */
export const GIVEN_UP_MS = 2 * 86_400_000;
const MOST_ROUTED = 20;

/**
 * Finds the transaction of the news, and makes its check due. The search is repeated later if the transaction does not
 * exist yet or the call that creates it is in progress.
 *
 * @returns the transaction; undefined if there is none, or none to check yet.
 */
export async function routeNews(
  { database, settled }: RouteDeps,
  news: UnroutedNews,
): Promise<Prompted | undefined> {
  const { deduplicationKey, subject, kind } = news;
  const found = await findOf(database, news);
  if (found) {
    const known = { ...news, accountId: found.accountId };
    if (news.accountId === NIL_UUID && !(await moveNews(database, news, found))) return undefined;
    const prompting = { ...found, deduplicationKey, subject, kind };
    const prompted = await promptCheck(database, prompting, PROMPTED_APART_S);
    if (prompted) await endSearch(database, known);
    return prompted;
  }
  const enrollment = await enrollmentOf(database, news);
  if (!enrollment && news.ageMs < GIVEN_UP_MS) return undefined;
  if (enrollment) await promptEnrollment(database, enrollment, PROMPTED_APART_S);
  const result = enrollment ? 'applied' : 'unmatched';
  await settleNews(database, news, result);
  settled(news.connectionId, result);
  return undefined;
}

/** Retries routing a connection's unmatched news. @returns true if there may be more. */
export async function routeDueNews(deps: RouteDeps, connectionId: string): Promise<boolean> {
  const due = await takeDueNews(deps.database, connectionId, MOST_ROUTED, NEWS_PAUSES);
  await routeEach(deps, due);
  return due.length === MOST_ROUTED;
}

/** Routes those of these news that are still due. @returns the transactions to check. */
export async function routeNamedNews(deps: RouteDeps, named: readonly NewsName[]): Promise<Prompted[]> {
  return routeEach(deps, await takeNamedNews(deps.database, named, NEWS_PAUSES));
}

async function routeEach(deps: RouteDeps, due: readonly UnroutedNews[]): Promise<Prompted[]> {
  const prompted: Prompted[] = [];
  // News of an account whose node is unavailable stays due, without delaying the others.
  for (const news of due) {
    const one = await routeNews(deps, news).catch((error) => {
      if (!isUnavailable(error)) throw error;
      return undefined;
    });
    if (one) prompted.push(one);
  }
  return prompted;
}

/** Finds the wallet enrollment that a notification without a transaction may be about. */
async function enrollmentOf(database: Database, { transactionId, connectionId }: UnroutedNews) {
  return transactionId === undefined
    ? undefined
    : findNotifiedEnrollment(database, transactionId, connectionId);
}

async function findOf(database: Database, news: UnroutedNews) {
  const { accountId, transactionId } = news;
  if (accountId !== NIL_UUID && transactionId !== undefined) return { accountId, transactionId };
  return findNotifiedTransaction(database, news);
}
