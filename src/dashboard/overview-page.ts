import { type Payment, type Transaction, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { UnaskableOutcomes } from '#src/payments/check/open-outcomes.ts';
import type { StoredDispute } from '#src/store/tables/disputes.ts';
import {
  MAX_RECENT_ATTEMPTS,
  MAX_RECENT_PAYMENTS,
  type OpenAttempt,
  type RecentAttempts,
  type TroubledWebhook,
} from '#src/store/tables/open-work.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { groupOf, MAX_OPEN_DISPUTES } from './disputes-page.ts';
import { DASHBOARD } from './frame.ts';
import { addressOf, type Search } from './search-form.ts';
import { settlementAddress } from './settlement-filter.ts';
import { MAX_COUNTED_DIFFERENCES, type OpenDifferences } from './settlement-page.ts';
import { badge, count, duration, percent, shortened, time } from './show.ts';
import { stateOf, webhookAddress } from './webhook-page.ts';

/** The contents of the overview. */
export type Overview = {
  /** Attempts in the last hour, or only the latest of them. */
  readonly recent: readonly RecentAttempts[];
  /** The latest payments of the last hour, at most MAX_RECENT_PAYMENTS. */
  readonly payments: readonly Payment[];
  readonly circuits: readonly { readonly id: string; readonly name: string; readonly state: string }[];
  readonly open: { readonly count: number; readonly oldestS: number };
  readonly openAttempts: readonly OpenAttempt[];
  /** Unknown outcomes that this replica cannot look up. */
  readonly unaskable: readonly UnaskableOutcomes[];
  readonly webhooks: readonly TroubledWebhook[];
  /** Open disputes, at most MAX_OPEN_DISPUTES. */
  readonly disputes: readonly Pick<StoredDispute, 'status' | 'respondBy'>[];
  readonly differences: OpenDifferences;
  /** Number of deliveries still due; `isMore` is true if there are more than `count`. */
  readonly pending: { readonly count: number; readonly isMore: boolean };
  /** Says which accounts are missing, because their database node does not work. */
  readonly missing: readonly string[];
  readonly now: Date;
  /** The only account, which links to searches name; '' if there are several. */
  readonly account: string;
};

/** Results of attempts. */
type Tally = {
  approved: number;
  declined: number;
  /** Known not to have been sent, or expired before the payer acted. */
  failed: number;
  /** Waiting for the payer or the provider, or with an unknown outcome. */
  waiting: number;
};

/** Results in drawing order, with their colours. */
const SERIES = [
  ['approved', 'good'],
  ['declined', 'bad'],
  ['failed', 'fail'],
  ['waiting', 'open'],
] as const;

/** Limit on the rows of each table; Prometheus has the rest. */
const MAX_ROWS = 12;

/** Renders the overview: the current activity, and anything that needs attention. */
export function overviewPage(overview: Overview): Html {
  const { recent, payments, circuits, open, now } = overview;
  const latest = payments.length < MAX_RECENT_PAYMENTS ? '' : `of the latest ${MAX_RECENT_PAYMENTS} payments`;
  const byConnection = talliesOf(recent);
  const all = sumOf([...byConnection.values()]);
  const link = searchesOf(overview);
  const broken = circuits.filter(({ state }) => state === 'OPEN' || state === 'HALF_OPEN');
  return html`<div data-live>
<div class="heading"><h1>Overview</h1>
<p class="quiet">As of ${time(now)} UTC</p></div>
${alarms(overview, broken)}
<div class="tiles">
${tile('Attempts', linked(count(total(all)), link({})), spanOf(recent, all))}
${tile('Approved', linked(percent(all.approved, decided(all)), link({ status: 'SUCCEEDED' })), `${count(all.approved)} of ${count(decided(all))}`)}
${tile('Unknown outcomes', linked(count(open.count), addressOf({ unknown: '1' })), open.count > 0 ? `oldest ${duration(open.oldestS)}` : 'none open', open.count > 0 ? 'open' : '')}
${tile('Circuits open', String(broken.length), `of ${circuits.length} guarded`, broken.length > 0 ? 'bad' : '')}
${disputeTile(overview)}
${differenceTile(overview)}
${tile('Webhooks to deliver', `${count(overview.pending.count)}${overview.pending.isMore ? '+' : ''}`, 'waiting or due for a retry')}
</div>
<div class="columns">
${rates('Approval by connection', 'Connection', byConnection, (connection) => link({ connection }))}
${rates(`Approval by brand ${latest}`, 'Brand or wallet', talliesBy(payments, brandOf), (brand) => link(isBrand(payments, brand) ? { brand } : { method: brand }))}
${rates(
  `Approval by country ${latest}`,
  'Country',
  talliesBy(payments, ({ country }) => country),
  (country) => link({ country }),
)}
${declines(`Declines by reason ${latest}`, payments, (code) => link({ code }))}
${circuitTable(circuits)}
${openOutcomes(overview.openAttempts)}
${webhookTable(overview.webhooks)}
</div></div>`;
}

/** Returns a link to a search. */
type Link = (search: Partial<Search>) => string;

/** Returns links to searches for payments of the last hour, which the figures are about. */
function searchesOf({ now, account }: Overview): Link {
  const from = new Date(now.getTime() - 3_600_000).toISOString().slice(0, 16);
  return (search) => addressOf({ ...search, account, from });
}

function linked(text: string, address: string): Html {
  return html`<a href="${address}">${text}</a>`;
}

function alarms({ missing, unaskable, webhooks, differences }: Overview, broken: Overview['circuits']): Html {
  const { againstRecord } = differences;
  const told = [
    ...missing,
    ...(againstRecord > 0
      ? [`Payments that providers settled, and that are not successful here: ${count(againstRecord)}`]
      : []),
    ...broken.map(
      ({ id, state }) =>
        `Connection ${id} is ${state === 'OPEN' ? 'paused: its circuit is open' : 'being tried again'}`,
    ),
    ...unaskable.map(
      ({ connectionId, open }) =>
        `Unknown outcomes of ${connectionId} that this replica cannot look up: ${open}`,
    ),
    ...(webhooks.length > 0 ? [`Webhooks that are failing or were turned off: ${webhooks.length}`] : []),
  ];
  if (told.length === 0) return NOTHING;
  return html`<ul class="alarms">${told.slice(0, MAX_ROWS).map((text) => html`<li>${text}</li>`)}</ul>`;
}

/** Counts the disputes that need a response, and says which are urgent. */
function disputeTile({ disputes, now }: Overview): Html {
  const of = (group: ReturnType<typeof groupOf>) =>
    disputes.filter((one) => groupOf(one, now) === group).length;
  const [unknown, overdue, soon] = [of('unknown'), of('overdue'), of('soon')];
  const due = unknown + overdue + soon + of('later');
  const told = [
    overdue > 0 && `${overdue} overdue`,
    soon > 0 && `${soon} within 7 days`,
    unknown > 0 && `${unknown} without a date`,
  ].filter(Boolean);
  const more = html`<a href="${DASHBOARD}/disputes">${told.join(', ') || 'none is urgent'}</a>`;
  const isMore = disputes.length === MAX_OPEN_DISPUTES;
  const tone = overdue + unknown > 0 ? 'bad' : soon > 0 ? 'open' : '';
  return tile('Disputes to answer', `${count(due)}${isMore ? '+' : ''}`, more, tone);
}

/** Counts the differences between providers' reports and the record. */
function differenceTile({ differences: { open, againstRecord } }: Overview): Html {
  const isMore = open === MAX_COUNTED_DIFFERENCES ? '+' : '';
  const told =
    againstRecord > 0 ? `${count(againstRecord)} settled against the record` : 'in providers’ reports';
  const more = html`<a href="${settlementAddress({})}">${told}</a>`;
  return tile(
    'Differences',
    `${count(open)}${isMore}`,
    more,
    againstRecord > 0 ? 'bad' : open > 0 ? 'open' : '',
  );
}

function tile(name: string, value: string | Html, more: string | Html, tone = ''): Html {
  return html`<div class="tile ${tone}"><p class="name">${name}</p><p class="value">${value}</p><p class="quiet">${more}</p></div>`;
}

function rates(
  title: string,
  name: string,
  by: ReadonlyMap<string, Tally>,
  linkOf: (key: string) => string,
): Html {
  const rows = [...by].sort(([, a], [, b]) => total(b) - total(a)).slice(0, MAX_ROWS);
  return html`<section class="card"><h2>${title}</h2>${
    rows.length === 0
      ? EMPTY
      : html`<table><thead><tr><th scope="col">${name}</th><th scope="col" class="number">Attempts</th><th scope="col" class="number">Approved</th><th scope="col" class="number">Not sent<br>or expired</th><th scope="col" class="wide">Shares</th></tr></thead><tbody>${rows.map(([key, tally]) => rateRow(key === '' ? 'unknown' : linked(key, linkOf(key)), tally))}</tbody></table>`
  }</section>`;
}

function rateRow(key: string | Html, tally: Tally): Html {
  return html`<tr><th scope="row">${key}</th><td class="number">${count(total(tally))}</td><td class="number">${percent(tally.approved, decided(tally))}</td><td class="number">${count(tally.failed)}</td><td class="wide">${bar(tally)}</td></tr>`;
}

const BAR = 120;

/** Renders a bar of shares. Screen readers skip it, because the numbers next to it contain the same information. */
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

function declines(title: string, payments: readonly Payment[], linkOf: (code: string) => string): Html {
  const by = new Map<string, number>();
  for (const { status, responseCode: code } of payments.flatMap(attemptsOf)) {
    if (status === Transaction_Status.DECLINED) by.set(code, (by.get(code) ?? 0) + 1);
  }
  const rows = [...by].sort(([, a], [, b]) => b - a).slice(0, MAX_ROWS);
  const all = [...by.values()].reduce((sum, one) => sum + one, 0);
  return html`<section class="card"><h2>${title}</h2>${
    rows.length === 0
      ? EMPTY
      : html`<table><thead><tr><th scope="col">Reason</th><th scope="col" class="number">Declines</th><th scope="col" class="number">Share</th></tr></thead><tbody>${rows.map(([code, n]) => html`<tr><th scope="row">${linked(code.replaceAll('_', ' '), linkOf(code))}</th><td class="number">${count(n)}</td><td class="number">${percent(n, all)}</td></tr>`)}</tbody></table>`
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
      : html`<table><thead><tr><th scope="col">Payment</th><th scope="col">Connection</th><th scope="col" class="number">Open for</th><th scope="col">Next check</th></tr></thead><tbody>${attempts.map((one) => html`<tr><th scope="row"><a href="${DASHBOARD}/payments/${one.accountId}/${one.paymentId}"><code>${one.paymentId.slice(-12)}</code></a></th><td>${one.connectionId}</td><td class="number">${duration(one.openS)}</td><td>${time(one.checkAt)}</td></tr>`)}</tbody></table>`
  }</section>`;
}

function webhookTable(webhooks: readonly TroubledWebhook[]): Html {
  if (webhooks.length === 0) return NOTHING;
  return html`<section class="card"><h2>Webhooks in trouble</h2><table><thead><tr><th scope="col">Webhook</th><th scope="col">Since (UTC)</th><th scope="col">State</th></tr></thead><tbody>${webhooks.map((one) => html`<tr><th scope="row" class="long"><a href="${webhookAddress(one)}">${shortened(one.url, 200)}</a><br><span class="quiet">${one.accountName}</span></th><td>${time(one.failingSince)}</td><td>${stateOf(one)}</td></tr>`)}</tbody></table></section>`;
}

const EMPTY = html`<p class="quiet">Nothing in the last hour.</p>`;

function talliesOf(recent: readonly RecentAttempts[]): Map<string, Tally> {
  const by = new Map<string, Tally>();
  for (const { connectionId, status, attempts } of recent) {
    const tally = by.get(connectionId) ?? sumOf([]);
    tally[RESULTS[status] ?? 'waiting'] += attempts;
    by.set(connectionId, tally);
  }
  return by;
}

/** Tallies payments by a name. A payment's last attempt determines how the payment counts. */
function talliesBy(payments: readonly Payment[], nameOf: (payment: Payment) => string): Map<string, Tally> {
  const by = new Map<string, Tally>();
  for (const payment of payments) {
    const last = attemptsOf(payment).at(-1);
    if (!last) continue;
    const tally = by.get(nameOf(payment)) ?? sumOf([]);
    tally[RESULTS[Transaction_Status[last.status]] ?? 'waiting'] += 1;
    by.set(nameOf(payment), tally);
  }
  return by;
}

/** Returns the attempts of a payment, without the operations on it. */
function attemptsOf({ transactionsHistory }: Payment): Transaction[] {
  return transactionsHistory.filter(({ parentTransactionId }) => parentTransactionId === '');
}

function brandOf(payment: Payment): string {
  return cardBrandOf(payment) || (payment.paymentMethod?.type ?? '');
}

function cardBrandOf({ paymentMethod }: Payment): string {
  const kind = paymentMethod?.paymentMethodDetail?.kind;
  return (kind?.case === 'card' && kind.value.cardData?.brand) || '';
}

const isBrand = (payments: readonly Payment[], name: string) =>
  payments.some((payment) => cardBrandOf(payment) === name);

const RESULTS: Readonly<Record<string, keyof Tally>> = {
  SUCCEEDED: 'approved',
  DECLINED: 'declined',
  ERROR: 'failed',
  EXPIRED: 'failed',
};

function sumOf(tallies: readonly Tally[]): Tally {
  const sum = { approved: 0, declined: 0, failed: 0, waiting: 0 };
  for (const one of tallies) for (const [result] of SERIES) sum[result] += one[result];
  return sum;
}

/** Describes the period over which attempts were counted. */
function spanOf(recent: readonly RecentAttempts[], all: Tally): string {
  if (total(all) < MAX_RECENT_ATTEMPTS) return 'in the last hour';
  return `the latest, of ${duration(Math.max(...recent.map(({ sinceS }) => sinceS)))}`;
}

function total(tally: Tally): number {
  return decided(tally) + tally.waiting;
}

function decided({ approved, declined, failed }: Tally): number {
  return approved + declined + failed;
}
