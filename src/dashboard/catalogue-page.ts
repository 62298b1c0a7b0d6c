import type { Catalogue, PaymentMethodType } from '#gen/payments/v1/catalogue_pb.js';
import { Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import type { LocalMethod } from '#src/connectors/port/capabilities.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import {
  type ConfigurationPageDeps,
  type ReadCatalogue,
  readCatalogue,
  sourceNotice,
} from './configuration.ts';
import { CONNECTION_PATH } from './connection-editor.ts';
import { versionLink } from './explanation.ts';
import { DASHBOARD, notice } from './frame.ts';
import { routePicture, type ShownCatalogue } from './route-picture.ts';
import { badge, facts, shortened, time } from './show.ts';
import type { Page, Visit } from './visit.ts';

/** Limit on the routes, connections and types shown; a catalogue may have a thousand of each. */
const MAX_ROWS = 100;

/** The page that shows the catalogue in force, where it is in force, and the ways to change it. */
export async function cataloguePage(deps: ConfigurationPageDeps, visit: Visit): Promise<Page> {
  const current = await readCatalogue(deps, visit);
  const { catalogue, version } = current;
  const shown = { ...deps.opened(), catalogue };
  const content = html`<div class="heading"><h1>Catalogue</h1><p class="quiet">A payment takes the first route whose condition holds.</p></div>
${didNotice(visit.query('did'), version)}${sourceNotice(current)}${current.source === 'FILE' ? NOTHING : inForce(current)}
<section class="card"><h2>Routes</h2>${routePicture(shown, MAX_ROWS)}${routeTable(catalogue)}${more(catalogue.routes.length, '/catalogue/route', 'route')}${add('/catalogue/route', 'New route')}</section>
<section class="card scroll" tabindex="0"><h2>Connections</h2>${connections(shown)}${more(catalogue.connections.length, CONNECTION_PATH, 'connection')}${add(CONNECTION_PATH, 'New connection')}</section>
<section class="card scroll" tabindex="0"><h2>Payment method types</h2>${types(catalogue.paymentMethodTypes)}${more(catalogue.paymentMethodTypes.length, '/catalogue/type', 'type')}${add('/catalogue/type', 'New payment method type')}</section>
<p class="quiet">${catalogue.bins.length} known issuer prefixes (BINs).</p>`;
  return { title: 'Catalogue', section: '/catalogue', content };
}

/** Renders the result of a publication. The URL only selects a message, so a link cannot inject text into the page. */
function didNotice(did: string, version: number): Html {
  if (did === 'publish') {
    return notice(
      'done',
      `Version ${version} is published. Every replica puts it in force within two seconds.`,
    );
  }
  if (did === 'nothing') return notice('done', 'There was nothing to publish: this is in force already.');
  return NOTHING;
}

/** Renders the version in force, and the processes that run the service. */
function inForce({ version, source, publishedAt, actor, comment, replicas }: ReadCatalogue): Html {
  const rows = replicas
    .slice(0, MAX_ROWS)
    .map(
      (one) =>
        html`<tr><th scope="row" class="long">${shortened(one.replica, 100)}</th><td>${one.version > 0 ? versionLink(one.version) : '–'}</td><td>${one.fault === '' ? badge(one.version === version ? 'IN_FORCE' : 'FOLLOWING') : html`${badge('FAILED')} ${shortened(one.fault, 500)}`}</td><td class="nowrap">${time(one.seenAt)}</td></tr>`,
    );
  return html`<section class="card scroll" tabindex="0"><h2>Version ${version}</h2>${facts([
    ['Published (UTC)', time(publishedAt)],
    ['By', actor],
    ['From', source],
    ['Comment', comment],
  ])}${rows.length === 0 ? NOTHING : html`<table class="lines"><thead><tr><th scope="col">Process</th><th scope="col">Runs version</th><th scope="col">State</th><th scope="col">Last seen (UTC)</th></tr></thead><tbody>${rows}</tbody></table>`}
<p><a class="button quiet" href="${DASHBOARD}/catalogue/versions">All versions</a></p></section>`;
}

function add(path: string, label: string): Html {
  return html`<p class="row"><a class="button quiet" href="${DASHBOARD}${path}">${label}</a></p>`;
}

/** Renders the routes in order, with links to their forms. */
export function routeTable({ routes }: Catalogue, { isLinked = true } = {}): Html {
  const rows = routes.slice(0, MAX_ROWS).map(({ id, name, targets, condition }) => {
    const label = html`Route ${id}${name === '' ? NOTHING : html` <span class="quiet">${name}</span>`}`;
    const link = isLinked ? html`<a href="${DASHBOARD}/catalogue/route?id=${id}">${label}</a>` : label;
    return html`<tr id="route-${id}"><th scope="row">${link}</th><td class="long"><code>${condition === '' ? 'every payment' : shortened(condition, 300)}</code></td><td class="long">${targets.map(({ connection }) => connection).join(', then ')}</td></tr>`;
  });
  return html`<table class="lines"><thead><tr><th scope="col">Route</th><th scope="col">Condition</th><th scope="col">Targets</th></tr></thead><tbody>${rows}</tbody></table>`;
}

/** Returns a link that names a piece of the catalogue in its query. */
function linked(path: string, name: string): Html {
  return html`<a href="${DASHBOARD}${path}?${String(new URLSearchParams({ id: name }))}">${name}</a>`;
}

/** Says that rows are left out, and opens a piece that has none. */
function more(count: number, path: string, what: string): Html {
  if (count <= MAX_ROWS) return NOTHING;
  const field = `open-${what}`;
  return html`<form class="row" method="get" action="${DASHBOARD}${path}"><p class="quiet">The first ${MAX_ROWS} of ${count}.</p><div><label for="${field}">Open a ${what}</label><input id="${field}" name="id" maxlength="255" autocomplete="off" required></div><button class="quiet">Open</button></form>`;
}

function connections({ catalogue, connections: opened, health }: ShownCatalogue): Html {
  const rows = catalogue.connections
    .slice(0, MAX_ROWS)
    .map(({ id, name, providerId, connector, retired }) => {
      const can = opened.get(id)?.capabilities;
      const offers = can && [
        ...can.methods.map((method) => method.replaceAll('_', ' ')),
        can.authorization && 'authorization',
        can.captures > 0 && `captures: ${can.captures}`,
        can.refunds !== 'none' && `refunds: ${can.refunds}`,
        can.cancel && 'cancel',
        can.verify && 'verify',
        can.installments && 'installments',
        can.challenge && '3-D Secure',
        ...can.walletTokens.map((type) => `tokens of ${type}`),
        ...Object.entries(can.localMethods).map(localMethod),
      ];
      return html`<tr><th scope="row" class="long">${linked(CONNECTION_PATH, id)}<br><span class="quiet">${name}</span></th><td>${providerId}<br><span class="quiet">${connector}</span></td><td>${badge(retired ? 'RETIRED' : (health.get(id)?.state() ?? 'UNGUARDED'))}</td><td>${offers ? offers.filter(Boolean).join(', ') : ''}</td></tr>`;
    });
  return html`<table class="lines"><thead><tr><th scope="col">Connection</th><th scope="col">Provider</th><th scope="col">Circuit</th><th scope="col">Offers</th></tr></thead><tbody>${rows}</tbody></table>`;
}

/** Describes a local method that a connection offers, such as "PIX (refunds: several, cancel)". */
function localMethod([type, { refunds, close }]: [string, LocalMethod]): string {
  const terms = [refunds !== 'none' && `refunds: ${refunds}`, close && 'cancel'].filter(Boolean);
  return terms.length > 0 ? `${type} (${terms.join(', ')})` : type;
}

function types(all: readonly PaymentMethodType[]): Html {
  const rows = all
    .slice(0, MAX_ROWS)
    .map(
      ({ type, category, countries, currencies }) =>
        html`<tr><th scope="row" class="long">${linked('/catalogue/type', type)}</th><td>${Transaction_Category[category] ?? ''}</td><td>${countries.join(' ') || 'everywhere'}</td><td>${currencies.join(' ') || 'all currencies'}</td></tr>`,
    );
  return html`<table class="lines"><thead><tr><th scope="col">Type</th><th scope="col">Category</th><th scope="col">Countries</th><th scope="col">Currencies</th></tr></thead><tbody>${rows}</tbody></table>`;
}
