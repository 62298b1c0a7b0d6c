import type { Dispute } from '#src/connectors/port/dispute-report.ts';
import type { PauseByAge } from '#src/payments/model/schedule.ts';
import type { Database, Nullable, Queries } from '../engine/database.ts';
import { DUE, takeDueRows, takeFound, takeWith } from '../engine/due-work.ts';
import { NIL_UUID, withoutNulls } from '../engine/rows.ts';
import { IN_ACCOUNTS, searchAccounts } from '../engine/search-accounts.ts';
import { findInAccounts } from './accounts.ts';

/** Identifies one subject of a provider's notification, or an action of a payer. */
export type NewsName = {
  /** The nil UUID until the transaction is found. */
  readonly accountId: string;
  readonly connectionId: string;
  readonly deduplicationKey: string;
  readonly subject: number;
};

/** notification: from a provider; return: the payer returned; close: the payer wants to pay another way. */
export type NewsKind = 'notification' | 'return' | 'close';

/** News whose transaction has yet to be found or made due. */
export type UnroutedNews = NewsName & {
  readonly kind: NewsKind;
  readonly transactionId: string | undefined;
  /** The id by which the provider names it. */
  readonly providerPaymentId: string | undefined;
  /** Time since the notification or return arrived, according to the database's clock. */
  readonly ageMs: number;
};

const INSERT = {
  name: 'insert_notification',
  text: `
    INSERT INTO notification
      (account_id, connection_id, deduplication_key, subject, transaction_id, provider_payment_id, body, query,
        headers, dispute, dispute_reference, disputed_minor_units, disputed_currency, dispute_facts)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    ON CONFLICT (account_id, connection_id, deduplication_key, subject) DO NOTHING
    RETURNING account_id AS "accountId", connection_id AS "connectionId", deduplication_key AS "deduplicationKey",
      subject, kind, transaction_id AS "transactionId", provider_payment_id AS "providerPaymentId"`,
};

/**
 * Stores a notification once, however often it is delivered.
 *
 * @returns its subjects, except those already stored.
 */
export async function insertNotification(
  database: Database,
  notification: {
    readonly connectionId: string;
    readonly deduplicationKey: string;
    readonly subjects: readonly {
      readonly transactionId?: string | undefined;
      readonly providerPaymentId?: string | undefined;
      readonly dispute?: Dispute | undefined;
    }[];
    readonly body: Uint8Array;
    readonly query: string;
    /** The headers that its signature covers, as JSON. */
    readonly headers: string;
  },
): Promise<UnroutedNews[]> {
  const { connectionId, deduplicationKey, body, query, headers } = notification;
  const stored: UnroutedNews[] = [];
  for (const [subject, { transactionId, providerPaymentId, dispute }] of notification.subjects.entries()) {
    const known = { connectionId, transactionId, providerPaymentId: undefined };
    const found = transactionId === undefined ? undefined : await findNotifiedTransaction(database, known);
    const values = [
      found?.accountId ?? NIL_UUID,
      ...[connectionId, deduplicationKey, subject, transactionId, providerPaymentId, body, query, headers],
      ...[dispute?.stage, dispute?.reference, dispute?.money?.minorUnits, dispute?.money?.currency],
      dispute && factsText(dispute),
    ];
    const { rows } = await database.query<Nullable<Omit<UnroutedNews, 'ageMs'>>>(
      INSERT,
      values.map((value) => value ?? null),
    );
    stored.push(...rows.map((row) => ({ ...withoutNulls(row), ageMs: 0 })));
  }
  return stored;
}

/** Returns what a dispute report says beyond its columns, as a JSON object; undefined if it says nothing more. */
function factsText({ moves, isAddition, case: reported }: Dispute): string | undefined {
  if (moves === undefined && isAddition === undefined && reported === undefined) return undefined;
  const { fee, ...rest } = reported ?? {};
  const money = fee && { minorUnits: String(fee.minorUnits), currency: fee.currency };
  return JSON.stringify({ moves, isAddition, case: reported && { ...rest, fee: money } });
}

/** Reads what a dispute report says beyond its columns. */
export function readFacts(text: string | null): Pick<Dispute, 'moves' | 'isAddition' | 'case'> {
  if (text === null) return {};
  const { moves, isAddition, case: reported } = JSON.parse(text);
  if (!reported) return { moves, isAddition };
  const { fee, respondBy, at, ...rest } = reported;
  return {
    ...{ moves, isAddition },
    case: {
      ...rest,
      ...(fee && { fee: { minorUnits: BigInt(fee.minorUnits), currency: fee.currency } }),
      ...(respondBy && { respondBy: new Date(respondBy) }),
      ...(at && { at: new Date(at) }),
    },
  };
}

/** An action of a payer, as stored. */
export type PayerNews = {
  readonly accountId: string;
  readonly connectionId: string;
  readonly transactionId: string;
  readonly deduplicationKey: string;
  readonly kind: Exclude<NewsKind, 'notification'>;
  /** The query of the payer's return, if the provider needs it. */
  readonly query: string;
};

/** Maximum number of a payer's unsettled actions per transaction, since anyone can open the return URL. */
const MAX_PAYER_NEWS = 5;

// Materialized, since a distributed engine would otherwise read the time after it has stored the action.
const INSERT_PAYER_NEWS = {
  name: 'insert_payer_news',
  text: `
    WITH before AS MATERIALIZED (
      SELECT coalesce(settled_at::text, 'now') AS last_at FROM notification
      WHERE account_id = $1 AND connection_id = $2 AND deduplication_key = $3 AND subject = 0
    ), stored AS (
      INSERT INTO notification AS n
        (account_id, connection_id, deduplication_key, subject, kind, transaction_id, body, query)
      SELECT $1, $2, $3, 0, $4, $5, '', $6
      WHERE (
        SELECT count(*) FROM (
          SELECT 1 FROM notification o
          WHERE o.account_id = $1 AND o.transaction_id = $5 AND o.settled_at IS NULL AND o.kind <> 'notification'
          LIMIT ${MAX_PAYER_NEWS}
        ) open
      ) < ${MAX_PAYER_NEWS}
      ON CONFLICT (account_id, connection_id, deduplication_key, subject) DO UPDATE
      SET settled_at = NULL, result = NULL, query = excluded.query, received_at = excluded.received_at,
        check_at = excluded.check_at
      RETURNING n.subject
    )
    SELECT (SELECT last_at FROM before) AS "lastAt" FROM stored`,
};

/**
 * Stores an action of a payer. A repeated action counts as new.
 *
 * @returns `lastAt`: the time on the database's clock when the same action was last settled, or 'now' if it is still
 * unsettled. undefined if too many actions are already waiting.
 */
export async function insertPayerNews(
  queries: Queries,
  news: PayerNews,
): Promise<{ readonly lastAt: string | undefined } | undefined> {
  const { accountId, connectionId, deduplicationKey, kind, transactionId, query } = news;
  const values = [accountId, connectionId, deduplicationKey, kind, transactionId, query];
  const { rows } = await queries.query<{ lastAt: string | null }>(INSERT_PAYER_NEWS, values);
  return rows[0] && { lastAt: rows[0].lastAt ?? undefined };
}

/** Leases a connection's news whose transaction is yet to be found, until the next search. */
export async function takeDueNews(
  database: Database,
  connectionId: string,
  limit: number,
  pauses: PauseByAge,
): Promise<UnroutedNews[]> {
  const search = { values: [connectionId, limit], limit };
  return takeDueRows<NewsName, UnroutedNews>(
    database,
    DUE.notifications.find,
    search,
    take(database, pauses),
  );
}

/** Leases those of this news that are due, as takeDueNews does, without a search. */
export async function takeNamedNews(
  database: Database,
  named: readonly NewsName[],
  pauses: PauseByAge,
): Promise<UnroutedNews[]> {
  return takeFound(named, take(database, pauses));
}

const take = (database: Database, { share, firstS, longestS }: PauseByAge) =>
  takeWith<UnroutedNews>(database, DUE.notifications.take, [share, firstS, longestS]);

const FIND_BY_ID = {
  name: 'find_notified_transaction',
  text: `
    SELECT account_id AS "accountId", id AS "transactionId" FROM transaction
    WHERE account_id = $1 AND id = $2 AND connection_id = $3`,
};
const FIND_BY_PROVIDER_PAYMENT = {
  name: 'find_transaction_of_provider_payment',
  text: `
    SELECT account_id AS "accountId", id AS "transactionId" FROM transaction
    WHERE ${IN_ACCOUNTS} connection_id = $1 AND provider_payment_id = $2 LIMIT 1`,
};

/**
 * Finds the transaction that a notification is about, by our id or else by the provider's. Only transactions of the
 * notified connection count: a signature for one connection must not vouch for another's payments.
 */
export async function findNotifiedTransaction(
  database: Database,
  {
    connectionId,
    transactionId,
    providerPaymentId,
  }: Pick<UnroutedNews, 'connectionId' | 'transactionId' | 'providerPaymentId'>,
): Promise<{ readonly accountId: string; readonly transactionId: string } | undefined> {
  type Row = { readonly accountId: string; readonly transactionId: string };
  if (transactionId === undefined) {
    const values = [connectionId, providerPaymentId ?? null];
    return (await searchAccounts<Row>(database, FIND_BY_PROVIDER_PAYMENT, values, 'found or complete'))[0];
  }
  return findInAccounts(database, transactionId, async (accountId) => {
    const values = [accountId, transactionId, connectionId];
    return (await database.query<Row>(FIND_BY_ID, values)).rows[0];
  });
}

const ROUTE = {
  name: 'route_news',
  text: `
    UPDATE notification SET check_at = NULL
    WHERE account_id = $1 AND connection_id = $2 AND deduplication_key = $3 AND subject = $4`,
};

/** Ends the search for the transaction that news is about. The transaction's check is now due. */
export async function endSearch(queries: Queries, name: NewsName): Promise<void> {
  await queries.query(ROUTE, keyOf(name));
}

// The account is the first column of the key, so the row has to be replaced.
const MOVE = {
  name: 'move_news',
  text: `
    WITH moved AS (
      DELETE FROM notification
      WHERE account_id = $1 AND connection_id = $2 AND deduplication_key = $3 AND subject = $4
      RETURNING *
    )
    INSERT INTO notification (account_id, connection_id, deduplication_key, subject, kind, transaction_id,
      provider_payment_id, dispute, dispute_reference, disputed_minor_units, disputed_currency, dispute_facts, body, query,
      headers, received_at, check_at)
    SELECT $5, connection_id, deduplication_key, subject, kind, $6, provider_payment_id, dispute, dispute_reference,
      disputed_minor_units, disputed_currency, dispute_facts, body, query, headers, received_at, check_at
    FROM moved
    ON CONFLICT (account_id, connection_id, deduplication_key, subject) DO NOTHING
    RETURNING subject`,
};

/** Moves news to the account of its transaction. @returns false if the account has the news already. */
export async function moveNews(
  database: Database,
  name: NewsName,
  found: { readonly accountId: string; readonly transactionId: string },
): Promise<boolean> {
  const values = [...keyOf(name), found.accountId, found.transactionId];
  return (await database.query(MOVE, values)).rows.length === 1;
}

/** Returns the key of news, as parameters. */
export function keyOf({ accountId, connectionId, deduplicationKey, subject }: NewsName): unknown[] {
  return [accountId, connectionId, deduplicationKey, subject];
}
