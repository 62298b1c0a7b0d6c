import { CHECKOUT_TEXTS, fill, LANGUAGES, type Language } from './checkout-texts.ts';
import { escapeHtml, htmlText } from './html.ts';
import { fieldId, type LocalTerms, renderLocalTerms } from './payer-fields.ts';
import type { CheckoutTexts } from './texts/english.ts';

/** Headers of the checkout page: only scripts, styles and calls of this origin are allowed. */
export const CHECKOUT_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

/** A method that the payer may choose. */
export type CheckoutMethod = {
  readonly type: string;
  readonly isCard: boolean;
  readonly name: string;
  /** Token of a stored method; '' for any other. */
  readonly vaultedToken: string;
  readonly installments: boolean;
  /** Set for a local method. */
  readonly local?: LocalTerms | undefined;
};

/** Content of a session's checkout page, not yet escaped. */
export type Checkout = {
  readonly language: Language;
  readonly session: string;
  readonly publicKey: string;
  /** The merchant's name as payers see it; '' if there is none. */
  readonly payee: string;
  readonly description: string;
  readonly order: string;
  /** Amount formatted for the payer, such as "$55.75". */
  readonly amount: string;
  /** The same amount, as the payment call sends it. */
  readonly shown: { readonly currency: string; readonly value: string };
  readonly methods: readonly CheckoutMethod[];
  /** The most installments that the session allows; 0 for no limit. */
  readonly maxInstallments: number;
  /** true if the session has a customer, for whom a card may be saved. */
  readonly canSave: boolean;
  /** true if the session can be paid, because no payment has used it. */
  readonly isOpen: boolean;
  /** The merchant's URL, to which a payer who does not want to pay can return; '' if there is none. */
  readonly backUrl: string;
  /** true if a payment was made for the session, which the page has to check first. */
  readonly hasPayment: boolean;
};

/** Renders the page on which a payer pays for a session. */
export function renderCheckout(checkout: Checkout): string {
  const { language, session, publicKey, payee, amount, shown, methods, isOpen, hasPayment } = checkout;
  const texts = CHECKOUT_TEXTS[language];
  // The script needs the inputs of a method, which the page has already.
  const scripted = methods.map(({ local, ...method }, i) => {
    const inputs = local?.needs.map((path) => ({ path, id: fieldId(i, path) })) ?? [];
    return { ...method, isLocal: local !== undefined, inputs };
  });
  const data = { session, publicKey, amount, shown, methods: scripted, hasPayment, texts: texts.script };
  const noMethod = isOpen ? `<p>${escapeHtml(texts.noMethod)}</p>${wayBack(checkout, texts)}` : '';
  const needsScript = methods.length > 0 || hasPayment;
  const content = `${heading(checkout, texts)}
${needsScript ? `<p id="no-script">${escapeHtml(texts.noScript)}</p>` : ''}
<p id="notice" role="alert" tabindex="-1" hidden></p>
${methods.length > 0 ? form(checkout, texts) : noMethod}
<section id="outcome" hidden aria-live="polite"><div class="spinner" hidden></div><h2 tabindex="-1"></h2><p></p><button type="button" hidden></button><button type="button" class="second" hidden></button><a class="button" hidden></a></section>`;
  const title = `${payee ? fill(texts.titleTo, { payee }) : texts.title} · ${amount}`;
  const head = [
    `<script type="application/json" id="checkout">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>`,
    '<script src="/checkout/assets/checkout.js" defer></script>',
  ];
  return page(language, { title, content, foot: languageLinks(language, texts), head });
}

/** Reason why a page cannot accept a payment. */
export type CheckoutDeadEnd = 'unknown' | 'expired' | 'busy';

/** Renders a page that explains why it cannot accept a payment. @param backUrl the merchant's URL, if any. */
export function renderDeadEnd(kind: CheckoutDeadEnd, language: Language, backUrl?: string): string {
  const texts = CHECKOUT_TEXTS[language];
  const back = backUrl && `<a class="button" href="${escapeHtml(backUrl)}">${escapeHtml(texts.back)}</a>`;
  const title = texts[`${kind}Title`];
  const content = `<h1 class="title">${escapeHtml(title)}</h1><p>${escapeHtml(texts[`${kind}Text`])}</p>${back ?? ''}`;
  return page(language, { title, content, foot: languageLinks(language, texts), head: [] });
}

/** Parts of a page: its title, and markup for its content, its foot and its head. */
type Parts = {
  readonly title: string;
  readonly content: string;
  readonly foot: string;
  readonly head: readonly string[];
};

/** Renders a page in the style of the checkout. */
export function page(language: Language, { title, content, foot, head }: Parts): string {
  return `<!doctype html>
<html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(title)}</title><link rel="stylesheet" href="/checkout/assets/checkout.css">${head.join('')}</head>
<body><main>${content}</main>${foot}</body></html>`;
}

function heading({ payee, description, order, amount }: Checkout, texts: CheckoutTexts): string {
  const orderLine = fill(texts.order, { order });
  const lines = description ? [description, orderLine] : [orderLine];
  const small = lines[1] === undefined ? '' : `<p class="quiet">${escapeHtml(lines[1])}</p>`;
  const to = payee && `<p class="payee">${escapeHtml(fill(texts.titleTo, { payee }))}</p>`;
  return `<header>${to}<h1>${escapeHtml(lines[0] ?? '')}</h1><p class="amount">${escapeHtml(amount)}</p>${small}</header>`;
}

/**
 * Renders the form. The script enables the button, which does nothing without it. Browsers must not restore it as
 * enabled.
 */
function form(checkout: Checkout, texts: CheckoutTexts): string {
  const { methods, amount, hasPayment } = checkout;
  const choices = methods.map((method, i) => {
    const name = method.isCard && !method.vaultedToken ? texts.card : method.name;
    return `<div class="method"><label class="choice"><input type="radio" name="method" value="${i}"${i === 0 ? ' checked' : ''}><span>${escapeHtml(name)}</span></label><div class="panel" id="panel-${i}"${i === 0 ? '' : ' hidden'}>${panel(checkout, i, texts)}</div></div>`;
  });
  return `<form id="pay" novalidate autocomplete="on"${hasPayment ? ' hidden' : ''}>
<fieldset><legend>${escapeHtml(texts.payWith)}</legend><div class="methods">${choices.join('\n')}</div></fieldset>
<button type="submit" disabled autocomplete="off">${escapeHtml(fill(texts.pay, { amount }))}</button>
<p class="quiet safe">${escapeHtml(texts.safe)}</p>${wayBack(checkout, texts)}</form>`;
}

/** Renders the way back to the shop for a payer who does not pay. It is hidden with the form. */
function wayBack({ backUrl }: Checkout, texts: CheckoutTexts): string {
  return backUrl && `<p class="quiet"><a href="${escapeHtml(backUrl)}">${escapeHtml(texts.back)}</a></p>`;
}

function panel(checkout: Checkout, i: number, texts: CheckoutTexts): string {
  const { methods, canSave } = checkout;
  const method = methods[i] as CheckoutMethod;
  if (!method.isCard && method.vaultedToken) return `<p class="quiet">${escapeHtml(texts.storedWallet)}</p>`;
  if (method.local) return htmlText(renderLocalTerms(method.local, i, texts));
  if (!method.isCard) return `<p class="quiet">${escapeHtml(fill(texts.wallet, { name: method.name }))}</p>`;
  const code = field(`code-${i}`, texts.code, 'inputmode="numeric" autocomplete="cc-csc" maxlength="4"');
  if (method.vaultedToken) return code + (method.installments ? installments(checkout, i, texts) : '');
  return [
    field(
      'number',
      texts.number,
      'inputmode="numeric" autocomplete="cc-number" maxlength="24"',
      '<output id="brand" for="number"></output>',
    ),
    field(
      'expiry',
      texts.expiry,
      `inputmode="numeric" autocomplete="cc-exp" maxlength="9" placeholder="${texts.expiryForm}"`,
    ),
    code,
    field('holder', texts.holder, 'autocomplete="cc-name" maxlength="255" autocapitalize="characters"'),
    method.installments ? installments(checkout, i, texts) : '',
    canSave
      ? `<label class="save wide"><input type="checkbox" id="save"><span>${escapeHtml(texts.save)}</span></label>`
      : '',
  ].join('\n');
}

/** Renders a field, without a name so that the browser itself never sends its value. */
function field(id: string, label: string, attributes: string, beside = ''): string {
  const isWide = id === 'number' || id === 'holder';
  return `<div class="field${isWide ? ' wide' : ''}"><label for="${id}"><span>${escapeHtml(label)}</span>${beside}</label><input id="${id}" type="text" ${attributes} spellcheck="false" required aria-describedby="${id}-error"><p class="error" id="${id}-error" hidden></p></div>`;
}

/** Common numbers of installments. The provider decides which ones a card may use. */
const INSTALLMENTS = [2, 3, 6, 9, 12];

function installments({ amount, maxInstallments }: Checkout, i: number, texts: CheckoutTexts): string {
  const allowed = INSTALLMENTS.filter((n) => maxInstallments === 0 || n <= maxInstallments);
  const options = allowed.map(
    (n) => `<option value="${n}">${escapeHtml(fill(texts.times, { n: `${n}` }))}</option>`,
  );
  return `<div class="field wide"><label for="installments-${i}">${escapeHtml(texts.installments)}</label><select id="installments-${i}"><option value="1">${escapeHtml(fill(texts.once, { amount }))}</option>${options.join('')}</select></div>`;
}

/** Renders links to the same page in the other languages. */
export function languageLinks(current: Language, texts: CheckoutTexts): string {
  const links = Object.entries(LANGUAGES).map(
    ([code, name]) =>
      `<li><a href="?lang=${code}" lang="${code}"${code === current ? ' aria-current="true"' : ''}>${name}</a></li>`,
  );
  return `<nav aria-label="${escapeHtml(texts.languages)}"><ul>${links.join('')}</ul></nav>`;
}
