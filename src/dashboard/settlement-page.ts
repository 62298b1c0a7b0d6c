import {
  importableConnections,
  type SettledCatalogue,
  settledAccount,
} from '#src/settlement/settled-connection.ts';
import type { Database } from '#src/store/engine/database.ts';
import {
  countDifferences,
  DIFFERENCE_KINDS,
  listDifferences,
  type StoredDifference,
} from '#src/store/tables/settlement-differences.ts';
import { countResults, type ListedReport, listFiles, readFile } from '#src/store/tables/settlement-files.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { differenceTable } from './difference-table.ts';
import { DASHBOARD, missingNodes, notice } from './frame.ts';
import { payoutForm } from './payout-page.ts';
import { type SettlementFilter, STATES, settlementAddress, settlementFilter } from './settlement-filter.ts';
import { count, option, shortened, time } from './show.ts';
import type { Page, Visit } from './visit.ts';

/** Dependencies of the settlement's pages. */
export type SettlementPageDeps = {
  readonly database: Database;
  readonly opened: () => SettledCatalogue;
};

/** Maximum number of differences on a page, and of files. */
const MAX_DIFFERENCES = 200;
const MAX_FILES = 20;
/** Maximum number of differences that are counted. */
export const MAX_COUNTED_DIFFERENCES = 10_000;

/** Unresolved differences of all connections, up to MAX_COUNTED_DIFFERENCES. */
export type OpenDifferences = { readonly open: number; readonly againstRecord: number };

/** Counts the unresolved differences, and those of payments that were settled against the record. */
export async function openDifferences(database: Database): Promise<OpenDifferences> {
  const [open, againstRecord] = await Promise.all([
    countDifferences(database, MAX_COUNTED_DIFFERENCES),
    countDifferences(database, MAX_COUNTED_DIFFERENCES, 'status_differs'),
  ]);
  return { open, againstRecord };
}

/** The page of what providers' reports say differently from the record, and of the imported reports. */
export async function settlementPage(deps: SettlementPageDeps, visit: Visit, refused?: Html): Promise<Page> {
  const { database } = deps;
  const imported = refused ? undefined : await importedFile(database, visit);
  if (imported?.isMatchDue && settledAccount(deps.opened(), imported.connectionIdentity)) {
    return matchingPage(database, imported);
  }
  const filter = settlementFilter(visit);
  const before = visit.query('before');
  const connectionId = filter.connection || undefined;
  const [found, files, { open, againstRecord }] = await Promise.all([
    listDifferences(
      database,
      { connectionId, kind: filter.kind || undefined, isResolved: filter.state === 'resolved' },
      MAX_DIFFERENCES + 1,
    ),
    listFiles(database, { connectionId, before: isUuid(before) ? before : undefined }, MAX_FILES + 1),
    openDifferences(database),
  ]);
  const connections = importableConnections(deps.opened());
  const content = html`<div class="heading"><h1>Settlement</h1><p class="quiet">What providers’ reports say differently from the record. ${countText(open)} open.</p></div>
${refused ?? (await doneNotice(database, visit, imported))}
${missingNodes(database).map((text) => notice('refused', text))}
${againstRecord > 0 ? alarm(againstRecord) : NOTHING}
${filterForm(filter, connections)}
${differences(found, filter, visit)}
${uploadForm(visit, connections)}
${payoutForm(accountsOf(deps.opened(), connections, files))}
${fileTable(files, filter)}`;
  return { title: 'Settlement', section: '/settlement', content, ...(refused && { status: 400 }) };
}

/** Returns the accounts at providers of connections and of files, with the id of a connection to each. */
function accountsOf(
  opened: SettledCatalogue,
  connections: readonly string[],
  files: readonly ListedReport[],
): ReadonlyMap<string, string> {
  return new Map([
    ...files.map((one) => [one.connectionIdentity, one.connectionId] as const),
    ...connections.map((id) => [opened.connections.get(id)?.identity ?? '', id] as const),
  ]);
}

const DONE: Readonly<Record<string, string>> = {
  again: 'This file was imported before, so nothing changed.',
  resolve: 'The difference is resolved.',
  reopen: 'The difference is open again.',
};

async function doneNotice(
  database: Database,
  { query }: Visit,
  imported: ListedReport | undefined,
): Promise<Html> {
  const did = query('did');
  if (imported) {
    const results = await countResults(database, imported.id);
    const of = (result: string) => count(results.get(result) ?? 0);
    const found = `of the new lines, ${of('matched')} matched, ${of('unmatched')} of unknown payments, ${of('ambiguous')} ambiguous`;
    return notice('done', `${importedText(imported)}; ${found}.`);
  }
  const text = Object.hasOwn(DONE, did) ? DONE[did] : undefined;
  return text === undefined ? NOTHING : notice('done', text);
}

/** Returns the file that was just imported; undefined if the page is about none. */
async function importedFile(database: Database, { query }: Visit) {
  const id = query('file');
  return query('did') === 'import' && isUuid(id) ? readFile(database, id) : undefined;
}

/** Seconds after which the page of a report that is being matched is loaded again. */
const RELOAD_S = 2;

/** The page of a report whose lines are being matched. It has no form that a reload could empty. */
async function matchingPage(database: Database, imported: ListedReport): Promise<Page> {
  const { againstRecord } = await openDifferences(database);
  const content = html`<div class="heading"><h1>Settlement</h1></div>
<div data-live="${RELOAD_S}">${againstRecord > 0 ? alarm(againstRecord) : NOTHING}
<p class="notice done">${importedText(imported)}; ${matchingText(imported)} lines.</p></div>
<p>The service goes on without this page, which shows the result as soon as it is there. <a href="${settlementAddress({})}">All reports and differences</a></p>`;
  return { title: 'Settlement', section: '/settlement', content, reloadS: RELOAD_S };
}

function importedText({ name, newLines, repeatedLines }: ListedReport): string {
  return `Imported ${shortened(name, 120)}: ${count(newLines)} new, ${count(repeatedLines)} repeated`;
}

function matchingText({ newLines, openLines }: ListedReport): string {
  return `matching: ${count(newLines - openLines)} of ${count(newLines)}`;
}

function countText(n: number): string {
  return n < MAX_COUNTED_DIFFERENCES ? count(n) : `${count(MAX_COUNTED_DIFFERENCES)} or more`;
}

function alarm(n: number): Html {
  const link = html`<a href="${settlementAddress({ kind: 'status_differs' })}">Look at them first</a>`;
  return html`<p class="notice refused" role="alert">Providers settled payments that are not successful here: ${countText(n)}. ${link}.</p>`;
}

function filterForm(filter: SettlementFilter, connections: readonly string[]): Html {
  const known = [...new Set([...connections, filter.connection].filter(Boolean))];
  return html`<form class="card filters" method="get" action="${DASHBOARD}/settlement">
<div><label for="connection">Connection</label><select id="connection" name="connection">${option('', 'All', filter.connection)}${known.map((id) => option(id, shortened(id, 60), filter.connection))}</select></div>
<div><label for="kind">Difference</label><select id="kind" name="kind">${option('', 'All', filter.kind)}${DIFFERENCE_KINDS.map((kind) => option(kind, kind.replaceAll('_', ' '), filter.kind))}</select></div>
<div><label for="state">State</label><select id="state" name="state">${STATES.map(([value, name]) => option(value, name, filter.state))}</select></div>
<div class="row"><button>Show</button><a class="button quiet" href="${exportAddress(filter)}">Export these</a></div></form>`;
}

/** Returns the URL of the form that exports the differences of a filter. */
function exportAddress({ connection, kind, state }: SettlementFilter): string {
  const filters = {
    ...(connection !== '' && { connection_id: connection }),
    ...(kind !== '' && { difference_kind: kind }),
    difference_status: state === '' ? 'OPEN' : 'RESOLVED',
  };
  return `${DASHBOARD}/export?${new URLSearchParams(filters)}`;
}

/** Returns the URL of the form that exports the lines of a connection's reports. */
function exportLinesAddress({ connection }: SettlementFilter): string {
  return `${DASHBOARD}/export${connection === '' ? '' : `?${new URLSearchParams({ connection_id: connection })}`}`;
}

function differences(found: readonly StoredDifference[], filter: SettlementFilter, visit: Visit): Html {
  const shown = found.slice(0, MAX_DIFFERENCES);
  if (shown.length === 0) {
    const which = filter.state === 'resolved' ? 'No resolved difference' : 'No open difference';
    return html`<p class="card">${which}${filter.connection || filter.kind ? ' with this filter' : ''}.</p>`;
  }
  const more = `There are more: these are the first ${MAX_DIFFERENCES}. The filter, or a file, has the others.`;
  return html`${found.length > MAX_DIFFERENCES ? notice('refused', more) : NOTHING}${differenceTable(shown, filter, visit.session)}`;
}

function uploadForm(visit: Visit, connections: readonly string[]): Html {
  if (visit.session.role !== 'operate' || connections.length === 0) return NOTHING;
  const chosen = visit.form('connection');
  return html`<form class="card filters" method="post" enctype="multipart/form-data" action="${DASHBOARD}/settlement/import"><input type="hidden" name="form_token" value="${visit.session.formToken}">
<div><label for="report-of">Import a report of</label><select id="report-of" name="connection" required>${option('', 'Choose a connection', chosen)}${connections.map((id) => option(id, shortened(id, 60), chosen))}</select></div>
<div class="grow"><label for="report">Report, up to 16 MiB; the <code>settlement</code> command takes larger ones</label><input id="report" name="report" type="file" required></div>
<div><button>Import</button></div></form>`;
}

function fileTable(files: readonly ListedReport[], filter: SettlementFilter): Html {
  const shown = files.slice(0, MAX_FILES);
  const last = files.length > MAX_FILES ? shown.at(-1) : undefined;
  const older = last && settlementAddress(filter, { before: last.id });
  const rows = shown.map(
    (one) =>
      html`<tr><td class="nowrap">${time(one.completedAt)}</td><th scope="row" class="long">${shortened(one.name, 120)}</th><td>${shortened(one.connectionId, 60)}</td><td>${count(one.newLines)} new ${one.newLines === 1 ? 'line' : 'lines'}${one.repeatedLines > 0 ? `, ${count(one.repeatedLines)} repeated` : ''}${one.openLines > 0 ? `; ${matchingText(one)}` : ''}</td><td>${shortened(one.actor, 100)}</td></tr>`,
  );
  const table = html`<table class="lines"><thead><tr><th scope="col">Imported (UTC)</th><th scope="col">File</th><th scope="col">Connection</th><th scope="col">Lines</th><th scope="col">By</th></tr></thead><tbody>${rows}</tbody></table>`;
  return html`<section class="card scroll" tabindex="0"><h2>Imported reports</h2>${rows.length === 0 ? html`<p class="quiet">None yet.</p>` : html`${table}<p><a class="button quiet" href="${exportLinesAddress(filter)}">Export their lines</a></p>`}</section>
${older ? html`<nav class="pages" aria-label="Pages"><a class="button quiet" href="${older}">Older reports</a></nav>` : NOTHING}`;
}
