import type {
  NotificationReading,
  ProviderConnection,
  RawNotification,
} from '#src/connectors/port/connector.ts';
import { ServiceError } from '#src/service-error.ts';
import { type Prompted, promptCheck } from '#src/store/engine/checks.ts';
import type { Database } from '#src/store/engine/database.ts';
import { isUnavailable } from '#src/store/engine/database-error.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import {
  endSearch,
  findNotifiedTransaction,
  insertNotification,
  moveNews,
  type NewsName,
  takeDueNews,
  takeNamedNews,
  type UnroutedNews,
} from '#src/store/tables/notifications.ts';
import { settleNews } from '#src/store/tables/open-news.ts';
import { findNotifiedEnrollment, promptEnrollment } from '#src/store/tables/wallet-enrollments.ts';
import { NEWS_PAUSES } from '../model/schedule.ts';
import type { Handed } from './lanes.ts';

/** Dependencies of receiveNotification. */
export type ReceiveDeps = RouteDeps & {
  /** Connections that can reach a payment's provider, including those removed from the catalogue. */
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  readonly nowMs: () => number;
  /** Hands work to the checker. */
  readonly wake: (handed: Handed) => void;
  readonly notifications: {
    received(connectionId: string, kind: NotificationReading['kind']): void;
  };
};

const MAX_SUBJECTS = 100;
const SEND_AGAIN_AFTER_S = 60;

/**
 * Returns the function that reads a connection's notifications.
 *
 * @throws ServiceError INVALID_CREDENTIALS for a connection that accepts no notifications, as for a forged one: nobody
 * learns the ids of connections.
 */
export function requireReader(
  { connections }: Pick<ReceiveDeps, 'connections'>,
  connectionId: string,
): NonNullable<ProviderConnection['readNotification']> {
  const read = connections().get(connectionId)?.readNotification;
  if (!read) throw forged();
  return read;
}

/**
 * Verifies and stores a provider's notification, and makes the check of its transaction due, before the notification is
 * acknowledged. A connector may call its provider to verify or read the notification; only the checker looks up
 * transactions.
 *
 * @returns the body of the acknowledgement.
 * @throws ServiceError INVALID_CREDENTIALS for a forged notification, and as requireReader; SERVICE_UNAVAILABLE if the
 * notification could not be verified. Like an unavailable database, this makes the provider resend it.
 */
export async function receiveNotification(
  deps: ReceiveDeps,
  connectionId: string,
  raw: RawNotification,
): Promise<string> {
  const read = requireReader(deps, connectionId);
  const headers: Record<string, string> = {};
  const header = (name: string) => {
    const value = raw.header(name);
    if (value !== undefined) headers[name] = value;
    return value;
  };
  const reading = await read({ ...raw, header }, deps.nowMs());
  deps.notifications.received(connectionId, reading.kind);
  if (reading.kind === 'forged') throw forged();
  if (reading.kind === 'send_again') {
    const message = 'the notification cannot be verified now and was not stored; send it again later';
    throw new ServiceError('SERVICE_UNAVAILABLE', message, { retryAfterS: SEND_AGAIN_AFTER_S });
  }
  if (reading.kind === 'about') {
    const stored = await insertNotification(deps.database, {
      connectionId,
      deduplicationKey: reading.deduplicationKey,
      subjects: reading.subjects.slice(0, MAX_SUBJECTS),
      body: raw.body,
      query: raw.query,
      headers: JSON.stringify(headers),
    });
    // News with only the provider's id is left to the checker if the search for it would query every node of a
    // distributed database. News that cannot be routed yet stays due, for the checker to find.
    for (const news of stored) {
      const isLeft = deps.database.isDistributed && news.transactionId === undefined;
      const handed = isLeft ? news : await routeNews(deps, news);
      if (handed) deps.wake(handed);
    }
  }
  return reading.acknowledgement ?? '';
}

function forged(): ServiceError {
  return new ServiceError('INVALID_CREDENTIALS', 'the signature is missing, wrong or too old');
}

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
