import { cpSync, globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { openDatabase } from '#src/store/database.ts';
import { migrate } from '#src/store/migrate.ts';
import { storeResponseSchema } from '#src/store/response-schemas.ts';
import { createTestDatabase } from '../support/database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

const DESCRIPTORS = Buffer.from('descriptors');
/** The last migration of the release before. */
const BEFORE = '0028_full_pages.sql';

it.each([
  { used: true, title: 'is not stored where the release before was used, as its replicas do not know it' },
  { used: false, title: 'is stored where the database was empty' },
])("a release's schema $title", async ({ used }) => {
  const test = await createTestDatabase({ empty: true });
  const database = openDatabase({ url: test.url, maxConnections: 2, log: pino({ level: 'silent' }) });
  const directory = mkdtempSync(join(tmpdir(), 'migrations-'));
  try {
    for (const file of globSync('src/store/migrations/*.sql')) {
      if (basename(file) <= BEFORE) cpSync(file, join(directory, basename(file)));
    }
    await migrate(database, directory);
    if (used) {
      const text = "INSERT INTO account (id, name) VALUES ($1, 'Used')";
      await database.query({ name: 'use', text }, [ACCOUNT_ONE]);
    }
    await migrate(database, 'src/store/migrations');
    const digest = await storeResponseSchema(database, DESCRIPTORS);
    if (used) expect(digest).toBeUndefined();
    else expect(digest).toHaveLength(8);
  } finally {
    rmSync(directory, { recursive: true });
    await database.close();
    await test.drop();
  }
});
