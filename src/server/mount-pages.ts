import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { MAGIC_CARDS } from '#sandbox/magic-cards.ts';
import { CHECKOUT_DIR, type Config, SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { GUIDE_HEADERS, GUIDES, renderGuide } from '#src/web/guide-page.ts';
import { HOME_HEADERS, type HomeLink, renderHomePage } from '#src/web/home-page.ts';
import {
  type FilledInKeys,
  loadViewer,
  REFERENCE_HEADERS,
  REFERENCE_PAGE,
  startScript,
} from '#src/web/reference-page.ts';
import { mountFile, staticFile } from '#src/web/static-file.ts';
import { SANDBOX_FIXTURES } from './sandbox-fixtures.ts';

/**
 * Mounts the pages for people who try out the service: the home page, and the API reference with its OpenAPI document.
 */
export function mountPages(app: FastifyInstance, config: Config): void {
  // Only a sandbox with an embedded database has accounts with well-known keys.
  const withFixtures = config.sandbox && !config.databaseUrl;
  if (config.docs) mountReference(app, withFixtures ? sandboxKeys(config) : {});
  if (config.homePage) mountHome(app, withFixtures ? sandboxFixtures(config) : undefined);
}

function sandboxKeys({ operatorKeys }: Config): FilledInKeys {
  const operator = operatorKeys.includes(SANDBOX_OPERATOR_KEY) && { 'operator-key': SANDBOX_OPERATOR_KEY };
  return { 'public-api-key': 'pk_sandbox_one', 'private-secret-key': 'sk_sandbox_one', ...operator };
}

function sandboxFixtures({ operatorKeys }: Config): typeof SANDBOX_FIXTURES {
  if (!operatorKeys.includes(SANDBOX_OPERATOR_KEY)) return SANDBOX_FIXTURES;
  return [...SANDBOX_FIXTURES, ['Operator key, for the dashboard too', SANDBOX_OPERATOR_KEY]];
}

function mountReference(app: FastifyInstance, keys: FilledInKeys): void {
  const document = join(CHECKOUT_DIR, 'gen/openapi.json');
  mountFile(app, '/openapi.json', () => staticFile('application/json', readFileSync(document)));
  mountFile(app, '/docs/viewer.js', loadViewer);
  mountFile(app, '/docs/start.js', () => staticFile('text/javascript; charset=utf-8', startScript(keys)));
  app.get('/docs', (_request, reply) => reply.headers(REFERENCE_HEADERS).send(REFERENCE_PAGE));
  for (const guide of GUIDES) {
    const page = renderGuide(guide, readFileSync(join(CHECKOUT_DIR, 'docs', guide.file), 'utf8'));
    app.get(`/docs/${guide.name}`, (_request, reply) => reply.headers(GUIDE_HEADERS).send(page));
  }
}

function mountHome(app: FastifyInstance, fixtures: typeof SANDBOX_FIXTURES | undefined): void {
  const cards = MAGIC_CARDS.map(
    ({ number, name, description }) => [number, `${name}: ${description}`] as const,
  );
  const sandbox = fixtures && { fixtures, cards };
  app.get('/', (request, reply) => {
    const links = LINKS.filter(({ path }) => app.hasRoute({ method: 'GET', url: path }));
    const call = exampleCall(`${request.protocol}://${request.host}`);
    const page = { links, sandbox: sandbox && { ...sandbox, call } };
    return reply.headers(HOME_HEADERS).send(renderHomePage(page));
  });
}

/** Links to pages, each shown only if the page is served. */
const LINKS: readonly HomeLink[] = [
  { path: '/docs', title: 'API reference', text: 'Every call, with examples to try in the page' },
  { path: '/dashboard', title: 'Dashboard', text: 'Payments and their state, for operators' },
  { path: '/openapi.json', title: 'OpenAPI document', text: 'For code generators and other tools' },
  { path: '/readyz', title: 'Health', text: 'Whether this replica accepts calls' },
  { path: '/metrics', title: 'Metrics', text: 'For Prometheus' },
];

function exampleCall(origin: string): string {
  return `curl -s ${origin}/v1/payments \\
  -H 'content-type: application/json' -H 'x-idempotency-key: first-payment' \\
  -H 'public-api-key: pk_sandbox_one' -H 'private-secret-key: sk_sandbox_one' \\
  -d '{ "account_id": "11111111-1111-4111-8111-111111111111", "merchant_order_id": "1001", "country": "US",
        "amount": { "currency": "USD", "value": 55.75 },
        "payment_method": { "type": "CARD", "detail": { "card": { "card_data": {
          "number": "4111111111111111", "expiration_month": 12, "expiration_year": 30 } } } } }'`;
}
