import { create } from '@bufbuild/protobuf';
import { type Catalogue, type Route, RouteSchema } from '#gen/payments/v1/catalogue_pb.js';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { type CatalogueChange, hiddenFields, previewButton } from './configuration.ts';
import { type Editor, missing } from './editor.ts';
import {
  areaField,
  choiceField,
  type Fields,
  fieldsOf,
  integerIn,
  textField,
  wordsIn,
} from './form-fields.ts';
import { DASHBOARD } from './frame.ts';
import { shortened } from './show.ts';
import { connectionList, fieldsOfTargets, targetsFields, targetsIn } from './targets-fields.ts';
import type { Visit } from './visit.ts';

/** Number of groups of accounts with their own targets that a form can hold. */
const MAX_GROUPS = 5;

/** The form of a route. */
export const ROUTE_EDITOR: Editor = {
  path: '/catalogue/route',
  title: (name) => (name === '' ? 'New route' : `Route ${name}`),
  stored({ routes }, name) {
    const route = routes.find(({ id }) => String(id) === name);
    if (!route) throw missing('route', name);
    return fieldsOfRoute(route);
  },
  blank({ routes }) {
    const id = routes.reduce((most, route) => Math.max(most, route.id), 0) + 1;
    const catchAll = routes.find(({ condition }) => condition === '');
    return fieldsOf({ id: String(id), before: catchAll ? String(catchAll.id) : '' });
  },
  change: changeIn,
  form,
};

function fieldsOfRoute(route: Route): Fields {
  const groups = route.accounts.map(({ accountIds, ...plan }, i) => ({
    [`g${i}_accounts`]: accountIds.join('\n'),
    ...fieldsOfTargets(plan, `g${i}_`),
  }));
  const { name, description, condition } = route;
  return fieldsOf({
    ...{ id: String(route.id), name, description, condition, groups: String(groups.length) },
    ...fieldsOfTargets(route, ''),
    ...Object.assign({}, ...groups),
  });
}

/** Reads the change that a form asks for. @throws ServiceError INVALID_PARAMETERS. */
function changeIn(fields: Fields): CatalogueChange {
  const accounts = groupsIn(fields).map((prefix) => ({
    accountIds: wordsIn(fields, `${prefix}accounts`),
    ...targetsIn(fields, prefix),
  }));
  const route = create(RouteSchema, {
    id: integerIn(fields, 'id', 'id') ?? 0,
    name: fields('name'),
    description: fields('description'),
    condition: fields('condition'),
    ...targetsIn(fields, ''),
    accounts,
  });
  const before = integerIn(fields, 'before', 'place');
  return { case: 'putRoute', value: { route, ...(before !== undefined && { before }) } } as CatalogueChange;
}

/** Returns the prefixes of the groups that name an account or a target. */
function groupsIn(fields: Fields): string[] {
  return Array.from({ length: MAX_GROUPS }, (_, i) => `g${i}_`).filter(
    (prefix) => fields(`${prefix}accounts`) !== '' || (targetsIn(fields, prefix).targets ?? []).length > 0,
  );
}

function form(
  visit: Visit,
  { catalogue, version }: { catalogue: Catalogue; version: number },
  fields: Fields,
  name: string,
): Html {
  if (Number(fields('groups')) > MAX_GROUPS) {
    return html`<p class="card">This route has targets for more than ${MAX_GROUPS} groups of accounts. Change it with the API or the command <code>npm run catalogue</code>.</p>`;
  }
  const others = catalogue.routes.filter(({ id }) => String(id) !== name);
  const places = others.map(
    ({ id, name }) =>
      [String(id), `before route ${id}${name === '' ? '' : `, ${shortened(name, 60)}`}`] as const,
  );
  const groups = Math.min(MAX_GROUPS, groupsIn(quietly(fields)).length + 1);
  return html`<form class="card stack" method="post" action="${DASHBOARD}/catalogue/route">${hiddenFields(visit, version)}
<input type="hidden" name="editing" value="${name}">
<div class="pair">${textField(fields, 'id', 'Id', { isRequired: true, maxLength: 9, isReadOnly: name !== '' })}
${choiceField(fields, 'before', 'Its place in the order', [['', name === '' ? 'last' : 'stays where it is'], ...places])}</div>
${textField(fields, 'name', 'Name')}
${areaField(fields, 'description', 'Description', { rows: 2 })}
${areaField(fields, 'condition', 'Condition', {
  ...{ maxLength: 4_096, rows: 4, hint: "currency == 'BRL' && amount < 500.0" },
  help: 'An expression in CEL. Without a condition, the route takes every payment that reaches it.',
})}
<fieldset><legend>Targets</legend>${connectionList(catalogue)}${targetsFields(fields, '', catalogue)}</fieldset>
${Array.from({ length: groups }, (_, i) => groupFields(fields, `g${i}_`, catalogue))}
<div class="row"><button>Preview</button><a class="button quiet" href="${DASHBOARD}/catalogue">Back</a></div>
</form>
${name === '' ? NOTHING : html`<div class="row card">${previewButton(visit, version, { label: 'Remove…', isDanger: true, change: { case: 'removeRoute', value: Number(name) } })}</div>`}`;
}

function groupFields(fields: Fields, prefix: string, catalogue: Catalogue): Html {
  const accounts = fields(`${prefix}accounts`);
  return html`<details${accounts === '' ? NOTHING : html` open`}><summary>${accounts === '' ? 'Other targets for some accounts…' : 'Targets for some accounts'}</summary><fieldset><legend>Accounts with their own targets</legend>${areaField(
    fields,
    `${prefix}accounts`,
    'Account ids',
    { maxLength: 40_000, help: 'One per line.' },
  )}${targetsFields(fields, prefix, catalogue)}</fieldset></details>`;
}

/** Returns the fields without the numbers, which may be wrong while a form is shown again. */
function quietly(fields: Fields): Fields {
  return (name) => (/_(?:place|weight|attempts)$/.test(name) ? '' : fields(name));
}
