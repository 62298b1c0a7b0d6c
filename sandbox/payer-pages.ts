import { codePage } from './code-page.ts';
import type { LedgerEntry, OrderDetails } from './ledger-entry.ts';
import { facts, formatForPayer, type Html, html, NOTHING, page } from './page.ts';

const NOTE = html`<p class="note">This is a sandbox: no money moves. Choose how the payment ends.</p>`;

const OUTCOMES: Readonly<Record<string, string>> = {
  paid: 'Paid',
  confirming: 'Paid: the provider is still confirming it',
  payer_approved: 'Approved: the shop completes the payment',
  approved: 'Confirmed: your bank has approved the payment',
  declined: 'Declined',
  canceled: 'Canceled: nothing was paid',
  expired: 'Too late: this payment has expired',
  agreed: 'Agreed: the shop may charge this wallet from now on',
};

/** The page where a payer pays for a wallet order or, once the order has ended, its outcome. */
export function checkoutPage(payment: LedgerEntry, order: OrderDetails): string {
  if (payment.status !== 'created') return outcomePage(payment);
  const money = formatForPayer(order.amount, order.currency);
  const label = `${payment.details.needsCompletion ? 'Approve' : 'Pay'} ${money}`;
  return page(
    'Sandbox checkout',
    html`<h1>To pay</h1>
    <p class="amount">${money}</p>
    ${facts({ Description: order.description, 'Merchant reference': order.reference })}
    ${itemTable(order)}
    ${form(payment, label, 'Let the wallet decline', 'Cancel and go back')}
    ${NOTE}`,
  );
}

/** The page where a payer passes a bank's challenge (3-D Secure) or, once it has ended, its outcome. */
export function challengePage(payment: LedgerEntry, order: OrderDetails): string {
  if (payment.status !== 'challenge_required') return outcomePage(payment);
  return page(
    'Sandbox bank',
    html`<h1>Your bank wants to confirm that it is you</h1>
    <p class="amount">${formatForPayer(order.amount, order.currency)}</p>
    ${facts({
      Card: `ending in ${payment.cardLastFour ?? ''}`,
      Description: order.description,
      'Merchant reference': order.reference,
    })}
    ${form(payment, 'Yes, it is me', 'No, it is not me', 'Leave without an answer')}
    ${NOTE}`,
  );
}

/** The page where a payer agrees to later charges of a wallet or, after the decision, its outcome. */
export function agreementPage(agreement: LedgerEntry, order: OrderDetails): string {
  if (agreement.status !== 'created') return outcomePage(agreement);
  return page(
    'Sandbox wallet',
    html`<h1>May the shop charge this wallet from now on?</h1>
    ${facts({ Wallet: order.reference, Description: order.description })}
    ${form(agreement, 'Agree', 'Let the wallet decline', 'Cancel and go back')}
    <p class="note">This is a sandbox: no money moves. Nothing is charged now.</p>`,
  );
}

/** The page on which a tester pays a code or, once it has ended, its outcome. */
export function codesPage(code: LedgerEntry, order: OrderDetails): string {
  return codePage(code, order, outcomePage(code));
}

/** The page for a payer who returns to the shop without deciding. */
export function leftPage(payment: LedgerEntry): string {
  return endPage(
    payment,
    'You left without an answer',
    html`<p>The payment stays open until it expires.</p>`,
  );
}

/** The page for a payment that does not exist. */
export function notFoundPage(): string {
  return page('Not found', html`<h1>There is no such payment.</h1>`);
}

/** The page for an internal error. */
export function errorPage(): string {
  return page('Not done', html`<h1>Something went wrong.</h1><p>Go back and try again.</p>`);
}

function outcomePage(payment: LedgerEntry): string {
  return endPage(payment, OUTCOMES[payment.status] ?? 'This payment is settled', NOTHING);
}

/** Renders the payment's outcome, and sends the payer back to the shop at once if there is a return URL. */
function endPage(payment: LedgerEntry, title: string, more: Html): string {
  const backUrl = backUrlOf(payment);
  const way =
    backUrl === undefined
      ? html`<p class="note">You can close this page.</p>`
      : html`<p><a class="button" href="${backUrl}">Back to the shop</a></p>`;
  return page(title, html`<h1>${title}</h1>${more}${way}`, backUrl);
}

/** Returns the merchant's return URL with the payment's status, which is only a hint: a payer could have changed it. */
function backUrlOf({ id, status, details }: LedgerEntry): string | undefined {
  const { returnUrl, cancelUrl = returnUrl } = details;
  const backUrl = status === 'canceled' ? cancelUrl : returnUrl;
  const url = backUrl === undefined ? null : URL.parse(backUrl);
  url?.searchParams.set('sandbox_payment', id);
  url?.searchParams.set('sandbox_status', status);
  return url?.href;
}

/** Renders the payer's actions, each as a button with a label. */
function form({ id }: LedgerEntry, pay: string, decline: string, leave: string): Html {
  return html`<form method="post">
      <button formaction="${id}/pay">${pay}</button>
      <button class="second" formaction="${id}/decline">${decline}</button>
      <button class="second" formaction="${id}/leave">${leave}</button>
    </form>`;
}

function itemTable({ items, currency }: OrderDetails): Html {
  if (items.length === 0) return NOTHING;
  const rows = items.map(({ name, quantity, unitAmount }) => {
    const price = unitAmount === undefined ? '' : formatForPayer(unitAmount, currency);
    return html`<tr><th scope="row">${name || 'Item'} × ${quantity}</th><td>${price}</td></tr>`;
  });
  return html`<table><caption>Items, with unit prices</caption>${rows}</table>`;
}
