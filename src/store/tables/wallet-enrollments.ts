import type { Due } from '../engine/checks.ts';
import type { Database, Nullable, Run } from '../engine/database.ts';
import { DUE, takeDueRows, takeWith } from '../engine/due-work.ts';
import { firstRow, onlyRow, withoutNulls } from '../engine/rows.ts';
import { findInAccounts } from './accounts.ts';
import { METHOD_COLUMNS, type MethodName, type MethodRow, type StoredMethod } from './stored-methods.ts';

/** A wallet that its payer has yet to approve. */
export type NewEnrollment = MethodName & {
  readonly type: string;
  readonly country: string;
  readonly connectionId: string;
  /** The account at the provider that the connection points to. */
  readonly connectionIdentity: string;
  readonly redirectUrl: string;
  readonly callbackUrl: string | undefined;
  /** Seconds that the payer has to approve. */
  readonly validS: number;
};

/** An enrollment that may be open, with the data for querying its provider. */
export type OpenEnrollment = {
  readonly accountId: string;
  readonly id: string;
  readonly status: string;
  readonly connectionId: string;
  readonly connectionIdentity: string;
  readonly callbackUrl: string | undefined;
  /** true: the payer's time to approve ended over an hour ago. */
  readonly isLongOver: boolean;
};

/** Outcome of an enrollment. */
export type EnrollmentEnd = {
  readonly status: 'ENROLLED' | 'DECLINED' | 'EXPIRED';
  /** The provider's token, if ENROLLED. */
  readonly providerToken: string | undefined;
};

const INSERT = `
  INSERT INTO vaulted_token AS v (account_id, customer_id, id, type, country, status, active, connection_id,
    connection_identity, redirect_url, callback_url, expires_at, check_at)
  VALUES ($1, $2, $3, $4, $5, 'READY_TO_ENROLL', false, $6, $7, $8, $9, now() + make_interval(secs => $10), now() + interval '5 seconds')
  RETURNING ${METHOD_COLUMNS}`;

const FIND = {
  name: 'find_enrollment',
  text: `
    SELECT v.account_id AS "accountId", v.id, v.status, v.connection_id AS "connectionId",
      v.connection_identity AS "connectionIdentity", v.callback_url AS "callbackUrl",
      v.expires_at < now() - interval '1 hour' AS "isLongOver"
    FROM vaulted_token v
    WHERE v.account_id = $1 AND v.id = $2 AND v.connection_id IS NOT NULL`,
};
const END = `
  UPDATE vaulted_token v
  SET status = $3, active = $3 = 'ENROLLED', provider_token = $4, redirect_url = NULL, check_at = NULL,
    updated_at = now()
  WHERE account_id = $1 AND id = $2 AND status = 'READY_TO_ENROLL'
  RETURNING ${METHOD_COLUMNS}`;
// The connection must match too, since a signature for one connection must not vouch for another's enrollments.
const FIND_NOTIFIED = {
  name: 'find_notified_enrollment',
  text: `
    SELECT account_id AS "accountId", id FROM vaulted_token
    WHERE account_id = $1 AND id = $2 AND connection_id = $3`,
};
type OpenRow = Nullable<OpenEnrollment>;

/** Adds a wallet that its payer has yet to approve. */
export async function insertEnrollment(run: Run, enrollment: NewEnrollment): Promise<StoredMethod> {
  const { accountId, customerId, id, type, country, connectionId, connectionIdentity } = enrollment;
  const { redirectUrl, callbackUrl = null, validS } = enrollment;
  const named = [accountId, customerId, id, type, country, connectionId, connectionIdentity];
  return withoutNulls(onlyRow(await run<MethodRow>(INSERT, [...named, redirectUrl, callbackUrl, validS])));
}

/** Leases up to `limit` due enrollments, each until its next check. */
export async function takeDueEnrollments(database: Database, limit: number): Promise<OpenEnrollment[]> {
  const take = takeWith<OpenEnrollment>(database, DUE.enrollments.take);
  return takeDueRows<Due, OpenEnrollment>(database, DUE.enrollments.find, { values: [limit], limit }, take);
}

/** Finds an enrollment, even if it has ended. @param id a UUID. */
export async function findEnrollment(database: Database, id: string): Promise<OpenEnrollment | undefined> {
  return findInAccounts(database, id, async (accountId) =>
    firstRow(await database.query<OpenRow>(FIND, [accountId, id])),
  );
}

/** Ends an open enrollment. @returns undefined if it had already ended. */
export async function endEnrollment(
  run: Run,
  { accountId, id }: Pick<OpenEnrollment, 'accountId' | 'id'>,
  { status, providerToken = undefined }: EnrollmentEnd,
): Promise<StoredMethod | undefined> {
  return firstRow(await run<MethodRow>(END, [accountId, id, status, providerToken ?? null]));
}

/**
 * Makes the check of an open enrollment due now, or `apartS` seconds after the last one, because its payer returned or
 * its provider sent a notification.
 */
export async function promptEnrollment(
  database: Database,
  { accountId, id }: Due,
  apartS: number,
): Promise<void> {
  await database.query(DUE.enrollments.prompt, [accountId, id, apartS]);
}

/** Finds the enrollment that a connection's notification is about. @param id a UUID. */
export async function findNotifiedEnrollment(
  database: Database,
  id: string,
  connectionId: string,
): Promise<Due | undefined> {
  return findInAccounts(
    database,
    id,
    async (accountId) => (await database.query<Due>(FIND_NOTIFIED, [accountId, id, connectionId])).rows[0],
  );
}
