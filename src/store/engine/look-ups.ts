import type { Database, Nullable } from './database.ts';
import { type AskableConnection, isScheduled, leaseDue, leaseParameters, type Take } from './lease-due.ts';
import { firstRow, withoutNulls } from './rows.ts';

/** An attempt whose outcome is unknown and due to be looked up, leased to the caller. */
export type DueAttempt = {
  readonly transactionId: string;
  readonly paymentId: string;
  readonly connectionId: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  readonly capture: boolean;
  /** The `reference` of the connector's outcome for it, if there was one. */
  readonly reference: string | undefined;
  readonly vaultedToken: string | undefined;
  /** Fencing token that a finish must present: number of leases of the attempt, including this one. */
  readonly fence: number;
  /** An encoded Payment: the record as it stands. */
  readonly record: Uint8Array;
  /** true once the response to its creation is stored; until then, its key is in progress. */
  readonly answered: boolean;
  /** Time since the attempt was stored, just before it was sent, by the database's clock. */
  readonly ageMs: number;
};

type DueRow = Nullable<DueAttempt>;

const DUE_ATTEMPT = `t.id AS "transactionId", t.payment_id AS "paymentId", t.connection_id AS "connectionId",
      t.amount_minor_units AS "minorUnits", t.currency, t.capture, t.reference, t.vaulted_token AS "vaultedToken",
      t.fence, p.record, p.answer IS NOT NULL AS answered,
      extract(epoch FROM now() - t.created_at)::float8 * 1000 AS "ageMs"`;

const TAKE = { name: 'take_due_attempts', text: leaseDue('look_up_at', DUE_ATTEMPT) };

/** Leases attempts that are due: from each connection, those due for longest. */
export async function takeDueAttempts(database: Database, takes: readonly Take[]): Promise<DueAttempt[]> {
  return (await database.query<DueRow>(TAKE, leaseParameters(takes))).rows.map(withoutNulls);
}

const MAX_UNANSWERED_TAKEN = 100;

// What stores a response writes the attempt too. So its own times tell most of those that have one, and the payments of a
// million open attempts are not read.
const TAKE_UNANSWERED = {
  name: 'take_unanswered_attempts',
  text: `
    WITH due AS (
      SELECT t.id FROM transaction t JOIN payment p ON p.account_id = t.account_id AND p.id = t.payment_id
      WHERE t.look_up_at <= now() - make_interval(secs => $3) AND t.updated_at <= t.created_at AND p.answer IS NULL
        AND NOT EXISTS (
          SELECT FROM unnest($1::text[], $2::text[]) AS askable(connection_id, identity)
          WHERE askable.connection_id = t.connection_id
            AND askable.identity = t.connection_identity
        )
      LIMIT ${MAX_UNANSWERED_TAKEN} FOR UPDATE OF t SKIP LOCKED
    )
    UPDATE transaction t SET fence = t.fence + 1, look_up_at = now() + make_interval(secs => $4)
    FROM due, payment p
    WHERE t.id = due.id AND p.account_id = t.account_id AND p.id = t.payment_id
    RETURNING ${DUE_ATTEMPT}`,
};

/**
 * Leases attempts of payments without a response that this replica cannot ask about, and that no other replica has
 * taken although they were due; a hundred at most.
 *
 * @param options.dueForS shortest time for which they have been due.
 */
export async function takeUnansweredAttempts(
  database: Database,
  askable: readonly AskableConnection[],
  options: { readonly dueForS: number; readonly leaseS: number },
): Promise<DueAttempt[]> {
  const { rows } = await database.query<DueRow>(TAKE_UNANSWERED, [
    askable.map(({ connectionId }) => connectionId),
    askable.map(({ identity }) => identity),
    options.dueForS,
    options.leaseS,
  ]);
  return rows.map(withoutNulls);
}

// Hides from the planner, as `isScheduled` does, that the row is in the index of those that are due.
const TAKE_OPEN = {
  name: 'take_open_attempt',
  text: `
    UPDATE transaction t SET fence = t.fence + 1, look_up_at = now() + make_interval(secs => $2)
    FROM payment p
    WHERE t.id = $1 AND coalesce(t.look_up_at, 'infinity') <= now()
      AND p.account_id = t.account_id AND p.id = t.payment_id
    RETURNING ${DUE_ATTEMPT}`,
};

/** Leases an attempt that is due, since its provider sent a notification about it. */
export async function takeOpenAttempt(
  database: Database,
  transactionId: string,
  leaseS: number,
): Promise<DueAttempt | undefined> {
  return firstRow(await database.query<DueRow>(TAKE_OPEN, [transactionId, leaseS]));
}

const READ_OPEN = {
  name: 'read_open_attempt',
  text: `
    SELECT ${DUE_ATTEMPT} FROM transaction t JOIN payment p ON p.account_id = t.account_id AND p.id = t.payment_id
    WHERE t.id = $1 AND ${isScheduled('t.look_up_at')} AND (p.answer IS NOT NULL OR t.look_up_at <= now())`,
};

/**
 * Reads an attempt whose outcome is unknown, without leasing it, so its schedule stays as it is: for a caller that already
 * has the provider's word, or asks for it ahead of schedule.
 *
 * @returns undefined while its creation is under way.
 */
export async function readOpenAttempt(
  database: Database,
  transactionId: string,
): Promise<DueAttempt | undefined> {
  return firstRow(await database.query<DueRow>(READ_OPEN, [transactionId]));
}

const POSTPONE = {
  name: 'postpone_look_up',
  text: `
    UPDATE transaction SET look_up_at = now() + make_interval(secs => $3)
    WHERE id = $1 AND fence = $2 AND ${isScheduled('look_up_at')}`,
};

/** Gives back a leased attempt, to be looked up again later: nothing is known yet. */
export async function postponeLookUp(
  database: Database,
  attempt: Pick<DueAttempt, 'transactionId' | 'fence'>,
  inS: number,
): Promise<void> {
  await database.query(POSTPONE, [attempt.transactionId, attempt.fence, inS]);
}

/** Open attempts of one connection, begun while it stood for one account. */
export type OpenAttempts = {
  readonly connectionId: string;
  /** Identity of the connection at the time of the attempts. */
  readonly identity: string;
  /** Includes attempts of requests in progress. */
  readonly open: number;
  /** Of these, the ones that are due or were looked up before. */
  readonly due: number;
  /** Seconds for which the oldest has been open. */
  readonly oldestS: number;
};

// In the order of the index: the planner takes the open attempts to be spread over the table, whose end holds them, and
// would read all of it.
const COUNT_OPEN = {
  name: 'count_open_attempts',
  text: `
    SELECT connection_id AS "connectionId", connection_identity AS identity, count(*)::integer AS open,
      (count(*) FILTER (WHERE look_up_at <= now() OR fence > 0))::integer AS due,
      extract(epoch FROM now() - min(created_at))::float8 AS "oldestS"
    FROM (
      SELECT connection_id, connection_identity, look_up_at, fence, created_at
      FROM transaction WHERE look_up_at IS NOT NULL ORDER BY connection_id, look_up_at LIMIT $1
    ) open
    GROUP BY connection_id, connection_identity ORDER BY connection_id, connection_identity`,
};

/** Counts the attempts whose outcome is open, up to `limit` of them, by connection and account. */
export async function countOpenAttempts(database: Database, limit: number): Promise<OpenAttempts[]> {
  return (await database.query<Nullable<OpenAttempts>>(COUNT_OPEN, [limit])).rows.map(withoutNulls);
}
