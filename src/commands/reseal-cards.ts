import type { Database } from '#src/store/database.ts';
import { BEFORE_ALL_TOKENS, listSealedCards, replaceSealedCard } from '#src/store/sealed-cards.ts';
import type { CardVault } from '#src/vault/card-vault.ts';

/** Counts of stored card numbers by what became of them. */
export type Resealing = {
  /** Now under the current key. */
  resealed: number;
  /** Were under it before. */
  current: number;
  /** Dropped, or resealed by somebody else, between reading and writing. */
  changed: number;
  /** Cannot be opened: the key is not there, or the ciphertext is damaged. These stay as they are. */
  unreadable: number;
};

const BATCH_SIZE = 500;

/**
 * Seals every stored card number under the vault's current key (PCI DSS 3.7.4, 3.7.5). Beside a running service, or
 * another such run, it does no harm: a ciphertext is replaced only while it is still the one that was read. A run that
 * was cut short is completed by the next.
 *
 * @param onOne is called after each.
 */
export async function resealCards(
  database: Database,
  vault: CardVault,
  onOne: () => void = () => {},
): Promise<Resealing> {
  const counts: Resealing = { resealed: 0, current: 0, changed: 0, unreadable: 0 };
  let last = BEFORE_ALL_TOKENS;
  for (;;) {
    const cards = await listSealedCards(database, last, BATCH_SIZE);
    for (const card of cards) {
      const replace = (resealed: string) => replaceSealedCard(database, card, resealed);
      counts[await resealOne(vault, card.sealed, card.token, replace)]++;
      onOne();
    }
    const token = cards.at(-1)?.token;
    if (token === undefined) return counts;
    last = token;
  }
}

/**
 * Seals one ciphertext under the vault's current key.
 *
 * @param id what it is bound to.
 * @param replace puts the new ciphertext in its place; false when it is not there any more.
 */
export async function resealOne(
  vault: CardVault,
  sealed: string,
  id: string,
  replace: (resealed: string) => Promise<boolean>,
): Promise<keyof Resealing> {
  let resealed: string | undefined;
  try {
    resealed = await vault.reseal(sealed, id);
  } catch {
    return 'unreadable';
  }
  if (resealed === undefined) return 'current';
  return (await replace(resealed)) ? 'resealed' : 'changed';
}
