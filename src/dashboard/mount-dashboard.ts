import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type AddressShare, limitAtOnce } from '#src/api/limit-at-once.ts';
import { addressGroup } from '#src/api/shares.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { unaskableOf } from '#src/payments/check/open-outcomes.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { countOpenAttempts } from '#src/store/engine/checks.ts';
import type { Database } from '#src/store/engine/database.ts';
import { listAccountNames } from '#src/store/tables/accounts.ts';
import { addFailedSignIns, INSTALLATION, recordAction } from '#src/store/tables/audit-log.ts';
import {
  countPendingDeliveries,
  countRecentAttempts,
  listOldestOpenAttempts,
  listRecentRecords,
  listTroubledWebhooks,
} from '#src/store/tables/open-work.ts';
import { createTokenBuckets } from '#src/token-buckets.ts';
import { auditPage } from './audit-page.ts';
import { cataloguePage } from './catalogue-page.ts';
import type { ConfigurationPageDeps } from './configuration.ts';
import { CONNECTION_PATH } from './connection-editor.ts';
import { connectionPage, deleteSecret, submittedConnection } from './connection-page.ts';
import { DELETE_SECRET_PATH } from './connection-state.ts';
import { disputePage, saveNote } from './dispute-page.ts';
import { disputesPage, openDisputes } from './disputes-page.ts';
import { editorPage, submittedPage } from './editor.ts';
import { type ExportPageDeps, exportPage, mountExportFiles } from './export-page.ts';
import { createFailedSignIns } from './failed-sign-ins.ts';
import { figuresPage } from './figures-page.ts';
import { ASSETS, DASHBOARD, FRAME_HEADERS, missingNodes } from './frame.ts';
import { overviewPage } from './overview-page.ts';
import { act, deliverAgain, type PaymentPageDeps, paymentById, paymentPage } from './payment-actions.ts';
import { payerPage, paymentsPage, type SearchDeps } from './payments-page.ts';
import { payoutPage } from './payout-page.ts';
import { previewOfButton, publishPreviewed } from './preview-page.ts';
import { ROUTE_EDITOR } from './route-editor.ts';
import { explainedRoute, type RoutePageDeps, routeForm } from './route-page.ts';
import { createSessions, type OperatorKeys, type Sessions } from './session.ts';
import { admitReport, decideOn, type ImportDeps, importReport } from './settlement-actions.ts';
import { openDifferences, settlementPage } from './settlement-page.ts';
import { nextOf, signInPage } from './sign-in-page.ts';
import { TYPE_EDITOR } from './type-editor.ts';
import { comparePage, versionPage, versionsPage } from './versions-page.ts';
import {
  CONFIGURATION_LIMIT_BYTES,
  type Cookie,
  type Page,
  preparePages,
  sendPage,
  sessionCookie,
  type Visit,
  visits,
} from './visit.ts';
import { deliverFailedAgain, webhookPage } from './webhook-page.ts';

/**
 * Limit on the pages that one replica renders at once for signed-in operators, and on requests for the pages before
 * them, to leave capacity for payments.
 */
const MAX_AT_ONCE = 12;

/** Dependencies of the dashboard. */
export type DashboardDeps = PaymentPageDeps &
  Pick<RoutePageDeps, 'explain'> &
  SearchDeps &
  ExportPageDeps &
  ConfigurationPageDeps &
  ImportDeps &
  AddressShare & {
    readonly keys: OperatorKeys;
    /** true if browsers reach the service only over HTTPS. */
    readonly isSecure: boolean;
    readonly database: Database;
    /** Connections that can look up an outcome, by id. */
    readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  };

/** Mounts the operators' dashboard on an application. */
export function mountDashboard(app: FastifyInstance, deps: DashboardDeps): void {
  const sessions = createSessions(deps.database, deps.keys);
  const cookie = sessionCookie(deps.isSecure);
  app.register(async (scope) => {
    preparePages(scope);
    scope.register(async (open) => {
      limitAtOnce(open, MAX_AT_ONCE, deps);
      mountAssets(open);
      mountSignIn(open, deps, sessions, cookie);
    });
    scope.register(async (signedIn) => {
      limitAtOnce(signedIn, MAX_AT_ONCE, deps);
      mountVisits(visits(signedIn, sessions, cookie, deps.clientAddress), deps);
    });
    // A file takes minutes, and must leave room for pages.
    scope.register(async (files) => {
      limitAtOnce(files, MAX_AT_ONCE, deps);
      mountExportFiles(visits(files, sessions, cookie, deps.clientAddress), deps);
    });
  });
}

/** Mounts the pages for signed-in operators. */
function mountVisits(pages: ReturnType<typeof visits>, deps: DashboardDeps): void {
  pages.get('', () => overview(deps));
  pages.get('/payments', (visit) => paymentsPage(deps, visit));
  pages.get('/figures', (visit) => figuresPage(deps.database, visit));
  pages.get('/export', (visit) => exportPage(deps, visit));
  pages.post('/payments', 'read', (visit) => payerPage(deps, visit));
  pages.get('/payments/:payment', (visit) => paymentById(deps.database, visit));
  pages.get('/payments/:account/:payment', (visit) => paymentPage(deps, visit));
  for (const action of ['capture', 'cancel', 'refund'] as const) {
    pages.post(`/payments/:account/:payment/${action}`, 'operate', (visit) => act(deps, visit, action));
  }
  pages.post('/payments/:account/:payment/deliveries/:delivery', 'operate', (visit) =>
    deliverAgain(deps, visit),
  );
  pages.get('/webhooks/:account/:webhook', (visit) => webhookPage(deps.webhooks, visit));
  pages.post('/webhooks/:account/:webhook/redeliver-failed', 'operate', (visit) =>
    deliverFailedAgain(deps.webhooks, visit),
  );
  pages.get('/disputes', () => disputesPage(deps.database));
  pages.get('/disputes/:account/:dispute', (visit) => disputePage(deps.database, visit));
  pages.post('/disputes/:account/:dispute/note', 'operate', (visit) => saveNote(deps.database, visit));
  pages.get('/settlement', (visit) => settlementPage(deps, visit));
  pages.get('/settlement/payout', (visit) => payoutPage(deps.database, visit));
  for (const decision of ['resolve', 'reopen'] as const) {
    pages.post(`/settlement/${decision}`, 'operate', (visit) => decideOn(deps, visit, decision));
  }
  const admit = (request: FastifyRequest) => admitReport(deps, request);
  pages.upload('/settlement/import', admit, (visit) => importReport(deps, visit));
  const routes = { ...deps, catalogue: () => deps.opened().catalogue };
  pages.get('/route', (visit) => routeForm(routes, visit));
  pages.post('/route', 'read', (visit) => explainedRoute(routes, visit));
  mountConfiguration(pages, deps);
  pages.get('/audit', (visit) => auditPage(deps.database, visit));
}

/** Mounts the pages that show and change the configuration. Whoever may read may preview. */
function mountConfiguration(pages: ReturnType<typeof visits>, deps: DashboardDeps): void {
  pages.get('/catalogue', (visit) => cataloguePage(deps, visit));
  pages.get('/catalogue/versions', (visit) => versionsPage(deps, visit));
  pages.get('/catalogue/versions/:version', (visit) => versionPage(deps, visit));
  pages.get('/catalogue/compare', (visit) => comparePage(deps, visit));
  for (const editor of [ROUTE_EDITOR, TYPE_EDITOR]) {
    pages.get(editor.path, (visit) => editorPage(deps, editor, visit));
    const submitted = (visit: Visit) => submittedPage(deps, editor, visit);
    pages.post(editor.path, 'read', submitted, CONFIGURATION_LIMIT_BYTES);
  }
  pages.get(CONNECTION_PATH, (visit) => connectionPage(deps, visit));
  const submitted = (visit: Visit) => submittedConnection(deps, visit);
  pages.post(CONNECTION_PATH, 'read', submitted, CONFIGURATION_LIMIT_BYTES);
  pages.post(DELETE_SECRET_PATH, 'operate', (visit) => deleteSecret(deps, visit));
  const preview = (visit: Visit) => previewOfButton(deps, visit);
  pages.post('/catalogue/preview', 'read', preview, CONFIGURATION_LIMIT_BYTES);
  const publish = (visit: Visit) => publishPreviewed(deps, visit);
  pages.post('/catalogue/publish', 'operate', publish, CONFIGURATION_LIMIT_BYTES);
}

/** Serves the assets. Their names change with their content, so browsers may cache them forever. */
function mountAssets(scope: FastifyInstance): void {
  for (const [name, { type, content }] of ASSETS) {
    scope.get(`${DASHBOARD}/assets/${name}`, (_request, reply) =>
      reply
        .headers({ ...FRAME_HEADERS, 'cache-control': 'public, max-age=31536000, immutable' })
        .type(type)
        .send(content),
    );
  }
}

/**
 * Number of wrong keys that one address may try before it has to wait for the next try. A key has 128 random bits and
 * cannot be guessed; the limit only keeps the log readable.
 */
const WRONG_KEYS = { burst: 5, everyMs: 20_000 };

function mountSignIn(
  scope: FastifyInstance,
  { database, clientAddress }: DashboardDeps,
  sessions: Sessions,
  cookie: Cookie,
): void {
  const takeTry = createTokenBuckets();
  const failedSignIns = createFailedSignIns((from, tries) => addFailedSignIns(database, from, tries));
  const title = 'Sign in';
  const actorAt = (actor: string, request: FastifyRequest) => `${actor} from ${clientAddress(request)}`;

  scope.get<{ Querystring: { next?: unknown; unsent?: unknown } }>(
    `${DASHBOARD}/sign-in`,
    (request, reply) => {
      const { next, unsent } = request.query;
      const why = unsent === undefined ? undefined : 'Your session has ended, and nothing was sent.';
      const content = signInPage(nextOf(typeof next === 'string' ? next : ''), why);
      return sendPage(reply, { title, content }, undefined);
    },
  );

  scope.post(`${DASHBOARD}/sign-in`, async (request, reply) => {
    const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
    const next = nextOf(form.get('next') ?? '');
    const refuse = (status: number, text: string) =>
      sendPage(reply, { title, status, content: signInPage(next, text) }, undefined);
    const address = clientAddress(request);
    // Counted before anything is awaited, so that tries at the same time count too. A correct key is always accepted, and
    // gives its try back: an operator may share an attacker's address.
    const { waitMs, giveBack = () => {} } = takeTry([{ ...WRONG_KEYS, name: addressGroup(address) }]);
    const begun = sessions.begin(form.get('key')?.trim() ?? '', cookie.read(request));
    const session = await begun.catch((error) => {
      giveBack();
      throw error;
    });
    if (!session) {
      // The key is refused even if the attempt cannot be recorded.
      await failedSignIns
        .add(address)
        .catch((err) => request.log.error({ err }, 'a failed sign-in could not be recorded'));
      if (waitMs > 0) {
        const waitS = Math.ceil(waitMs / 1_000);
        reply.header('retry-after', waitS);
        return refuse(429, `Too many wrong keys. Try again in ${waitS} seconds.`);
      }
      request.log.warn({ remote_address: address }, 'authentication failed');
      return refuse(401, 'This is not an operator key.');
    }
    giveBack();
    const actor = actorAt(session.actor, request);
    await recordAction(database, { accountId: INSTALLATION, actor, action: 'sign-in', detail: session.role });
    return reply.headers({ ...FRAME_HEADERS, 'set-cookie': cookie.set(session.token) }).redirect(next, 303);
  });

  // The cookie alone is enough to end the session: the same-origin check has shown that the form came from our own
  // page.
  scope.post(`${DASHBOARD}/sign-out`, async (request, reply) => {
    const token = cookie.read(request);
    const session = token === undefined ? undefined : await sessions.find(token, false);
    if (token !== undefined && session) {
      const actor = actorAt(session.actor, request);
      // Recorded first: once the session has ended, nothing shows who signed out.
      await recordAction(database, { accountId: INSTALLATION, actor, action: 'sign-out' });
      await sessions.end(token);
    }
    const headers = { 'set-cookie': cookie.set(undefined), 'clear-site-data': '"cache"' };
    return reply.headers({ ...FRAME_HEADERS, ...headers }).redirect(`${DASHBOARD}/sign-in`, 303);
  });
}

const MAX_OPEN_SHOWN = 10;
const MAX_COUNTED = 10_000;

async function overview({ database, opened, connections }: DashboardDeps): Promise<Page> {
  const [recent, records, openAttempts, open, webhooks, pending, disputes, differences, accounts] =
    await Promise.all([
      countRecentAttempts(database),
      listRecentRecords(database),
      listOldestOpenAttempts(database, MAX_OPEN_SHOWN),
      countOpenAttempts(database, MAX_COUNTED),
      listTroubledWebhooks(database, MAX_OPEN_SHOWN),
      countPendingDeliveries(database, MAX_COUNTED + 1),
      openDisputes(database),
      openDifferences(database),
      listAccountNames(database, 2),
    ]);
  const { catalogue, health } = opened();
  const circuits = catalogue.connections.flatMap(({ id, name }) => {
    const known = health.get(id);
    return known ? [{ id, name, state: known.state() }] : [];
  });
  const content = overviewPage({
    recent,
    payments: records.map((record) => decodeRecord(record)),
    circuits,
    open: {
      count: open.reduce((sum, one) => sum + one.open, 0),
      oldestS: Math.max(0, ...open.map(({ oldestS }) => oldestS)),
    },
    openAttempts,
    unaskable: unaskableOf(open, connections()),
    webhooks,
    disputes,
    differences,
    pending: { count: Math.min(pending, MAX_COUNTED), isMore: pending > MAX_COUNTED },
    missing: missingNodes(database),
    now: new Date(),
    account: accounts.length === 1 ? (accounts[0]?.id ?? '') : '',
  });
  return { title: 'Overview', section: '', content };
}
