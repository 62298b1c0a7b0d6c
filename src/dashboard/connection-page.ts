import { create } from '@bufbuild/protobuf';
import type { ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import {
  type ConnectorForm,
  DeleteConnectionSecretRequestSchema,
  ListConnectorsRequestSchema,
  SetConnectionSecretRequestSchema,
  TestConnectionRequestSchema,
  type TestConnectionResponse,
} from '#gen/payments/v1/configuration_service_pb.js';
import { ListConnectionsRequestSchema } from '#gen/payments/v1/operator_service_pb.js';
import { ServiceError } from '#src/service-error.ts';
import { type Html, html } from '#src/web/html.ts';
import {
  type ConfigurationPageDeps,
  callerOf,
  type ReadCatalogue,
  readCatalogue,
  sourceNotice,
} from './configuration.ts';
import { CONNECTION_PATH, connectionEditor, connectionIn } from './connection-editor.ts';
import { type Editor, editorPage, formPage, submittedPage } from './editor.ts';
import { integerIn } from './form-fields.ts';
import { DASHBOARD, notice } from './frame.ts';
import { secretsIn } from './setting-fields.ts';
import { badge, facts } from './show.ts';
import type { Page, Visit } from './visit.ts';

/** The form of the connection that the query names or, for a new one, the choice of a connector. */
export async function connectionPage(deps: ConfigurationPageDeps, visit: Visit): Promise<Page> {
  const connector = visit.query('connector');
  if (visit.query('id') === '' && connector === '') {
    return choicePage(await connectorForms(deps, visit), await readCatalogue(deps, visit));
  }
  const { editor } = await openEditor(deps, visit, connector);
  const message = visit.query('did') === 'delete' ? notice('done', 'The secret is deleted.') : undefined;
  return editorPage(deps, editor, visit, message);
}

/** Makes shutdown wait for work. */
type Tracking = { readonly track: <T>(work: Promise<T>) => Promise<T> };

/** The preview of a submitted form or, if that was asked for, a test of the credentials, or their storage. */
export async function submittedConnection(
  deps: ConfigurationPageDeps & Tracking,
  visit: Visit,
): Promise<Page> {
  const { editor, form } = await openEditor(deps, visit, visit.form('connector'));
  const asked = visit.form('do');
  const entered = secretsIn(visit.whole, form);
  if (asked !== 'test' && (asked !== 'store' || Object.keys(entered).length === 0)) {
    const ignored = Object.keys(entered).length > 0 && visit.session.role === 'operate';
    return submittedPage(deps, editor, visit, ignored ? notice('refused', IGNORED) : undefined);
  }
  const { catalogue } = await readCatalogue(deps, visit);
  try {
    if (!form) throw new ServiceError('INVALID_PARAMETERS', 'connector: does not exist');
    const connection = connectionIn(visit.whole, catalogue, form);
    if (asked === 'test') {
      return await resultPage(deps, visit, 200, await testCredentials(deps, visit, connection, entered));
    }
    const isInForce = catalogue.connections.some(({ id }) => id === connection.id);
    await deps.track(storeSecrets(deps, visit, { connection, isInForce, entered }));
    const stored = notice('done', `Stored: ${Object.keys(entered).join(', ')}.`);
    if (visit.form('editing') === '') return await submittedPage(deps, editor, visit, stored);
    return await resultPage(deps, visit, 200, stored);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return resultPage(deps, visit, error.status, notice('refused', error.message));
  }
}

/** Time for which a replaced secret is accepted if the form does not say. */
const KEPT_S = 86_400;
const IGNORED = 'The secrets that were entered are not part of this preview, and were not stored.';

/** Deletes a stored secret. */
export async function deleteSecret(
  deps: ConfigurationPageDeps & Tracking,
  visit: Visit,
): Promise<{ readonly goTo: string }> {
  const id = visit.whole('id');
  const request = create(DeleteConnectionSecretRequestSchema, { connectionId: id, name: visit.form('name') });
  await deps.track(deps.configuration.deleteConnectionSecret(request, callerOf(visit)));
  return { goTo: `${DASHBOARD}${CONNECTION_PATH}?${String(new URLSearchParams({ id, did: 'delete' }))}` };
}

/** Shows a submitted form again, without its secrets, with the connection's new state. */
async function resultPage(
  deps: ConfigurationPageDeps,
  visit: Visit,
  status: number,
  message: Html,
): Promise<Page> {
  const { editor } = await openEditor(deps, visit, visit.form('connector'));
  const shown = { fields: visit.whole, name: visit.form('editing'), status, message };
  return formPage(editor, visit, await readCatalogue(deps, visit), shown);
}

async function testCredentials(
  { configuration }: ConfigurationPageDeps,
  visit: Visit,
  connection: ConnectionConfig,
  secrets: Record<string, string>,
): Promise<Html> {
  const tested = { case: 'connection', value: connection } as const;
  const request = create(TestConnectionRequestSchema, { tested, secrets });
  return testResult((await configuration.testConnection(request, callerOf(visit))).message);
}

type ToStore = {
  readonly connection: ConnectionConfig;
  readonly isInForce: boolean;
  readonly entered: Record<string, string>;
};

/** Stores secrets one after another. @throws ServiceError that says which were stored before. */
async function storeSecrets(
  { configuration }: ConfigurationPageDeps,
  visit: Visit,
  { connection, isInForce, entered }: ToStore,
): Promise<void> {
  const stored: string[] = [];
  for (const [name, value] of Object.entries(entered)) {
    const request = create(SetConnectionSecretRequestSchema, {
      ...{ connectionId: connection.id, name, value, test: visit.form('untested') !== 'on' },
      ...(isInForce
        ? {
            keepPreviousS: integerIn(visit.form, 'keep', 'time of the replaced secret') ?? KEPT_S,
            confirmSameAccount: visit.form('confirm') === 'on',
          }
        : { connection }),
    });
    try {
      await configuration.setConnectionSecret(request, callerOf(visit));
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const before = stored.length > 0 ? `; stored before: ${stored.join(', ')}` : '';
      throw new ServiceError(error.reason, `${name}: ${error.message}${before}`);
    }
    stored.push(name);
  }
}

async function openEditor(
  deps: ConfigurationPageDeps,
  visit: Visit,
  connector: string,
): Promise<{ readonly editor: Editor; readonly form: ConnectorForm | undefined }> {
  const forms = await connectorForms(deps, visit);
  const request = create(ListConnectionsRequestSchema);
  const { connections: listed } = (await deps.operators.listConnections(request, callerOf(visit))).message;
  const form = forms.find(({ name }) => name === connector);
  return { editor: connectionEditor({ forms, connector, listed }), form };
}

async function connectorForms(
  { configuration }: ConfigurationPageDeps,
  visit: Visit,
): Promise<ConnectorForm[]> {
  const request = create(ListConnectorsRequestSchema);
  return (await configuration.listConnectors(request, callerOf(visit))).message.connectors;
}

function choicePage(forms: readonly ConnectorForm[], current: ReadCatalogue): Page {
  const rows = forms.map(({ name, capabilities }) => {
    const address = `${DASHBOARD}${CONNECTION_PATH}?${String(new URLSearchParams({ connector: name }))}`;
    const told = capabilities.map((one) =>
      one.replaceAll('_', ' ').toLowerCase().replace('three d secure', '3-D Secure'),
    );
    return html`<tr><th scope="row"><a href="${address}">${name}</a></th><td>${told.join(', ')}</td></tr>`;
  });
  const content = html`<div class="heading"><h1>New connection</h1><p class="quiet">To an account at which provider?</p></div>
${sourceNotice(current)}<section class="card scroll" tabindex="0"><table class="lines"><thead><tr><th scope="col">Connector</th><th scope="col">Capabilities</th></tr></thead><tbody>${rows}</tbody></table></section>`;
  return { title: 'New connection', section: '/catalogue', content };
}

/** Renders the answer of a provider to a test. */
function testResult({
  result,
  message,
  environment,
  providerAccount,
  latencyMs,
}: TestConnectionResponse): Html {
  return html`<section class="card" role="status"><h2>Test of the credentials</h2>${facts([
    ['Result', badge(result)],
    ['Account', providerAccount],
    ['Environment', environment],
    ['Took', `${latencyMs} ms`],
  ])}<p>${message}</p></section>`;
}
