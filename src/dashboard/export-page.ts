import type { SendExport } from '#src/api/send-export.ts';
import { EXPORT_KINDS, type ExportKind, FILTERS, readExportRequest } from '#src/exports/export-request.ts';
import { CURRENCIES } from '#src/money.ts';
import type { Database } from '#src/store/engine/database.ts';
import { listAccountNames } from '#src/store/tables/accounts.ts';
import { INSTALLATION, listActions } from '#src/store/tables/audit-log.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { actionsTable } from './audit-page.ts';
import { DASHBOARD } from './frame.ts';
import { option, shortened } from './show.ts';
import type { Page, Visit, visits } from './visit.ts';

/** Dependencies of the exports. */
export type ExportPageDeps = {
  readonly database: Database;
  readonly sendExport: SendExport;
  /** The types of payment methods in the catalogue. */
  readonly methodTypes: () => readonly string[];
};

/** The files, with what each of their rows is. */
const FILES: Readonly<Record<ExportKind, string>> = {
  movements: 'Money that moved in the period: purchases, captures, refunds, corrections, disputes',
  transactions: 'All transactions of the payments created in the period, as they are now',
  payments: 'The payments created in the period, as they are now',
  disputes: 'The disputes opened in the period, as they are now',
  settlement: 'The lines of providers’ reports of the period, with the transactions that they settle',
  differences: 'What reports say differently, found in the period, as it is now',
};

const MAX_ACCOUNTS = 1_000;
/** Number of actions among which the last exports are looked for, and of exports shown. */
const MAX_ACTIONS = 200;
const MAX_SHOWN = 10;

/** The form that exports a file, with the last exports. The query fills the form. */
export async function exportPage(deps: ExportPageDeps, visit: Visit): Promise<Page> {
  const { database } = deps;
  const accounts = await listAccountNames(database, MAX_ACCOUNTS);
  const accountId = visit.query('account_id');
  const audited = isUuid(accountId) ? accountId : INSTALLATION;
  const actions = await listActions(database, audited, { limit: MAX_ACTIONS });
  const exports = actions.filter(({ action }) => action.startsWith('export')).slice(0, MAX_SHOWN);
  const content = html`<div class="heading"><h1>Export</h1><p class="quiet">Files that finance can add up. The audit log has the rows and sums of each.</p></div>
${form(visit, accounts, deps.methodTypes())}
<section class="card"><h2>Last exports of ${isUuid(accountId) ? 'this account' : 'all accounts together'}</h2>${exports.length === 0 ? html`<p class="quiet">None yet.</p>` : actionsTable(exports)}</section>`;
  return { title: 'Export', section: '/export', content };
}

/** Mounts the files that the form asks for. */
export function mountExportFiles(pages: ReturnType<typeof visits>, { sendExport }: ExportPageDeps): void {
  for (const kind of EXPORT_KINDS) {
    pages.download(`/export/${kind}.csv`, (request, reply, { session, actor }) => {
      // A form sends its empty fields too.
      const given = Object.entries(request.query as Record<string, unknown>).filter(
        ([, value]) => value !== '',
      );
      const asked = readExportRequest(kind, Object.fromEntries(given));
      return sendExport(request, reply, asked, { actor, mayIncludePayer: session.role === 'operate' });
    });
  }
}

function form(
  visit: Visit,
  accounts: readonly { readonly id: string; readonly name: string }[],
  types: readonly string[],
): Html {
  const given = visit.query;
  const field = (name: string, label: string, more: Html) =>
    html`<div><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${given(name)}" maxlength="255" autocomplete="off"${more}></div>`;
  const hasPeriod = given('from') !== '' || given('before') !== '' || given('month') !== '';
  const month = hasPeriod ? given('month') : lastMonth();
  return html`<form class="card filters" method="get">
<div><label for="account_id">Account</label><select id="account_id" name="account_id">${option('', 'All', given('account_id'))}${accounts.map(({ id, name }) => option(id, shortened(name, 60), given('account_id')))}</select></div>
<div><label for="month">Month</label><input id="month" name="month" type="month" value="${month}" placeholder="2026-09"></div>
<div class="moment"><label for="from">or from</label><input id="from" name="from" type="datetime-local" value="${given('from')}"></div>
<div class="moment"><label for="before">before</label><input id="before" name="before" type="datetime-local" value="${given('before')}"></div>
${field('zone', 'Time zone', html` placeholder="UTC, or America/Bogota" spellcheck="false"`)}
<div><label for="currency">Currency</label><select id="currency" name="currency">${option('', 'All', given('currency'))}${[...CURRENCIES].sort().map((code) => option(code, code, given('currency')))}</select></div>
<div><label for="payment_method_type">Method</label><select id="payment_method_type" name="payment_method_type">${option('', 'All', given('payment_method_type'))}${[...new Set([...types, given('payment_method_type')].filter(Boolean))].map((name) => option(name, shortened(name.replaceAll('_', ' '), 60), given('payment_method_type')))}</select></div>
${field('connection_id', 'Connection', NOTHING)}
${field('merchant_order_id', 'Order', NOTHING)}
${field('card_last_four', 'Card’s last four', NOTHING)}
${field('brand', 'Brand', NOTHING)}
${field('country', 'Country', NOTHING)}
${field('customer_id', 'Customer', NOTHING)}
<div><label for="separator">For spreadsheets</label><select id="separator" name="separator">${option('', 'Comma, 12.50', given('separator'))}${option('semicolon', 'Semicolon, 12,50', given('separator'))}</select></div>
<div><label for="bom">Byte-order mark</label><select id="bom" name="bom">${option('', 'No', given('bom'))}${option('true', 'Yes, for Excel', given('bom'))}</select></div>
${visit.session.role === 'operate' ? html`<div><label for="include">Payers’ personal data</label><select id="include" name="include">${option('', 'No', '')}${option('payer', 'Include', '')}</select></div>` : NOTHING}
${filtersOfSomeFiles(given)}
<div class="whole row">${EXPORT_KINDS.map((kind) => html`<button formaction="${DASHBOARD}/export/${kind}.csv" title="${FILES[kind]}">${kind}</button>`)}</div>
</form>`;
}

/** Columns whose filters have a place in the form. */
const PLACED: ReadonlySet<string> = new Set([
  ...(['currency', 'payment_method_type', 'connection_id', 'merchant_order_id', 'card_last_four'] as const),
  ...(['brand', 'country', 'customer_id'] as const),
]);

/** Shows the filters that only some files have, labeled with those files. Any other file is refused with such a filter. */
function filtersOfSomeFiles(given: Visit['query']): Html {
  const all = EXPORT_KINDS.flatMap((kind) =>
    Object.entries(FILTERS[kind]).map(([name, values]) => ({ kind, name, values })),
  );
  const others = [...Map.groupBy(all, ({ name }) => name)].filter(([name]) => !PLACED.has(name));
  const fields = others.map(([name, of]) => {
    const label = `${name.charAt(0).toUpperCase()}${name.slice(1).replaceAll('_', ' ')} (${of.map(({ kind }) => kind).join(', ')})`;
    const values = new Set(of.flatMap((one) => [...(one.values ?? [])]));
    const input =
      values.size === 0
        ? html`<input id="${name}" name="${name}" value="${given(name)}" maxlength="255" autocomplete="off">`
        : html`<select id="${name}" name="${name}">${option('', 'All', given(name))}${[...values].sort().map((value) => option(value, value.replaceAll('_', ' '), given(name)))}</select>`;
    return html`<div><label for="${name}">${label}</label>${input}</div>`;
  });
  const isOpen = others.some(([name]) => given(name) !== '');
  return html`<details class="whole more"${isOpen ? html` open` : NOTHING}><summary>Filters of single files</summary><div class="filters">${fields}</div></details>`;
}

function lastMonth(): string {
  return Temporal.Now.plainDateISO('UTC').subtract({ months: 1 }).toPlainYearMonth().toString();
}
