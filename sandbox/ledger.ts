import { Pool, type PoolClient } from 'pg';
import type { LedgerEntry } from './ledger-entry.ts';

/** The simulated provider's record of its actions. Only data on disk counts: writes resolve after the commit. */
export type Ledger = {
  /** Creates the ledger, or reads the existing one. */
  prepare(): Promise<void>;
  /** Records an entry, or returns the existing entry with its idempotency key. Safe for concurrent calls. */
  record(entry: LedgerEntry): Promise<{ readonly entry: LedgerEntry; readonly isNew: boolean }>;
  /**
   * Reads entries, and atomically writes the changed or new ones that `decide` returns. `decide` gets the existing
   * entries. If it returns none, nothing is written.
   *
   * @returns the written entries; undefined, with nothing written, if a new entry's idempotency key is in use.
   */
  change(
    ids: readonly string[],
    decide: (entries: readonly LedgerEntry[]) => readonly LedgerEntry[],
  ): Promise<readonly LedgerEntry[] | undefined>;
  findByKey(idempotencyKey: string): Promise<LedgerEntry | undefined>;
  findById(id: string): Promise<LedgerEntry | undefined>;
  /** Returns at most LEDGER_PAGE entries after an id, in the order of ids. */
  entriesAfter(id: string): Promise<readonly LedgerEntry[]>;
  close(): Promise<void>;
};

/** Limit on the entries of one page of the ledger. */
export const LEDGER_PAGE = 1_000;

const MAX_CONNECTIONS = 10;
const TIMEOUT_MS = 10_000;
/** Key of the provider's advisory lock: an arbitrary, unique number. */
const PREPARE_LOCK = 7_265_318;

/** The table itself enforces captured ≤ authorized and refunded ≤ captured, whatever the code does. */
const SCHEMA = `
  CREATE SCHEMA IF NOT EXISTS sandbox;
  CREATE TABLE IF NOT EXISTS sandbox.ledger (
    id text PRIMARY KEY,
    idempotency_key text NOT NULL UNIQUE,
    kind text NOT NULL,
    parent_id text,
    acquirer text NOT NULL,
    status text NOT NULL,
    response_code text,
    amount bigint NOT NULL,
    currency text NOT NULL,
    card_iin text,
    card_last_four text,
    answer_status integer NOT NULL,
    answer text NOT NULL,
    latest text,
    details text,
    captured bigint NOT NULL DEFAULT 0,
    canceled bigint NOT NULL DEFAULT 0,
    refunded bigint NOT NULL DEFAULT 0,
    captures integer NOT NULL DEFAULT 0,
    due_status text,
    due_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT never_captured_beyond CHECK (captured >= 0 AND canceled >= 0 AND captured + canceled <= amount),
    CONSTRAINT never_refunded_beyond CHECK (refunded >= 0 AND refunded <= captured)
  )`;

/** Functions that return an entry's value for each column. */
const VALUES = {
  id: ({ id }) => id,
  idempotency_key: ({ idempotencyKey }) => idempotencyKey,
  kind: ({ kind }) => kind,
  acquirer: ({ acquirer }) => acquirer,
  status: ({ status }) => status,
  response_code: ({ responseCode }) => responseCode,
  amount: ({ amount }) => amount,
  currency: ({ currency }) => currency,
  card_iin: ({ cardIin }) => cardIin,
  card_last_four: ({ cardLastFour }) => cardLastFour,
  answer_status: ({ answerStatus }) => answerStatus,
  answer: ({ answer }) => answer,
  details: ({ details }) => JSON.stringify(details),
  parent_id: ({ parentId }) => parentId,
  latest: ({ latest }) => latest,
  captured: ({ sums }) => sums.captured,
  canceled: ({ sums }) => sums.canceled,
  refunded: ({ sums }) => sums.refunded,
  captures: ({ sums }) => sums.captures,
  due_status: ({ due }) => due?.status,
  due_at: ({ due }) => due && new Date(due.atMs),
} satisfies Record<keyof LedgerRow, (entry: LedgerEntry) => unknown>;

const COLUMNS = Object.keys(VALUES);

const INSERT = `INSERT INTO sandbox.ledger (${COLUMNS})
  VALUES (${COLUMNS.map((_, i) => `$${i + 1}`)})
  ON CONFLICT (idempotency_key) DO NOTHING`;

const LOCK = `SELECT ${COLUMNS} FROM sandbox.ledger WHERE id = ANY($1) ORDER BY id FOR UPDATE`;

const UPDATE = `UPDATE sandbox.ledger
  SET (${COLUMNS}) = ROW (${COLUMNS.map((_, i) => `$${i + 1}`)}) WHERE id = $1`;

/**
 * Opens the ledger in the schema `sandbox` of a PostgreSQL database. Any number of processes may prepare and use it at
 * once: a unique constraint decides which call is first with an idempotency key, and a row lock decides which one
 * changes a payment first.
 */
export function openLedger(databaseUrl: string): Ledger {
  const pool = new Pool({
    connectionString: databaseUrl,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: TIMEOUT_MS,
    statement_timeout: TIMEOUT_MS,
    application_name: 'sandbox-provider',
  });
  // A broken connection makes the query in progress fail, and is replaced at its next use. Without listeners, error
  // events would end the process: the pool's for an idle connection, and the client's for a connection in use or
  // closing.
  pool.on('error', () => {});
  pool.on('connect', (client) => void client.on('error', () => {}));

  async function prepare(): Promise<void> {
    // A simple query is one transaction, which releases the lock at its end.
    await pool.query(`SELECT pg_advisory_xact_lock(${PREPARE_LOCK}); ${SCHEMA}`);
  }

  async function record(entry: LedgerEntry): Promise<{ entry: LedgerEntry; isNew: boolean }> {
    const inserted = await pool.query({ name: 'sandbox_insert', text: INSERT, values: toRow(entry) });
    if (inserted.rowCount === 1) return { entry, isNew: true };
    const first = await findByKey(entry.idempotencyKey);
    if (!first) throw new Error('the ledger lost an entry');
    return { entry: first, isNew: false };
  }

  async function change(
    ids: readonly string[],
    decide: (entries: readonly LedgerEntry[]) => readonly LedgerEntry[],
  ): Promise<readonly LedgerEntry[] | undefined> {
    return inTransaction(pool, async (client) => {
      const { rows } = await client.query<LedgerRow>({ name: 'sandbox_lock', text: LOCK, values: [ids] });
      const written = decide(rows.map(fromRow));
      const known = new Set(rows.map(({ id }) => id));
      for (const entry of written) {
        const statement = known.has(entry.id)
          ? { name: 'sandbox_update', text: UPDATE, values: toRow(entry) }
          : { name: 'sandbox_insert', text: INSERT, values: toRow(entry) };
        if ((await client.query(statement)).rowCount !== 1) return undefined;
      }
      return written;
    });
  }

  async function find(column: 'id' | 'idempotency_key', value: string): Promise<LedgerEntry | undefined> {
    const { rows } = await pool.query<LedgerRow>({
      name: `sandbox_find_by_${column}`,
      text: `SELECT ${COLUMNS} FROM sandbox.ledger WHERE ${column} = $1`,
      values: [value],
    });
    return rows[0] && fromRow(rows[0]);
  }

  async function entriesAfter(id: string): Promise<LedgerEntry[]> {
    const { rows } = await pool.query<LedgerRow>({
      name: 'sandbox_entries_after',
      text: `SELECT ${COLUMNS} FROM sandbox.ledger WHERE id COLLATE "C" > $1 ORDER BY id COLLATE "C" LIMIT $2`,
      values: [id, LEDGER_PAGE],
    });
    return rows.map(fromRow);
  }

  const findByKey = (idempotencyKey: string) => find('idempotency_key', idempotencyKey);
  const findById = (id: string) => find('id', id);
  return { prepare, record, change, findByKey, findById, entriesAfter, close: () => pool.end() };
}

/** Commits the statements of `work`, unless it returns undefined or throws. */
async function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T | undefined>,
): Promise<T | undefined> {
  const client = await pool.connect();
  let isCommitted = false;
  try {
    await client.query('BEGIN');
    const result = await work(client);
    if (result === undefined) return undefined;
    await client.query('COMMIT');
    isCommitted = true;
    return result;
  } finally {
    // Without a commit, the change is rolled back, if necessary by closing the connection.
    const broken = isCommitted ? undefined : await client.query('ROLLBACK').then(() => undefined, Boolean);
    client.release(broken);
  }
}

/** A row as pg returns it, with bigint as text. */
type LedgerRow = {
  id: string;
  idempotency_key: string;
  kind: LedgerEntry['kind'];
  acquirer: string;
  status: string;
  response_code: string | null;
  amount: string;
  currency: string;
  card_iin: string | null;
  card_last_four: string | null;
  answer_status: number;
  answer: string;
  details: string | null;
  parent_id: string | null;
  latest: string | null;
  captured: string;
  canceled: string;
  refunded: string;
  captures: number;
  due_status: string | null;
  due_at: Date | null;
};

/** Returns an entry's values in the order of COLUMNS. */
function toRow(entry: LedgerEntry): unknown[] {
  return Object.values(VALUES).map((read) => read(entry));
}

function fromRow(row: LedgerRow): LedgerEntry {
  return {
    id: row.id,
    idempotencyKey: row.idempotency_key,
    kind: row.kind,
    parentId: row.parent_id ?? undefined,
    acquirer: row.acquirer,
    status: row.status,
    responseCode: row.response_code ?? undefined,
    amount: Number(row.amount),
    currency: row.currency,
    cardIin: row.card_iin ?? undefined,
    cardLastFour: row.card_last_four ?? undefined,
    answerStatus: row.answer_status,
    answer: row.answer,
    latest: row.latest ?? undefined,
    sums: {
      captured: Number(row.captured),
      canceled: Number(row.canceled),
      refunded: Number(row.refunded),
      captures: row.captures,
    },
    due:
      row.due_status !== null && row.due_at !== null
        ? { status: row.due_status, atMs: row.due_at.getTime() }
        : undefined,
    details: row.details === null ? {} : JSON.parse(row.details),
  };
}
