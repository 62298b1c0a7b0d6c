import type { Database, Nullable } from '../engine/database.ts';
import { firstRow } from '../engine/rows.ts';
import type { KeyHolder } from './payment-keys.ts';

/** The operation that holds a key, or else a merchant's reference within the payment and method. */
export type OperationHolder = KeyHolder & {
  readonly idempotencyKey: string | undefined;
  /** The id of the payment's own transaction. */
  readonly baseId: string;
  /** The id of the transaction that the operation acts on. */
  readonly parentId: string;
};

const COLUMNS = `t.payment_id AS "paymentId", t.request_hash AS "requestHash", t.request_shape AS "requestShape",
      coalesce(t.response_record, p.record) AS record, t.response`;

// A key takes precedence: it belongs to one operation, whatever that operation's reference.
const FIND = {
  name: 'find_operation_by_key',
  text: `
    WITH found AS (
      SELECT id, 1 AS place FROM transaction
      WHERE account_id = $1 AND method = $2 AND idempotency_key = $3
      UNION ALL
      SELECT id, 2 FROM transaction
      WHERE account_id = $1 AND payment_id = $4::uuid AND method = $2 AND merchant_reference = $5
    )
    SELECT ${COLUMNS}, t.idempotency_key AS "idempotencyKey", t.parent_id AS "parentId",
      coalesce(target.parent_id, t.parent_id) AS "baseId"
    FROM found JOIN transaction t ON t.account_id = $1 AND t.id = found.id
      JOIN payment p ON p.account_id = $1 AND p.id = t.payment_id
      LEFT JOIN transaction target ON target.account_id = $1 AND target.id = t.parent_id
    ORDER BY found.place LIMIT 1`,
};
const FIND_BY_ID = {
  name: 'find_operation_by_id',
  text: `
    SELECT ${COLUMNS}
    FROM transaction t JOIN payment p ON p.account_id = $1 AND p.id = t.payment_id
    WHERE t.account_id = $1 AND t.id = $2::uuid`,
};

/**
 * Finds the operation that holds a key within the account and method, or else the operation with the merchant's
 * reference within the payment and method.
 *
 * @param named.paymentId undefined unless it is a UUID.
 */
export async function findOperationByKey(
  database: Database,
  accountId: string,
  method: string,
  named: {
    readonly idempotencyKey: string;
    readonly paymentId: string | undefined;
    readonly merchantReference: string | undefined;
  },
): Promise<OperationHolder | undefined> {
  const { idempotencyKey, paymentId = null, merchantReference = null } = named;
  const values = [accountId, method, idempotencyKey, paymentId, merchantReference];
  return firstRow(await database.query<Nullable<OperationHolder>>(FIND, values));
}

/** Finds an operation by its transaction's id, as the holder of a key. */
export async function findOperation(
  database: Database,
  accountId: string,
  transactionId: string,
): Promise<KeyHolder | undefined> {
  return firstRow(await database.query<Nullable<KeyHolder>>(FIND_BY_ID, [accountId, transactionId]));
}
