import type { Nullable, Queries, Run } from '../engine/database.ts';
import { firstRow, onlyRow, withoutNulls } from '../engine/rows.ts';

/** A customer's payment method, as stored. */
export type StoredMethod = {
  readonly accountId: string;
  /** '' if the method belongs to no customer. */
  readonly customerId: string;
  readonly id: string;
  readonly type: string;
  /** Name of a payments.v1.StoredPaymentMethod.Status. */
  readonly status: 'READY_TO_ENROLL' | 'ENROLLED' | 'DECLINED' | 'EXPIRED' | 'UNENROLLED';
  readonly country: string;
  /** An encoded CardData, for cards. */
  readonly card: Uint8Array | undefined;
  /** Keyed hash of the card number, for cards. */
  readonly fingerprint: string | undefined;
  /** URL at which the payer approves a wallet; set only while READY_TO_ENROLL. */
  readonly redirectUrl: string | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly lastUsedAt: Date | undefined;
};

/** Maximum number of a customer's methods, both usable ones and those that await their payer or payment. */
export const MAX_METHODS = 100;
/** Maximum number of methods listed. Concurrent payments that each find room may exceed MAX_METHODS. */
const MAX_LISTED = 1_000;

/** A row of METHOD_COLUMNS. */
export type MethodRow = Nullable<StoredMethod>;

/** Columns of a stored method, with its row named `v`. */
export const METHOD_COLUMNS = `v.account_id AS "accountId", coalesce(v.customer_id::text, '') AS "customerId", v.id,
    v.type, v.status, v.country, v.card, v.fingerprint, v.redirect_url AS "redirectUrl", v.created_at AS "createdAt",
    v.updated_at AS "updatedAt", v.last_used_at AS "lastUsedAt"`;

/** Identifies a customer. */
export type CustomerName = { readonly accountId: string; readonly customerId: string };
/** Identifies a customer's method. */
export type MethodName = CustomerName & { readonly id: string };

const LIST = {
  name: 'list_stored_methods',
  text: `
    SELECT ${METHOD_COLUMNS} FROM vaulted_token v
    WHERE account_id = $1 AND customer_id = $2 AND active AND status = 'ENROLLED' ORDER BY id DESC LIMIT $3`,
};
// A card that awaits its payment cannot be read yet, and neither can the remaining data of a deleted customer's
// methods.
const GET = {
  name: 'get_stored_method',
  text: `
    SELECT ${METHOD_COLUMNS} FROM vaulted_token v
    WHERE account_id = $1 AND customer_id = $2 AND id = $3 AND (active OR status <> 'ENROLLED')
      AND EXISTS (SELECT 1 FROM customer c WHERE c.account_id = $1 AND c.id = $2 AND c.deleted_at IS NULL)`,
};
const FIND_CARD = {
  name: 'find_card_of_customer',
  text: `
    SELECT ${METHOD_COLUMNS} FROM vaulted_token v
    WHERE account_id = $1 AND customer_id = $2 AND fingerprint = $3 AND active AND status = 'ENROLLED'
    ORDER BY id LIMIT 1`,
};
// A card that awaits its payment is ENROLLED but not active. Waiting methods count, so that none is refused after its
// payer has approved or paid.
const COUNT = {
  name: 'count_stored_methods',
  text: `
    SELECT count(*)::integer AS methods FROM (
      SELECT 1 FROM vaulted_token
      WHERE account_id = $1 AND customer_id = $2 AND status IN ('ENROLLED', 'READY_TO_ENROLL') LIMIT $3
    ) standing`,
};
const INSERT_CARD = `
  INSERT INTO vaulted_token AS v (account_id, customer_id, id, type, country, card, card_number, fingerprint, active)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, true)
  RETURNING ${METHOD_COLUMNS}`;
const UPDATE_CARD = `
  UPDATE vaulted_token v SET card = $4, country = CASE WHEN $5 = '' THEN country ELSE $5 END, updated_at = now()
  WHERE account_id = $1 AND customer_id = $2 AND id = $3 AND active AND status = 'ENROLLED'
  RETURNING ${METHOD_COLUMNS}`;
const END = `
  UPDATE vaulted_token v SET status = 'UNENROLLED', active = false, card_number = NULL, provider_token = NULL, redirect_url = NULL,
    check_at = NULL, updated_at = now()
  WHERE account_id = $1 AND customer_id = $2 AND id = $3
    AND (active AND status = 'ENROLLED' OR status = 'READY_TO_ENROLL')
  RETURNING ${METHOD_COLUMNS}`;
// Includes cards that await their payments, so that a payment approved later finds no card to keep. Each row is locked
// before its status is read, since a payment or enrollment may be changing it.
const erase = (which: string) => `
  WITH found AS (
    SELECT id, active AND status = 'ENROLLED' OR status = 'READY_TO_ENROLL' AS is_ended
    FROM vaulted_token WHERE account_id = $1 AND ${which} FOR NO KEY UPDATE
  ), erased AS (
    UPDATE vaulted_token v
    SET status = 'UNENROLLED', active = false, card_number = NULL, card = NULL, fingerprint = NULL, provider_token = NULL,
      redirect_url = NULL, callback_url = NULL, check_at = NULL, updated_at = now()
    FROM found WHERE v.account_id = $1 AND v.id = found.id
    RETURNING v.*, is_ended
  )
  SELECT ${METHOD_COLUMNS} FROM erased v WHERE is_ended ORDER BY v.id`;
const ERASE = erase('customer_id = $2');
const ERASE_UNOWNED = erase('id = ANY ($2::uuid[]) AND customer_id IS NULL');

/** Lists a customer's usable methods, newest first. */
export async function listMethods(
  queries: Queries,
  { accountId, customerId }: CustomerName,
): Promise<StoredMethod[]> {
  const { rows } = await queries.query<MethodRow>(LIST, [accountId, customerId, MAX_LISTED]);
  return rows.map(withoutNulls);
}

/** Reads a customer's method, even if it is no longer usable. @param name the ids, which are UUIDs. */
export async function readMethod(
  queries: Queries,
  { accountId, customerId, id }: MethodName,
): Promise<StoredMethod | undefined> {
  return firstRow(await queries.query<MethodRow>(GET, [accountId, customerId, id]));
}

/** Finds a customer's method by the fingerprint of its card. */
export async function findCardOfCustomer(
  queries: Queries,
  { accountId, customerId }: CustomerName,
  fingerprint: string,
): Promise<StoredMethod | undefined> {
  return firstRow(await queries.query<MethodRow>(FIND_CARD, [accountId, customerId, fingerprint]));
}

/** Counts a customer's methods that are usable or may become so, up to MAX_METHODS. */
export async function countMethods(
  queries: Queries,
  { accountId, customerId }: CustomerName,
): Promise<number> {
  const values = [accountId, customerId, MAX_METHODS];
  return (await queries.query<{ methods: number }>(COUNT, values)).rows[0]?.methods ?? 0;
}

/** A card to store for a customer. */
export type MethodCard = MethodName & {
  readonly type: string;
  readonly country: string;
  readonly card: Uint8Array;
  /** The number as a JWE bound to `id`. */
  readonly cardNumber: string;
  readonly fingerprint: string;
};

/** Adds a card that is usable immediately. */
export async function insertMethodCard(run: Run, method: MethodCard): Promise<StoredMethod> {
  const { accountId, customerId, id, type, country, card, cardNumber, fingerprint } = method;
  const values = [accountId, customerId, id, type, country, card, cardNumber, fingerprint];
  return withoutNulls(onlyRow(await run<MethodRow>(INSERT_CARD, values)));
}

/** Replaces the displayable data of a stored card, such as its expiry. @returns undefined if the card is not usable. */
export async function updateMethodCard(
  run: Run,
  { accountId, customerId, id }: MethodName,
  card: Uint8Array,
  country: string,
): Promise<StoredMethod | undefined> {
  return firstRow(await run<MethodRow>(UPDATE_CARD, [accountId, customerId, id, card, country]));
}

/** Unenrolls a method and deletes its ciphertext. @returns undefined if there was none to unenroll. */
export async function endMethod(
  run: Run,
  { accountId, customerId, id }: MethodName,
): Promise<StoredMethod | undefined> {
  return firstRow(await run<MethodRow>(END, [accountId, customerId, id]));
}

/** Erases all of a customer's methods. @returns the methods that this call unenrolled, without their data. */
export async function eraseMethods(
  run: Run,
  { accountId, customerId }: CustomerName,
): Promise<StoredMethod[]> {
  return (await run<MethodRow>(ERASE, [accountId, customerId])).rows.map(withoutNulls);
}

/** Erases methods that belong to no customer. @returns as eraseMethods. */
export async function eraseUnownedMethods(
  run: Run,
  accountId: string,
  ids: readonly string[],
): Promise<StoredMethod[]> {
  return (await run<MethodRow>(ERASE_UNOWNED, [accountId, ids])).rows.map(withoutNulls);
}
