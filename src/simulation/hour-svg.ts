import type { SimulatedDay } from '#gen/payments/config/simulation_pb.js';
import { type Compared, nameOf } from './comparison.ts';
import { incidentHours, plotRange } from './hour-plot.ts';

const WIDTH = 1000;
const HEIGHT = 480;
const LEFT = 50;
const RIGHT = 720;
const TOP = 40;
const BOTTOM = 440;
/** Colours of the choices, in their order; distinguishable by colour-blind readers (Okabe and Ito). */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7'];

/** Draws the approval rate of each hour as SVG: a colour for each choice, dashed without failover. */
export function hourSvg(day: SimulatedDay, compared: readonly Compared[]): string {
  const { from, to } = plotRange(compared);
  const x = (hour: number) => LEFT + (hour * (RIGHT - LEFT)) / 24;
  const y = (percent: number) => BOTTOM - ((percent - from) * (BOTTOM - TOP)) / (to - from);
  const choices = [...new Set(compared.map(({ strategy }) => strategy.choice))];

  const incidents = [...incidentHours(day)].map(
    (hour) =>
      `<rect x="${round(x(hour))}" y="${TOP}" width="${round(x(1) - x(0))}" height="${BOTTOM - TOP}" fill="#eee"/>`,
  );
  const grid = Array.from({ length: (to - from) / 10 + 1 }, (_, i) => from + i * 10).flatMap((percent) => [
    `<line x1="${LEFT}" y1="${round(y(percent))}" x2="${RIGHT}" y2="${round(y(percent))}" stroke="#ccc"/>`,
    text(LEFT - 8, y(percent) + 4, `${percent}`, 'end'),
  ]);
  const hours = [0, 6, 12, 18, 24].map((hour) => text(x(hour), BOTTOM + 20, `${hour} h`, 'middle'));
  const lines = compared.flatMap(({ strategy, summary }, i) => {
    const colour = COLOURS[choices.indexOf(strategy.choice)] ?? '#000';
    const style = `fill="none" stroke="${colour}" stroke-width="2"${strategy.failover === false ? ' stroke-dasharray="5 4"' : ''}`;
    const points = summary.approvedByHour.flatMap((percent, hour) =>
      percent === undefined ? [] : `${round(x(hour + 0.5))},${round(y(percent))}`,
    );
    const at = TOP + 12 + i * 24;
    return [
      `<polyline points="${points.join(' ')}" ${style}/>`,
      `<line x1="${RIGHT + 20}" y1="${at - 4}" x2="${RIGHT + 50}" y2="${at - 4}" ${style}/>`,
      text(RIGHT + 58, at, `${nameOf(strategy)}: ${summary.approvedPercent.toFixed(2)}`, 'start'),
    ];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    ...incidents,
    ...grid,
    ...hours,
    text(LEFT, TOP - 16, 'Approved, % of the payments of each hour; grey: an incident', 'start'),
    ...lines,
    '</svg>\n',
  ].join('\n');
}

/** Returns an SVG text element. It escapes nothing: all texts are our own, and none comes from the scenario. */
export function text(x: number, y: number, shown: string, anchor: 'start' | 'middle' | 'end'): string {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${shown}</text>`;
}

/** Rounds a coordinate to a tenth of a pixel. */
export function round(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}
