import { create } from '@bufbuild/protobuf';
import {
  type ConnectorForm,
  ListConnectorsRequestSchema,
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
  return editorPage(deps, editor, visit);
}

/** The preview of a submitted form or, if that was asked for, the result of a test of the credentials. */
export async function submittedConnection(deps: ConfigurationPageDeps, visit: Visit): Promise<Page> {
  const { editor, forms } = await openEditor(deps, visit, visit.form('connector'));
  if (visit.form('do') !== 'test') return submittedPage(deps, editor, visit);
  const current = await readCatalogue(deps, visit);
  const shown = { fields: visit.whole, name: visit.form('editing') };
  try {
    const form = forms.find(({ name }) => name === visit.form('connector'));
    if (!form) throw new ServiceError('INVALID_PARAMETERS', 'connector: does not exist');
    const request = create(TestConnectionRequestSchema, {
      tested: { case: 'connection', value: connectionIn(visit.whole, current.catalogue, form) },
      secrets: secretsIn(visit.whole, form),
    });
    const { message } = await deps.configuration.testConnection(request, callerOf(visit));
    return formPage(editor, visit, current, { ...shown, status: 200, message: testResult(message) });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return formPage(editor, visit, current, {
      ...{ ...shown, status: error.status, message: notice('refused', error.message) },
    });
  }
}

async function openEditor(
  deps: ConfigurationPageDeps,
  visit: Visit,
  connector: string,
): Promise<{ readonly editor: Editor; readonly forms: readonly ConnectorForm[] }> {
  const forms = await connectorForms(deps, visit);
  const request = create(ListConnectionsRequestSchema);
  const { connections: listed } = (await deps.operators.listConnections(request, callerOf(visit))).message;
  return { editor: connectionEditor({ forms, connector, listed }), forms };
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
