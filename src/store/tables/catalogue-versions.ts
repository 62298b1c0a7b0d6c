import type { Database, Queries, Statement } from '../engine/database.ts';
import { queriesOf } from '../engine/database.ts';
import { firstRow, onlyRow } from '../engine/rows.ts';
import { type AuditedAction, recordAction } from './audit-log.ts';
import { notePublished } from './connection-secrets.ts';

/** The way in which a version was published. */
export type VersionSource = 'seed' | 'api' | 'dashboard' | 'command' | 'undo';

/** A published version, without its catalogue. */
export type VersionEntry = {
  readonly version: number;
  readonly source: VersionSource;
  /** The version that it replaced; 0 for the first. */
  readonly replaced: number;
  readonly actor: string;
  readonly comment: string;
  readonly publishedAt: Date;
  /** SHA-256 of the catalogue in its canonical form. */
  readonly hash: Uint8Array;
};

/** A published version, as columns. */
export type StoredVersion = VersionEntry & {
  readonly format: number;
  /** An encoded payments.v1.Catalogue. */
  readonly catalogue: Uint8Array;
  /** The schema that the catalogue was written with (`response_schema`). */
  readonly schema: Uint8Array;
};

/** The version in force; `revision` also rises with changes of stored secrets. */
export type CatalogueHead = { readonly version: number; readonly revision: bigint };

const READ_HEAD = { name: 'read_catalogue_head', text: 'SELECT version, revision FROM catalogue_head' };

/** Reads the version in force; undefined if none was ever published. */
export async function readHead(queries: Queries): Promise<CatalogueHead | undefined> {
  return firstRow(await queries.query<CatalogueHead>(READ_HEAD));
}

const ENTRY = `version, source, replaced, actor, comment, published_at AS "publishedAt", hash`;
const READ_VERSION = {
  name: 'read_catalogue_version',
  text: `SELECT ${ENTRY}, format, catalogue, schema FROM catalogue_version WHERE version = $1`,
};

/** Reads a version; undefined if there is none. */
export async function readVersion(queries: Queries, version: number): Promise<StoredVersion | undefined> {
  return firstRow(await queries.query<StoredVersion>(READ_VERSION, [version]));
}

const LIST_VERSIONS = {
  name: 'list_catalogue_versions',
  text: `SELECT ${ENTRY} FROM catalogue_version WHERE version < $1 ORDER BY version DESC LIMIT $2`,
};
const AFTER_ALL = 2 ** 31 - 1;

/** Lists up to `limit` versions before a version, newest first. @param before undefined for the newest ones. */
export async function listVersions(
  queries: Queries,
  limit: number,
  before = AFTER_ALL,
): Promise<VersionEntry[]> {
  return (await queries.query<VersionEntry>(LIST_VERSIONS, [before, limit])).rows;
}

/** A version to publish. */
export type NewVersion = Omit<StoredVersion, 'version' | 'replaced' | 'publishedAt'> & {
  /** The version that must be in force; 0 if there must be none. */
  readonly expected: number;
  /** The revision that must be in force, so that the secrets with which it was opened are still stored; absent: any. */
  readonly revision?: bigint | undefined;
  /** The ids of its retired connections. */
  readonly retired: readonly string[];
  /** Identities of its connections by id. */
  readonly identities: ReadonlyMap<string, string>;
  readonly audited: AuditedAction;
};

// The head's row is locked first, so that of two publishers at once the second sees the first one's version.
const LOCK_HEAD = 'SELECT version, revision FROM catalogue_head FOR UPDATE';
const FIRST_HEAD = 'INSERT INTO catalogue_head (version) VALUES ($1) ON CONFLICT (id) DO NOTHING';
const MOVE_HEAD = 'UPDATE catalogue_head SET version = $1, revision = revision + 1';
const INSERT = `
  INSERT INTO catalogue_version (version, format, catalogue, schema, hash, source, replaced, actor, comment)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`;
const ADD_RETIRED = `
  INSERT INTO retired_connection (connection_id) SELECT unnest($1::text[]) ON CONFLICT (connection_id) DO NOTHING`;
const DELETE_OTHERS = 'DELETE FROM retired_connection WHERE connection_id <> ALL ($1::text[])';

/**
 * Publishes a version and its audit entry in one commit, if the expected version is still in force.
 *
 * @returns the new version; undefined if another version is in force.
 */
export function publishVersion(database: Database, published: NewVersion): Promise<number | undefined> {
  const { expected, revision, retired, identities, audited, ...columns } = published;
  const { format, catalogue, schema, hash, source, actor, comment } = columns;
  return database.transaction(async (run) => {
    const version = expected + 1;
    if (expected === 0) {
      if ((await run(FIRST_HEAD, [version])).rowCount === 0) return undefined;
    } else {
      const head = firstRow(await run<CatalogueHead>(LOCK_HEAD));
      if (head?.version !== expected || (revision ?? head.revision) !== head.revision) return undefined;
      await run(MOVE_HEAD, [version]);
    }
    await notePublished(run, identities);
    await run(INSERT, [version, format, catalogue, schema, hash, source, expected, actor, comment]);
    await run(ADD_RETIRED, [retired]);
    await run(DELETE_OTHERS, [retired]);
    await recordAction(queriesOf(run), { ...audited, subject: String(version) });
    return version;
  });
}

/** A process that runs the service, with the version that it has in force. */
export type CatalogueReplica = {
  readonly name: string;
  readonly version: number;
  /** The reason why it does not run the newest version; '' if it does. */
  readonly fault: string;
};

const SAVE_REPLICA = {
  name: 'save_catalogue_replica',
  text: `
    INSERT INTO catalogue_replica (name, version, fault) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET version = excluded.version, fault = excluded.fault, seen_at = now()`,
};

/** Stores which version a process has in force, and that it is alive. */
export async function saveReplica(
  queries: Queries,
  { name, version, fault }: CatalogueReplica,
): Promise<void> {
  await queries.query(SAVE_REPLICA, [name, version, fault]);
}

/** A process is gone if it was last seen this long ago. */
const GONE_AFTER_S = 180;
const LIST_REPLICAS = {
  name: 'list_catalogue_replicas',
  text: `
    SELECT name, version, fault, seen_at AS "seenAt" FROM catalogue_replica
    WHERE seen_at > now() - make_interval(secs => ${GONE_AFTER_S}) ORDER BY name`,
};

/** Lists the processes that were seen in the last minutes. */
export async function listReplicas(
  queries: Queries,
): Promise<(CatalogueReplica & { readonly seenAt: Date })[]> {
  return (await queries.query<CatalogueReplica & { readonly seenAt: Date }>(LIST_REPLICAS)).rows;
}

/** The maximum to which work is counted. */
export const MOST_OWED = 100;

const COUNT_DUE = countOf('due_at_connection', 'transaction', 'check_at IS NOT NULL');
const COUNT_DISPUTES = countOf(
  'disputes_at_connection',
  'transaction',
  "type = 'CHARGEBACK' AND status = 'PENDING'",
);
// A dispute that takes no money, such as an inquiry, has no transaction.
const COUNT_INQUIRIES = countOf(
  'inquiries_at_connection',
  'dispute',
  "stage IN ('INQUIRY', 'PRE_DISPUTE') AND closed_at IS NULL",
);
const COUNT_WALLETS = countOf('wallets_at_connection', 'vaulted_token', "status = 'ENROLLED'");

function countOf(name: string, table: string, isOwed: string): Statement {
  const text = `
    SELECT count(*)::integer AS count FROM (
      SELECT 1 FROM ${table} WHERE connection_id = $1 AND ${isOwed} LIMIT ${MOST_OWED}) owed`;
  return { name: `count_${name}`, text };
}

/** Work that is still owed at a connection, each counted up to MOST_OWED. */
export type OwedAt = { readonly due: number; readonly disputes: number; readonly wallets: number };

/** Counts transactions that are to be checked, open disputes and enrolled wallets at a connection. */
export async function countOwedAt(queries: Queries, connectionId: string): Promise<OwedAt> {
  const count = async (statement: Statement) =>
    onlyRow(await queries.query<{ count: number }>(statement, [connectionId])).count;
  return {
    due: await count(COUNT_DUE),
    disputes: Math.min(MOST_OWED, (await count(COUNT_DISPUTES)) + (await count(COUNT_INQUIRIES))),
    wallets: await count(COUNT_WALLETS),
  };
}

const HAS_PAYMENTS = {
  name: 'has_payments_at_connection',
  text: `
    SELECT true AS "hasPayments" FROM transaction WHERE connection_id = $1 AND provider_payment_id IS NOT NULL LIMIT 1`,
};
const READ_TERM = {
  name: 'read_refund_term',
  text: `
    SELECT retired_at + make_interval(days => $2) AS until FROM retired_connection
    WHERE connection_id = $1 AND retired_at > now() - make_interval(days => $2)`,
};

/**
 * Returns until when the payments of a retired connection can be refunded; undefined if it has no payments, or its term
 * is over.
 *
 * @param days the term, which begins when the connection is retired.
 */
export async function readRefundTerm(
  queries: Queries,
  connectionId: string,
  days: number,
): Promise<Date | undefined> {
  if (!firstRow(await queries.query<{ hasPayments: true }>(HAS_PAYMENTS, [connectionId]))) return undefined;
  return firstRow(await queries.query<{ until: Date }>(READ_TERM, [connectionId, days]))?.until;
}
