import type { Database, Run } from './database.ts';
import { NIL_UUID } from './rows.ts';
import { type Cursor, STEP_TIMEOUT_MS, type Step } from './sweep.ts';

/** The bytes of a payment that contain personal data. */
export type StoredRecords = {
  readonly record: Uint8Array;
  readonly response: Uint8Array;
  /** null while it is the same as the record. */
  readonly responseRecord: Uint8Array | null;
};

/** The bytes of an operation's transaction that contain personal data. */
export type StoredResponse = { readonly response: Uint8Array; readonly responseRecord: Uint8Array };

/** Functions that return those bytes without personal data. */
export type Erase = {
  readonly payment: (stored: StoredRecords) => StoredRecords;
  readonly operation: (stored: StoredResponse) => StoredResponse;
};

/** Maximum number of rows that a step reads, and of payments that it rewrites, and so locks, in one commit. */
const LOOKED_AT = 1_000;
const REWRITTEN = 100;
/** Maximum number of operation responses read at once. */
const RESPONSES_READ = 100;

/**
 * A payment `p` of the account $1 with nothing open: no status that may still change by itself, no open operation, no
 * scheduled check, and no dispute, even one that leaves its status as it is.
 */
export const HAS_NOTHING_OPEN = `p.response IS NOT NULL AND p.open_operation IS NULL
      AND p.status NOT IN ('READY_TO_PAY', 'PENDING', 'IN_DISPUTE')
      AND NOT EXISTS (
        SELECT 1 FROM transaction t
        WHERE t.account_id = $1 AND t.payment_id = p.id AND t.check_at IS NOT NULL
      )
      AND NOT EXISTS (
        SELECT 1 FROM dispute d WHERE d.account_id = $1 AND d.payment_id = p.id AND d.closed_at IS NULL
      )`;
/** A payment `p` that was written since its personal data was erased, or whose data never was. */
export const IS_PERSONAL = '(p.personal_data_erased_at IS NULL OR p.personal_data_erased_at < p.updated_at)';

// A payment is due again after a later operation.
const SCAN_PAYMENTS = `
  SELECT p.id, p.created_at::text AS "createdAt",
    ${IS_PERSONAL} AND p.updated_at < now() - make_interval(days => $2) AND ${HAS_NOTHING_OPEN} AS due
  FROM payment p
  WHERE p.account_id = $1 AND p.created_at < now() - make_interval(days => $2)
    AND (p.created_at, p.id) > ($3::timestamptz, $4::uuid)
  ORDER BY p.created_at, p.id LIMIT ${LOOKED_AT}`;

// The scan took no locks. An operation that has begun since has changed the payment's row, which then no longer
// matches.
const LOCK_PAYMENTS = `
  SELECT p.id, p.record, p.response, p.response_record AS "responseRecord"
  FROM payment p
  WHERE p.account_id = $1 AND p.id = ANY ($2::uuid[]) AND p.updated_at < now() - make_interval(days => $3)
    AND p.open_operation IS NULL AND p.response IS NOT NULL
  ORDER BY p.id FOR UPDATE SKIP LOCKED`;
// Each response contains a whole record, so the responses of a payment with many operations may not fit in memory.
const READ_RESPONSES = `
  SELECT id, response, response_record AS "responseRecord" FROM transaction
  WHERE account_id = $1 AND payment_id = ANY ($2::uuid[]) AND response IS NOT NULL AND response_record IS NOT NULL
    AND id > $3::uuid
  ORDER BY id LIMIT ${RESPONSES_READ}`;

// Raises the version, so that an operation planned on the record with personal data is planned again.
const WRITE_PAYMENTS = `
  UPDATE payment p
  SET record = erased.record, response = erased.response, response_record = erased.response_record, card_fingerprint = NULL,
    payer_email_hash = NULL, payer_document_hash = NULL, version = p.version + 1, personal_data_erased_at = now()
  FROM unnest($2::uuid[], $3::bytea[], $4::bytea[], $5::bytea[]) AS erased(id, record, response, response_record)
  WHERE p.account_id = $1 AND p.id = erased.id`;
const WRITE_RESPONSES = `
  UPDATE transaction t SET response = erased.response, response_record = erased.response_record
  FROM unnest($2::uuid[], $3::bytea[], $4::bytea[]) AS erased(id, response, response_record)
  WHERE t.account_id = $1 AND t.id = erased.id`;

// An operator's note may be about the payer.
const ERASE_NOTES = `
  UPDATE dispute SET note = '', noted_by = NULL WHERE account_id = $1 AND payment_id = ANY ($2::uuid[]) AND note <> ''`;

/** The bytes of the row with an id. */
export type Row<Stored> = Stored & { readonly id: string };

/**
 * Erases the personal data of an account's next payments that have had no write for `days` and have nothing open. Each
 * step is one or a few commits. Payments being written are left for the next run.
 *
 * @param retention.erase undefined for a dry run.
 */
export async function erasePayments(
  database: Database,
  accountId: string,
  { days, erase }: { readonly days: number; readonly erase: Erase | undefined },
  after: Cursor = ['-infinity', NIL_UUID],
): Promise<Step> {
  const { rows } = await database.transaction(
    (run) => run<{ id: string; createdAt: string; due: boolean }>(SCAN_PAYMENTS, [accountId, days, ...after]),
    STEP_TIMEOUT_MS,
  );
  const ids = rows.filter(({ due }) => due).map(({ id }) => id);
  const last = rows.length === LOOKED_AT ? rows.at(-1) : undefined;
  const next = last && [last.createdAt, last.id];
  const lookedAt = rows.length;
  if (!erase) return { lookedAt, due: ids.length, next };
  let due = 0;
  for (let from = 0; from < ids.length; from += REWRITTEN) {
    due += await rewrite(database, accountId, ids.slice(from, from + REWRITTEN), { days, erase });
  }
  return { lookedAt, due, next };
}

function rewrite(
  database: Database,
  accountId: string,
  ids: readonly string[],
  { days, erase }: { readonly days: number; readonly erase: Erase },
): Promise<number> {
  return database.transaction(async (run) => {
    const { rows } = await run<Row<StoredRecords>>(LOCK_PAYMENTS, [accountId, ids, days]);
    await rewriteLocked(run, accountId, rows, erase);
    return rows.length;
  }, STEP_TIMEOUT_MS);
}

/** Rewrites locked payments and the responses of their operations. */
export async function rewriteLocked(
  run: Run,
  accountId: string,
  rows: readonly Row<StoredRecords>[],
  erase: Erase,
): Promise<void> {
  const locked = rows.map(({ id }) => id);
  const payments = rows.map((row) => erase.payment(row));
  await run(WRITE_PAYMENTS, [
    accountId,
    locked,
    payments.map(({ record }) => record),
    payments.map(({ response }) => response),
    payments.map(({ responseRecord }) => responseRecord),
  ]);
  await run(ERASE_NOTES, [accountId, locked]);
  let last: string | undefined = NIL_UUID;
  while (last !== undefined) {
    const values: unknown[] = [accountId, locked, last];
    const responses: Row<StoredResponse>[] = (await run<Row<StoredResponse>>(READ_RESPONSES, values)).rows;
    const operations = responses.map((row) => erase.operation(row));
    await run(WRITE_RESPONSES, [
      accountId,
      responses.map(({ id }) => id),
      operations.map(({ response }) => response),
      operations.map(({ responseRecord }) => responseRecord),
    ]);
    last = responses.length === RESPONSES_READ ? responses.at(-1)?.id : undefined;
  }
}
