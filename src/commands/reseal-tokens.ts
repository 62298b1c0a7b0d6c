import type { Database } from '#src/store/database.ts';
import { listSealedTokens, replaceSealedToken, type SealedToken } from '#src/store/one-time-tokens.ts';
import { BEFORE_ALL_TOKENS } from '#src/store/sealed-cards.ts';
import type { CardVault } from '#src/vault/card-vault.ts';
import { type Resealing, resealOne } from './reseal-cards.ts';

const BATCH_SIZE = 500;

/** Seals the cards of every one-time token under the vault's current key, as `resealCards` does with stored ones. */
export async function resealTokens(
  database: Database,
  vault: CardVault,
  onOne: () => void = () => {},
): Promise<Resealing> {
  const counts: Resealing = { resealed: 0, current: 0, changed: 0, unreadable: 0 };
  let last: Pick<SealedToken, 'accountId' | 'token'> = {
    accountId: BEFORE_ALL_TOKENS,
    token: BEFORE_ALL_TOKENS,
  };
  for (;;) {
    const tokens = await listSealedTokens(database, last, BATCH_SIZE);
    for (const token of tokens) {
      const replace = (resealed: string) => replaceSealedToken(database, token, resealed);
      counts[await resealOne(vault, token.sealed, token.token, replace)]++;
      onOne();
    }
    const end = tokens.at(-1);
    if (!end) return counts;
    last = end;
  }
}
