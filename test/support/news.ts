import { randomUUID } from 'node:crypto';
import type { ProviderConnection, SignedOutcome } from '#src/connectors/port/connector.ts';
import type { Dispute } from '#src/connectors/port/dispute-report.ts';
import { type CheckerDeps, checkDue } from '#src/payments/check/checker.ts';
import { routeNews } from '#src/payments/check/news.ts';
import {
  insertNotification,
  insertPayerNews,
  type PayerNews,
  type UnroutedNews,
} from '#src/store/tables/notifications.ts';
import { tables } from './own-database.ts';
import { ACCOUNT_ONE } from './payment-requests.ts';
import { earlier } from './tables.ts';

/** The part of a notification that concerns a transaction. */
export type Notified = {
  readonly transactionId?: string | undefined;
  readonly providerPaymentId?: string | undefined;
  readonly dispute?: Dispute | undefined;
};

/**
 * Stores a notification about a transaction and runs due checks, as the service does. Backdates the notifications
 * settled so far, so that they do not delay this check.
 *
 * @returns the result of the last notification settled; 'waiting' if none was settled.
 */
export async function notified(deps: CheckerDeps, connectionId: string, subject: Notified): Promise<string> {
  const stored = await insertNotification(deps.database, {
    ...{ connectionId, deduplicationKey: randomUUID(), subjects: [subject] },
    ...{ body: Buffer.alloc(0), query: '', headers: '{}' },
  });
  return checkedFor(deps, stored);
}

/** Stores that a payer returned or gave up, and runs due checks. */
export async function payerDid(
  deps: CheckerDeps,
  connectionId: string,
  transactionId: string,
  { kind = 'return', query = '' }: Partial<Pick<PayerNews, 'kind' | 'query'>> = {},
): Promise<string> {
  const named = { accountId: ACCOUNT_ONE, connectionId, transactionId, deduplicationKey: randomUUID() };
  await insertPayerNews(deps.database, { ...named, kind, query });
  return checkedFor(deps, [{ ...named, kind, subject: 0, providerPaymentId: undefined, ageMs: 0 }]);
}

/** Stores a signed outcome from a provider without a look-up, and runs due checks. */
export async function signed(
  deps: CheckerDeps,
  connectionId: string,
  connection: ProviderConnection,
  transactionId: string,
  outcome: SignedOutcome,
): Promise<string> {
  const subjects = [{ transactionId, signed: outcome }] as never;
  const signing: ProviderConnection = {
    ...connection,
    lookUp: undefined,
    readNotification: async () => ({ kind: 'about', deduplicationKey: '', subjects }) as never,
  };
  const connections = new Map(deps.connections()).set(connectionId, signing);
  return notified({ ...deps, connections: () => connections }, connectionId, { transactionId });
}

async function checkedFor(deps: CheckerDeps, stored: readonly UnroutedNews[]): Promise<string> {
  await tables.query(`UPDATE notification SET settled_at = ${earlier('settled_at', '1 hour')}`);
  const results: string[] = [];
  const seeing: CheckerDeps = {
    ...deps,
    settled(connectionId, result) {
      results.push(result);
      deps.settled(connectionId, result);
    },
  };
  for (const news of stored) await routeNews(seeing, news);
  await checkDue(seeing);
  return results.at(-1) ?? 'waiting';
}
