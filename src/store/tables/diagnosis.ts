import { IS_OPEN_ATTEMPT } from '../engine/checks.ts';
import type { Database } from '../engine/database.ts';
import { findUnsafeSettings } from '../engine/durability.ts';
import { onlyRow } from '../engine/rows.ts';

/** Facts about a database and its server. */
export type DatabaseFacts = {
  /** For example, 180004 for 18.4. */
  readonly versionNumber: number;
  readonly version: string;
  /** Settings that are off although an acknowledged commit can be lost without them. */
  readonly unsafeSettings: readonly string[];
  readonly isReadOnly: boolean;
  readonly maxConnections: number;
  /** true: the connection crosses a network unencrypted. */
  readonly isInTheClear: boolean;
  /** Number of standbys that replicate from the database. */
  readonly standbys: number;
  /** true: commits wait for a standby. */
  readonly isSynchronous: boolean;
  readonly invalidIndexes: readonly string[];
  /** Age of the oldest open transaction of another session; 0 if there is none. */
  readonly oldestTransactionS: number;
  /** true: the service's schema exists. */
  readonly hasSchema: boolean;
};

const FACTS = {
  name: 'database_facts',
  text: `
    SELECT current_setting('server_version_num')::integer AS "versionNumber", current_setting('server_version') AS version,
      pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS "isReadOnly",
      current_setting('max_connections')::integer AS "maxConnections",
      inet_server_addr() IS NOT NULL AND NOT inet_server_addr() <<= '127.0.0.0/8' AND inet_server_addr() <> '::1'
        AND NOT coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS "isInTheClear",
      (SELECT count(*) FROM pg_stat_replication)::integer AS standbys,
      current_setting('synchronous_standby_names') <> '' AS "isSynchronous",
      ARRAY(SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE NOT i.indisvalid AND n.nspname = current_schema() ORDER BY c.relname) AS "invalidIndexes",
      coalesce((SELECT extract(epoch FROM clock_timestamp() - min(xact_start)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()), 0)::float8 AS "oldestTransactionS",
      to_regclass('schema_migration') IS NOT NULL AS "hasSchema"`,
};

/** Reads facts about the database. */
export async function readDatabaseFacts(database: Database): Promise<DatabaseFacts> {
  const facts = onlyRow(await database.query<Omit<DatabaseFacts, 'unsafeSettings'>>(FACTS));
  return { ...facts, unsafeSettings: await findUnsafeSettings(database) };
}

/** Facts about the service's accounts, webhooks and open work. */
export type ServiceFacts = {
  readonly accounts: number;
  /** Webhooks that have been failing for an hour; `disabledWebhooks` are those that the service turned off. */
  readonly failingWebhooks: number;
  readonly disabledWebhooks: number;
  /** Webhooks with a delivery that is 10 minutes overdue because no replica is delivering it. */
  readonly overdueWebhooks: number;
  /** Age of the oldest payment with an unknown outcome; 0 if there is none. */
  readonly oldestOutcomeS: number;
  /** Age of the oldest news item that is not yet settled; 0 if there is none. */
  readonly oldestNotificationS: number;
  /** Authorizations whose provider has not been queried, or has not answered, for a day, and the age of the oldest. */
  readonly lateAuthorizations: number;
  readonly oldestAuthorizationS: number;
};

// An authorization whose provider does not answer is checked every hour. If its age is a day past the usual term of
// seven days and its next check is within the hour, it has been unanswered for a day. An authorization with a longer
// term is counted in the last hour of that term.
//
// Open rows are read in index order. Otherwise the planner, which assumes that they are spread over the table although
// they are at its end, would read the whole table.
const SERVICE_FACTS = {
  name: 'service_facts',
  text: `
    SELECT (SELECT count(*) FROM account)::integer AS accounts,
      (SELECT count(*) FROM webhook WHERE active AND failing_since < now() - interval '1 hour')::integer AS "failingWebhooks",
      (SELECT count(*) FROM webhook WHERE disabled_reason IS NOT NULL)::integer AS "disabledWebhooks",
      (SELECT count(*) FROM webhook w WHERE w.active AND EXISTS (
        SELECT 1 FROM delivery d WHERE d.account_id = w.account_id AND d.webhook_id = w.id
          AND d.due_at < now() - interval '10 minutes'))::integer AS "overdueWebhooks",
      coalesce((SELECT extract(epoch FROM now() - min(created_at))
        FROM (SELECT created_at FROM transaction WHERE ${IS_OPEN_ATTEMPT}
          ORDER BY type, awaits_payer, created_at LIMIT 100000) open),
        0)::float8 AS "oldestOutcomeS",
      coalesce((SELECT extract(epoch FROM now() - min(received_at))
        FROM (SELECT received_at FROM notification WHERE settled_at IS NULL ORDER BY received_at LIMIT 1) open),
        0)::float8 AS "oldestNotificationS",
      late.n AS "lateAuthorizations", late."ageS" AS "oldestAuthorizationS"
    FROM (SELECT count(*)::integer AS n, coalesce(extract(epoch FROM now() - min(open.created_at)), 0)::float8 AS "ageS"
      FROM (SELECT account_id, payment_id, amount_minor_units, created_at FROM transaction
        WHERE check_at <= now() + interval '1 hour' AND type IN ('PURCHASE', 'AUTHORIZE') AND status = 'SUCCEEDED'
          AND NOT capture AND (created_at < now() - interval '8 days' OR check_at < now() - interval '1 day') LIMIT 100000) open
      JOIN payment p ON p.account_id = open.account_id AND p.id = open.payment_id
      WHERE NOT p.released AND p.captured_minor_units < open.amount_minor_units) late`,
};

/** Reads facts about accounts, webhooks and open work. The schema must be up to date. */
export async function readServiceFacts(database: Database): Promise<ServiceFacts> {
  return onlyRow(await database.query<ServiceFacts>(SERVICE_FACTS));
}

/** A connection that the catalogue lacks, with the number of its open transactions, counted up to 100,000. */
export type OpenElsewhere = { readonly connectionId: string; readonly open: number };

const OPEN_ELSEWHERE = {
  name: 'open_elsewhere',
  text: `
    SELECT open.connection_id AS "connectionId", count(*)::integer AS open
    FROM (SELECT connection_id FROM transaction
      WHERE check_at IS NOT NULL AND connection_id <> ALL ($1::text[]) LIMIT 100000) open
    GROUP BY open.connection_id ORDER BY open.connection_id`,
};

/**
 * Counts the transactions that a check is due for, now or later, at connections other than `known`: unknown outcomes,
 * open operations, redirected payers and held authorizations.
 */
export async function countOpenElsewhere(
  database: Database,
  known: readonly string[],
): Promise<readonly OpenElsewhere[]> {
  return (await database.query<OpenElsewhere>(OPEN_ELSEWHERE, [known])).rows;
}
