import { readConfig } from '#src/config.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { embeddedKeys } from '#src/vault/key-file.ts';
import { withDatabase } from './command-database.ts';
import { explainFailure } from './explain-failure.ts';
import { resealCards } from './reseal-cards.ts';
import { resealWebhookSecrets } from './reseal-webhook-secrets.ts';

/** `npm run vault:rotate`: seals every stored card number and webhook secret under the first of VAULT_KEYS, and prints counts only. */
async function main(): Promise<void> {
  const config = readConfig();
  const counts = await withDatabase(config, async ({ database, dataDir }) => {
    const keys = config.vaultKeys ?? embeddedKeys(dataDir ?? '').vaultKeys;
    const vault = cardVault(keys);
    const cards = await resealCards(database, vault);
    const secrets = await resealWebhookSecrets(database, vault);
    return {
      resealed: cards.resealed + secrets.resealed,
      current: cards.current + secrets.current,
      changed: cards.changed + secrets.changed,
      unreadable: cards.unreadable + secrets.unreadable,
    };
  });
  console.log(`resealed     ${counts.resealed}`);
  console.log(`were current ${counts.current}`);
  console.log(`changed      ${counts.changed}`);
  console.log(`unreadable   ${counts.unreadable}`);
  if (counts.unreadable > 0) {
    console.error(
      'Not done: these are under a key that VAULT_KEYS does not have, or damaged. Keep every old key.',
    );
    process.exitCode = 1;
  } else if (counts.resealed + counts.changed === 0) {
    console.log('Every stored card and webhook secret is under the current key: older keys may be retired.');
  } else {
    console.log('Run it again, with every replica on the new key first, until nothing is resealed.');
  }
}

try {
  await main();
} catch (error) {
  console.error(`Not done: ${explainFailure(error)}`);
  process.exitCode = 1;
}
