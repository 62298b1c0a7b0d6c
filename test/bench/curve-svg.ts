/** A panel with one or more lines, each with a value for each point of the axis. */
export type Panel = { readonly title: string; readonly lines: Readonly<Record<string, readonly number[]>> };

const WIDTH = 720;
const HEIGHT = 240;
const LEFT = 70;
const RIGHT = WIDTH - 20;
const TOP = 54;
const BOTTOM = HEIGHT - 40;
/** Colors that color-blind readers can distinguish (Okabe and Ito). */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7'];

/**
 * Draws panels below each other over one logarithmic axis; the scale of each panel starts at zero.
 *
 * @param axis positive numbers.
 */
export function curveSvg(axis: readonly number[], panels: readonly Panel[]): string {
  const powers = axis.map(Math.log10);
  const [from, to] = [Math.min(...powers), Math.max(...powers)];
  const x = powers.map((power) => LEFT + (power - from) * ((RIGHT - LEFT) / (to - from || 1)));
  const height = panels.length * HEIGHT;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    ...panels.map((panel, i) => drawn(panel, i * HEIGHT, axis, x)),
    '</svg>\n',
  ].join('\n');
}

function drawn(
  { title, lines }: Panel,
  offset: number,
  axis: readonly number[],
  x: readonly number[],
): string {
  const top = roundUp(Math.max(...Object.values(lines).flat()));
  const y = (value: number) => offset + BOTTOM - (value / top) * (BOTTOM - TOP);
  const grid = [0, top / 2, top].flatMap((value) => [
    `<line x1="${LEFT}" y1="${round(y(value))}" x2="${RIGHT}" y2="${round(y(value))}" stroke="#ccc"/>`,
    text(LEFT - 8, y(value) + 4, String(value), 'end'),
  ]);
  const named = Object.entries(lines).map(([name, values], i) => {
    const colour = COLOURS[i % COLOURS.length];
    const points = values.map((value, place) => [round(x[place] as number), round(y(value))]);
    return [
      `<polyline points="${points.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      ...points.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`),
      `<g fill="${colour}">${text(LEFT + 150 * i, offset + TOP - 14, name, 'start')}</g>`,
    ].join('\n');
  });
  return [
    text(LEFT, offset + TOP - 34, title, 'start'),
    ...grid,
    ...axis.map((value, place) => text(x[place] as number, offset + BOTTOM + 18, label(value), 'middle')),
    ...named,
  ].join('\n');
}

/** Returns the next 1, 2 or 5 times a power of ten. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power;
}

function label(value: number): string {
  if (value >= 1_000_000) return `${value / 1_000_000} M`;
  return value >= 1_000 ? `${value / 1_000} k` : String(value);
}

/** Returns an SVG text element. It escapes nothing: all texts are our own. */
function text(x: number, y: number, shown: string, anchor: 'start' | 'middle' | 'end'): string {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${shown}</text>`;
}

/** Rounds a coordinate to a tenth of a pixel. */
const round = (value: number) => Math.round(value * 10) / 10;
