import { sessionUseCtes, tokenUseCtes, usingOnce } from '../tables/single-uses.ts';
import type { Database, Statement } from './database.ts';
import type { Claim } from './payments.ts';

/** Columns that the claim of a payment writes, in the order of its values. */
export const PAYMENT_COLUMNS = `
  id, account_id, idempotency_key, request_hash, status, record, request_shape, merchant_order_id, created_at,
  card_last_four`;
/** Columns that the claim writes of the payment's first attempt. */
export const ATTEMPT_COLUMNS = `
  id, payment_id, connection_id, status, amount_minor_units, currency, capture, look_up_at, vaulted_token,
  connection_identity, type, account_id, merchant_reference`;

const CLAIM_PAYMENT = `
  claimed AS (
    INSERT INTO payment (${PAYMENT_COLUMNS})
    VALUES ($1, $2, $3, $4, $5, $6, $16, $17, $18, $20)
    ON CONFLICT (account_id, idempotency_key) DO NOTHING
    RETURNING id
  ), attempt AS (
    INSERT INTO transaction (${ATTEMPT_COLUMNS})
    SELECT $7, id, $8, $9, $10, $11, $12, now() + make_interval(secs => $13), $14::uuid, $15, $19, $2, $21
    FROM claimed
  )`;

/**
 * Returns CTEs that insert the waiting card, unless its customer has been deleted since the payment was prepared. A
 * deletion excludes the lock on the customer: it either waits, and erases the card, or comes first, and none is kept.
 *
 * @param first number of the first of six parameters.
 */
function waitingCardCtes(first: number): string {
  const customer = `$${first + 3}::uuid`;
  return `, owner AS (
    SELECT id FROM customer WHERE account_id = $2 AND id = ${customer} AND deleted_at IS NULL FOR KEY SHARE
  ), waiting_card AS (
    INSERT INTO vaulted_token (id, account_id, type, card, card_number, customer_id, country, fingerprint, created_at, active)
    SELECT $14::uuid, $2, $${first}, $${first + 1}, $${first + 2}, ${customer}, $${first + 4}, $${first + 5}::uuid, $18, false
    FROM claimed WHERE ${customer} IS NULL OR EXISTS (SELECT FROM owner)
  )`;
}

/**
 * Claims the key and inserts the payment with its transaction: one statement, one commit, one round trip.
 *
 * @returns false if the key is held already, by another payment or by this one (a repeat whose first acknowledgement
 *   was lost): `findByKey` shows which.
 * @throws AlreadyUsedError if its checkout session or one-time token was used by another payment, or has changed.
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
    claim.vault?.token ?? claim.storedMethod ?? null,
    claim.connectionIdentity,
    claim.requestShape,
    claim.merchantOrderId,
    claim.createdAt,
    claim.type,
    claim.cardLastFour,
    claim.merchantReference ?? null,
  ];
  let name = 'claim';
  let ctes = CLAIM_PAYMENT;
  const { vault, session, oneTimeToken } = claim;
  if (vault) {
    name += '_with_card';
    ctes += waitingCardCtes(values.length + 1);
    const { type, card, cardNumber, customerId = null, country = '', fingerprint = null } = vault;
    values.push(type, card, cardNumber, customerId, country, fingerprint);
  }
  if (session) {
    name += '_of_session';
    ctes += sessionUseCtes(values.length + 1);
    values.push(session.id, session.version);
  }
  if (oneTimeToken) {
    name += '_by_token';
    ctes += tokenUseCtes(values.length + 1);
    values.push(oneTimeToken);
  }
  const statement: Statement = { name, text: `WITH ${ctes} SELECT id FROM claimed` };
  const claimed = database.query(statement, values);
  return (await (session || oneTimeToken ? usingOnce(claimed) : claimed)).rows.length === 1;
}
