import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core';
import { expect } from 'vitest';

// biome-ignore lint/suspicious/noExplicitAny: the code runs in the browser, whose types are unavailable here.
export type InPage = any;

/** A payer with their own browser window. */
export type Payer = Awaited<ReturnType<typeof createPayer>>;

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** A directory for screenshots of each step; none are made without it. */
const { SCREENSHOTS } = process.env;

/** Opens a window that shares nothing with other windows. Close it at the end. */
export async function createPayer(browser: Browser) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.setViewport({ width: 420, height: 900 });
  /** All requests of the pages. */
  const requests: { readonly url: string; readonly body: string }[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => requests.push({ url: request.url(), body: request.postData() ?? '' }));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (/security policy|violat/i.test(message.text())) complaints.push(message.text());
  });
  return {
    page,
    requests,
    ...formOf(page),
    ...waysOf(page),
    async picture(name: string): Promise<void> {
      if (!SCREENSHOTS) return;
      mkdirSync(SCREENSHOTS, { recursive: true });
      await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
    },
    /** Checks the current page against the rules of axe. */
    async expectAccessible(): Promise<void> {
      await page.evaluate(AXE);
      const found = await page.evaluate(async () => {
        const { violations } = await (globalThis as InPage).axe.run();
        return violations.map(({ id, nodes }: InPage) => `${id}: ${nodes.map((node: InPage) => node.html)}`);
      });
      expect(found).toEqual([]);
    },
    async close(): Promise<void> {
      await context.close();
      expect(complaints).toEqual([]);
    },
  };
}

/** The form of the checkout page. */
function formOf(page: Page) {
  return {
    async fillCard(number: string): Promise<void> {
      const values = { number, expiry: '1230', 'code-0': '123', holder: 'ANA GOMEZ' };
      for (const [id, text] of Object.entries(values)) {
        await page.$eval(`#${id}`, (input: InPage) => {
          input.value = '';
        });
        await page.type(`#${id}`, text);
      }
    },
    /** Chooses a method by its name. */
    async choose(name: string): Promise<void> {
      for (const label of await page.$$('.choice')) {
        if ((await label.evaluate((one) => one.textContent)) === name) return label.click();
      }
      throw new Error(`no method is called ${name}`);
    },
    press: () => page.click('#pay button'),
  };
}

/** Functions to read pages and move between them. */
function waysOf(page: Page) {
  return {
    textOf: (selector: string) => page.$eval(selector, (one) => one.textContent),
    /** Waits for a visible string. */
    async shown(selector: string, text: RegExp): Promise<void> {
      const isShown = (at: string, pattern: string) => {
        const found = (globalThis as InPage).document.querySelector(at);
        return (
          found?.checkVisibility({ visibilityProperty: true }) && new RegExp(pattern).test(found.textContent)
        );
      };
      await page.waitForFunction(isShown, { timeout: 60_000 }, selector, text.source);
    },
    async follow(selector: string): Promise<void> {
      await Promise.all([page.waitForNavigation(), page.click(selector)]);
    },
    /** Presses a button that leads to another page. */
    async pressButton(label: RegExp): Promise<void> {
      for (const button of await page.$$('button')) {
        if (!label.test((await button.evaluate((one) => one.textContent)) ?? '')) continue;
        await Promise.all([page.waitForNavigation(), button.click()]);
        return;
      }
      throw new Error(`no button reads ${label}`);
    },
    /** Waits until the payer is back, through pages of the provider and the service. */
    async cameBack(): Promise<void> {
      await page.waitForFunction("location.pathname.startsWith('/checkout/')");
    },
  };
}
