import { expect, it, vi } from 'vitest';
import { server, tables } from '../support/on-service.ts';
import { startProgram } from '../support/service-process.ts';
import { age, namings, onAgedPayments, PERSON, pay, personal, retention } from './aged-payments.ts';

onAgedPayments();

it('a retention run that is killed leaves each payment either whole or erased, and the next run finishes', async () => {
  const paid = await pay(personal());
  // Copies with new ids, which the database makes faster than the service could.
  await tables.query(
    `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, response, merchant_order_id, card_last_four)
     SELECT gen_random_uuid(), account_id, 'copy ' || n, request_hash, request_shape, status, record, response, merchant_order_id, card_last_four
     FROM payment, generate_series(1, 1500) AS n WHERE id = $1`,
    [paid.payment.id],
  );
  await age(40);
  const erased = async () =>
    Number(
      (await tables.query('SELECT count(*) AS n FROM payment WHERE personal_data_erased_at IS NOT NULL'))[0]
        ?.n,
    );
  const url = new URL(server.databaseUrl);
  url.searchParams.set('application_name', 'killed');
  const connected = () => tables.query("SELECT FROM pg_stat_activity WHERE application_name = 'killed'");
  const run = startProgram('src/commands/retention.ts', { DATABASE_URL: url.href }, ['--payments', '30']);
  await vi.waitFor(async () => expect(await erased()).toBeGreaterThan(0), { interval: 5 });
  expect(await connected()).toHaveLength(1);
  run.child.kill('SIGKILL');
  await run.ended;
  // PostgreSQL finishes the statements that a client has sent, even after the client has disconnected.
  await vi.waitFor(async () => expect(await connected()).toEqual([]), { interval: 5 });
  const left = 1501 - (await erased());
  for (const { record, done } of await tables.query(
    'SELECT record, personal_data_erased_at IS NOT NULL AS done FROM payment',
  )) {
    expect((record as Buffer).includes(PERSON)).toBe(!done);
  }
  expect(await retention('--payments', '30')).toBe(`payments  ${left}\n`);
  expect(await namings()).toEqual([]);
});
