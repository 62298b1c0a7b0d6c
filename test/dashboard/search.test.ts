import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { type Merchant, merchantOne, type Operator, signIn } from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO, cardPayment, headersTwo } from '../support/payment-requests.ts';

let operator: Operator;
let merchant: Merchant;
let first: { id: string; transactions: { id: string; provider_data: { transaction_id: string } } };
let declined: { id: string };
let other: { id: string };

onService();
beforeAll(async () => {
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  merchant = merchantOne(server);
  first = await merchant.pay({ merchant_order_id: '1001', merchant_reference: 'booking-7' });
  declined = await merchant.call('/v1/payments', {
    ...cardPayment('4000000000000002'),
    merchant_order_id: '1001',
  });
  const response = await fetch(`${server.url}/v1/payments`, {
    method: 'POST',
    headers: { ...headersTwo(), 'content-type': 'application/json' },
    body: JSON.stringify({ ...cardPayment(), account_id: ACCOUNT_TWO, merchant_order_id: '1001' }),
  });
  other = (await response.json()) as { id: string };
  await merchant.call(`/v1/payments/${first.id}/refund`, {
    merchant_reference: 'sorry-7',
    amount: { currency: 'USD', value: 1 },
  });
});

const LINK = /href="\/dashboard\/payments\/[0-9a-f-]{36}\/([0-9a-f-]{36})"/g;

async function search(
  query: Record<string, string>,
): Promise<{ ids: string[]; older: string; text: string }> {
  const response = await operator.get(`/payments?${new URLSearchParams(query)}`);
  const text = await response.text();
  const [, older = ''] = /href="\/dashboard(\/payments\?[^"]+)">Older/.exec(text) ?? [];
  return {
    ids: [...text.matchAll(LINK)].map(([, id = '']) => id),
    older: older.replaceAll('&#38;', '&'),
    text,
  };
}
const found = async (query: Record<string, string>) => (await search(query)).ids;

describe('the search', () => {
  it('the search lists the payments of every account or of one, newest first', async () => {
    expect(await found({})).toEqual([other.id, declined.id, first.id]);
    expect(await found({ account: ACCOUNT_TWO })).toEqual([other.id]);
    expect(await found({ account: randomUUID() })).toEqual([]);
  });

  it('the search finds a payment by its ID or a transaction ID, whatever the other filters', async () => {
    expect(await found({ text: first.id, by: 'last_four', account: ACCOUNT_TWO })).toEqual([first.id]);
    expect(await found({ text: first.transactions.id.toUpperCase() })).toEqual([first.id]);
    expect(await found({ text: randomUUID() })).toEqual([]);
  });

  it('the search finds payments by order, and by order and status', async () => {
    expect(await found({ text: '1001', by: 'order' })).toEqual([other.id, declined.id, first.id]);
    expect(await found({ text: '1001', by: 'order', status: 'DECLINED' })).toEqual([declined.id]);
    expect(await found({ text: '100', by: 'order' })).toEqual([]);
  });

  it('the search finds a payment by the merchant’s reference for the payment or a refund, or by the provider’s reference', async () => {
    expect(await found({ text: 'booking-7', by: 'reference' })).toEqual([first.id]);
    expect(await found({ text: 'sorry-7', by: 'reference' })).toEqual([first.id]);
    const { transaction_id: providers } = first.transactions.provider_data;
    expect(await found({ text: providers, by: 'reference' })).toEqual([first.id]);
    expect(await found({ text: 'booking-7', by: 'reference', account: ACCOUNT_TWO })).toEqual([]);
  });

  it('the search by reference respects the status and the time range', async () => {
    const reference = { text: 'booking-7', by: 'reference' };
    expect(await found({ ...reference, status: 'SUCCEEDED' })).toEqual([first.id]);
    expect(await found({ ...reference, status: 'DECLINED' })).toEqual([]);
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16);
    expect(await found({ ...reference, from: '2020-01-01T00:00', to: tomorrow })).toEqual([first.id]);
    expect(await found({ ...reference, from: tomorrow })).toEqual([]);
    expect(await found({ ...reference, to: '2020-01-01' })).toEqual([]);
  });

  it('the search by reference and status finds a payment behind many newer ones with the same reference', async () => {
    await tables.query(
      `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, created_at)
       SELECT gen_random_uuid(), account_id, 'recurring ' || n, p.request_hash, p.request_shape, 'DECLINED', d.record, p.created_at + interval '1 ms'
       FROM payment p JOIN payment d USING (account_id), generate_series(1, 60) AS n WHERE p.id = $1 AND d.id = $2`,
      [first.id, declined.id],
    );
    await tables.query(
      `INSERT INTO transaction (account_id, id, payment_id, connection_id, connection_identity, status,
         amount_minor_units, currency, capture, merchant_reference)
       SELECT account_id, gen_random_uuid(), id, 'sandbox-one', 'x', 'DECLINED', 1, 'USD', true, 'booking-7'
       FROM payment WHERE idempotency_key LIKE 'recurring %'`,
    );
    const chosen = await found({ text: 'booking-7', by: 'reference', status: 'SUCCEEDED' });
    await tables.query(
      "DELETE FROM transaction WHERE merchant_reference = 'booking-7' AND status = 'DECLINED'",
    );
    await tables.query("DELETE FROM payment WHERE idempotency_key LIKE 'recurring %'");
    expect(chosen).toEqual([first.id]);
  });

  it('the search finds payments by the last four digits of the card, and by these and status', async () => {
    expect(await found({ text: '1881', by: 'last_four' })).toEqual([other.id, first.id]);
    expect(await found({ text: '0002', by: 'last_four', status: 'DECLINED' })).toEqual([declined.id]);
    expect(await found({ text: '0002', by: 'last_four', status: 'SUCCEEDED' })).toEqual([]);
  });

  it('the search finds payments by method, and by method with other filters, and shows the category', async () => {
    const pix = await merchant.call('/v1/payments', {
      ...cardPayment(),
      ...{ merchant_order_id: '1002', merchant_reference: 'pix-7', country: 'BR' },
      ...{ amount: { currency: 'BRL', value: 52 }, payment_method: { type: 'PIX' }, workflow: 'REDIRECT' },
    });
    const cards = [other.id, declined.id, first.id];
    const { ids, text } = await search({ method: 'PIX' });
    expect(ids).toEqual([pix.id]);
    expect(text).toMatch(/PIX<br><span class="quiet">bank transfer</);
    expect(text).toMatch(/<option value="GOOGLE_PAY">GOOGLE PAY<.*<option value="PIX" selected>PIX</);
    expect(await found({ method: 'CARD' })).toEqual(cards);
    expect(await found({ method: 'CARD', status: 'DECLINED' })).toEqual([declined.id]);
    expect(await found({ method: 'PIX', text: '1001', by: 'order' })).toEqual([]);
    expect(await found({ method: 'PIX', status: 'READY_TO_PAY', text: '1002', by: 'order' })).toEqual([
      pix.id,
    ]);
    expect(await found({ method: 'PIX', text: 'pix-7', by: 'reference' })).toEqual([pix.id]);
    expect(await found({ method: 'CARD', text: 'pix-7', by: 'reference' })).toEqual([]);
    expect((await search({ method: 'GONE' })).text).toContain('<option value="GONE" selected>');
    await tables.query('DELETE FROM transaction WHERE payment_id = $1', [pix.id]);
    await tables.query('DELETE FROM payment WHERE id = $1', [pix.id]);
  });

  it('the search finds payments by status and time range', async () => {
    expect(await found({ status: 'DECLINED' })).toEqual([declined.id]);
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16);
    expect(await found({ to: tomorrow, status: 'SUCCEEDED' })).toEqual([other.id, first.id]);
    expect(await found({ from: tomorrow })).toEqual([]);
    expect(await found({ from: '0001-01-01', to: '9999-12-31', status: 'DECLINED' })).toEqual([declined.id]);
    expect(await found({ to: '9999-12-31T23:59', status: 'DECLINED' })).toEqual([declined.id]);
  });
});

it('a search without results offers to search other fields, with the other filters unchanged', async () => {
  const { text, ids } = await search({ text: '1881', by: 'order', account: ACCOUNT_ONE });
  expect([ids, text]).toEqual([[], expect.stringContaining('No payments found.')]);
  const offered = [...text.matchAll(/href="\/dashboard\/payments\?([^"]+)">([^<]+)</g)];
  expect(offered.map(([, , name]) => name)).toEqual([
    'Beginning of an order',
    'Reference, ours or the provider’s',
    'Card’s last four',
    'Customer, ours or the merchant’s',
  ]);
  const query = new URLSearchParams(offered[2]?.[1]?.replaceAll('&#38;', '&'));
  expect(await found(Object.fromEntries(query))).toEqual([first.id]);
  expect((await search({ text: 'not-there', by: 'reference' })).text).toContain('by=order');
  expect((await search({ status: 'CHARGEBACK' })).text).not.toContain('by=');
});

it.each([
  ['a malformed ID', { text: 'abc', by: 'id' }],
  ['a card number of more than four digits', { text: '4012888888881881', by: 'last_four' }],
  ['an invalid time', { from: '2026-13-01T00:00' }],
  ['a day that its month does not have', { from: '2026-02-30' }],
  ['a year before year 1', { from: '0000-01-01' }],
  ['an invalid account ID', { account: "' OR true --" }],
  ['a forged page token', { page: 'AAAA' }],
])('the search refuses %s and says why', async (_what, query) => {
  const response = await operator.get(`/payments?${new URLSearchParams(query)}`);
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('role="alert"')]);
});

it('pages of results list every payment once while others are added; a page token is valid only for its filter', async () => {
  await tables.query(
    `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, card_last_four,
       created_at)
     SELECT gen_random_uuid(), account_id, 'copy ' || n, request_hash, request_shape, 'EXPIRED', record, '7777', now() - n % 40 * interval '1 s'
     FROM payment, generate_series(1, 120) AS n WHERE id = $1`,
    [first.id],
  );
  const seen: string[] = [];
  for (let page = await search({ status: 'EXPIRED' }); ; ) {
    seen.push(...page.ids);
    expect(page.ids.length).toBeLessThanOrEqual(50);
    if (page.older === '') break;
    await tables.query("UPDATE payment SET created_at = now() WHERE idempotency_key = 'copy 1'");
    const next = new URL(page.older, 'http://x').searchParams;
    const elsewhere = new URLSearchParams({ page: next.get('page') ?? '', status: 'DECLINED' });
    expect((await operator.get(`/payments?${elsewhere}`)).status).toBe(400);
    page = await search(Object.fromEntries(next));
  }
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.length).toBeGreaterThanOrEqual(119);
});

// A distributed engine does not explain generic plans.
it.skipIf(process.env.CITUS_URL)(
  'each search uses an index that starts with the account, and sorts no table',
  async () => {
    const statements = await import('#src/store/tables/search-payments.ts');
    const texts: { name: string; text: string }[] = [];
    const query = async (statement: { name: string; text: string }) => {
      texts.push(statement);
      return { rows: [] };
    };
    const recorder = { query } as never;
    const ofOne = { accountIds: [ACCOUNT_ONE], from: undefined, before: undefined };
    for (const over of [
      {},
      { status: 'DECLINED' },
      { merchantOrderId: 'a' },
      { cardLastFour: '1111' },
      { cardLastFour: '1111', status: 'DECLINED' },
      { methodType: 'CARD' },
      { methodType: 'PIX' },
      { methodType: 'PIX', status: 'DECLINED' },
    ]) {
      const all = {
        merchantOrderId: undefined,
        cardLastFour: undefined,
        methodType: undefined,
        status: undefined,
      };
      await statements.searchPayments(recorder, { ...ofOne, ...all, ...over }, undefined);
    }
    await statements.findPaymentsById(recorder, randomUUID());
    await statements.findPaymentsByReference(
      recorder,
      { ...ofOne, methodType: undefined, status: undefined },
      ['sandbox-one'],
      'a',
    );
    await tables.query('SET enable_seqscan = off');
    for (const { name, text } of texts) {
      const rows = await tables.query(`EXPLAIN (GENERIC_PLAN) ${text}`);
      const plan = rows.map((row) => String(row['QUERY PLAN'])).join('\n');
      expect([name, plan]).toEqual([name, expect.not.stringMatching(/Seq Scan on (payment|transaction)/)]);
    }
  },
);

it('the search finds an order or a reference that looks like an ID', async () => {
  const [order, reference] = [randomUUID(), randomUUID()];
  const paid = await merchant.pay({ merchant_order_id: order, merchant_reference: reference });
  expect(await found({ text: order, by: 'order' })).toEqual([paid.id]);
  expect(await found({ text: reference, by: 'reference' })).toEqual([paid.id]);
  expect(await found({ text: order, by: 'id' })).toEqual([]);
});
