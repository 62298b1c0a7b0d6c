import { randomBytes } from 'node:crypto';
import { beforeEach, expect, it } from 'vitest';
import { run } from '#src/commands/erase-payer.ts';
import { onService, server, tables } from '../support/on-service.ts';
import {
  ACCOUNT_ONE,
  ACCOUNT_TWO,
  cardPayment,
  headersOne,
  type RequestJson,
  walletPayment,
  withField,
} from '../support/payment-requests.ts';
import { type Ran, runCommandWithInput } from '../support/run-command.ts';
import { failWrites, wantEveryEvent } from '../support/tables.ts';
import { age, PERSON, pay, personal, post } from './aged-payments.ts';

const KEYS = { vaultKeys: new Map([['test-1', randomBytes(32)]]), hashKey: randomBytes(32) };
const KEY_ENVIRONMENT = {
  VAULT_KEYS: `test-1:${KEYS.vaultKeys.get('test-1')?.toString('base64')}`,
  HASH_KEY: KEYS.hashKey.toString('base64'),
};

onService({ keys: KEYS });
beforeEach(async () => {
  await tables.query(
    'TRUNCATE payment, transaction, notification, event, delivery, webhook, checkout_session, customer, vaulted_token, replayed_call, audit_log, single_use, one_time_token',
  );
  await wantEveryEvent(tables);
});

const EMAIL = `${PERSON}@example.com`;

/** Runs the command while the service runs. */
function erase(input: string, ...args: string[]): Promise<Ran> {
  const environment = { DATABASE_URL: server.databaseUrl, ACTOR: 'the officer', ...KEY_ENVIRONMENT };
  return runCommandWithInput(run, environment, input, ...args);
}

/** Returns the columns of the database that contain the person's name, in any case and any table. */
async function places(): Promise<string[]> {
  const columns = await tables.query(`
    SELECT table_name AS t, column_name AS c, data_type AS type FROM information_schema.columns
    WHERE table_schema = current_schema() AND data_type IN ('text', 'bytea', 'jsonb', 'json', 'ARRAY')`);
  const found: string[] = [];
  for (const { t, c, type } of columns) {
    const text = type === 'bytea' ? `encode("${c}", 'escape')` : `"${c}"::text`;
    const rows = await tables.query(`SELECT 1 FROM "${t}" WHERE ${text} ILIKE '%${PERSON}%' LIMIT 1`);
    if (rows.length > 0) found.push(`${t}.${c}`);
  }
  return found.sort();
}

const hashes = () =>
  tables.query(
    'SELECT id FROM payment WHERE payer_email_hash IS NOT NULL OR payer_document_hash IS NOT NULL OR card_fingerprint IS NOT NULL',
  );

/** Settles the news about every payment. */
const quiet = () => age(0);

/** Waits until nothing of the payer's payments is open: the provider's notifications still arrive. */
async function untilClosed(): Promise<void> {
  await expect.poll(async () => (await erase(EMAIL, ACCOUNT_ONE)).code, { timeout: 10_000 }).toBe(0);
}

async function createCustomer(): Promise<string> {
  const created = await post(
    '/v1/customers',
    { merchant_customer_id: PERSON, first_name: PERSON, email: EMAIL, country: 'CO' },
    'customer',
  );
  expect(created.status, created.text).toBe(201);
  return created.payment.id;
}

/** A payment of a customer that stores its card, in a checkout session. */
async function payInSession(customerId: string): Promise<string> {
  const session = await post(
    '/v1/checkout/sessions',
    {
      ...{
        account_id: ACCOUNT_ONE,
        merchant_order_id: 'order-1',
        country: cardPayment().country,
        customer_id: customerId,
      },
      ...{ amount: { currency: 'USD', value: 10 }, payment_description: `For ${PERSON}` },
      metadata: [{ key: 'who', value: PERSON }],
    },
    'session',
  );
  expect(session.status, session.text).toBe(201);
  const { checkout_session: id } = JSON.parse(session.text);
  const request = withField(personal(), 'payment_method.vault_on_success', true);
  const paid = await pay({
    ...request,
    ...{ workflow: 'DIRECT', checkout: { session: id } },
    customer_payer: { ...(request.customer_payer as object), id: customerId },
  });
  expect([paid.status, paid.payment.status], paid.text).toEqual([201, 'SUCCEEDED']);
  return paid.payment.id;
}

it('a customer is erased from every table, with their payments, cards, sessions, events, notifications and responses', async () => {
  const customer = await createCustomer();
  const paid = await payInSession(customer);
  await post(`/v1/payments/${paid}/refund`, { merchant_reference: 'r', description: PERSON }, 'refund');
  await quiet();
  await tables.query(`UPDATE notification SET body = '${PERSON}', query = 'who=${PERSON}'`);
  const before = await places();
  expect(before).toEqual(
    expect.arrayContaining([
      ...[
        'checkout_session.metadata',
        'customer.payer',
        'event.record',
        'notification.body',
        'payment.record',
      ],
      ...['replayed_call.response', 'transaction.response_record', 'vaulted_token.card'],
    ]),
  );

  const dry = await erase('', ACCOUNT_ONE, '--customer', customer);
  expect(dry).toMatchObject({ code: 0, stdout: expect.stringContaining('Nothing was erased') });
  expect(await places()).toEqual(before);

  const done = await erase('', ACCOUNT_ONE, '--customer', customer, '--confirm');
  expect(done, done.stderr).toMatchObject({ code: 0 });
  expect(await places()).toEqual([]);
  expect(await hashes()).toEqual([]);
  expect(await tables.query('SELECT 1 FROM vaulted_token WHERE card_number IS NOT NULL')).toEqual([]);
  const again = await erase('', ACCOUNT_ONE, '--customer', customer, '--confirm');
  expect(again).toMatchObject({ code: 0, stdout: 'erased: customers 0, payments 0\n' });
  const read = await fetch(`${server.url}/v1/payments/${paid}`, { headers: headersOne() });
  expect(await read.json()).toMatchObject({
    id: paid,
    status: 'REFUNDED',
    amount: { value: 10, refunded: 10 },
  });
});

it('a payer is erased by an e-mail address from standard input, however it is spelled, in one account', async () => {
  const mine = await pay(personal());
  const other = await pay({ ...cardPayment(), customer_payer: { email: 'other@example.com' } });
  expect([mine.status, other.status]).toEqual([201, 201]);
  await quiet();
  const elsewhere = await erase(`${EMAIL}\n`, ACCOUNT_TWO, '--confirm');
  expect(elsewhere.stdout).toBe('erased: customers 0, payments 0\n');
  const done = await erase(`  ${EMAIL.toUpperCase()}\n`, ACCOUNT_ONE, '--confirm');
  expect(done).toMatchObject({ code: 0, stdout: 'erased: customers 0, payments 1\n' });
  expect(await places()).toEqual([]);
  expect(await hashes()).toEqual([{ id: other.payment.id }]);
  const audited = await tables.query(
    'SELECT subject, detail FROM audit_log WHERE account_id = $1 ORDER BY id',
    [ACCOUNT_ONE],
  );
  expect(audited).toEqual([
    { subject: 'by e-mail address', detail: 'begun' },
    { subject: 'by e-mail address', detail: 'customers 0, payments 1, still open 0' },
  ]);
});

it('an e-mail address also finds the customers who have it, with their payments under other addresses', async () => {
  const customer = await createCustomer();
  const paid = await pay({ ...cardPayment(), customer_payer: { id: customer, email: 'second@example.com' } });
  expect(paid.status, paid.text).toBe(201);
  await quiet();
  const done = await erase(EMAIL, ACCOUNT_ONE, '--confirm');
  expect(done.stdout).toBe(`erased: customers 1, payments 1\n  customer ${customer}\n`);
  expect(await places()).toEqual([]);
  expect(await hashes()).toEqual([]);
});

it('the card that a payer without a customer stored is erased with their payment', async () => {
  const paid = await pay(withField(personal(), 'payment_method.vault_on_success', true));
  expect([paid.status, paid.payment.status], paid.text).toEqual([201, 'SUCCEEDED']);
  await quiet();
  expect(await places()).toContain('vaulted_token.card');
  await erase(EMAIL, ACCOUNT_ONE, '--confirm');
  expect(await places()).toEqual([]);
  expect(await tables.query('SELECT status, card_number, fingerprint FROM vaulted_token')).toEqual([
    { status: 'UNENROLLED', card_number: null, fingerprint: null },
  ]);
});

it('a payment with anything open is named and keeps its data; once it has ended, the same command erases it', async () => {
  const open = await pay({ ...walletPayment(), customer_payer: { first_name: PERSON, email: EMAIL } });
  const authorized = await pay(withField(personal(), 'payment_method.detail.card.capture', false));
  const closed = await pay(personal());
  expect([open, authorized, closed].map(({ status }) => status)).toEqual([201, 201, 201]);
  await quiet();
  const first = await erase(EMAIL, ACCOUNT_ONE, '--confirm');
  expect(first).toMatchObject({ code: 3, stdout: expect.stringContaining('payments 1\n') });
  for (const { payment } of [open, authorized]) expect(first.stdout).toContain(`payment ${payment.id}`);
  expect(first.stdout).not.toContain(closed.payment.id);
  expect(await places()).toContain('payment.record');

  const canceled = await post(`/v1/payments/${open.payment.id}/cancel`, { merchant_reference: 'cancel' });
  const captured = await post(`/v1/payments/${authorized.payment.id}/capture`, {
    merchant_reference: 'capture',
  });
  expect([canceled.status, captured.status]).toEqual([200, 200]);
  // The authorization's term ends, and with it the checks of what the provider still says about it.
  const endTerm = async () => {
    await tables.query(
      `UPDATE notification SET settled_at = now() WHERE settled_at IS NULL AND transaction_id IN (
         SELECT id FROM transaction WHERE payment_id = $1)`,
      [authorized.payment.id],
    );
    await tables.query(
      "UPDATE transaction SET check_at = NULL WHERE payment_id = $1 AND status = 'SUCCEEDED'",
      [authorized.payment.id],
    );
  };
  let erased = 0;
  const again = async () => {
    await endTerm();
    const { code, stdout } = await erase(EMAIL, ACCOUNT_ONE, '--confirm');
    erased += Number(/payments (\d+)\n/.exec(stdout)?.[1]);
    return code;
  };
  await expect.poll(again, { timeout: 10_000 }).toBe(0);
  expect(erased).toBe(2);
  expect(await places()).toEqual([]);
});

it('an interrupted erasure is completed by the next run', async () => {
  const customer = await createCustomer();
  await payInSession(customer);
  await quiet();
  for (const table of [
    'event',
    'checkout_session',
    'replayed_call',
    'payment',
    'vaulted_token',
    'customer',
  ]) {
    const mend = await failWrites(tables, table, 'XX000');
    const broken = await erase(EMAIL, ACCOUNT_ONE, '--confirm');
    await mend();
    expect(broken, table).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Run the command again'),
    });
    expect(`${broken.stdout}${broken.stderr}`).not.toContain(PERSON);
  }
  const done = await erase(EMAIL, ACCOUNT_ONE, '--confirm');
  expect(done.code, done.stderr).toBe(0);
  expect(await places()).toEqual([]);
  expect(await hashes()).toEqual([]);
});

it('a wrong command line repeats no address, and an address that is none is refused', async () => {
  const wrong = await erase('', ACCOUNT_ONE, EMAIL, '--confirm');
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).not.toContain(PERSON);
  const none = await erase('nobody', ACCOUNT_ONE, '--confirm');
  expect(none).toMatchObject({ code: 1, stderr: 'Not done: email: must be an e-mail address\n' });
  const missing = await erase('', ACCOUNT_ONE, '--confirm');
  expect(missing.code).toBe(2);
});

it.each<[string, RequestJson]>([
  [
    'a declined payment',
    withField(personal(), 'payment_method.detail.card.card_data.number', '4000000000000002'),
  ],
])('erases the payer from %s', async (_what, request) => {
  const declined = await pay(request);
  expect(declined.payment.status).toBe('DECLINED');
  await untilClosed();
  await erase(EMAIL, ACCOUNT_ONE, '--confirm');
  expect(await places()).toEqual([]);
});
