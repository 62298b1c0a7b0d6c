import { unknownId } from '#src/service-error.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { recordAction } from '#src/store/tables/audit-log.ts';
import type { StoredDelivery } from '#src/store/tables/deliveries.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import type { StoredWebhook } from '#src/store/tables/webhooks.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { deliveriesPage, redeliverAllFailed } from '#src/webhooks/manage-deliveries.ts';
import { type ManageDeps, requireWebhook } from '#src/webhooks/manage-webhooks.ts';
import { DASHBOARD, notice } from './frame.ts';
import type { Session } from './session.ts';
import { badge, facts, option, shortened, time } from './show.ts';
import type { Page, Reply, Visit } from './visit.ts';

const PAGE_SIZE = 50;

/** Periods for which failed deliveries can be sent again, in hours before now. Deliveries are kept for 30 days. */
const SPANS: readonly (readonly [hours: string, name: string])[] = [
  ['1', 'last hour'],
  ['24', 'last day'],
  ['72', 'last 3 days'],
  ['720', 'last 30 days'],
];

/** Returns the URL of a webhook's page. */
export function webhookAddress({ accountId, id }: Pick<StoredWebhook, 'accountId' | 'id'>): string {
  return `${DASHBOARD}/webhooks/${accountId}/${id}`;
}

/** The page of one webhook: its state, and its deliveries, newest first. */
export async function webhookPage(deps: ManageDeps, visit: Visit): Promise<Page> {
  const webhook = await webhookOf(deps, visit);
  const page = { webhookId: webhook.id, pageSize: PAGE_SIZE, pageToken: visit.query('before') };
  const { deliveries, nextPageToken } = await deliveriesPage(deps.database, webhook.accountId, page);
  const older = new URLSearchParams({ before: nextPageToken });
  const content = html`<div class="heading"><h1>Webhook</h1><p class="quiet long">${shortened(webhook.url, 200)}</p></div>
${visit.query('did') === 'redeliver' ? notice('done', 'The failed deliveries are being sent again.') : NOTHING}
<section class="card">${facts([
    ['State', stateOf(webhook)],
    ['Failing since (UTC)', webhook.failingSince && time(webhook.failingSince)],
    ['Events', webhook.events.join(', ')],
    ['Description', webhook.description],
    ['Created (UTC)', time(webhook.createdAt)],
  ])}${redeliverForm(webhook, visit.session)}</section>
${table(deliveries, webhook.accountId)}
${nextPageToken ? html`<nav class="pages" aria-label="Pages"><a class="button quiet" href="${webhookAddress(webhook)}?${String(older)}">Older</a></nav>` : NOTHING}`;
  return { title: 'Webhook', content };
}

/** Sends failed deliveries of a webhook again. */
export async function deliverFailedAgain(deps: ManageDeps, visit: Visit): Promise<Reply> {
  const { accountId, id } = await webhookOf(deps, visit);
  const [hours, name] = SPANS.find(([hours]) => hours === visit.form('hours')) ?? ['1', 'last hour'];
  const action = { accountId, actor: visit.actor, action: 'redeliver-failed', subject: id };
  await recordAction(deps.database, { ...action, detail: `of the ${name}` });
  await redeliverAllFailed(deps, accountId, id, new Date(Date.now() - Number(hours) * 3_600_000));
  return { goTo: `${webhookAddress({ accountId, id })}?did=redeliver` };
}

/** @throws ServiceError WEBHOOK_NOT_FOUND. */
async function webhookOf({ database }: ManageDeps, visit: Visit): Promise<StoredWebhook> {
  const accountId = visit.part('account').toLowerCase();
  if (!isUuid(accountId)) throw unknownId('WEBHOOK_NOT_FOUND', 'account');
  return requireWebhook(database, accountId, visit.part('webhook').toLowerCase());
}

/** Renders a webhook's state: on, off, or switched off by the service. */
export function stateOf({
  active,
  disabledReason,
  failingSince,
}: Pick<StoredWebhook, 'active' | 'disabledReason' | 'failingSince'>): Html {
  if (!active) return html`${badge('OFF')} ${disabledReason ?? ''}`;
  return badge(failingSince ? 'FAILED' : 'ON');
}

function redeliverForm(webhook: StoredWebhook, session: Session): Html {
  if (session.role !== 'operate') return NOTHING;
  if (!webhook.active) {
    return html`<p class="quiet">Nothing is sent to a webhook that is off. Its merchant can switch it on.</p>`;
  }
  return html`<form class="filters" method="post" action="${webhookAddress(webhook)}/redeliver-failed"><input type="hidden" name="form_token" value="${session.formToken}">
<div><label for="hours">Failed deliveries of the</label><select id="hours" name="hours">${SPANS.map(([hours, name]) => option(hours, name, '24'))}</select></div>
<div><button>Deliver again</button></div></form>`;
}

function table(deliveries: readonly StoredDelivery[], accountId: string): Html {
  if (deliveries.length === 0) return html`<p class="card">Nothing has been sent to this webhook yet.</p>`;
  return html`<div class="card scroll" tabindex="0"><table class="lines"><thead><tr><th scope="col">Created (UTC)</th><th scope="col">Event</th><th scope="col">State</th><th scope="col">Attempts</th></tr></thead><tbody>${deliveries.map((one) => html`<tr><td class="nowrap">${time(one.createdAt)}</td><th scope="row">${eventOf(one, accountId)}</th><td>${badge(one.status)}</td><td>${attemptsOf(one)}</td></tr>`)}</tbody></table></div>`;
}

function eventOf({ type, paymentId }: StoredDelivery, accountId: string): Html {
  const name = type || 'a deleted event';
  if (paymentId === NIL_UUID) return html`${name}`;
  return html`<a href="${DASHBOARD}/payments/${accountId}/${paymentId}">${name}</a>`;
}

/** Describes the attempts to deliver an event, and when the next is due. */
export function attemptsOf({
  attempts,
  responseStatus,
  error,
  dueAt,
}: Pick<StoredDelivery, 'attempts' | 'responseStatus' | 'error' | 'dueAt'>): Html {
  const told = [
    `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`,
    responseStatus !== undefined && `answered ${responseStatus}`,
    error && shortened(error, 200),
  ].filter(Boolean);
  return html`${told.join(' · ')}${dueAt ? html` · due at ${time(dueAt)}` : NOTHING}`;
}
