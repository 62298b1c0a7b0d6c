import type { SimulatedDay } from '#gen/payments/config/simulation_pb.js';
import type { Compared } from './comparison.ts';

const HEIGHT = 12;
const GAP = '   ';
const PANELS_A_ROW = 3;

type Hours = readonly (number | undefined)[];
type Panel = { readonly title: string; readonly plain: Hours; readonly failover: Hours };

/**
 * Plots the approval rate of each hour in plain text of at most 100 columns, with a panel for each choice and a column for
 * each hour: what is approved without failover, and on top of it what failover adds.
 */
export function hourPlot(day: SimulatedDay, compared: readonly Compared[]): string {
  const { from, to } = plotRange(compared);
  const panels = panelsOf(compared);
  const rows = Array.from({ length: Math.ceil(panels.length / PANELS_A_ROW) }, (_, i) =>
    panelRow(panels.slice(i * PANELS_A_ROW, (i + 1) * PANELS_A_ROW), incidentHours(day), from, to),
  );
  const legend = '█ approved   ░ approved with failover after soft declines only   ^ an incident';
  return ['Approved, % of the payments of each hour', '', ...rows, `      ${legend}`].join('\n');
}

/** Returns the percentages between which every hour of every strategy lies: two different multiples of ten. */
export function plotRange(compared: readonly Compared[]): { readonly from: number; readonly to: number } {
  const rates = compared.flatMap(({ summary }) =>
    summary.approvedByHour.filter((rate) => rate !== undefined),
  );
  const from = Math.floor(Math.min(90, ...rates) / 10) * 10;
  return { from, to: Math.max(from + 10, Math.ceil(Math.max(...rates) / 10) * 10) };
}

/** Returns the hours, 0 to 23, in which any connection has an incident. */
export function incidentHours({ connections }: SimulatedDay): ReadonlySet<number> {
  const incidents = connections.flatMap((connection) => connection.incidents);
  const hours = Array.from({ length: 24 }, (_, hour) => hour);
  return new Set(
    hours.filter((hour) => incidents.some(({ fromHour, toHour }) => fromHour < hour + 1 && hour < toHour)),
  );
}

function panelsOf(compared: readonly Compared[]): Panel[] {
  return compared.flatMap(({ strategy: { choice, failover }, summary: { approvedByHour: plain } }) => {
    if (failover) return [];
    const other = compared.find(({ strategy }) => strategy.choice === choice && strategy.failover);
    return { title: choice, plain, failover: other?.summary.approvedByHour ?? plain };
  });
}

function panelRow(
  panels: readonly Panel[],
  incidents: ReadonlySet<number>,
  from: number,
  to: number,
): string {
  const line = (label: string, part: (panel: Panel) => string) =>
    `${label.padStart(4)}  ${panels.map((panel) => part(panel).padEnd(24)).join(GAP)}`.trimEnd();
  const step = (to - from) / HEIGHT;
  const bars = Array.from({ length: HEIGHT }, (_, i) => {
    const middle = to - (i + 0.5) * step;
    const mark = (hour: number, { plain, failover }: Panel) => {
      if ((plain[hour] ?? 0) >= middle) return '█';
      return (failover[hour] ?? 0) >= middle ? '░' : ' ';
    };
    const label = i % 3 === 0 ? (to - i * step).toFixed(0) : '';
    return line(label, (panel) => panel.plain.map((_, hour) => mark(hour, panel)).join(''));
  });
  const marks = Array.from({ length: 24 }, (_, hour) => (incidents.has(hour) ? '^' : ' ')).join('');
  return [
    line('', ({ title }) => title),
    ...bars,
    line(from.toFixed(0), () => '0     6     12    18    '),
    line('', () => marks),
  ].join('\n');
}
