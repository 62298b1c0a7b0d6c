import type { Database, Nullable } from '../engine/database.ts';
import { firstRow } from '../engine/rows.ts';

/** The payment that holds a key. `response` is undefined while the payment is in progress. */
export type KeyHolder = {
  readonly paymentId: string;
  readonly requestHash: Uint8Array;
  readonly requestShape: Uint8Array;
  readonly record: Uint8Array;
  readonly response: Uint8Array | undefined;
};

const FIND_BY_KEY = {
  name: 'find_by_key',
  text: `
    SELECT id AS "paymentId", request_hash AS "requestHash", request_shape AS "requestShape",
      coalesce(response_record, record) AS record, response
    FROM payment WHERE account_id = $1 AND idempotency_key = $2`,
};

/** Finds the payment that holds a key of an account. */
export async function findByKey(
  database: Database,
  accountId: string,
  idempotencyKey: string,
): Promise<KeyHolder | undefined> {
  return firstRow(await database.query<Nullable<KeyHolder>>(FIND_BY_KEY, [accountId, idempotencyKey]));
}
