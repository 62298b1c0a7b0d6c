import { createHash } from 'node:crypto';
import type { Language } from './checkout-texts.ts';
import { escapeHtml } from './html.ts';

const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif;
    --text: #1c1e24; --quiet: #565b66; --line: #d9dce3; --card: #fff; --ground: #f3f4f7; }
  @media (prefers-color-scheme: dark) { :root {
    --text: #eceef2; --quiet: #a9afbb; --line: #3b404b; --card: #22252d; --ground: #15171c; } }
  body { margin: 0; min-height: 100svh; display: grid; place-items: center; padding: 1rem; box-sizing: border-box;
    color: var(--text); background: var(--ground); }
  main { width: 100%; max-width: 26rem; padding: 1.75rem; border-radius: 1rem; box-sizing: border-box;
    overflow-wrap: anywhere; background: var(--card); border: 1px solid var(--line); }
  h1 { margin: 0 0 .5rem; font-size: 1.3rem; }
  .amount { margin: 0 0 1rem; font-size: 1.8rem; font-weight: 700; font-variant-numeric: tabular-nums; }
  p { margin: 0 0 1rem; }
  .quiet { margin: 0; font-size: .85rem; color: var(--quiet); }`;

/** Headers of every page. They forbid scripts, foreign content, framing and caching. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

/** Content of a page, not yet escaped. */
export type Page = {
  readonly language: Language;
  readonly title: string;
  /** Amount formatted for the payer; '' if there is none. */
  readonly amount: string;
  readonly text: string;
  readonly small: string;
};

/** Renders a page for a payer. */
export function renderPage({ language, title, amount, text, small }: Page): string {
  const line = (tag: string, kind: string, content: string) =>
    content === '' ? '' : `<${tag}${kind && ` class="${kind}"`}>${escapeHtml(content)}</${tag}>`;
  return `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(title)}</title><style>${STYLE}</style></head><body><main>${line('h1', '', title)}${line('p', 'amount', amount)}${line('p', '', text)}${line('p', 'quiet', small)}</main></body></html>`;
}
