import type { Database } from '#src/store/engine/database.ts';
import {
  listSealed,
  replaceSealed,
  SEALED_KINDS,
  type SealedKind,
  type SealedValue,
} from '#src/store/tables/sealed-values.ts';
import type { CardVault } from '#src/vault/card-vault.ts';

/** Counts of ciphertexts by result. */
export type Resealing = {
  /** Resealed with the current key in this run. */
  resealed: number;
  /** Already sealed with the current key. */
  current: number;
  /** Deleted or resealed by another run between reading and writing. */
  changed: number;
  /** Left unchanged because they cannot be opened: the key is missing, or the ciphertext is damaged. */
  unreadable: number;
};

const BATCH_SIZE = 500;

/**
 * Reseals all stored cards, one-time tokens, webhook secrets and connections' secrets with the vault's current key (PCI
 * DSS 3.7.4, 3.7.5). This is safe while the service or another run is active: a ciphertext is replaced only if it has not changed since it
 * was read. After an interruption, the next run completes the work.
 *
 * @param onOne called after each ciphertext.
 */
export async function resealAll(
  database: Database,
  vault: CardVault,
  onOne: () => void = () => {},
): Promise<Resealing> {
  const counts: Resealing = { resealed: 0, current: 0, changed: 0, unreadable: 0 };
  for (const kind of SEALED_KINDS) {
    for await (const value of walk(database, kind)) {
      counts[await reseal(database, vault, kind, value)]++;
      onOne();
    }
  }
  return counts;
}

async function reseal(
  database: Database,
  vault: CardVault,
  kind: SealedKind,
  value: SealedValue,
): Promise<keyof Resealing> {
  let resealed: string | undefined;
  try {
    resealed = await vault.reseal(value.sealed, value.boundTo);
  } catch {
    return 'unreadable';
  }
  if (resealed === undefined) return 'current';
  return (await replaceSealed(database, kind, value, resealed)) ? 'resealed' : 'changed';
}

/** Reads all ciphertexts of one kind, in key order and in batches. */
async function* walk(database: Database, kind: SealedKind): AsyncGenerator<SealedValue> {
  let last: SealedValue | undefined;
  do {
    const batch = await listSealed(database, kind, BATCH_SIZE, last);
    yield* batch;
    last = batch.at(-1);
  } while (last !== undefined);
}
