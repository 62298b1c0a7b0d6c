import type { Database, Nullable, Statement } from './database.ts';
import { isUnavailable } from './database-error.ts';
import { takeByAccount, withoutNulls } from './rows.ts';
import { IN_ACCOUNTS, searchAccounts } from './search-accounts.ts';

/*
 * The rows are the queues. A column of each says when it is due, by the database's clock, so that the replicas' clocks
 * do not matter. Due rows are found in all accounts without locks, and then taken account by account, with the condition
 * repeated. A taken row is due again after a pause, which is the lease of the worker that took it.
 */

/** A kind of rows that become due, and the statements on them. Each text may use the parameters that its line lists. */
type DueRows = {
  readonly table: string;
  /** The columns of the primary key after `account_id`, with their types. */
  readonly key: readonly (readonly [column: string, type: string])[];
  /** The column with the time at which a row is due; null for never. Its index has no other rows. */
  readonly at: string;
  /** Finds rows in all accounts, longest due first. undefined: they are found by something else. */
  readonly find?: {
    /** The columns whose values the search gets: $1 and so on. Its limit comes last. */
    readonly among?: readonly string[];
    /** The condition of a due row; by default, that its time has come. */
    readonly isDue?: string;
  };
  /** Takes rows of the account $1. undefined: a function of the schema takes them. */
  readonly take?: {
    /** The rows to take; by default, the due rows with the given keys: an array a column, $2 and so on. */
    readonly which?: string;
    /** Time until a taken row is due again. */
    readonly pause: string;
    /** The column that each take increases, so that the worker that took the row before can no longer write it. */
    readonly fence?: string;
    /** Columns of `due`: what must be computed before the row is changed, or from the current time. */
    readonly computed?: string;
    /** Tables read with `due` and the row `t`, and their condition. */
    readonly joined?: readonly [tables: string, condition: string];
    readonly returned: string;
  };
  /** Makes the row of the account $1 with the id $2 due now, or $3 seconds after `lastAt`, but not later than it was. */
  readonly prompt?: {
    /** The condition of a row that may be made due. */
    readonly where: string;
    /** The time of its last check, or of the last news that led to one. */
    readonly lastAt: string;
    /** A CTE that `lastAt` reads. */
    readonly with?: string;
    /** The column that a check in progress must find unchanged, so that it does not postpone the next. */
    readonly fence?: string;
    readonly returned?: string;
  };
};

const ID: Pick<DueRows, 'key'> = { key: [['id', 'uuid']] };

/** A pause that grows with an age: a share of it, within bounds. */
const byAge = (age: string, share: string, first: string, longest: string) =>
  `least(greatest((${age}) * ${share}, ${first}), ${longest})`;
const byAgeOfEnrollment = (age: string, share: string) =>
  byAge(age, share, "interval '5 seconds'", "interval '10 minutes'");

/** THE table of due rows: every queue of the service. */
const DUE_ROWS = {
  // The schedule of the payments' core sets the time of each check; a take lasts $3 seconds.
  transactions: {
    ...{ table: 'transaction', ...ID, at: 'check_at' },
    find: { among: ['connection_id', 'connection_identity'] },
    take: {
      ...{ pause: 'make_interval(secs => $3)', fence: 'fence' },
      returned: `t.account_id AS "accountId", t.payment_id AS "paymentId", t.id AS "transactionId",
      t.connection_id AS "connectionId", t.fence`,
    },
    // By other news ($4 and $5 are this news' key) of the same kind, $6: since it was settled, or since now while it is
    // unsettled; or by the same news, settled at $7.
    prompt: {
      // The claimer's own call is in progress while the fence is 0, and nothing may overtake it.
      where: 'fence > 0',
      with: `last AS (
      SELECT greatest($7::timestamptz, (
        SELECT coalesce(settled_at, now()) FROM notification
        WHERE account_id = $1 AND transaction_id = $2 AND kind = $6 AND (deduplication_key <> $4 OR subject <> $5)
        ORDER BY settled_at DESC NULLS FIRST LIMIT 1
      )) AS at
    )`,
      ...{ lastAt: '(SELECT at FROM last)', fence: 'fence' },
      returned: 't.connection_id AS "connectionId", t.connection_identity AS identity',
    },
  },
  // News whose transaction is yet to be found. A search for it repeats after a pause that grows with the news' age: a
  // share $5, at least $6 and at most $7 seconds.
  notifications: {
    table: 'notification',
    key: [
      ['connection_id', 'text'],
      ['deduplication_key', 'text'],
      ['subject', 'integer'],
    ],
    at: 'check_at',
    find: { among: ['connection_id'] },
    take: {
      pause: byAge(
        'now() - received_at',
        '$5::float8',
        'make_interval(secs => $6)',
        'make_interval(secs => $7)',
      ),
      computed: 'extract(epoch FROM now() - received_at)::float8 * 1000 AS age_ms',
      returned: `t.account_id AS "accountId", t.connection_id AS "connectionId", t.deduplication_key AS "deduplicationKey",
      t.subject, t.kind, t.transaction_id AS "transactionId", t.provider_payment_id AS "providerPaymentId",
      due.age_ms AS "ageMs"`,
    },
  },
  // The pause between two checks is a quarter of the age at the first of them, and so a fifth of the age at the second.
  enrollments: {
    ...{ table: 'vaulted_token', ...ID, at: 'check_at', find: {} },
    take: {
      pause: byAgeOfEnrollment('now() - created_at', '0.25'),
      computed: `expires_at < now() - interval '1 hour' AS is_long_over`,
      returned: `t.account_id AS "accountId", t.id, t.status, t.connection_id AS "connectionId",
      t.connection_identity AS "connectionIdentity", t.callback_url AS "callbackUrl", due.is_long_over AS "isLongOver"`,
    },
    prompt: {
      where: "status = 'READY_TO_ENROLL'",
      lastAt: `(check_at - ${byAgeOfEnrollment('check_at - created_at', '0.2')})`,
    },
  },
  // Relayed once, by relay_events_1, which writes the deliveries too.
  events: {
    ...{ table: 'event', ...ID, at: 'created_at' },
    find: { isDue: 'relayed_at IS NULL' },
  },
  // Found by webhook, since one webhook may have a million (list_overdue_webhooks), and taken by webhook, $2, up to $3 at
  // a time, for $4 seconds. A webhook that has changed since it was read must be read again: nothing more may go to its
  // old URL, $5, and only its current secrets and credentials, $6 to $8, may sign.
  deliveries: {
    ...{ table: 'delivery', ...ID, at: 'due_at' },
    take: {
      which: `webhook_id = $2 AND due_at <= now() AND EXISTS (
        SELECT 1 FROM webhook WHERE account_id = $1 AND id = $2 AND active AND url = $5 AND secret = $6
          AND CASE WHEN previous_secret_until > now() THEN previous_secret END IS NOT DISTINCT FROM $7
          AND credentials IS NOT DISTINCT FROM $8
      )
      ORDER BY due_at LIMIT $3`,
      ...{ pause: 'make_interval(secs => $4)', fence: 'attempts' },
      computed: '(now() + make_interval(secs => $4))::text AS leased_until',
      joined: [
        'event e LEFT JOIN payment p ON p.account_id = $1 AND p.id = e.payment_id',
        'e.account_id = $1 AND e.id = t.event_id',
      ],
      returned: `t.id, t.attempts, due.leased_until AS "leasedUntil", t.retry, e.id AS "eventId", e.type, e.sequence,
      e.record, e.created_at AS "createdAt", p.idempotency_key AS "idempotencyKey"`,
    },
  },
} as const satisfies Readonly<Record<string, DueRows>>;

/** Due rows that a search counts at most, over all connections. */
const MOST_COUNTED = 1_000;

/** The statements on each kind of due rows. */
export const DUE = {
  transactions: statementsOf('transactions'),
  notifications: statementsOf('notifications'),
  enrollments: statementsOf('enrollments'),
  events: statementsOf('events'),
  deliveries: statementsOf('deliveries'),
  /** Tells which of these have due rows. */
  work: { find: { name: 'find_due_work', text: findWork() } },
};

function statementsOf<Name extends keyof typeof DUE_ROWS>(name: Name) {
  const rows: DueRows = DUE_ROWS[name];
  const statements = { find: findOf(name, rows), take: takeOf(name, rows), prompt: promptOf(name, rows) };
  // Only the statements that the table describes.
  return statements as Pick<typeof statements, keyof (typeof DUE_ROWS)[Name] & keyof typeof statements>;
}

function findOf(name: string, { table, key, at, find }: DueRows): Statement {
  const { among = [], isDue = `${at} <= now()` } = find ?? {};
  const columns = key.map(([column]) => `, ${column} AS "${camelCase(column)}"`).join('');
  const conditions = [...among.map((column, i) => `${column} = $${i + 1}`), isDue].join(' AND ');
  return {
    name: `find_due_${name}`,
    text: `
    SELECT account_id AS "accountId"${columns} FROM ${table}
    WHERE ${IN_ACCOUNTS} ${conditions} ORDER BY ${at} LIMIT $${among.length + 1}::integer`,
  };
}

/** A statement that takes rows, and the properties with which a due row names its key. */
export type TakeStatement = Statement & { readonly key: readonly string[] };

function takeOf(name: string, { table, key, at, take }: DueRows): TakeStatement {
  const { which = givenKeys({ key, at }), pause = '', fence, computed, joined, returned } = take ?? {};
  const columns = key.map(([column]) => column);
  const isRow = columns.map((column) => `t.${column} = due.${column}`).join(' AND ');
  const [tables, condition] = joined ? [`, ${joined[0]}`, ` AND ${joined[1]}`] : ['', ''];
  return {
    name: `take_due_${name}`,
    key: columns.map(camelCase),
    text: `
    WITH due AS (
      SELECT ${columns.join(', ')}, now() + ${pause} AS next_at${computed ? `, ${computed}` : ''} FROM ${table}
      WHERE account_id = $1 AND ${which} FOR UPDATE SKIP LOCKED
    )
    UPDATE ${table} t SET ${fence ? `${fence} = t.${fence} + 1, ` : ''}${at} = due.next_at FROM due${tables}
    WHERE t.account_id = $1 AND ${isRow}${condition}
    RETURNING ${returned}`,
  };
}

// coalesce hides from the planner that the rows are in the index of due rows. Otherwise, a plan made while that index
// is small would always read all of it.
function givenKeys({ key, at }: Pick<DueRows, 'key' | 'at'>): string {
  const isDue = `coalesce(${at}, 'infinity') <= now()`;
  const [only, ...others] = key;
  if (only && others.length === 0) return `${only[0]} = ANY ($2::${only[1]}[]) AND ${isDue}`;
  const arrays = key.map(([, type], i) => `$${i + 2}::${type}[]`).join(', ');
  return `(${key.map(([column]) => column).join(', ')}) IN (SELECT * FROM unnest(${arrays})) AND ${isDue}`;
}

function promptOf(name: string, { table, at, prompt }: DueRows): Statement {
  const { where, lastAt, with: before, fence, returned } = prompt ?? {};
  return {
    name: `prompt_${name}`,
    text: `
    WITH ${before ? `${before}, ` : ''}found AS (
      SELECT id, greatest(now(), ${lastAt} + make_interval(secs => $3)) AS prompted_at,
        greatest(0, extract(epoch FROM ${lastAt} - now())::float8 + $3) AS in_s
      FROM ${table} WHERE account_id = $1 AND id = $2 AND ${where} FOR UPDATE
    )
    UPDATE ${table} t SET ${fence ? `${fence} = t.${fence} + 1, ` : ''}${at} = least(t.${at}, found.prompted_at) FROM found
    WHERE t.account_id = $1 AND t.id = found.id
    RETURNING t.account_id AS "accountId", t.id, found.in_s AS "inS"${returned ? `, ${returned}` : ''}`,
  };
}

/** The text of findDueWork's statement. $1 are the connections, $2 those without searches for transactions. */
function findWork(): string {
  const parts = [
    dueAt('transactions', 'AND connection_id <> ALL ($2::text[])'),
    dueAt('notifications'),
    anyDue('enrollments'),
    anyDue('events'),
  ];
  return parts.join('\n    UNION ALL');
}

function dueAt(name: keyof typeof DUE_ROWS, condition = ''): string {
  const { table, at } = DUE_ROWS[name];
  return `
    SELECT '${name}' AS queue, connection_id AS "connectionId", count(*)::integer AS due FROM (
      SELECT connection_id FROM ${table}
      WHERE ${IN_ACCOUNTS} connection_id = ANY ($1::text[]) ${condition} AND ${at} <= now() LIMIT ${MOST_COUNTED}
    ) ${name} GROUP BY connection_id`;
}

function anyDue(name: keyof typeof DUE_ROWS): string {
  const { table, at, find = {} }: DueRows = DUE_ROWS[name];
  return `
    SELECT '${name}', '', 1 FROM (
      SELECT account_id FROM ${table} WHERE ${IN_ACCOUNTS} ${find.isDue ?? `${at} <= now()`} LIMIT 1
    ) ${name}`;
}

/** Queues with due rows. */
export type DueWork = {
  /** Connections with due transactions or notifications. */
  readonly connectionIds: readonly string[];
  readonly hasEnrollments: boolean;
  readonly hasEvents: boolean;
};

/**
 * Finds the queues with due rows, in one statement, so that a service without due work searches once for all of it.
 *
 * @param leftAlone connections among these whose due transactions do not count.
 */
export async function findDueWork(
  database: Database,
  connectionIds: readonly string[],
  leftAlone: readonly string[],
): Promise<DueWork> {
  type Row = { readonly queue: string; readonly connectionId: string; readonly due: number };
  const rows = await searchAccounts<Row>(database, DUE.work.find, [connectionIds, leftAlone]);
  const has = (queue: keyof typeof DUE_ROWS) => rows.some((row) => row.queue === queue);
  const at = rows.filter(({ connectionId }) => connectionId !== '');
  // If one connection's rows may have hidden the others', each is searched by itself.
  const isCut = Map.groupBy(at, ({ queue }) => queue)
    .values()
    .some((counts) => counts.reduce((sum, { due }) => sum + due, 0) >= MOST_COUNTED);
  return {
    connectionIds: isCut ? connectionIds : [...new Set(at.map(({ connectionId }) => connectionId))],
    hasEnrollments: has('enrollments'),
    hasEvents: has('events'),
  };
}

function camelCase(column: string): string {
  return column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Takes due rows of all accounts: finds them without locks, then takes them account by account. Accounts whose node is
 * unavailable are skipped, because an error would leave the rows that are already taken waiting for their leases to
 * end.
 *
 * @param limit maximum number of rows.
 * @param take takes the rows of one account.
 * @throws the database's error if no account's rows could be taken.
 */
export async function takeDueRows<Due extends OfAccount, Row>(
  database: Database,
  search: Statement,
  { values, limit }: { readonly values: readonly unknown[]; readonly limit: number },
  take: TakeOfAccount<Due, Row>,
): Promise<Row[]> {
  const due = await searchAccounts<Due>(database, search, values);
  return takeFound(due.slice(0, limit), take);
}

/** Takes rows that are known, as takeDueRows takes those that it finds. */
export async function takeFound<Due extends OfAccount, Row>(
  due: readonly Due[],
  take: TakeOfAccount<Due, Row>,
): Promise<Row[]> {
  const failed: unknown[] = [];
  const rows = await takeByAccount(due, (accountId, own) =>
    take(accountId, own).catch((error) => {
      if (!isUnavailable(error)) throw error;
      failed.push(error);
      return [];
    }),
  );
  if (failed.length > 0 && rows.length === 0) throw failed[0];
  return rows;
}

type OfAccount = { readonly accountId: string };

/** Takes rows of one account. */
type TakeOfAccount<Due, Row> = (accountId: string, own: readonly Due[]) => Promise<readonly Row[]>;

/**
 * Returns a function that takes rows of one account by their keys.
 *
 * @param values of the statement's parameters after the keys.
 */
export function takeWith<Row extends object>(
  database: Database,
  statement: TakeStatement,
  values: readonly unknown[] = [],
): TakeOfAccount<OfAccount, Row> {
  return async (accountId, own) => {
    const keys = statement.key.map((name) => own.map((one) => one[name as keyof typeof one]));
    const { rows } = await database.query<Nullable<Row>>(statement, [accountId, ...keys, ...values]);
    return rows.map(withoutNulls<Row>);
  };
}
