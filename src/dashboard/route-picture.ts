import { type Catalogue, Choice, type ConnectionConfig, type Route } from '#gen/payments/v1/catalogue_pb.js';
import type { ExplainedCatalogue } from '#src/payments/route/explain-route.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { shortened } from './show.ts';

const WIDTH = 1080;
const ROUTE_WIDTH = 560;
const ROUTE_HEIGHT = 66;
const GAP = 14;
const CONNECTION_X = 790;
const CONNECTION_HEIGHT = 46;
const PAD = 14;
/** Limit on the characters of a line in a route's box. */
const LINE_LENGTH = 74;
const CONDITION_LINES = 2;

const CHOICES: Readonly<Record<number, string>> = {
  [Choice.SPLIT]: 'by weight',
  [Choice.SUCCESS_RATE]: 'by approval rate',
};
const DOTS: Readonly<Record<string, string>> = { CLOSED: 'good', OPEN: 'bad', HALF_OPEN: 'open' };

/** The catalogue in force. */
export type ShownCatalogue = ExplainedCatalogue & { readonly catalogue: Catalogue };

/**
 * Draws the routes in order on the left, the connections on the right, and a line from each route to each of its
 * targets, marked with its position or share. The line to the first choice is thick.
 *
 * @param notes short texts beside connections, by their ids.
 */
export function routePicture(
  { catalogue, health }: Pick<ShownCatalogue, 'catalogue' | 'health'>,
  most: number,
  notes: ReadonlyMap<string, string> = new Map(),
): Html {
  const routes = catalogue.routes.slice(0, most);
  const targeted = new Set(routes.flatMap(({ targets }) => targets.map(({ connection }) => connection)));
  const connections = catalogue.connections.filter(({ id }) => targeted.has(id));
  const routesHeight = routes.length * (ROUTE_HEIGHT + GAP) - GAP;
  const step = Math.max(CONNECTION_HEIGHT + GAP, routesHeight / Math.max(1, connections.length));
  const height = Math.max(routesHeight, step * connections.length) + 2 * PAD;
  const yOfConnection = new Map(
    connections.map(({ id }, i) => [id, PAD + i * step + (step - CONNECTION_HEIGHT) / 2] as const),
  );
  const yOfRoute = (i: number) => PAD + i * (ROUTE_HEIGHT + GAP);
  const told = routes.map(
    ({ name, targets }) => `${name}: ${targets.map(({ connection }) => connection).join(', then ')}`,
  );
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Diagram of the routes">
<svg class="routes" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${shortened(`Routes and their targets. ${told.join('. ')}`, 2_000)}">
${routes.map((route, i) => ways(route, yOfRoute(i), yOfConnection))}
${routes.map((route, i) => routeBox(route, yOfRoute(i), i))}
${connections.map((one) => connectionBox(one, yOfConnection.get(one.id) ?? 0, health.get(one.id)?.state(), notes.get(one.id)))}
</svg></div>`;
}

function ways({ targets, choice }: Route, y: number, yOfConnection: ReadonlyMap<string, number>): Html {
  const weights = targets.reduce((sum, { weight }) => sum + (weight ?? 1), 0);
  const startX = 2 + ROUTE_WIDTH;
  const lines = targets.map(({ connection, weight }, i) => {
    const fromY = y + (ROUTE_HEIGHT * (i + 1)) / (targets.length + 1);
    const connectionY = yOfConnection.get(connection);
    // A catalogue with faults may name a connection that it does not have.
    if (connectionY === undefined) return NOTHING;
    const toY = connectionY + CONNECTION_HEIGHT / 2;
    const middle = (startX + CONNECTION_X) / 2;
    const share =
      choice === Choice.SPLIT ? `${Math.round((100 * (weight ?? 1)) / weights)} %` : String(i + 1);
    return html`<path class="way${i === 0 ? ' first' : ''}" d="M${startX} ${fromY.toFixed(1)}C${middle} ${fromY.toFixed(1)} ${middle} ${toY.toFixed(1)} ${CONNECTION_X} ${toY.toFixed(1)}"></path><text x="${startX + 6}" y="${(fromY - 4).toFixed(1)}">${share}</text>`;
  });
  return html`${lines}`;
}

function routeBox({ id, name, condition, choice, failover, accounts }: Route, y: number, i: number): Html {
  const lines = inLines(condition || 'accepts every payment', LINE_LENGTH, CONDITION_LINES);
  const marks = [
    `id ${id}`,
    CHOICES[choice ?? Choice.CHOICE_UNSPECIFIED],
    failover?.softDeclines && 'soft declines fail over',
    accounts.length > 0 && 'some accounts have their own targets',
  ].filter(Boolean);
  return html`<rect class="box" x="1" y="${y}" width="${ROUTE_WIDTH}" height="${ROUTE_HEIGHT}" rx="9"></rect>
<text class="title" x="${PAD}" y="${y + 21}">${i + 1}. ${shortened(name || `Route ${id}`, 48)}</text>
<text x="${ROUTE_WIDTH - PAD}" y="${y + 21}" text-anchor="end">${marks.join(' · ')}</text>
${lines.map((line, n) => html`<text x="${PAD}" y="${y + 41 + n * 16}" class="condition">${line}</text>`)}`;
}

function connectionBox(
  { id, name, providerId, retired }: ConnectionConfig,
  y: number,
  circuit: string | undefined,
  note = '',
): Html {
  const width = WIDTH - CONNECTION_X - 1;
  return html`<rect class="box" x="${CONNECTION_X}" y="${y.toFixed(1)}" width="${width}" height="${CONNECTION_HEIGHT}" rx="9"></rect>
<circle class="dot-${DOTS[circuit ?? ''] ?? 'plain'}" cx="${CONNECTION_X + 18}" cy="${(y + CONNECTION_HEIGHT / 2).toFixed(1)}" r="5">${circuit ? html`<title>circuit ${circuit}</title>` : NOTHING}</circle>
<text class="title" x="${CONNECTION_X + 34}" y="${(y + 20).toFixed(1)}">${shortened(id, 32)}</text>
<text x="${CONNECTION_X + 34}" y="${(y + 36).toFixed(1)}">${shortened(name || providerId, 30)}${retired ? ' · retired' : ''}</text>
<text class="title" x="${WIDTH - PAD}" y="${(y + 28).toFixed(1)}" text-anchor="end">${note}</text>`;
}

/** Breaks a string into lines at spaces, and truncates the excess. */
function inLines(text: string, length: number, most: number): string[] {
  const lines = [''];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1) ?? '';
    const longer = last === '' ? word : `${last} ${word}`;
    if (longer.length <= length) lines[lines.length - 1] = longer;
    else lines.push(shortened(word, length));
  }
  return lines.length > most
    ? [...lines.slice(0, most - 1), `${shortened(lines[most - 1] ?? '', length - 2)} …`]
    : lines;
}
