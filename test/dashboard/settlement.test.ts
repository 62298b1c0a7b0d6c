import { request as httpRequest } from 'node:http';
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { SANDBOX_OPERATOR_KEY, SANDBOX_OPERATOR_READ_KEY } from '#src/config.ts';
import { type Merchant, merchantOne, type Operator, pathOf, signIn } from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { readCsv } from '../support/read-csv.ts';
import {
  pageAfter,
  payoutLine,
  reportLine,
  sandboxReport,
  sendReport,
  uploadReport,
} from '../support/settlement-reports.ts';

onService();

let operator: Operator;
let reader: Operator;
let merchant: Merchant;
beforeAll(async () => {
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  reader = await signIn(server, SANDBOX_OPERATOR_READ_KEY);
  merchant = merchantOne(server);
});
beforeEach(() =>
  tables.query(
    'TRUNCATE settlement_file, settlement_line, settlement_match, settlement_difference, settlement_progress, settlement_coverage, audit_log',
  ),
);

const pay = async (over: object = {}) => {
  const payment = await merchant.pay({ amount: { currency: 'USD', value: 10 }, ...over });
  return { path: pathOf(payment), id: payment.id as string, transaction: payment.transactions.id as string };
};
const upload = (...rows: Record<string, string>[]) => uploadReport(server, operator, sandboxReport(...rows));
const textOf = async (path: string, by = operator) =>
  (await (await by.get(path)).text()).replaceAll('&#38;', '&').replaceAll('&#39;', "'");
/** Follows the redirect of a form. */
const followed = async (response: Response) => {
  expect(response.status).toBe(303);
  return textOf((response.headers.get('location') ?? '').replace('/dashboard', ''));
};
const files = () => tables.query('SELECT name FROM settlement_file');
const lines = () => tables.query('SELECT line_key FROM settlement_line');

describe('the upload of a report', () => {
  it('a report is imported and matched once, and its import is audited, listed and told', async () => {
    const { transaction } = await pay();
    const rows = [reportLine(transaction), reportLine(''), payoutLine('-9.41')];
    expect(await followed(await upload(...rows))).toContain(
      'Imported september.csv: 3 new, 0 repeated; of the new lines, 1 matched, 1 of unknown payments, 0 ambiguous.',
    );
    expect(await followed(await upload(...rows))).toContain('This file was imported before');
    expect(await lines()).toHaveLength(3);
    const page = await textOf('/settlement', reader);
    expect(page).toContain('september.csv</th>');
    expect(page).toContain('3 new lines</td>');
    const audited = await tables.query(
      "SELECT actor, subject FROM audit_log WHERE action = 'import-settlement'",
    );
    expect(audited).toEqual([
      { actor: expect.stringMatching(/^operator-.* from 127\.0\.0\.1$/), subject: 'september.csv' },
    ]);
  });

  it('the page comes as soon as the lines are stored, and says how many are matched until all are', async () => {
    const { transaction } = await pay();
    await tables.query('BEGIN');
    await tables.query('LOCK TABLE settlement_match IN EXCLUSIVE MODE');
    const response = await sendReport(
      server,
      operator,
      sandboxReport(reportLine(transaction), payoutLine('-9.50')),
    );
    const page = await pageAfter(response, reader.get);
    expect(page).toContain('Imported september.csv: 2 new, 0 repeated; matching: 0 of 2 lines.');
    expect(page).toMatch(/<noscript><meta http-equiv="refresh" content="2">.*<div data-live="2">/s);
    expect(page).not.toContain('<form class="card');
    const whole = await textOf('/settlement', reader);
    expect(whole).toContain('2 new lines; matching: 0 of 2</td>');
    expect(whole).not.toContain('http-equiv="refresh"');
    await tables.query('COMMIT');
    await expect
      .poll(() => pageAfter(response, reader.get))
      .toContain('2 new, 0 repeated; of the new lines, 1 matched');
    expect(await textOf('/settlement', reader)).not.toContain('matching: ');
  });

  it('reports of two connections that arrive at once are both matched, and two of one connection never mix', async () => {
    const { transaction } = await pay();
    const [one, two] = await Promise.all([
      uploadReport(server, operator, sandboxReport(reportLine(transaction))),
      uploadReport(server, operator, sandboxReport(reportLine(''), reportLine('')), {
        connection: 'sandbox-two',
      }),
    ]);
    expect(await followed(one)).toContain('1 new, 0 repeated; of the new lines, 1 matched');
    expect(await followed(two)).toContain(
      '2 new, 0 repeated; of the new lines, 0 matched, 2 of unknown payments',
    );
    const both = await Promise.all(
      [1, 2].map(() => uploadReport(server, operator, sandboxReport(reportLine(''), reportLine('')))),
    );
    const imported = both.filter(({ status }) => status === 303);
    expect(imported.length).toBeGreaterThan(0);
    for (const { status } of both) expect([303, 400]).toContain(status);
    for (const response of imported)
      expect(await followed(response)).toContain('2 new, 0 repeated; of the new lines, 0 matched, 2 of');
    expect(await lines()).toHaveLength(3 + 2 * imported.length);
  });

  it.each([
    ['a wrong amount', () => sandboxReport(reportLine('', { gross: '1.001' })), 'line 2, column gross'],
    ['another provider’s columns', () => 'a;b\r\n1;2\r\n', 'line 1: the report must have'],
    ['no text', () => new Uint8Array([0xff, 0xfe]), 'the file is not UTF-8 text'],
    ['nothing', () => '', 'choose a file'],
  ])('a report with %s is refused with its place, and nothing is stored', async (_name, report, place) => {
    const response = await uploadReport(server, operator, report());
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(
      `Nothing was imported: ${place === 'choose a file' ? '' : 'september.csv: '}${place}`,
    );
    expect([await files(), await lines()]).toEqual([[], []]);
  });

  it.each([
    ['of another session', { form_token: 'x' }, 403, 'the form belongs to another session'],
    ['with another connection', { connection: 'none' }, 400, 'choose a connection'],
    ['with a field too long', { more: 'x'.repeat(5_000) }, 400, 'the form cannot be read'],
    ['from another site', { headers: { 'sec-fetch-site': 'cross-site' } }, 403, 'sent by another site'],
  ])('a form %s is refused, and nothing is stored', async (_name, fields, status, text) => {
    const response = await uploadReport(server, operator, sandboxReport(reportLine('')), fields);
    expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(text)]);
    expect([await files(), await lines()]).toEqual([[], []]);
  });

  it('a form that is cut off, or has no boundary, is refused', async () => {
    const send = (body: string, type: string) =>
      fetch(`${server.url}/dashboard/settlement/import`, {
        method: 'POST',
        redirect: 'manual',
        headers: { 'sec-fetch-site': 'same-origin', cookie: operator.cookie, 'content-type': type },
        body,
      });
    const cut = '--x\r\ncontent-disposition: form-data; name="report"; filename="a.csv"\r\n\r\na,b';
    for (const response of [
      await send(cut, 'multipart/form-data; boundary=x'),
      await send(cut, 'multipart/form-data'),
      await send('--x--\r\n', 'multipart/form-data; boundary=x'),
    ]) {
      expect(response.status).toBeGreaterThanOrEqual(400);
      expect(response.status).toBeLessThan(404);
    }
    expect(await files()).toEqual([]);
  });

  it('an operator whose session has ended is led back to the page, and nothing is stored', async () => {
    const nobody = { ...operator, cookie: 'operator=ended' };
    const report = sandboxReport(reportLine(''));
    for (const sent of [
      await uploadReport(server, nobody, report),
      await operator.post('/settlement/resolve', {}, { 'sec-fetch-site': 'same-origin', cookie: 'x=1' }),
    ]) {
      expect([sent.status, sent.headers.get('location')]).toEqual([
        303,
        '/dashboard/sign-in?next=%2Fdashboard%2Fsettlement&unsent=1',
      ]);
    }
    expect(await files()).toEqual([]);
  });

  it('a key that only reads is refused before its body is sent, and has no form', async () => {
    expect(await textOf('/settlement', reader)).not.toContain('multipart/form-data');
    expect(await textOf('/settlement')).toContain('multipart/form-data');
    const response = await uploadReport(server, reader, sandboxReport(reportLine('')));
    expect([response.status, await response.text()]).toEqual([403, expect.stringContaining('read-only')]);
    expect(await files()).toEqual([]);
  });

  it('a report of more than 16 MiB is refused, whose limit the refusal names', async () => {
    const larger = await uploadReport(server, operator, new Uint8Array(16 * 1024 * 1024));
    expect([larger.status, await larger.text()]).toEqual([413, expect.stringContaining('16 MiB')]);
    expect(await files()).toEqual([]);
  });

  it('the process takes one larger body at a time, from the API and the dashboard together', async () => {
    const large = sandboxReport(...Array.from({ length: 3_000 }, () => reportLine('')));
    expect(large.length).toBeGreaterThan(256 * 1024);
    // The server has the head of this call, and waits for its body.
    const { hostname, port } = new URL(server.url);
    const waiting = httpRequest({
      ...{ hostname, port, path: '/v1/catalogue', method: 'PATCH' },
      headers: {
        'operator-key': SANDBOX_OPERATOR_KEY,
        'content-type': 'application/json',
        'content-length': 1_000_000,
      },
    });
    waiting.on('error', () => {});
    waiting.write('{');
    const metrics = async () => (await fetch(`${server.url}/metrics`)).text();
    await vi.waitFor(async () => expect(await metrics()).toMatch(/^calls_receiving 1$/m));
    const second = await uploadReport(server, operator, large);
    expect([second.status, second.headers.get('retry-after')]).toEqual([503, '30']);
    expect(await second.text()).toContain('nothing was imported');
    expect((await upload(reportLine(''))).status).toBe(303);
    waiting.destroy();
    await vi.waitFor(async () =>
      expect(await followed(await uploadReport(server, operator, large))).toContain('3,000 new'),
    );
    expect(await followed(await uploadReport(server, operator, large))).toContain('imported before');
  });
});

describe('the page of the differences', () => {
  it('differences are filtered by connection, kind and state, and link to their payments and payouts', async () => {
    const [good, short] = [await pay(), await pay()];
    await upload(
      reportLine(good.transaction),
      reportLine(short.transaction, { amount: '9.00', gross: '9.00', fee: '-0.56', net: '8.44' }),
      reportLine('', { operation: 'ch_unknown', payout: '' }),
      payoutLine('-16.85'),
    );
    const page = await textOf('/settlement', reader);
    for (const text of [
      '9.00 USD settled, here 10.00 USD',
      `/dashboard/payments/${ACCOUNT_ONE}/${short.id}`,
      "a payment with the provider's id ch_unknown",
      'its lines and the payout differ by 1.00 USD',
    ]) {
      expect(page).toContain(text);
    }
    expect(page).not.toContain(good.id);
    const payout = /href="\/dashboard(\/settlement\/payout\?[^"]+)"/.exec(page)?.[1] ?? '';
    expect(await textOf(payout)).toContain('Remainder USD 1.00: the lines and the payout do not add up.');
    const only = await textOf('/settlement?kind=unknown_line&connection=sandbox-one');
    expect(only).toContain('ch_unknown');
    expect(only).not.toContain('9.00 USD settled');
    expect(only).toContain('href="/dashboard/export?connection_id=sandbox-one"');
    const these = /href="\/dashboard(\/export\?[^"]+)">Export these/.exec(only)?.[1] ?? '';
    const form = await textOf(these);
    for (const value of ['unknown_line', 'OPEN'])
      expect(form).toContain(`<option value="${value}" selected>`);
    expect(form).toContain('name="connection_id" value="sandbox-one"');
    await tables.query("UPDATE settlement_difference SET opened_at = '2026-09-15T12:00:00Z'");
    const file = await textOf(`${these.replace('?', '/differences.csv?')}&month=2026-09`);
    expect(readCsv(file)).toMatchObject([{ difference_kind: 'unknown_line', difference_status: 'OPEN' }]);
    for (const none of ['connection=sandbox-two', 'kind=duplicate', 'state=resolved']) {
      expect(await textOf(`/settlement?${none}`)).toMatch(/No (open|resolved) difference/);
      expect(await textOf(`/settlement?${none}`)).not.toContain('ch_unknown');
    }
    expect(await textOf('')).toMatch(/>Differences<\/p><p class="value">3<\/p>/);
  });

  it('a payment that is settled against the record raises an alarm on the page and the overview', async () => {
    const { transaction } = await pay();
    await tables.query("UPDATE transaction SET status = 'DECLINED' WHERE id = $1", [transaction]);
    await upload(reportLine(transaction));
    const text = 'Providers settled payments that are not successful here: 1.';
    expect(await textOf('/settlement')).toContain(text);
    expect(await textOf('')).toContain(
      'Payments that providers settled, and that are not successful here: 1',
    );
    expect(await textOf('/settlement?kind=status_differs')).toContain('here PURCHASE is DECLINED');
  });

  const unknown = async () => {
    await upload(reportLine('', { movement: 'mv-x', operation: 'ch_x', payout: '' }));
    const [row] = await tables.query('SELECT connection_identity FROM settlement_difference');
    const identity = row?.connection_identity as string;
    const account = '00000000-0000-0000-0000-000000000000';
    return { account, identity, difference: 'unknown_line', subject: 'mv-x' };
  };

  it('a difference is resolved with a note and opened again, and both are audited', async () => {
    const named = await unknown();
    const page = await textOf('/settlement');
    for (const [name, value] of Object.entries(named))
      expect(page).toContain(`name="${name}" value="${value}"`);
    const decided = async (what: string, note: string) =>
      followed(await operator.post(`/settlement/${what}?connection=sandbox-one`, { ...named, note }));
    expect(await decided('resolve', 'an old <b>payment</b>')).toContain('The difference is resolved.');
    expect(await textOf('/settlement')).not.toContain('ch_x');
    const resolved = await textOf('/settlement?state=resolved', reader);
    expect(resolved).toContain('an old &#60;b&#62;payment&#60;/b&#62;');
    expect(resolved).toMatch(/Resolved <time[^>]*>[^<]*<\/time> by operator-/);
    expect(await decided('reopen', 'it was new')).toContain('The difference is open again.');
    expect(await textOf('/settlement')).toContain('ch_x');
    const audited = await tables.query(
      "SELECT action, detail FROM audit_log WHERE action LIKE 're%' ORDER BY id",
    );
    expect(audited).toEqual([
      { action: 'resolve-difference', detail: 'unknown_line: an old <b>payment</b>' },
      { action: 'reopen-difference', detail: 'unknown_line: it was new' },
    ]);
  });

  it.each([
    ['without a note', { note: '' }, 400, 'Nothing was done: say why.'],
    ['with a card number in its note', { note: 'paid with 4111 1111 1111 1111' }, 400, 'card number'],
    ['with a note of 901 characters', { note: 'x'.repeat(901) }, 400, 'at most 900 characters'],
    ['of another subject', { subject: 'mv-y' }, 404, 'there is no such difference'],
    ['of no account', { account: 'x' }, 404, 'there is no such difference'],
    ['without its token', { form_token: '' }, 403, 'the form belongs to another session'],
  ])('a decision %s is refused', async (_name, fields, status, text) => {
    const named = await unknown();
    const response = await operator.post('/settlement/resolve', { ...named, note: 'why', ...fields });
    expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(text)]);
    expect(await tables.query('SELECT resolved_at FROM settlement_difference')).toEqual([
      { resolved_at: null },
    ]);
  });

  it('a key that only reads sees no form, and can decide nothing', async () => {
    const named = await unknown();
    expect(await textOf('/settlement', reader)).not.toContain('<textarea');
    expect((await reader.post('/settlement/resolve', { ...named, note: 'x' })).status).toBe(403);
    expect(await tables.query('SELECT note FROM settlement_difference')).toEqual([{ note: '' }]);
  });
});

describe('the page of a payout', () => {
  it('it shows the lines, their sums by kind, the payout and the remainder, and pages beyond a hundred lines', async () => {
    const { transaction, id } = await pay();
    const many = Array.from({ length: 120 }, (_, n) =>
      reportLine('', {
        ...{ type: 'fee', gross: '0.00', amount: '0.00', fee: '-0.01', net: '-0.01', currency: 'USD' },
        created_at: `2026-09-30T11:00:${String(n % 60).padStart(2, '0')}Z`,
      }),
    );
    await upload(reportLine(transaction), ...many, payoutLine('-8.21'));
    const payment = await textOf(`/payments/${ACCOUNT_ONE}/${id}`);
    const path = /href="\/dashboard(\/settlement\/payout\?[^"]+)"/.exec(payment)?.[1] ?? '';
    const page = await textOf(path, reader);
    expect(page).toContain('Remainder USD 0.00: the lines and the payout add up.');
    expect(page).toContain(`href="/dashboard/payments/${transaction}"`);
    const toPayment = await operator.get(`/payments/${transaction}`);
    expect(toPayment.headers.get('location')).toBe(`/dashboard/payments/${ACCOUNT_ONE}/${id}`);
    const cells = (kind: string) =>
      (new RegExp(`<th scope="row">${kind}</th>(.*?)</tr>`).exec(page)?.[1] ?? '')
        .replaceAll(/<span.*?<\/span>|<[^>]+>/g, ' ')
        .trim()
        .split(/\s+/);
    expect(cells('payment')).toEqual(['1', '10.00', '-0.59', '0.00', '9.41']);
    expect(cells('all lines')).toEqual(['121', '10.00', '-1.79', '0.00', '8.21']);
    expect(cells('payout')).toEqual(['1', '-8.21', '0.00', '0.00', '-8.21']);
    const later = /href="\/dashboard(\/settlement\/payout\?[^"]+after=[^"]+)"/.exec(page)?.[1] ?? '';
    const rows = [page, await textOf(later)].map((text) => text.match(/<tr><td class="nowrap">/g)?.length);
    expect(rows).toEqual([100, 22]);
  });

  it('a payout without its own line says so, and an unknown one has no page', async () => {
    await upload(reportLine(''));
    const [row] = await tables.query('SELECT connection_identity FROM settlement_line');
    const at = row?.connection_identity as string;
    const page = await textOf(`/settlement/payout?${new URLSearchParams({ at, payout: 'po_1' })}`);
    expect(page).toContain('The payout’s own line was not imported yet.');
    const none = await operator.get(`/settlement/payout?${new URLSearchParams({ at, payout: 'po_2' })}`);
    expect(none.status).toBe(404);
  });
});

describe('the settlement of a payment', () => {
  it('its page shows gross, fee and net of each transaction, and when they were paid out', async () => {
    const { path, id, transaction } = await pay();
    await merchant.call(`/v1/payments/${id}/refund`, { amount: { currency: 'USD', value: 4 } });
    const { transactions_history: history } = await merchant.call(`/v1/payments/${id}`);
    expect(await textOf(path)).not.toContain('<h2>Settlement</h2>');
    const back = {
      type: 'refund',
      amount: '-4.00',
      gross: '-4.00',
      fee: '0.00',
      net: '-4.00',
      payout: 'po_2',
    };
    await upload(reportLine(transaction), payoutLine('-9.41'), reportLine(history[1].id, back));
    const page = await textOf(path);
    expect(page).toContain('<h2>Settlement</h2>');
    const cells = (type: string) =>
      (new RegExp(`<th scope="row">${type}</th>(.*?)</tr>`).exec(page)?.[1] ?? '').replaceAll(
        /<[^>]+>/g,
        ' ',
      );
    expect(cells('PURCHASE')).toMatch(
      /USD 10.00\s+Fee\s+USD -0.59\s+Net\s+USD 9.41\s+2026-10-02 08:00:00\s+in\s+po_1/,
    );
    expect(cells('REFUND')).toMatch(
      /USD -4.00\s+Fee\s+USD 0.00\s+Net\s+USD -4.00\s+In\s+po_2\s*, not reported as paid yet/,
    );
  });
});
