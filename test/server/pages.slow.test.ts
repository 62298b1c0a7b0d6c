import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startBrowser } from '../support/browser.ts';
import { onService, server } from '../support/on-service.ts';
import { startTestServer } from '../support/server.ts';

let browser: Browser;

onService();
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser?.close());

/** Opens a page, and records the browser's errors and every requested host. */
async function open(path: string): Promise<{ page: Page; complaints: string[]; hosts: Set<string> }> {
  const page = await browser.newPage();
  await page.setViewport({ width: 1400, height: 1000 });
  const complaints: string[] = [];
  const hosts = new Set<string>();
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warn') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith('data:')) hosts.add(new URL(request.url()).host);
  });
  await page.goto(server.url + path, { waitUntil: 'networkidle0' });
  return { page, complaints, hosts };
}

async function clickButton(page: Page, text: string): Promise<void> {
  const button = await page.waitForSelector(
    `::-p-xpath(//button[starts-with(normalize-space(.), '${text}')])`,
  );
  await button?.click();
}

it('the API reference shows every service, and can make a sandbox payment with prefilled keys', async () => {
  const { page, complaints, hosts } = await open('/docs#tag/payments/POST/v1/payments');
  await page.waitForSelector('a[href*="POST/v1/payments"]');
  const tags = await page.$$eval('a[href^="#tag/"]', (links) =>
    links.map((link) => link.textContent?.trim()),
  );
  for (const tag of ['Payments', 'Webhooks', 'Operators']) expect(tags.join()).toContain(tag);
  await page.click('a[href$="#tag/payments/POST/v1/payments"]');
  await clickButton(page, 'Test Request');
  const send = async (button: string) => {
    const [response] = await Promise.all([
      page.waitForResponse((one) => one.url().endsWith('/v1/payments') && one.request().method() === 'POST'),
      clickButton(page, button),
    ]);
    expect(response.status()).toBe(201);
    expect(response.headers()['idempotent-replayed']).toBeUndefined();
    return (await response.json()) as { id: string; status: string };
  };
  const first = await send('Send Request');
  expect(first.status).toBe('SUCCEEDED');
  await page.waitForFunction("document.body.innerText.includes('201 Created')");
  // Each call has its own key. After a response, the button has a longer label for screen readers.
  expect((await send('SendSend post request')).id).not.toBe(first.id);
  await page.waitForFunction("document.body.innerText.includes('201 Created')");
  expect(complaints).toEqual([]);
  expect([...hosts]).toEqual([new URL(server.url).host]);
});

it('the home page links to everything that is served, and lists the contents of the sandbox', async () => {
  const { page, complaints } = await open('/');
  const links = await page.$$eval('.links a', (all) => all.map((link) => link.getAttribute('href') ?? ''));
  expect(links).toEqual(expect.arrayContaining(['/docs', '/openapi.json', '/readyz', '/metrics']));
  for (const link of links) expect((await fetch(server.url + link)).status).toBe(200);
  const text = await page.$eval('main', (main) => main.textContent);
  expect(text).toContain('pk_sandbox_one');
  expect(text).toContain('op_sandbox');
  expect(text).toContain('4000000000000002DO_NOT_HONOR');
  expect(text).toContain(`curl -s ${server.url}/v1/payments`);
  expect(complaints).toEqual([]);
});

it('the pages fit a phone', async () => {
  const { page } = await open('/');
  await page.setViewport({ width: 360, height: 740 });
  const width = await page.evaluate('document.documentElement.scrollWidth');
  expect(width).toBeLessThanOrEqual(360);
});

it('the API reference shows every call in TypeScript and Python, and links to the guides', async () => {
  const { page } = await open('/docs');
  await page.waitForSelector('a[href*="POST/v1/payments"]');
  const links = await page.$$eval('a[href^="/docs/"]', (all) => all.map((link) => link.getAttribute('href')));
  expect(links).toEqual(
    expect.arrayContaining(['/docs/errors', '/docs/webhooks', '/docs/retries', '/docs/limits']),
  );
  const text = () => page.evaluate('document.body.innerText') as Promise<string>;
  await page.goto(`${server.url}/docs#tag/payments/POST/v1/payments`, { waitUntil: 'networkidle0' });
  await page.waitForFunction("document.body.innerText.includes('TypeScript client')");
  expect(await text()).toContain('createPaymentsClient');
});

it.each([
  ['errors', 'Errors'],
  ['webhooks', 'Webhooks'],
  ['retries', 'Retries and promises'],
  ['limits', 'Limits'],
])('the guide /docs/%s fits a phone, and all its links work', async (name, title) => {
  const { page, complaints } = await open(`/docs/${name}`);
  await page.setViewport({ width: 360, height: 740 });
  expect(await page.$eval('h1', (heading) => heading.textContent)).toBe(title);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  const addresses = await page.$$eval('a', (all) => all.map(({ href }) => href));
  expect(addresses.length).toBeGreaterThan(4);
  for (const address of addresses.filter((one) => one.startsWith(server.url))) {
    const { pathname, hash } = new URL(address);
    const response = await fetch(server.url + pathname);
    expect([address, response.status]).toEqual([address, 200]);
    if (hash) expect(await response.text()).toContain(`id="${hash.slice(1)}"`);
  }
  expect(complaints).toEqual([]);
  await page.close();
});

it.each([
  ['/dashboard/nothing', 404, 'There is no such page'],
  ['/dashboard/payments/a/b/c?d=e', 404, 'There is no such page'],
  ['/checkout', 404, 'There is no such payment'],
  ['/checkout/5e55/now', 404, 'There is no such payment'],
  [`/checkout/${'x'.repeat(300)}`, 404, 'There is no such payment'],
  ['/checkout/%zz', 400, 'There is no such payment'],
])('a browser at the unknown URL %s gets a page that fits a phone', async (path, status, title) => {
  const page = await browser.newPage();
  await page.setViewport({ width: 360, height: 740 });
  const response = await page.goto(server.url + path);
  expect([response?.status(), response?.headers()['content-type']]).toEqual([
    status,
    'text/html; charset=utf-8',
  ]);
  expect(await page.$eval('h1', (heading) => heading.textContent)).toBe(title);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  await page.close();
  const asProgram = await fetch(server.url + path, { headers: { accept: 'application/json' } });
  expect([asProgram.status, asProgram.headers.get('content-type')]).toEqual([
    status,
    'application/problem+json',
  ]);
});

it('an unknown URL under /checkout is explained in the payer’s language', async () => {
  const response = await fetch(`${server.url}/checkout/`, { headers: { 'accept-language': 'pt-BR' } });
  expect(await response.text()).toContain('<html lang="pt">');
});

it('the tables of the home page do not scroll sideways on a phone', async () => {
  const { page } = await open('/');
  await page.setViewport({ width: 320, height: 740 });
  const hidden = await page.$$eval('.box:has(table)', (boxes) =>
    boxes.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth),
  );
  expect(hidden).toEqual([0, 0]);
});

it('the OpenAPI document is served as committed, compressed, and with an ETag for repeated reads', async () => {
  const url = `${server.url}/openapi.json`;
  const first = await fetch(url, { headers: { 'accept-encoding': 'gzip' } });
  expect([first.status, first.headers.get('content-encoding')]).toEqual([200, 'gzip']);
  expect(first.headers.get('content-type')).toBe('application/json');
  expect(await first.text()).toBe(readFileSync('gen/openapi.json', 'utf8'));
  const etag = first.headers.get('etag') ?? '';
  const again = await fetch(url, { headers: { 'if-none-match': etag } });
  expect([again.status, await again.text()]).toEqual([304, '']);
  // Compressed and plain bytes share the ETag, so it is weak (RFC 9110, section 8.8.1).
  expect(etag).toMatch(/^W\/"/);
  const plain = await fetch(url, { headers: { 'accept-encoding': 'gzip;q=0' } });
  expect([plain.headers.get('content-encoding'), (await plain.text()).length > 0]).toEqual([null, true]);
});

it('pages load nothing from other origins, and cannot be framed', async () => {
  for (const path of ['/', '/docs', '/docs/errors']) {
    const policy = (await fetch(server.url + path)).headers.get('content-security-policy') ?? '';
    for (const part of [
      "default-src 'none'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "form-action 'none'",
    ])
      expect(policy).toContain(part);
    expect(policy.replace(/style-src [^;]*/, '')).not.toMatch(/unsafe-inline|unsafe-eval|https?:|\*/);
  }
});

it('pages that are turned off are not found, and no page links to them', async () => {
  const { url, close } = await startTestServer({ config: { docs: false } });
  for (const path of ['/docs', '/docs/errors', '/docs/viewer.js', '/docs/start.js', '/openapi.json']) {
    expect([path, (await fetch(url + path)).status]).toEqual([path, 404]);
  }
  const home = await (await fetch(`${url}/`)).text();
  expect(home).toContain('/readyz');
  expect(home).not.toMatch(/docs|openapi/);
  await close();
});

it("a service with its own database does not show the sandbox's keys", async () => {
  const config = { homePage: false, databaseUrl: 'postgres://elsewhere/payments' };
  const { url, close } = await startTestServer({ config });
  expect((await fetch(`${url}/`)).status).toBe(404);
  const start = await (await fetch(`${url}/docs/start.js`)).text();
  expect(start).toContain('Scalar.createApiReference');
  expect(start).not.toContain('sandbox');
  await close();
});
