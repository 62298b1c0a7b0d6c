import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { ageOut } from '#src/server/age-out.ts';
import { openTestDatabase } from '../support/database.ts';
import { ONE } from './calls.ts';
import { cardData } from './checkout.ts';
import { call, onOwnServer, server, tables } from './own-server.ts';

onOwnServer();

it('the response kept for a repeated token call, which names the cardholder, is deleted after a day', async () => {
  const keys = [randomUUID(), randomUUID()];
  for (const key of keys)
    await call('POST', '/v1/tokens', { card_data: cardData() }, { ...ONE, 'x-idempotency-key': key });
  const calls = async () =>
    (
      await tables.query(
        'SELECT idempotency_key AS key FROM replayed_call WHERE idempotency_key = ANY ($1)',
        [keys],
      )
    ).map(({ key }) => key);
  await tables.query(
    "UPDATE replayed_call SET created_at = now() - interval '25 hours' WHERE idempotency_key = $1",
    [keys[0]],
  );
  const database = openTestDatabase(server.databaseUrl, 1);
  await ageOut(database);
  await database.close();
  expect(await calls()).toEqual([keys[1]]);
});
