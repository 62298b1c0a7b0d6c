import type { Database, Run } from './database.ts';
import {
  type Erase,
  HAS_NOTHING_OPEN,
  IS_PERSONAL,
  type Row,
  rewriteLocked,
  type StoredRecords,
} from './erased-payments.ts';
import { NIL_UUID } from './rows.ts';
import { type Cursor, STEP_TIMEOUT_MS, type Step } from './sweep.ts';

/** Names a payer of an account: by the ids of the customers that stand for them, or the hash of their e-mail address. */
export type PayerName = { readonly customerIds: readonly string[]; readonly emailHash: string | undefined };

/** A payment of the payer that still has personal data. */
export type PayerPayment = {
  readonly id: string;
  /** Name of a payments.v1.Payment.Status. */
  readonly status: string;
  /** true: something about it is open, so its data is needed. */
  readonly isOpen: boolean;
  /** When its provider is next asked about it; null if no time is set. An authorization is open until its term ends. */
  readonly checkAt: Date | null;
};

/** Maximum number of rows that a step reads, and of payments that it rewrites, and so locks, in one commit. */
const LOOKED_AT = 1_000;
const REWRITTEN = 100;
/** Maximum number of events read at once. */
const EVENTS_READ = 500;

// News that was stored during a check is settled by the next one.
const IS_CLOSED = `${HAS_NOTHING_OPEN} AND NOT EXISTS (
        SELECT 1 FROM transaction t JOIN notification n ON n.account_id = $1 AND n.transaction_id = t.id
        WHERE t.account_id = $1 AND t.payment_id = p.id AND n.settled_at IS NULL
      )`;

// Reads a fixed number of an account's payments, whoever paid them.
const SCAN = `
  SELECT p.id, p.status, p.created_at::text AS "createdAt", is_theirs AS "isTheirs",
    is_theirs AND NOT (${IS_CLOSED}) AS "isOpen", CASE WHEN is_theirs THEN (
      SELECT max(t.check_at) FROM transaction t WHERE t.account_id = $1 AND t.payment_id = p.id
    ) END AS "checkAt"
  FROM (
    SELECT p.*, ${IS_PERSONAL} AND (p.customer_id = ANY ($4::uuid[]) OR coalesce(p.payer_email_hash = $5, false)) AS is_theirs
    FROM payment p WHERE p.account_id = $1 AND (p.created_at, p.id) > ($2::timestamptz, $3::uuid)
    ORDER BY p.created_at, p.id LIMIT ${LOOKED_AT}
  ) p
  ORDER BY p.created_at, p.id`;

/**
 * Finds the payer's payments among an account's next ones.
 *
 * @param found called with those that have personal data.
 */
export async function scanPayer(
  database: Database,
  accountId: string,
  { customerIds, emailHash }: PayerName,
  found: (payment: PayerPayment) => void,
  after: Cursor = ['-infinity', NIL_UUID],
): Promise<Step> {
  type Scanned = PayerPayment & { readonly createdAt: string; readonly isTheirs: boolean };
  const values = [accountId, ...after, customerIds, emailHash];
  const { rows } = await database.transaction((run) => run<Scanned>(SCAN, values), STEP_TIMEOUT_MS);
  const theirs = rows.filter(({ isTheirs }) => isTheirs);
  for (const payment of theirs) found(payment);
  const last = rows.length === LOOKED_AT ? rows.at(-1) : undefined;
  return { lookedAt: rows.length, due: theirs.length, next: last && [last.createdAt, last.id] };
}

const READ_RECORDS = 'SELECT record FROM payment WHERE account_id = $1 AND id = ANY ($2::uuid[])';
const READ_METHODS = `
  SELECT DISTINCT v.id FROM transaction t JOIN vaulted_token v ON v.account_id = $1 AND v.id = t.vaulted_token
  WHERE t.account_id = $1 AND t.payment_id = ANY ($2::uuid[]) AND v.customer_id IS NULL`;

/**
 * Returns the stored methods without a customer that payments used or created, and passes the payments' encoded records
 * to a function.
 */
export async function readRemains(
  database: Database,
  accountId: string,
  ids: readonly string[],
  readRecord: (record: Uint8Array) => void,
): Promise<string[]> {
  const methods = new Set<string>();
  for (const some of batches(ids)) {
    await database.transaction(async (run) => {
      const { rows } = await run<{ record: Uint8Array }>(READ_RECORDS, [accountId, some]);
      for (const { record } of rows) readRecord(record);
      for (const { id } of (await run<{ id: string }>(READ_METHODS, [accountId, some])).rows) methods.add(id);
    }, STEP_TIMEOUT_MS);
  }
  return [...methods];
}

// Nothing that has been opened since the scan is erased. A later run finds it.
const LOCK = `
  SELECT p.id, p.record, p.response, p.response_record AS "responseRecord"
  FROM payment p
  WHERE p.account_id = $1 AND p.id = ANY ($2::uuid[]) AND ${IS_CLOSED}
  ORDER BY p.id FOR UPDATE OF p SKIP LOCKED`;
// The row stays, so that a repetition of the notification is known.
const NOTIFICATIONS = `
  UPDATE notification n SET body = '', query = '', headers = '{}'
  FROM transaction t
  WHERE t.account_id = $1 AND t.payment_id = ANY ($2::uuid[])
    AND n.account_id = $1 AND n.transaction_id = t.id AND n.settled_at IS NOT NULL`;
const EVENTS = `
  SELECT id, type, record FROM event WHERE account_id = $1 AND payment_id = ANY ($2::uuid[]) AND id > $3::uuid
  ORDER BY id LIMIT ${EVENTS_READ}`;
const WRITE_EVENTS = `
  UPDATE event e SET record = erased.record FROM unnest($2::uuid[], $3::bytea[]) AS erased(id, record)
  WHERE e.account_id = $1 AND e.id = erased.id`;

type StoredEvent = { readonly id: string; readonly type: string; readonly record: Uint8Array };
/** Returns an event's record without personal data; undefined to leave it. */
export type EraseEvent = (event: Pick<StoredEvent, 'type' | 'record'>) => Uint8Array | undefined;

/**
 * Erases the personal data of payments with nothing open, wherever it is kept with them: records, responses, events that
 * were or will be sent, notifications, and operators' notes. Each hundred is one commit, after which nothing of them names
 * the payer.
 *
 * @param eraseEvent returns an event's record without personal data.
 * @returns the number of payments erased; others are being written, or have something open.
 */
export async function erasePaymentsOfPayer(
  database: Database,
  accountId: string,
  ids: readonly string[],
  { erase, eraseEvent }: { readonly erase: Erase; readonly eraseEvent: EraseEvent },
): Promise<number> {
  let erased = 0;
  for (const some of batches(ids)) {
    erased += await database.transaction(async (run) => {
      const { rows } = await run<Row<StoredRecords>>(LOCK, [accountId, some]);
      const locked = rows.map(({ id }) => id);
      await rewriteLocked(run, accountId, rows, erase);
      await rewriteEvents(run, accountId, locked, eraseEvent);
      await run(NOTIFICATIONS, [accountId, locked]);
      return rows.length;
    }, STEP_TIMEOUT_MS);
  }
  return erased;
}

async function rewriteEvents(
  run: Run,
  accountId: string,
  paymentIds: readonly string[],
  eraseEvent: EraseEvent,
) {
  let last: string | undefined = NIL_UUID;
  while (last !== undefined) {
    const { rows }: { rows: StoredEvent[] } = await run<StoredEvent>(EVENTS, [accountId, paymentIds, last]);
    const erased = rows.flatMap(({ id, ...event }) => {
      const record = eraseEvent(event);
      return record ? [{ id, record }] : [];
    });
    await run(WRITE_EVENTS, [accountId, erased.map(({ id }) => id), erased.map(({ record }) => record)]);
    last = rows.length === EVENTS_READ ? rows.at(-1)?.id : undefined;
  }
}

/** Erases events of stored methods, which belong to no payment. */
export function eraseMethodEvents(
  database: Database,
  accountId: string,
  eraseEvent: EraseEvent,
): Promise<void> {
  return database.transaction(
    (run) => rewriteEvents(run, accountId, [NIL_UUID], eraseEvent),
    STEP_TIMEOUT_MS,
  );
}

/** Returns ids in groups that are rewritten in one commit. */
function batches(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / REWRITTEN) }, (_, i) =>
    ids.slice(i * REWRITTEN, (i + 1) * REWRITTEN),
  );
}
