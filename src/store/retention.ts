import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from './database.ts';
import { NIL_UUID } from './rows.ts';

/** Position of the last row that a sweep looked at, in the sweep's own form. */
export type Cursor = readonly string[];

/** Result of a step of a sweep. */
export type Step = {
  readonly lookedAt: number;
  /** Rows that were aged out or, in a dry run, would be. */
  readonly due: number;
  /** Position after which the next step begins; undefined if there are no more rows. */
  readonly next: Cursor | undefined;
};

/** Pause after a step that wrote: payments come first. */
const PAUSE_MS = 20;

/**
 * Takes the steps of a sweep, one after the other, until there are no more rows.
 *
 * @param step takes the step after a position; undefined for the first.
 * @param options.onStep called after each step.
 * @returns the number of rows that were due.
 */
export async function sweep(
  step: (after: Cursor | undefined) => Promise<Step>,
  options: { readonly dryRun: boolean; readonly onStep: (step: Step) => void },
): Promise<number> {
  let due = 0;
  let next: Cursor | undefined;
  do {
    const last = await step(next);
    due += last.due;
    options.onStep(last);
    if (!options.dryRun && last.due > 0) await sleep(PAUSE_MS);
    next = last.next;
  } while (next);
  return due;
}

/** The bytes of a payment that hold personal data. */
export type StoredRecords = {
  readonly record: Uint8Array;
  readonly answer: Uint8Array;
  /** null while the record is the same as in the response. */
  readonly answeredRecord: Uint8Array | null;
};

/** The bytes of an operation's transaction that hold personal data. */
export type StoredResponse = { readonly response: Uint8Array; readonly responseRecord: Uint8Array };

/** Functions that return those bytes without the personal data. */
export type Erase = {
  readonly payment: (stored: StoredRecords) => StoredRecords;
  readonly operation: (stored: StoredResponse) => StoredResponse;
};

/** Rows that a step looks at, and payments that it rewrites in one commit, which stay locked meanwhile. */
const LOOKED_AT = 1_000;
const REWRITTEN = 100;
/** Operations' responses that are read at once. */
const RESPONSES_READ = 100;
/** Time limit of a step: on an overloaded database it fails, and the next run repeats it. */
const STEP_TIMEOUT_MS = 30_000;

// A payment is due if nothing is open: no state that may still change by itself, no operation, no look-up to come. It
// is due again once an operation has written to it.
const SCAN_PAYMENTS = `
  SELECT p.id, p.created_at::text AS "createdAt",
    (p.personal_data_erased_at IS NULL OR p.personal_data_erased_at < p.updated_at)
      AND p.updated_at < now() - make_interval(days => $2) AND p.answer IS NOT NULL AND p.open_operation IS NULL
      AND p.status NOT IN ('READY_TO_PAY', 'PENDING', 'IN_DISPUTE')
      AND NOT EXISTS (
        SELECT FROM transaction t
        WHERE t.account_id = $1 AND t.payment_id = p.id AND (t.look_up_at IS NOT NULL OR t.follow_up_at IS NOT NULL)
      ) AS due
  FROM payment p
  WHERE p.account_id = $1 AND p.created_at < now() - make_interval(days => $2)
    AND (p.created_at, p.id) > ($3::timestamptz, $4::uuid)
  ORDER BY p.created_at, p.id LIMIT ${LOOKED_AT}`;

// The scan took no locks: an operation begun since has written to the payment's row, which no longer matches.
const LOCK_PAYMENTS = `
  SELECT p.id, p.record, p.answer, p.answered_record AS "answeredRecord"
  FROM payment p
  WHERE p.account_id = $1 AND p.id = ANY ($2::uuid[]) AND p.updated_at < now() - make_interval(days => $3)
    AND p.open_operation IS NULL AND p.answer IS NOT NULL
  ORDER BY p.id FOR UPDATE SKIP LOCKED`;
// Each response holds the whole record of its time: a payment with many operations has more of them than fit in memory.
const READ_RESPONSES = `
  SELECT id, response, response_record AS "responseRecord" FROM transaction
  WHERE account_id = $1 AND payment_id = ANY ($2::uuid[]) AND response IS NOT NULL AND response_record IS NOT NULL
    AND id > $3::uuid
  ORDER BY id LIMIT ${RESPONSES_READ}`;

// The version moves on, so that an operation planned on the record with the personal data is planned anew.
const WRITE_PAYMENTS = `
  UPDATE payment p
  SET record = erased.record, answer = erased.answer, answered_record = erased.answered_record, version = p.version + 1,
    personal_data_erased_at = now()
  FROM unnest($2::uuid[], $3::bytea[], $4::bytea[], $5::bytea[]) AS erased(id, record, answer, answered_record)
  WHERE p.account_id = $1 AND p.id = erased.id`;
const WRITE_RESPONSES = `
  UPDATE transaction t SET response = erased.response, response_record = erased.response_record
  FROM unnest($2::uuid[], $3::bytea[], $4::bytea[]) AS erased(id, response, response_record)
  WHERE t.account_id = $1 AND t.id = erased.id`;

type Row<Stored> = Stored & { readonly id: string };

/**
 * Erases the personal data of an account's next payments to which nothing was written for `days` and of which nothing
 * is open. A step is one commit, or a few. Payments that are just being written are left for the next run.
 *
 * @param erase undefined for a dry run.
 */
export async function erasePayments(
  database: Database,
  accountId: string,
  days: number,
  erase: Erase | undefined,
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
    due += await rewrite(database, accountId, ids.slice(from, from + REWRITTEN), days, erase);
  }
  return { lookedAt, due, next };
}

function rewrite(
  database: Database,
  accountId: string,
  ids: readonly string[],
  days: number,
  erase: Erase,
): Promise<number> {
  return database.transaction(async (run) => {
    const { rows } = await run<Row<StoredRecords>>(LOCK_PAYMENTS, [accountId, ids, days]);
    const locked = rows.map(({ id }) => id);
    const payments = rows.map((row) => erase.payment(row));
    await run(WRITE_PAYMENTS, [
      accountId,
      locked,
      payments.map(({ record }) => record),
      payments.map(({ answer }) => answer),
      payments.map(({ answeredRecord }) => answeredRecord),
    ]);
    let last: string | undefined = NIL_UUID;
    while (last !== undefined) {
      const values: unknown[] = [accountId, locked, last];
      const responses = (await run<Row<StoredResponse>>(READ_RESPONSES, values)).rows;
      const operations = responses.map((row) => erase.operation(row));
      await run(WRITE_RESPONSES, [
        accountId,
        responses.map(({ id }) => id),
        operations.map(({ response }) => response),
        operations.map(({ responseRecord }) => responseRecord),
      ]);
      last = responses.length === RESPONSES_READ ? responses.at(-1)?.id : undefined;
    }
    return rows.length;
  }, STEP_TIMEOUT_MS);
}

/** A table from which old rows are deleted. */
type Aged = {
  readonly table: string;
  /** The primary key, with the types of its columns. */
  readonly key: readonly (readonly [column: string, type: string])[];
  /** Position before every key. */
  readonly first: Cursor;
  /** A condition on the row `a`; $1 is the number of days. */
  readonly due: string;
};

const OLD = 'created_at < now() - make_interval(days => $1)';
const BY_ID: Pick<Aged, 'key' | 'first'> = {
  key: [
    ['account_id', 'uuid'],
    ['id', 'uuid'],
  ],
  first: [NIL_UUID, NIL_UUID],
};

/** Tables from which old rows are deleted, by the name of those rows. */
const AGED = {
  // A notification that has yet to be processed stays.
  notifications: {
    table: 'notification',
    key: [
      ['account_id', 'uuid'],
      ['connection_id', 'text'],
      ['deduplication_key', 'text'],
      ['subject', 'integer'],
    ],
    first: [NIL_UUID, '', '', '-1'],
    due: 'received_at < now() - make_interval(days => $1) AND process_at IS NULL',
  },
  deliveries: { table: 'delivery', ...BY_ID, due: `${OLD} AND due_at IS NULL` },
  // Deliveries that are still open, or are sent again by hand, need their event: it is kept a day longer, as in outbox.ts.
  events: {
    table: 'event',
    ...BY_ID,
    due: `a.created_at < now() - make_interval(days => $1 + 1) AND relayed_at IS NOT NULL AND NOT EXISTS (
      SELECT FROM delivery o WHERE o.account_id = a.account_id AND o.event_id = a.id AND o.due_at IS NOT NULL)`,
  },
  // The rest of a method that was ended: brand, last four digits, holder.
  ended_methods: {
    table: 'vaulted_token',
    ...BY_ID,
    due: `status IN ('UNENROLLED', 'DECLINED', 'EXPIRED') AND updated_at < now() - make_interval(days => $1)`,
  },
  calls: {
    table: 'replayed_call',
    key: [
      ['account_id', 'uuid'],
      ['method', 'text'],
      ['idempotency_key', 'text'],
    ],
    first: [NIL_UUID, '', ''],
    due: OLD,
  },
} as const satisfies Readonly<Record<string, Aged>>;

/** Name of rows that are deleted when they are old. */
export type AgedRows = keyof typeof AGED;

/**
 * Deletes the next rows that are older than `days` and done with; in a dry run it only counts them. A step is one
 * commit. A locked row is left for the next run.
 */
export async function deleteAged(
  database: Database,
  what: AgedRows,
  days: number,
  options: { readonly dryRun: boolean; readonly after?: Cursor | undefined },
): Promise<Step> {
  const aged: Aged = AGED[what];
  const { after = aged.first, dryRun } = options;
  const { rows } = await database.transaction(
    (run) =>
      run<{ looked_at: number; due: number; last: string[] | null }>(step(aged, dryRun), [days, ...after]),
    STEP_TIMEOUT_MS,
  );
  const { looked_at: lookedAt = 0, due = 0, last } = rows[0] ?? {};
  return { lookedAt, due, next: (lookedAt === LOOKED_AT && last) || undefined };
}

// Walks the keys in order, a fixed number of rows per step: a row that is not due costs no more than a look.
function step({ table, key, due }: Aged, dryRun: boolean): string {
  const columns = key.map(([column]) => column).join(', ');
  const after = key.map(([, type], i) => `$${i + 2}::${type}`).join(', ');
  const ofRow = key.map(([column]) => `a.${column}`).join(', ');
  const isRow = (other: string) => key.map(([column]) => `a.${column} = ${other}.${column}`).join(' AND ');
  return `
    WITH looked_at AS MATERIALIZED (
      SELECT ${columns} FROM ${table} WHERE (${columns}) > (${after}) ORDER BY ${columns} LIMIT ${LOOKED_AT}
    ), due AS MATERIALIZED (
      SELECT ${ofRow} FROM ${table} a JOIN looked_at l ON ${isRow('l')}
      WHERE ${due}${dryRun ? '' : ' FOR UPDATE OF a SKIP LOCKED'}
    ), gone AS (
      ${dryRun ? 'SELECT FROM due' : `DELETE FROM ${table} a USING due WHERE ${isRow('due')} RETURNING 1`}
    )
    SELECT (SELECT count(*) FROM looked_at)::integer AS looked_at, (SELECT count(*) FROM gone)::integer AS due,
      (SELECT ARRAY[${key.map(([column]) => `${column}::text`).join(', ')}] FROM looked_at
       ORDER BY ${key.map(([column]) => `${column} DESC`).join(', ')} LIMIT 1) AS last`;
}

/** Returns an estimate of a table's rows, from the planner's statistics; 0 before there are any. */
export async function estimateRows(database: Database, what: AgedRows): Promise<number> {
  const { rows } = await database.query<{ rows: number }>(ESTIMATE, [AGED[what].table]);
  return rows[0]?.rows ?? 0;
}

const ESTIMATE = {
  name: 'estimate_rows',
  text: 'SELECT greatest(reltuples, 0)::float8 AS rows FROM pg_class WHERE oid = to_regclass($1)',
};
