import { insertEventCte } from '../tables/outbox.ts';
import { byteaArray } from './bytea-array.ts';
import { ATTEMPT_COLUMNS, claimPayment, PAYMENT_COLUMNS } from './claim-payment.ts';
import type { Database } from './database.ts';
import { groupCommits } from './group-commit.ts';
import { isScheduled } from './lease-due.ts';
import {
  type Claim,
  type Finish,
  type Finished,
  type FinishedRow,
  finishPayment,
  toFinished,
} from './payments.ts';

/** `claimPayment`, in one commit with the claims that come meanwhile. */
export const claimGrouped = groupCommits<Claim, boolean>({ one: claimPayment, many: claimMany });

/** `finishPayment`, in one commit with the finishes that come meanwhile. */
export const finishGrouped = groupCommits<Finish, Finished | false>({ one: finishPayment, many: finishMany });

// The same as `claim`, for each row of the input.
const CLAIMS = {
  name: 'claim_many',
  text: `
    WITH input AS (
      SELECT * FROM unnest(
        $1::uuid[], $2::uuid[], $3::text[], $4::bytea[], $5::text[], $6::bytea[], $7::bytea[], $8::text[],
        $9::timestamptz[], $10::uuid[], $11::text[], $12::text[], $13::bigint[], $14::text[], $15::boolean[],
        $16::float8[], $17::text[], $18::text[], $19::text[], $20::text[], $21::uuid[]
      ) AS i (
        id, account_id, idempotency_key, request_hash, status, record, request_shape, merchant_order_id,
        created_at, transaction_id, connection_id, transaction_status, minor_units, currency, capture,
        lease_s, connection_identity, type, card_last_four, merchant_reference, vaulted_token
      )
    ), claimed AS (
      INSERT INTO payment (${PAYMENT_COLUMNS})
      SELECT ${PAYMENT_COLUMNS} FROM input
      ON CONFLICT (account_id, idempotency_key) DO NOTHING
      RETURNING id
    ), attempt AS (
      INSERT INTO transaction (${ATTEMPT_COLUMNS})
      SELECT i.transaction_id, i.id, i.connection_id, i.transaction_status, i.minor_units, i.currency, i.capture,
        now() + make_interval(secs => i.lease_s), i.vaulted_token, i.connection_identity, i.type, i.account_id,
        i.merchant_reference
      FROM input i JOIN claimed c ON c.id = i.id
    )
    SELECT id FROM claimed`,
};

/** Claims plain payments. Claims that keep a card or use a session or token write more rows, and are left to `one`. */
async function claimMany(database: Database, claims: readonly Claim[]): Promise<(boolean | undefined)[]> {
  // All groups write their rows in one order, so that two that claim the same keys cannot deadlock.
  const plain = claims.filter(isPlain).sort(byKey);
  if (plain.length === 0) return claims.map(() => undefined);
  const column = <T>(of: (claim: Claim) => T) => plain.map(of);
  const { rows } = await database.query<{ id: string }>(CLAIMS, [
    column((claim) => claim.paymentId),
    column((claim) => claim.accountId),
    column((claim) => claim.idempotencyKey),
    byteaArray(column((claim) => claim.requestHash)),
    column((claim) => claim.status),
    byteaArray(column((claim) => claim.record)),
    byteaArray(column((claim) => claim.requestShape)),
    column((claim) => claim.merchantOrderId),
    column((claim) => claim.createdAt),
    column((claim) => claim.transactionId),
    column((claim) => claim.connectionId),
    column((claim) => claim.transactionStatus),
    column((claim) => claim.minorUnits.toString()),
    column((claim) => claim.currency),
    column((claim) => claim.capture),
    column((claim) => claim.leaseS),
    column((claim) => claim.connectionIdentity),
    column((claim) => claim.type),
    column((claim) => claim.cardLastFour),
    column((claim) => claim.merchantReference ?? null),
    column((claim) => claim.storedMethod ?? null),
  ]);
  const claimed = new Set(rows.map(({ id }) => id));
  return claims.map((claim) => (isPlain(claim) ? claimed.has(claim.paymentId) : undefined));
}

function isPlain({ vault, session, oneTimeToken }: Claim): boolean {
  return !vault && !session && !oneTimeToken;
}

function byKey(a: Claim, b: Claim): number {
  if (a.accountId !== b.accountId) return a.accountId < b.accountId ? -1 : 1;
  return a.idempotencyKey < b.idempotencyKey ? -1 : Number(a.idempotencyKey > b.idempotencyKey);
}

// The same as `finish`, for each row of the input.
const FINISHES = {
  name: 'finish_many',
  text: `
    WITH input AS (
      SELECT * FROM unnest(
        $1::uuid[], $2::uuid[], $3::text[], $4::bytea[], $5::bytea[], $6::uuid[], $7::text[], $8::integer[],
        $9::float8[], $10::text[], $11::text[], $12::float8[]
      ) WITH ORDINALITY AS i (
        id, account_id, status, record, answer, transaction_id, transaction_status, fence,
        look_up_in_s, event, reference, follow_up_in_s, n
      )
    ), attempt AS (
      UPDATE transaction t
      SET status = i.transaction_status, look_up_at = now() + make_interval(secs => i.look_up_in_s),
        updated_at = now(), reference = coalesce(i.reference, t.reference),
        follow_up_at = now() + make_interval(secs => i.follow_up_in_s)
      FROM input i
      WHERE t.account_id = i.account_id AND t.id = i.transaction_id AND t.payment_id = i.id
        AND ${isScheduled('t.look_up_at')} AND (t.fence = i.fence OR i.look_up_in_s IS NULL)
      RETURNING i.n
    ), finished AS (
      UPDATE payment p
      SET status = i.status, record = i.record, answer = coalesce(p.answer, i.answer), updated_at = now(),
        answered_record = CASE WHEN p.answer IS NOT NULL THEN coalesce(p.answered_record, p.record) END,
        event_sequence = p.event_sequence + 1
      FROM input i JOIN attempt a ON a.n = i.n
      WHERE p.account_id = i.account_id AND p.id = i.id
      RETURNING i.n, p.id, p.account_id, p.event_sequence, i.event, i.record,
        CASE WHEN p.answered_record <> i.record THEN p.answer END AS earlier, p.answered_record AS told
    ), ${insertEventCte({ changed: 'finished', type: 'c.event', record: 'c.record' })}
    SELECT n::integer, earlier, CASE WHEN earlier IS NOT NULL THEN told END AS told, id IN (SELECT payment_id FROM event) AS event
    FROM finished`,
};

/**
 * Number of payments that a process has to finish in groups before it prepares their statement. A prepared statement
 * keeps its plan as the tables grow, and a plan made while they are small would read them whole. Planning it anew each
 * time takes up to a fifth of PostgreSQL's processor time.
 */
const PREPARED_FROM = 5_000;
/** Number of payments that were finished in groups so far. */
const finishedIn = new WeakMap<Database, number>();

/**
 * Writes plain finishes. One that decides about a waiting card or a checkout session is left to `finishPayment`, and
 * so is one that changed nothing, which `finishPayment` explains.
 */
async function finishMany(
  database: Database,
  finishes: readonly Finish[],
): Promise<(Finished | undefined)[]> {
  const writesMore = ({ vault, reopens }: Finish) =>
    reopens !== undefined || (vault !== undefined && vault.fate !== 'wait');
  const plain = finishes.filter((finish) => !writesMore(finish));
  if (plain.length === 0) return finishes.map(() => undefined);
  const column = <T>(of: (finish: Finish) => T) => plain.map(of);
  const before = finishedIn.get(database) ?? 0;
  const statement = { ...FINISHES, isPrepared: before >= PREPARED_FROM };
  const { rows } = await database.query<FinishedRow & { n: number }>(statement, [
    column((finish) => finish.paymentId),
    column((finish) => finish.accountId),
    column((finish) => finish.status),
    byteaArray(column((finish) => finish.record)),
    byteaArray(column((finish) => finish.answer)),
    column((finish) => finish.transactionId),
    column((finish) => finish.transactionStatus),
    column((finish) => finish.fence),
    column((finish) => finish.lookUpInS ?? null),
    column((finish) => finish.event),
    column((finish) => finish.reference ?? null),
    column((finish) => finish.followUpInS ?? null),
  ]);
  finishedIn.set(database, before + rows.length);
  const written = new Map(rows.map((row) => [plain[row.n - 1], row]));
  return finishes.map((finish) => {
    const row = written.get(finish);
    return row && toFinished(row);
  });
}
