import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { decodeRecord, encodeRecord } from '#src/payments/stored-record.ts';
import { writeRecentTotals } from '#src/server/write-totals.ts';
import { startBrowser } from '../support/browser.ts';
import {
  enter,
  fillTexts,
  HOSTILE,
  type Merchant,
  merchantOne,
  type Operator,
  PAGES,
  pathOf,
  signIn,
} from '../support/dashboard.ts';
import { openTestDatabase } from '../support/database.ts';
import { onService, server, tables } from '../support/on-service.ts';
import type { InPage } from '../support/payer.ts';
import { ACCOUNT_ONE, cardPayment, withField } from '../support/payment-requests.ts';
import {
  payoutLine,
  reportLine,
  sandboxReport,
  sendReport,
  uploadReport,
} from '../support/settlement-reports.ts';
import { type Site, startSite } from '../support/site.ts';

let browser: Browser;
let operator: Operator;
let merchant: Merchant;
/** Starts another site, with an attacker's page. */
const showForm: RequestListener = (request, response) => {
  const { searchParams } = new URL(request.url ?? '', 'http://elsewhere');
  response.setHeader('content-type', 'text/html');
  const fields = [...searchParams].map(([name, value]) => `<input name="${name}" value="${value}">`);
  response.end(`<!doctype html><title>x</title><form method=post action="${searchParams.get('to')}">${fields}</form>
    <a href="${searchParams.get('to')}">a link</a>`);
};
let elsewhere: Site;
let elsewhereUrl: string;

onService();
/** Makes payments of several outcomes, and counts them for the figures. */
async function fillFigures(): Promise<void> {
  await merchant.pay();
  await merchant.payByPix();
  const number = 'payment_method.detail.card.card_data.number';
  await merchant.call('/v1/payments', withField(cardPayment(), number, '4000000000000002'));
  const database = openTestDatabase(server.databaseUrl, 1);
  await writeRecentTotals(database, new Date());
  await database.close();
}
beforeAll(async () => {
  elsewhere = await startSite(showForm);
  // Uses another host name, so that the browser treats it as another site.
  elsewhereUrl = elsewhere.url.replace('127.0.0.1', 'localhost');
  browser = await startBrowser();
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  merchant = merchantOne(server);
});
afterAll(async () => {
  await browser?.close();
  elsewhere?.close();
});

/** Makes a webhook with a delivery. @returns the path of its page. */
async function deliveredWebhook(): Promise<string> {
  const { id } = await merchant.call('/v1/webhooks', { url: elsewhere.url, events: ['payment.refund'] });
  await merchant.call(`/v1/webhooks/${id}/test`, {});
  return `/webhooks/${ACCOUNT_ONE}/${id}`;
}

/** Imports a report with differences. @returns the paths of the differences, of its payout and of a payment in it. */
async function settled(text = 'x'): Promise<string[]> {
  const [good, short] = [await merchant.pay(), await merchant.pay()];
  const payout = `po_${good.id}`;
  const { status } = await uploadReport(
    server,
    operator,
    sandboxReport(
      reportLine(good.transactions.id, { payout }),
      reportLine(short.transactions.id, { payout, amount: '9.00', gross: '9.00', net: '8.50' }),
      reportLine('', { payout, operation: text.replaceAll('"', '') }),
      payoutLine('-1234567.89', { payout }),
    ),
    { name: `${text}.csv` },
  );
  expect(status).toBe(303);
  const page = (await (await operator.get('/settlement')).text()).replaceAll('&#38;', '&');
  const address = page.match(/\/settlement\/payout\?[^"]+/g)?.find((one) => one.includes(payout)) ?? '';
  return ['/settlement', '/settlement?state=resolved', address, pathOf(good)];
}

// biome-ignore lint/suspicious/noExplicitAny: the JSON record that a merchant gets.
type Record = any;

/** Runs work with a page in a fresh browser context. */
async function fresh<T>(use: (page: Page) => Promise<T>): Promise<T> {
  const context = await browser.createBrowserContext();
  try {
    return await use(await context.newPage());
  } finally {
    await context.close();
  }
}

/** Opens the section that contains a button, and clicks the button the given number of times. */
async function press(page: Page, name: string, times = 1): Promise<void> {
  const [button] = await page.$$(`xpath/.//button[normalize-space()='${name}']`);
  if (!button) throw new Error(`no button reads ${name}`);
  const closed = await button.$('xpath/./ancestor::details[not(@open)]/summary');
  await closed?.click();
  await Promise.all([page.waitForNavigation(), button.click({ count: times })]);
}

describe('dashboard sessions in the browser', () => {
  it('signing out ends the session in the database, and going back shows nothing', async () => {
    const paid = await merchant.pay({ merchant_order_id: 'seen-before' });
    await fresh(async (page) => {
      await enter(page, server, SANDBOX_OPERATOR_KEY);
      await page.goto(`${server.url}/dashboard${pathOf(paid)}`);
      const [cookie] = await page.browserContext().cookies();
      expect(cookie).toMatchObject({ name: 'operator', httpOnly: true, sameSite: 'Strict', session: true });
      await press(page, 'Sign out');
      await page.goBack();
      expect(await page.content()).not.toContain('seen-before');
      const stolen = await operator.get('', { cookie: `operator=${cookie?.value}` });
      expect(stolen.status).toBe(303);
    });
  });
});

describe('forms on other sites', () => {
  it('a form on another site is refused, even if the browser is signed in', async () => {
    const paid = await merchant.pay();
    await fresh(async (page) => {
      await enter(page, server, SANDBOX_OPERATOR_KEY);
      const to = `${server.url}/dashboard${pathOf(paid)}/refund`;
      await page.goto(`${elsewhereUrl}/?${new URLSearchParams({ to, amount: '1.00', key: 'stolen' })}`);
      const [answer] = await Promise.all([
        page.waitForNavigation(),
        page.$eval('form', (form) => form.submit()),
      ]);
      expect(answer?.status()).toBe(403);
      // A link from the other site works only after a click on our own page.
      await page.goto(`${elsewhereUrl}/?${new URLSearchParams({ to: `${server.url}/dashboard/payments` })}`);
      await Promise.all([page.waitForNavigation(), page.click('a')]);
      await Promise.all([page.waitForNavigation(), page.click('a.button')]);
      expect(await page.title()).toBe('Payments · Payments');
    });
    expect(await merchant.refundsOf(paid)).toEqual([]);
  });
});

describe('actions in the browser', () => {
  it('a capture, cancel or refund is made once, however often its button is clicked, and is audited', async () => {
    const held = await merchant.authorize();
    await fresh(async (page) => {
      await enter(page, server, SANDBOX_OPERATOR_KEY);
      await page.goto(`${server.url}/dashboard${pathOf(held)}`);
      await page.$eval('#capture-amount', (input) => (input.value = '6.00'));
      await press(page, 'Capture', 2);
      await page.$eval('#refund-amount', (input) => (input.value = '2.50'));
      // Even without scripts, where a second click sends the form again.
      await page.setJavaScriptEnabled(false);
      await press(page, 'Refund', 2);
      await press(page, 'Cancel');
      expect(await page.$eval('[role=status]', (one) => one.textContent)).toContain('cancel');
    });
    const after = await merchant.call(`/v1/payments/${held.id}`);
    const history = after.transactions_history.map(({ type, status, amount }: Record) => [
      type,
      status,
      amount,
    ]);
    expect(history.slice(1)).toEqual([
      ['CAPTURE', 'SUCCEEDED', 6],
      ['REFUND', 'SUCCEEDED', 2.5],
      ['CANCEL', 'SUCCEEDED', 4],
    ]);
    const audited = await tables.query(
      'SELECT DISTINCT action FROM audit_log WHERE account_id = $1 AND subject = $2 AND actor LIKE $3 ORDER BY 1',
      [ACCOUNT_ONE, held.id, 'operator-% from 127.0.0.1'],
    );
    expect(audited.map(({ action }) => action)).toEqual(['cancel', 'capture', 'refund']);
  });
});

describe('hostile text in the browser', () => {
  it('hostile text appears as plain text on every page, and no page shows a card number', async () => {
    const hook = { url: 'http://127.0.0.1:1/hook', events: ['payment.purchase'], description: HOSTILE };
    const { id } = await merchant.call('/v1/webhooks', hook);
    const paid = await merchant.pay();
    const deliveries = () => tables.query('SELECT FROM delivery');
    await expect.poll(deliveries).toHaveLength(1);
    await tables.query('UPDATE account SET name = $1 WHERE id = $2', [HOSTILE, ACCOUNT_ONE]);
    await tables.query('UPDATE webhook SET url = $1, failing_since = now()', [`https://x/${HOSTILE}`]);
    await tables.query('UPDATE delivery SET error = $1, response_status = 500', [HOSTILE]);
    await tables.query('UPDATE payment SET idempotency_key = $1 WHERE id = $2', [HOSTILE, paid.id]);
    await tables.query('UPDATE transaction SET reference = $1 WHERE payment_id = $2', [HOSTILE, paid.id]);
    const pix = await merchant.payByPix();
    await fillRecord(paid.id, HOSTILE + 'x'.repeat(100_000));
    await fillRecord(pix.id, `https://x/${HOSTILE}`);
    await operator.post(`${pathOf(paid)}/refund`, { amount: HOSTILE, key: HOSTILE, reason: HOSTILE });

    const settlement = await settled(HOSTILE);
    await tables.query('UPDATE settlement_difference SET note = $1, resolved_by = $1', [HOSTILE]);
    await tables.query('UPDATE settlement_line SET raw_kind = $1, provider_reference = $1', [HOSTILE]);
    const requested: string[] = [];
    await fresh(async (page) => {
      page.on('request', (request) => {
        const { protocol, pathname } = new URL(request.url());
        // The browser draws form controls with data: images.
        if (protocol !== 'data:' && !pathname.startsWith('/dashboard')) requested.push(pathname);
      });
      page.on('dialog', (dialog) => {
        requested.push('a script ran');
        void dialog.dismiss();
      });
      page.on('console', (message) => {
        if (message.text().includes('Content Security Policy')) requested.push(message.text());
      });
      await enter(page, server, SANDBOX_OPERATOR_KEY);
      const search = `/payments?${new URLSearchParams({ text: HOSTILE, by: HOSTILE, account: HOSTILE, page: HOSTILE })}`;
      for (const path of [
        ...PAGES,
        pathOf(paid),
        pathOf(pix),
        `/webhooks/${ACCOUNT_ONE}/${id}`,
        search,
        `/audit?account=${ACCOUNT_ONE}`,
        `${pathOf(paid)}?did=${HOSTILE}`,
        ...settlement,
        `/settlement?${new URLSearchParams({ connection: HOSTILE, kind: HOSTILE, did: HOSTILE, before: HOSTILE })}`,
        `/settlement/payout?${new URLSearchParams({ at: HOSTILE, payout: HOSTILE, after: HOSTILE })}`,
      ]) {
        const response = await page.goto(`${server.url}/dashboard${path}`);
        const text = (await response?.text()) ?? '';
        expect([path, text.length < 1_000_000, text.includes('<img')]).toEqual([path, true, false]);
        expect(
          await page.$$eval(
            'img, iframe, object, script:not([src]), [onload], [onerror], [style]',
            (all) => all.length,
          ),
        ).toBe(0);
        expect(text).not.toContain('4012888888881881');
      }
      await page.goto(`${server.url}/dashboard${pathOf(paid)}`);
      expect(await page.$eval('main', (main) => main.textContent)).toContain(HOSTILE);
    });
    expect(requested).toEqual([]);
  });
});

/** Replaces every text of a payment's record. */
async function fillRecord(id: string, text: string): Promise<void> {
  const [row] = await tables.query('SELECT record FROM payment WHERE id = $1', [id]);
  const record = decodeRecord(row?.record as Buffer);
  fillTexts(PaymentSchema, record, text, new Set(['id', 'account_id', 'currency', 'split']));
  await tables.query('UPDATE payment SET record = $1 WHERE id = $2', [encodeRecord(record), id]);
}

describe('a report in the browser', () => {
  it('without scripts, a report is chosen, imported, and its difference resolved', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'payments-report-'));
    const report = join(directory, 'of-a-browser.csv');
    writeFileSync(report, sandboxReport(reportLine('', { operation: 'ch_of_a_browser', payout: '' })));
    await fresh(async (page) => {
      await page.setJavaScriptEnabled(false);
      await enter(page, server, SANDBOX_OPERATOR_KEY);
      await page.goto(`${server.url}/dashboard/settlement`);
      await page.select('#report-of', 'sandbox-one');
      const [chooser] = await Promise.all([page.waitForFileChooser(), page.click('#report')]);
      await chooser.accept([report]);
      await press(page, 'Import');
      const done = await page.waitForSelector("xpath/.//p[contains(., 'of the new lines, 0 matched')]");
      expect(await done?.evaluate((one) => one.textContent)).toContain(
        'Imported of-a-browser.csv: 1 new, 0 repeated',
      );
      const row = "xpath/.//tr[contains(., 'ch_of_a_browser')]";
      const found = async () => (await page.$$(row)).length;
      expect(await found()).toBe(1);
      await (await page.$(`${row}//summary`))?.click();
      await (await page.$(`${row}//textarea`))?.type('it was a test');
      const button = await page.$(`${row}//button`);
      await Promise.all([page.waitForNavigation(), button?.click()]);
      expect(await found()).toBe(0);
      await page.goto(`${server.url}/dashboard/settlement?state=resolved`);
      expect(await page.$eval('main', (main) => main.textContent)).toContain('it was a test');
    });
    rmSync(directory, { recursive: true });
  });

  it.each([true, false])(
    'the page of a report follows the matching of its lines (scripts: %s)',
    async (hasScripts) => {
      await fresh(async (page) => {
        await enter(page, server, SANDBOX_OPERATOR_KEY);
        await page.setJavaScriptEnabled(hasScripts);
        await tables.query('BEGIN');
        await tables.query('LOCK TABLE settlement_difference IN EXCLUSIVE MODE');
        const { headers } = await sendReport(server, operator, sandboxReport(reportLine('', { payout: '' })));
        await page.goto(server.url + headers.get('location'));
        const text = () => page.$eval('main', (main) => main.textContent);
        expect(await text()).toContain('1 new, 0 repeated; matching: 0 of 1 lines.');
        await tables.query('COMMIT');
        await page.waitForSelector("xpath/.//p[contains(., 'of the new lines, 0 matched, 1 of unknown')]");
        expect(await text()).not.toContain('matching: ');
        expect(await page.$$('form.card')).not.toEqual([]);
      });
    },
  );
});

it('axe finds no fault on any page, in light and dark, on a desktop and on a phone', async () => {
  await fillFigures();
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const [held, webhookPath] = [await merchant.authorize(), await deliveredWebhook()];
  const pix = await merchant.payByPix();
  const settlement = await settled();
  await fresh(async (page) => {
    await enter(page, server, SANDBOX_OPERATOR_KEY);
    for (const [scheme, width] of [
      ['light', 1280],
      ['dark', 390],
    ] as const) {
      await page.setViewport({ width, height: 800 });
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      for (const path of [
        ...PAGES,
        pathOf(held),
        pathOf(pix),
        webhookPath,
        ...settlement,
        '/export?difference_kind=late',
        '/payments?text=nothing',
        '/payments?page=wrong',
        '/payments/x/y',
      ]) {
        await page.goto(`${server.url}/dashboard${path}`);
        await page.evaluate(axe);
        const found = await page.evaluate(
          'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + " " + nodes[0].html))',
        );
        expect([scheme, path, found]).toEqual([scheme, path, []]);
        expect([path, await page.evaluate('document.documentElement.scrollWidth <= innerWidth')]).toEqual([
          path,
          true,
        ]);
      }
    }
  });
});

it('only figures scroll sideways on a phone of 360 px, and no field cuts off its content', async () => {
  await fillFigures();
  const held = await merchant.authorize();
  await operator.post(`${pathOf(held)}/capture`, { amount: '6.00', key: 'of-a-phone' });
  const webhookPath = await deliveredWebhook();
  const pix = await merchant.payByPix();
  const settlement = await settled();
  await fresh(async (page) => {
    await page.setViewport({ width: 360, height: 700 });
    await enter(page, server, SANDBOX_OPERATOR_KEY);
    for (const path of [
      ...[...PAGES, ...settlement, pathOf(held), pathOf(pix), webhookPath, `/audit?account=${ACCOUNT_ONE}`],
    ]) {
      await page.goto(`${server.url}/dashboard${path}`);
      const cut = await page.$$eval('body *', (all) =>
        all
          .filter((one: InPage) => {
            if (one.matches('select, svg, svg *, .skip, .numbers') || one.querySelector('.routes'))
              return false;
            if (one.type !== 'datetime-local')
              return one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1;
            const { offsetWidth: drawn, style } = one;
            style.width = 'max-content';
            const needed = one.offsetWidth;
            style.width = '';
            return needed > drawn;
          })
          .map((one: InPage) => one.outerHTML.slice(0, 100)),
      );
      expect([path, cut]).toEqual([path, []]);
    }
  });
});
