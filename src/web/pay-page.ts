import { CHECKOUT_HEADERS, languageLinks, page } from './checkout-page.ts';
import { CHECKOUT_TEXTS, fill, type Language } from './checkout-texts.ts';
import { type Html, html, htmlText, NOTHING, trusted } from './html.ts';
import { drawBarcode, drawQrCode } from './payment-codes.ts';
import type { CheckoutTexts } from './texts/english.ts';

/** Headers of the pay page, which nobody may index. */
export const PAY_HEADERS: Readonly<Record<string, string>> = {
  ...CHECKOUT_HEADERS,
  'x-robots-tag': 'noindex, nofollow',
};

/** The state of a payment as its payer sees it. `preparing`: its code is yet to be found at the provider. */
export type PayState = 'open' | 'preparing' | 'confirming' | 'paid' | 'expired' | 'canceled' | 'declined';

/** Content of the page that shows a payer how to pay, not yet escaped. */
export type PayView = {
  readonly language: Language;
  readonly state: PayState;
  /** payment_method.type. */
  readonly type: string;
  /** The merchant's name as payers see it; '' if there is none. */
  readonly payee: string;
  readonly order: string;
  readonly description: string;
  /** Amount formatted for the payer, such as "R$ 52,00". */
  readonly amount: string;
  /** The part that has arrived, formatted; '' if none has. */
  readonly received: string;
  /** The text that the payer copies and scans (a Pix code); '' if there is none. */
  readonly text: string;
  /** The digits to type, and those of the barcode. */
  readonly number: string;
  readonly barcode: string;
  /** The account to transfer to, with its bank, owner and reference. */
  readonly account: string;
  readonly bank: string;
  readonly beneficiary: string;
  readonly reference: string;
  /** URL of the provider's document; '' if there is none. */
  readonly document: string;
  /** When the payer can no longer pay. */
  readonly until: Date | undefined;
  /** IANA time zone of the method's country. */
  readonly zone: string;
  /** The merchant's URL; '' if there is none. */
  readonly backUrl: string;
  /** Path of the page, without a query. */
  readonly path: string;
};

/** Renders the page that shows a payer how to pay a local method, or what became of the payment. */
export function renderPayPage(view: PayView): string {
  const texts = CHECKOUT_TEXTS[view.language];
  const isWatched = view.state === 'open' || view.state === 'preparing' || view.state === 'confirming';
  const content = html`${heading(view, texts)}${view.state === 'open' ? instructions(view, texts) : outcome(view, texts)}${backLink(view, texts)}`;
  const title = view.payee ? fill(texts.titleTo, { payee: view.payee }) : texts.title;
  const data = { path: `${view.path}/status`, state: view.state, texts: texts.payLater.script };
  const head = isWatched
    ? [
        `<script type="application/json" id="pay-page">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>`,
        '<script src="/checkout/assets/pay.js" defer></script>',
        // Without the script, the page is loaded again instead.
        `<noscript><meta http-equiv="refresh" content="${RELOAD_EVERY_S}"></noscript>`,
      ]
    : [];
  return page(view.language, {
    title: `${title} · ${view.amount}`,
    content: htmlText(content),
    foot: languageLinks(view.language, texts),
    head: ['<link rel="stylesheet" href="/checkout/assets/pay.css">', ...head],
  });
}

const RELOAD_EVERY_S = 15;

function heading({ payee, description, order, amount }: PayView, texts: CheckoutTexts): Html {
  const orderLine = fill(texts.order, { order });
  return html`<header>${payee && html`<p class="payee">${fill(texts.titleTo, { payee })}</p>`}<h1>${description || orderLine}</h1><p class="amount">${amount}</p>${description && html`<p class="quiet">${orderLine}</p>`}</header>`;
}

/** Renders what became of a payment that cannot be paid now, or not yet. */
function outcome({ state }: PayView, texts: CheckoutTexts): Html {
  if (state === 'open') return NOTHING;
  const [title = '', text = ''] = texts.payLater[state];
  return html`<section class="${state === 'paid' ? 'good' : ''}" role="status"><h2>${title}</h2><p>${text}</p></section>`;
}

function instructions(view: PayView, texts: CheckoutTexts): Html {
  const { payLater } = texts;
  const steps = stepsOf(view.type, payLater.steps);
  return html`<section aria-labelledby="how"><h2 id="how">${payLater.how}</h2>${expiry(view, payLater)}${received(view, payLater)}${pictures(view, payLater)}${values(view, payLater)}<ol class="steps">${steps.map((step) => html`<li>${step}</li>`)}</ol>${documentLink(view, payLater)}<p class="quiet print-only">${payLater.printed}</p><p class="quiet no-script">${payLater.reload}</p><p id="said" class="quiet" role="status"></p></section>`;
}

type PayLater = CheckoutTexts['payLater'];

function stepsOf(type: string, steps: PayLater['steps']): readonly string[] {
  return Object.hasOwn(steps, type) ? steps[type as keyof typeof steps] : steps.OTHER;
}

function expiry({ until, zone, language }: PayView, { payUntil }: PayLater): Html {
  if (!until) return NOTHING;
  const format = { dateStyle: 'full', timeStyle: 'short', timeZone: zone } as const;
  const time = new Intl.DateTimeFormat(language, format).format(until);
  const name = zoneName(until, zone, language);
  return html`<p class="until"><time datetime="${until.toISOString()}" data-zone="${zone}">${fill(payUntil, { time, zone: name })}</time></p>`;
}

/** Returns a time zone's name for people, such as "Brasilia Standard Time". */
function zoneName(at: Date, timeZone: string, language: Language): string {
  const parts = new Intl.DateTimeFormat(language, { timeZone, timeZoneName: 'long' }).formatToParts(at);
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? timeZone;
}

function received({ received: money }: PayView, texts: PayLater): Html {
  return money ? html`<p class="received">${fill(texts.received, { received: money })}</p>` : NOTHING;
}

function pictures({ text, barcode, number }: PayView, texts: PayLater): Html {
  const qr = drawQrCode(text);
  if (qr) return html`<figure class="qr" role="img" aria-label="${texts.qrCode}">${trusted(qr)}</figure>`;
  const bars = drawBarcode(barcode);
  if (bars)
    return html`<figure class="bars" role="img" aria-label="${fill(texts.barcode, { number: number || barcode })}">${trusted(bars)}</figure>`;
  return NOTHING;
}

/** Renders each value that the payer needs, with a button that copies it. */
function values(view: PayView, texts: PayLater): Html {
  const { type, text, number, barcode, account, bank, beneficiary, reference } = view;
  const rows: readonly (readonly [label: string, value: string, isCopied: boolean])[] = [
    [texts.labels.code, text, true],
    [type === 'BOLETO' ? texts.labels.line : texts.labels.number, number || barcode, true],
    [type === 'SPEI' ? 'CLABE' : texts.labels.account, account, true],
    [texts.labels.reference, reference === number ? '' : reference, true],
    [texts.labels.bank, bank, false],
    [texts.labels.beneficiary, beneficiary, false],
  ];
  const shown = rows.filter(([, value]) => value !== '');
  return html`<dl class="values">${shown.map(([label, value, isCopied], i) => html`<div><dt id="label-${i}">${label}</dt><dd><span id="value-${i}" class="value">${value}</span>${isCopied && html`<button type="button" class="second copy" data-copies="value-${i}" aria-describedby="label-${i}" hidden>${texts.copy}</button>`}</dd></div>`)}</dl>`;
}

function documentLink({ document }: PayView, { document: label }: PayLater): Html {
  return document
    ? html`<p><a class="button second" href="${document}" rel="noreferrer">${label}</a></p>`
    : NOTHING;
}

function backLink({ backUrl, state }: PayView, texts: CheckoutTexts): Html {
  if (!backUrl) return NOTHING;
  const kind = state === 'open' ? 'quiet' : 'button';
  return html`<p class="back"><a class="${kind}" href="${backUrl}">${texts.back}</a></p>`;
}
