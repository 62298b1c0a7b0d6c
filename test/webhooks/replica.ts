import { pino } from 'pino';
import { openDatabase } from '#src/store/database.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { startWebhooks } from '#src/webhooks/start-webhooks.ts';
import { QUICK } from './webhook-world.ts';

// A replica's worker in a process of its own, to be killed: node replica.ts <database URL> <vault key>.
const [url = '', key = ''] = process.argv.slice(2);
const database = openDatabase({ url, maxConnections: 4, log: pino({ level: 'silent' }) });
await startWebhooks({
  database,
  vault: cardVault(new Map([['test-1', Buffer.from(key, 'base64')]])),
  observer: { delivered: () => {}, turnedOff: () => {}, failed: (error) => console.error(error) },
  settings: { ...QUICK, timeoutMs: 60_000, leaseS: 2 },
});
