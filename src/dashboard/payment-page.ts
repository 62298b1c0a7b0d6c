import type { JsonObject } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  type Payment,
  Payment_Status,
  Payment_SubStatus_Value,
  Payment_Workflow,
  type Transaction,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import { isSentKey, sentIdempotencyKey } from '#src/payments/keys/key.ts';
import { MADE_AT_PROVIDER } from '#src/payments/model/external.ts';
import { isOperation } from '#src/payments/model/state.ts';
import { ServiceError } from '#src/service-error.ts';
import type { StoredDispute } from '#src/store/tables/disputes.ts';
import type {
  StoredStory,
  ToldAction,
  ToldEvent,
  ToldNotification,
  TransactionState,
} from '#src/store/tables/payment-story.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { disputesOfPayment } from './disputes-page.ts';
import type { PaymentWay } from './explain-payment.ts';
import { explanation, versionLink } from './explanation.ts';
import { DASHBOARD } from './frame.ts';
import { actionForms, keyNote, type Refused } from './payment-forms.ts';
import { categoryOf, methodOf } from './payments-page.ts';
import type { Session } from './session.ts';
import { type PaymentSettlement, settledPayment } from './settled-payment.ts';
import { badge, facts, money, shortened, time } from './show.ts';
import { shownToPayer } from './shown-to-payer.ts';
import { attemptsOf, webhookAddress } from './webhook-page.ts';

/** The contents of a payment's page. */
type PaymentView = {
  readonly payment: Payment;
  readonly story: StoredStory;
  readonly accountName: string;
  readonly explained: PaymentWay;
  readonly session: Session;
  readonly refused: Refused | undefined;
  readonly disputes: readonly StoredDispute[];
  readonly settlement: PaymentSettlement;
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
  ['Method', html`${methodOf(payment)} <span class="quiet">${categoryOf(payment)}</span>`],
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
${settledPayment(view.settlement, view.story.transactions)}
<section class="card"><h2>Why this route</h2>${why(view)}</section>
</div><div>
${actionForms(view)}
${disputesOfPayment(view.disputes)}
${shownToPayer(payment, view.story)}
<section class="card"><h2>Payer</h2>${payer(view)}</section>
<section class="card"><h2>Details</h2>${details(view)}</section>
</div></div>`;
}

function why({ payment, explained, story }: PaymentView): Html {
  const { version, isByVersion, way } = explained;
  const { condition, smartRouting = false, monitors = false } = payment.routingRules ?? {};
  const by = version === 0 ? '' : html` of ${versionLink(version)} of the catalogue`;
  const asMade = condition
    ? html`<p>Route ${condition.id} <strong>${shortened(condition.name ?? '', 255)}</strong>${by} took this payment${smartRouting ? ', choosing by weight or health' : ''}${monitors ? '; circuit breakers guard its targets' : ''}. ${shortened(condition.description ?? '', 255)}</p>`
    : NOTHING;
  const which = isByVersion ? `Version ${version} of the catalogue` : 'The catalogue in force';
  const told =
    way instanceof ServiceError
      ? html`<p>${which} would refuse this payment: ${way.message}</p>`
      : html`${explanation(way)}${story.personalDataErasedAt ? ERASED : NOTHING}`;
  const title = isByVersion
    ? `How version ${version} of the catalogue, which routed this payment, routes it with closed circuits`
    : 'How the catalogue in force would route this payment';
  return html`${asMade}<details><summary>${title}</summary>${told}</details>`;
}

const ERASED = html`<p class="quiet">The payer’s personal data was erased, so targets that need it are skipped here.</p>`;

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

/** A payment with its stored history. */
type Reported = { readonly payment: Payment; readonly story: StoredStory; readonly session: Session };

type Entry = { readonly at: Date | undefined; readonly tone: string; readonly content: Html };

/** Maximum number of characters shown of a provider's response; the record contains the rest. */
const MAX_ANSWER_LENGTH = 20_000;
const MAX_LINE_LENGTH = 300;

/** Renders the events of a payment, in order. */
function timeline(told: Reported): Html {
  const { payment, story } = told;
  const states = new Map(story.transactions.map((state) => [state.id, state]));
  const entries: Entry[] = [
    ...payment.transactionsHistory.map((one) => transactionEntry(one, told, states.get(one.id))),
    ...story.notifications.map(notificationEntry),
    ...eventEntries(told),
  ];
  const inOrder = entries.sort((a, b) => (a.at?.getTime() ?? 0) - (b.at?.getTime() ?? 0));
  return html`<ol class="timeline">${inOrder.map(({ at, tone, content }) => html`<li class="${tone}"><p class="at quiet">${time(at)}</p>${content}</li>`)}</ol>`;
}

const TONES: Readonly<Record<number, string>> = {
  [Transaction_Status.SUCCEEDED]: 'good',
  [Transaction_Status.DECLINED]: 'bad',
  [Transaction_Status.ERROR]: 'bad',
  [Transaction_Status.PENDING]: 'open',
  [Transaction_Status.CREATED]: 'open',
};

function transactionEntry(
  one: Transaction,
  { payment, story }: Reported,
  state: TransactionState | undefined,
): Entry {
  const status = Transaction_Status[one.status] ?? '';
  const type = Transaction_Type[one.type] ?? '';
  const data = one.providerData;
  const words = [one.responseCode.replaceAll('_', ' '), one.responseMessage].filter(Boolean).join(': ');
  const identifiers = [
    data?.transactionId && `provider’s id ${shortened(data.transactionId, 100)}`,
    data?.iso8583ResponseCode && `ISO 8583 code ${data.iso8583ResponseCode}`,
    !one.merchantReference.startsWith('reference-') &&
      one.merchantReference &&
      `reference ${one.merchantReference}`,
    one.reason && `reason ${one.reason}`,
    one.description === MADE_AT_PROVIDER ? MADE_AT_PROVIDER : requestedBy(state, story.actions),
  ].filter((text): text is string => Boolean(text));
  return {
    at: one.createdAt && timestampDate(one.createdAt),
    tone: TONES[one.status] ?? 'plain',
    content: html`<h3>${type} ${money(one.amount?.value, payment.amount?.currency ?? '')} <span class="quiet">at ${shortened(one.connectionData?.id ?? '', MAX_LINE_LENGTH)}</span> ${badge(status)}</h3>
<p>${shortened(words, MAX_LINE_LENGTH)}</p>
${identifiers.length > 0 ? html`<p class="quiet">${identifiers.map((text) => shortened(text, MAX_LINE_LENGTH)).join(' · ')}</p>` : NOTHING}
${openness(state)}
<p class="quiet">Transaction <code>${one.id}</code></p>
${rawAnswer(data?.rawResponse)}`,
  };
}

/** Returns who requested an operation: an operator, or a caller of the API. Absent for a payment's own transaction. */
function requestedBy(
  state: TransactionState | undefined,
  actions: readonly ToldAction[],
): string | undefined {
  if (!state || !isOperation(state.type)) return undefined;
  const { idempotencyKey: key } = state;
  const action = actions.find(({ detail }) => key !== undefined && detail.endsWith(keyNote(key)));
  if (action) return `requested by ${action.actor}`;
  // A key without a header is made from the operation's reference, which is shown.
  const isSent = key !== undefined && isSentKey(key);
  return `requested through the API${isSent ? ` with the key ${key}` : ''}`;
}

function openness(state: TransactionState | undefined): Html {
  if (!state?.checkAt) return NOTHING;
  const isUnknown = OPEN.has(state.status) && !state.awaitsPayer;
  return isUnknown
    ? html`<p>Its outcome is unknown. Next check at ${time(state.checkAt)}.</p>`
    : html`<p class="quiet">Next check at ${time(state.checkAt)}.</p>`;
}

const OPEN: ReadonlySet<string> = new Set(['CREATED', 'PENDING']);

function rawAnswer(raw: JsonObject | undefined): Html {
  if (!raw || Object.keys(raw).length === 0) return NOTHING;
  const text = JSON.stringify(raw, undefined, 2);
  const isLong = text.length > MAX_ANSWER_LENGTH;
  return html`<details><summary>Provider’s response</summary><pre tabindex="0">${isLong ? text.slice(0, MAX_ANSWER_LENGTH) : text}</pre>${
    isLong ? html`<p class="quiet">The first ${MAX_ANSWER_LENGTH} of ${text.length} characters.</p>` : NOTHING
  }</details>`;
}

const NEWS = {
  notification: 'Notification',
  return: 'Payer’s return',
  close: 'Payer’s request to pay another way',
} as const;

function notificationEntry({ connectionId, kind, dispute, receivedAt, result }: ToldNotification): Entry {
  const about = dispute ? ` of a dispute: ${dispute}` : '';
  return {
    at: receivedAt,
    tone: 'plain',
    content: html`<h3>${NEWS[kind]}${about} <span class="quiet">from ${connectionId}</span> ${badge(result ?? 'waiting')}</h3>`,
  };
}

function eventEntries({ payment, story, session }: Reported): Entry[] {
  const byEvent = Map.groupBy(story.events, ({ eventId }) => eventId);
  return [...byEvent.values()].flatMap((rows): Entry[] => {
    const [first] = rows;
    if (!first) return [];
    const isUndelivered = rows.some(({ delivery }) => delivery?.status === 'FAILED');
    return [
      {
        at: first.createdAt,
        tone: isUndelivered ? 'bad' : 'plain',
        content: html`<h3>Event ${first.type} <span class="quiet">#${first.sequence}</span></h3>${rows.map((row) => deliveryLine(row, payment, session))}`,
      },
    ];
  });
}

function deliveryLine({ delivery }: ToldEvent, payment: Payment, session: Session): Html {
  if (!delivery) return html`<p class="quiet">Not relayed to any webhook yet.</p>`;
  const { url } = delivery;
  const page = webhookAddress({ accountId: payment.accountId, id: delivery.webhookId });
  const webhook =
    url === undefined ? 'a deleted webhook' : html`<a href="${page}">${shortened(url, 200)}</a>`;
  const address = `${DASHBOARD}/payments/${payment.accountId}/${payment.id}/deliveries/${delivery.id}`;
  const again =
    session.role === 'operate' &&
    url !== undefined &&
    html`<form method="post" action="${address}"><input type="hidden" name="form_token" value="${session.formToken}"><button class="quiet" aria-label="Deliver again to ${shortened(url, 200)}">Deliver again</button></form>`;
  return html`<div class="delivery"><div><p>${badge(delivery.status)} ${webhook}</p>
<p class="quiet">${attemptsOf(delivery)}</p></div>${again}</div>`;
}
