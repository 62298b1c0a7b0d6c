import { round, text } from '#src/simulation/hour-svg.ts';

/** A curve: a value for each number of stored payments. */
export type Curve = { readonly name: string; readonly unit: string; readonly values: readonly number[] };

const WIDTH = 720;
const PANEL = 220;
const LEFT = 70;
const RIGHT = WIDTH - 20;
const TOP = 34;
const BOTTOM = PANEL - 40;

/** Draws curves over the number of stored payments, on a logarithmic axis, one below the other; each from zero. */
export function growthSvg(stored: readonly number[], curves: readonly Curve[]): string {
  const powers = stored.map((count) => Math.log10(Math.max(count, 1_000)));
  const [from, to] = [Math.min(...powers), Math.max(...powers)];
  const x = (i: number) => LEFT + ((powers[i] as number) - from) * ((RIGHT - LEFT) / (to - from || 1));
  const panels = curves.map(({ name, unit, values }, panel) => {
    const top = roundUp(Math.max(...values));
    const y = (value: number) => panel * PANEL + BOTTOM - (value / top) * (BOTTOM - TOP);
    const grid = [0, top / 2, top].flatMap((value) => [
      `<line x1="${LEFT}" y1="${round(y(value))}" x2="${RIGHT}" y2="${round(y(value))}" stroke="#ccc"/>`,
      text(LEFT - 8, y(value) + 4, String(value), 'end'),
    ]);
    const axis = stored.map((count, i) => text(x(i), panel * PANEL + BOTTOM + 18, label(count), 'middle'));
    const points = values.map((value, i) => `${round(x(i))},${round(y(value))}`);
    return [
      text(LEFT, panel * PANEL + TOP - 14, `${name}, ${unit}`, 'start'),
      ...grid,
      ...axis,
      `<polyline points="${points.join(' ')}" fill="none" stroke="#0072b2" stroke-width="2"/>`,
      ...points.map((point) => {
        const [cx, cy] = point.split(',');
        return `<circle cx="${cx}" cy="${cy}" r="3" fill="#0072b2"/>`;
      }),
    ].join('\n');
  });
  const height = curves.length * PANEL;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    ...panels,
    '</svg>\n',
  ].join('\n');
}

/** Returns the next 1, 2 or 5 times a power of ten. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power;
}

function label(count: number): string {
  return count >= 1_000_000 ? `${count / 1_000_000} M` : `${count / 1_000} k`;
}
