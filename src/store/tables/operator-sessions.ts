import type { Database } from '../engine/database.ts';

/** The session of a signed-in operator. */
export type StoredSession = {
  readonly actor: string;
  /** SHA-256 of the operator key. */
  readonly keyHash: Uint8Array;
};

const INSERT = {
  name: 'insert_operator_session',
  text: `
    WITH replaced AS (DELETE FROM operator_session WHERE token_hash = $4)
    INSERT INTO operator_session (token_hash, actor, key_hash) VALUES ($1, $2, $3)`,
};

/** Limits of a session, in seconds: without opening a page, and in total. */
export type SessionTerms = { readonly idleS: number; readonly wholeS: number };

/**
 * Begins a session.
 *
 * @param replaced SHA-256 of the token of the session that this one replaces, if any.
 */
export async function insertOperatorSession(
  database: Database,
  session: StoredSession & { readonly tokenHash: Uint8Array },
  replaced: Uint8Array | undefined,
): Promise<void> {
  const { tokenHash, actor, keyHash } = session;
  await database.query(INSERT, [tokenHash, actor, keyHash, replaced ?? null]);
}

const FIND = {
  name: 'find_operator_session',
  text: `
    SELECT actor, key_hash, seen_at < now() - interval '1 minute' AS stale FROM operator_session
    WHERE token_hash = $1 AND seen_at > now() - make_interval(secs => $2)
      AND created_at > now() - make_interval(secs => $3)`,
};
const TOUCH = {
  name: 'touch_operator_session',
  text: 'UPDATE operator_session SET seen_at = now() WHERE token_hash = $1',
};

/**
 * Finds a session that has not expired.
 *
 * @param touch extends the session, since the operator is active; false for requests that a page makes by itself.
 */
export async function findOperatorSession(
  database: Database,
  tokenHash: Uint8Array,
  { idleS, wholeS }: SessionTerms,
  touch: boolean,
): Promise<StoredSession | undefined> {
  type Row = { actor: string; key_hash: Buffer; stale: boolean };
  const { rows } = await database.query<Row>(FIND, [tokenHash, idleS, wholeS]);
  const row = rows[0];
  if (row?.stale && touch) await database.query(TOUCH, [tokenHash]);
  return row && { actor: row.actor, keyHash: row.key_hash };
}

const DELETE = {
  name: 'delete_operator_session',
  text: 'DELETE FROM operator_session WHERE token_hash = $1',
};

/** Ends a session. */
export async function deleteOperatorSession(database: Database, tokenHash: Uint8Array): Promise<void> {
  await database.query(DELETE, [tokenHash]);
}
