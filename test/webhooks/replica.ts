import { cardVault } from '#src/vault/card-vault.ts';
import { startWebhooks } from '#src/webhooks/start-webhooks.ts';
import { openTestDatabase } from '../support/database.ts';
import { QUICK, searchFor } from './webhook-world.ts';

// A replica's worker as a separate process, which tests kill: node replica.ts <database URL> <vault key>.
const [url = '', key = ''] = process.argv.slice(2);
const database = openTestDatabase(url, 4);
const worker = startWebhooks({
  database,
  vault: cardVault(new Map([['test-1', Buffer.from(key, 'base64')]])),
  observer: { delivered: () => {}, turnedOff: () => {}, failed: (error) => console.error(error) },
  settings: { ...QUICK, timeoutMs: 60_000, leaseS: 2 },
});
searchFor(worker, { database }, (error) => console.error(error));
