import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { StoredBytes } from './stored-payments.ts';

/*
 * The statements of the first release (migrations 0001 to 0003), as its replicas go on sending them while a newer one
 * migrates the database; at last with the account of a transaction, as every release does that is still in use.
 */

/** The last migration of the first release. */
export const LAST_OF_FIRST_RELEASE = 3;

const claim = (account: '' | ', account_id') => ({
  name: `claim${account}`,
  text: `
    WITH claimed AS (
      INSERT INTO payment (id, account_id, idempotency_key, request_hash, status, record, request_shape)
      VALUES ($1, $2, $3, $4, 'CREATED', $5, $4)
      ON CONFLICT (account_id, idempotency_key) DO NOTHING
      RETURNING id
    ), attempt AS (
      INSERT INTO transaction
        (id, payment_id, connection_id, status, amount_minor_units, currency, capture, look_up_at, vaulted_token,
          connection_identity${account})
      SELECT $6, id, 'bench', 'CREATED', 1000, 'USD', true, now() + make_interval(secs => 30), NULL, 'bench'
        ${account && ', $2'}
      FROM claimed
    )
    SELECT id FROM claimed`,
});
const FINISH = {
  name: 'finish',
  text: `
    WITH attempt AS (
      UPDATE transaction
      SET status = 'SUCCEEDED', look_up_at = now() + make_interval(secs => $5::float8), updated_at = now()
      WHERE id = $4 AND look_up_at IS NOT NULL AND (fence = 0 OR $5::float8 IS NULL)
      RETURNING payment_id
    ), finished AS (
      UPDATE payment
      SET status = 'SUCCEEDED', record = $2, answer = coalesce(answer, $3), updated_at = now(),
        answered_record = CASE WHEN answer IS NOT NULL THEN coalesce(answered_record, record) END
      FROM attempt WHERE payment.id = $1 AND attempt.payment_id = $1
      RETURNING NULLIF(answer, $3) AS earlier, answered_record AS told
    )
    SELECT earlier, CASE WHEN earlier IS NOT NULL THEN told END AS told FROM finished
    UNION ALL
    SELECT NULLIF(answer, $3), answered_record FROM payment
    WHERE id = $1 AND record = $2 AND NOT EXISTS (SELECT 1 FROM finished)`,
};
const TAKE = {
  name: 'take_due_attempts',
  text: `
    WITH due AS (
      SELECT id FROM transaction
      WHERE connection_id = 'bench' AND look_up_at <= now() AND (connection_identity = 'bench' OR connection_identity IS NULL)
      ORDER BY look_up_at LIMIT 20 FOR UPDATE SKIP LOCKED
    )
    UPDATE transaction t SET fence = t.fence + 1, look_up_at = now() + make_interval(secs => 30)
    FROM due, payment p
    WHERE t.id = due.id AND p.id = t.payment_id
    RETURNING t.id, t.payment_id, t.fence, p.record, p.answer IS NOT NULL AS answered`,
};

/** Payments that replicas of the first release make, one after another each, and the search of its recovery. */
export type FirstRelease = {
  /** The longest wait since this was last asked, for a statement that is under way still too. */
  takeLongest(): { readonly ms: number; readonly payments: number };
  /** Statements that failed, as messages. */
  readonly failures: readonly string[];
  /** From now on, transactions are inserted with their account. */
  nameAccounts(): void;
  stop(): Promise<void>;
};

const ACCOUNT_ID = 'acc00000-0000-4000-8000-000000000001';
const RECOVERY_PAUSE_MS = 250;

/** Starts `replicas` workers that pay and one that recovers. */
export function startFirstRelease(databaseUrl: string, replicas: number, bytes: StoredBytes): FirstRelease {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: replicas + 1 });
  const failures: string[] = [];
  const underWay = new Set<number>();
  let statement = claim('');
  let stopped = false;
  let longestMs = 0;
  let payments = 0;

  async function timed(statement: object, values: unknown[]): Promise<number> {
    const startedMs = performance.now();
    underWay.add(startedMs);
    try {
      return (await pool.query({ ...statement, values } as pg.QueryConfig)).rows.length;
    } catch (error) {
      failures.push(String(error));
      return 0;
    } finally {
      underWay.delete(startedMs);
      longestMs = Math.max(longestMs, performance.now() - startedMs);
    }
  }
  async function pay(): Promise<void> {
    while (!stopped) {
      const [payment, transaction] = [randomUUID(), randomUUID()];
      const hash = Buffer.alloc(32);
      await timed(statement, [payment, ACCOUNT_ID, `during-${payment}`, hash, bytes.record, transaction]);
      const finished = await timed(FINISH, [payment, bytes.record, bytes.answer, transaction, null]);
      if (finished === 1) payments += 1;
      else failures.push(`payment ${payment} was not finished`);
    }
  }
  async function recover(): Promise<void> {
    while (!stopped) {
      await timed(TAKE, []);
      await sleep(RECOVERY_PAUSE_MS);
    }
  }
  const running = Promise.all([...Array.from({ length: replicas }, pay), recover()]);
  return {
    failures,
    nameAccounts: () => {
      statement = claim(', account_id');
    },
    takeLongest() {
      const ms = Math.max(longestMs, ...[...underWay].map((startedMs) => performance.now() - startedMs));
      const taken = { ms, payments };
      [longestMs, payments] = [0, 0];
      return taken;
    },
    async stop() {
      stopped = true;
      await running;
      await pool.end();
    },
  };
}
