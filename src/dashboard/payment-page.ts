import type { ExplainRouteResponse } from '#gen/payments/v1/operator_service_pb.js';
import {
  type Payment,
  Payment_Status,
  Payment_SubStatus_Value,
  Payment_Workflow,
} from '#gen/payments/v1/payment_pb.js';
import { sentIdempotencyKey } from '#src/payments/idempotency.ts';
import { isOperation } from '#src/payments/model/state.ts';
import { ServiceError } from '#src/service-error.ts';
import type { StoredStory } from '#src/store/tables/payment-story.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { explanation } from './explanation.ts';
import { DASHBOARD } from './frame.ts';
import { actionForms, type Refused } from './payment-forms.ts';
import { methodOf } from './payments-page.ts';
import type { Session } from './session.ts';
import { badge, facts, money, shortened, time } from './show.ts';
import { timeline } from './timeline.ts';

/** The contents of a payment's page. */
export type PaymentView = {
  readonly payment: Payment;
  readonly story: StoredStory;
  readonly accountName: string;
  readonly way: ExplainRouteResponse | ServiceError;
  readonly session: Session;
  readonly refused: Refused | undefined;
};

/** Limit on the rows of metadata shown. */
const MAX_METADATA_SHOWN = 50;

/** Renders the page of one payment. */
export function paymentContent(view: PaymentView, message: Html): Html {
  const { payment, accountName } = view;
  const { amount } = payment;
  const currency = amount?.currency ?? '';
  const subStatus = Payment_SubStatus_Value[payment.subStatus] ?? '';
  const status = Payment_Status[payment.status] ?? '';
  const isAuthorization = view.story.transactions.some(({ type, capture }) => !isOperation(type) && !capture);
  return html`<p class="quiet"><a href="${DASHBOARD}/payments">Payments</a> / <code>${payment.id}</code></p>
${message}
<div class="card"><div class="heading"><h1 class="amount">${money(amount?.value?.value, currency)}</h1>
<p>${badge(status)} ${subStatus === status ? NOTHING : badge(subStatus)}</p></div>
${facts([
  ['Order', payment.merchantOrderId],
  ['Method', methodOf(payment)],
  // A purchase is captured at once, but its record shows 0, which would mislead here.
  ['Captured', isAuthorization && money(amount?.captured?.value, currency)],
  ['Refunded', money(amount?.refunded?.value, currency)],
  ['Account', html`${shortened(accountName, 80)}`],
  ['Country', payment.country],
  ['Created (UTC)', time(payment.createdAt)],
  ['Updated (UTC)', time(payment.updatedAt)],
])}</div>
<div class="split"><div>
<section class="card"><h2>Timeline <span class="quiet">in UTC</span></h2>${timeline(view)}</section>
<section class="card"><h2>Why this route</h2>${why(view)}</section>
</div><div>
${actionForms(view)}
<section class="card"><h2>Payer</h2>${payer(view)}</section>
<section class="card"><h2>Details</h2>${details(view)}</section>
</div></div>`;
}

function why({ payment, way }: PaymentView): Html {
  const { condition, smartRouting = false, monitors = false } = payment.routingRules ?? {};
  const asMade = condition
    ? html`<p>Route ${condition.id} <strong>${shortened(condition.name ?? '', 255)}</strong> took this payment${smartRouting ? ', choosing by weight or health' : ''}${monitors ? '; circuit breakers guard its targets' : ''}. ${shortened(condition.description ?? '', 255)}</p>`
    : NOTHING;
  const now =
    way instanceof ServiceError
      ? html`<p>The catalogue in force would refuse this payment: ${way.message}</p>`
      : explanation(way);
  return html`${asMade}<details><summary>How the catalogue in force would route this payment now</summary>${now}</details>`;
}

function payer({ payment: { customerPayer }, story: { personalDataErasedAt } }: PaymentView): Html {
  const { firstName, lastName, email, phone, document } = customerPayer ?? {};
  const name = [firstName, lastName].filter(Boolean).join(' ');
  const shown = facts([
    ['Name', shortened(name, 200)],
    ['Email', email && shortened(email, 200)],
    ['Document', document?.documentNumber && `${document.documentType} ${document.documentNumber}`],
    ['Phone', phone?.number && `+${phone.countryCode} ${phone.number}`],
    ['Customer', customerPayer?.id && html`<code>${shortened(customerPayer.id, 255)}</code>`],
  ]);
  if (name || email || document || phone) return shown;
  const told = personalDataErasedAt
    ? html`Personal data was erased on ${time(personalDataErasedAt)} UTC, at the end of its retention period.`
    : 'The request contained no data about the payer.';
  return html`<p class="quiet">${told}</p>`;
}

function details({ payment, story }: PaymentView): Html {
  const kind = payment.paymentMethod?.paymentMethodDetail?.kind;
  const card = kind?.case === 'card' ? kind.value : undefined;
  const metadata = payment.metadata.slice(0, MAX_METADATA_SHOWN).map((entry) => {
    const { key, value } = entry as { key?: unknown; value?: unknown };
    return [String(key ?? ''), shortened(String(value ?? ''), 512)] as const;
  });
  return facts([
    ['Idempotency key', html`<code>${shortened(sentIdempotencyKey(story.idempotencyKey), 255)}</code>`],
    ['Description', payment.description],
    ['Workflow', Payment_Workflow[payment.workflow] ?? ''],
    ['Card holder', card?.cardData?.holderName],
    ['Issuer', [card?.cardData?.issuerName, card?.cardData?.countryCode].filter(Boolean).join(', ')],
    ['Installments', card && card.installments > 1 ? card.installments : undefined],
    ['Authorization code', card?.authorizationCode],
    ['Callback', payment.callbackUrl && shortened(payment.callbackUrl, 200)],
    ...metadata,
  ]);
}
