import { insertEventCte } from '../tables/outbox.ts';
import { reopenSessionCte, type SessionUse } from '../tables/single-uses.ts';
import { vaultCardCtes } from '../tables/stored-methods.ts';
import type { Database, Nullable } from './database.ts';
import { isScheduled } from './lease-due.ts';
import { firstRow } from './rows.ts';

/** A claim: written before a provider is called. Messages come encoded: the store knows rows, not payments. */
export type Claim = {
  readonly paymentId: string;
  readonly accountId: string;
  readonly idempotencyKey: string;
  readonly requestHash: Uint8Array;
  /** Digest of the fields that the hash covers. */
  readonly requestShape: Uint8Array;
  readonly status: string;
  readonly record: Uint8Array;
  readonly merchantOrderId: string;
  /** '' if there is no card. */
  readonly cardLastFour: string;
  /** The merchant's own reference; undefined if one was generated. */
  readonly merchantReference: string | undefined;
  /** The record's time of creation, such as 2026-01-31T09:08:07.000001Z, by which payments are listed. */
  readonly createdAt: string;
  readonly transactionId: string;
  readonly transactionStatus: string;
  /** payments.v1.Transaction.Type: PURCHASE, AUTHORIZE or VERIFY. */
  readonly type: string;
  readonly connectionId: string;
  /** The account at the provider that the connection stands for; no other is ever asked about this attempt. */
  readonly connectionIdentity: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  readonly capture: boolean;
  /** Length of the lease: recovery leaves the attempt alone until it ends. */
  readonly leaseS: number;
  /** A card to be kept if the payment succeeds; it waits, inactive, for the outcome. */
  readonly vault:
    | {
        readonly token: string;
        readonly type: string;
        readonly card: Uint8Array;
        readonly cardNumber: string;
        readonly customerId?: string | undefined;
        readonly country?: string;
        readonly fingerprint?: string;
      }
    | undefined;
  /** The stored method that the payment uses, or whose card it asks to keep again. */
  readonly storedMethod?: string | undefined;
  /** The checkout session that the payment uses up, unless it comes to nothing. */
  readonly session?: SessionUse | undefined;
  /** The one-time token that the payment uses up, whatever comes of it. */
  readonly oneTimeToken?: string | undefined;
};

/** A stored method after a payment by it was approved. */
type KeptMethod = {
  /** Time of the approval, as PostgreSQL reads it. */
  readonly at: string;
  /** An encoded StoredPaymentMethod for the event of a newly kept method; undefined if there is no such event. */
  readonly record: Uint8Array | undefined;
};

/** Fate of the stored method of a transaction: a card that waits for the outcome is kept, dropped, or waits on. */
export type MethodFate =
  | { readonly token: string; readonly fate: 'drop' | 'wait' }
  | ({ readonly token: string; readonly fate: 'keep' } & KeptMethod);

/** The end of an attempt, written once the outcome is known. */
export type Finish = {
  readonly accountId: string;
  readonly paymentId: string;
  readonly status: string;
  readonly record: Uint8Array;
  readonly answer: Uint8Array;
  readonly transactionId: string;
  readonly transactionStatus: string;
  /** Fencing token: how many workers have taken the attempt over; 0 for the one that claimed it. */
  readonly fence: number;
  /** Seconds until the outcome is looked up again; undefined once it is known. */
  readonly lookUpInS: number | undefined;
  /** Type of the event that reports this change to webhooks. */
  readonly event: string;
  /** The connector's reference to the transaction, for later calls. */
  readonly reference?: string | undefined;
  /** Seconds until it is followed up: its payer has yet to act, or its authorization lapses. */
  readonly followUpInS?: number | undefined;
  readonly vault: MethodFate | undefined;
  /** The checkout session that may be paid again, since this payment came to nothing. */
  readonly reopens?: string | undefined;
};

/** The result of storing a finish. */
export type Finished = {
  /** There is an event to relay. */
  readonly event?: true;
  /** The response that was stored before this finish; it wins over the one that this finish made. */
  readonly earlier: { readonly record: Uint8Array; readonly answer: Uint8Array } | undefined;
};

/** The payment that holds a key. `answer` is undefined while it is in progress. */
export type KeyHolder = {
  readonly paymentId: string;
  readonly requestHash: Uint8Array;
  readonly requestShape: Uint8Array;
  readonly record: Uint8Array;
  readonly answer: Uint8Array | undefined;
};

const FIND_BY_KEY = {
  name: 'find_by_key',
  text: `
    SELECT id AS "paymentId", request_hash AS "requestHash", request_shape AS "requestShape",
      coalesce(answered_record, record) AS record, answer
    FROM payment WHERE account_id = $1 AND idempotency_key = $2`,
};

// The response that was stored before a finish with the record $3, if it shows another record. Repeated after a lost
// acknowledgement, a finish finds its own.
const EARLIER_ANSWER = 'CASE WHEN answered_record <> $3 THEN answer END';

// The attempt is the lock: it is written only while its outcome is open. A known outcome ($8 is null) is the
// provider's word, and any worker may write it; only the holder of the fencing token may write that the outcome is
// still unknown. The response is set once, and stays as it is when the record moves on.
const FINISH_PAYMENT = `
  attempt AS (
    UPDATE transaction
    SET status = $6, look_up_at = now() + make_interval(secs => $8::float8), updated_at = now(),
      reference = coalesce($10, reference), follow_up_at = now() + make_interval(secs => $11::float8)
    WHERE account_id = $12::uuid AND payment_id = $1
      AND id = $5 AND ${isScheduled('look_up_at')} AND (fence = $7 OR $8::float8 IS NULL)
    RETURNING payment_id
  ), finished AS (
    UPDATE payment
    SET status = $2, record = $3, answer = coalesce(answer, $4), updated_at = now(),
      answered_record = CASE WHEN answer IS NOT NULL THEN coalesce(answered_record, record) END,
      event_sequence = event_sequence + 1
    FROM attempt WHERE payment.account_id = $12 AND payment.id = $1
    RETURNING id, account_id, event_sequence, ${EARLIER_ANSWER} AS earlier, answered_record AS told
  ), ${insertEventCte({ changed: 'finished', type: '$9::text', record: '$3' })}`;

// A finish's own response is not returned. Repeated after a lost acknowledgement, a finish finds itself written.
const FINISHED = `
  SELECT earlier, CASE WHEN earlier IS NOT NULL THEN told END AS told, EXISTS (SELECT FROM event) AS event
  FROM finished
  UNION ALL
  SELECT ${EARLIER_ANSWER}, answered_record, false FROM payment
  WHERE account_id = $12 AND id = $1 AND record = $3 AND NOT EXISTS (SELECT 1 FROM finished)`;

/** Condition that a card waits for its payment. The status is checked since an ended method is not active either. */
const IS_WAITING = `NOT active AND status = 'ENROLLED'`;
const FINISH = { name: 'finish', text: `WITH ${FINISH_PAYMENT} ${FINISHED}` };
const FINISH_REOPENING_SESSION = {
  name: 'finish_reopening_session',
  text: `WITH ${FINISH_PAYMENT}, ${reopenSessionCte({
    ...{ changed: 'finished', account: '$12', payment: '$1', session: '$13' },
  })}, card AS (
    DELETE FROM vaulted_token USING finished
    WHERE vaulted_token.account_id = $12 AND vaulted_token.id = $14::uuid AND ${IS_WAITING}
  ) ${FINISHED}`,
};
const FINISH_KEEPING_CARD = {
  name: 'finish_keeping_card',
  text: `WITH ${FINISH_PAYMENT}, ${vaultCardCtes({
    ...{ changed: 'finished', account: '$12', method: '$13', at: '$14', record: '$15' },
  })} ${FINISHED}`,
};
const FINISH_DROPPING_CARD = {
  name: 'finish_dropping_card',
  text: `WITH ${FINISH_PAYMENT}, card AS (
    DELETE FROM vaulted_token USING finished
    WHERE vaulted_token.account_id = $12 AND vaulted_token.id = $13 AND ${IS_WAITING}
  ) ${FINISHED}`,
};

/** A row of a finish that was written. */
export type FinishedRow = { earlier: Buffer | null; told: Buffer | null; event: boolean };

/** Finds the payment that holds a key of an account. */
export async function findByKey(
  database: Database,
  accountId: string,
  idempotencyKey: string,
): Promise<KeyHolder | undefined> {
  return firstRow(await database.query<Nullable<KeyHolder>>(FIND_BY_KEY, [accountId, idempotencyKey]));
}

/**
 * Finishes the payment, its transaction and the card that waits, with the event if a webhook wants it: one statement,
 * one commit, one round trip.
 *
 * @returns false if the outcome was known before, or another worker has taken the attempt since; then nothing was
 *   changed.
 */
export async function finishPayment(database: Database, finish: Finish): Promise<Finished | false> {
  const values: unknown[] = [
    finish.paymentId,
    finish.status,
    finish.record,
    finish.answer,
    finish.transactionId,
    finish.transactionStatus,
    finish.fence,
    finish.lookUpInS ?? null,
    finish.event,
    finish.reference ?? null,
    finish.followUpInS ?? null,
    finish.accountId,
  ];
  let statement = FINISH;
  if (finish.reopens !== undefined) {
    statement = FINISH_REOPENING_SESSION;
    values.push(finish.reopens, finish.vault?.token ?? null);
  } else if (finish.vault && finish.vault.fate !== 'wait') {
    const { vault } = finish;
    statement = vault.fate === 'keep' ? FINISH_KEEPING_CARD : FINISH_DROPPING_CARD;
    values.push(vault.token);
    if (vault.fate === 'keep') values.push(vault.at, vault.record ?? null);
  }
  const { rows } = await database.query<FinishedRow>(statement, values);
  return rows[0] ? toFinished(rows[0]) : false;
}

/** Returns the result that a row holds. */
export function toFinished({ earlier, told, event }: FinishedRow): Finished {
  return {
    ...(event && { event }),
    earlier: earlier && told ? { answer: earlier, record: told } : undefined,
  };
}
