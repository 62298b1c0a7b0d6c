import type { Database, Nullable, Run } from './database.ts';
import { firstRow, onlyRow } from './rows.ts';

/** A one-time token that a payment may use. */
export type StoredToken = {
  readonly id: string;
  /** The checkout session whose payment it is for; undefined for any payment of the account. */
  readonly sessionId: string | undefined;
  /** An encoded CardData: the displayable data of the card. */
  readonly card: Uint8Array;
  /** Number and security code as a JWE bound to `id`. */
  readonly sealed: string;
};

/** Times at which a token was made and at which it expires. */
export type TokenTimes = { readonly createdAt: Date; readonly expiresAt: Date };

const INSERT = `
  INSERT INTO one_time_token (account_id, id, session_id, card, sealed, expires_at)
  VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
  RETURNING created_at AS "createdAt", expires_at AS "expiresAt"`;
const GET = {
  name: 'get_one_time_token',
  text: `
    SELECT id, session_id AS "sessionId", card, sealed FROM one_time_token
    WHERE account_id = $1 AND id = $2 AND sealed IS NOT NULL AND expires_at > now()`,
};
/** Limit on the tokens that are swept at once. */
export const MAX_TOKENS_SWEPT = 500;

// A token that a payment is just using is skipped: its claim deletes the ciphertext, or leaves it to the next sweep.
// The order and the constant limit have the tokens found by the index of their age: without them, a backlog would be
// read from the table's beginning each time, over all that was swept before.
const SWEEP = {
  name: 'sweep_one_time_tokens',
  text: `
    WITH old AS (
      SELECT account_id, id FROM one_time_token
      WHERE expires_at < now() ORDER BY expires_at LIMIT ${MAX_TOKENS_SWEPT} FOR UPDATE SKIP LOCKED
    ), uses AS (
      DELETE FROM single_use u USING old WHERE u.account_id = old.account_id AND u.object_id = old.id
    )
    DELETE FROM one_time_token t USING old WHERE t.account_id = old.account_id AND t.id = old.id RETURNING 1`,
};

/** Adds a token that lives for `livesS` seconds. */
export async function insertToken(
  run: Run,
  token: StoredToken & { readonly accountId: string },
  livesS: number,
): Promise<TokenTimes> {
  const { accountId, id, sessionId = null, card, sealed } = token as Nullable<typeof token>;
  const values = [accountId, id, sessionId, card, sealed, livesS];
  return onlyRow(await run<TokenTimes>(INSERT, values));
}

/** Finds a token that is neither used nor expired. @param id a UUID. */
export async function findToken(
  database: Database,
  accountId: string,
  id: string,
): Promise<StoredToken | undefined> {
  return firstRow(await database.query<Nullable<StoredToken>>(GET, [accountId, id]));
}

/** Deletes up to MAX_TOKENS_SWEPT expired tokens. @returns the number deleted. */
export async function sweepTokens(database: Database): Promise<number> {
  return (await database.query(SWEEP)).rows.length;
}
