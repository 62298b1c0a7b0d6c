import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Database, queriesOf } from '#src/store/engine/database.ts';
import { listActions, recordAction } from '#src/store/tables/audit-log.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/database.ts';

const ACCOUNT = '11111111-1111-4111-8111-111111111111';
const OTHER = '22222222-2222-4222-8222-222222222222';

let testDatabase: TestDatabase;
let database: Database;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openTestDatabase(testDatabase.url, 2);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

it('the audit log lists an account’s own actions, newest first, page by page', async () => {
  await recordAction(database, { accountId: OTHER, actor: 'mallory@host', action: 'other' });
  for (const detail of ['first', 'second', 'third']) {
    await recordAction(database, { accountId: ACCOUNT, actor: 'alice@host', action: 'refund', detail });
    // Ids of the same millisecond have no order, so the next id must come later.
    await database.query({ name: 'pause', text: 'SELECT pg_sleep(0.002)' });
  }
  const page = await listActions(database, ACCOUNT, { limit: 2 });
  expect(page.map(({ detail }) => detail)).toEqual(['third', 'second']);
  const rest = await listActions(database, ACCOUNT, { beforeId: page[1]?.id ?? '', limit: 2 });
  expect(rest).toEqual([
    {
      accountId: ACCOUNT,
      id: expect.stringMatching(/^[0-9a-f-]{14}7/),
      actor: 'alice@host',
      action: 'refund',
      subject: '',
      detail: 'first',
      at: expect.any(Date),
    },
  ]);
});

it('an action is not in the audit log if its transaction was rolled back', async () => {
  const failing = database.transaction(async (run) => {
    await recordAction(queriesOf(run), { accountId: OTHER, actor: 'alice@host', action: 'lost' });
    throw new Error('the change failed');
  });
  await expect(failing).rejects.toThrow('the change failed');
  const actions = (await listActions(database, OTHER, { limit: 10 })).map(({ action }) => action);
  expect(actions).toEqual(['other']);
});
