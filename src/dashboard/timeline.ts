import type { JsonObject } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  type Payment,
  type Transaction,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import { isSentKey } from '#src/payments/idempotency.ts';
import { MADE_AT_PROVIDER } from '#src/payments/model/external.ts';
import { isOperation } from '#src/payments/model/state.ts';
import type {
  StoredStory,
  ToldAction,
  ToldEvent,
  ToldNotification,
  TransactionState,
} from '#src/store/tables/payment-story.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { DASHBOARD } from './frame.ts';
import { keyNote } from './payment-forms.ts';
import type { Session } from './session.ts';
import { badge, money, shortened, time } from './show.ts';
import { attemptsOf, webhookAddress } from './webhook-page.ts';

/** A payment with its stored history. */
export type Reported = { readonly payment: Payment; readonly story: StoredStory; readonly session: Session };

type Entry = { readonly at: Date | undefined; readonly tone: string; readonly content: Html };

/** Maximum number of characters shown of a provider's response; the record contains the rest. */
const MAX_ANSWER_LENGTH = 20_000;
const MAX_LINE_LENGTH = 300;

/** Renders the events of a payment, in order. */
export function timeline(told: Reported): Html {
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
