import type { Database } from './database.ts';
import { NIL_UUID } from './rows.ts';

/** A stored, sealed card number, with the token to which it is bound. */
export type SealedCard = { readonly token: string; readonly sealed: string };

/** Id before those of all tokens. */
export const BEFORE_ALL_TOKENS = NIL_UUID;

const LIST = {
  name: 'list_sealed_cards',
  text: `
    SELECT id AS token, card_number AS sealed FROM vaulted_token
    WHERE id > $1::uuid AND card_number IS NOT NULL ORDER BY id LIMIT $2`,
};
const REPLACE = {
  name: 'replace_sealed_card',
  text: 'UPDATE vaulted_token SET card_number = $3 WHERE id = $1 AND card_number = $2 RETURNING id',
};

/** Lists up to `limit` sealed card numbers in the order of their tokens, from after `afterToken`. */
export async function listSealedCards(
  database: Database,
  afterToken: string,
  limit: number,
): Promise<SealedCard[]> {
  return (await database.query<SealedCard>(LIST, [afterToken, limit])).rows;
}

/** Replaces a ciphertext. @returns false if it is no longer there. */
export async function replaceSealedCard(
  database: Database,
  { token, sealed }: SealedCard,
  resealed: string,
): Promise<boolean> {
  return (await database.query(REPLACE, [token, sealed, resealed])).rows.length === 1;
}
