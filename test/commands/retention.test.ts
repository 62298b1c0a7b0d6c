import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { run } from '#src/commands/retention.ts';
import { server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE, headersOne, walletPayment, withField } from '../support/payment-requests.ts';
import { runCommand } from '../support/run-command.ts';
import { age, namings, onAgedPayments, PERSON, pay, personal, post, retention } from './aged-payments.ts';

onAgedPayments();

async function read(id: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${server.url}/v1/payments/${id}`, { headers: headersOne() });
  return (await response.json()) as Record<string, unknown>;
}

const RECORDS = [
  ...['payment.document_hash', 'payment.email_hash', 'payment.record', 'payment.response_record'],
  'transaction.response_record',
];

it('retention erases the payer from an old payment and its responses; a repeated request gets what is left', async () => {
  const request = personal();
  const paid = await pay(request, 'old');
  const path = `/v1/payments/${paid.payment.id}/refund`;
  const refund = { merchant_reference: 'refund-1', amount: { currency: 'USD', value: 4 } };
  const refunded = await post(path, refund, 'refund');
  expect([paid.status, refunded.status]).toEqual([201, 200]);
  expect(await namings()).toEqual(RECORDS);
  await age(40);
  const before = await tables.counts();
  const searches = [
    { payer_email: `${PERSON}@example.com` },
    { country: 'US', payer_document: { document_type: 'CC', document_number: PERSON } },
  ];
  const search = async () => {
    const answers = await Promise.all(searches.map((body) => post('/v1/payments/search', body)));
    return answers.map(({ text }) => JSON.parse(text).payments.map(({ id }: { id: string }) => id));
  };
  expect(await search()).toEqual([[paid.payment.id], [paid.payment.id]]);

  expect(await retention('--payments', '30', '--dry-run')).toBe('payments due  1\n');
  expect(await namings()).toEqual(RECORDS);
  expect(await retention('--payments', '30')).toBe('payments  1\n');
  expect(await namings()).toEqual([]);
  expect(await retention('--payments', '30')).toBe('payments  0\n');
  expect(await search()).toEqual([[], []]);

  const [again, refundedAgain] = [await pay(request, 'old'), await post(path, refund, 'refund')];
  expect([again.status, refundedAgain.status]).toEqual([201, 200]);
  expect(again.payment).toMatchObject({
    id: paid.payment.id,
    status: 'SUCCEEDED',
    customer_payer: { first_name: null, browser_info: { user_agent: '' } },
    amount: { value: 10 },
    transactions: { payment_method: { detail: { card: { card_data: { lfd: '1881', holder_name: '' } } } } },
  });
  expect(refundedAgain.payment).toMatchObject({ id: paid.payment.id, amount: { refunded: 4 } });
  expect(again.text).toBe((await pay(request, 'old')).text);
  expect((await pay({ ...request, merchant_order_id: 'other' }, 'old')).status).toBe(422);
  expect(await tables.counts()).toEqual(before);
  expect((await read(paid.payment.id)).sub_status).toBe('PARTIALLY_REFUNDED');
});

it('retention waits for the end of a payment’s dispute, then erases the operators’ notes, too', async () => {
  const { payment } = await pay(personal());
  await tables.query(
    `INSERT INTO dispute (account_id, id, payment_id, connection_id, connection_identity, stage, status, reason,
       amount_minor_units, currency, note, noted_by, sequence, opened_at, updated_at)
     VALUES ($1, $2, $3, 'one', 'one', 'INQUIRY', 'NEEDS_RESPONSE', 'OTHER', 1, 'USD', $4, 'operator', 1, now(), now())`,
    [ACCOUNT_ONE, randomUUID(), payment.id, `called ${PERSON}`],
  );
  await age(40);
  expect(await retention('--payments', '30')).toBe('payments  0\n');
  await tables.query('UPDATE dispute SET closed_at = now() WHERE payment_id = $1', [payment.id]);
  expect(await retention('--payments', '30')).toBe('payments  1\n');
  expect(
    await tables.query('SELECT note, noted_by FROM dispute WHERE payment_id = $1', [payment.id]),
  ).toEqual([{ note: '', noted_by: null }]);
  expect(await namings()).toEqual([]);
});

it('retention deletes expired checkout sessions and their uses, unless their payment is still open', async () => {
  const [paid, open, kept] = [randomUUID(), randomUUID(), randomUUID()];
  const payment = (await pay(personal())).payment.id;
  const waiting = (await pay(walletPayment())).payment.id;
  for (const [id, used, days] of [
    [paid, payment, 31],
    [open, waiting, 31],
    [kept, payment, 29],
  ]) {
    await tables.query(
      `INSERT INTO checkout_session (account_id, id, payment_id, expires_at)
       VALUES ($1, $2, $3, now() - make_interval(days => $4))`,
      [ACCOUNT_ONE, id, used, days],
    );
    await tables.query('INSERT INTO single_use (account_id, object_id, payment_id) VALUES ($1, $2, $3)', [
      ...[ACCOUNT_ONE, id, used],
    ]);
  }
  expect(await retention('--sessions', '30', '--dry-run')).toBe('checkout_sessions due  1\n');
  expect(await retention('--sessions', '30')).toBe('checkout_sessions  1\n');
  expect(await retention('--sessions', '30')).toBe('checkout_sessions  0\n');
  const ids = [[paid, open, kept]];
  const found = await tables.query('SELECT id FROM checkout_session WHERE id = ANY ($1)', ids);
  const uses = await tables.query('SELECT object_id AS id FROM single_use WHERE object_id = ANY ($1)', ids);
  expect(found.map(({ id }) => id).sort()).toEqual([open, kept].sort());
  expect(uses.map(({ id }) => id).sort()).toEqual([open, kept].sort());
});

it('an operation on an erased payment succeeds, and retention later erases what it wrote', async () => {
  const paid = await pay(personal());
  await age(40);
  await retention('--payments', '30');
  const refunded = await post(`/v1/payments/${paid.payment.id}/refund`, {
    merchant_reference: 'late',
    description: PERSON,
  });
  expect([refunded.status, refunded.payment.status]).toEqual([200, 'REFUNDED']);
  expect(await namings()).not.toEqual([]);
  expect(await retention('--payments', '30')).toBe('payments  0\n');
  await age(40);
  expect(await retention('--payments', '30')).toBe('payments  1\n');
  expect(await namings()).toEqual([]);
});

it('retention keeps old authorizations, redirects, unknown outcomes and open operations', async () => {
  const authorized = await pay(withField(personal(), 'payment_method.detail.card.capture', false));
  const redirected = await pay({ ...walletPayment(), customer_payer: { first_name: PERSON } });
  const [unknown, operated, young] = [await pay(personal()), await pay(personal()), await pay(personal())];
  expect([authorized, redirected, unknown, operated, young].map(({ status }) => status)).toEqual(
    Array(5).fill(201),
  );
  await age(400);
  // The payments are opened only after aging, since anything that the service does with an open payment makes it recent
  // again. The fence is advanced because a check that the sandbox's notification prompted may still be in progress.
  await tables.query(
    "UPDATE transaction SET status = 'PENDING', check_at = now() + interval '1 day', fence = fence + 1 WHERE payment_id = $1",
    [unknown.payment.id],
  );
  await tables.query('UPDATE payment SET open_operation = id WHERE id = $1', [operated.payment.id]);
  await tables.query(
    "UPDATE payment SET created_at = now() - interval '29 days', updated_at = now() - interval '29 days' WHERE id = $1",
    [young.payment.id],
  );
  // Meanwhile the service processes the open payments, and notices that much time has passed.
  const erased = () => tables.query('SELECT id FROM payment WHERE personal_data_erased_at IS NOT NULL');
  expect(await retention('--payments', '30', '--dry-run')).toBe('payments due  0\n');
  expect(await retention('--payments', '30')).toBe('payments  0\n');
  expect(await erased()).toEqual([]);
});

it('retention deletes old settled notifications and deliveries, and events that no delivery needs', async () => {
  await tables.query(
    `INSERT INTO notification (account_id, connection_id, deduplication_key, subject, body, query, received_at, settled_at)
     SELECT gen_random_uuid(), 'sandbox', n::text, 0, 'raw', '', now() - make_interval(days => 10 * (n % 5)),
       CASE WHEN n % 2 <> 0 THEN now() END
     FROM generate_series(1, 2500) AS n`,
  );
  await tables.query(
    `INSERT INTO event (account_id, id, type, payment_id, sequence, record, created_at, relayed_at)
     SELECT gen_random_uuid(), gen_random_uuid(), 'payment.purchase', gen_random_uuid(), 1, '',
       now() - make_interval(days => CASE n WHEN 11 THEN 10 ELSE 20 END, hours => 1), now() FROM generate_series(1, 11) AS n`,
  );
  await tables.query(
    `INSERT INTO delivery (account_id, id, webhook_id, event_id, created_at, due_at)
     SELECT account_id, id, id, id, created_at + interval '2 hours', CASE WHEN id = (SELECT id FROM event ORDER BY created_at LIMIT 1) THEN now() + interval '1 hour' END FROM event`,
  );
  const rules = ['--notifications', '31', '--deliveries', '10'];
  // A fifth of the notifications are 40 days old, and half of those are not settled yet.
  const due = ['notifications due  250', 'deliveries due     9', 'events due         9'];
  expect((await retention(...rules, '--dry-run')).trim().split('\n')).toEqual(due);
  expect((await retention(...rules)).trim().split('\n')).toEqual([
    'notifications  250',
    'deliveries     9',
    'events         9',
  ]);
  const [left] = await tables.query(
    'SELECT (SELECT count(*)::int FROM notification) AS n, (SELECT count(*)::int FROM event) AS e, (SELECT count(*)::int FROM delivery) AS d',
  );
  expect(left).toEqual({ n: 2250, e: 2, d: 2 });
});

it('a retention run is in the audit log with its rules and counts', async () => {
  await retention('--notifications', '90', '--dry-run');
  const rows = await tables.query(
    `SELECT actor, subject, detail FROM audit_log WHERE action = 'retention' ORDER BY id DESC LIMIT 2`,
  );
  const who = {
    actor: expect.stringMatching(/^the night run \(.+@.+\)$/),
    subject: 'notifications 90, dry run',
  };
  expect(rows).toEqual([
    { ...who, detail: 'notifications 0' },
    { ...who, detail: 'begun' },
  ]);
});

it.each([
  ['no rule', [], 'At least one rule is required.'],
  [
    'a rule that is not a number',
    ['--payments', 'soon'],
    '--payments must be a number of days from 30 to 36500.',
  ],
  ['fewer days than is safe', ['--payments', '29'], '--payments must be a number of days from 30 to 36500.'],
  ['a rule for an unknown kind of data', ['--cats', '9'], "Unknown option '--cats'"],
])(
  'retention refuses %s with a usage message and exit code 2, before it opens a database',
  async (_what, args, message) => {
    const failed = await runCommand(run, { DATABASE_URL: 'postgres://a@127.0.0.1:1/b' }, ...args);
    expect(failed).toMatchObject({ code: 2, stdout: '' });
    expect(failed.stderr).toContain(message);
    expect(failed.stderr).toContain('Usage: npm run retention');
  },
);
