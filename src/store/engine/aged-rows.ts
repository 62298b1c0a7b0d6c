import type { Database, Run } from './database.ts';
import { type Cursor, STEP_TIMEOUT_MS, type Step } from './sweep.ts';

/** A kind of rows that are deleted once they are old and no longer needed. */
type Aged = {
  readonly table: string;
  /** The columns of the primary key after `account_id`, with their types. */
  readonly key: readonly (readonly [column: string, type: string])[];
  /** false: the table belongs to no account. */
  readonly ofAccount?: false;
  /** The column whose index finds old rows. */
  readonly age: string;
  /** Number of days that the rows are kept beyond the requested age. */
  readonly extraDays?: number;
  /** The condition of that index, if it is partial. */
  readonly where?: string;
  /** Condition under which a row `a` is no longer needed. Other rows are kept, however old. */
  readonly done?: string;
  /** true: a row's uses in `single_use` are deleted with it. */
  readonly hasUses?: true;
  /** Number of days after which the service itself deletes the rows; undefined if only the operator's rules do. */
  readonly serviceDays?: number;
};

const ID: Pick<Aged, 'key'> = { key: [['id', 'uuid']] };

/** THE table of rows that expire, by name, in order of deletion. */
export const AGED = {
  // Deletes the ciphertext of an unused token too.
  one_time_tokens: {
    ...{ table: 'one_time_token', ...ID, age: 'expires_at', serviceDays: 0, hasUses: true },
  },
  // A session lasts at most half a day.
  operator_sessions: {
    ...{ table: 'operator_session', key: [['token_hash', 'bytea']], ofAccount: false, age: 'created_at' },
    serviceDays: 1,
  },
  // Previous values, and values for a connection that was never published.
  connection_secrets: {
    ...{
      table: 'connection_secret',
      ...ID,
      ofAccount: false,
      age: 'ends_at',
      where: 'a.ends_at IS NOT NULL',
    },
    serviceDays: 1,
  },
  // Processes of the service that have long ended.
  catalogue_replicas: {
    ...{ table: 'catalogue_replica', key: [['name', 'text']], ofAccount: false, age: 'seen_at' },
    serviceDays: 1,
  },
  calls: {
    table: 'replayed_call',
    key: [
      ['method', 'text'],
      ['idempotency_key', 'text'],
    ],
    ...{ age: 'created_at', serviceDays: 30 },
  },
  // The response shows the card's holder, and is of no use without its token, which lives for half an hour.
  token_calls: {
    table: 'replayed_call',
    key: [
      ['method', 'text'],
      ['idempotency_key', 'text'],
    ],
    ...{ age: 'created_at', where: "a.method IN ('CreateToken', 'CreateCheckoutToken')", serviceDays: 1 },
  },
  // A session without terms never expires. A payment that is still open may yet be closed or shown in its session.
  checkout_sessions: {
    ...{ table: 'checkout_session', ...ID, age: 'expires_at', hasUses: true },
    done: `NOT EXISTS (
      SELECT 1 FROM payment o WHERE o.account_id = a.account_id AND o.id = a.payment_id
        AND o.status IN ('READY_TO_PAY', 'PENDING'))`,
  },
  // Unsettled news is kept.
  notifications: {
    table: 'notification',
    key: [
      ['connection_id', 'text'],
      ['deduplication_key', 'text'],
      ['subject', 'integer'],
    ],
    ...{ age: 'received_at', done: 'a.settled_at IS NOT NULL' },
  },
  deliveries: {
    ...{ table: 'delivery', ...ID, age: 'created_at', done: 'a.due_at IS NULL', serviceDays: 30 },
  },
  // Open deliveries and manual redeliveries need their event, so events are kept a day longer.
  events: {
    ...{ table: 'event', ...ID, age: 'created_at', extraDays: 1, serviceDays: 30 },
    done: `a.relayed_at IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM delivery o WHERE o.account_id = a.account_id AND o.event_id = a.id AND o.due_at IS NOT NULL)`,
  },
  // Totals of more than a year, which the figures compare with the time before; and the nights on which they were written.
  payment_totals: {
    table: 'payment_total',
    key: [
      ['hour', 'timestamptz'],
      ...(['connection_id', 'method_type', 'currency', 'outcome'] as const).map(
        (column) => [column, 'text'] as const,
      ),
    ],
    ...{ age: 'hour', serviceDays: 400 },
  },
  // Two days, and the running hour.
  recent_payment_totals: {
    table: 'recent_payment_total',
    key: [
      ['hour', 'timestamptz'],
      ...(['kind', 'name', 'outcome'] as const).map((column) => [column, 'text'] as const),
    ],
    ...{ age: 'hour', serviceDays: 3 },
  },
  // The remaining data of a method that is no longer usable: brand, last four digits, holder.
  ended_methods: {
    ...{ table: 'vaulted_token', ...ID, age: 'updated_at' },
    where: "a.status IN ('UNENROLLED', 'DECLINED', 'EXPIRED')",
  },
} as const satisfies Readonly<Record<string, Aged>>;

/** Name of a kind of rows that are deleted when old. */
export type AgedRows = keyof typeof AGED;

/**
 * Maximum number of rows that a step reads. A literal in the statement, since the planner assumes that an unknown limit
 * is a tenth of the table.
 */
const LOOKED_AT = 1_000;

/**
 * Deletes the next rows that are older than `days` and no longer needed; a dry run only counts them. Each step is one
 * commit per account. Locked rows are left for the next run.
 *
 * @param options.after the age and the key of the last row that the previous step read.
 */
export async function deleteAged(
  database: Database,
  what: AgedRows,
  days: number,
  options: { readonly dryRun: boolean; readonly after?: Cursor | undefined },
): Promise<Step> {
  const aged: Aged = AGED[what];
  const { after, dryRun } = options;
  const keptDays = days + (aged.extraDays ?? 0);
  const inTime = <Row extends object>(work: (run: Run) => Promise<{ rows: Row[] }>) =>
    database.transaction(work, STEP_TIMEOUT_MS);
  const { rows } = await inTime((run) =>
    run<Found>(find(aged, after !== undefined), [keptDays, ...(after ?? [])]),
  );
  const done = rows.filter(({ is_done }) => is_done);
  let due = done.length;
  if (!dryRun) {
    due = 0;
    for (const [accountId, own] of Map.groupBy(done, ({ account_id }) => account_id)) {
      const keys = aged.key.map((_, i) => own.map(({ key }) => key[i]));
      const values = aged.ofAccount === false ? [keptDays, ...keys] : [accountId, keptDays, ...keys];
      due += (await inTime((run) => run(remove(aged), values))).rows.length;
    }
  }
  const last = rows.length === LOOKED_AT ? rows.at(-1) : undefined;
  const account = last && aged.ofAccount !== false ? [last.account_id ?? ''] : [];
  return { lookedAt: rows.length, due, next: last && [last.age, ...account, ...last.key] };
}

type Found = {
  readonly account_id?: string;
  readonly key: readonly string[];
  readonly age: string;
  readonly is_done: boolean;
};

// Finds rows by the index on their age, without locks. A step reads a fixed number of rows, so a row that is still
// needed costs no more than reading it.
function find({ table, key, ofAccount, age, where = 'true', done = 'true' }: Aged, isLater: boolean): string {
  const columns = [...(ofAccount === false ? [] : [['account_id', 'uuid'] as const]), ...key];
  const order = [age, ...columns.map(([column]) => column)].map((column) => `a.${column}`).join(', ');
  const types = ['timestamptz', ...columns.map(([, type]) => type)];
  const after = types.map((type, i) => `$${i + 2}::${type}`).join(', ');
  return `
    SELECT ${ofAccount === false ? '' : 'a.account_id, '}ARRAY[${key.map(([column]) => `a.${column}::text`).join(', ')}] AS key,
      a.${age}::text AS age, (${done}) AS is_done
    FROM ${table} a
    WHERE ${where} AND a.${age} <= now() - make_interval(days => $1)${isLater ? ` AND (${order}) > (${after})` : ''}
    ORDER BY ${order} LIMIT ${LOOKED_AT}`;
}

// Deletes the rows found in one account, unless they are locked or no longer qualify.
function remove({ table, key, ofAccount, age, where = 'true', done = 'true', hasUses }: Aged): string {
  // The statement names the account for every table, so that a distributed engine sends it to one node.
  const stillDone = done.replaceAll('o.account_id = a.account_id', 'o.account_id = $1');
  const [account, days, first] = ofAccount === false ? ['true', '$1', 2] : ['a.account_id = $1', '$2', 3];
  const given = key.map(([, type], i) => `$${first + i}::${type}[]`).join(', ');
  const columns = key.map(([column]) => column);
  const isRow = (other: string) => columns.map((column) => `a.${column} = ${other}.${column}`).join(' AND ');
  return `
    WITH due AS (
      SELECT ${columns.map((column) => `a.${column}`).join(', ')}
      FROM ${table} a JOIN unnest(${given}) AS given (${columns.join(', ')}) ON ${isRow('given')}
      WHERE ${account} AND ${where} AND a.${age} <= now() - make_interval(days => ${days}) AND ${stillDone}
      FOR UPDATE OF a SKIP LOCKED
    )${hasUses ? USES : ''}
    DELETE FROM ${table} a USING due WHERE ${account} AND ${isRow('due')} RETURNING 1`;
}

const USES = `, uses AS (
      DELETE FROM single_use u USING due WHERE u.account_id = $1 AND u.object_id = due.id
    )`;

/** Returns an estimate of a table's row count from the planner's statistics; 0 before there are any. */
export async function estimateRows(database: Database, what: AgedRows): Promise<number> {
  const { rows } = await database.query<{ rows: number }>(ESTIMATE, [AGED[what].table]);
  return rows[0]?.rows ?? 0;
}

const ESTIMATE = {
  name: 'estimate_rows',
  text: 'SELECT greatest(reltuples, 0)::float8 AS rows FROM pg_class WHERE oid = to_regclass($1)',
};
