import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type Catalogue,
  type CircuitBreakerSchema,
  type ConnectionConfig,
  ConnectionConfigSchema,
} from '#gen/payments/v1/catalogue_pb.js';
import type { ConnectorForm } from '#gen/payments/v1/configuration_service_pb.js';
import type { Connection } from '#gen/payments/v1/operator_service_pb.js';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { hiddenFields, previewButton, type ReadCatalogue } from './configuration.ts';
import { connectionState } from './connection-state.ts';
import { type Editor, missing } from './editor.ts';
import { feeField, feesIn, fieldsOfFees } from './fee-lines.ts';
import {
  areaField,
  checkField,
  choiceField,
  type Fields,
  fieldsOf,
  integerIn,
  textField,
  wordsIn,
  wrongField,
} from './form-fields.ts';
import { DASHBOARD } from './frame.ts';
import {
  fieldsOfSettings,
  hostsOf,
  secretFields,
  secretsOf,
  settingFields,
  settingsIn,
} from './setting-fields.ts';
import type { Visit } from './visit.ts';

/** Path of the form of a connection. */
export const CONNECTION_PATH = '/catalogue/connection';

const NUMBERS = [
  ['authorizationValidDays', 'Days that an uncaptured authorization is valid', 'the provider’s own term'],
  ['redirectValidMinutes', 'Minutes that a payer has to follow a redirect', '1440'],
  ['maxInFlight', 'Most calls in flight in one process', 'three quarters of MAX_IN_FLIGHT'],
] as const;
const BREAKER = [
  ['failurePercent', 'Percentage of failing calls that opens the circuit', '50'],
  ['minCalls', 'Least number of calls', '10'],
  ['windowS', 'Window in seconds', '30'],
  ['openS', 'Seconds before the first probe', '15'],
] as const;

/** The parts from which the form of a connection is made. */
export type ConnectionParts = {
  /** The forms of all connectors. */
  readonly forms: readonly ConnectorForm[];
  /** The connector of a new connection. */
  readonly connector: string;
  /** The connections in force, with their secrets' sources. */
  readonly listed: readonly Connection[];
};

/** Creates the form of a connection. */
export function connectionEditor({ forms, connector, listed }: ConnectionParts): Editor {
  const formOf = (name: string) => {
    const found = forms.find((one) => one.name === name);
    if (!found) throw missing('connector', name);
    return found;
  };
  return {
    path: CONNECTION_PATH,
    title: (name) => (name === '' ? 'New connection' : `Connection ${name}`),
    stored(catalogue, name) {
      const connection = find(catalogue, name);
      if (!connection) throw missing('connection', name);
      return fieldsOfConnection(connection, formOf(connection.connector));
    },
    blank: () => fieldsOf({ connector, provider_id: connector.toUpperCase().replaceAll('-', '_') }),
    change: (fields, catalogue) => ({
      case: 'putConnection',
      value: connectionIn(fields, catalogue, formOf(fields('connector'))),
    }),
    form: (visit, current, fields, name) => {
      const form = formOf(fields('connector'));
      const own = listed.find(({ id }) => id === name);
      return html`${own ? connectionState(visit, own, form) : NOTHING}${connectionForm(visit, current, { fields, name, form })}
${name === '' ? NOTHING : ends(visit, current.version, find(current.catalogue, name))}`;
    },
  };
}

function find({ connections }: Catalogue, name: string): ConnectionConfig | undefined {
  return connections.find(({ id }) => id === name);
}

function fieldsOfConnection(connection: ConnectionConfig, form: ConnectorForm): Fields {
  const { id, name, providerId, connector, settings = {}, accountIds, retired, circuitBreaker } = connection;
  const number = (value: number | undefined) => (value === undefined ? '' : String(value));
  return fieldsOf({
    ...{ id, name, connector, provider_id: providerId, accounts: accountIds.join('\n') },
    retired: retired ? 'on' : '',
    ...fieldsOfFees(connection.agreedFees),
    ...fieldsOfSettings(settings, form),
    ...Object.fromEntries(NUMBERS.map(([of]) => [of, number(connection[of])])),
    breaker: circuitBreaker ? 'present' : '',
    breakerOff: circuitBreaker?.off ? 'on' : '',
    ...Object.fromEntries(BREAKER.map(([of]) => [of, number(circuitBreaker?.[of])])),
  });
}

/**
 * Reads a connection. Whatever the form does not show stays as it is in force.
 *
 * @throws ServiceError INVALID_PARAMETERS.
 */
export function connectionIn(fields: Fields, catalogue: Catalogue, form: ConnectorForm): ConnectionConfig {
  const editing = fields('editing');
  const id = fields('id');
  const before = find(catalogue, id);
  if (editing === '' && before) throw wrongField('Id', 'another connection has this id');
  const settings = settingsIn(fields, form, before?.settings ?? {});
  const breaker = breakerIn(fields);
  return create(ConnectionConfigSchema, {
    ...{ id, name: fields('name'), providerId: fields('provider_id'), connector: form.name },
    ...((before?.settings || Object.keys(settings).length > 0) && { settings }),
    secretsFromEnvironment: before?.secretsFromEnvironment ?? {},
    ...numbersIn(fields, NUMBERS),
    ...(breaker && { circuitBreaker: breaker }),
    accountIds: wordsIn(fields, 'accounts'),
    retired: fields('retired') === 'on',
    agreedFees: feesIn(fields),
  });
}

function breakerIn(fields: Fields): MessageInitShape<typeof CircuitBreakerSchema> | undefined {
  const off = fields('breakerOff') === 'on';
  const numbers = numbersIn(fields, BREAKER);
  const isPresent = fields('breaker') !== '' || off || Object.keys(numbers).length > 0;
  return isPresent ? { off, ...numbers } : undefined;
}

function numbersIn<Name extends string>(
  fields: Fields,
  named: readonly (readonly [name: Name, label: string, hint: string])[],
): { [Key in Name]?: number } {
  const numbers = named.map(([name, label]) => [name, integerIn(fields, name, label)] as const);
  return Object.fromEntries(numbers.filter(([, value]) => value !== undefined)) as { [Key in Name]?: number };
}

type Shown = { readonly fields: Fields; readonly name: string; readonly form: ConnectorForm };

function connectionForm(
  visit: Visit,
  { version, source }: Pick<ReadCatalogue, 'version' | 'source'>,
  { fields, name, form }: Shown,
): Html {
  const mayAct = visit.session.role === 'operate';
  const mayStore = mayAct && source !== 'FILE' && secretsOf(form).length > 0;
  return html`<form class="card stack" method="post" action="${DASHBOARD}${CONNECTION_PATH}">${hiddenFields(visit, version)}
<input type="hidden" name="editing" value="${name}"><input type="hidden" name="connector" value="${form.name}"><input type="hidden" name="breaker" value="${fields('breaker')}">
<div class="pair">${textField(fields, 'id', 'Id', {
    ...{ isRequired: true, isReadOnly: name !== '', hint: `${form.name}-one` },
    help: 'Stands for one account at the provider, for good.',
  })}${textField(fields, 'provider_id', 'Provider id', { isRequired: true, help: 'Payments show it in provider_id.' })}</div>
${textField(fields, 'name', 'Name (optional)')}
<fieldset><legend>Settings of ${form.name}</legend>${hostsOf(form)}${settingFields(fields, form)}</fieldset>
${areaField(fields, 'accounts', 'Only for these accounts (optional)', {
  ...{ rows: 2, maxLength: 40_000 },
  help: 'Account ids, one per line. Other accounts’ payments pass the connection over.',
})}
${feeField(fields)}
${limits(fields)}
${name !== '' ? checkField(fields, 'retired', 'Retired: gets no payments') : NOTHING}
${mayAct ? secretPart(fields, { form, name, mayStore }) : NOTHING}
<div class="row">${submitButtons(name, { mayAct, mayStore })}<a class="button quiet" href="${DASHBOARD}/catalogue">Back</a></div>
</form>`;
}

/** A new connection's secrets are stored with its first preview, since it cannot be published without them. */
function submitButtons(name: string, { mayAct, mayStore }: { mayAct: boolean; mayStore: boolean }): Html {
  const test = html`<button class="quiet" name="do" value="test">Test the credentials</button>`;
  const store = html`<button class="quiet" name="do" value="store">Store the secrets</button>`;
  const isNew = name === '';
  const preview =
    isNew && mayStore
      ? html`<button name="do" value="store">Store the secrets and preview</button>`
      : html`<button>Preview</button>`;
  return html`${preview}${mayAct ? test : NOTHING}${mayStore && !isNew ? store : NOTHING}`;
}

function limits(fields: Fields): Html {
  const field = ([of, label, hint]: readonly [string, string, string]) =>
    textField(fields, of, label, { hint, maxLength: 6 });
  return html`<details><summary>Limits and circuit breaker…</summary><fieldset><legend>Limits and circuit breaker</legend>${NUMBERS.map(field)}${checkField(fields, 'breakerOff', 'No circuit breaker: payments are always sent')}${BREAKER.map(field)}</fieldset></details>`;
}

/** Periods for which notifications signed with a replaced secret are still accepted, in seconds. */
const KEPT = [
  ['86400', 'for a day'],
  ['0', 'no longer'],
  ['3600', 'for an hour'],
  ['604800', 'for a week'],
] as const;

function secretPart(
  fields: Fields,
  { form, name, mayStore }: { form: ConnectorForm; name: string; mayStore: boolean },
): Html {
  const secrets = secretsOf(form);
  if (secrets.length === 0) return NOTHING;
  const stays = name === '' ? '' : ' An empty field stands for the secret that the connection has.';
  const use = mayStore
    ? 'They are stored encrypted, and no page shows them again.'
    : 'They are only sent to the provider for the test.';
  const rotation = html`${choiceField(fields, 'keep', 'Notifications signed with the replaced secret are accepted', KEPT)}
${checkField(fields, 'confirm', 'The new secret belongs to the same account (if the provider does not tell)')}`;
  return html`<fieldset><legend>Secrets</legend><p class="quiet">${use}${stays}</p>${secretFields(secrets)}
${mayStore ? html`${name === '' ? NOTHING : rotation}${checkField(fields, 'untested', 'Store them without asking the provider')}` : NOTHING}</fieldset>`;
}

/** Renders the buttons that retire and remove a connection. The preview says why it cannot be removed. */
function ends(visit: Visit, version: number, connection: ConnectionConfig | undefined): Html {
  if (!connection) return NOTHING;
  const { id, retired } = connection;
  const retire = previewButton(visit, version, {
    label: 'Retire…',
    change: { case: 'retireConnection', value: id },
  });
  const remove = previewButton(visit, version, {
    ...{ label: 'Remove…', isDanger: true },
    change: { case: 'removeConnection', value: id },
  });
  return html`<section class="card"><h2>Retire or remove</h2><p class="quiet">A retired connection gets no payments; captures, refunds and look-ups go on. It can be removed when nobody needs it any more.</p><div class="row">${retired ? NOTHING : retire}${remove}</div></section>`;
}
