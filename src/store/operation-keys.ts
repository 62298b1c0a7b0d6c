import type { Database, Nullable } from './database.ts';
import type { KeyHolder } from './payments.ts';
import { firstRow } from './rows.ts';

const SELECT = `
    SELECT t.payment_id AS "paymentId", t.request_hash AS "requestHash", t.request_shape AS "requestShape",
      coalesce(t.response_record, p.record) AS record, t.response AS answer
    FROM transaction t JOIN payment p ON p.account_id = t.account_id AND p.id = t.payment_id`;

const FIND_BY_KEY = {
  name: 'find_operation_by_key',
  text: `${SELECT}
    WHERE t.account_id = $1 AND t.method = $2 AND t.idempotency_key = $3`,
};
const FIND_BY_ID = {
  name: 'find_operation_by_id',
  text: `${SELECT}
    WHERE t.account_id = $1 AND t.id = $2::uuid`,
};

/** Finds the operation that holds a key of an account and a method. */
export async function findOperationByKey(
  database: Database,
  accountId: string,
  method: string,
  idempotencyKey: string,
): Promise<KeyHolder | undefined> {
  const values = [accountId, method, idempotencyKey];
  return firstRow(await database.query<Nullable<KeyHolder>>(FIND_BY_KEY, values));
}

/** Finds an operation by its transaction's id, as the holder of a key. */
export async function findOperation(
  database: Database,
  accountId: string,
  transactionId: string,
): Promise<KeyHolder | undefined> {
  return firstRow(await database.query<Nullable<KeyHolder>>(FIND_BY_ID, [accountId, transactionId]));
}
