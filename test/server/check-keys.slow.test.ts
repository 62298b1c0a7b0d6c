import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Secret } from '#src/secret.ts';
import { checkKeys } from '#src/server/check-keys.ts';
import type { Database } from '#src/store/engine/database.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/database.ts';
import { openTables, type Tables } from '../support/tables.ts';

const HASH_KEY = randomBytes(32);
const [OLD, NEW] = [randomBytes(32), randomBytes(32)];

let test: TestDatabase;
let database: Database;
let tables: Tables;

beforeEach(async () => {
  test = await createTestDatabase();
  database = openTestDatabase(test.url, 4);
  tables = await openTables(test.url);
});
afterEach(async () => {
  await tables?.close();
  await database?.close();
  await test?.drop();
});

/** Starts a replica with these keys. */
const start = (vaultKeys: Readonly<Record<string, Uint8Array>>, hashKey: Uint8Array = HASH_KEY) =>
  checkKeys(database, { vaultKeys: new Map(Object.entries(vaultKeys)), hashKey });

const known = () => tables.query('SELECT name FROM installation_key ORDER BY name');

async function storeCard(keyId: string, key: Uint8Array): Promise<string> {
  const [account, token] = [randomUUID(), randomUUID()];
  await tables.query("INSERT INTO account (id, name) VALUES ($1, 'Keys')", [account]);
  const sealed = await cardVault(new Map([[keyId, key]])).seal(new Secret('4111111111111111'), token);
  await tables.query(
    "INSERT INTO vaulted_token (id, account_id, type, card, card_number, active) VALUES ($1, $2, 'CARD', '', $3, true)",
    [token, account, sealed],
  );
  return token;
}

it('several replicas can start at once, and restart, with the same keys', async () => {
  await Promise.all([1, 2, 3].map(() => start({ old: OLD })));
  await start({ old: OLD });
  expect(await known()).toEqual([{ name: 'hash key' }, { name: 'vault key old' }]);
});

it('the database stores neither the vault key nor the hash key', async () => {
  await start({ old: OLD });
  const [stored] = await tables.query("SELECT string_agg(check_value, '') AS bytes FROM installation_key");
  for (const key of [OLD, HASH_KEY]) expect(Buffer.from(stored?.bytes as Buffer).includes(key)).toBe(false);
});

it('the service does not start with another hash key, and the attempt leaves no trace', async () => {
  await start({ old: OLD });
  await expect(start({ new: NEW, old: OLD }, randomBytes(32))).rejects.toThrow(/^HASH_KEY .* is not the key/);
  expect(await known()).toEqual([{ name: 'hash key' }, { name: 'vault key old' }]);
  await start({ old: OLD });
});

it('the service does not start with a different key under a known ID', async () => {
  await start({ old: OLD });
  await expect(start({ old: NEW })).rejects.toThrow('VAULT_KEYS has a different key under the id "old"');
});

it('a key can be added next to an old one, and a retired key that no card needs is forgotten', async () => {
  await start({ old: OLD });
  await start({ new: NEW, old: OLD });
  await storeCard('new', NEW);
  await start({ new: NEW });
  expect(await known()).toEqual([{ name: 'hash key' }, { name: 'vault key new' }]);
  await start({ new: NEW, old: randomBytes(32) });
});

it.each(['o', 'ol', 'old', 'old-', 'old_2', 'another-id'])(
  'the service does not start without a vault key that stored cards need, whatever the key’s ID: %s',
  async (id) => {
    await start({ [id]: OLD, new: NEW });
    await storeCard(id, OLD);
    await storeCard(id, OLD);
    // These IDs have the same beginning, but their cards need another key.
    await storeCard(`${id}x`, NEW);
    await storeCard('new', NEW);
    const refusal = `VAULT_KEYS lacks the key "${id}", which 2 stored cards and secrets need.`;
    await expect(start({ new: NEW })).rejects.toThrow(refusal);
    await start({ new: NEW, [id]: OLD });
  },
);

it('the service does not start without a key that webhook secrets or credentials need', async () => {
  await start({ old: OLD, new: NEW });
  const [account, webhook] = [randomUUID(), randomUUID()];
  const sealed = async (id: string, key: Uint8Array) =>
    cardVault(new Map([[id, key]])).seal(new Secret('whsec'), webhook);
  await tables.query(
    `INSERT INTO webhook (account_id, id, url, description, events, secret, previous_secret, credentials)
     VALUES ($1, $2, 'https://example.com', '', '{}', $3, $4, $5)`,
    [account, webhook, await sealed('new', NEW), await sealed('old', OLD), await sealed('old', OLD)],
  );
  await expect(start({ new: NEW })).rejects.toThrow('lacks the key "old", which 2 stored cards and secrets');
  await expect(start({ old: OLD })).rejects.toThrow('lacks the key "new", which 1 stored cards and secrets');
  expect(await known()).toHaveLength(3);
});

it('the service starts without a key that only expired one-time tokens still need', async () => {
  await start({ new: NEW, old: OLD });
  const [account, token] = [randomUUID(), randomUUID()];
  await tables.query("INSERT INTO account (id, name) VALUES ($1, 'Keys')", [account]);
  const sealed = await cardVault(new Map([['old', OLD]])).seal(new Secret('4111111111111111'), token);
  await tables.query(
    "INSERT INTO one_time_token (account_id, id, card, fingerprint, sealed, expires_at) VALUES ($1, $2, '', $2, $3, now() + interval '1 h')",
    [account, token, sealed],
  );
  await expect(start({ new: NEW })).rejects.toThrow(/VAULT_KEYS lacks the key "old"/);
  await tables.query("UPDATE one_time_token SET expires_at = now() - interval '1 s'");
  await start({ new: NEW });
});
