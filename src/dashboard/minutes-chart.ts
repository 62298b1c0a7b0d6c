import { type Html, html } from '#src/web/html.ts';
import { type Minute, sumOf } from './figures.ts';
import { count } from './show.ts';

const WIDTH = 1080;
const HEIGHT = 190;
const LEFT = 44;
const BOTTOM = 22;
const TOP = 8;

/** Results in the order in which they are drawn: the key of their count, their colour, and their name. */
export const SERIES = [
  ['approved', 'good', 'Approved'],
  ['declined', 'bad', 'Declined'],
  ['failed', 'fail', 'Not sent or expired'],
  ['waiting', 'open', 'Waiting'],
] as const;

/** Draws the last hour as stacked bars, one bar per minute. */
export function minutesChart(minutes: readonly Minute[]): Html {
  const most = Math.max(...minutes.map((minute) => SERIES.reduce((sum, [key]) => sum + minute[key], 0)), 1);
  const top = niceAbove(most);
  const step = (WIDTH - LEFT) / minutes.length;
  const scale = (HEIGHT - BOTTOM - TOP) / top;
  const baseline = HEIGHT - BOTTOM;
  const bars = minutes.flatMap((minute, i) => {
    let y = baseline;
    return SERIES.filter(([key]) => minute[key] > 0).map(([key, tone]) => {
      const height = minute[key] * scale;
      y -= height;
      return html`<rect class="fill-${tone}" x="${(LEFT + i * step + 1).toFixed(1)}" y="${y.toFixed(1)}" width="${(step - 2).toFixed(1)}" height="${height.toFixed(1)}"></rect>`;
    });
  });
  const lines = [0, top / 2, top].map((value) => {
    const y = (baseline - value * scale).toFixed(1);
    return html`<line class="rule" x1="${LEFT}" x2="${WIDTH}" y1="${y}" y2="${y}"></line><text x="${LEFT - 6}" y="${y}" dy="4" text-anchor="end">${count(value)}</text>`;
  });
  const times = minutes
    .map((minute, i) => ({ minute, x: LEFT + i * step }))
    .filter(({ minute }) => (minute.startMs / 60_000) % 15 === 0)
    .map(
      ({ minute, x }) =>
        html`<text x="${x.toFixed(1)}" y="${HEIGHT - 6}">${new Date(minute.startMs).toISOString().slice(11, 16)}</text>`,
    );
  const hour = sumOf(minutes);
  const totals = SERIES.map(([key, , name]) => `${name.toLowerCase()} ${hour[key]}`);
  return html`<div class="scroll newest" tabindex="0" role="group" aria-label="Outcomes by minute"><svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Outcomes of the last hour: ${totals.join(', ')}">${lines}${bars}${times}</svg></div>
<ul class="legend">${SERIES.map(([, tone, name]) => html`<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="fill-${tone}" width="10" height="10" rx="2"></rect></svg>${name}</li>`)}</ul>`;
}

/** Smallest of 2, 4, 10, 20, 40, 100… that is not below a number. */
function niceAbove(value: number): number {
  const magnitude = 10 ** Math.floor(Math.log10(value));
  const nice = [1, 2, 4, 10].find((factor) => factor * magnitude >= value) ?? 10;
  return Math.max(2, nice * magnitude);
}
