import { Pool } from 'pg';
import { LEDGER_PAGE, type Ledger, type LedgerEntry } from './ledger.ts';

const MAX_CONNECTIONS = 10;
const TIMEOUT_MS = 10_000;
/** Any number that is the provider's own: the name of its advisory lock. */
const PREPARE_LOCK = 7_265_318;

const SCHEMA = `
  CREATE SCHEMA IF NOT EXISTS sandbox;
  CREATE TABLE IF NOT EXISTS sandbox.ledger (
    id text PRIMARY KEY,
    idempotency_key text NOT NULL UNIQUE,
    kind text NOT NULL,
    acquirer text NOT NULL,
    status text NOT NULL,
    response_code text,
    amount bigint NOT NULL,
    currency text NOT NULL,
    card_iin text,
    card_last_four text,
    answer_status integer NOT NULL,
    answer text NOT NULL,
    details text,
    created_at timestamptz NOT NULL DEFAULT now()
  );`;

const COLUMNS = `id, idempotency_key, kind, acquirer, status, response_code, amount, currency, card_iin,
  card_last_four, answer_status, answer, details`;

const INSERT = `INSERT INTO sandbox.ledger (${COLUMNS})
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
  ON CONFLICT (idempotency_key) DO NOTHING`;

/**
 * The ledger in the schema `sandbox` of a PostgreSQL database. Any number of processes may prepare and use it at once; a
 * unique constraint decides races.
 */
export function postgresLedger(databaseUrl: string): Ledger {
  const pool = new Pool({
    connectionString: databaseUrl,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: TIMEOUT_MS,
    statement_timeout: TIMEOUT_MS,
    application_name: 'sandbox-provider',
  });
  // A connection that breaks while idle is replaced at its next use; unheard, the event would end the process.
  pool.on('error', () => {});

  async function prepare(): Promise<void> {
    // One simple query is one transaction, and the lock is let go with it.
    await pool.query(`SELECT pg_advisory_xact_lock(${PREPARE_LOCK}); ${SCHEMA}`);
  }

  async function record(entry: LedgerEntry): Promise<{ entry: LedgerEntry; isNew: boolean }> {
    const inserted = await pool.query({ name: 'sandbox_insert', text: INSERT, values: toRow(entry) });
    if (inserted.rowCount === 1) return { entry, isNew: true };
    const first = await findByKey(entry.idempotencyKey);
    if (!first) throw new Error('the ledger lost an entry');
    return { entry: first, isNew: false };
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
  return { prepare, record, findByKey, findById, entriesAfter, close: () => pool.end() };
}

type LedgerRow = {
  id: string;
  idempotency_key: string;
  kind: LedgerEntry['kind'];
  acquirer: string;
  status: string;
  response_code: string | null;
  /** bigint, which pg gives as text. */
  amount: string;
  currency: string;
  card_iin: string | null;
  card_last_four: string | null;
  answer_status: number;
  answer: string;
  details: string | null;
};

function toRow(entry: LedgerEntry): unknown[] {
  return [
    entry.id,
    entry.idempotencyKey,
    entry.kind,
    entry.acquirer,
    entry.status,
    entry.responseCode,
    entry.amount,
    entry.currency,
    entry.cardIin,
    entry.cardLastFour,
    entry.answerStatus,
    entry.answer,
    entry.details,
  ];
}

function fromRow(row: LedgerRow): LedgerEntry {
  return {
    id: row.id,
    idempotencyKey: row.idempotency_key,
    kind: row.kind,
    acquirer: row.acquirer,
    status: row.status,
    responseCode: row.response_code ?? undefined,
    amount: Number(row.amount),
    currency: row.currency,
    cardIin: row.card_iin ?? undefined,
    cardLastFour: row.card_last_four ?? undefined,
    answerStatus: row.answer_status,
    answer: row.answer,
    details: row.details ?? undefined,
  };
}
