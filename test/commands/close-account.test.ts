import { expect, it } from 'vitest';
import { run } from '#src/commands/account.ts';
import { onService, server, tables } from '../support/on-service.ts';
import {
  ACCOUNT_ONE,
  ACCOUNT_TWO,
  cardPayment,
  headersTwo,
  walletPayment,
  withField,
} from '../support/payment-requests.ts';
import { outputOf } from '../support/run-command.ts';
import { wantEveryEvent } from '../support/tables.ts';
import { pay, post } from './aged-payments.ts';

onService();

const account = (...args: string[]) => outputOf(run, { DATABASE_URL: server.databaseUrl }, ...args);

/** Returns the counts of a listing, by their names. */
function countsOf(text: string): Record<string, number> {
  const lines = [...text.matchAll(/^(\S.*?) {2,}(\d+)$/gm)];
  return Object.fromEntries(lines.map(([, name, count]) => [name, Number(count)]));
}

it('an account is closed after a look at what is open; what is open at providers still gets its outcome', async () => {
  await wantEveryEvent(tables);
  await tables.query('DELETE FROM delivery; UPDATE webhook SET failing_since = NULL');
  const waiting = await pay(walletPayment());
  const authorized = await pay(withField(cardPayment(), 'payment_method.detail.card.capture', false));
  expect([waiting.status, authorized.status]).toEqual([201, 201]);
  await tables.query(
    `INSERT INTO delivery (account_id, id, webhook_id, event_id, due_at)
     SELECT account_id, gen_random_uuid(), id, gen_random_uuid(), now() + interval '1 hour' FROM webhook LIMIT 1`,
  );

  const dry = await account('close', ACCOUNT_ONE);
  expect(dry).toContain('Nothing was changed.');
  const open = countsOf(dry);
  expect(open).toMatchObject({
    ...{ 'payments to be checked, or awaiting their payer': 1, 'authorizations held': 1, 'disputes open': 0 },
    webhooks: 1,
  });
  expect(open['valid keys']).toBeGreaterThan(0);
  expect(open['checkout sessions that accept payments']).toBeGreaterThan(0);
  expect(open['events to be delivered']).toBeGreaterThan(0);
  expect(open['enrolled wallets']).toBeGreaterThan(0);
  expect((await pay(cardPayment())).status).toBe(201);

  const closed = await account('close', ACCOUNT_ONE, '--confirm');
  expect(countsOf(closed)).toMatchObject({
    ...{
      'valid keys': 0,
      'checkout sessions that accept payments': 0,
      webhooks: 0,
      'authorizations held': 1,
    },
    'payments to be checked, or awaiting their payer': 1,
  });
  expect(closed).toMatch(/The last planned check of these is at 20\d\d-/);
  const again = await account('close', ACCOUNT_ONE, '--confirm');
  expect(again).toContain('keys revoked 0, sessions ended 0, webhooks deleted 0');

  await expect.poll(async () => (await pay(cardPayment())).status, { timeout: 10_000 }).toBe(401);
  const others = await post('/v1/payments', cardPayment());
  expect(others.status).toBe(401);
  const other = await fetch(`${server.url}/v1/payments/${waiting.payment.id}`, { headers: headersTwo() });
  expect(other.status).toBe(404);

  // The payer's time is over: the check still runs, and ends the payment.
  await tables.query(
    `UPDATE transaction SET check_at = now(), payer_due_at = now() - interval '1 hour' WHERE payment_id = $1`,
    [waiting.payment.id],
  );
  const status = async () => {
    const [row] = await tables.query('SELECT status FROM payment WHERE id = $1', [waiting.payment.id]);
    return row?.status;
  };
  await expect.poll(status, { timeout: 10_000 }).toBe('EXPIRED');

  const log = await account('audit', ACCOUNT_ONE);
  expect(log).toMatch(/close +dry run: unfinished 1, authorizations 1/);
  expect(log).toMatch(/close +closed: sessions ended \d+; left: unfinished 1/);
  expect(countsOf(await account('close', ACCOUNT_TWO))['valid keys']).toBeGreaterThan(0);
});
