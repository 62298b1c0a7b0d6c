import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import { expect, it } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { startService } from '../support/service-process.ts';
import { openTables } from '../support/tables.ts';

const PATH = '/v1/exports/movements.csv?month=2026-09';
const KEY = randomBytes(32).toString('base64');
const OPERATOR = { 'operator-key': KEY };

/** Starts the service with movements that take seconds to export. */
async function startWithMovements() {
  const database = await createTestDatabase();
  const service = await startService({
    ...{ DATABASE_URL: database.url, ALLOW_UNSAFE_DATABASE: 'on', OPERATOR_KEYS: KEY },
    ...{
      HASH_KEY: randomBytes(32).toString('base64'),
      VAULT_KEYS: `one:${randomBytes(32).toString('base64')}`,
    },
  });
  const tables = await openTables(database.url);
  await tables.query("INSERT INTO account (id, name) VALUES ($1, 'One') ON CONFLICT DO NOTHING", [
    ACCOUNT_ONE,
  ]);
  await tables.query(
    `WITH p AS (
       INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record)
       SELECT gen_random_uuid(), $1, 'key-' || n, '', '', 'SUCCEEDED', '' FROM generate_series(1, 60000) n RETURNING id)
     INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units,
       currency, capture, succeeded_at)
     SELECT gen_random_uuid(), id, $1, 'a', 'a', 'SUCCEEDED', 100, 'USD', true, '2026-09-15T12:00:00Z' FROM p`,
    [ACCOUNT_ONE],
  );
  await tables.query('VACUUM (ANALYZE) payment, transaction');
  await tables.close();
  return { service, database };
}

it('a file whose server is killed half-way is seen as broken, over HTTP/1.1 and HTTP/2', async () => {
  const { service, database } = await startWithMovements();
  const request = http.get(service.url + PATH, { headers: OPERATOR, agent: false });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  expect(response.statusCode).toBe(200);
  const session = http2.connect(service.url);
  session.on('error', () => {});
  const stream = session.request({ ':path': PATH, ...OPERATOR });
  const closed = [response, stream].map((one) => {
    one.on('error', () => {});
    return new Promise((resolve) => one.once('close', resolve));
  });
  await Promise.all([response, stream].map((one) => new Promise((resolve) => one.on('data', resolve))));
  service.child.kill('SIGKILL');
  await Promise.all(closed);
  expect(response.complete).toBe(false);
  expect(response.errored).toMatchObject({ code: 'ECONNRESET' });
  expect(stream.rstCode).not.toBe(http2.constants.NGHTTP2_NO_ERROR);
  session.destroy();
  await service.ended;
  await database.drop();
});

it('a server that is told to stop sends the rest of a file that takes seconds, and stops', async () => {
  const { service, database } = await startWithMovements();
  const request = http.get(service.url + PATH, { headers: OPERATOR, agent: false });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  expect(response.statusCode).toBe(200);
  await once(response, 'readable');
  service.child.kill('SIGTERM');
  response.resume();
  await once(response, 'end');
  expect(response.complete).toBe(true);
  expect((await service.ended).code).toBe(0);
  await database.drop();
});
