import type { OpenAttempt, TroubledWebhook } from '#src/store/open-work.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { type FiguresReading, sumOf, type Tally } from './figures.ts';
import { DASHBOARD } from './frame.ts';
import { minutesChart, SERIES } from './minutes-chart.ts';
import { badge, count, duration, percent, shortened, time } from './show.ts';
import { stateOf, webhookAddress } from './webhook-page.ts';

/** Everything that the overview shows. */
export type Overview = {
  readonly figures: FiguresReading;
  readonly circuits: readonly { readonly id: string; readonly name: string; readonly state: string }[];
  readonly open: { readonly count: number; readonly oldestS: number };
  readonly openAttempts: readonly OpenAttempt[];
  readonly webhooks: readonly TroubledWebhook[];
  /** Deliveries that are still due, and whether there are more than were counted. */
  readonly pending: { readonly count: number; readonly isMore: boolean };
  readonly now: Date;
  /** Name of this replica. */
  readonly replica: string;
};

/** Most rows of a table of figures; Prometheus has the rest. */
const MAX_ROWS = 12;

/** Renders the overview: what is happening now, and what needs attention. */
export function overviewPage(overview: Overview): Html {
  const { figures, circuits, open, now, replica } = overview;
  const hour = sumOf(figures.minutes);
  const broken = circuits.filter(({ state }) => state === 'OPEN' || state === 'HALF_OPEN');
  return html`<div data-live>
<div class="heading"><h1>Overview</h1>
<p class="quiet">Last hour of replica ${replica}, as of ${time(now)} UTC</p></div>
${alarms(overview, broken)}
<div class="tiles">
${tile('Payments a second', figures.paymentsPerS.toFixed(figures.paymentsPerS < 10 ? 2 : 0), 'over the last minute')}
${tile('Approved', percent(hour.approved, decided(hour)), `${count(hour.approved)} of ${count(decided(hour))}`)}
${tile('Unknown outcomes', count(open.count), open.count > 0 ? `oldest ${duration(open.oldestS)}` : 'none is open', open.count > 0 ? 'open' : '')}
${tile('Circuits open', String(broken.length), `of ${circuits.length} guarded`, broken.length > 0 ? 'bad' : '')}
${tile('Webhooks to deliver', `${count(overview.pending.count)}${overview.pending.isMore ? '+' : ''}`, deliveredOf(figures))}
</div>
<section class="card"><h2>Outcomes by minute <span class="quiet">in UTC</span></h2>${minutesChart(figures.minutes)}</section>
<div class="columns">
${rates('Approval by connection', 'Connection', figures.byConnection)}
${rates('Approval by brand', 'Brand or wallet', figures.byBrand)}
${rates('Approval by country', 'Country', figures.byCountry)}
${declines(figures.declines)}
${circuitTable(circuits)}
${openOutcomes(overview.openAttempts)}
${webhookTable(overview.webhooks)}
</div></div>`;
}

function alarms({ figures, webhooks }: Overview, broken: Overview['circuits']): Html {
  const told = [
    ...broken.map(
      ({ id, state }) =>
        `Connection ${id} is ${state === 'OPEN' ? 'paused: its circuit is open' : 'being tried again'}`,
    ),
    ...(figures.open?.unaskable ?? []).map(
      ({ connectionId, open }) =>
        `Unknown outcomes of ${connectionId} that this replica cannot look up: ${open}`,
    ),
    ...(webhooks.length > 0 ? [`Webhooks that are failing or were turned off: ${webhooks.length}`] : []),
  ];
  if (told.length === 0) return NOTHING;
  return html`<ul class="alarms">${told.slice(0, MAX_ROWS).map((text) => html`<li>${text}</li>`)}</ul>`;
}

function tile(name: string, value: string, more: string, tone = ''): Html {
  return html`<div class="tile ${tone}"><p class="name">${name}</p><p class="value">${value}</p><p class="quiet">${more}</p></div>`;
}

function deliveredOf({ deliveries }: FiguresReading): string {
  const delivered = deliveries.get('DELIVERED') ?? 0;
  const all = [...deliveries.values()].reduce((sum, one) => sum + one, 0);
  return all === 0 ? 'no attempts' : `${count(delivered)} of ${count(all)} attempts delivered`;
}

function rates(title: string, name: string, by: ReadonlyMap<string, Tally>): Html {
  const rows = [...by].sort(([, a], [, b]) => total(b) - total(a)).slice(0, MAX_ROWS);
  return html`<section class="card"><h2>${title}</h2>${
    rows.length === 0
      ? EMPTY
      : html`<table><thead><tr><th scope="col">${name}</th><th scope="col" class="number">Outcomes</th><th scope="col" class="number">Approved</th><th scope="col" class="number">Not sent<br>or expired</th><th scope="col" class="wide">Shares</th></tr></thead><tbody>${rows.map(([key, tally]) => rateRow(key, tally))}</tbody></table>`
  }</section>`;
}

function rateRow(key: string, tally: Tally): Html {
  return html`<tr><th scope="row">${key || 'unknown'}</th><td class="number">${count(total(tally))}</td><td class="number">${percent(tally.approved, decided(tally))}</td><td class="number">${count(tally.failed)}</td><td class="wide">${bar(tally)}</td></tr>`;
}

const BAR = 120;

/** A bar of shares, hidden from screen readers: the numbers beside it say what matters. */
function bar(tally: Tally): Html {
  const all = Math.max(1, total(tally));
  let x = 0;
  const pieces = SERIES.map(([key, tone]) => {
    const width = (BAR * tally[key]) / all;
    const piece = html`<rect class="fill-${tone}" x="${x.toFixed(1)}" y="0" width="${width.toFixed(1)}" height="8"></rect>`;
    x += width;
    return piece;
  });
  return html`<svg class="bar" viewBox="0 0 ${BAR} 8" preserveAspectRatio="none" aria-hidden="true">${pieces}</svg>`;
}

function declines(by: ReadonlyMap<string, number>): Html {
  const rows = [...by].sort(([, a], [, b]) => b - a).slice(0, MAX_ROWS);
  const all = [...by.values()].reduce((sum, one) => sum + one, 0);
  return html`<section class="card"><h2>Declines by reason</h2>${
    rows.length === 0
      ? EMPTY
      : html`<table><thead><tr><th scope="col">Reason</th><th scope="col" class="number">Declines</th><th scope="col" class="number">Share</th></tr></thead><tbody>${rows.map(([code, n]) => html`<tr><th scope="row">${code.replaceAll('_', ' ')}</th><td class="number">${count(n)}</td><td class="number">${percent(n, all)}</td></tr>`)}</tbody></table>`
  }</section>`;
}

function circuitTable(circuits: Overview['circuits']): Html {
  return html`<section class="card"><h2>Circuits</h2>${
    circuits.length === 0
      ? html`<p class="quiet">No connection has a circuit breaker.</p>`
      : html`<table><thead><tr><th scope="col">Connection</th><th scope="col">State</th></tr></thead><tbody>${circuits.map(({ id, name, state }) => html`<tr><th scope="row">${id}<br><span class="quiet">${name}</span></th><td>${badge(state)}</td></tr>`)}</tbody></table>`
  }</section>`;
}

function openOutcomes(attempts: readonly OpenAttempt[]): Html {
  return html`<section class="card"><h2>Oldest unknown outcomes</h2>${
    attempts.length === 0
      ? html`<p class="quiet">Every outcome is known.</p>`
      : html`<table><thead><tr><th scope="col">Payment</th><th scope="col">Connection</th><th scope="col" class="number">Open for</th><th scope="col" class="number">Look-ups</th></tr></thead><tbody>${attempts.map((one) => html`<tr><th scope="row"><a href="${DASHBOARD}/payments/${one.accountId}/${one.paymentId}"><code>${one.paymentId.slice(-12)}</code></a></th><td>${one.connectionId}</td><td class="number">${duration(one.openS)}</td><td class="number">${one.lookUps}</td></tr>`)}</tbody></table>`
  }</section>`;
}

function webhookTable(webhooks: readonly TroubledWebhook[]): Html {
  if (webhooks.length === 0) return NOTHING;
  return html`<section class="card"><h2>Webhooks in trouble</h2><table><thead><tr><th scope="col">Webhook</th><th scope="col">Since (UTC)</th><th scope="col">State</th></tr></thead><tbody>${webhooks.map((one) => html`<tr><th scope="row" class="long"><a href="${webhookAddress(one)}">${shortened(one.url, 200)}</a><br><span class="quiet">${one.accountName}</span></th><td>${time(one.failingSince)}</td><td>${stateOf(one)}</td></tr>`)}</tbody></table></section>`;
}

const EMPTY = html`<p class="quiet">Nothing in the last hour.</p>`;

function total(tally: Tally): number {
  return decided(tally) + tally.waiting;
}

function decided({ approved, declined, failed }: Tally): number {
  return approved + declined + failed;
}
