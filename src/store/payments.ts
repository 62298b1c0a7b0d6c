import type { Database } from './database.ts';

/** What is written before a provider is called. Messages come encoded: the store knows rows, not payments. */
export type Claim = {
  readonly paymentId: string;
  readonly accountId: string;
  readonly idempotencyKey: string;
  readonly requestHash: Uint8Array;
  /** Digest of the fields that the hash covers. */
  readonly requestShape: Uint8Array;
  readonly status: string;
  readonly record: Uint8Array;
  readonly transactionId: string;
  readonly transactionStatus: string;
  readonly connectionId: string;
  /** The account at the provider that the connection stands for; no other is ever asked about this attempt. */
  readonly connectionIdentity: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  readonly capture: boolean;
  /** For how long nobody else looks after this attempt. */
  readonly leaseS: number;
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
  /** How many took the attempt before who writes this: 0 for who claimed it. */
  readonly fence: number;
  /** In how many seconds the outcome is looked up again; undefined once it is known. */
  readonly lookUpInS: number | undefined;
  /** What becomes of the card that waits: kept, dropped, or waiting on while the outcome is open. */
  readonly vault: { readonly token: string; readonly fate: 'keep' | 'drop' | 'wait' } | undefined;
};

/** The payment that holds a key. `answer` is undefined while it is in progress. */
export type KeyHolder = {
  readonly paymentId: string;
  readonly requestHash: Uint8Array;
  /** undefined: a release claimed it that did not keep it. */
  readonly requestShape: Uint8Array | undefined;
  readonly record: Uint8Array;
  readonly answer: Uint8Array | undefined;
};

type KeyHolderRow = {
  id: string;
  request_hash: Buffer;
  request_shape: Buffer | null;
  record: Buffer;
  answer: Buffer | null;
};

const CLAIM_PAYMENT = `
  claimed AS (
    INSERT INTO payment (id, account_id, idempotency_key, request_hash, status, record, request_shape)
    VALUES ($1, $2, $3, $4, $5, $6, $16)
    ON CONFLICT (account_id, idempotency_key) DO NOTHING
    RETURNING id
  ), attempt AS (
    INSERT INTO transaction
      (id, payment_id, connection_id, status, amount_minor_units, currency, capture, look_up_at, vaulted_token,
        connection_identity)
    SELECT $7, id, $8, $9, $10, $11, $12, now() + make_interval(secs => $13), $14::uuid, $15 FROM claimed
  )`;

const CLAIM_CARD = `, waiting_card AS (
    INSERT INTO vaulted_token (id, account_id, type, card, card_number, active)
    SELECT $14::uuid, $2, $17, $18, $19, false FROM claimed
  )`;

const CLAIM = { name: 'claim', text: `WITH ${CLAIM_PAYMENT} SELECT id FROM claimed` };
const CLAIM_WITH_CARD = {
  name: 'claim_with_card',
  text: `WITH ${CLAIM_PAYMENT}${CLAIM_CARD} SELECT id FROM claimed`,
};

const FIND_BY_KEY = {
  name: 'find_by_key',
  text: `
    SELECT id, request_hash, request_shape, coalesce(answered_record, record) AS record, answer
    FROM payment WHERE account_id = $1 AND idempotency_key = $2`,
};

// The attempt is the lock: it is written only while its outcome is open. An outcome that is known ($8 is null) is the
// provider's word, and true whoever brings it; that it is still unknown is for who holds the fence to say. The answer is
// set once; a record that moves on from what was answered leaves it behind.
const FINISH_PAYMENT = `
  attempt AS (
    UPDATE transaction
    SET status = $6, look_up_at = now() + make_interval(secs => $8::float8), updated_at = now()
    WHERE id = $5 AND look_up_at IS NOT NULL AND (fence = $7 OR $8::float8 IS NULL)
    RETURNING payment_id
  ), finished AS (
    UPDATE payment
    SET status = $2, record = $3, answer = coalesce(answer, $4), updated_at = now(),
      answered_record = CASE WHEN answer IS NOT NULL THEN coalesce(answered_record, record) END
    FROM attempt WHERE payment.id = $1 AND attempt.payment_id = $1
    RETURNING id
  )`;

const FINISH = { name: 'finish', text: `WITH ${FINISH_PAYMENT} SELECT id FROM finished` };
const FINISH_KEEPING_CARD = {
  name: 'finish_keeping_card',
  text: `WITH ${FINISH_PAYMENT}, card AS (
    UPDATE vaulted_token SET active = true FROM finished WHERE vaulted_token.id = $9
  ) SELECT id FROM finished`,
};
const FINISH_DROPPING_CARD = {
  name: 'finish_dropping_card',
  text: `WITH ${FINISH_PAYMENT}, card AS (
    DELETE FROM vaulted_token USING finished WHERE vaulted_token.id = $9 AND NOT active
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
    claim.leaseS,
    claim.vault?.token ?? null,
    claim.connectionIdentity,
    claim.requestShape,
  ];
  const { vault } = claim;
  if (vault) values.push(vault.type, vault.card, vault.cardNumber);
  const { rows } = await database.query(vault ? CLAIM_WITH_CARD : CLAIM, values);
  return rows.length === 1;
}

/** The payment that holds a key of an account, if any. */
export async function findByKey(
  database: Database,
  accountId: string,
  idempotencyKey: string,
): Promise<KeyHolder | undefined> {
  const { rows } = await database.query<KeyHolderRow>(FIND_BY_KEY, [accountId, idempotencyKey]);
  const row = rows[0];
  if (!row) return undefined;
  return {
    paymentId: row.id,
    requestHash: row.request_hash,
    requestShape: row.request_shape ?? undefined,
    record: row.record,
    answer: row.answer ?? undefined,
  };
}

/**
 * Finishes the payment, its transaction and the card that waits: one statement, one commit, one round trip.
 *
 * @returns false when its outcome was known before, or somebody else took it since; then nothing was changed.
 */
export async function finishPayment(database: Database, finish: Finish): Promise<boolean> {
  const values: unknown[] = [
    finish.paymentId,
    finish.status,
    finish.record,
    finish.answer,
    finish.transactionId,
    finish.transactionStatus,
    finish.fence,
    finish.lookUpInS ?? null,
  ];
  let statement = FINISH;
  if (finish.vault && finish.vault.fate !== 'wait') {
    statement = finish.vault.fate === 'keep' ? FINISH_KEEPING_CARD : FINISH_DROPPING_CARD;
    values.push(finish.vault.token);
  }
  const { rows } = await database.query(statement, values);
  return rows.length === 1;
}

/** One attempt has come to nothing, and the next is about to be made. */
export type NextAttempt = {
  readonly paymentId: string;
  /** The record, whose last transaction is the next attempt. */
  readonly record: Uint8Array;
  readonly last: { readonly transactionId: string; readonly transactionStatus: string };
  readonly next: Pick<
    Claim,
    'transactionId' | 'transactionStatus' | 'connectionId' | 'connectionIdentity' | 'leaseS'
  >;
};

// Only while the last attempt is still with who claimed it (fence 0) and open. The next one inherits what stays the same.
// Said again after a lost acknowledgement it changes nothing, and finds the attempt there, still with who began it.
const BEGIN_NEXT = {
  name: 'begin_next_attempt',
  text: `
    WITH last AS (
      UPDATE transaction SET status = $3, look_up_at = NULL, updated_at = now()
      WHERE id = $2 AND look_up_at IS NOT NULL AND fence = 0
      RETURNING payment_id, amount_minor_units, currency, capture, vaulted_token
    ), next AS (
      INSERT INTO transaction
        (id, payment_id, connection_id, status, amount_minor_units, currency, capture, look_up_at, vaulted_token,
          connection_identity)
      SELECT $4, payment_id, $5, $6, amount_minor_units, currency, capture, now() + make_interval(secs => $7),
        vaulted_token, $9
      FROM last
      RETURNING id
    ), moved AS (
      UPDATE payment SET record = $8, updated_at = now() FROM next WHERE payment.id = $1
    )
    SELECT id FROM next
    UNION ALL
    SELECT id FROM transaction WHERE id = $4 AND look_up_at IS NOT NULL AND fence = 0`,
};

/**
 * Ends an attempt that came to nothing and begins the next, before it is sent: one statement, one commit. It may be said
 * again when its acknowledgement was lost.
 *
 * @returns false when somebody else has taken the payment over since; then nothing was changed.
 */
export async function beginNextAttempt(database: Database, begin: NextAttempt): Promise<boolean> {
  const { rows } = await database.query(BEGIN_NEXT, [
    begin.paymentId,
    begin.last.transactionId,
    begin.last.transactionStatus,
    begin.next.transactionId,
    begin.next.connectionId,
    begin.next.transactionStatus,
    begin.next.leaseS,
    begin.record,
    begin.next.connectionIdentity,
  ]);
  return rows.length === 1;
}

const GET_PAYMENT = {
  name: 'get_payment',
  text: 'SELECT record FROM payment WHERE id = $1 AND account_id = $2',
};

/** A payment of an account as it stands, an encoded Payment. @param paymentId a UUID. */
export async function getPaymentRecord(
  database: Database,
  paymentId: string,
  accountId: string,
): Promise<Uint8Array | undefined> {
  const { rows } = await database.query<{ record: Buffer }>(GET_PAYMENT, [paymentId, accountId]);
  return rows[0]?.record;
}

// It writes no row, and fails wherever a payment could not be written: on a standby, without the schema or the privilege.
const CHECK_WRITABLE = {
  name: 'check_writable',
  text: 'UPDATE payment SET status = status WHERE false',
};

/** Resolves when a payment could be written now; rejects as a claim would. */
export async function checkWritable(database: Database): Promise<void> {
  await database.query(CHECK_WRITABLE);
}
