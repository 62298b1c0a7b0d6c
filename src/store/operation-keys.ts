import type { Database } from './database.ts';
import type { KeyHolder } from './payments.ts';

type Row = {
  id: string;
  payment_id: string;
  request_hash: Buffer;
  request_shape: Buffer;
  response: Buffer | null;
  record: Buffer | null;
};

const COLUMNS = `
  t.id, t.payment_id, t.request_hash, t.request_shape, t.response, coalesce(t.response_record, p.record) AS record`;

const FIND_BY_KEY = {
  name: 'find_operation_by_key',
  text: `
    SELECT ${COLUMNS} FROM transaction t JOIN payment p ON p.account_id = t.account_id AND p.id = t.payment_id
    WHERE t.account_id = $1 AND t.method = $2 AND t.idempotency_key = $3`,
};
const FIND_BY_ID = {
  name: 'find_operation_by_id',
  text: `
    SELECT ${COLUMNS} FROM transaction t JOIN payment p ON p.account_id = t.account_id AND p.id = t.payment_id
    WHERE t.account_id = $1 AND t.id = $2::uuid`,
};

/** Finds the operation that holds a key of an account and a method. */
export async function findOperationByKey(
  database: Database,
  accountId: string,
  method: string,
  idempotencyKey: string,
): Promise<KeyHolder | undefined> {
  return holder((await database.query<Row>(FIND_BY_KEY, [accountId, method, idempotencyKey])).rows[0]);
}

/** Finds an operation by its transaction's id, as the holder of a key. */
export async function findOperation(
  database: Database,
  accountId: string,
  transactionId: string,
): Promise<KeyHolder | undefined> {
  return holder((await database.query<Row>(FIND_BY_ID, [accountId, transactionId])).rows[0]);
}

function holder(row: Row | undefined): KeyHolder | undefined {
  if (!row?.record) return undefined;
  return {
    paymentId: row.payment_id,
    requestHash: row.request_hash,
    requestShape: row.request_shape,
    record: row.record,
    answer: row.response ?? undefined,
  };
}
