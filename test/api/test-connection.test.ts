import { create } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CatalogueSchema, ConnectionConfigSchema } from '#gen/payments/v1/catalogue_pb.js';
import {
  ConfigurationService,
  TestConnectionRequestSchema,
} from '#gen/payments/v1/configuration_service_pb.js';
import { NO_CREDENTIALS } from '#src/catalogue/credentials.ts';
import { createConnectionTest } from '#src/catalogue/test-connection.ts';
import { paypalConnector } from '#src/connectors/paypal/connector.ts';
import {
  httpAnswer,
  type Script,
  type ScriptedServer,
  startScriptedServer,
} from '../connectors/scripted-server.ts';
import { FAKE_ACCOUNT_ID, FAKE_API_KEY, startFakeStripe } from '../connectors/stripe/fake-stripe.ts';
import { RPCS, rpcTransports } from '../support/rpc-transports.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const OPERATOR = { 'operator-key': 'op_sandbox' };
/** A secret that must appear nowhere but at its provider. */
const CANARY = 'sk_test_canary_of_a_secret';

let server: TestServer;
let stripe: Awaited<ReturnType<typeof startFakeStripe>>;
let scripted: ScriptedServer;
let script: Script = () => {};

beforeAll(async () => {
  stripe = await startFakeStripe();
  scripted = await startScriptedServer((socket, text) => script(socket, text));
  const hosts = [new URL(stripe.url).host, `127.0.0.1:${scripted.port}`, '169.254.169.254', '[fe80::1]'];
  server = await startTestServer({ config: { connectionHosts: hosts } });
});

afterAll(async () => {
  await server?.close();
  await stripe?.close();
  await scripted?.close();
});

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the response.
type Answer = { readonly status: number; readonly json: any; readonly text: string };

async function test(body: object, headers: Record<string, string> = OPERATOR): Promise<Answer> {
  const response = await fetch(`${server.url}/v1/connections/test`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, json: JSON.parse(text), text };
}

const connection = (base_url: string, more: object = {}) => ({
  ...{ id: 'stripe-new', provider_id: 'STRIPE', connector: 'stripe', name: 'Stripe' },
  settings: { base_url, ...more },
});
const atScripted = (more: object = {}) => ({
  connection: connection(`http://127.0.0.1:${scripted.port}`, more),
  secrets: { api_key: CANARY },
});

describe('a test of a connection', () => {
  it('credentials in force are accepted, and others in their place are refused', async () => {
    const accepted = await test({ connection_id: 'sandbox-one' });
    expect([accepted.status, accepted.json]).toEqual([
      200,
      {
        result: 'ACCEPTED',
        provider_account: 'acct_sandbox',
        environment: 'TEST',
        message: 'the provider accepts the credentials',
        latency_ms: expect.any(Number),
      },
    ]);
    const refused = await test({ connection_id: 'sandbox-one', secrets: { api_key: CANARY } });
    expect(refused.json).toMatchObject({
      ...{ result: 'REFUSED', provider_account: '', environment: '' },
      message: 'the credentials are refused (HTTP 401)',
    });
    // A connection of the request uses the secrets of the one in force with its id.
    const settings = { base_url: '$SANDBOX_URL', account_id: 'acct_other', timeout_ms: 60_000 };
    const known = { id: 'sandbox-one', provider_id: 'X', connector: 'sandbox', settings };
    const secrets_from_environment = {
      api_key: 'SANDBOX_API_KEY',
      notification_secret: 'SANDBOX_NOTIFICATION_SECRET',
    };
    const other = await test({ connection: { ...known, secrets_from_environment } });
    expect([other.json.result, other.json.provider_account], other.text).toEqual(['ACCEPTED', 'acct_other']);
  });

  it('a connection that is not in force is tested with the secrets of the request, without a payment', async () => {
    const { json } = await test({ connection: connection(stripe.url), secrets: { api_key: FAKE_API_KEY } });
    expect(json).toMatchObject({
      result: 'ACCEPTED',
      provider_account: FAKE_ACCOUNT_ID,
      environment: 'TEST',
    });
    expect(stripe.calls()).toEqual(['GET /v1/account']);
    const other = connection(stripe.url, { account_id: 'acct_another' });
    expect((await test({ connection: other, secrets: { api_key: FAKE_API_KEY } })).json).toMatchObject({
      ...{ result: 'REFUSED', provider_account: '' },
      message: `the credentials belong to the account ${FAKE_ACCOUNT_ID}, and account_id is acct_another`,
    });
  });

  it('a redirect is not followed', async () => {
    script = (socket) => socket.write(httpAnswer(302, '', { location: `${stripe.url}/v1/account` }));
    const before = stripe.requests.length;
    const { json } = await test(atScripted());
    expect(json).toMatchObject({
      result: 'UNREACHABLE',
      message: 'the response is unreadable (HTTP 302)',
    });
    expect(stripe.requests.length).toBe(before);
  });

  it('an answer that says nothing about the credentials is told as such', async () => {
    const body = JSON.stringify({ error: { type: 'invalid_request_error', message: CANARY } });
    script = (socket) => socket.write(httpAnswer(404, body));
    const { json, text } = await test(atScripted());
    expect(json.result).toBe('NOT_TESTABLE');
    expect(text).not.toContain(CANARY);
  });

  it('a provider that does not answer holds a test until its deadline, and four tests at most run at once', async () => {
    script = () => {};
    const startMs = performance.now();
    const tests = Array.from({ length: 6 }, () => test(atScripted({ timeout_ms: 1_500 })));
    const answers = await Promise.all(tests);
    expect(performance.now() - startMs).toBeLessThan(8_000);
    const results = answers.map(({ status, json }) => `${status} ${json.result ?? json.code}`);
    expect(results.sort()).toEqual([
      ...Array.from({ length: 4 }, () => '200 UNREACHABLE'),
      ...Array.from({ length: 2 }, () => '503 SERVICE_UNAVAILABLE'),
    ]);
    script = (socket) => socket.write(httpAnswer(200, '{"id":"acct_1","object":"account"}'));
    expect((await test(atScripted())).json).toMatchObject({ result: 'ACCEPTED', provider_account: 'acct_1' });
  });

  it.each([
    ['another host', 'https://evil.example'],
    ['a metadata address', 'http://169.254.169.254'],
    ['a metadata address in another form', 'http://0xa9fea9fe'],
    ['a metadata address of IPv6', 'http://[fe80::1]'],
    ['a mapped metadata address', 'http://[::ffff:169.254.169.254]'],
    ['this machine', 'http://127.0.0.1:1'],
    ['a private address', 'http://10.0.0.1'],
    ['its own host in cleartext', 'http://api.stripe.com'],
    ['its own host at another port', 'https://api.stripe.com:8443'],
    ['another provider’s host', 'https://api-m.paypal.com'],
    ['a variable in an address', 'https://$SANDBOX_URL@evil.example'],
    ['a user in an address', 'https://api.stripe.com@evil.example'],
  ])('an address that leads to %s is refused before anything connects', async (_what, base_url) => {
    const refused = await test({ connection: connection(base_url), secrets: { api_key: CANARY } });
    expect([refused.status, refused.json.code], refused.text).toEqual([400, 'INVALID_PARAMETERS']);
    expect(refused.json.errors).toMatchObject([{ field: 'connection.settings', code: 'NOT_ALLOWED' }]);
    expect(refused.text).not.toContain(CANARY);
  });

  it.each<[string, object, number, string]>([
    ['nothing to test', {}, 400, 'INVALID_PARAMETERS'],
    ['an unknown connection', { connection_id: 'nowhere' }, 400, 'INVALID_PARAMETERS'],
    [
      'a variable of the environment',
      {
        connection: {
          ...connection('https://api.stripe.com'),
          secrets_from_environment: { api_key: 'VAULT_KEYS' },
        },
      },
      400,
      'INVALID_PARAMETERS',
    ],
    ['a missing secret', { connection: connection('https://api.stripe.com') }, 400, 'SECRET_MISSING'],
    [
      'a secret of another connector',
      {
        connection: connection('https://api.stripe.com'),
        secrets: { api_key: CANARY, access_token: CANARY },
      },
      400,
      'CATALOGUE_INVALID',
    ],
    [
      'an invalid secret',
      { connection: connection('https://api.stripe.com'), secrets: { api_key: `pk_${CANARY}` } },
      400,
      'CATALOGUE_INVALID',
    ],
    [
      'a secret as a name',
      { connection_id: 'sandbox-one', secrets: { [CANARY.toUpperCase()]: 'x' } },
      400,
      'INVALID_PARAMETERS',
    ],
    [
      'a secret without an end',
      { connection_id: 'sandbox-one', secrets: { api_key: 'x'.repeat(8_193) } },
      400,
      'INVALID_PARAMETERS',
    ],
    [
      'an invalid setting',
      {
        connection: connection('https://api.stripe.com', { timeout_ms: 'soon' }),
        secrets: { api_key: CANARY },
      },
      400,
      'CATALOGUE_INVALID',
    ],
  ])('a test with %s is refused, and quotes no secret', async (_what, body, status, code) => {
    const refused = await test(body);
    expect([refused.status, refused.json.code], refused.text).toEqual([status, code]);
    expect(refused.text.toLowerCase()).not.toContain(CANARY);
  });

  it('a test needs a key that may do more than read', async () => {
    const read = await test({ connection_id: 'sandbox-one' }, { 'operator-key': 'op_sandbox_read' });
    expect([read.status, read.json.code]).toEqual([403, 'AUTHORIZATION_REQUIRED']);
    expect((await test({ connection_id: 'sandbox-one' }, {})).status).toBe(401);
  });

  it.each(RPCS)('over %s, a test returns the same as over REST', async (protocol) => {
    const { transports, close } = rpcTransports(server.url);
    const client = createClient(ConfigurationService, transports[protocol]);
    const tested = { case: 'connectionId', value: 'sandbox-one' } as const;
    expect(await client.testConnection({ tested }, { headers: OPERATOR })).toMatchObject({
      ...{ result: 'ACCEPTED', providerAccount: 'acct_sandbox', environment: 'TEST' },
    });
    close();
  });

  it('no secret of a test is logged', () => {
    expect(server.logLines.join('\n')).not.toContain(CANARY);
  });
});

describe('the provider’s own name', () => {
  it.each([
    [['104.18.0.1'], true, false],
    [[], true, false],
    [['104.18.0.1', '10.0.0.1'], true, true],
    [['127.0.0.1'], true, true],
    [['169.254.169.254'], true, true],
    [['104.18.0.1'], false, false],
    [['127.0.0.1'], false, true],
  ])(
    'a name that leads to %s, in the settings (%s) or by default, is refused: %s',
    async (addresses, isNamed, isRefused) => {
      let opened = 0;
      const run = createConnectionTest({
        inForce: () => create(CatalogueSchema),
        connectors: [paypalConnector],
        connectionHosts: [],
        readCredentials: async () => NO_CREDENTIALS,
        resolve: async () => addresses,
        openOne() {
          opened++;
          throw new Error('opened');
        },
      });
      const value = create(ConnectionConfigSchema, {
        ...{ id: 'paypal', providerId: 'PAYPAL', connector: 'paypal' },
        ...(isNamed && { settings: { base_url: 'https://api-m.paypal.com' } }),
      });
      const request = create(TestConnectionRequestSchema, { tested: { case: 'connection', value } });
      await expect(run(request)).rejects.toThrow(isRefused ? 'not public' : 'opened');
      expect(opened).toBe(isRefused ? 0 : 1);
    },
  );
});
