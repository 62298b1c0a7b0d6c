import type { Database, Nullable } from './database.ts';
import { isScheduled, leaseDue, leaseParameters, type Take } from './lease-due.ts';
import { firstRow } from './rows.ts';

/** A transaction that is due to be followed up, leased to the caller. */
export type DueFollowUp = {
  readonly accountId: string;
  readonly paymentId: string;
  readonly transactionId: string;
  readonly connectionId: string;
  /** Fencing token that a write must present: number of leases of the transaction, including this one. */
  readonly fence: number;
  /** If it was taken ahead of schedule: the database's time at which it will be due all the same. */
  readonly scheduledAt?: string | undefined;
};

const TAKEN = `t.account_id AS "accountId", t.payment_id AS "paymentId", t.id AS "transactionId",
      t.connection_id AS "connectionId", t.fence`;

const TAKE = { name: 'take_due_follow_ups', text: leaseDue('follow_up_at', TAKEN) };

/** Leases transactions that are due to be followed up: from each connection, those due for longest. */
export async function takeDueFollowUps(database: Database, takes: readonly Take[]): Promise<DueFollowUp[]> {
  return (await database.query<Omit<DueFollowUp, 'scheduledAt'>>(TAKE, leaseParameters(takes))).rows;
}

const TAKE_ONE = {
  name: 'take_follow_up',
  text: `
    WITH found AS (
      SELECT id, CASE WHEN follow_up_at > now() THEN follow_up_at::text END AS scheduled_at,
        CASE WHEN follow_up_at IS NOT NULL THEN now() + make_interval(secs => $2) END AS leased_until
      FROM transaction WHERE id = $1::uuid AND look_up_at IS NULL FOR UPDATE
    )
    UPDATE transaction t SET fence = t.fence + 1, follow_up_at = found.leased_until FROM found
    WHERE t.id = found.id
    RETURNING ${TAKEN}, found.scheduled_at AS "scheduledAt"`,
};

/**
 * Leases one transaction ahead of schedule, since its payer came back or its provider sent a notification. Should this
 * process die, even while it takes the money of a payer who agreed, another takes the transaction when the lease is
 * over.
 *
 * @returns undefined while its creation is under way, or its outcome is being looked up.
 */
export async function takeFollowUp(
  database: Database,
  transactionId: string,
  leaseS: number,
): Promise<DueFollowUp | undefined> {
  return firstRow(await database.query<Nullable<DueFollowUp>>(TAKE_ONE, [transactionId, leaseS]));
}

const POSTPONE = {
  name: 'postpone_follow_up',
  text: `
    UPDATE transaction SET follow_up_at = least(now() + make_interval(secs => $3), $4::timestamptz)
    WHERE id = $1 AND fence = $2 AND ${isScheduled('follow_up_at')}`,
};

/**
 * Gives back a leased transaction, to be followed up again later; if it was taken ahead of schedule, when it was due at
 * the latest: news postpones nothing.
 */
export async function postponeFollowUp(
  database: Database,
  due: Pick<DueFollowUp, 'transactionId' | 'fence' | 'scheduledAt'>,
  inS: number,
): Promise<void> {
  await database.query(POSTPONE, [due.transactionId, due.fence, inS, due.scheduledAt ?? null]);
}

const RESTORE = {
  name: 'restore_follow_up',
  text: `
    UPDATE transaction SET follow_up_at = $3::timestamptz
    WHERE id = $1 AND fence = $2 AND ${isScheduled('follow_up_at')}`,
};

/** Gives back a transaction that was taken ahead of schedule, to be followed up when it was due. */
export async function restoreFollowUp(
  database: Database,
  { transactionId, fence, scheduledAt }: Pick<DueFollowUp, 'transactionId' | 'fence' | 'scheduledAt'>,
): Promise<void> {
  if (scheduledAt !== undefined) await database.query(RESTORE, [transactionId, fence, scheduledAt]);
}

// With another fence, a worker whose look-up is under way cannot put the next one off by what it had learned before.
const HASTEN = {
  name: 'hasten_follow_up',
  text: `
    UPDATE transaction SET follow_up_at = now(), fence = fence + 1
    WHERE account_id = $1 AND id = $2 AND ${isScheduled('follow_up_at')}`,
};

/** Makes a transaction due now, if it is to be followed up. */
export async function hastenFollowUp(
  database: Database,
  accountId: string,
  transactionId: string | undefined,
): Promise<void> {
  await database.query(HASTEN, [accountId, transactionId ?? null]);
}

const SCHEDULE = {
  name: 'schedule_follow_up',
  text: `
    UPDATE transaction SET follow_up_at = now() + make_interval(secs => $3), fence = fence + 1
    WHERE account_id = $1 AND id = $2`,
};

/**
 * Schedules the follow-up of a transaction, even if nothing more was expected of it. With another fence, a worker that
 * read it before cannot end that.
 */
export async function scheduleFollowUp(
  database: Database,
  accountId: string,
  transactionId: string,
  inS: number,
): Promise<void> {
  await database.query(SCHEDULE, [accountId, transactionId, inS]);
}

const END = {
  name: 'end_follow_up',
  text: 'UPDATE transaction SET follow_up_at = NULL WHERE id = $1 AND fence = $2',
};

/** Ends the follow-up of a leased transaction: nothing more will happen to it by itself. */
export async function endFollowUp(
  database: Database,
  due: Pick<DueFollowUp, 'transactionId' | 'fence'>,
): Promise<void> {
  await database.query(END, [due.transactionId, due.fence]);
}

/** Transactions of one type that are open after their call. */
export type OpenFollowUps = {
  /** Name of a payments.v1.Transaction.Type. */
  readonly type: string;
  readonly open: number;
  /** Seconds for which the oldest has been open. */
  readonly oldestS: number;
};

// One index walk per type (transaction_open_follow_up), so that a hundred thousand payers who never came back do not
// hide a refund. An authorization that waits to be captured is not open: its status is SUCCEEDED.
const COUNT_OPEN = {
  name: 'count_open_follow_ups',
  text: `
    SELECT types.type, count(open.created_at)::integer AS open,
      extract(epoch FROM now() - min(open.created_at))::float8 AS "oldestS"
    FROM unnest($1::text[]) AS types(type), LATERAL (
      SELECT created_at FROM transaction t
      WHERE t.type = types.type AND t.follow_up_at IS NOT NULL AND t.status IN ('CREATED', 'PENDING') LIMIT $2
    ) open
    GROUP BY types.type`,
};

/** Counts the transactions that are open after their call, by type, up to `limit` of each. */
export async function countOpenFollowUps(
  database: Database,
  types: readonly string[],
  limit: number,
): Promise<OpenFollowUps[]> {
  return (await database.query<OpenFollowUps>(COUNT_OPEN, [types, limit])).rows;
}

const FIND_BY_PAYMENT = {
  name: 'find_own_transaction',
  text: `
    SELECT t.id AS "transactionId", p.account_id AS "accountId", t.connection_id AS "connectionId",
      p.released AS "isReleased"
    FROM payment p JOIN transaction t ON p.account_id = t.account_id AND p.id = t.payment_id
    WHERE t.payment_id = $1::uuid AND t.parent_id IS NULL ORDER BY t.created_at DESC, t.id DESC LIMIT 1`,
};

/** A payment's own transaction, in any account. */
export type OwnTransaction = {
  readonly transactionId: string;
  readonly accountId: string;
  readonly connectionId: string;
  /** true: it was an authorization that is over, so nothing more can come of it. */
  readonly isReleased: boolean;
};

/** Finds the last attempt of a payment of any account. @param paymentId a UUID. */
export async function findOwnTransaction(
  database: Database,
  paymentId: string,
): Promise<OwnTransaction | undefined> {
  return (await database.query<OwnTransaction>(FIND_BY_PAYMENT, [paymentId])).rows[0];
}

const FIND_PAYMENT = {
  name: 'find_payment_of_transaction',
  text: 'SELECT payment_id AS "paymentId", account_id AS "accountId" FROM transaction WHERE id = $1::uuid',
};

/** Finds the payment of a transaction of any account. @param transactionId a UUID. */
export async function findPaymentOf(
  database: Database,
  transactionId: string,
): Promise<Pick<DueFollowUp, 'paymentId' | 'accountId'> | undefined> {
  type Row = Pick<DueFollowUp, 'paymentId' | 'accountId'>;
  return (await database.query<Row>(FIND_PAYMENT, [transactionId])).rows[0];
}
