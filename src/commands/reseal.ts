import type { Database } from '#src/store/database.ts';
import { listSealedTokens, replaceSealedToken } from '#src/store/one-time-tokens.ts';
import { BEFORE_ALL_TOKENS, listSealedCards, replaceSealedCard } from '#src/store/sealed-cards.ts';
import { listSealedSecrets, replaceSealedSecret } from '#src/store/webhooks.ts';
import type { CardVault } from '#src/vault/card-vault.ts';

/** Counts of ciphertexts by result. */
export type Resealing = {
  /** Now under the current key. */
  resealed: number;
  /** Already under the current key. */
  current: number;
  /** Deleted, or resealed by another run, between reading and writing. */
  changed: number;
  /** Cannot be opened: the key is missing, or the ciphertext is damaged. These are left unchanged. */
  unreadable: number;
};

/** A stored ciphertext. */
type Sealed = {
  readonly sealed: string;
  /** Id to which it is bound. */
  readonly id: string;
  /** Replaces it by another. @returns false if it no longer exists. */
  replace(resealed: string): Promise<boolean>;
};

const BATCH_SIZE = 500;

/**
 * Seals everything stored under the vault's current key: cards, one-time tokens and webhook secrets (PCI DSS 3.7.4,
 * 3.7.5). It may run beside the service or another run: a ciphertext is replaced only if it is still the one that was
 * read. The next run completes one that was interrupted.
 *
 * @param onOne called after each ciphertext.
 */
export async function resealAll(
  database: Database,
  vault: CardVault,
  onOne: () => void = () => {},
): Promise<Resealing> {
  const counts: Resealing = { resealed: 0, current: 0, changed: 0, unreadable: 0 };
  for (const stored of [storedCards, storedTokens, storedSecrets]) {
    for await (const one of stored(database)) {
      counts[await reseal(vault, one)]++;
      onOne();
    }
  }
  return counts;
}

async function reseal(vault: CardVault, { sealed, id, replace }: Sealed): Promise<keyof Resealing> {
  let resealed: string | undefined;
  try {
    resealed = await vault.reseal(sealed, id);
  } catch {
    return 'unreadable';
  }
  if (resealed === undefined) return 'current';
  return (await replace(resealed)) ? 'resealed' : 'changed';
}

async function* storedCards(database: Database): AsyncGenerator<Sealed> {
  const first = { token: BEFORE_ALL_TOKENS };
  for await (const card of walk(first, ({ token }) => listSealedCards(database, token, BATCH_SIZE))) {
    const replace = (resealed: string) => replaceSealedCard(database, card, resealed);
    yield { sealed: card.sealed, id: card.token, replace };
  }
}

async function* storedTokens(database: Database): AsyncGenerator<Sealed> {
  const first = { accountId: BEFORE_ALL_TOKENS, token: BEFORE_ALL_TOKENS };
  for await (const token of walk(first, (last) => listSealedTokens(database, last, BATCH_SIZE))) {
    const replace = (resealed: string) => replaceSealedToken(database, token, resealed);
    yield { sealed: token.sealed, id: token.token, replace };
  }
}

async function* storedSecrets(database: Database): AsyncGenerator<Sealed> {
  const first = { id: BEFORE_ALL_TOKENS };
  for await (const webhook of walk(first, ({ id }) => listSealedSecrets(database, id, BATCH_SIZE))) {
    for (const sealed of webhook.secrets) {
      const replace = (resealed: string) => replaceSealedSecret(database, webhook, sealed, resealed);
      yield { sealed, id: webhook.id, replace };
    }
  }
}

/** Walks rows in the order of their keys, a batch at a time. @param list returns the rows after a key. */
async function* walk<Key, Row extends Key>(
  first: Key,
  list: (last: Key) => Promise<readonly Row[]>,
): AsyncGenerator<Row> {
  let last: Key | undefined = first;
  while (last !== undefined) {
    const rows: readonly Row[] = await list(last);
    yield* rows;
    last = rows.at(-1);
  }
}
