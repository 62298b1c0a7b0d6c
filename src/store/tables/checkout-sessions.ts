import type { Database, Nullable, Queries, Run } from '../engine/database.ts';
import { firstRow, onlyRow, withoutNulls } from '../engine/rows.ts';
import { type CheckoutOwner, findCheckoutOwner, findInAccounts } from './accounts.ts';
import { MAX_SESSION_PAYMENTS } from './single-uses.ts';

/**
 * Terms of a checkout session. Its payment must match them, and absent fields of the request are filled in from them.
 */
export type SessionTerms = {
  readonly merchantOrderId: string;
  readonly paymentDescription: string;
  readonly country: string;
  readonly currency: string;
  readonly minorUnits: bigint;
  readonly customerId: string | undefined;
  readonly callbackUrl: string | undefined;
  /** A JSON array of objects with `key` and `value`. */
  readonly metadata: string;
  /** Name of a payments.v1.Payment.Workflow. */
  readonly workflow: string;
  /** The accepted types of payment methods; empty for all. */
  readonly paymentMethodTypes: readonly string[];
  /** true: a payment with a stored card needs its security code. */
  readonly securityCodeRequired: boolean;
  /** The most installments of a payment; 0 for no limit. */
  readonly maxInstallments: number;
  /**
   * When creating a session, undefined stands for the default expiry. When reading one, undefined means a session
   * without terms, which accepts any number of payments.
   */
  readonly expiresAt: Date | undefined;
};

/** A stored checkout session. */
export type StoredSession = SessionTerms & {
  readonly accountId: string;
  readonly id: string;
  readonly version: number;
  /** The last payment of the session, even if declined. */
  readonly paymentId: string | undefined;
  /** true: the session has a payment that was not declined. */
  readonly used: boolean;
  readonly expired: boolean;
  /** Number of payments so far. */
  readonly payments: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

type Row = Nullable<StoredSession>;

/** Maximum number of one-time tokens of a checkout session, as of payments: nobody can try cards in it without end. */
export const MAX_SESSION_TOKENS = MAX_SESSION_PAYMENTS;

const COLUMNS = `s.account_id AS "accountId", s.id, s.merchant_order_id AS "merchantOrderId",
  s.payment_description AS "paymentDescription", s.country, s.currency, s.amount_minor_units AS "minorUnits",
  s.customer_id AS "customerId", s.callback_url AS "callbackUrl", s.metadata, s.workflow, s.version,
  s.payment_id AS "paymentId",
  EXISTS (SELECT 1 FROM single_use u WHERE u.account_id = $1 AND u.object_id = $2) AS used,
  coalesce(s.expires_at <= now(), false) AS expired, s.payments, s.expires_at AS "expiresAt",
  s.payment_method_types AS "paymentMethodTypes", s.security_code_required AS "securityCodeRequired",
  s.max_installments AS "maxInstallments",
  s.created_at AS "createdAt", s.updated_at AS "updatedAt"`;

const INSERT = `
  INSERT INTO checkout_session (account_id, id, merchant_order_id, payment_description, country, currency,
    amount_minor_units, customer_id, callback_url, metadata, workflow, payment_method_types, security_code_required,
    max_installments, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
    coalesce($15::timestamptz, now() + make_interval(secs => $16)))`;
const GET = {
  name: 'get_checkout_session',
  text: `SELECT ${COLUMNS} FROM checkout_session s WHERE s.account_id = $1 AND s.id = $2`,
};
const EXISTS = {
  name: 'checkout_session_exists',
  text: 'SELECT s.id FROM checkout_session s WHERE s.account_id = $1 AND s.id = $2',
};
// A claim writes this row too, so it either comes before the lock and is seen, or comes after the change and is
// refused.
const LOCK = 'SELECT id FROM checkout_session WHERE account_id = $1 AND id = $2 FOR UPDATE';
const UPDATE = `
  UPDATE checkout_session s SET merchant_order_id = $3, payment_description = $4, country = $5, currency = $6,
    amount_minor_units = $7, customer_id = $8, callback_url = $9, metadata = $10, workflow = $11,
    payment_method_types = $12, security_code_required = $13, max_installments = $14,
    expires_at = coalesce($15::timestamptz, expires_at), version = version + 1, updated_at = now()
  WHERE s.account_id = $1 AND s.id = $2`;

// Locks the session's row, so that concurrent calls count together.
const COUNT_TOKEN = `
  UPDATE checkout_session SET tokens = tokens + 1
  WHERE account_id = $1 AND id = $2 AND (tokens < $3 OR expires_at IS NULL)
  RETURNING tokens`;

/** Adds a checkout session. It expires after `livesS` seconds unless its terms set another time. */
export async function insertSession(
  run: Run,
  name: { readonly accountId: string; readonly id: string },
  terms: SessionTerms,
  livesS: number,
): Promise<StoredSession> {
  await run(INSERT, [...valuesOf(name, terms), livesS]);
  return readWritten(run, name);
}

/** Reads a checkout session. @param id a UUID. */
export async function readSession(
  database: Database,
  accountId: string,
  id: string,
): Promise<StoredSession | undefined> {
  return firstRow(await database.query<Row>(GET, [accountId, id]));
}

/**
 * Finds the account of a checkout session for a payer, who knows only the session's id.
 *
 * @param id a UUID.
 * @param ofSandbox also finds the sandbox's accounts.
 */
export async function findSessionOwner(
  database: Database,
  id: string,
  ofSandbox: boolean,
): Promise<CheckoutOwner | undefined> {
  const accountId = await findInAccounts(database, id, async (accountId) => {
    const { rowCount } = await database.query(EXISTS, [accountId, id]);
    return rowCount ? accountId : undefined;
  });
  return accountId === undefined ? undefined : findCheckoutOwner(database, accountId, ofSandbox);
}

/** Locks a checkout session until the transaction ends, and reads it. @param id a UUID. */
export async function lockSession(
  run: Run,
  accountId: string,
  id: string,
): Promise<StoredSession | undefined> {
  await run(LOCK, [accountId, id]);
  return firstRow(await run<Row>(GET.text, [accountId, id]));
}

/**
 * Counts a one-time token that the same transaction adds to a session.
 *
 * @returns false if the session already has the maximum; a session without terms has none.
 */
export async function countSessionToken(run: Run, accountId: string, id: string): Promise<boolean> {
  return (await run(COUNT_TOKEN, [accountId, id, MAX_SESSION_TOKENS])).rows.length > 0;
}

/** Changes the terms of a locked checkout session. */
export async function updateSession(
  run: Run,
  name: { readonly accountId: string; readonly id: string },
  terms: SessionTerms,
): Promise<StoredSession> {
  await run(UPDATE, valuesOf(name, terms));
  return readWritten(run, name);
}

/** Reads a session that the same transaction has written. */
async function readWritten(
  run: Run,
  { accountId, id }: { readonly accountId: string; readonly id: string },
): Promise<StoredSession> {
  return withoutNulls(onlyRow(await run<Row>(GET.text, [accountId, id])));
}

function valuesOf({ accountId, id }: { accountId: string; id: string }, terms: SessionTerms): unknown[] {
  return [
    accountId,
    id,
    terms.merchantOrderId,
    terms.paymentDescription,
    terms.country,
    terms.currency,
    terms.minorUnits.toString(),
    terms.customerId ?? null,
    terms.callbackUrl ?? null,
    terms.metadata,
    terms.workflow,
    terms.paymentMethodTypes,
    terms.securityCodeRequired,
    terms.maxInstallments,
    terms.expiresAt ?? null,
  ];
}

const OF_CUSTOMERS = `SELECT id FROM checkout_session WHERE account_id = $1 AND customer_id = ANY ($2::uuid[])`;

/** Returns the ids of the customers' sessions. Reads the account's sessions. */
export async function listSessionsOf(
  run: Run,
  accountId: string,
  customerIds: readonly string[],
): Promise<string[]> {
  return (await run<{ id: string }>(OF_CUSTOMERS, [accountId, customerIds])).rows.map(({ id }) => id);
}

const ERASE = `
  UPDATE checkout_session s
  SET payment_description = '', metadata = '[]', callback_url = NULL, version = version + 1, updated_at = now(),
    expires_at = now()
  WHERE s.account_id = $1 AND s.id = ANY ($2::uuid[]) AND NOT EXISTS (
    SELECT 1 FROM payment o WHERE o.account_id = $1 AND o.id = s.payment_id AND o.status IN ('READY_TO_PAY', 'PENDING'))
  RETURNING s.id`;
const ERASE_TOKENS = `DELETE FROM one_time_token WHERE account_id = $1 AND session_id = ANY ($2::uuid[])`;

/**
 * Ends sessions and erases the merchant's texts from them, and their one-time tokens, unless a payment of theirs is still
 * open.
 *
 * @returns the ids of the erased sessions.
 */
export async function eraseSessions(run: Run, accountId: string, ids: readonly string[]): Promise<string[]> {
  const erased = (await run<{ id: string }>(ERASE, [accountId, ids])).rows.map(({ id }) => id);
  await run(ERASE_TOKENS, [accountId, erased]);
  return erased;
}

const END = `
  UPDATE checkout_session SET expires_at = now(), updated_at = now(), version = version + 1
  WHERE account_id = $1 AND (expires_at IS NULL OR expires_at > now()) RETURNING 1`;

/** Ends every session of an account that accepts payments. @returns their number. */
export async function endSessions(queries: Queries, accountId: string): Promise<number> {
  return (await queries.query({ name: 'end_sessions', text: END }, [accountId])).rows.length;
}
