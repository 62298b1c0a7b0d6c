import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { run as catalogue } from '#src/commands/catalogue.ts';
import { createTestDatabase } from '../support/database.ts';
import { cardPayment, headersOne } from '../support/payment-requests.ts';
import { runCommand, runCommandWithInput } from '../support/run-command.ts';
import { startTestServer } from '../support/server.ts';
import { change, SMALL } from '../support/small-catalogue.ts';
import { openTables, type Tables } from '../support/tables.ts';

const OWN = SMALL.replace('$SANDBOX_URL', 'http://127.0.0.1:1').replace(
  'api_key: ONE_KEY',
  'api_key: ONE_KEY, notification_secret: SIGNING_KEY',
);
const directory = mkdtempSync(join(tmpdir(), 'catalogue-command-'));
let tables: Tables;
let drop: () => Promise<void>;
let environment: Record<string, string>;

beforeAll(async () => {
  const database = await createTestDatabase();
  drop = database.drop;
  tables = await openTables(database.url);
  const key = randomBytes(32).toString('base64');
  environment = {
    ...{ DATABASE_URL: database.url, VAULT_KEYS: `one:${key}`, HASH_KEY: key, ACTOR: 'Alice' },
    ...{ ONE_KEY: 'of-one', TWO_KEY: 'of-two', SIGNING_KEY: 'a'.repeat(44) },
  };
});
afterAll(async () => {
  await tables?.close();
  await drop?.();
  rmSync(directory, { recursive: true, force: true });
});

/** Writes a file. @returns its path. */
function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const run = (...args: string[]) => runCommand(catalogue, environment, ...args);
const publish = (path: string, ...args: string[]) =>
  run('publish', path, '--comment', 'a test', '--secrets-from-environment', ...args);

it('publish puts a file in force, once; show, versions and export tell it', async () => {
  const path = file('own.yaml', OWN);
  expect(await run('show')).toMatchObject({ code: 1, stderr: expect.stringContaining('has none yet') });
  const published = await publish(path);
  expect([published.code, published.stdout]).toEqual([
    0,
    [
      'ADDED payment_method_types[CARD]',
      'ADDED connections[one]',
      'ADDED routes[1]',
      'ADDED bins[4111]',
      'version 2 is published',
      '',
    ].join('\n'),
  ]);
  expect(await publish(path)).toMatchObject({ code: 0, stdout: 'nothing to do\n' });
  const shown = await run('show');
  expect(shown.stdout).toMatch(/^version 2 \(command\), published by Alice \(.*\) at .*: a test\n1 payment/);
  expect((await run('versions')).stdout).toMatch(/^version .*\n2 +command .*a test\n1 +seed /);
  const exported = file('exported.yaml', (await run('export')).stdout);
  expect(await publish(exported, '--expect', '1')).toMatchObject({ code: 0, stdout: 'nothing to do\n' });
});

it('check and diff list every fault with its place, and publish nothing', async () => {
  const path = file(
    'faulty.yaml',
    OWN.replace("type == 'CARD'", "country == 'XX'").replace('connection: one', 'connection: nowhere'),
  );
  const faults = [
    `${path}:14:27: error: routes[0].condition: country is never "XX", at line 14, column 27`,
    `${path}:16:21: error: routes[0].targets[0].connection: is not the id of a connection`,
  ];
  const checked = await run('check', path);
  expect(checked.code).toBe(1);
  expect(checked.stdout.trimEnd().split('\n')).toEqual(faults);
  for (const ran of [await run('diff', path), await publish(path)]) {
    expect([ran.code, ran.stdout.trimEnd().split('\n').slice(0, 2)]).toEqual([1, faults]);
  }
  expect((await run('show')).stdout).toMatch(/^version 2 /);
  const broken = file('broken.yaml', 'routes: [');
  expect(await run('check', broken)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining(`${broken}:1:10: error: `),
  });
  expect(await run('check', join(directory, 'absent.yaml'))).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/absent\.yaml cannot be read \(ENOENT\)/),
  });
  const correct = file('own.yaml', OWN);
  expect(await run('check', correct)).toEqual({ code: 0, stdout: `${correct}: valid\n`, stderr: '' });
});

it('what only the deployment can refuse is refused with its place', async () => {
  const elsewhere = file('variable.yaml', OWN.replace('ONE_KEY', 'TWO_KEY'));
  const refused = await run('publish', elsewhere, '--comment', 'a test');
  expect(refused.code).toBe(1);
  expect(refused.stdout).toMatch(
    /^.*variable\.yaml:11:31: error: connections\[0\]\.secrets_from_environment: must be as in force/,
  );
  const unset = await publish(file('unset.yaml', OWN.replace('ONE_KEY', 'THREE_KEY')));
  expect([unset.code, unset.stdout, unset.stderr]).toEqual([
    1,
    expect.stringMatching(/unset\.yaml:7:5: error: connections\[0\]: .*THREE_KEY is not set/),
    expect.stringContaining('Not done (SECRET_MISSING)'),
  ]);
});

it('every connection whose secret is missing is named with its place', async () => {
  const two = `${OWN.replace('ONE_KEY', 'THREE_KEY').replace('routes:', '  - { id: two, provider_id: TWO, connector: sandbox, settings: { base_url: "http://127.0.0.1:2", timeout_ms: 1000 }, secrets_from_environment: { api_key: FOUR_KEY } }\nroutes:')}`;
  const refused = await publish(file('two.yaml', two));
  expect([refused.code, refused.stdout.trimEnd().split('\n').length]).toEqual([1, 2]);
  expect(refused.stdout).toMatch(
    /two\.yaml:7:5: .*THREE_KEY is not set\n.*two\.yaml:12:5: .*FOUR_KEY is not set\n$/,
  );
});

it('undo publishes an earlier version again, with newer connections as retired', async () => {
  const more = `${OWN.replace('routes:', '  - { id: two, provider_id: TWO, connector: sandbox, settings: { base_url: "http://127.0.0.1:2", timeout_ms: 1000 }, secrets_from_environment: { api_key: TWO_KEY, notification_secret: SIGNING_KEY } }\nroutes:')}`;
  expect(await publish(file('more.yaml', more))).toMatchObject({
    code: 0,
    stdout: 'ADDED connections[two]\nversion 3 is published\n',
  });
  const undone = await run('undo', '2', '--comment', 'a mistake');
  expect(undone).toMatchObject({
    code: 0,
    stdout: 'CHANGED connections[two].retired: absent → true\nversion 4 is published\n',
  });
  expect((await run('show')).stdout).toMatch(/^version 4 \(undo\).*: a mistake\n.*2 connections/);
});

it('a connection that has payments is kept until its refund term has passed since it was retired', async () => {
  await tables.query(`
    INSERT INTO transaction (account_id, id, payment_id, type, connection_id, connection_identity, status, amount_minor_units,
      currency, provider_payment_id, capture)
    VALUES ('11111111-1111-4111-8111-111111111111', gen_random_uuid(), gen_random_uuid(), 'PURCHASE', 'two', 'two',
      'SUCCEEDED', 100, 'USD', 'p1', true)`);
  const own = file('own.yaml', OWN);
  const early = await publish(own);
  expect([early.code, early.stderr]).toEqual([
    1,
    expect.stringMatching(
      /\(CONNECTION_IN_USE\): connection two has payments; .*as retired until \d{4}-.* for refunds/,
    ),
  ]);
  await tables.query(`UPDATE retired_connection SET retired_at = now() - interval '181 days'`);
  expect(await publish(own)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('REMOVED connections[two]'),
  });
  expect(await tables.query('SELECT connection_id FROM retired_connection')).toEqual([]);
});

it('the loser of a race exits with 3, and a wrong command line with 2', async () => {
  const path = file(
    'renamed.yaml',
    change('issuer_name: Bank', 'issuer_name: Other').replace('$SANDBOX_URL', 'http://127.0.0.1:1'),
  );
  expect(await publish(path, '--expect', '2')).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/\(VERSION_CHANGED\): version \d+ is in force, published by Alice/),
  });
  for (const args of [
    [],
    ['publish'],
    ['publish', path],
    ['show', 'x'],
    ['undo', 'x', '--comment', 'y'],
    ['drop', path],
  ]) {
    expect([args, (await run(...args)).code]).toEqual([args, 2]);
  }
});

it('with CATALOGUE_FILE, only checks are possible', async () => {
  const path = file('own.yaml', OWN);
  const withFile = { ...environment, CATALOGUE_FILE: path };
  const asked = (...args: string[]) => runCommand(catalogue, withFile, ...args);
  expect((await asked('show')).stdout).toMatch(/own\.yaml, a file\n/);
  expect(await asked('diff', path)).toMatchObject({ code: 0, stdout: 'nothing to do\n' });
  const other = file('other.yaml', OWN.replace('issuer_name: Bank', 'issuer_name: Other'));
  expect(await asked('diff', other)).toMatchObject({
    code: 0,
    stdout: 'CHANGED bins[4111].issuer_name: "Bank" → "Other"\n',
  });
  const withFees = OWN.replace(
    '    connector: sandbox',
    "    agreed_fees: [{ currency: USD, percent: '2.9', fixed: '0.30' }, { currency: JPY, fixed: '30' }]\n    connector: sandbox",
  );
  expect(await asked('diff', file('fees.yaml', withFees))).toMatchObject({
    code: 0,
    stdout: 'CHANGED connections[one].agreed_fees: absent → USD: 2.9% + 0.30; JPY: 30\n',
  });
  expect(await asked('publish', other, '--comment', 'x')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('(CONFIGURED_BY_FILE)'),
  });
});

it('try tells what a file would change on stored payments, and publishes nothing', async () => {
  const path = file('tried.yaml', OWN.replace('issuer_name: Bank', 'issuer_name: Other bank'));
  const tried = await run('try', path, '--payments', '10');
  expect(tried).toMatchObject({ code: 0, stderr: '' });
  expect(tried.stdout.trimEnd().split('\n')).toEqual([
    expect.stringContaining('CHANGED bins[4111].issuer_name'),
    '0 payments: 0 unchanged, 0 take another way',
  ]);
  const before = (await run('show')).stdout;
  for (const payments of ['0', '10001', 'all']) {
    expect(await run('try', path, '--payments', payments)).toMatchObject({ code: 2 });
  }
  expect((await run('show')).stdout).toBe(before);
});

it('secret stores the value of standard input, and tells why it is refused', async () => {
  const store = (value: string, ...args: string[]) =>
    runCommandWithInput(catalogue, environment, `${value}\n`, 'secret', ...args);
  expect((await publish(file('for-secrets.yaml', OWN))).code).toBe(0);
  const isStored = async () => (await tables.query('SELECT id FROM connection_secret')).length;
  const unreachable = await store('new-key-of-one', 'one', 'api_key');
  expect(unreachable).toMatchObject({ code: 1, stderr: expect.stringContaining('CREDENTIALS_REFUSED') });
  const unsure = await store('new-key-of-one', 'one', 'api_key', '--no-test');
  expect(unsure).toMatchObject({ code: 1, stderr: expect.stringContaining('CONNECTION_REPOINTED') });
  expect(await store('x', 'one', 'password')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('name:'),
  });
  expect((await store('', 'one', 'api_key')).code).toBe(2);
  expect((await store('x', 'one')).code).toBe(2);
  expect(await isStored()).toBe(0);
  const done = await store('new-key-of-one', 'one', 'api_key', '--no-test', '--confirm-same-account');
  expect(done, done.stderr).toMatchObject({
    code: 0,
    stdout: 'stored; every replica uses it within two seconds\n',
  });
  expect(await isStored()).toBe(1);
  const [audited] = await tables.query(
    "SELECT actor, detail FROM audit_log WHERE action = 'set-connection-secret'",
  );
  expect(audited).toEqual({
    actor: expect.stringContaining('Alice'),
    detail: 'api_key; keeps the previous for 86400 s',
  });
  // The catalogue opens with the stored secret, whose account is the same.
  const renamed = file(
    'renamed.yaml',
    OWN.replace('connector: sandbox', 'name: Renamed\n    connector: sandbox'),
  );
  expect(await publish(renamed)).toMatchObject({ code: 0 });
});

it('a running service has the accounts of the connections that the command publishes', async () => {
  const server = await startTestServer({ replica: 'one' });
  const stored = await openTables(server.databaseUrl);
  const base64 = (key: Uint8Array) => Buffer.from(key).toString('base64');
  const [id = '', key = new Uint8Array()] = server.keys.vaultKeys.entries().next().value ?? [];
  const service = {
    ...{ DATABASE_URL: server.databaseUrl, VAULT_KEYS: `${id}:${base64(key)}`, ACTOR: 'Alice' },
    HASH_KEY: base64(server.keys.hashKey),
  };
  const exported = await runCommand(catalogue, service, 'export');
  const path = file(
    'sandbox.yaml',
    exported.stdout.replaceAll('connector: sandbox', 'connector: sandbox\n    max_in_flight: 50'),
  );
  expect(await runCommand(catalogue, service, 'publish', path, '--comment', 'a test')).toMatchObject({
    code: 0,
  });
  await vi.waitFor(
    async () =>
      expect(await stored.query('SELECT version, fault FROM catalogue_replica')).toEqual([
        { version: 2, fault: '' },
      ]),
    { timeout: 5_000 },
  );
  const paid = await fetch(`${server.url}/v1/payments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headersOne() },
    body: JSON.stringify(cardPayment()),
  });
  expect(paid.status).toBe(201);
  const accounts = await stored.query(`
    SELECT t.connection_identity = a.identity AS same
    FROM transaction t JOIN connection_account a ON a.connection_id = t.connection_id`);
  expect(accounts).toEqual([{ same: true }]);
  await stored.close();
  await server.close();
});

it('check and publish warn of what is doubtful, with its place', async () => {
  const path = file(
    'doubtful.yaml',
    OWN.replace(
      'connections:\n',
      `  - { type: BOLETO, category: TICKET, workflows: [REDIRECT] }
connections:
  - { id: paypal, provider_id: ONE, connector: paypal, settings: {}, secrets_from_environment: { client_id: ONE_KEY, client_secret: TWO_KEY } }
`,
    ).replace('- connection: one', '- connection: paypal'),
  );
  const warnings = [
    `${path}:8:5: warning: connections[0]: paypal moves real money, and SANDBOX is on: anyone may pay with the sandbox’s published keys; set SANDBOX=off, or use a test account`,
    `${path}:6:5: warning: payment_method_types[1]: BOLETO is accepted by no route, so its payments are refused; add a route, or remove it`,
    `${path}:18:21: warning: routes[0].targets[0].connection: paypal supports nothing that the route accepts (CARD); remove the target, or change the condition`,
  ];
  const linesOf = ({ stdout }: { stdout: string }) => stdout.trimEnd().split('\n');
  const checked = await run('check', path);
  expect([checked.code, ...linesOf(checked)]).toEqual([0, ...warnings, `${path}: valid`]);
  const published = await publish(path);
  const unnotified = `${path}:8:5: warning: connections[0]: paypal gets no notifications`;
  expect(published.code).toBe(0);
  expect(linesOf(published).slice(0, 4)).toEqual([
    warnings[0],
    expect.stringContaining(unnotified),
    ...warnings.slice(1),
  ]);
  // Elsewhere, nothing is known of the service's environment.
  const bare = await runCommand(catalogue, { DATABASE_URL: 'postgres://x' }, 'check', path);
  expect([bare.code, ...linesOf(bare)]).toEqual([0, warnings[1], `${path}: valid`]);
});
