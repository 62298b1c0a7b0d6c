import { NIL_UUID } from './account-rows.ts';
import type { Database } from './database.ts';

/** A stored card number as it is sealed, with the token that it is bound to. */
export type SealedCard = { readonly token: string; readonly sealed: string };

/** Comes before every token. */
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

/** Up to `limit` stored card numbers in the order of their tokens, those after `afterToken`. */
export async function listSealedCards(
  database: Database,
  afterToken: string,
  limit: number,
): Promise<SealedCard[]> {
  return (await database.query<SealedCard>(LIST, [afterToken, limit])).rows;
}

/** Replaces a ciphertext. @returns false when it is not there any more. */
export async function replaceSealedCard(
  database: Database,
  { token, sealed }: SealedCard,
  resealed: string,
): Promise<boolean> {
  return (await database.query(REPLACE, [token, sealed, resealed])).rows.length === 1;
}
