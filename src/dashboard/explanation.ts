import {
  Connection_Circuit,
  type ExplainRouteResponse,
  ExplainRouteResponse_Choice,
} from '#gen/payments/v1/operator_service_pb.js';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { DASHBOARD } from './frame.ts';
import { badge, percent } from './show.ts';

const CHOICES: Readonly<Record<number, string>> = {
  [ExplainRouteResponse_Choice.PRIORITY]: 'in the order of the route',
  [ExplainRouteResponse_Choice.SPLIT]: 'by weight',
  [ExplainRouteResponse_Choice.SUCCESS_RATE]: 'by recent approval rate',
};

/** Renders a link to the page of a version of the catalogue. */
export function versionLink(version: number): Html {
  return html`<a href="${DASHBOARD}/catalogue/versions/${version}">version ${version}</a>`;
}

/** Renders how a payment is routed: the routes considered, and the targets in order. */
export function explanation(way: ExplainRouteResponse): Html {
  const chosen = way.routes.find((route) => route.taken);
  const by =
    way.catalogueVersion === 0
      ? NOTHING
      : html`<p>By ${versionLink(way.catalogueVersion)} of the catalogue.</p>`;
  return html`${by}<ol class="timeline">${way.routes.map(
    (route) =>
      html`<li class="${route.taken ? 'good' : 'plain'}"><h3>Route ${route.id} <span class="quiet">${route.name}</span></h3>${
        route.taken ? html`<p>Taken.</p>` : html`<p class="quiet">Skipped: <code>${route.whyNot}</code></p>`
      }</li>`,
  )}</ol>
${chosen ? targets(way) : html`<p>No route accepts this payment: it would be refused.</p>`}
${way.notes.map((note) => html`<p class="quiet">${note}</p>`)}`;
}

function targets(way: ExplainRouteResponse): Html {
  const weights = way.targets.reduce((sum, { weight = 0 }) => sum + weight, 0);
  const attempts = way.maxAttempts === 1 ? 'One attempt' : `Up to ${way.maxAttempts} attempts`;
  const failover = way.softDeclines
    ? 'also fails over after a soft decline'
    : 'fails over only if nothing was sent';
  const targets = way.targets.map(({ connection, weight, approvalRate }, i) => {
    const share = weight === undefined ? '' : `takes ${percent(weight, weights)}`;
    const rate = approvalRate === undefined ? '' : `approves ${percent(approvalRate, 1)}`;
    return html`<tr><th scope="row">${i + 1}. ${connection?.id ?? ''} <span class="quiet">${share}${rate}</span></th><td>${badge(Connection_Circuit[connection?.circuit ?? 0] ?? '')}</td></tr>`;
  });
  const passedOver = way.passedOver.map(
    ({ connection, lacks }) =>
      html`<tr><th scope="row">${connection?.id ?? ''}</th><td>skipped: offers no ${lacks.join(', ')}</td></tr>`,
  );
  return html`<p>${attempts}; ${failover}; chosen ${CHOICES[way.choice] ?? ''}${way.accountOverride ? '; the account has its own targets' : ''}.</p>
<table><thead><tr><th scope="col">Target</th><th scope="col">Circuit</th></tr></thead><tbody>${targets}${passedOver}</tbody></table>`;
}
