import type { Database, Nullable, Run } from '../engine/database.ts';
import { firstRow, onlyRow, withoutNulls } from '../engine/rows.ts';

/** A stored customer. */
export type StoredCustomer = {
  readonly accountId: string;
  readonly id: string;
  readonly merchantCustomerId: string | undefined;
  /** An encoded CustomerPayer. */
  readonly payer: Uint8Array;
  /** A JSON array of objects with `key` and `value`. */
  readonly metadata: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** Fields of a customer that callers set. */
export type CustomerFields = Pick<
  StoredCustomer,
  'accountId' | 'id' | 'merchantCustomerId' | 'payer' | 'metadata'
>;

type Row = Nullable<StoredCustomer>;

const COLUMNS = `account_id AS "accountId", id, merchant_customer_id AS "merchantCustomerId", payer, metadata,
  created_at AS "createdAt", updated_at AS "updatedAt"`;

const INSERT = `
  INSERT INTO customer (account_id, id, merchant_customer_id, payer, metadata) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (account_id, merchant_customer_id) WHERE merchant_customer_id IS NOT NULL DO NOTHING
  RETURNING ${COLUMNS}`;
const GET = {
  name: 'get_customer',
  text: `SELECT ${COLUMNS} FROM customer WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`,
};
const FIND = {
  name: 'find_customer',
  text: `SELECT ${COLUMNS} FROM customer WHERE account_id = $1 AND merchant_customer_id = $2 AND deleted_at IS NULL`,
};
const LOCK = `SELECT ${COLUMNS} FROM customer WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL FOR NO KEY UPDATE`;
const UPDATE = `
  UPDATE customer SET merchant_customer_id = $3, payer = $4, metadata = $5, updated_at = now()
  WHERE account_id = $1 AND id = $2
  RETURNING ${COLUMNS}`;
// The update's own lock would not block payments that share-lock the customer's key until they have stored a card.
const ERASE = `
  WITH found AS (
    SELECT id FROM customer WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL FOR UPDATE
  )
  UPDATE customer c
  SET merchant_customer_id = NULL, payer = '', metadata = '[]', updated_at = now(), deleted_at = now()
  FROM found WHERE c.account_id = $1 AND c.id = found.id
  RETURNING c.id`;

/** Adds a customer. @returns undefined if the account already has a customer with this `merchantCustomerId`. */
export async function insertNewCustomer(
  run: Run,
  customer: CustomerFields,
): Promise<StoredCustomer | undefined> {
  return firstRow(await run<Row>(INSERT, valuesOf(customer)));
}

/** Reads a customer. @param id a UUID. */
export async function readCustomer(
  database: Database,
  accountId: string,
  id: string,
): Promise<StoredCustomer | undefined> {
  return firstRow(await database.query<Row>(GET, [accountId, id]));
}

/** Finds a customer by the merchant's own identifier. */
export async function findCustomer(
  database: Database,
  accountId: string,
  merchantCustomerId: string,
): Promise<StoredCustomer | undefined> {
  return firstRow(await database.query<Row>(FIND, [accountId, merchantCustomerId]));
}

/** Reads a customer and locks it until the transaction ends. @param id a UUID. */
export async function lockCustomer(
  run: Run,
  accountId: string,
  id: string,
): Promise<StoredCustomer | undefined> {
  return firstRow(await run<Row>(LOCK, [accountId, id]));
}

/**
 * Writes the fields of a locked customer.
 *
 * @throws a unique violation (`isKeyTaken`) if another customer of the account has this `merchantCustomerId`.
 */
export async function updateCustomer(run: Run, customer: CustomerFields): Promise<StoredCustomer> {
  return withoutNulls(onlyRow(await run<Row>(UPDATE, valuesOf(customer))));
}

/**
 * Erases a customer's personal data but keeps the row's key. Until the transaction ends, no other transaction can add
 * anything to the customer.
 *
 * @param id a UUID.
 * @returns the stored form of the id; undefined if the customer does not exist.
 */
export async function eraseCustomer(run: Run, accountId: string, id: string): Promise<string | undefined> {
  return (await run<{ id: string }>(ERASE, [accountId, id])).rows[0]?.id;
}

const LIST_PAYERS = `
  SELECT id, payer FROM customer WHERE account_id = $1 AND id > $2::uuid AND deleted_at IS NULL
  ORDER BY id LIMIT 1000`;

/** Lists an account's next customers, with their encoded CustomerPayer. @returns an empty list at the end. */
export async function listPayers(
  run: Run,
  accountId: string,
  after: string,
): Promise<Pick<StoredCustomer, 'id' | 'payer'>[]> {
  return (await run<Pick<StoredCustomer, 'id' | 'payer'>>(LIST_PAYERS, [accountId, after])).rows;
}

function valuesOf({ accountId, id, merchantCustomerId = null, payer, metadata }: Nullable<CustomerFields>) {
  return [accountId, id, merchantCustomerId, payer, metadata];
}
