import { randomBytes, randomUUID } from 'node:crypto';
import { decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { resealAll } from '#src/commands/reseal.ts';
import { run } from '#src/commands/rotate-vault.ts';
import { Secret } from '#src/secret.ts';
import { checkKeys } from '#src/server/check-keys.ts';
import type { Database } from '#src/store/engine/database.ts';
import { INSTALLATION, listActions } from '#src/store/tables/audit-log.ts';
import { type CardVault, cardVault } from '#src/vault/card-vault.ts';
import { apiClients, type Reply } from '../support/api-clients.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/database.ts';
import {
  cardPayment,
  headersOne,
  type RequestJson,
  VAULTED_CARD,
  withField,
} from '../support/payment-requests.ts';
import { type Ran, runCommand } from '../support/run-command.ts';
import { startTestServer } from '../support/server.ts';
import { openTables, type Tables } from '../support/tables.ts';

const OLD = ['2025', randomBytes(32)] as const;
const NEW = ['2026', randomBytes(32)] as const;
const HASH_KEY = randomBytes(32);
const CARD_NUMBER = '4539578763621486';

let testDatabase: TestDatabase;
let database: Database;
let tables: Tables;
/** Stored under the old key while it was the only one. */
let oldToken: string;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openTestDatabase(testDatabase.url, 4);
  tables = await openTables(testDatabase.url);
  oldToken = await withService([OLD], storeCard);
});

afterAll(async () => {
  await tables?.close();
  await database?.close();
  await testDatabase?.drop();
});

type CardPayment = { payment_method: { detail: { card: { card_data: object } } } };
type Pay = (request: RequestJson, idempotencyKey?: string) => Promise<Reply>;

/** Runs `work` with a service started on the same database with these keys, then stops the service. */
async function withService<T>(
  keys: (readonly [string, Buffer])[],
  work: (pay: Pay, logLines: readonly string[], url: string) => Promise<T>,
): Promise<T> {
  const server = await startTestServer({
    databaseUrl: testDatabase.url,
    keys: { vaultKeys: new Map(keys), hashKey: HASH_KEY },
  });
  const clients = apiClients(server.url);
  try {
    return await work(
      (request, key = randomUUID()) => clients.create('rest', request, headersOne(key)),
      server.logLines,
      server.url,
    );
  } finally {
    clients.close();
    await server.close();
  }
}

async function storeCard(pay: Pay): Promise<string> {
  const reply = await pay(withField(cardPayment(CARD_NUMBER), 'payment_method.vault_on_success', true));
  const { payment_method } = JSON.parse(reply.record);
  expect(payment_method.vaulted_token).not.toBe('');
  return payment_method.vaulted_token;
}

function withToken(token: string): RequestJson {
  const request = withField(cardPayment(), 'payment_method.detail', undefined);
  return withField(request, 'payment_method.vaulted_token', token);
}

async function keyIdOf(token: string): Promise<unknown> {
  const [row] = await tables.query('SELECT card_number FROM vaulted_token WHERE id = $1', [token]);
  return decodeProtectedHeader(String(row?.card_number)).kid;
}

const expectPaid = (reply: Reply) => expect(JSON.parse(reply.record).status).toBe('SUCCEEDED');

describe('adding a key', () => {
  it('a new first key seals new cards, and older tokens stay readable', async () => {
    await withService([NEW, OLD], async (pay) => {
      expectPaid(await pay(withToken(oldToken)));
      const newToken = await storeCard(pay);
      expect(await keyIdOf(oldToken)).toBe('2025');
      expect(await keyIdOf(newToken)).toBe('2026');
      expectPaid(await pay(withToken(newToken)));
    });
  });
});

describe('removing a key too early', () => {
  it('a payment that needs a missing key is refused with 503 and logged before anything is sent', async () => {
    await withService([NEW], async (pay, logLines) => {
      const before = await tables.counts();
      const reply = await pay(withToken(oldToken), 'early');
      expect(reply).toMatchObject({ status: 503, reason: 'SERVICE_UNAVAILABLE', record: '' });
      expect(reply.raw).toContain('nothing was sent');
      expect(await tables.counts()).toEqual(before);
      expect(logLines.filter((line) => line.includes('VaultKeyMissingError'))).toHaveLength(1);
      // Payments with card data need no stored key.
      expectPaid(await pay(cardPayment()));
    });
  });

  it('the idempotency key of a refused payment stays unused until the vault key is back', async () => {
    await withService([NEW, OLD], async (pay) => expectPaid(await pay(withToken(oldToken), 'early')));
  });
});

describe('npm run vault:rotate', () => {
  const oldVault = cardVault(new Map([OLD]));
  const vault = cardVault(new Map([NEW, OLD]));

  it('vault:rotate keeps cards that it cannot open, counts them, and fails', async () => {
    const sealed = await tables.query('SELECT id, card_number FROM vaulted_token ORDER BY id');
    const failed = await rotate([NEW]);
    expect(failed).toMatchObject({ code: 1 });
    expect(failed.stdout).toMatch(/^unreadable +2$/m);
    expect(await tables.query('SELECT id, card_number FROM vaulted_token ORDER BY id')).toEqual(sealed);
  });

  it('vault:rotate with --help or an unknown option prints its usage and rotates nothing', async () => {
    const tried = await rotate([OLD], HASH_KEY, '--dry-run');
    expect(tried).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Usage:') });
    const asked = await rotate([OLD], HASH_KEY, '--help');
    expect(asked).toMatchObject({ code: 0, stdout: expect.stringContaining('Usage:') });
    expect(asked.stdout).not.toContain('resealed');
  });

  it('vault:rotate does nothing with keys that the service would not start with', async () => {
    const sealed = await tables.query('SELECT id, card_number FROM vaulted_token ORDER BY id');
    await tables.query("DELETE FROM installation_key WHERE name LIKE 'vault key %'");
    await checkKeys(database, { vaultKeys: new Map([OLD]), hashKey: HASH_KEY });
    const refusals: [() => Promise<unknown>, string][] = [
      [() => rotate([NEW, OLD], randomBytes(32)), 'HASH_KEY'],
      [() => rotate([NEW, ['2025', randomBytes(32)]]), 'VAULT_KEYS has a different key under the id "2025"'],
      [() => rotate([NEW]), 'VAULT_KEYS lacks the key "2025"'],
    ];
    for (const [rotation, message] of refusals) {
      expect(await rotation()).toMatchObject({ code: 1, stderr: expect.stringContaining(message) });
    }
    expect(await tables.query('SELECT id, card_number FROM vaulted_token ORDER BY id')).toEqual(sealed);
  });

  it('vault:rotate does not overwrite a card that was replaced or deleted meanwhile', async () => {
    const racing: CardVault = {
      ...vault,
      async reseal(sealed, token) {
        const other = await vault.reseal(sealed, token);
        if (other && token === oldToken) {
          const changed = sealed.replace(/.$/, '!');
          await tables.query('UPDATE vaulted_token SET card_number = $2 WHERE id = $1', [oldToken, changed]);
        }
        return other;
      },
    };
    const counts = await resealAll(database, racing);
    expect(counts).toMatchObject({ changed: 1, unreadable: 0 });
    const [row] = await tables.query('SELECT card_number FROM vaulted_token WHERE id = $1', [oldToken]);
    expect(String(row?.card_number)).toMatch(/!$/);
    const again = await oldVault.seal(new Secret(CARD_NUMBER), oldToken);
    await tables.query('UPDATE vaulted_token SET card_number = $2 WHERE id = $1', [oldToken, again]);
  });

  it('vault:rotate seals every card under the current key in batches, and prints only counts', async () => {
    // More than two batches, including wallets, which have nothing sealed.
    for (let i = 0; i < 1_100; i++) {
      const token = randomUUID();
      await tables.query(
        `INSERT INTO vaulted_token (id, account_id, type, card, card_number, active)
         SELECT $1, account_id, type, card, $2, active FROM vaulted_token WHERE id = $3`,
        [token, await oldVault.seal(new Secret(CARD_NUMBER), token), VAULTED_CARD],
      );
    }
    const { stdout, stderr } = await rotate([NEW, OLD]);
    expect(stdout).toMatch(/^resealed +1101$/m);
    expect(stdout + stderr).not.toMatch(/\d{5,}/);
    const left = await tables.query('SELECT card_number FROM vaulted_token WHERE card_number IS NOT NULL');
    expect(new Set(left.map(({ card_number }) => decodeProtectedHeader(String(card_number)).kid))).toEqual(
      new Set(['2026']),
    );
    expect((await rotate([NEW])).stdout).toContain('You may retire older keys');
    const told = (await listActions(database, INSTALLATION, { limit: 4 })).map(({ detail }) => detail);
    expect(told).toEqual([
      'resealed 0 current 1103 changed 0 unreadable 0',
      'begun',
      'resealed 1101 current 2 changed 0 unreadable 0',
      'begun',
    ]);
  });

  it('vault:rotate also seals one-time tokens, so the old key may be retired while they are valid', async () => {
    const pay = async (keys: (readonly [string, Buffer])[], token: string) =>
      withService(keys, async (send) => {
        const request = withField(cardPayment(), 'payment_method', { token });
        expectPaid(await send(request));
      });
    const token = await withService([OLD, NEW], async (_pay, _lines, url) => {
      const { card_data } = (cardPayment(CARD_NUMBER) as CardPayment).payment_method.detail.card;
      const response = await fetch(`${url}/v1/tokens`, {
        method: 'POST',
        headers: { ...headersOne(), 'content-type': 'application/json' },
        body: JSON.stringify({ card_data }),
      });
      return String(((await response.json()) as { token: string }).token);
    });
    const kid = async () => {
      const [row] = await tables.query('SELECT sealed FROM one_time_token WHERE id = $1', [token]);
      return decodeProtectedHeader(String(row?.sealed)).kid;
    };
    expect(await kid()).toBe('2025');
    expect((await rotate([NEW, OLD])).stdout).toMatch(/^resealed +1$/m);
    expect(await kid()).toBe('2026');
    await pay([NEW], token);
  });

  it('every token is usable without the old key after vault:rotate', async () => {
    await withService([NEW], async (pay) => {
      expectPaid(await pay(withToken(oldToken)));
      expectPaid(await pay(withToken(VAULTED_CARD)));
    });
  });
});

function rotate(keys: (readonly [string, Buffer])[], hashKey = HASH_KEY, ...args: string[]): Promise<Ran> {
  const environment = {
    DATABASE_URL: testDatabase.url,
    VAULT_KEYS: keys.map(([id, key]) => `${id}:${key.toString('base64')}`).join(),
    HASH_KEY: hashKey.toString('base64'),
  };
  return runCommand(run, environment, ...args);
}
