import type { ConnectorForm } from '#gen/payments/v1/configuration_service_pb.js';
import type { Connection, ConnectionSecret } from '#gen/payments/v1/operator_service_pb.js';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { hiddenFields } from './configuration.ts';
import { DASHBOARD } from './frame.ts';
import { secretsOf } from './setting-fields.ts';
import { badge, time } from './show.ts';
import type { Visit } from './visit.ts';

/** Path to which the form that deletes a stored secret submits. */
export const DELETE_SECRET_PATH = '/catalogue/delete-secret';

/** Renders the state of a connection in force: its open outcomes, and the sources of its secrets. */
export function connectionState(
  visit: Visit,
  { id, openOutcomes = 0, secrets, retired }: Connection,
  form: ConnectorForm,
): Html {
  const needed = new Set(secretsOf(form).flatMap(({ name, required }) => (required ? [name] : [])));
  const rows = secrets.map((secret) => row(visit, id, secret, needed.has(secret.name)));
  return html`<section class="card scroll" tabindex="0"><h2>In force</h2><p>${retired ? 'Retired. ' : ''}${openOutcomes} open ${openOutcomes === 1 ? 'outcome' : 'outcomes'}.</p>
${rows.length === 0 ? NOTHING : html`<table class="lines"><thead><tr><th scope="col">Secret</th><th scope="col">Source</th><th scope="col">Set (UTC)</th></tr></thead><tbody>${rows}</tbody></table>`}</section>`;
}

function row(
  visit: Visit,
  id: string,
  { name, source, setAt, actor, previousUntil }: ConnectionSecret,
  isNeeded: boolean,
): Html {
  const mayDelete = source === 'STORED' && visit.session.role === 'operate';
  const remove = html`<form method="post" action="${DASHBOARD}${DELETE_SECRET_PATH}">${hiddenFields(visit, 0)}<input type="hidden" name="id" value="${id}"><input type="hidden" name="name" value="${name}"><button class="quiet">Delete ${name}</button></form>`;
  const set = html`${setAt ? html`${time(setAt)} by ${actor}` : NOTHING}${previousUntil ? html`<br>The one before is accepted until ${time(previousUntil)}` : NOTHING}`;
  return html`<tr><th scope="row">${name}</th><td>${badge(source === 'MISSING' && !isNeeded ? 'NOT_SET' : source)}</td><td>${set}${mayDelete ? remove : NOTHING}</td></tr>`;
}
