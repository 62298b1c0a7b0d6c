import type { Database, Statement } from '../engine/database.ts';
import { NIL_UUID } from '../engine/rows.ts';

/** A stored ciphertext. */
export type SealedValue = {
  readonly accountId: string;
  readonly id: string;
  readonly sealed: string;
  /** The text that the ciphertext is bound to. */
  readonly boundTo: string;
};

const BEFORE_ALL: SealedValue = { accountId: NIL_UUID, id: NIL_UUID, sealed: '', boundTo: '' };

const listOf = (table: string, column: string, condition = '') => `
  SELECT account_id AS "accountId", id, ${column} AS sealed, id::text AS "boundTo" FROM ${table}
  WHERE (account_id, id) > ($1::uuid, $2::uuid) AND ${column} IS NOT NULL ${condition}
  ORDER BY account_id, id LIMIT $3`;
const LISTS = {
  cards: { name: 'list_sealed_cards', text: listOf('vaulted_token', 'card_number') },
  tokens: { name: 'list_sealed_tokens', text: listOf('one_time_token', 'sealed', 'AND expires_at > now()') },
  // A secret that is rotated during the listing becomes the previous secret, which is listed later.
  secrets: { name: 'list_sealed_secrets', text: listOf('webhook', 'secret') },
  previousSecrets: { name: 'list_sealed_previous_secrets', text: listOf('webhook', 'previous_secret') },
  credentials: { name: 'list_sealed_credentials', text: listOf('webhook', 'credentials') },
  // They belong to no account. A value that is replaced during the listing keeps its id.
  connectionSecrets: {
    name: 'list_sealed_connection_secrets',
    text: `
      SELECT $1::uuid AS "accountId", id, sealed, connection_id || ' ' || name AS "boundTo" FROM connection_secret
      WHERE id > $2::uuid ORDER BY id LIMIT $3`,
  },
};

const replacementIn = (table: string, column: string) =>
  `UPDATE ${table} SET ${column} = $4 WHERE account_id = $1 AND id = $2 AND ${column} = $3`;
const REPLACEMENTS: Readonly<Record<SealedKind, Statement>> = {
  cards: { name: 'replace_sealed_card', text: replacementIn('vaulted_token', 'card_number') },
  tokens: { name: 'replace_sealed_token', text: replacementIn('one_time_token', 'sealed') },
  secrets: { name: 'replace_sealed_secret', text: replacementIn('webhook', 'secret') },
  previousSecrets: {
    name: 'replace_sealed_previous_secret',
    text: replacementIn('webhook', 'previous_secret'),
  },
  credentials: { name: 'replace_sealed_credentials', text: replacementIn('webhook', 'credentials') },
  connectionSecrets: {
    name: 'replace_sealed_connection_secret',
    text: 'UPDATE connection_secret SET sealed = $4 WHERE $1::uuid IS NOT NULL AND id = $2 AND sealed = $3',
  },
};

/**
 * A kind of ciphertext: stored card numbers, usable one-time tokens, webhook secrets and credentials, or secrets of
 * connections.
 */
export type SealedKind = keyof typeof LISTS;

/** All kinds, in the order in which they must be listed. */
export const SEALED_KINDS = Object.keys(LISTS) as SealedKind[];

/** Lists up to `limit` ciphertexts after a given one, in the order of their keys. */
export async function listSealed(
  database: Database,
  kind: SealedKind,
  limit: number,
  { accountId, id }: Pick<SealedValue, 'accountId' | 'id'> = BEFORE_ALL,
): Promise<SealedValue[]> {
  return (await database.query<SealedValue>(LISTS[kind], [accountId, id, limit])).rows;
}

/** Replaces a ciphertext. @returns false if it no longer exists. */
export async function replaceSealed(
  database: Database,
  kind: SealedKind,
  { accountId, id, sealed }: Omit<SealedValue, 'boundTo'>,
  resealed: string,
): Promise<boolean> {
  return (await database.query(REPLACEMENTS[kind], [accountId, id, sealed, resealed])).rowCount === 1;
}
