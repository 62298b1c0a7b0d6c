import { randomUUID } from 'node:crypto';
import type { ProviderConnection, SignedOutcome } from '#src/connectors/port/connector.ts';
import { type CheckerDeps, checkDue } from '#src/payments/check/checker.ts';
import { routeNews } from '#src/payments/check/news.ts';
import { insertPayerNews, type PayerNews } from '#src/store/tables/notifications.ts';
import { bringNews, type Notified } from './bring-news.ts';
import { tables } from './own-database.ts';
import { ACCOUNT_ONE } from './payment-requests.ts';
import { earlier } from './tables.ts';

/**
 * Stores a notification about a transaction and runs due checks, as the service does. Backdates the notifications
 * settled so far, so that they do not delay this check.
 *
 * @returns the result of the last notification settled; 'waiting' if none was settled.
 */
export async function notified(deps: CheckerDeps, connectionId: string, subject: Notified): Promise<string> {
  return checkedFor(deps, (seeing) => bringNews(seeing, connectionId, subject));
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
  const news = { ...named, kind, subject: 0, providerPaymentId: undefined, ageMs: 0 };
  return checkedFor(deps, (seeing) => routeNews(seeing, news));
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

async function checkedFor(
  deps: CheckerDeps,
  bring: (seeing: CheckerDeps) => Promise<unknown>,
): Promise<string> {
  await tables.query(`UPDATE notification SET settled_at = ${earlier('settled_at', '1 hour')}`);
  return lastResult(deps, async (seeing) => {
    await bring(seeing);
    await checkDue(seeing);
  });
}

/** Does work that settles news. @returns the result of the last one settled; 'waiting' if none was settled. */
async function lastResult(
  deps: CheckerDeps,
  work: (seeing: CheckerDeps) => Promise<unknown>,
): Promise<string> {
  const results: string[] = [];
  await work({
    ...deps,
    settled(connectionId, result) {
      results.push(result);
      deps.settled(connectionId, result);
    },
  });
  return results.at(-1) ?? 'waiting';
}

/** Processes the waiting notifications as if they were due. @returns as `notified`. */
export const lookAgain = (deps: CheckerDeps): Promise<string> =>
  lastResult(deps, (seeing) =>
    checkOnly(
      seeing,
      '(account_id, id) IN (SELECT account_id, transaction_id FROM notification WHERE settled_at IS NULL)',
    ),
  );

/** Checks only the open operations. */
export const checkOperations = (deps: CheckerDeps): Promise<number> =>
  checkOnly(deps, "type IN ('CAPTURE', 'CANCEL', 'REFUND')");

async function checkOnly(deps: CheckerDeps, isDue: string): Promise<number> {
  await tables.query(
    "UPDATE transaction SET check_at = now() + interval '1 hour' WHERE check_at IS NOT NULL",
  );
  await tables.query(`UPDATE transaction SET check_at = now() WHERE check_at IS NOT NULL AND ${isDue}`);
  return checkDue(deps);
}

/** Postpones the checks of open operations by an hour. */
export const leaveOperations = () =>
  tables.query(
    "UPDATE transaction SET check_at = now() + interval '1 hour' WHERE parent_id IS NOT NULL AND check_at IS NOT NULL",
  );

/** Deletes the waiting notifications, which their sender repeats. */
export const forgetNews = () => tables.query('DELETE FROM notification WHERE settled_at IS NULL');
