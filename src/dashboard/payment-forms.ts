import { randomUUID } from 'node:crypto';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { formatMoney } from '#src/money.ts';
import { type Books, leftToCapture, leftToRefund } from '#src/payments/model/books.ts';
import { booksOf, isOpen, payerMustAct, succeededBase } from '#src/payments/model/state.ts';
import type { StoredStory } from '#src/store/tables/payment-story.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { DASHBOARD } from './frame.ts';
import type { Session } from './session.ts';
import { asWritten, option } from './show.ts';

/** An operator's action on a payment. */
export type Action = 'capture' | 'cancel' | 'refund';

/** A refused form. It is shown again with the same key, since the operation may have been made. */
export type Refused = { readonly action: Action; readonly key: string; readonly amount: string };

/** Returns the end of an audit log entry: the key of the action, by which its transaction is found again. */
export function keyNote(key: string): string {
  return `; key ${key}`;
}

const REASONS = ['REQUESTED_BY_CUSTOMER', 'DUPLICATE', 'FRAUDULENT', 'REVERSE'];

/**
 * Renders the forms for the operations that a payment still allows. Each form must be opened first, so that no single
 * click moves money.
 */
export function actionForms(view: {
  readonly payment: Payment;
  readonly story: StoredStory;
  readonly session: Session;
  readonly refused: Refused | undefined;
}): Html {
  const { story, session } = view;
  const books = booksOfStory(story);
  const awaiting = awaitingPayer(view);
  if (!books && !awaiting) return NOTHING;
  const toCapture = books ? leftToCapture(books) : 0n;
  const toRefund = books ? leftToRefund(books) : 0n;
  if (toCapture <= 0n && toRefund <= 0n && !awaiting) return NOTHING;
  if (session.role !== 'operate') {
    return html`<section class="card"><h2>Actions</h2><p class="quiet">Your key is read-only.</p></section>`;
  }
  if (story.openOperation) {
    return html`<section class="card"><h2>Actions</h2><p>An operation is in progress. Wait for its outcome.</p></section>`;
  }
  const currency = (books ?? awaiting)?.currency ?? '';
  const capture = toCapture > 0n && form(view, 'capture', { name: 'Capture', amount: toCapture, currency });
  const cancel =
    (toCapture > 0n || awaiting) && form(view, 'cancel', { name: 'Cancel', amount: undefined, currency });
  const refund = toRefund > 0n && form(view, 'refund', { name: 'Refund', amount: toRefund, currency });
  return html`<section class="card"><h2>Actions</h2><div class="actions">${capture}${cancel}${refund}</div></section>`;
}

/** Returns the books of a payment, or undefined before its first approval. */
function booksOfStory(story: StoredStory): Books | undefined {
  const base = succeededBase(story.transactions);
  return base && base.type !== 'VERIFY' ? booksOf(story, base) : undefined;
}

/** Returns the attempt whose payer has yet to act, which a cancel closes; undefined if there is none. */
function awaitingPayer({ payment, story }: { readonly payment: Payment; readonly story: StoredStory }) {
  if (!payerMustAct(payment)) return undefined;
  return story.transactions.find((one) => isOpen(one) && one.awaitsPayer);
}

type Shown = { readonly name: string; readonly amount: bigint | undefined; readonly currency: string };

function form(
  view: { readonly payment: Payment; readonly session: Session; readonly refused: Refused | undefined },
  action: Action,
  { name, amount, currency }: Shown,
): Html {
  const { payment, session } = view;
  const again = view.refused?.action === action ? view.refused : undefined;
  const most =
    amount === undefined ? undefined : asWritten(formatMoney({ minorUnits: amount, currency }), currency);
  const reasons =
    action === 'capture'
      ? NOTHING
      : html`<div><label for="${action}-reason">Reason</label><select id="${action}-reason" name="reason">${option('', 'None', '')}${REASONS.map((reason) => option(reason, reason.replaceAll('_', ' ').toLowerCase(), ''))}</select></div>`;
  return html`<details${again ? html` open` : NOTHING}><summary>${name}…</summary><form class="stack" method="post" action="${DASHBOARD}/payments/${payment.accountId}/${payment.id}/${action}">
<input type="hidden" name="form_token" value="${session.formToken}">
<input type="hidden" name="key" value="${again?.key ?? `dashboard-${randomUUID()}`}">
${
  most === undefined
    ? NOTHING
    : html`<div><label for="${action}-amount">Amount in ${currency}, up to ${most}</label><input id="${action}-amount" name="amount" inputmode="decimal" autocomplete="off" required maxlength="20" value="${again?.amount ?? most}"></div>`
}
${reasons}
<button${action === 'cancel' || action === 'refund' ? html` class="danger"` : NOTHING}>${name}</button>
</form></details>`;
}
