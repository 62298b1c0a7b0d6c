import type { Database } from './database.ts';

/** An attempt whose outcome is open and due to be looked up, taken by who asked. */
export type DueAttempt = {
  readonly transactionId: string;
  readonly paymentId: string;
  readonly connectionId: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  readonly capture: boolean;
  readonly vaultedToken: string | undefined;
  /** What a finish must name: it holds until somebody else takes the attempt. */
  readonly fence: number;
  /** How often it was taken, this time included. */
  readonly lookUps: number;
  /** An encoded Payment: the record as it stands. */
  readonly record: Uint8Array;
  /** Whether its creation was answered; until then its key is in progress. */
  readonly answered: boolean;
};

type DueRow = {
  id: string;
  payment_id: string;
  connection_id: string;
  amount_minor_units: bigint;
  currency: string;
  capture: boolean;
  vaulted_token: string | null;
  fence: number;
  look_ups: number;
  record: Buffer;
  answered: boolean;
};

// Leases go by the database's clock, so that no replica's own matters; locked rows are another replica's, and skipped.
const TAKE = {
  name: 'take_due_attempts',
  text: `
    WITH due AS (
      SELECT id FROM transaction WHERE look_up_at <= now()
      ORDER BY look_up_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    UPDATE transaction t
    SET fence = t.fence + 1, look_ups = t.look_ups + 1, look_up_at = now() + make_interval(secs => $2)
    FROM due, payment p
    WHERE t.id = due.id AND p.id = t.payment_id
    RETURNING t.id, t.payment_id, t.connection_id, t.amount_minor_units, t.currency, t.capture, t.vaulted_token,
      t.fence, t.look_ups, p.record, p.answer IS NOT NULL AS answered`,
};

/** Takes up to `limit` attempts that are due, each for `leaseS` seconds, the longest due first. */
export async function takeDueAttempts(
  database: Database,
  limit: number,
  leaseS: number,
): Promise<DueAttempt[]> {
  const { rows } = await database.query<DueRow>(TAKE, [limit, leaseS]);
  return rows.map((row) => ({
    transactionId: row.id,
    paymentId: row.payment_id,
    connectionId: row.connection_id,
    minorUnits: row.amount_minor_units,
    currency: row.currency,
    capture: row.capture,
    vaultedToken: row.vaulted_token ?? undefined,
    fence: row.fence,
    lookUps: row.look_ups,
    record: row.record,
    answered: row.answered,
  }));
}

const POSTPONE = {
  name: 'postpone_look_up',
  text: `
    UPDATE transaction SET look_up_at = now() + make_interval(secs => $3)
    WHERE id = $1 AND fence = $2 AND look_up_at IS NOT NULL`,
};

/** Gives a taken attempt back, to be looked up again later; nothing is known yet. */
export async function postponeLookUp(
  database: Database,
  attempt: Pick<DueAttempt, 'transactionId' | 'fence'>,
  inS: number,
): Promise<void> {
  await database.query(POSTPONE, [attempt.transactionId, attempt.fence, inS]);
}

const COUNT_OPEN = {
  name: 'count_open_attempts',
  text: `
    SELECT count(*)::integer AS open, coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS oldest_s
    FROM transaction WHERE look_up_at IS NOT NULL`,
};

/** How many outcomes are open, those of requests under way included, and for how long the oldest has been. */
export async function countOpenAttempts(database: Database): Promise<{ open: number; oldestS: number }> {
  const { rows } = await database.query<{ open: number; oldest_s: number }>(COUNT_OPEN);
  return { open: rows[0]?.open ?? 0, oldestS: rows[0]?.oldest_s ?? 0 };
}
