import { create } from '@bufbuild/protobuf';
import {
  type CatalogueVersion,
  ListCatalogueVersionsRequestSchema,
} from '#gen/payments/v1/configuration_service_pb.js';
import { compareCatalogues } from '#src/catalogue/compare-catalogues.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { changeTable } from './catalogue-changes.ts';
import { routeTable } from './catalogue-page.ts';
import {
  type ConfigurationPageDeps,
  callerOf,
  previewButton,
  readCatalogue,
  sourceNotice,
  versionNumber,
} from './configuration.ts';
import { versionLink } from './explanation.ts';
import { DASHBOARD } from './frame.ts';
import { routePicture } from './route-picture.ts';
import { facts, shortened, time } from './show.ts';
import type { Page, Visit } from './visit.ts';

const PAGE_SIZE = 20;
/** Limit on the routes in a diagram. */
const MAX_ROUTES = 100;

/** The page that lists the published versions, newest first, and compares any two. */
export async function versionsPage(deps: ConfigurationPageDeps, visit: Visit): Promise<Page> {
  const before = versionNumber(visit.query('before'));
  const request = create(ListCatalogueVersionsRequestSchema, { pageSize: PAGE_SIZE, before });
  const { versions } = (await deps.configuration.listCatalogueVersions(request, callerOf(visit))).message;
  const current = await readCatalogue(deps, visit);
  const last = versions.at(-1);
  const hasMore = versions.length === PAGE_SIZE && last !== undefined && last.replaced > 0;
  const content = html`<div class="heading"><h1>Versions</h1><p class="quiet">A published version never changes.</p></div>
${sourceNotice(current)}${compareForm(versions[1]?.version ?? 1, versions[0]?.version ?? 1)}
${versions.length === 0 ? html`<p class="card">No version was published: the catalogue comes from a file.</p>` : table(versions)}
<nav class="pages" aria-label="Pages"><a class="button quiet" href="${DASHBOARD}/catalogue">Catalogue</a>${hasMore ? html`<a class="button quiet" href="${DASHBOARD}/catalogue/versions?before=${last.version}">Older</a>` : NOTHING}</nav>`;
  return { title: 'Versions', section: '/catalogue', content };
}

function compareForm(from: number, to: number): Html {
  const field = (name: string, label: string, value: number) =>
    html`<div><label for="${name}">${label}</label><input id="${name}" name="${name}" inputmode="numeric" maxlength="9" autocomplete="off" required value="${value}"></div>`;
  return html`<form class="card filters" method="get" action="${DASHBOARD}/catalogue/compare">${field('from', 'Compare version', from)}${field('to', 'with version', to)}<div><button>Compare</button></div></form>`;
}

function table(versions: readonly CatalogueVersion[]): Html {
  const rows = versions.map(
    ({ version, source, actor, comment, publishedAt }) =>
      html`<tr><th scope="row">${versionLink(version)}</th><td class="nowrap">${time(publishedAt)}</td><td class="long">${actor}</td><td>${source}</td><td class="long">${shortened(comment, 300)}</td></tr>`,
  );
  return html`<div class="card scroll" tabindex="0"><table class="lines"><thead><tr><th scope="col">Version</th><th scope="col">Published (UTC)</th><th scope="col">By</th><th scope="col">From</th><th scope="col">Comment</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

/** The page of one version: its routes, what it changed, and the way back to it. */
export async function versionPage(deps: ConfigurationPageDeps, visit: Visit): Promise<Page> {
  const version = versionNumber(visit.part('version'));
  const [shown, current] = [
    await readCatalogue(deps, visit, version || -1),
    await readCatalogue(deps, visit),
  ];
  const { catalogue, publishedAt, actor, source, comment, changes } = shown;
  const title = `Version ${version}`;
  const isInForce = version === current.version;
  const undo = previewButton(visit, current.version, {
    label: `Undo to version ${version}…`,
    change: { case: 'undoTo', value: version },
  });
  const compare = new URLSearchParams({ from: String(version), to: String(current.version) });
  const content = html`<div class="heading"><h1>${title}</h1><p class="quiet">${isInForce ? 'In force.' : `Version ${current.version} is in force.`}</p></div>
${sourceNotice(current)}
<section class="card">${facts([
    ['Published (UTC)', time(publishedAt)],
    ['By', actor],
    ['From', source],
    ['Comment', comment],
  ])}${isInForce ? NOTHING : html`<div class="row">${undo}<a class="button quiet" href="${DASHBOARD}/catalogue/compare?${String(compare)}">Compare with version ${current.version}</a></div>`}</section>
<section class="card scroll" tabindex="0"><h2>What it changed</h2>${changeTable(changes)}</section>
<section class="card"><h2>Its routes</h2>${routePicture({ catalogue, health: new Map() }, MAX_ROUTES)}${routeTable(catalogue, { isLinked: false })}</section>
<p><a class="button quiet" href="${DASHBOARD}/catalogue/versions">All versions</a></p>`;
  return { title, section: '/catalogue', content };
}

/** The page that compares two versions. */
export async function comparePage(deps: ConfigurationPageDeps, visit: Visit): Promise<Page> {
  const [from, to] = [versionNumber(visit.query('from')), versionNumber(visit.query('to'))];
  const one = await readCatalogue(deps, visit, from || -1);
  const other = await readCatalogue(deps, visit, to || -1);
  const current = await readCatalogue(deps, visit);
  const content = html`<div class="heading"><h1>Versions ${from} and ${to}</h1><p class="quiet">From version ${from} to version ${to}.</p></div>
${sourceNotice(current)}${compareForm(from, to)}
<section class="card scroll" tabindex="0"><h2>Differences</h2>${changeTable(compareCatalogues(one.catalogue, other.catalogue))}</section>
<p><a class="button quiet" href="${DASHBOARD}/catalogue/versions">All versions</a></p>`;
  return { title: 'Compare versions', section: '/catalogue', content };
}
