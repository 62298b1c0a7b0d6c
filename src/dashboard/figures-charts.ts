import type { PaymentOutcome } from '#src/store/tables/outcome-of-payment.ts';
import type { Total } from '#src/store/tables/payment-totals.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import type { FiguresPeriod, Stretch } from './figures-period.ts';
import { decided, type Sum, sumOf, total } from './figures-sums.ts';
import type { Search } from './search-form.ts';
import { amountText, count, moneyText, percent } from './show.ts';

/** Links a number to the search for its payments. A number of 0 has no link. */
export type LinkTo = (text: string, stretch: Stretch, search: Partial<Search>) => Html;

/** Outcomes in drawing order, with their colours and names. */
const SERIES = [
  ['APPROVED', 'good', 'Approved'],
  ['DECLINED', 'bad', 'Declined'],
  ['FAILED', 'fail', 'Failed'],
  ['UNKNOWN', 'open', 'Unknown'],
  ['OPEN', 'wait', 'Open'],
] as const;

/** Limit on the currencies that have a chart; the table has all. */
const MAX_CURRENCIES = 4;

const WIDTH = 640;
const HEIGHT = 120;

/** Returns the search for the payments of an outcome. An unknown outcome is found across accounts too. */
export const searchOf = (outcome: PaymentOutcome): Partial<Search> =>
  outcome === 'UNKNOWN' ? { unknown: '1' } : outcome === 'DECLINED' ? { status: outcome } : { outcome };

/** Renders the payments of each part of a period, and their approval rate, as charts and a table. */
export function paymentCharts(totals: readonly Total[], period: FiguresPeriod, linkTo: LinkTo): Html {
  const groups = Map.groupBy(totals, ({ part }) => part);
  const sums = period.parts.map((_, i) => sumOf(groups.get(i) ?? []));
  const most = Math.max(1, ...sums.map(total));
  const bars = sums.flatMap((sum, i) => {
    let y = HEIGHT;
    return SERIES.map(([outcome, tone]) => {
      const height = (HEIGHT * sum[outcome]) / most;
      y -= height;
      return bar(tone, { i, of: sums.length, y, height });
    });
  });
  const rows = sums.map((sum, i) => {
    const part = period.parts[i] as Stretch;
    const cells = SERIES.map(
      ([outcome]) => html`<td class="number">${linkTo(count(sum[outcome]), part, searchOf(outcome))}</td>`,
    );
    return html`<tr><th scope="row" class="nowrap">${momentOf(part)}</th>${cells}<td class="number">${percent(sum.APPROVED, decided(sum))}</td></tr>`;
  });
  return html`<section class="card"><h2>Payments over time</h2>
${chart(bars)}
<p class="quiet">${SERIES.map(([, tone, name]) => html`<span class="key"><svg viewBox="0 0 8 8" aria-hidden="true"><rect class="fill-${tone}" width="8" height="8"></rect></svg>${name}</span> `)}<br>At most ${count(most)} in ${period.partName}.</p>
${rateChart(sums)}
<details><summary>The numbers</summary><div class="scroll numbers" tabindex="0" role="region" aria-label="Payments over time"><table><thead><tr><th scope="col">From (${period.zone})</th>${SERIES.map(([, , name]) => html`<th scope="col" class="number">${name}</th>`)}<th scope="col" class="number">Rate</th></tr></thead><tbody>${rows}</tbody></table></div></details></section>`;
}

/** Renders the approval rate of each part as a line of points, which parts without known outcomes interrupt. */
function rateChart(sums: readonly Sum[]): Html {
  const rates = sums.map((sum) => (decided(sum) === 0 ? undefined : sum.APPROVED / decided(sum)));
  const known = rates.filter((rate) => rate !== undefined);
  if (known.length === 0) return NOTHING;
  const at = (i: number) => ((i + 0.5) * WIDTH) / sums.length;
  const y = (rate: number) => 2 + (HEIGHT - 4) * (1 - rate);
  const lines = rates.flatMap((rate, i) => {
    const next = rates[i + 1];
    if (rate === undefined || next === undefined) return [];
    return html`<line class="line" x1="${at(i).toFixed(1)}" y1="${y(rate).toFixed(1)}" x2="${at(i + 1).toFixed(1)}" y2="${y(next).toFixed(1)}"></line>`;
  });
  const points = rates.flatMap((rate, i) =>
    rate === undefined
      ? []
      : html`<rect class="fill-line" x="${(at(i) - 3).toFixed(1)}" y="${(y(rate) - 2).toFixed(1)}" width="6" height="4"></rect>`,
  );
  const [least, most] = [Math.min(...known), Math.max(...known)];
  return html`${chart([...lines, ...points], 'small')}
<p class="quiet">Approval rate, from 0 to 100 %: ${percent(least, 1)} at least, ${percent(most, 1)} at most.</p>`;
}

/** Renders the approved money of each part, a chart for each of the currencies with the most payments, and a table. */
export function moneyCharts(totals: readonly Total[], period: FiguresPeriod, linkTo: LinkTo): Html {
  const currencies = [...Map.groupBy(totals, ({ currency }) => currency)]
    .map(([currency, own]) => ({ currency, own, payments: total(sumOf(own)) }))
    .filter(({ currency, own }) => currency !== '' && own.some((one) => one.approvedMinorUnits > 0n))
    .sort((a, b) => b.payments - a.payments)
    .slice(0, MAX_CURRENCIES)
    .map(({ currency, own }) => ({ currency, moved: movedOf(own, period.parts.length) }));
  if (currencies.length === 0) return NOTHING;
  const charts = currencies.map(({ currency, moved }) => {
    const most = moved.reduce((a, b) => (a > b ? a : b), 1n);
    const bars = moved.map((minorUnits, i) => {
      const height = HEIGHT * Number((minorUnits * 10_000n) / most) * 1e-4;
      return bar('good', { i, of: moved.length, y: HEIGHT - height, height });
    });
    return html`${chart(bars, 'small')}<p class="quiet">${currency}: at most ${moneyText({ minorUnits: most, currency })} in ${period.partName}.</p>`;
  });
  const rows = period.parts.map((part, i) => {
    const cells = currencies.map(
      ({ currency, moved }) =>
        html`<td class="number">${linkTo(amountText({ minorUnits: moved[i] ?? 0n, currency }), part, { currency, outcome: 'APPROVED' })}</td>`,
    );
    return html`<tr><th scope="row" class="nowrap">${momentOf(part)}</th>${cells}</tr>`;
  });
  return html`<section class="card"><h2>Approved money over time</h2>${charts}
<details><summary>The numbers</summary><div class="scroll numbers" tabindex="0" role="region" aria-label="Approved money over time"><table><thead><tr><th scope="col">From (${period.zone})</th>${currencies.map(({ currency }) => html`<th scope="col" class="number">${currency}</th>`)}</tr></thead><tbody>${rows}</tbody></table></div></details></section>`;
}

function movedOf(totals: readonly Total[], parts: number): bigint[] {
  const moved = Array.from({ length: parts }, () => 0n);
  for (const { part, approvedMinorUnits } of totals) moved[part] = (moved[part] ?? 0n) + approvedMinorUnits;
  return moved;
}

/** Screen readers skip charts, because the table below contains the same numbers. */
function chart(content: readonly Html[], size = ''): Html {
  return html`<svg class="chart ${size}" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">${content}</svg>`;
}

type Bar = { readonly i: number; readonly of: number; readonly y: number; readonly height: number };

function bar(tone: string, { i, of, y, height }: Bar): Html {
  if (height <= 0) return NOTHING;
  const width = WIDTH / of;
  return html`<rect class="fill-${tone}" x="${(i * width + 1).toFixed(1)}" y="${y.toFixed(1)}" width="${Math.max(1, width - 2).toFixed(1)}" height="${height.toFixed(1)}"></rect>`;
}

function momentOf({ from }: Stretch): Html {
  const local = from.toPlainDateTime().toString({ smallestUnit: 'minute' });
  return html`<time datetime="${from.toInstant().toString()}">${local.replace('T', ' ')}</time>`;
}
