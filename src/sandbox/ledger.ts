import { Pool } from 'pg';

/** What the simulated provider did under an idempotency key. It holds no card number and no security code. */
export type LedgerEntry = {
  /** The provider's own identifier: ch_…, wo_… or we_… and a UUID. */
  readonly id: string;
  readonly idempotencyKey: string;
  /** `closed`: nothing was done, and nothing will be. */
  readonly kind: 'charge' | 'wallet_order' | 'wallet_enrollment' | 'closed';
  readonly acquirer: string;
  readonly status: string;
  /** ISO 8583 response code; undefined for wallets. */
  readonly responseCode: string | undefined;
  /** Integer minor units. */
  readonly amount: number;
  /** ISO 4217. */
  readonly currency: string;
  /** First and last digits; undefined for wallets. */
  readonly cardIin: string | undefined;
  readonly cardLastFour: string | undefined;
  /** The HTTP status and the JSON body that it was answered with, and that a repeat is answered with. */
  readonly answerStatus: number;
  readonly answer: string;
  /** JSON of what the checkout page shows; undefined for all but wallet orders. */
  readonly details: string | undefined;
};

/** What is on disk counts: `record` resolves after the commit. */
export type Ledger = {
  /** Creates schema and table; any number of processes may do so at once. */
  prepare(): Promise<void>;
  /** Records an entry, or gives the one that its idempotency key has already. Race-safe by a unique constraint. */
  record(entry: LedgerEntry): Promise<{ readonly entry: LedgerEntry; readonly isNew: boolean }>;
  findByKey(idempotencyKey: string): Promise<LedgerEntry | undefined>;
  findById(id: string): Promise<LedgerEntry | undefined>;
  close(): Promise<void>;
};

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

/** Opens the ledger, in the schema `sandbox` of a PostgreSQL database. */
export function openLedger(databaseUrl: string): Ledger {
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

  const findByKey = (idempotencyKey: string) => find('idempotency_key', idempotencyKey);
  return { prepare, record, findByKey, findById: (id) => find('id', id), close: () => pool.end() };
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
