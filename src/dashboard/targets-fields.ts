import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type AccountTargets,
  type AccountTargetsSchema,
  type Catalogue,
  Choice,
} from '#gen/payments/v1/catalogue_pb.js';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { checkField, choiceField, type Fields, integerIn, textField } from './form-fields.ts';
import { option, shortened } from './show.ts';

/** The targets of a route or of some accounts, with the way in which they are chosen. */
type Plan = Pick<AccountTargets, 'targets' | 'choice' | 'failover'>;
type PlanInit = Pick<
  Exclude<MessageInitShape<typeof AccountTargetsSchema>, AccountTargets>,
  'targets' | 'choice' | 'failover'
>;

/** The number of targets that a route may have, and of empty rows that a form adds. */
const MAX_TARGETS = 20;
const EMPTY_ROWS = 2;
/** Number of connections up to which they are listed in each row; with more, the rows share one list. */
const MAX_LISTED = 100;

/** Renders the targets in order, the choice among them and the failover. @param prefix of the fields' names. */
export function targetsFields(fields: Fields, prefix: string, { connections }: Catalogue): Html {
  const filled = rowsIn(fields, prefix).reduce((most, { at }) => Math.max(most, at + 1), 0);
  const count = Math.min(MAX_TARGETS, filled + EMPTY_ROWS);
  const rows = Array.from({ length: count }, (_, i) => row(fields, `${prefix}t${i}`, i, connections));
  const isExplicit = fields(`${prefix}choice`) === 'PRIORITY';
  return html`<table class="targets"><thead><tr><th scope="col">Place</th><th scope="col">Connection</th><th scope="col">Weight</th></tr></thead><tbody>${rows}</tbody></table>
${choiceField(
  fields,
  `${prefix}choice`,
  'The first target is chosen',
  [
    [isExplicit ? 'PRIORITY' : '', 'in the order of their places'],
    ['SPLIT', 'by weight'],
    ['SUCCESS_RATE', 'by recent approval rate'],
  ],
  'Weights are used only by weight. A target with weight 0 gets payments only by failover.',
)}
<input type="hidden" name="${prefix}failover" value="${fields(`${prefix}failover`)}">
${textField(fields, `${prefix}attempts`, 'Most attempts', { hint: 'the number of targets', maxLength: 2 })}
${checkField(fields, `${prefix}soft`, 'Also fails over after a soft decline')}`;
}

/** Renders the list that the rows share if there are many connections. */
export function connectionList({ connections }: Catalogue): Html {
  if (connections.length <= MAX_LISTED) return NOTHING;
  return html`<datalist id="connections">${connections.map(({ id }) => html`<option value="${id}"></option>`)}</datalist>`;
}

function row(fields: Fields, name: string, i: number, connections: Catalogue['connections']): Html {
  const id = fields(`${name}_connection`);
  const label = html`aria-label="Connection of target ${i + 1}"`;
  const ids = connections.map((one) => one.id);
  const known = id === '' || ids.includes(id) ? ids : [...ids, id];
  const choice =
    connections.length <= MAX_LISTED
      ? html`<select name="${name}_connection" ${label}>${option('', '–', id)}${known.map((one) => option(one, shortened(one, 60), id))}</select>`
      : html`<input name="${name}_connection" ${label} list="connections" maxlength="255" value="${id}">`;
  const number = (field: string, of: string, value: string) =>
    html`<input name="${name}_${field}" aria-label="${of} of target ${i + 1}" inputmode="numeric" maxlength="7" value="${value}">`;
  return html`<tr><td>${number('place', 'Place', fields(`${name}_place`) || String(i + 1))}</td><td>${choice}</td><td>${number('weight', 'Weight', fields(`${name}_weight`))}</td></tr>`;
}

/** Returns the fields of stored targets. */
export function fieldsOfTargets({ targets, choice, failover }: Plan, prefix: string): Record<string, string> {
  const rows = targets.flatMap(({ connection, weight }, i) => [
    [`${prefix}t${i}_connection`, connection],
    [`${prefix}t${i}_weight`, weight === undefined ? '' : String(weight)],
  ]);
  return {
    ...Object.fromEntries(rows),
    [`${prefix}choice`]: choice === undefined ? '' : (Choice[choice] ?? ''),
    [`${prefix}failover`]: failover ? 'present' : '',
    [`${prefix}attempts`]: failover?.maxAttempts === undefined ? '' : String(failover.maxAttempts),
    [`${prefix}soft`]: failover?.softDeclines ? 'on' : '',
  };
}

/** Reads the targets in the order of their places. @throws ServiceError INVALID_PARAMETERS. */
export function targetsIn(fields: Fields, prefix: string): PlanInit {
  const rows = rowsIn(fields, prefix).map(({ at, name, connection }) => {
    const label = `target ${at + 1}`;
    const position = integerIn(fields, `${name}_place`, `place of ${label}`) ?? at + 1;
    const weight = integerIn(fields, `${name}_weight`, `weight of ${label}`);
    return { position, target: { connection, ...(weight !== undefined && { weight }) } };
  });
  const choice = Choice[fields(`${prefix}choice`) as keyof typeof Choice];
  const maxAttempts = integerIn(fields, `${prefix}attempts`, 'most attempts');
  const softDeclines = fields(`${prefix}soft`) === 'on';
  const hasFailover = fields(`${prefix}failover`) !== '' || maxAttempts !== undefined || softDeclines;
  return {
    targets: rows.sort((a, b) => a.position - b.position).map(({ target }) => target),
    ...(choice && { choice }),
    ...(hasFailover && { failover: { ...(maxAttempts !== undefined && { maxAttempts }), softDeclines } }),
  };
}

/** Returns the rows that name a connection. */
function rowsIn(fields: Fields, prefix: string) {
  return Array.from({ length: MAX_TARGETS }, (_, at) => {
    const name = `${prefix}t${at}`;
    return { at, name, connection: fields(`${name}_connection`) };
  }).filter(({ connection }) => connection !== '');
}
