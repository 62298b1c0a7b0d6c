import { createHash } from 'node:crypto';
import { currencyDigits, formatMoney } from '#src/money.ts';

const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif;
    --text: light-dark(#1c1e24, #eceef2); --quiet: light-dark(#565b66, #a9afbb); --line: light-dark(#d9dce3, #3b404b);
    --accent: light-dark(#1a4fd0, #8db4ff); --on-accent: light-dark(#fff, #0a1a38); }
  * { box-sizing: border-box; }
  body { margin: 0; min-height: 100vh; min-height: 100svh; display: grid; place-items: center; padding: 1rem;
    color: var(--text); background: light-dark(#f3f4f7, #15171c); }
  main { width: 100%; max-width: 26rem; padding: 1.75rem; border-radius: 1rem; overflow-wrap: anywhere;
    background: light-dark(#fff, #22252d); border: 1px solid var(--line); }
  .brand { margin: 0 0 1.25rem; font-size: .8rem; font-weight: 600; letter-spacing: .04em; text-transform: uppercase;
    color: var(--quiet); }
  h1 { margin: 0; font-size: 1.15rem; font-weight: 600; }
  .amount { margin: .25rem 0 1.25rem; font-size: 2rem; line-height: 1.2; font-weight: 700;
    font-variant-numeric: tabular-nums; }
  p { margin: 0 0 1rem; }
  dl, table { width: 100%; margin: 0 0 1.25rem; }
  dt { font-size: .8rem; color: var(--quiet); }
  dd { margin: 0 0 .75rem; }
  table { border-collapse: collapse; }
  caption { padding-bottom: .4rem; text-align: left; font-size: .8rem; color: var(--quiet); }
  th, td { padding: .4rem 0; text-align: left; font-weight: 400; border-top: 1px solid var(--line); }
  td { padding-left: 1rem; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
  form { display: grid; gap: .6rem; margin: 0 0 1.25rem; }
  button, .button { min-height: 2.9rem; padding: .6rem 1rem; border-radius: .6rem; border: 1px solid var(--accent);
    font: inherit; font-weight: 600; text-align: center; text-decoration: none; cursor: pointer;
    color: var(--on-accent); background: var(--accent); }
  .button { display: block; margin: 0 0 1.25rem; }
  button.second { color: var(--text); background: transparent; border-color: light-dark(#858b98, #7d8492); }
  button:hover, .button:hover { filter: brightness(1.08); }
  :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
  .note { margin: 0; padding-top: 1rem; border-top: 1px solid var(--line); font-size: .85rem; color: var(--quiet); }`;

/**
 * Headers of every page. They forbid scripts, foreign content, framing and caching, and allow forms only to this
 * origin.
 */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

/** Safe HTML, created only by `html`. */
export type Html = { readonly html: string };

/** Builds HTML from a template, and escapes every value that is not HTML or a list of HTML. */
export function html(
  strings: TemplateStringsArray,
  ...values: readonly (string | number | Html | readonly Html[])[]
): Html {
  const parts = values.map((value, i) => {
    if (typeof value === 'string' || typeof value === 'number')
      return escapeHtml(String(value)) + strings[i + 1];
    const pieces = 'html' in value ? [value] : value;
    return pieces.map((piece) => piece.html).join('') + strings[i + 1];
  });
  return { html: strings[0] + parts.join('') };
}

/** Empty HTML. */
export const NOTHING: Html = { html: '' };

/** Renders a whole page. @param goTo URL to which the browser goes at once. */
export function page(title: string, content: Html, goTo?: string): string {
  return html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  ${goTo === undefined ? NOTHING : html`<meta http-equiv="refresh" content="0; url=${goTo}">`}
  <title>${title}</title>
  <style>${{ html: STYLE }}</style>
</head>
<body>
  <main>
    <p class="brand">Sandbox provider</p>
    ${content}
  </main>
</body>
</html>
`.html;
}

/** Renders rows of name and value, without the rows that have no value. */
export function facts(rows: Readonly<Record<string, string>>): Html {
  const filled = Object.entries(rows).filter(([, value]) => value !== '');
  return filled.length === 0
    ? NOTHING
    : html`<dl>${filled.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** Formats an amount as "USD 3,000.00" or "JPY 1,200": with the currency code, since many currencies share a symbol. */
export function formatForPayer(minorUnits: number, currency: string): string {
  const [whole = '', fraction = ''] = formatMoney({ minorUnits: BigInt(minorUnits), currency }).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return currencyDigits(currency) ? `${currency} ${grouped}.${fraction}` : `${currency} ${grouped}`;
}

/** Escapes a string for use in HTML text or a quoted attribute. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
