import { beforeAll, describe, expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { type Merchant, merchantOne, type Operator, signIn } from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO, cardPayment } from '../support/payment-requests.ts';

const EMAIL = 'canary.rojas@example.com';
const NUMBER = 'CANARY-123.456';

// biome-ignore lint/suspicious/noExplicitAny: a payment's record.
type Json = any;

let operator: Operator;
let merchant: Merchant;
let twice: [Json, Json];
let declined: Json;

onService();
beforeAll(async () => {
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  merchant = merchantOne(server);
  const document = { document_type: 'DNI', document_number: NUMBER };
  const request = { ...cardPayment(), merchant_order_id: 'A-1', customer_payer: { email: EMAIL, document } };
  twice = [await merchant.call('/v1/payments', request), await merchant.call('/v1/payments', request)];
  declined = await merchant.call('/v1/payments', {
    ...cardPayment('4000000000000002'),
    merchant_order_id: 'B-1',
  });
});

const LINK = /<th scope="row"><a href="\/dashboard\/payments\/[0-9a-f-]{36}\/([0-9a-f-]{36})"/g;
const idsOf = (text: string) => [...text.matchAll(LINK)].map(([, id = '']) => id);

async function searched(form: Record<string, string>) {
  const response = await operator.post('/payments', form);
  return { status: response.status, text: await response.text() };
}

async function listed(query: Record<string, string>) {
  const response = await operator.get(`/payments?${new URLSearchParams(query)}`);
  return { status: response.status, text: await response.text() };
}

describe('the payer’s form', () => {
  it('the form finds a payer’s payments by e-mail or document, marks duplicates, and its pages are forms too', async () => {
    const account = ACCOUNT_ONE;
    const { status, text } = await searched({ account, payer_email: EMAIL.toUpperCase() });
    expect([status, idsOf(text)]).toEqual([200, [twice[1].id, twice[0].id]]);
    expect(text).toContain(`href="/dashboard/payments/${account}/${twice[0].id}">possible duplicate</a>`);
    const byDocument = {
      account,
      country: twice[0].country,
      document_type: 'dni',
      document_number: 'canary123456',
    };
    expect(idsOf((await searched(byDocument)).text)).toEqual([twice[1].id, twice[0].id]);
    expect(idsOf((await searched({ account: ACCOUNT_TWO, payer_email: EMAIL })).text)).toEqual([]);
    expect(idsOf((await searched({ account, payer_email: EMAIL, status: 'DECLINED' })).text)).toEqual([]);
    await tables.query(
      `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, payer_email_hash)
       SELECT gen_random_uuid(), account_id, 'copy ' || n, request_hash, request_shape, status, record, payer_email_hash
       FROM payment, generate_series(1, 60) AS n WHERE id = $1`,
      [twice[0].id],
    );
    const first = (await searched({ account, payer_email: EMAIL })).text;
    const [, page = ''] = /name="page" value="([^"]+)">\s*<button class="quiet">Older/.exec(first) ?? [];
    const second = idsOf((await searched({ account, payer_email: EMAIL, page })).text);
    await tables.query("DELETE FROM payment WHERE idempotency_key LIKE 'copy %'");
    expect([idsOf(first).length, second.length, second.at(-1)]).toEqual([50, 12, twice[0].id]);
  });

  it('the form needs an account and the session’s token, and refuses what no payer has without quoting it in a log', async () => {
    expect((await searched({ payer_email: EMAIL })).text).toContain('payer_email: needs an account');
    const form = { account: ACCOUNT_ONE, payer_email: EMAIL, form_token: 'forged' };
    expect((await searched(form)).status).toBe(403);
    const cases: [object, string][] = [
      [{ payer_email: 'nobody' }, 'payer_email'],
      [{ document_number: '123' }, 'country'],
      [{ country: 'US', document_number: '--' }, 'document_number'],
    ];
    for (const [values, field] of cases) {
      const { status, text } = await searched({ account: ACCOUNT_ONE, ...values } as Record<string, string>);
      expect([status, text], field).toEqual([400, expect.stringContaining(`${field}:`)]);
    }
  });

  it('the audit log has the kind of data and the number found, and never the data', async () => {
    const rows = await tables.query(
      "SELECT account_id, actor, detail FROM audit_log WHERE action = 'search-payer'",
    );
    expect(rows[0]).toMatchObject({ account_id: ACCOUNT_ONE, detail: 'by e-mail: 2 found' });
    const log = JSON.stringify(await tables.query('SELECT * FROM audit_log')).toLowerCase();
    expect(log).not.toMatch(/canary|rojas/);
  });
});

describe('more filters', () => {
  it('the filters find payments in one account, and the form keeps them', async () => {
    const account = ACCOUNT_ONE;
    const all = [declined.id, twice[1].id, twice[0].id];
    const today = new Date().toISOString().slice(0, 10);
    const cases: [Record<string, string>, string[]][] = [
      [{ text: 'A-', by: 'prefix' }, all.slice(1)],
      [{ text: 'nobody', by: 'customer' }, []],
      [{ sub_status: 'DECLINED' }, [declined.id]],
      [{ code: declined.transactions.response_code }, [declined.id]],
      [{ connection: declined.transactions.connection_data.id, status: 'DECLINED' }, [declined.id]],
      [{ category: 'CARD', brand: 'visa', country: twice[0].country.toLowerCase() }, all],
      [{ currency: 'usd', least: '999999' }, []],
      [{ disputed: '1' }, []],
      [{ unknown: '1' }, []],
      [{ succeeded_from: `${today}T00:00`, zone: 'Asia/Tokyo', text: 'A-1' }, all.slice(1)],
      [{ text: '0002', by: 'last_four', sub_status: 'DECLINED' }, [declined.id]],
    ];
    for (const [query, ids] of cases) {
      const { status, text } = await listed({ account, ...query });
      expect([status, idsOf(text)], JSON.stringify(query)).toEqual([200, ids]);
      const isMore = Object.keys(query).some((field) => !['text', 'by', 'status'].includes(field));
      expect(text).toContain(isMore ? '<details class="more" open>' : `value="${query.by}" selected`);
    }
  });

  it('without an account, a filter that no index serves is refused by name; unknown outcomes of all accounts are found', async () => {
    const filters = [
      'sub_status',
      'code',
      'connection',
      'category',
      'brand',
      'country',
      'currency',
      'disputed',
      'succeeded_to',
    ];
    for (const filter of filters) {
      const { status, text } = await listed({ [filter]: 'X' });
      expect([status, text], filter).toEqual([400, expect.stringContaining(`${filter}: needs an account`)]);
    }
    await tables.query(
      "UPDATE transaction SET status = 'PENDING', check_at = now() + interval '1 day' WHERE payment_id = $1",
      [twice[0].id],
    );
    const found = [await listed({ unknown: '1' }), await listed({ unknown: '1', account: ACCOUNT_ONE })];
    const overview = await (await operator.get('')).text();
    await tables.query("UPDATE transaction SET status = 'SUCCEEDED', check_at = NULL WHERE payment_id = $1", [
      twice[0].id,
    ]);
    expect(found.map(({ text }) => idsOf(text))).toEqual([[twice[0].id], [twice[0].id]]);
    expect(overview).toContain('<a href="/dashboard/payments?unknown=1">1</a>');
    const links = [...overview.matchAll(/href="\/dashboard(\/payments\?[^"]+)"/g)].map(([, url = '']) =>
      url.replaceAll('&#38;', '&'),
    );
    expect(links.filter((url) => /code=|country=|brand=|connection=/.test(url)).length).toBeGreaterThan(3);
    for (const url of links) {
      const response = await operator.get(`${url}&account=${ACCOUNT_ONE}`);
      expect([response.status, url]).toEqual([200, url]);
      if (!url.includes('unknown')) expect(idsOf(await response.text()).length).toBeGreaterThan(0);
    }
  });
});
