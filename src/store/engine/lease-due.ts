/** A connection that this replica can ask about its transactions. */
export type AskableConnection = { readonly connectionId: string; readonly identity: string };

/** Number of a connection's transactions to take, and the time for which each is leased to the caller. */
export type Take = AskableConnection & { readonly limit: number; readonly leaseS: number };

/** Limit on the transactions of one connection that are taken at once. */
export const MAX_TAKEN = 20;

/**
 * Returns the text of a statement that leases due transactions: from each connection those due for longest, at most
 * MAX_TAKEN. Leases go by the database's clock, so that the replicas' clocks do not matter. Rows that another replica
 * has locked are skipped.
 *
 * @param dueAt the column with the time at which a transaction is due; the lease moves it on.
 * @param columns of `transaction t` and `payment p`, to return.
 */
export function leaseDue(dueAt: 'look_up_at' | 'follow_up_at', columns: string): string {
  // The planner takes an unknown limit for a tenth of the table, and reads the whole table: hence the constant limit
  // inside the requested one.
  return `
    WITH due AS (
      SELECT open.id, take.lease_s
      FROM unnest($1::text[], $2::text[], $3::integer[], $4::float8[]) AS take(connection_id, identity, most, lease_s),
        LATERAL (
          SELECT id FROM (
            SELECT id FROM transaction
            WHERE connection_id = take.connection_id AND ${dueAt} <= now()
              AND connection_identity = take.identity
            ORDER BY ${dueAt} LIMIT ${MAX_TAKEN} FOR UPDATE SKIP LOCKED
          ) longest LIMIT take.most
        ) open
    )
    UPDATE transaction t SET fence = t.fence + 1, ${dueAt} = now() + make_interval(secs => due.lease_s)
    FROM due, payment p
    WHERE t.id = due.id AND p.account_id = t.account_id AND p.id = t.payment_id
    RETURNING ${columns}`;
}

/**
 * Returns a condition that a row, found by its id, is due now or later. PostgreSQL does not see in it that the row is
 * in the index of those that are due: a plan made while that index is small would read all of it, and a prepared
 * statement keeps the plan when an outage leaves a hundred thousand rows in it.
 *
 * @param column such as `t.look_up_at`.
 */
export function isScheduled(column: string): string {
  return `num_nonnulls(${column}) = 1`;
}

/** Returns the parameters of a statement made by `leaseDue`. */
export function leaseParameters(takes: readonly Take[]): unknown[] {
  return [
    takes.map(({ connectionId }) => connectionId),
    takes.map(({ identity }) => identity),
    takes.map(({ limit }) => limit),
    takes.map(({ leaseS }) => leaseS),
  ];
}
