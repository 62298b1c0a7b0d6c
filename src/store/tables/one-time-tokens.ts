import type { Database, Nullable, Run } from '../engine/database.ts';
import { firstRow, onlyRow } from '../engine/rows.ts';

/** A one-time token that a payment may use. */
export type StoredToken = {
  readonly id: string;
  /** The only checkout session whose payment may use the token; undefined if any payment of the account may. */
  readonly sessionId: string | undefined;
  /** An encoded CardData: the displayable data of the card. */
  readonly card: Uint8Array;
  /** Keyed hash of the card number. */
  readonly fingerprint: string;
  /** The encoded part of a CreatePaymentRequest that states the payer's choices; empty if there are none. */
  readonly choices: Uint8Array;
  /** Number and security code as a JWE bound to `id`. */
  readonly sealed: string;
};

/** Creation and expiry of a token. */
export type TokenTimes = { readonly createdAt: Date; readonly expiresAt: Date };

const INSERT = `
  INSERT INTO one_time_token (account_id, id, session_id, card, fingerprint, choices, sealed, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, now() + make_interval(secs => $8))
  RETURNING created_at AS "createdAt", expires_at AS "expiresAt"`;
const GET = {
  name: 'get_one_time_token',
  text: `
    SELECT id, session_id AS "sessionId", card, fingerprint, choices, sealed FROM one_time_token
    WHERE account_id = $1 AND id = $2 AND sealed IS NOT NULL AND expires_at > now()`,
};

/** Adds a token that expires after `livesS` seconds. */
export async function insertToken(
  run: Run,
  token: StoredToken & { readonly accountId: string },
  livesS: number,
): Promise<TokenTimes> {
  const { accountId, id, sessionId, card, fingerprint, choices, sealed } = token;
  const values = [accountId, id, sessionId ?? null, card, fingerprint, choices, sealed, livesS];
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
