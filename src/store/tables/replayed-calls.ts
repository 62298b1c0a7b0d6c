import type { Database, Run } from '../engine/database.ts';

/** Identifies a call under an idempotency key. */
export type CallName = {
  readonly accountId: string;
  /** Name of the rpc, within which idempotency keys are unique. */
  readonly method: string;
  readonly idempotencyKey: string;
};
/** A call under an idempotency key. */
export type KeyedCall = CallName & {
  readonly requestHash: Uint8Array;
  /** Digest of the fields that the hash covers. */
  readonly requestShape: Uint8Array;
};

/** The earlier call that holds a key. */
export type CallHolder = {
  readonly requestHash: Uint8Array;
  readonly requestShape: Uint8Array;
  readonly response: Uint8Array;
};

// A call in progress under the same key holds the row's lock, so this call waits until it ends.
const CLAIM = `
  INSERT INTO replayed_call (account_id, method, idempotency_key, request_hash, request_shape)
  VALUES ($1, $2, $3, $4, $5) ON CONFLICT (account_id, method, idempotency_key) DO NOTHING
  RETURNING account_id`;
const READ = {
  name: 'read_replayed_call',
  text: `
    SELECT request_hash AS "requestHash", request_shape AS "requestShape", response FROM replayed_call
    WHERE account_id = $1 AND method = $2 AND idempotency_key = $3`,
};
const KEEP = `
  UPDATE replayed_call SET response = $4, customer_id = $5
  WHERE account_id = $1 AND method = $2 AND idempotency_key = $3`;

/** Claims a key within the transaction that makes the object. @returns the call that holds the key, if any. */
export async function claimCall(run: Run, call: KeyedCall): Promise<CallHolder | undefined> {
  const { accountId, method, idempotencyKey, requestHash, requestShape } = call;
  const values = [accountId, method, idempotencyKey, requestHash, requestShape];
  if ((await run(CLAIM, values)).rows.length === 1) return undefined;
  const [holder] = (await run<CallHolder>(READ.text, values.slice(0, 3))).rows;
  if (!holder) throw new Error('the idempotency key is taken, but its call was not found');
  return holder;
}

/** Reads the call that holds a key, if any. */
export async function findCall(
  database: Database,
  { accountId, method, idempotencyKey }: CallName,
): Promise<CallHolder | undefined> {
  return (await database.query<CallHolder>(READ, [accountId, method, idempotencyKey])).rows[0];
}

/**
 * Stores the response to a call whose key was claimed in the same transaction or whose row is locked.
 *
 * @param customerId the customer whose personal data the response contains; undefined if it contains none.
 */
export async function keepResponse(
  run: Run,
  { accountId, method, idempotencyKey }: CallName,
  response: Uint8Array,
  customerId?: string,
): Promise<void> {
  await run(KEEP, [accountId, method, idempotencyKey, response, customerId]);
}

const LOCK_OF_CUSTOMER = `
  SELECT account_id AS "accountId", method, idempotency_key AS "idempotencyKey", response FROM replayed_call
  WHERE account_id = $1 AND customer_id = $2
  FOR NO KEY UPDATE`;

/** A response that contains a customer's personal data. */
export type CustomerResponse = CallName & { readonly response: Uint8Array };

/** Reads the responses with a customer's personal data, and locks them until the transaction ends. */
export async function lockResponsesOf(
  run: Run,
  accountId: string,
  customerId: string,
): Promise<CustomerResponse[]> {
  return (await run<CustomerResponse>(LOCK_OF_CUSTOMER, [accountId, customerId])).rows;
}

const LIST_OF_METHOD = `
  SELECT account_id AS "accountId", method, idempotency_key AS "idempotencyKey", response FROM replayed_call
  WHERE account_id = $1 AND method = $2 AND idempotency_key > $3 AND response IS NOT NULL
  ORDER BY idempotency_key LIMIT 500`;

/** Lists the next responses to an account's calls of an rpc, by key. @returns an empty list at the end. */
export async function listResponses(
  run: Run,
  accountId: string,
  method: string,
  afterKey: string,
): Promise<CustomerResponse[]> {
  return (await run<CustomerResponse>(LIST_OF_METHOD, [accountId, method, afterKey])).rows;
}
