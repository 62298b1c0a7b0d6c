import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { run as route } from '#src/commands/explain-route.ts';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { type Operator, signIn } from '../support/dashboard.ts';
import { createTestDatabase } from '../support/database.ts';
import { ACCOUNT_ONE, cardPayment, headersOne } from '../support/payment-requests.ts';
import { runCommand } from '../support/run-command.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const home = mkdtempSync(join(tmpdir(), 'explain-version-'));
let server: TestServer;
let operator: Operator;
let drop: () => Promise<void>;
let environment: Record<string, string>;
/** A payment that version 1 routed. */
let paymentId: string;

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the response.
async function call(method: string, path: string, body?: object, headers = {}): Promise<any> {
  const response = await fetch(server.url + path, {
    method,
    headers: { 'content-type': 'application/json', 'operator-key': 'op_sandbox', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  return response.json();
}

const explain = (catalogue_version: number) =>
  call('POST', '/v1/routes/explain', { payment: cardPayment(), catalogue_version });
// biome-ignore lint/suspicious/noExplicitAny: as above.
const shortly = ({ catalogue_version, routes, targets }: any) => [
  ...[catalogue_version, routes.at(-1).name, targets[0].connection.id],
];

beforeAll(async () => {
  const database = await createTestDatabase();
  drop = database.drop;
  const key = randomBytes(32).toString('base64');
  environment = { DATABASE_URL: database.url, VAULT_KEYS: `one:${key}`, HASH_KEY: key };
  server = await startTestServer({ databaseUrl: database.url, replica: 'one' });
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  paymentId = (await call('POST', '/v1/payments', cardPayment(), headersOne())).id;
  const targets = [{ connection: 'sandbox-two' }, { connection: 'sandbox-one' }];
  const changed = { id: 2, name: 'Cards, changed', condition: "category == 'CARD'", targets };
  await call('PATCH', '/v1/catalogue', { put_route: { route: changed }, expected_version: 1 });
  await vi.waitFor(
    async () => expect((await call('GET', '/v1/catalogue')).replicas).toMatchObject([{ version: 2 }]),
    { timeout: 5_000, interval: 50 },
  );
});

afterAll(async () => {
  await server?.close();
  await drop?.();
  rmSync(home, { recursive: true, force: true });
});

it('an explanation says its version, and is by the version in force or any other that is asked for', async () => {
  expect(shortly(await explain(0))).toEqual([2, 'Cards, changed', 'sandbox-two']);
  expect(shortly(await explain(2))).toEqual([2, 'Cards, changed', 'sandbox-two']);
  expect(shortly(await explain(1))).toEqual([1, 'Cards elsewhere', 'sandbox-one']);
  expect((await explain(3)).errors).toMatchObject([{ field: 'catalogue_version', code: 'NOT_FOUND' }]);
  expect((await explain(-1)).errors).toMatchObject([{ field: 'catalogue_version' }]);
});

it('a payment’s page says which version routed it, and explains by that version', async () => {
  const page = await (await operator.get(`/payments/${ACCOUNT_ONE}/${paymentId}`)).text();
  const why = page.split('<h2>Why this route</h2>')[1]?.split('</section>')[0] ?? '';
  expect(why).toContain(
    'Route 2 <strong>Cards elsewhere</strong> of <a href="/dashboard/catalogue/versions/1">version 1</a>',
  );
  expect(why).toContain('How version 1 of the catalogue, which routed this payment,');
  expect(why).toContain('1. sandbox-one');
  expect(why).not.toContain('Cards, changed');
  expect(
    JSON.stringify(await call('GET', `/v1/payments/${paymentId}`, undefined, headersOne())),
  ).not.toContain('catalogue');
});

it('the route command explains by a version of the database', async () => {
  const request = join(home, 'request.json');
  writeFileSync(request, JSON.stringify(cardPayment()));
  const run = (...args: string[]) => runCommand(route, environment, request, ...args);
  const first = await run('--version', '1');
  expect([first.code, first.stderr]).toEqual([0, '']);
  expect(first.stdout).toMatch(/^By version 1 of the catalogue\n/);
  expect(first.stdout).toContain('  2  Cards elsewhere: TAKEN');
  expect((await run('--version', '2')).stdout).toContain('  2  Cards, changed: TAKEN');
  expect(await run('--version', '3')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no version 3'),
  });
  for (const args of [
    ['--version', 'x'],
    ['--version', '1', '--catalogue', 'y'],
  ]) {
    expect([args, (await run(...args)).code]).toEqual([args, 2]);
  }
});
