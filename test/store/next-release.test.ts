import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { compareSchema, MIGRATIONS, migrate } from '#src/store/engine/migrate.ts';
import { openTestDatabase } from '../support/database.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { cardPayment, headersOne } from '../support/payment-requests.ts';

onService();

const directory = mkdtempSync(join(tmpdir(), 'next-release-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** Makes a payment and refunds part of it. @returns the statuses of both responses. */
async function payAndRefund(i: number): Promise<number[]> {
  const post = (path: string, key: string, body: unknown) =>
    fetch(`${server.url}${path}`, {
      method: 'POST',
      headers: { ...headersOne(key), 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const paid = await post('/v1/payments', `next-${i}`, cardPayment());
  const { id } = (await paid.json()) as { id: string };
  const amount = { currency: 'USD', value: 1 };
  const refunded = await post(`/v1/payments/${id}/refund`, `refund-${i}`, { amount });
  await refunded.arrayBuffer();
  return [paid.status, refunded.status];
}

it('this release serves payments while the next release’s migrations run, and can start after them', async () => {
  cpSync(MIGRATIONS, directory, { recursive: true });
  const count = readdirSync(directory).length;
  const [next = '', nextButOne = ''] = [1, 2].map((n) => String(count + n).padStart(4, '0'));
  const added = [`${next}_next_release.sql`, `${nextButOne}_next_index.sql`];
  writeFileSync(
    join(directory, `${next}_next_release.sql`),
    `ALTER TABLE payment ADD COLUMN made_up text;
     CREATE TABLE made_up (account_id uuid NOT NULL, id uuid NOT NULL, PRIMARY KEY (account_id, id));`,
  );
  writeFileSync(
    join(directory, `${nextButOne}_next_index.sql`),
    `-- migrate: concurrently
     CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_made_up ON payment (account_id, made_up);`,
  );
  const database = openTestDatabase(server.databaseUrl, 2);
  let isMigrated = false;
  const statuses: number[][] = [];
  const payers = Array.from({ length: 4 }, async (_, lane) => {
    for (let i = 0; !isMigrated || i < 5; i++) statuses.push(await payAndRefund(lane * 10_000 + i));
  });
  expect(await migrate(database, directory)).toEqual(added);
  isMigrated = true;
  await Promise.all(payers);
  expect(statuses.length).toBeGreaterThanOrEqual(20);
  expect(new Set(statuses.map(String))).toEqual(new Set(['201,200']));
  expect(await migrate(database, MIGRATIONS)).toEqual([]);
  expect(await compareSchema(database, MIGRATIONS)).toEqual({
    pending: [],
    later: added,
  });
  const valid = 'SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = $1::regclass';
  expect(await tables.query(valid, ['payment_by_made_up'])).toEqual([{ valid: true }]);
  await database.close();
});
