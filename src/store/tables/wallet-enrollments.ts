import type { Database, Nullable, Run } from '../engine/database.ts';
import { firstRow, onlyRow, withoutNulls } from '../engine/rows.ts';
import { METHOD_COLUMNS, type MethodName, type MethodRow, type StoredMethod } from './stored-methods.ts';

/** A wallet whose payer has yet to agree. */
export type NewEnrollment = MethodName & {
  readonly type: string;
  readonly country: string;
  readonly connectionId: string;
  /** The account at the provider that the connection stands for. */
  readonly connectionIdentity: string;
  readonly redirectUrl: string;
  readonly callbackUrl: string | undefined;
  /** Time that its payer has to agree. */
  readonly validS: number;
};

/** An enrollment that may be open, with the data for asking its provider. */
export type OpenEnrollment = {
  readonly accountId: string;
  readonly id: string;
  readonly status: string;
  readonly connectionId: string;
  readonly connectionIdentity: string;
  readonly callbackUrl: string | undefined;
  /** true: the payer's time to agree has been over for an hour. */
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
    connection_identity, redirect_url, callback_url, expires_at, follow_up_at)
  VALUES ($1, $2, $3, $4, $5, 'READY_TO_ENROLL', false, $6, $7, $8, $9, now() + make_interval(secs => $10), now() + interval '5 seconds')
  RETURNING ${METHOD_COLUMNS}`;

const OPEN_COLUMNS = `
  v.account_id AS "accountId", v.id, v.status, v.connection_id AS "connectionId",
  v.connection_identity AS "connectionIdentity", v.callback_url AS "callbackUrl",
  v.expires_at < now() - interval '1 hour' AS "isLongOver"`;

// The pause until the next look-up is this one's lease: a quarter of the enrollment's age, 5 seconds to 10 minutes.
const TAKE = {
  name: 'take_due_enrollments',
  text: `
    WITH due AS (
      SELECT account_id, id FROM vaulted_token
      WHERE follow_up_at <= now() ORDER BY follow_up_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    UPDATE vaulted_token v
    SET follow_up_at = now() + least(greatest((now() - v.created_at) / 4, interval '5 seconds'), interval '10 minutes')
    FROM due WHERE v.account_id = due.account_id AND v.id = due.id
    RETURNING ${OPEN_COLUMNS}`,
};
const FIND = {
  name: 'find_enrollment',
  text: `SELECT ${OPEN_COLUMNS} FROM vaulted_token v WHERE v.id = $1 AND v.connection_id IS NOT NULL`,
};
const END = `
  UPDATE vaulted_token v
  SET status = $3, active = $3 = 'ENROLLED', provider_token = $4, redirect_url = NULL, follow_up_at = NULL,
    updated_at = now()
  WHERE account_id = $1 AND id = $2 AND status = 'READY_TO_ENROLL'
  RETURNING ${METHOD_COLUMNS}`;
// Found by connection too: whoever can sign for one must not report on another's enrollments.
const HASTEN = {
  name: 'hasten_enrollment',
  text: `
    WITH found AS (
      SELECT account_id, id FROM vaulted_token WHERE id = $1 AND connection_id = $2
    ), hastened AS (
      UPDATE vaulted_token v SET follow_up_at = now() FROM found
      WHERE v.account_id = found.account_id AND v.id = found.id AND v.status = 'READY_TO_ENROLL'
    )
    SELECT FROM found`,
};

type OpenRow = Nullable<OpenEnrollment>;

/** Adds a wallet whose payer has yet to agree. */
export async function insertEnrollment(run: Run, enrollment: NewEnrollment): Promise<StoredMethod> {
  const { accountId, customerId, id, type, country, connectionId, connectionIdentity } = enrollment;
  const { redirectUrl, callbackUrl = null, validS } = enrollment;
  const named = [accountId, customerId, id, type, country, connectionId, connectionIdentity];
  return withoutNulls(onlyRow(await run<MethodRow>(INSERT, [...named, redirectUrl, callbackUrl, validS])));
}

/** Leases up to `limit` enrollments about which to ask their providers, each until its next look-up. */
export async function takeDueEnrollments(database: Database, limit: number): Promise<OpenEnrollment[]> {
  return (await database.query<OpenRow>(TAKE, [limit])).rows.map(withoutNulls);
}

/** Finds an enrollment, over or not. @param id a UUID. */
export async function findEnrollment(database: Database, id: string): Promise<OpenEnrollment | undefined> {
  return firstRow(await database.query<OpenRow>(FIND, [id]));
}

/** Ends an open enrollment. @returns undefined if it was over before. */
export async function endEnrollment(
  run: Run,
  { accountId, id }: Pick<OpenEnrollment, 'accountId' | 'id'>,
  { status, providerToken = undefined }: EnrollmentEnd,
): Promise<StoredMethod | undefined> {
  return firstRow(await run<MethodRow>(END, [accountId, id, status, providerToken ?? null]));
}

/**
 * Makes the look-up of an enrollment due now, since its provider sent a notification about it.
 *
 * @returns false if the connection has no such enrollment.
 */
export async function hastenEnrollment(
  database: Database,
  id: string,
  connectionId: string,
): Promise<boolean> {
  return (await database.query(HASTEN, [id, connectionId])).rows.length === 1;
}
