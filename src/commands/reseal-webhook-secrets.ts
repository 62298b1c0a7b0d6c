import type { Database } from '#src/store/database.ts';
import { BEFORE_ALL_TOKENS } from '#src/store/sealed-cards.ts';
import { listSealedSecrets, replaceSealedSecret } from '#src/store/webhooks.ts';
import type { CardVault } from '#src/vault/card-vault.ts';
import { type Resealing, resealOne } from './reseal-cards.ts';

const BATCH_SIZE = 500;

/** Seals every webhook's secrets under the vault's current key, as `resealCards` does with card numbers. */
export async function resealWebhookSecrets(
  database: Database,
  vault: CardVault,
  onOne: () => void = () => {},
): Promise<Resealing> {
  const counts: Resealing = { resealed: 0, current: 0, changed: 0, unreadable: 0 };
  let last = BEFORE_ALL_TOKENS;
  for (;;) {
    const webhooks = await listSealedSecrets(database, last, BATCH_SIZE);
    for (const webhook of webhooks) {
      for (const sealed of webhook.secrets) {
        const replace = (resealed: string) => replaceSealedSecret(database, webhook, sealed, resealed);
        counts[await resealOne(vault, sealed, webhook.id, replace)]++;
        onOne();
      }
    }
    const id = webhooks.at(-1)?.id;
    if (id === undefined) return counts;
    last = id;
  }
}
