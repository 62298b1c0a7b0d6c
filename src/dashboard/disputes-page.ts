import type { Database } from '#src/store/engine/database.ts';
import { listAccountNames } from '#src/store/tables/accounts.ts';
import { listOpenDisputes, MAX_DISPUTES, type StoredDispute } from '#src/store/tables/disputes.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { DASHBOARD, missingNodes, notice } from './frame.ts';
import { badge, disputeBadge, duration, moneyText, shortened, time } from './show.ts';
import type { Page } from './visit.ts';

/** Maximum number of open disputes that are shown and counted. */
export const MAX_OPEN_DISPUTES = 500;
const SOON_S = 7 * 86_400;
const MAX_NAMES = 1_000;

/** Groups of open disputes, the most urgent first. */
const GROUPS = [
  ['unknown', 'Due date unknown: look at the provider'],
  ['overdue', 'Overdue'],
  ['soon', 'Due within seven days'],
  ['later', 'Due later'],
  ['review', 'Under review: nothing to do'],
] as const;

type Group = (typeof GROUPS)[number][0];

/** Returns the group of an open dispute. A due date that is unknown may be today's. */
export function groupOf(
  { status, respondBy }: Pick<StoredDispute, 'status' | 'respondBy'>,
  now: Date,
): Group {
  if (status !== 'NEEDS_RESPONSE') return 'review';
  if (!respondBy) return 'unknown';
  const leftS = (respondBy.getTime() - now.getTime()) / 1000;
  return leftS < 0 ? 'overdue' : leftS < SOON_S ? 'soon' : 'later';
}

/** Reads the open disputes of all accounts, at most MAX_OPEN_DISPUTES, in the order of their due dates. */
export async function openDisputes(database: Database): Promise<StoredDispute[]> {
  const found = await listOpenDisputes(database, MAX_OPEN_DISPUTES);
  // Each node of a distributed database has its own order.
  const dueMs = ({ respondBy }: StoredDispute) => respondBy?.getTime() ?? Number.NEGATIVE_INFINITY;
  return found.sort((a, b) => dueMs(a) - dueMs(b) || (a.id < b.id ? -1 : 1)).slice(0, MAX_OPEN_DISPUTES);
}

/** The page of the open disputes, by due date. */
export async function disputesPage(database: Database): Promise<Page> {
  const [disputes, accounts] = await Promise.all([
    openDisputes(database),
    listAccountNames(database, MAX_NAMES),
  ]);
  const names = new Map(accounts.map(({ id, name }) => [id, name]));
  const now = new Date();
  const shown = GROUPS.map(([group, title]) => {
    const own = disputes.filter((one) => groupOf(one, now) === group);
    return own.length === 0 ? NOTHING : html`<h2>${title}</h2>${table(own, names, now)}`;
  });
  const content = html`<div class="heading"><h1>Open disputes</h1><p class="quiet">As of ${time(now)} UTC</p></div>
${missingNodes(database).map((text) => notice('refused', text))}
${disputes.length === MAX_OPEN_DISPUTES ? notice('refused', `There are more: these are the first ${MAX_OPEN_DISPUTES}.`) : NOTHING}
${disputes.length === 0 ? html`<p class="card">No disputes are open. A payment’s page shows those that have ended.</p>` : shown}`;
  return { title: 'Disputes', section: '/disputes', content };
}

/** Returns the URL of a dispute's page. */
export function disputeAddress({ accountId, id }: Pick<StoredDispute, 'accountId' | 'id'>): string {
  return `${DASHBOARD}/disputes/${accountId}/${id}`;
}

/** Formats the disputed amount. */
export function disputedAmount({
  minorUnits,
  currency,
}: Pick<StoredDispute, 'minorUnits' | 'currency'>): string {
  return moneyText({ minorUnits, currency });
}

/** Describes until when the merchant can respond. */
export function dueText({ status, respondBy }: StoredDispute, now: Date): Html {
  if (status !== 'NEEDS_RESPONSE') return html`–`;
  if (!respondBy) return html`${badge('UNKNOWN')}`;
  const leftS = (respondBy.getTime() - now.getTime()) / 1000;
  const left = leftS < 0 ? `${duration(-leftS)} ago` : `in ${duration(leftS)}`;
  return html`${time(respondBy)}<br><span class="quiet">${left}</span>`;
}

function table(disputes: readonly StoredDispute[], names: ReadonlyMap<string, string>, now: Date): Html {
  return html`<div class="card scroll" tabindex="0"><table class="stacked"><thead><tr><th scope="col">Respond by (UTC)</th><th scope="col" class="number">Amount</th><th scope="col">Stage</th><th scope="col">Reason</th><th scope="col">Connection</th><th scope="col">Account</th><th scope="col">Note</th></tr></thead>
<tbody>${disputes.map((one) => row(one, names.get(one.accountId) ?? one.accountId, now))}</tbody></table></div>`;
}

function row(dispute: StoredDispute, account: string, now: Date): Html {
  return html`<tr><td class="nowrap">${dueText(dispute, now)}</td>
<th scope="row" class="number"><a href="${disputeAddress(dispute)}">${disputedAmount(dispute)}</a></th>
<td class="nowrap">${badge(dispute.stage)} ${disputeBadge(dispute.status)}</td>
<td>${dispute.reason.toLowerCase().replaceAll('_', ' ')}</td>
<td>${shortened(dispute.connectionId, 60)}</td>
<td>${shortened(account, 40)}</td>
<td>${shortened(dispute.note, 80)}</td></tr>`;
}

/** Lists the disputes of one payment, at most a page of the API's list. */
export function disputesOfPayment(disputes: readonly StoredDispute[]): Html {
  if (disputes.length === 0) return NOTHING;
  const rows = disputes
    .slice(0, MAX_DISPUTES)
    .map(
      (one) =>
        html`<li><a href="${disputeAddress(one)}">${disputedAmount(one)}</a> ${badge(one.stage)} ${disputeBadge(one.status)}</li>`,
    );
  return html`<section class="card"><h2>Disputes</h2><ul>${rows}</ul></section>`;
}
