import { readPeriod } from '#src/exports/period.ts';
import { formatMoney } from '#src/money.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { listAccountNames } from '#src/store/tables/accounts.ts';
import { sumTotals, type Total } from '#src/store/tables/payment-totals.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type Html, html } from '#src/web/html.ts';
import { DASHBOARD, missingNodes } from './frame.ts';
import { count, money, option, percent, shortened, time } from './show.ts';
import type { Page, Visit } from './visit.ts';

const HOUR_MS = 3_600_000;
const MAX_ACCOUNTS = 1_000;
/** Limit on the rows of each table. */
const MAX_ROWS = 12;

/** The periods to choose, in hours, with the hours of each part that the charts show. */
const SPANS = {
  '1h': { name: '1 hour', hours: 1, part: 1 },
  '24h': { name: '24 hours', hours: 24, part: 1 },
  '7d': { name: '7 days', hours: 168, part: 6 },
  '30d': { name: '30 days', hours: 720, part: 24 },
} as const;

/** A period of whole hours, in parts of equal length. */
type Span = { readonly from: Date; readonly before: Date; readonly partH: number };

/** Sums of totals. */
type Sum = {
  approved: number;
  declined: number;
  failed: number;
  open: number;
  refunds: number;
  disputes: number;
};

/** Figures of a period against the time before, from the totals by hour of creation. */
export async function figuresPage(database: Database, visit: Visit): Promise<Page> {
  const accounts = await listAccountNames(database, MAX_ACCOUNTS);
  const accountId = isUuid(visit.query('account_id')) ? visit.query('account_id') : undefined;
  const { span, fault } = spanOf(visit, new Date());
  const lengthMs = span.before.getTime() - span.from.getTime();
  const since = new Date(span.from.getTime() - lengthMs);
  const totals = await sumTotals(
    database,
    { ...span, since, partS: (span.partH * HOUR_MS) / 1_000 },
    accountId,
  );
  const [now, past] = [totals.filter(({ part }) => part >= 0), totals.filter(({ part }) => part < 0)];
  const content = html`<div class="heading"><h1>Figures</h1><p class="quiet">Payments created from ${time(span.from)} to ${time(span.before)} UTC, against the ${lengthMs / HOUR_MS} hours before</p></div>
${[...missingNodes(database), ...(fault ? [fault] : [])].map((text) => html`<ul class="alarms"><li>${text}</li></ul>`)}
${form(visit, accounts)}
${tiles(sumOf(now), sumOf(past))}
<p class="quiet">The approval rate is the approved payments among those with a known outcome: approved, declined, and failed (not sent, expired or canceled before an approval). Payments that are still open are left out. Each payment counts in the hour in which it was created, with its money, refunds and disputes so far; the latest hours are counted every five minutes, older ones once a day for 35 days. Codes and countries of the last hour are on the <a href="${DASHBOARD}">overview</a>.</p>
<div class="columns">
${byTime(now, span)}
${moneyTable(now, past)}
${tableBy('By connection', 'Connection', now, past, ({ connectionId }) => connectionId)}
${tableBy('By method', 'Method', now, past, ({ methodType }) => methodType.replaceAll('_', ' '))}
</div>`;
  return { title: 'Figures', section: '/figures', content };
}

/** Reads the period. Whole hours (UTC) are counted, the last of them the running one. */
function spanOf(visit: Visit, now: Date): { readonly span: Span; readonly fault?: string } {
  const [from, before] = [visit.query('from'), visit.query('before')];
  const end = Math.floor(now.getTime() / HOUR_MS + 1) * HOUR_MS;
  const chosen = Object.hasOwn(SPANS, visit.query('span'))
    ? (visit.query('span') as keyof typeof SPANS)
    : '24h';
  const { hours, part } = SPANS[chosen];
  const span = { from: new Date(end - hours * HOUR_MS), before: new Date(end), partH: part };
  if (from === '' && before === '') return { span };
  try {
    const given = readPeriod({ from: from || undefined, before: before || undefined });
    const first = Math.floor(given.from.epochMilliseconds / HOUR_MS);
    const last = Math.ceil(given.before.epochMilliseconds / HOUR_MS);
    // At most 32 parts fit into a chart.
    const partH = Math.max(1, Math.ceil((last - first) / 32));
    return { span: { from: new Date(first * HOUR_MS), before: new Date(last * HOUR_MS), partH } };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { span, fault: `${error.message}. The period is the last ${SPANS[chosen].name}.` };
  }
}

function form(visit: Visit, accounts: readonly { readonly id: string; readonly name: string }[]): Html {
  const given = visit.query;
  return html`<form class="card filters" method="get">
<div><label for="span">Period</label><select id="span" name="span">${Object.entries(SPANS).map(([key, { name }]) => option(key, name, given('span') || '24h'))}</select></div>
<div><label for="account_id">Account</label><select id="account_id" name="account_id">${option('', 'All', given('account_id'))}${accounts.map(({ id, name }) => option(id, shortened(name, 60), given('account_id')))}</select></div>
<div class="moment"><label for="from">or from (UTC)</label><input id="from" name="from" type="datetime-local" value="${given('from')}"></div>
<div class="moment"><label for="before">before</label><input id="before" name="before" type="datetime-local" value="${given('before')}"></div>
<div><button>Show</button></div>
</form>`;
}

function tiles(now: Sum, past: Sum): Html {
  const tile = (name: string, value: string, before: string) =>
    html`<div class="tile"><p class="name">${name}</p><p class="value">${value}</p><p class="quiet">before: ${before}</p></div>`;
  const counted = (name: string, key: keyof Sum) => tile(name, count(now[key]), count(past[key]));
  return html`<div class="tiles">
${counted('Approved payments', 'approved')}
${tile('Approval rate', percent(now.approved, decided(now)), percent(past.approved, decided(past)))}
${counted('Declined', 'declined')}
${counted('Open', 'open')}
${counted('Refunds', 'refunds')}
${counted('Disputes', 'disputes')}
</div>`;
}

const CHART = { width: 640, height: 120 };

/** A chart of the payments in each part of the period, with the same numbers in a table. */
function byTime(totals: readonly Total[], { from, before, partH }: Span): Html {
  const parts = Math.ceil((before.getTime() - from.getTime()) / (partH * HOUR_MS));
  const groups = Map.groupBy(totals, ({ part }) => part);
  const sums = Array.from({ length: parts }, (_, i) => sumOf(groups.get(i) ?? []));
  const most = Math.max(1, ...sums.map(all));
  const width = CHART.width / parts;
  const bars = sums.flatMap((sum, i) => {
    let y = CHART.height;
    return SERIES.map(([key, tone]) => {
      const height = (CHART.height * sum[key]) / most;
      y -= height;
      return html`<rect class="fill-${tone}" x="${(i * width + 1).toFixed(1)}" y="${y.toFixed(1)}" width="${Math.max(1, width - 2).toFixed(1)}" height="${height.toFixed(1)}"></rect>`;
    });
  });
  const rows = sums.map((sum, i) => {
    const start = new Date(from.getTime() + i * partH * HOUR_MS);
    return html`<tr><th scope="row">${time(start)}</th><td class="number">${count(sum.approved)}</td><td class="number">${count(sum.declined)}</td><td class="number">${count(sum.failed)}</td><td class="number">${count(sum.open)}</td><td class="number">${percent(sum.approved, decided(sum))}</td></tr>`;
  });
  return html`<section class="card"><h2>Payments over time</h2>
<svg class="chart" viewBox="0 0 ${CHART.width} ${CHART.height}" preserveAspectRatio="none" aria-hidden="true">${bars}</svg>
<p class="quiet">At most ${count(most)} payments in ${partH === 1 ? 'an hour' : `${partH} hours`}: approved below, then declined, failed and open.</p>
<details><summary>The numbers</summary><div class="scroll"><table><thead><tr><th scope="col">From (UTC)</th><th scope="col" class="number">Approved</th><th scope="col" class="number">Declined</th><th scope="col" class="number">Failed</th><th scope="col" class="number">Open</th><th scope="col" class="number">Rate</th></tr></thead><tbody>${rows}</tbody></table></div></details></section>`;
}

/** Results in drawing order, with their colours. */
const SERIES = [
  ['approved', 'good'],
  ['declined', 'bad'],
  ['failed', 'fail'],
  ['open', 'open'],
] as const;

function moneyTable(now: readonly Total[], past: readonly Total[]): Html {
  const before = Map.groupBy(past, ({ currency }) => currency);
  const rows = [...Map.groupBy(now, ({ currency }) => currency)].filter(([currency]) => currency !== '');
  const moved = (
    totals: readonly Total[],
    key: 'approvedMinorUnits' | 'refundedMinorUnits',
    currency: string,
  ) =>
    money(formatMoney({ minorUnits: totals.reduce((sum, one) => sum + one[key], 0n), currency }), currency);
  return html`<section class="card"><h2>Approved money</h2>${
    rows.length === 0
      ? EMPTY
      : html`<div class="scroll"><table><thead><tr><th scope="col">Currency</th><th scope="col" class="number">Approved</th><th scope="col" class="number">Before</th><th scope="col" class="number">Refunded</th></tr></thead><tbody>${rows.map(([currency, totals]) => html`<tr><th scope="row">${currency}</th><td class="number">${moved(totals, 'approvedMinorUnits', currency)}</td><td class="number">${moved(before.get(currency) ?? [], 'approvedMinorUnits', currency)}</td><td class="number">${moved(totals, 'refundedMinorUnits', currency)}</td></tr>`)}</tbody></table></div><p class="quiet">Purchases and captures that succeeded; an authorization is no money yet.</p>`
  }</section>`;
}

function tableBy(
  title: string,
  name: string,
  now: readonly Total[],
  past: readonly Total[],
  keyOf: (total: Total) => string,
): Html {
  const before = Map.groupBy(past, keyOf);
  const rows = [...Map.groupBy(now, keyOf)]
    .map(([key, totals]) => ({ key, sum: sumOf(totals), past: sumOf(before.get(key) ?? []) }))
    .sort((a, b) => all(b.sum) - all(a.sum))
    .slice(0, MAX_ROWS);
  return html`<section class="card"><h2>${title}</h2>${
    rows.length === 0
      ? EMPTY
      : html`<div class="scroll"><table><thead><tr><th scope="col">${name}</th><th scope="col" class="number">Payments</th><th scope="col" class="number">Rate</th><th scope="col" class="number">Before</th><th scope="col" class="number">Open</th></tr></thead><tbody>${rows.map((row) => html`<tr><th scope="row">${row.key || 'unknown'}</th><td class="number">${count(all(row.sum))}</td><td class="number">${percent(row.sum.approved, decided(row.sum))}</td><td class="number">${percent(row.past.approved, decided(row.past))}</td><td class="number">${count(row.sum.open)}</td></tr>`)}</tbody></table></div>`
  }</section>`;
}

const EMPTY = html`<p class="quiet">Nothing in this period.</p>`;

const OUTCOMES = { APPROVED: 'approved', DECLINED: 'declined', FAILED: 'failed', OPEN: 'open' } as const;

function sumOf(totals: readonly Total[]): Sum {
  const sum: Sum = { approved: 0, declined: 0, failed: 0, open: 0, refunds: 0, disputes: 0 };
  for (const { outcome, payments, refunds, disputes } of totals) {
    sum[OUTCOMES[outcome]] += payments;
    sum.refunds += refunds;
    sum.disputes += disputes;
  }
  return sum;
}

function decided({ approved, declined, failed }: Sum): number {
  return approved + declined + failed;
}

function all(sum: Sum): number {
  return decided(sum) + sum.open;
}
