import { createHmac, randomUUID } from 'node:crypto';
import { createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ConfigurationService } from '#gen/payments/v1/configuration_service_pb.js';
import { resealAll } from '#src/commands/reseal.ts';
import { ageOut } from '#src/server/age-out.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { createTestDatabase, openTestDatabase } from '../support/database.ts';
import { type KeyedSandbox, startKeyedSandbox } from '../support/keyed-sandbox.ts';
import { cardPayment, headersOne } from '../support/payment-requests.ts';
import { RPCS, rpcTransports } from '../support/rpc-transports.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { openTables, type Tables } from '../support/tables.ts';
import { startTraceCollector, type TraceCollector } from '../support/trace-collector.ts';

const OPERATOR = { 'operator-key': 'op_sandbox' };
const READER = { 'operator-key': 'op_sandbox_read' };
/** Every replica follows a change within this time. */
const FOLLOWED_MS = 2_500;
const CANARY = `canary-${randomUUID()}`;
const ENVIRONMENT: Readonly<Record<string, string>> = {
  ROTATED_KEY: 'key-of-the-environment',
  ROTATED_SIGNING: 'signing-secret-of-the-environment',
};

let provider: KeyedSandbox;
let one: TestServer;
let two: TestServer;
let tables: Tables;
let drop: () => Promise<void>;
let collector: TraceCollector;
let start: (replica: string) => Promise<TestServer>;

/** A connection like the one in force, without its secrets. */
const ROTATED = { provider_id: 'ROTATED', connector: 'sandbox', settings: { base_url: '' } };

const catalogue = (url: string) => `
payment_method_types:
  - { type: CARD, category: CARD, workflows: [DIRECT] }
connections:
  - id: rotated
    provider_id: ROTATED
    connector: sandbox
    settings: { base_url: '${url}' }
    secrets_from_environment: { api_key: ROTATED_KEY, notification_secret: ROTATED_SIGNING }
routes:
  - { id: 1, targets: [{ connection: rotated }] }
`;

beforeAll(async () => {
  const database = await createTestDatabase();
  drop = database.drop;
  tables = await openTables(database.url);
  provider = await startKeyedSandbox(database.url);
  provider.accounts.set('key-of-the-environment', 'shop');
  ROTATED.settings.base_url = provider.url;
  collector = await startTraceCollector();
  const connectionHosts = [new URL(provider.url).host];
  const config = {
    otlpEndpoint: collector.url,
    connectionHosts,
    environment: (name: string) => ENVIRONMENT[name],
    recoveryIntervalMs: 100,
  };
  const shared = { databaseUrl: database.url, catalogue: catalogue(provider.url), config };
  one = await startTestServer({ ...shared, replica: 'one' });
  start = (replica) => startTestServer({ ...shared, replica, keys: one.keys });
  two = await start('two');
});

afterAll(async () => {
  await one?.close();
  await two?.close();
  collector?.close();
  await provider?.close();
  await tables?.close();
  await drop?.();
});

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the response.
type Answer = { readonly status: number; readonly json: any; readonly text: string };
const answers: string[] = [];

async function call(
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = OPERATOR,
  { url } = one,
): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  answers.push(text);
  return { status: response.status, json: text === '' ? undefined : JSON.parse(text), text };
}

const secretPath = (name: string, connection = 'rotated') => `/v1/connections/${connection}/secrets/${name}`;
const set = (body: object, name = 'api_key', connection = 'rotated') =>
  call('PUT', secretPath(name, connection), body);

const pay = (server: TestServer, over: object = {}) =>
  call('POST', '/v1/payments', { ...cardPayment(), ...over }, headersOne(), server);

/** Returns the payment as it is now. */
const read = async (id: string) => (await call('GET', `/v1/payments/${id}`, undefined, headersOne())).json;

const followed = () => new Promise((resolve) => setTimeout(resolve, FOLLOWED_MS));

const identities = async () =>
  (await tables.query('SELECT DISTINCT connection_identity AS id FROM transaction')).map(({ id }) => id);

async function expectRefused(answer: Promise<Answer>, status: number, code: string): Promise<string> {
  const rows = () => tables.query('SELECT id, sealed FROM connection_secret ORDER BY id');
  const before = await rows();
  const { status: seen, json, text } = await answer;
  expect([seen, json.code], text).toEqual([status, code]);
  expect(await rows()).toEqual(before);
  return json.detail;
}

describe('the rotation of a key that names the account', () => {
  it('declines no payment on any replica, and looks up what the old key left open', async () => {
    const open = await pay(one, { description: 'sandbox:done_after:4500' });
    expect(open.json.status).toBe('PENDING');
    provider.accounts.set(CANARY, 'shop');
    const seen: string[] = [];
    let isOver = false;
    const paying = [one, two].map(async (server) => {
      while (!isOver) seen.push((await pay(server)).json.status);
    });
    const stored = await set({ value: CANARY });
    expect(stored.status, stored.text).toBe(200);
    expect(stored.json).toMatchObject({ tested: true, provider_account: 'shop', previous_until: null });
    expect(stored.json.actor).toMatch(/^operator-[0-9a-f]{8} from 127\.0\.0\.1$/);
    await followed();
    provider.accounts.delete('key-of-the-environment');
    const atRevocation = seen.length;
    await new Promise((resolve) => setTimeout(resolve, 500));
    isOver = true;
    await Promise.all(paying);
    expect(seen.length).toBeGreaterThan(atRevocation + 5);
    expect(new Set(seen)).toEqual(new Set(['SUCCEEDED']));
    expect(provider.refused()).toBe(0);
    expect(await identities()).toHaveLength(1);
    await vi.waitFor(async () => expect((await read(open.json.id)).status).toBe('SUCCEEDED'), {
      timeout: 10_000,
      interval: 100,
    });
  });

  it('a replica that starts later has the new key and the first identity', async () => {
    const three = await start('three');
    expect((await pay(three)).json.status).toBe('SUCCEEDED');
    expect(await identities()).toHaveLength(1);
    await three.close();
  });

  it('a repeated call changes nothing', async () => {
    const rows = () => tables.query('SELECT * FROM connection_secret ORDER BY id');
    const before = await rows();
    expect((await set({ value: CANARY })).status).toBe(200);
    expect(await rows()).toEqual(before);
  });

  it('is refused with a key of another account, and with a key that the provider refuses', async () => {
    provider.accounts.set('key-of-another', 'another');
    const detail = await expectRefused(set({ value: 'key-of-another' }), 409, 'CONNECTION_REPOINTED');
    expect(detail).toContain('belongs to the account another, not to shop');
    await expectRefused(
      set({ value: 'key-of-another', test: false, confirm_same_account: true }),
      409,
      'CONNECTION_REPOINTED',
    );
    await expectRefused(set({ value: 'key-unknown' }), 409, 'CREDENTIALS_REFUSED');
    expect((await pay(one)).json.status).toBe('SUCCEEDED');
  });

  it('needs a confirmation where the provider does not tell the account, and nothing may be open there', async () => {
    await tables.query('UPDATE transaction SET check_at = NULL');
    const value = 'key-not-yet-known';
    const unsure = await expectRefused(set({ value, test: false }), 409, 'CONNECTION_REPOINTED');
    expect(unsure).toContain('confirm it with confirm_same_account');
    const [some] = await tables.query('SELECT id FROM transaction LIMIT 1');
    await tables.query(
      `UPDATE transaction SET check_at = now() + interval '1 hour' WHERE id = '${some?.id}'`,
    );
    const open = await expectRefused(
      set({ value, test: false, confirm_same_account: true }),
      409,
      'CONNECTION_REPOINTED',
    );
    expect(open).toContain('1 transactions to be checked');
    await tables.query('UPDATE transaction SET check_at = NULL');
    expect((await set({ value, test: false, confirm_same_account: true })).status).toBe(200);
    expect((await set({ value: CANARY })).status).toBe(200);
    await followed();
    expect((await pay(two)).json.status).toBe('SUCCEEDED');
    expect(await identities()).toHaveLength(1);
  });
});

it('a connection that was started with another account keeps that account until nothing is open there', async () => {
  provider.accounts.set('key-of-a-restart', 'shop');
  const connection = { ...ROTATED, id: 'restarted' };
  expect((await set({ value: CANARY, connection }, 'api_key', 'restarted')).status).toBe(200);
  const { version } = (await call('GET', '/v1/catalogue')).json;
  const change = { put_connection: connection, expected_version: version };
  expect((await call('PATCH', '/v1/catalogue', change)).status).toBe(200);
  await followed();
  const [account] = await tables.query(
    "SELECT identity FROM connection_account WHERE connection_id = 'restarted'",
  );
  // The stored secret belongs to another identity than the one for which the id stands.
  await tables.query(
    "UPDATE connection_account SET identity = 'elsewhere' WHERE connection_id = 'restarted'",
  );
  await tables.query(
    "UPDATE transaction SET connection_id = 'restarted', check_at = now() + interval '1 hour'",
  );
  const detail = await expectRefused(
    set({ value: 'key-of-a-restart' }, 'api_key', 'restarted'),
    409,
    'CONNECTION_REPOINTED',
  );
  expect(detail).toContain('it was last started with another account');
  await tables.query("UPDATE transaction SET connection_id = 'rotated', check_at = NULL");
  await tables.query('UPDATE connection_account SET identity = $1 WHERE connection_id = $2', [
    account?.identity,
    'restarted',
  ]);
});

it.each<[what: string, body: object, name: string]>([
  ['an unknown secret', { value: 'x' }, 'password'],
  ['no value', {}, 'api_key'],
  ['a value that the connector does not accept', { value: 'with a space' }, 'api_key'],
  ['too long a time for the replaced value', { value: 'x', keep_previous_s: 604_801 }, 'api_key'],
  [
    'a connection that is in force',
    { value: 'x', connection: { id: 'rotated', provider_id: 'X', connector: 'sandbox' } },
    'api_key',
  ],
])('%s is refused', async (_what, body, name) => {
  await expectRefused(set(body, name), 400, 'INVALID_PARAMETERS');
});

it('a key that may only read sets and deletes nothing', async () => {
  await expectRefused(
    call('PUT', secretPath('api_key'), { value: 'x' }, READER),
    403,
    'AUTHORIZATION_REQUIRED',
  );
  await expectRefused(
    call('DELETE', secretPath('api_key'), undefined, READER),
    403,
    'AUTHORIZATION_REQUIRED',
  );
});

it('notifications are accepted with the new secret, and with the replaced one as long as it is kept', async () => {
  const notify = async (secret: string) => {
    const body = JSON.stringify({ id: `ev_${randomUUID()}`, type: 'x' });
    const t = Math.floor(Date.now() / 1000);
    const v1 = createHmac('sha256', secret).update(`${t}.${body}`).digest('hex');
    const headers = { 'content-type': 'application/json', 'sandbox-signature': `t=${t},v1=${v1}` };
    const response = await fetch(`${one.url}/v1/providers/rotated/notifications`, {
      method: 'POST',
      headers,
      body,
    });
    return response.status;
  };
  const [first, second, third] = ['first', 'second', 'third'].map((name) => `${name}-signing-secret`);
  expect(await notify(ENVIRONMENT.ROTATED_SIGNING ?? '')).toBe(200);
  const stored = await set({ value: first }, 'notification_secret');
  expect(stored.json).toMatchObject({ tested: false, previous_until: null });
  const kept = await set({ value: second, keep_previous_s: 4 }, 'notification_secret');
  expect(Date.parse(kept.json.previous_until) - Date.parse(kept.json.set_at)).toBe(4_000);
  await followed();
  expect([
    await notify(second ?? ''),
    await notify(first ?? ''),
    await notify(ENVIRONMENT.ROTATED_SIGNING ?? ''),
  ]).toEqual([200, 200, 401]);
  await followed();
  expect([await notify(second ?? ''), await notify(first ?? '')]).toEqual([200, 401]);
  expect((await set({ value: third, keep_previous_s: 0 }, 'notification_secret')).json.previous_until).toBe(
    null,
  );
  await followed();
  expect([await notify(third ?? ''), await notify(second ?? '')]).toEqual([200, 401]);
});

it('a secret can be stored before its connection is published, and is deleted after a day if it is not', async () => {
  const connection = {
    id: 'prepared',
    provider_id: 'PREPARED',
    connector: 'sandbox',
    settings: { base_url: '$SANDBOX_URL' },
  };
  expect((await set({ value: 'too-early' }, 'api_key', 'prepared')).json).toMatchObject({ tested: false });
  await expectRefused(set({ value: 'wrong', connection }, 'api_key', 'prepared'), 409, 'CREDENTIALS_REFUSED');
  const elsewhere = { ...connection, settings: { base_url: 'https://evil.example' } };
  await expectRefused(
    set({ value: 'wrong', connection: elsewhere }, 'api_key', 'prepared'),
    400,
    'INVALID_PARAMETERS',
  );
  const database = openTestDatabase(one.databaseUrl, 1);
  const stored = () => tables.query("SELECT name FROM connection_secret WHERE connection_id = 'prepared'");
  await ageOut(database);
  expect(await stored()).toHaveLength(1);
  await tables.query(
    "UPDATE connection_secret SET ends_at = ends_at - interval '1 day' WHERE ends_at IS NOT NULL",
  );
  await ageOut(database);
  expect(await stored()).toHaveLength(0);
  expect((await set({ value: 'in-time' }, 'api_key', 'prepared')).status).toBe(200);
  const { version } = (await call('GET', '/v1/catalogue')).json;
  const published = await call('PATCH', '/v1/catalogue', {
    put_connection: connection,
    expected_version: version,
    comment: 'prepared',
  });
  expect(published.status, published.text).toBe(200);
  expect(
    await tables.query("SELECT ends_at FROM connection_secret WHERE connection_id = 'prepared'"),
  ).toEqual([{ ends_at: null }]);
  await expectRefused(call('DELETE', secretPath('api_key', 'prepared')), 400, 'SECRET_MISSING');
  await database.close();
});

it('a connection without its secret is not published', async () => {
  const { version } = (await call('GET', '/v1/catalogue')).json;
  const put_connection = {
    id: 'without',
    provider_id: 'X',
    connector: 'sandbox',
    settings: { base_url: '$SANDBOX_URL' },
  };
  const refused = await call('PATCH', '/v1/catalogue', { put_connection, expected_version: version });
  expect([refused.status, refused.json.code]).toEqual([400, 'SECRET_MISSING']);
});

it('a stored secret is deleted if the environment has another one of the same account', async () => {
  expect((await call('DELETE', secretPath('notification_secret'))).status).toBe(204);
  expect((await call('DELETE', secretPath('notification_secret'))).status).toBe(204);
  const left = await tables.query(
    "SELECT name FROM connection_secret WHERE connection_id = 'rotated' AND name = 'notification_secret'",
  );
  expect(left).toEqual([]);
});

it('secrets of more connections than a limit are refused', async () => {
  await tables.query(`
    INSERT INTO connection_secret (id, connection_id, name, sealed, actor, ends_at)
    SELECT gen_random_uuid(), 'many-' || i, 'api_key', 'damaged', 'a test', now() FROM generate_series(1, 2000) i`);
  const detail = await expectRefused(set({ value: 'x' }, 'api_key', 'one-more'), 400, 'INVALID_PARAMETERS');
  expect(detail).toContain('2000 connections have stored secrets');
  expect((await set({ value: CANARY })).status).toBe(200);
  await tables.query("DELETE FROM connection_secret WHERE sealed = 'damaged'");
});

it.each(RPCS)('over %s, secrets are set and deleted as over REST', async (protocol) => {
  const { transports, close } = rpcTransports(one.url);
  const client = createClient(ConfigurationService, transports[protocol]);
  const name = { connectionId: `by-${protocol}`, name: 'api_key' };
  const stored = await client.setConnectionSecret({ ...name, value: CANARY }, { headers: OPERATOR });
  expect(stored).toMatchObject({ tested: false, providerAccount: '' });
  await client.deleteConnectionSecret(name, { headers: OPERATOR });
  expect(
    await tables.query(`SELECT id FROM connection_secret WHERE connection_id = '${name.connectionId}'`),
  ).toEqual([]);
  const wrong = client.setConnectionSecret(
    { connectionId: 'rotated', name: 'api_key', value: `${CANARY}-wrong` },
    { headers: OPERATOR },
  );
  await expect(wrong).rejects.toThrow(/the provider refuses the credentials/);
  close();
});

it('stored secrets are resealed with the vault’s current key', async () => {
  const database = openTestDatabase(one.databaseUrl, 1);
  const keys = new Map([['test-2', Buffer.alloc(32, 2)], ...one.keys.vaultKeys]);
  const sealed = () => tables.query('SELECT id, sealed FROM connection_secret ORDER BY id');
  const before = await sealed();
  expect(await resealAll(database, cardVault(keys))).toMatchObject({ changed: 0, unreadable: 0 });
  const after = await sealed();
  expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  expect(after.every(({ sealed: now }, i) => now !== before[i]?.sealed)).toBe(true);
  expect((await resealAll(database, cardVault(keys))).resealed).toBe(0);
  await database.close();
});

it('a secret is in no response, log line, metric, trace or table, and its changes are audited', async () => {
  const lines = [...one.logLines, ...two.logLines];
  expect(lines.length).toBeGreaterThan(10);
  expect(lines.filter((line) => line.includes(CANARY))).toEqual([]);
  expect(answers.filter((text) => text.includes(CANARY))).toEqual([]);
  const traces = () => collector.received.map(({ body }) => body);
  await vi.waitFor(() => expect(traces().join('')).toContain('SetConnectionSecret'), { timeout: 10_000 });
  expect(traces().filter((text) => text.includes(CANARY))).toEqual([]);
  expect(await (await fetch(`${one.url}/metrics`)).text()).not.toContain(CANARY);
  for (const { name } of await tables.query(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'",
  )) {
    const [found] = await tables.query(
      `SELECT count(*)::integer AS n FROM "${name}" t WHERE t::text LIKE '%${CANARY}%' OR t::text LIKE '%${Buffer.from(CANARY).toString('hex')}%'`,
    );
    expect([name, found?.n]).toEqual([name, 0]);
  }
  const audited = await tables.query(
    "SELECT DISTINCT action, subject FROM audit_log WHERE action LIKE '%-connection-secret' AND subject = 'rotated' ORDER BY action",
  );
  expect(audited.map(({ action }) => action)).toEqual(['delete-connection-secret', 'set-connection-secret']);
});

it('with a file, secrets stay in the environment', async () => {
  const own = await startTestServer({ config: { catalogueFile: 'catalogue.yaml' } });
  const refused = await call('PUT', secretPath('api_key', 'sandbox-one'), { value: 'x' }, OPERATOR, own);
  expect([refused.status, refused.json.code]).toEqual([409, 'CONFIGURED_BY_FILE']);
  const deleted = await call('DELETE', secretPath('api_key', 'sandbox-one'), undefined, OPERATOR, own);
  expect([deleted.status, deleted.json.code]).toEqual([409, 'CONFIGURED_BY_FILE']);
  await own.close();
});
