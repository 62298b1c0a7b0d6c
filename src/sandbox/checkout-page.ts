import { createHash } from 'node:crypto';
import { currencyDigits, formatMoney } from '#src/money.ts';
import type { OrderDetails } from './wallets.ts';

const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: light-dark(#f3f4f7, #15171c); }
  main { width: min(26rem, 100% - 4rem); padding: 2rem; border-radius: 1rem; overflow-wrap: anywhere;
    background: light-dark(#fff, #22252d); box-shadow: 0 1px 2rem rgb(0 0 0 / 12%); }
  h1 { margin: 0; font-size: 1rem; font-weight: 500; }
  .amount { margin: .25rem 0 1.5rem; font-size: 2rem; font-weight: 700; font-variant-numeric: tabular-nums; }
  dl, table { width: 100%; margin: 0 0 1.5rem; }
  dt { font-size: .8rem; opacity: .7; }
  dd { margin: 0 0 .75rem; }
  table { border-collapse: collapse; }
  th, td { padding: .4rem 0; text-align: left; font-weight: 400; border-top: 1px solid rgb(128 128 128 / 30%); }
  td { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
  .note { margin: 0; padding: .75rem 1rem; border-radius: .5rem; background: rgb(230 160 0 / 18%); font-size: .9rem; }`;

/** The page's headers: nothing may run, load, be framed or be kept. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

/** The page at which a payer would pay a wallet order. */
export function checkoutPage(order: OrderDetails): string {
  const money = (minorUnits: number) => formatForPayer(minorUnits, order.currency);
  const items = order.items.map(
    (item) =>
      `<tr><th scope="row">${escapeHtml(item.name || 'Item')} × ${item.quantity}</th><td>${
        item.unitAmount === undefined ? '' : escapeHtml(money(item.unitAmount))
      }</td></tr>`,
  );
  return page(
    'Sandbox checkout',
    `<h1>To pay</h1>
    <p class="amount">${escapeHtml(money(order.amount))}</p>
    <dl>
      ${order.description ? `<dt>Description</dt><dd>${escapeHtml(order.description)}</dd>` : ''}
      ${order.reference ? `<dt>Merchant reference</dt><dd>${escapeHtml(order.reference)}</dd>` : ''}
    </dl>
    ${items.length > 0 ? `<table>${items.join('')}</table>` : ''}
    <p class="note">This is a sandbox. Paying by button is not built yet: the order stays open.</p>`,
  );
}

/** The page for an order that does not exist. */
export function notFoundPage(): string {
  return page('Not found', '<h1>There is no such order.</h1>');
}

/** Text made safe as HTML's text or quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function page(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>${title}</title>
  <style>${STYLE}</style>
</head>
<body>
  <main>
    ${content}
  </main>
</body>
</html>
`;
}

/** "USD 3,000.00", "JPY 1,200": the code rather than a symbol, since many currencies share one. */
function formatForPayer(minorUnits: number, currency: string): string {
  const [whole = '', fraction = ''] = formatMoney({ minorUnits: BigInt(minorUnits), currency }).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return currencyDigits(currency) ? `${currency} ${grouped}.${fraction}` : `${currency} ${grouped}`;
}
