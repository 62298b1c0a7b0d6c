import { beforeAll, describe, expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { EXPORT_KINDS, FILTERS } from '#src/exports/export-request.ts';
import { merchantOne, type Operator, signIn } from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { readCsv } from '../support/read-csv.ts';

let operator: Operator;
let reader: Operator;

onService();
beforeAll(async () => {
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  reader = await signIn(server, 'op_sandbox_read');
  const merchant = merchantOne(server);
  for (const order of ['a', 'b']) await merchant.pay({ merchant_order_id: order });
  const at = "'2026-09-30T20:00:30-05:00'";
  await tables.query(`UPDATE transaction SET succeeded_at = ${at}`);
  await tables.query(`UPDATE payment SET created_at = ${at}`);
});

/** Returns the links and the buttons of a page to files. */
const hrefs = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, href = '']) => href.replaceAll('&#38;', '&'));

describe('the exports of the dashboard', () => {
  it('the search leads to the form, which has its filters and its period', async () => {
    const query = {
      text: 'a',
      by: 'order',
      account: ACCOUNT_ONE,
      from: '2026-10-01T00:00',
      to: '2026-10-01T01:00',
    };
    const found = await (await operator.get(`/payments?${new URLSearchParams(query)}`)).text();
    const [link = ''] = hrefs(found, /href="\/dashboard(\/export\?[^"]+)"/g);
    const page = await operator.get(link);
    const text = await page.text();
    expect(page.status).toBe(200);
    for (const field of [
      'name="merchant_order_id" value="a"',
      'name="from" type="datetime-local" value="2026-10-01T00:00"',
    ]) {
      expect(text).toContain(field);
    }
    expect(text).toContain('name="before" type="datetime-local" value="2026-10-01T01:01"');
    const files = hrefs(text, /formaction="\/dashboard([^"]+)"/g);
    const kinds = ['movements', 'transactions', 'payments', 'disputes', 'settlement', 'differences'];
    expect(files).toEqual(kinds.map((kind) => `/export/${kind}.csv`));
    for (const file of files.slice(0, 3)) {
      const response = await reader.get(
        `${file}?${new URLSearchParams(link.split('?')[1])}&zone=&separator=`,
      );
      expect(response.headers.get('content-disposition')).toContain('2026-10-01-2026-10-01T010100-UTC.csv');
      expect(readCsv(await response.text())).toMatchObject([{ merchant_order_id: 'a' }]);
    }
  });

  it('the form has every filter that a search leads to it with', async () => {
    const query = {
      ...{
        by: 'customer',
        text: ACCOUNT_ONE,
        status: 'SUCCEEDED',
        method: 'CARD',
        account: ACCOUNT_ONE,
        connection: 'a',
      },
      ...{
        brand: 'VISA',
        country: 'US',
        currency: 'JPY',
        from: '2026-10-01T00:00',
        to: '2026-10-01T01:00',
        zone: 'UTC',
      },
    };
    const found = await (await operator.get(`/payments?${new URLSearchParams(query)}`)).text();
    const [link = ''] = hrefs(found, /href="\/dashboard(\/export\?[^"]+)"/g);
    const form = await (await operator.get(link)).text();
    const given = [...new URLSearchParams(link.split('?')[1])];
    expect(given).toHaveLength(11);
    for (const [name, value] of given) {
      const [field = ''] = new RegExp(`<(input|select)[^>]* name="${name}"[^]*?(</div>)`).exec(form) ?? [];
      expect([name, field]).toEqual([
        name,
        expect.stringMatching(new RegExp(`value="${value}"( selected|[^>]*>)`)),
      ]);
    }
  });

  it.each(EXPORT_KINDS)('the form has a field for every filter of %s.csv, which takes it', async (kind) => {
    const query: Record<string, string> = { month: '2026-09' };
    for (const [name, values] of Object.entries(FILTERS[kind])) {
      query[name] = values?.values().next().value ?? (name === 'customer_id' ? ACCOUNT_ONE : 'CARD');
    }
    const form = await (await operator.get(`/export?${new URLSearchParams(query)}`)).text();
    for (const [name, value] of Object.entries(query)) {
      const field = new RegExp(
        `<label for="${name}">[^<]+</label><(input|select) id="${name}" name="${name}"[^]*?</div>`,
      );
      expect(field.exec(form)?.[0]).toMatch(new RegExp(`value="${value}"( selected|[^>]*>)`));
    }
    const file = await operator.get(`/export/${kind}.csv?${new URLSearchParams(query)}`);
    expect([file.status, readCsv(await file.text())]).toEqual([200, []]);
  });

  it('the form proposes the month that is over, and a search that no file can have leads nowhere', async () => {
    const month = /name="month" type="month" value="(\d{4}-\d\d)"/.exec(
      await (await operator.get('/export')).text(),
    );
    expect(Date.parse(`${month?.[1]}-01`)).toBeLessThan(Date.now() - 28 * 86_400_000);
    expect(await (await operator.get('/payments?text=x&by=reference')).text()).not.toContain(
      '/dashboard/export?',
    );
  });

  it('the zone decides the month, and the page shows the rows and sums of the last files', async () => {
    const query = `month=2026-09&zone=America/Bogota&account_id=${ACCOUNT_ONE}`;
    const text = await (await operator.get(`/export/movements.csv?${query}`)).text();
    expect(readCsv(text)).toHaveLength(2);
    expect(readCsv(await (await operator.get('/export/movements.csv?month=2026-09')).text())).toHaveLength(0);
    const page = await (await operator.get(`/export?account_id=${ACCOUNT_ONE}`)).text();
    expect(page).toContain('movements-2026-09-01-2026-10-01-America-Bogota.csv');
    expect(page).toContain('2 rows, USD 20.00');
  });

  it('personal data need a key that may act; a wrong field is told on a page; a session is needed', async () => {
    const query = 'month=2026-10&include=payer';
    expect((await reader.get(`/export/payments.csv?${query}`)).status).toBe(403);
    expect((await operator.get(`/export/payments.csv?${query}`)).status).toBe(200);
    expect(await (await reader.get('/export')).text()).not.toContain('name="include"');
    expect(await (await operator.get('/export')).text()).toContain('name="include"');
    const refused = await operator.get('/export/movements.csv?month=2026-10&status=SUCCEEDED');
    expect([refused.status, refused.headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8']);
    expect(await refused.text()).toContain('status: is not a parameter of this file');
    const nobody = await fetch(`${server.url}/dashboard/export/movements.csv?month=2026-10`, {
      redirect: 'manual',
    });
    expect([nobody.status, nobody.headers.get('location')]).toEqual([
      303,
      expect.stringContaining('/sign-in?next='),
    ]);
  });
});
