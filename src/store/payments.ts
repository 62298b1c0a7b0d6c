import type { Database } from './database.ts';

/** What is written before a provider is called. Messages come encoded: the store knows rows, not payments. */
export type Claim = {
  readonly paymentId: string;
  readonly accountId: string;
  readonly idempotencyKey: string;
  readonly requestHash: Uint8Array;
  readonly status: string;
  readonly record: Uint8Array;
  readonly transactionId: string;
  readonly transactionStatus: string;
  readonly connectionId: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  readonly capture: boolean;
  /** A card to be kept if the payment succeeds; it waits, inactive, for the outcome. */
  readonly vault:
    | {
        readonly token: string;
        readonly type: string;
        readonly card: Uint8Array;
        readonly cardNumber: string;
      }
    | undefined;
};

/** What is written once the outcome is known. */
export type Finish = {
  readonly paymentId: string;
  readonly status: string;
  readonly record: Uint8Array;
  readonly answer: Uint8Array;
  readonly transactionId: string;
  readonly transactionStatus: string;
  /** What becomes of the card that waits: kept, dropped, or waiting on while the outcome is open. */
  readonly vault: { readonly token: string; readonly fate: 'keep' | 'drop' | 'wait' } | undefined;
};

/** The payment that holds a key. `answer` is undefined while it is in progress. */
export type Held = {
  readonly paymentId: string;
  readonly requestHash: Uint8Array;
  readonly record: Uint8Array;
  readonly answer: Uint8Array | undefined;
};

type HeldRow = { id: string; request_hash: Buffer; record: Buffer; answer: Buffer | null };

const CLAIM_PAYMENT = `
  claimed AS (
    INSERT INTO payment (id, account_id, idempotency_key, request_hash, status, record)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (account_id, idempotency_key) DO NOTHING
    RETURNING id
  ), attempt AS (
    INSERT INTO transaction (id, payment_id, connection_id, status, amount_minor_units, currency, capture)
    SELECT $7, id, $8, $9, $10, $11, $12 FROM claimed
  )`;

const CLAIM_CARD = `, waiting_card AS (
    INSERT INTO vaulted_token (id, account_id, type, card, card_number, active)
    SELECT $13, $2, $14, $15, $16, false FROM claimed
  )`;

const CLAIM = { name: 'claim', text: `WITH ${CLAIM_PAYMENT} SELECT id FROM claimed` };
const CLAIM_WITH_CARD = {
  name: 'claim_with_card',
  text: `WITH ${CLAIM_PAYMENT}${CLAIM_CARD} SELECT id FROM claimed`,
};

const FIND_BY_KEY = {
  name: 'find_by_key',
  text: 'SELECT id, request_hash, record, answer FROM payment WHERE account_id = $1 AND idempotency_key = $2',
};

// The answer is set once: a second finish of the same payment changes nothing and says so.
const FINISH_PAYMENT = `
  finished AS (
    UPDATE payment SET status = $2, record = $3, answer = $4, updated_at = now()
    WHERE id = $1 AND answer IS NULL
    RETURNING id
  ), attempt AS (
    UPDATE transaction SET status = $6, updated_at = now() FROM finished WHERE transaction.id = $5
  )`;

const FINISH = { name: 'finish', text: `WITH ${FINISH_PAYMENT} SELECT id FROM finished` };
const FINISH_KEEPING_CARD = {
  name: 'finish_keeping_card',
  text: `WITH ${FINISH_PAYMENT}, card AS (
    UPDATE vaulted_token SET active = true FROM finished WHERE vaulted_token.id = $7
  ) SELECT id FROM finished`,
};
const FINISH_DROPPING_CARD = {
  name: 'finish_dropping_card',
  text: `WITH ${FINISH_PAYMENT}, card AS (
    DELETE FROM vaulted_token USING finished WHERE vaulted_token.id = $7 AND NOT active
  ) SELECT id FROM finished`,
};

/**
 * Claims the key and inserts the payment with its transaction: one statement, one commit, one round trip.
 *
 * @returns false when the key is held already, by another payment or by this one (a repeat whose first acknowledgement
 *   was lost): `findByKey` tells which.
 */
export async function claimPayment(database: Database, claim: Claim): Promise<boolean> {
  const values: unknown[] = [
    claim.paymentId,
    claim.accountId,
    claim.idempotencyKey,
    claim.requestHash,
    claim.status,
    claim.record,
    claim.transactionId,
    claim.connectionId,
    claim.transactionStatus,
    claim.minorUnits.toString(),
    claim.currency,
    claim.capture,
  ];
  const { vault } = claim;
  if (vault) values.push(vault.token, vault.type, vault.card, vault.cardNumber);
  const { rows } = await database.query(vault ? CLAIM_WITH_CARD : CLAIM, values);
  return rows.length === 1;
}

/** The payment that holds a key of an account, if any. */
export async function findByKey(
  database: Database,
  accountId: string,
  idempotencyKey: string,
): Promise<Held | undefined> {
  const { rows } = await database.query<HeldRow>(FIND_BY_KEY, [accountId, idempotencyKey]);
  const row = rows[0];
  if (!row) return undefined;
  return {
    paymentId: row.id,
    requestHash: row.request_hash,
    record: row.record,
    answer: row.answer ?? undefined,
  };
}

/**
 * Finishes the payment, its transaction and the card that waits: one statement, one commit, one round trip.
 *
 * @returns false when it had been finished before; then nothing was changed.
 */
export async function finishPayment(database: Database, finish: Finish): Promise<boolean> {
  const values: unknown[] = [
    finish.paymentId,
    finish.status,
    finish.record,
    finish.answer,
    finish.transactionId,
    finish.transactionStatus,
  ];
  let statement = FINISH;
  if (finish.vault && finish.vault.fate !== 'wait') {
    statement = finish.vault.fate === 'keep' ? FINISH_KEEPING_CARD : FINISH_DROPPING_CARD;
    values.push(finish.vault.token);
  }
  const { rows } = await database.query(statement, values);
  return rows.length === 1;
}
