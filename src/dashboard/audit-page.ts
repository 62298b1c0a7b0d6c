import type { Database } from '#src/store/engine/database.ts';
import { listAccountNames } from '#src/store/tables/accounts.ts';
import { type AuditEntry, INSTALLATION, listActions } from '#src/store/tables/audit-log.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { versionLink } from './explanation.ts';
import { DASHBOARD } from './frame.ts';
import { option, shortened, time } from './show.ts';
import type { Page, Visit } from './visit.ts';

const PAGE_SIZE = 50;
const MAX_ACCOUNTS = 1_000;

/** The page that shows the audit log of the installation (sign-ins, for example) or of one account. */
export async function auditPage(database: Database, visit: Visit): Promise<Page> {
  const requested = visit.query('account');
  const accountId = isUuid(requested) ? requested : INSTALLATION;
  const before = visit.query('before');
  const page = { ...(isUuid(before) && { beforeId: before }), limit: PAGE_SIZE + 1 };
  const accounts = await listAccountNames(database, MAX_ACCOUNTS);
  const found = await listActions(database, accountId, page);
  const shown = found.slice(0, PAGE_SIZE);
  const last = found.length > PAGE_SIZE ? shown.at(-1) : undefined;
  const query = (more: Record<string, string>) => new URLSearchParams({ account: accountId, ...more });
  const content = html`<div class="heading"><h1>Audit log</h1><p class="quiet">Operators’ actions, here and by commands. The log cannot be changed here.</p></div>
<form class="card filters" method="get" action="${DASHBOARD}/audit">
<div class="grow"><label for="account">Scope</label><select id="account" name="account">${option(INSTALLATION, 'The installation: sign-ins, settings', accountId)}${accounts.map(({ id, name }) => option(id, shortened(name, 60), accountId))}</select></div>
<div><button>Show</button></div></form>
${actionsTable(shown)}
${last ? html`<nav class="pages" aria-label="Pages"><a class="button quiet" href="${DASHBOARD}/audit?${String(query({ before: last.id }))}">Older</a></nav>` : NOTHING}`;
  return { title: 'Audit log', section: '/audit', content };
}

/** Renders actions as a table, in their order. */
export function actionsTable(entries: readonly AuditEntry[]): Html {
  if (entries.length === 0) return html`<p class="card">No actions yet.</p>`;
  return html`<div class="card scroll" tabindex="0"><table class="lines"><thead><tr><th scope="col">Time (UTC)</th><th scope="col">Operator</th><th scope="col">Action</th><th scope="col">Object</th><th scope="col">Details</th></tr></thead><tbody>${entries.map((one) => html`<tr><td class="nowrap">${time(one.at)}</td><td>${one.actor}</td><th scope="row">${one.action}</th><td>${subject(one)}</td><td>${one.detail}</td></tr>`)}</tbody></table></div>`;
}

const OF_PAYMENTS = new Set(['capture', 'cancel', 'refund']);

function subject({ accountId, action, subject: id }: AuditEntry): Html {
  if (action === 'publish-catalogue') return versionLink(Number(id));
  return OF_PAYMENTS.has(action)
    ? html`<a href="${DASHBOARD}/payments/${accountId}/${id}"><code>${id}</code></a>`
    : html`<code>${id}</code>`;
}
