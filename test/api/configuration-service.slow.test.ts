import { request as httpRequest } from 'node:http';
import { create, fromJson } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { CatalogueSchema } from '#gen/payments/v1/catalogue_pb.js';
import {
  ConfigurationService,
  GetCatalogueResponseSchema,
  ListCatalogueVersionsResponseSchema,
  ListConnectorsResponseSchema,
  UpdateCatalogueRequestSchema,
} from '#gen/payments/v1/configuration_service_pb.js';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';
import { sandboxCatalogue } from '../support/catalogues.ts';
import { createTestDatabase } from '../support/database.ts';
import { cardPayment, headersOne } from '../support/payment-requests.ts';
import { RPCS, rpcTransports } from '../support/rpc-transports.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { openTables, type Tables } from '../support/tables.ts';

const OPERATOR = { 'operator-key': 'op_sandbox' };
const READER = { 'operator-key': 'op_sandbox_read' };
const FOLLOWED = { timeout: 5_000, interval: 50 };

/** The sandbox's catalogue; one of its connections counts as a real provider's, since it is not the mounted sandbox's. */
const CATALOGUE = sandboxCatalogue(1_000).replace(
  /(id: guarded-one\n(?: +.*\n)*? +settings: )\*acquirer-one/,
  "$1{ base_url: 'http://127.0.0.1:1', timeout_ms: 1000 }",
);

let one: TestServer;
let two: TestServer;
let tables: Tables;
let drop: () => Promise<void>;

beforeAll(async () => {
  const database = await createTestDatabase();
  drop = database.drop;
  tables = await openTables(database.url);
  const own = { databaseUrl: database.url, catalogue: CATALOGUE };
  one = await startTestServer({ ...own, replica: 'one' });
  two = await startTestServer({ ...own, replica: 'two', keys: one.keys });
});

afterAll(async () => {
  await one?.close();
  await two?.close();
  await tables?.close();
  await drop?.();
});

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the response.
type Answer = { readonly status: number; readonly json: any };

async function call(path: string, init: RequestInit, { url } = one): Promise<Answer> {
  const response = await fetch(url + path, init);
  return { status: response.status, json: await response.json() };
}

const get = (path = '', headers: Record<string, string> = OPERATOR, server = one) =>
  call(`/v1/catalogue${path}`, { headers }, server);

const patch = (body: object, headers: Record<string, string> = OPERATOR, server = one) =>
  call(
    '/v1/catalogue',
    {
      method: 'PATCH',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    },
    server,
  );

const inForce = async () => (await get()).json.version as number;

/** Publishes a change to the version in force. @returns the new version. */
async function publish(change: object): Promise<number> {
  const { status, json } = await patch({ ...change, expected_version: await inForce(), comment: 'a test' });
  expect(status, JSON.stringify(json)).toBe(200);
  return json.version;
}

/** Waits until both replicas run a version. */
const followed = (version: number) =>
  vi.waitFor(async () => {
    const { replicas } = (await get()).json;
    expect(replicas.map((each: Record<string, unknown>) => [each.replica, each.version])).toEqual([
      ['one', version],
      ['two', version],
    ]);
  }, FOLLOWED);

async function pay(server: TestServer): Promise<string> {
  const { status, json } = await call(
    '/v1/payments',
    {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headersOne() },
      body: JSON.stringify(cardPayment()),
    },
    server,
  );
  expect(status, JSON.stringify(json)).toBe(201);
  return json.id;
}

describe('the catalogue through the API', () => {
  it('both replicas run a new version within two seconds, and its payments name it', async () => {
    const route = {
      id: 77,
      name: 'New',
      condition: "merchant_reference == 'new'",
      targets: [{ connection: 'sandbox-two' }],
    };
    const before = await inForce();
    const startMs = performance.now();
    const version = await publish({ put_route: { route, before: 1 } });
    expect(version).toBe(before + 1);
    await followed(version);
    expect(performance.now() - startMs).toBeLessThan(4_000);
    const id = await pay(two);
    expect(
      await tables.query(`SELECT catalogue_version AS v FROM transaction WHERE payment_id = '${id}'`),
    ).toEqual([{ v: version }]);
    const shown = (await get(`?version=${version}`)).json;
    expect(shown).toMatchObject({ source: 'api', comment: 'a test', replicas: [] });
    expect(shown.actor).toMatch(/^operator-[0-9a-f]{8} from 127\.0\.0\.1$/);
    expect(shown.changes.map(({ path, kind }: Record<string, string>) => [path, kind])).toEqual([
      ['routes[77]', 'ADDED'],
    ]);
    const [audited] = await tables.query(
      `SELECT actor, detail FROM audit_log WHERE action = 'publish-catalogue' AND subject = '${version}'`,
    );
    expect(audited).toEqual({ actor: shown.actor, detail: 'api: a test' });
  });

  it('an undo restores the earlier version, and connections that are newer stay as retired', async () => {
    const first = await inForce();
    const added = {
      id: 'newer',
      provider_id: 'NEWER',
      connector: 'sandbox',
      settings: { base_url: '$SANDBOX_URL' },
    };
    const refused = await patch({ put_connection: { ...added, settings: {} }, expected_version: first });
    expect([refused.status, refused.json.code]).toEqual([400, 'CATALOGUE_INVALID']);
    const { json } = await get();
    const [known] = json.catalogue.connections;
    const second = await publish({ put_connection: { ...known, name: 'Renamed' } });
    const third = await publish({ undo_to: first });
    expect(third).toBe(second + 1);
    expect((await get()).json).toMatchObject({
      source: 'undo',
      catalogue: { connections: json.catalogue.connections },
    });
    await followed(third);
  });

  it('a change of an earlier version is refused and says which is in force; one that changes nothing is done', async () => {
    const version = await inForce();
    const { catalogue } = (await get()).json;
    const stale = { expected_version: version - 1, validate_only: false };
    const nothing = await patch({ catalogue, ...stale });
    expect(nothing.json).toMatchObject({ version: 0, faults: [], changes: [] });
    const refused = await patch({ remove_route: 77, ...stale });
    expect([refused.status, refused.json.code]).toEqual([409, 'VERSION_CHANGED']);
    expect(refused.json.detail).toContain(`version ${version} is in force, published by operator-`);
    expect(await inForce()).toBe(version);
  });

  it('a connection without the secret that verifies its notifications gives a warning', async () => {
    const { version, catalogue } = (await get()).json;
    const at = catalogue.connections.length - 1;
    const check = (secrets_from_environment: object) =>
      patch({
        put_connection: { ...catalogue.connections[at], secrets_from_environment },
        expected_version: version,
        validate_only: true,
      });
    const secrets = catalogue.connections[at].secrets_from_environment;
    expect((await check(secrets)).json.faults).toEqual([]);
    const { notification_secret: _secret, ...unverified } = secrets;
    const known = (await check(unverified)).json;
    expect(known.faults).toMatchObject([
      { path: `connections[${at}]`, severity: 'WARNING', message: expect.stringMatching(/ gets no notif/) },
    ]);
  });

  it('of two publishers at once, one wins', async () => {
    const expected_version = await inForce();
    const answers = await Promise.all(
      [one, two].map((server, i) =>
        patch(
          {
            put_payment_method_type: { type: `RACE_${i}`, category: 'CARD', workflows: ['DIRECT'] },
            expected_version,
          },
          OPERATOR,
          server,
        ),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(await inForce()).toBe(expected_version + 1);
  });

  it('all faults of a text are returned with their places, or refuse it', async () => {
    const yaml =
      "routes:\n  - id: 1\n    condition: country == 'XX'\n    targets: [{ connection: nowhere }]\n";
    const expected_version = await inForce();
    const { status, json } = await patch({ yaml, expected_version, validate_only: true }, READER);
    expect(status).toBe(200);
    expect(json.faults.map((each: Record<string, unknown>) => [each.path, each.line, each.severity])).toEqual(
      [
        ['routes[0].condition', 3, 'ERROR'],
        ['routes[0].targets[0].connection', 4, 'ERROR'],
      ],
    );
    const refused = await patch({ yaml, expected_version });
    expect([refused.status, refused.json.code, refused.json.errors.length]).toEqual([
      400,
      'CATALOGUE_INVALID',
      2,
    ]);
  });

  it('a read key may read and validate, and publishes nothing', async () => {
    const expected_version = await inForce();
    expect((await get('', READER)).status).toBe(200);
    expect((await get('/versions', READER)).json.versions[0].version).toBe(expected_version);
    const validated = { remove_route: 2, expected_version, validate_only: true, dry_run_payments: 10 };
    expect((await patch(validated, READER)).json).toMatchObject({
      version: 0,
      changes: [{ path: 'routes[2]', kind: 'REMOVED' }],
      dry_run: { approximate: 0 },
    });
    const refused = await patch({ remove_route: 2, expected_version }, READER);
    expect([refused.status, refused.json.code]).toEqual([403, 'AUTHORIZATION_REQUIRED']);
    expect((await get('', { 'operator-key': 'guess' })).status).toBe(401);
    expect((await call('/v1/connections', { headers: READER })).status).toBe(200);
    expect(await inForce()).toBe(expected_version);
  });

  it.each<[what: string, change: (known: Record<string, unknown>) => object, status: number, code: string]>([
    ['no change', () => ({}), 400, 'INVALID_PARAMETERS'],
    ['no expected version', () => ({ remove_route: 2, expected_version: 0 }), 400, 'INVALID_PARAMETERS'],
    ['an unknown route', () => ({ remove_route: 999 }), 400, 'INVALID_PARAMETERS'],
    ['an unknown version', () => ({ undo_to: 999 }), 400, 'INVALID_PARAMETERS'],
    [
      'a dry run of too many',
      () => ({ remove_route: 2, dry_run_payments: 10_001 }),
      400,
      'INVALID_PARAMETERS',
    ],
    [
      'the removal of a connection that takes payments',
      () => ({ remove_connection: 'guarded-one' }),
      400,
      'CATALOGUE_INVALID',
    ],
    [
      'a secret of the environment',
      (known) => ({ put_connection: { ...known, secrets_from_environment: { api_key: 'VAULT_KEYS' } } }),
      400,
      'INVALID_PARAMETERS',
    ],
    [
      'a new connection with a secret that another one has',
      (known) => ({ put_connection: { ...known, id: 'another' } }),
      400,
      'INVALID_PARAMETERS',
    ],
    ...[
      'http://169.254.169.254/',
      'https://evil.example/',
      '$SANDBOX_URL@evil.example/',
      ' HTTPS://evil.example',
    ].map((base_url): [string, (known: Record<string, unknown>) => object, number, string] => [
      `the address ${base_url}`,
      (known) => ({ put_connection: { ...known, settings: { ...(known.settings as object), base_url } } }),
      400,
      'INVALID_PARAMETERS',
    ]),
  ])('%s is refused, and publishes nothing', async (_what, change, status, code) => {
    const { version, catalogue } = (await get()).json;
    const refused = await patch({ expected_version: version, ...change(catalogue.connections[0]) });
    expect([refused.status, refused.json.code], JSON.stringify(refused.json)).toEqual([status, code]);
    expect(await inForce()).toBe(version);
  });

  it('a connection is removed only once it is retired and nothing is open there', async () => {
    const id = 'guarded-one';
    const withoutIt = async () => {
      const { version, catalogue } = (await get()).json;
      const connections = catalogue.connections.filter((each: { id: string }) => each.id !== id);
      const routes = catalogue.routes.filter((each: object) => !JSON.stringify(each).includes(id));
      return { catalogue: { ...catalogue, connections, routes }, expected_version: version };
    };
    const inUse = await patch(await withoutIt());
    expect([inUse.status, inUse.json.code]).toEqual([409, 'CONNECTION_IN_USE']);
    await publish({ retire_connection: id });
    await tables.query(
      `UPDATE transaction SET connection_id = '${id}', check_at = now() + interval '1 hour' WHERE connection_id = 'sandbox-one'`,
    );
    const owes = await patch(await withoutIt());
    expect(owes.json).toMatchObject({ code: 'CONNECTION_IN_USE' });
    expect(owes.json.detail).toMatch(/^connection guarded-one has 1 transactions to be checked/);
    await tables.query(`UPDATE transaction SET check_at = NULL WHERE connection_id = '${id}'`);
    const young = await patch(await withoutIt());
    expect(young.json.detail).toMatch(
      /^connection guarded-one has payments; .* until \d{4}-\S+Z for refunds$/,
    );
    await tables.query(`UPDATE retired_connection SET retired_at = now() - interval '181 days'`);
    expect((await patch(await withoutIt())).status).toBe(200);
  });

  it('a connection of the mounted sandbox can be removed at once, although a wallet is enrolled there', async () => {
    const { version, catalogue } = (await get()).json;
    const isKept = (each: object) => !JSON.stringify(each).includes('sandbox-one');
    const own = {
      ...catalogue,
      connections: catalogue.connections.filter(isKept),
      routes: catalogue.routes.filter(isKept),
    };
    const request = { catalogue: own, expected_version: version, validate_only: true };
    expect((await patch(request)).json).toMatchObject({ version: 0, faults: [] });
  });

  it('a member that the catalogue does not have is refused with its path, and publishes nothing', async () => {
    const { version, catalogue } = (await get()).json;
    const [first, ...others] = catalogue.connections;
    for (const [change, field] of [
      [{ catalogue: { ...catalogue, rotues: [] } }, 'catalogue.rotues'],
      [
        { catalogue: { ...catalogue, connections: [{ ...first, acount_ids: ['x'] }, ...others] } },
        'catalogue.connections[0].acount_ids',
      ],
      [{ put_connection: { ...first, circuit_breaker: { of: true } } }, 'put_connection.circuit_breaker.of'],
      [{ remove_route: 2, validateonly: true }, 'validateonly'],
    ] as const) {
      const refused = await patch({ ...change, expected_version: version });
      expect([refused.status, refused.json.errors]).toEqual([
        400,
        [{ field, code: 'NOT_ALLOWED', message: 'is not a known field' }],
      ]);
    }
    expect(await inForce()).toBe(version);
  });

  it.each(RPCS)('over %s, the calls return what they return over REST', async (protocol) => {
    const { transports, close } = rpcTransports(one.url);
    const client = createClient(ConfigurationService, transports[protocol]);
    const headers = OPERATOR;
    const same = jsonEncoder(GetCatalogueResponseSchema);
    const version = await inForce();
    const ofRest = (await get(`?version=${version}`)).json;
    expect(JSON.parse(same(await client.getCatalogue({ version }, { headers })))).toEqual(ofRest);
    const listed = await client.listCatalogueVersions({ pageSize: 2 }, { headers });
    expect(JSON.parse(jsonEncoder(ListCatalogueVersionsResponseSchema)(listed))).toEqual(
      (await get('/versions?page_size=2')).json,
    );
    const forms = await client.listConnectors({}, { headers: READER });
    expect(JSON.parse(jsonEncoder(ListConnectorsResponseSchema)(forms))).toEqual(
      (await call('/v1/connectors', { headers: READER })).json,
    );
    expect(forms.connectors.map(({ name }) => name)).toContain('stripe');
    const change = { case: 'removeRoute', value: 2 } as const;
    const request = create(UpdateCatalogueRequestSchema, {
      change,
      expectedVersion: version,
      validateOnly: true,
    });
    expect((await client.updateCatalogue(request, { headers })).changes).toMatchObject([
      { path: 'routes[2]' },
    ]);
    await expect(client.updateCatalogue({ ...request, expectedVersion: 1 }, { headers })).rejects.toThrow(
      /version \d+ is in force/,
    );
    close();
  });

  it('a large catalogue is accepted, one body at a time, up to 16 MiB', async () => {
    const { version, catalogue } = (await get()).json;
    const bins = Array.from({ length: 30_000 }, (_, i) => ({
      prefix: String(10_000_000 + i),
      issuer_name: 'Bank',
    }));
    const request = { catalogue: { ...catalogue, bins }, expected_version: version, validate_only: true };
    expect(JSON.stringify(request).length).toBeGreaterThan(1_000_000);
    expect((await patch(request)).json).toMatchObject({ version: 0, faults: [] });
    // The server has the head of this call, and waits for its body.
    const { hostname, port } = new URL(one.url);
    const waiting = httpRequest({
      ...{ hostname, port, path: '/v1/catalogue', method: 'PATCH' },
      headers: { ...OPERATOR, 'content-type': 'application/json', 'content-length': 1_000_000 },
    });
    waiting.on('error', () => {});
    waiting.write('{');
    const metrics = async () => (await fetch(`${one.url}/metrics`)).text();
    await vi.waitFor(async () => expect(await metrics()).toMatch(/^calls_receiving 1$/m), FOLLOWED);
    const second = await patch(request);
    expect([second.status, second.json.code]).toEqual([503, 'SERVICE_UNAVAILABLE']);
    expect((await patch({ remove_route: 2, expected_version: version, validate_only: true })).status).toBe(
      200,
    );
    waiting.destroy();
    await vi.waitFor(async () => expect((await patch(request)).status).toBe(200), FOLLOWED);
    const tooLarge = await patch({ yaml: '#'.repeat(16 * 1024 * 1024), expected_version: version });
    expect([tooLarge.status, tooLarge.json.code]).toEqual([413, 'REQUEST_TOO_LARGE']);
  });

  it('over the rpc protocols, a large catalogue is sent whole, and read one connection at a time', async () => {
    const version = await inForce();
    const { catalogue } = (await get()).json;
    const bins = Array.from({ length: 50_000 }, (_, i) => ({
      prefix: String(10_000_000 + i),
      issuer_name:
        'A bank with a name that is long enough to make this large, and then some more to be sure of it',
    }));
    const { transports, close } = rpcTransports(one.url);
    const headers = OPERATOR;
    const published = await publish({ catalogue: { ...catalogue, bins } });
    expect(published).toBe(version + 1);
    for (const protocol of RPCS) {
      const client = createClient(ConfigurationService, transports[protocol]);
      await expect(client.getCatalogue({}, { headers })).rejects.toThrow(/larger than 4 MiB/);
      const { catalogue: part } = await client.getCatalogue({ connectionId: 'sandbox-two' }, { headers });
      expect([part?.connections.map(({ id }) => id), part?.bins.length]).toEqual([['sandbox-two'], 0]);
    }
    const client = createClient(ConfigurationService, transports[RPCS[0] as (typeof RPCS)[number]]);
    const whole = fromJson(CatalogueSchema, (await get()).json.catalogue);
    const request = { change: { case: 'catalogue', value: whole }, expectedVersion: published } as const;
    for (const protocol of RPCS) {
      const sender = createClient(ConfigurationService, transports[protocol]);
      expect(await sender.updateCatalogue(request, { headers })).toMatchObject({ version: 0, faults: [] });
    }
    await expect(client.getCatalogue({ connectionId: 'nowhere' }, { headers })).rejects.toThrow(
      /connection_id/,
    );
    close();
    await publish({ undo_to: version });
  });

  it('a version that a replica cannot run leaves its version in force, and the replica says why', async () => {
    const before = await inForce();
    await followed(before);
    await tables.query(`
      INSERT INTO catalogue_version (version, format, catalogue, schema, hash, source, replaced, actor, comment)
      SELECT version + 1, 1000, catalogue, schema, hash, source, version, actor, '' FROM catalogue_version
      WHERE version = ${before}`);
    await tables.query('UPDATE catalogue_head SET version = version + 1');
    await vi.waitFor(async () => {
      const { version, replicas } = (await get()).json;
      expect(version).toBe(before);
      expect(replicas).toMatchObject(
        ['one', 'two'].map((replica) => ({
          ...{ replica, version: before },
          fault: `version ${before + 1} of the catalogue has format 1000, which needs a later release`,
        })),
      );
    }, FOLLOWED);
    const refused = await patch({ remove_route: 2, expected_version: before });
    expect([refused.status, refused.json.code]).toEqual([400, 'NOT_SUPPORTED']);
    await pay(one);
    // A process cannot start with it either, nor replace it by its own seed.
    const starting = () =>
      startTestServer({ databaseUrl: one.databaseUrl, replica: 'three', keys: one.keys });
    await expect(starting()).rejects.toThrow(/has format 1000, which needs a later release$/);
    await tables.query(`UPDATE catalogue_version SET source = 'seed' WHERE version = ${before + 1}`);
    await expect(starting()).rejects.toThrow(/has format 1000, which needs a later release$/);
  });
});

it('with a file, changes are validated and not published', async () => {
  const own = await startTestServer({ config: { catalogueFile: 'catalogue.yaml' } });
  expect((await get('', OPERATOR, own)).json).toMatchObject({
    version: 0,
    source: 'FILE',
    published_at: null,
  });
  const change = { remove_route: 2 };
  const refused = await patch(change, OPERATOR, own);
  expect([refused.status, refused.json.code]).toEqual([409, 'CONFIGURED_BY_FILE']);
  const { status, json } = await patch({ ...change, validate_only: true }, OPERATOR, own);
  expect([status, json.changes.length]).toEqual([200, 1]);
  await own.close();
});
