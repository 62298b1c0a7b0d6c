import type { PaymentMethodType } from '#gen/payments/v1/catalogue_pb.js';
import { Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import type { LocalMethod } from '#src/connectors/port/capabilities.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { routePicture, type ShownCatalogue } from './route-picture.ts';
import { badge } from './show.ts';
import type { Page } from './visit.ts';

/** Limit on the routes, connections and types shown; a catalogue may have a thousand of each. */
const MAX_ROWS = 100;

/** The page that shows the catalogue in force. */
export function cataloguePage(shown: ShownCatalogue): Page {
  const { catalogue } = shown;
  const content = html`<div class="heading"><h1>Catalogue</h1><p class="quiet">In force in this replica. A payment takes the first route whose condition holds.</p></div>
<section class="card"><h2>Routes</h2>${routePicture(shown, MAX_ROWS)}${more(catalogue.routes.length)}</section>
<section class="card scroll" tabindex="0"><h2>Connections</h2>${connections(shown)}${more(catalogue.connections.length)}</section>
<section class="card scroll" tabindex="0"><h2>Payment method types</h2>${types(catalogue.paymentMethodTypes)}${more(catalogue.paymentMethodTypes.length)}</section>
<p class="quiet">${catalogue.bins.length} known issuer prefixes (BINs).</p>`;
  return { title: 'Catalogue', section: '/catalogue', content };
}

function more(count: number): Html {
  return count > MAX_ROWS ? html`<p class="quiet">The first ${MAX_ROWS} of ${count}.</p>` : NOTHING;
}

function connections({ catalogue, connections: opened, health }: ShownCatalogue): Html {
  const rows = catalogue.connections.slice(0, MAX_ROWS).map(({ id, name, providerId, connector }) => {
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
    return html`<tr><th scope="row">${id}<br><span class="quiet">${name}</span></th><td>${providerId}<br><span class="quiet">${connector}</span></td><td>${badge(health.get(id)?.state() ?? 'UNGUARDED')}</td><td>${offers ? offers.filter(Boolean).join(', ') : ''}</td></tr>`;
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
        html`<tr><th scope="row">${type}</th><td>${Transaction_Category[category] ?? ''}</td><td>${countries.join(' ') || 'everywhere'}</td><td>${currencies.join(' ') || 'all currencies'}</td></tr>`,
    );
  return html`<table class="lines"><thead><tr><th scope="col">Type</th><th scope="col">Category</th><th scope="col">Countries</th><th scope="col">Currencies</th></tr></thead><tbody>${rows}</tbody></table>`;
}
