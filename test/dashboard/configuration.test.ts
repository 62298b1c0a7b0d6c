import { create, toJsonString } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UpdateCatalogueRequestSchema } from '#gen/payments/v1/configuration_service_pb.js';
import { SANDBOX_OPERATOR_KEY, SANDBOX_OPERATOR_READ_KEY } from '#src/config.ts';
import {
  HOSTILE,
  type Merchant,
  merchantOne,
  type Operator,
  OWN_FORM,
  signIn,
} from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { startTestServer } from '../support/server.ts';

let operator: Operator;
let reader: Operator;
let merchant: Merchant;

/** The key of the sandbox. */
const KEY = 'a-key-of-the-sandbox-0815';

onService({ config: { environment: (name) => (name === 'SANDBOX_API_KEY' ? KEY : undefined) } });
beforeAll(async () => {
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  reader = await signIn(server, SANDBOX_OPERATOR_READ_KEY);
  merchant = merchantOne(server);
});

type Fields = Record<string, string>;

/** Reads the fields that a browser would submit from the form whose action ends with a path. */
function fieldsIn(text: string, action: string): Fields {
  const form = new RegExp(`<form[^>]*action="[^"]*${action}">([\\s\\S]*?)</form>`).exec(text)?.[1] ?? '';
  const inputs = [...form.matchAll(/<input([^>]*)>/g)].flatMap(([, attributes = '']) => {
    const name = / name="([^"]*)"/.exec(` ${attributes}`)?.[1];
    const isOff = attributes.includes('type="checkbox"') && !attributes.includes(' checked');
    return name && !isOff ? [[name, / value="([^"]*)"/.exec(attributes)?.[1] ?? '']] : [];
  });
  const areas = [...form.matchAll(/<textarea[^>]* name="([^"]*)"[^>]*>\n?([^<]*)</g)].map(([, n, v]) => [
    n,
    v,
  ]);
  const choices = [...form.matchAll(/<select[^>]* name="([^"]*)"[^>]*>([\s\S]*?)<\/select>/g)].map(
    ([, name, options = '']) => [
      name,
      (/<option value="([^"]*)" selected/.exec(options) ?? /<option value="([^"]*)"/.exec(options))?.[1] ??
        '',
    ],
  );
  const fields = Object.fromEntries([...inputs, ...areas, ...choices]) as Fields;
  for (const [name, value] of Object.entries(fields)) fields[name] = unescaped(value);
  return fields;
}

function unescaped(text: string): string {
  return text.replace(/&#(\d+);/g, (_all, code) => String.fromCharCode(Number(code)));
}

const textOf = async (path: string, by = operator) => (await by.get(path)).text();

/** Submits the form of a page with some fields changed. @returns the preview. */
async function preview(path: string, over: Fields, by = operator): Promise<string> {
  const action = path.replace(/\?.*/, '');
  const fields = fieldsIn(await textOf(path, by), action);
  const response = await by.post(action, { ...fields, ...over });
  expect(response.status).toBe(200);
  return response.text();
}

/** Publishes what a preview shows. @returns the response. */
function publish(text: string, over: Fields = {}, by = operator): Promise<Response> {
  return by.post('/catalogue/publish', { ...fieldsIn(text, '/catalogue/publish'), comment: 'why', ...over });
}

const versions = () =>
  tables.query('SELECT version, source, actor, comment FROM catalogue_version ORDER BY version');

const ROUTE = { name: 'Large', condition: 'amount > 1.0', before: '1', t0_connection: 'sandbox-two' };

describe('a route on the dashboard', () => {
  it('is previewed on stored payments, published with a comment, and undone', async () => {
    const paid = await merchant.pay();
    const text = await preview('/catalogue/route', ROUTE);
    expect(text).toContain('<code>routes[8]</code>');
    expect(text).toMatch(/Of the last \d+ payments, \d+ would go to another connection, 0 would be refused/);
    expect(text).toContain('sandbox-one to sandbox-two');
    expect(text).toContain(`<a href="/dashboard/payments/${paid.id}">`);
    const published = await publish(text);
    expect(published.headers.get('location')).toBe('/dashboard/catalogue?did=publish');
    expect((await versions()).at(-1)).toEqual({
      ...{ version: 2, source: 'dashboard', comment: 'why' },
      actor: expect.stringMatching(/^operator-[0-9a-f]{8} from 127\.0\.0\.1$/),
    });
    const [audited] = await tables.query(
      "SELECT detail FROM audit_log WHERE action = 'publish-catalogue' AND subject = '2'",
    );
    expect(audited).toEqual({ detail: 'dashboard: why' });
    expect(await textOf('/audit')).toContain('<a href="/dashboard/catalogue/versions/2">');
    expect(await textOf('/catalogue?did=publish')).toContain('Version 2 is published.');
    expect(await textOf('/catalogue/compare?from=1&to=2')).toContain('<code>routes[8]</code>');

    const fields = fieldsIn(await textOf('/catalogue/versions/1'), '/catalogue/preview');
    const undo = await (await operator.post('/catalogue/preview', fields)).text();
    expect(undo).toContain('Undo to version 1');
    await publish(undo);
    expect((await versions()).at(-1)).toMatchObject({ version: 3, source: 'undo' });
    expect(await textOf('/catalogue/compare?from=1&to=3')).toContain('Nothing changes.');
  });

  it('a form that is not changed changes nothing, for every route, connection and payment method type', async () => {
    const response = await fetch(`${server.url}/v1/catalogue`, {
      headers: { 'operator-key': SANDBOX_OPERATOR_KEY },
    });
    const { catalogue } = (await response.json()) as {
      catalogue: {
        routes: { id: number }[];
        connections: { id: string }[];
        payment_method_types: { type: string }[];
      };
    };
    const paths = [
      ...catalogue.routes.map(({ id }) => `/catalogue/route?id=${id}`),
      ...catalogue.connections.map(({ id }) => `/catalogue/connection?id=${id}`),
      ...catalogue.payment_method_types.map(({ type }) => `/catalogue/type?id=${type}`),
    ];
    expect(paths.length).toBeGreaterThan(10);
    for (const path of paths) {
      const text = await preview(path, {});
      expect([path, text.includes('There is nothing to publish.')]).toEqual([path, true]);
    }
  });

  it('targets are in the order of their places, with weights, failover and the targets of accounts', async () => {
    const account = 'a9e4c1de-0000-4000-8000-000000000001';
    const text = await preview('/catalogue/route', {
      ...ROUTE,
      ...{ t0_place: '2', t0_weight: '30', t1_place: '1', t1_connection: 'sandbox-one', t1_weight: '70' },
      ...{ choice: 'SPLIT', attempts: '1', soft: 'on' },
      ...{ g0_accounts: account, g0_t0_connection: 'guarded-one' },
    });
    expect(JSON.parse(fieldsIn(text, '/catalogue/publish').change ?? '')).toEqual({
      putRoute: {
        before: 1,
        route: {
          ...{ id: expect.any(Number), name: 'Large', condition: 'amount > 1.0', choice: 'SPLIT' },
          targets: [
            { connection: 'sandbox-one', weight: 70 },
            { connection: 'sandbox-two', weight: 30 },
          ],
          failover: { maxAttempts: 1, softDeclines: true },
          accounts: [{ accountIds: [account], targets: [{ connection: 'guarded-one' }] }],
        },
      },
    });
  });

  it('the position of a fault in its condition is shown, and the route cannot be published', async () => {
    const text = await preview('/catalogue/route', {
      ...ROUTE,
      condition: "currency == 'USD' &&\r\n  amont > 1.0",
    });
    expect(unescaped(text)).toContain("currency == 'USD' &&\n  amont > 1.0\n  ^ line 2, column 3");
    expect(text).toContain('Mend the faults first.');
    expect(text).not.toContain('<button>Publish</button>');
  });

  it('a number that is none is refused with the form as it was filled in', async () => {
    const fields = fieldsIn(await textOf('/catalogue/route'), '/catalogue/route');
    const response = await operator.post('/catalogue/route', { ...fields, ...ROUTE, t0_weight: 'much' });
    const text = await response.text();
    expect([response.status, text.includes('weight of target 1: must be a whole number')]).toEqual([
      400,
      true,
    ]);
    expect(text).toContain('value="much"');
  });
});

describe('a connection on the dashboard', () => {
  it('its settings, limits and accounts are changed, and everything else stays', async () => {
    const account = 'a9e4c1de-0000-4000-8000-000000000001';
    const text = await preview('/catalogue/connection?id=guarded-one', {
      ...{ name: 'Renamed', s_timeout_ms: '9000', s_acquirer: '', s_methods: 'PIX: PIX\r\nCASH : BOLETO' },
      ...{ accounts: account, maxInFlight: '50', failurePercent: '', fees: 'USD: 2.9%' },
    });
    const { putConnection } = JSON.parse(fieldsIn(text, '/catalogue/publish').change ?? '');
    expect(putConnection).toEqual({
      ...{ id: 'guarded-one', name: 'Renamed', providerId: 'SANDBOX_ONE', connector: 'sandbox' },
      settings: { base_url: '$SANDBOX_URL', timeout_ms: 9000, methods: { PIX: 'PIX', CASH: 'BOLETO' } },
      secretsFromEnvironment: {
        api_key: 'SANDBOX_API_KEY',
        notification_secret: 'SANDBOX_NOTIFICATION_SECRET',
      },
      circuitBreaker: { minCalls: 3, windowS: 30, openS: 10 },
      ...{ maxInFlight: 50, accountIds: [account], agreedFees: [{ currency: 'USD', percent: '2.9' }] },
    });
  });

  it('its agreed fees are entered in lines, shown in words, and refused by the field at fault', async () => {
    const path = '/catalogue/connection?id=guarded-one';
    const fees = 'USD :2.9 %+0.30\r\n\r\nUSD PIX:  0.99%\r\nEUR: 0.25 within 0.05';
    const text = await preview(path, { fees });
    const { putConnection } = JSON.parse(fieldsIn(text, '/catalogue/publish').change ?? '');
    expect(putConnection.agreedFees).toEqual([
      { currency: 'USD', percent: '2.9', fixed: '0.30' },
      { currency: 'USD', paymentMethodType: 'PIX', percent: '0.99' },
      { currency: 'EUR', fixed: '0.25', tolerance: '0.05' },
    ]);
    expect(text).toContain('<code>connections[guarded-one].agreed_fees</code>');
    expect(text.replaceAll('&#43;', '+')).toContain(
      'USD: 2.9% + 0.30\nUSD PIX: 0.99%\nEUR: 0.25, within 0.05',
    );
    expect(await preview(path, { fees: 'USD: 2.9% + 0.301' })).toContain('.agreed_fees[0].fixed</code>');
    const fields = fieldsIn(await textOf(path), '/catalogue/connection');
    for (const wrong of ['USD 2.9', 'USD:', 'USD: -1%', 'USD: 2,9%', '2.9%', 'USD: 1% + 1 + 1']) {
      const response = await operator.post('/catalogue/connection', { ...fields, fees: wrong });
      const page = await response.text();
      expect([wrong, response.status, page.includes('Agreed fees: must have lines as USD: 2.9%')]).toEqual([
        wrong,
        400,
        true,
      ]);
    }
  });

  it('the credentials are tested with what was entered, and no page or log shows them', async () => {
    const fields = fieldsIn(await textOf('/catalogue/connection?id=guarded-one'), '/catalogue/connection');
    const secret = 'a-canary-of-a-secret-4711';
    const tested = async (over: Fields, by = operator) => {
      const response = await by.post('/catalogue/connection', { ...fields, do: 'test', ...over });
      const text = await response.text();
      expect(text).not.toContain(secret);
      return [response.status, /badge \w+">(\w+)</.exec(text)?.[1]];
    };
    expect(await tested({})).toEqual([200, 'ACCEPTED']);
    expect(await tested({ secret_api_key: secret })).toEqual([200, 'REFUSED']);
    expect((await tested({ secret_api_key: secret, s_base_url: 'http://169.254.169.254' }))[0]).toBe(400);
    expect((await tested({ secret_api_key: secret }, reader))[0]).toBe(403);
    const shown = await preview('/catalogue/connection?id=guarded-one', { secret_api_key: secret });
    expect(shown).not.toContain(secret);
    expect(server.logLines.join('\n')).not.toContain(secret);
  });

  it('a new one is refused without its secret, and with the id of another', async () => {
    const path = '/catalogue/connection?connector=sandbox';
    const fields = fieldsIn(await textOf(path), '/catalogue/connection');
    const send = (id: string) =>
      operator.post('/catalogue/connection', { ...fields, id, s_base_url: '$SANDBOX_URL' });
    const refused = await send('sandbox-three');
    expect([refused.status, (await refused.text()).includes('the secret api_key is required')]).toEqual([
      400,
      true,
    ]);
    const twice = await send('sandbox-one');
    expect([twice.status, (await twice.text()).includes('another connection has this id')]).toEqual([
      400,
      true,
    ]);
  });

  it('a new one gets its secrets with its preview, is published, and rotates a secret that no page shows', async () => {
    const path = '/catalogue/connection?connector=sandbox';
    const filled = { id: 'prepared', s_base_url: '$SANDBOX_URL', do: 'store', secret_api_key: KEY };
    const previewed = await preview(path, filled);
    expect(previewed).toContain('Stored: api_key.');
    expect((await publish(previewed)).status).toBe(303);
    const [published] = await tables.query(
      'SELECT catalogue FROM catalogue_version ORDER BY version DESC LIMIT 1',
    );
    expect(Buffer.from(published?.catalogue as Buffer).toString('latin1')).toContain('prepared');

    const own = '/catalogue/connection?id=prepared';
    const fields = { ...fieldsIn(previewed, '/catalogue/connection'), editing: 'prepared', do: 'store' };
    const send = async (over: Fields, by = operator) => {
      const response = await by.post('/catalogue/connection', { ...fields, ...over });
      return [response.status, await response.text()] as const;
    };
    const signing = 'a-signing-secret-of-ours';
    expect(await send({ secret_notification_secret: signing })).toEqual([
      200,
      expect.stringContaining('Stored: notification_secret.'),
    ]);
    const [status, refused] = await send({ secret_api_key: 'wrong-key-4711' });
    expect([status, refused.includes('api_key: ')]).toEqual([409, true]);
    const [ignoredStatus, ignored] = await send({ secret_api_key: KEY, do: '' });
    expect([ignoredStatus, ignored.includes('were not stored')]).toEqual([200, true]);
    expect((await send({ secret_api_key: KEY }, reader))[0]).toBe(403);
    const [row] = await tables.query(
      "SELECT actor, detail FROM audit_log WHERE action = 'set-connection-secret' ORDER BY id DESC LIMIT 1",
    );
    expect(row?.actor).toMatch(/^operator-[0-9a-f]{8} from 127\.0\.0\.1$/);
    for (const text of [previewed, refused, ignored, await textOf(own), server.logLines.join('\n')]) {
      for (const secret of [KEY, signing, 'wrong-key-4711']) expect(text).not.toContain(secret);
    }
  });

  it('a stored secret is deleted by an operator, unless its connection needs it', async () => {
    const sent = { id: 'prepared', name: 'api_key' };
    expect((await operator.post('/catalogue/delete-secret', sent)).status).toBe(400);
    expect((await reader.post('/catalogue/delete-secret', sent)).status).toBe(403);
    const other = { id: 'prepared', name: 'notification_secret' };
    expect((await operator.post('/catalogue/delete-secret', other)).status).toBe(303);
    expect(await tables.query('SELECT name FROM connection_secret')).toEqual([{ name: 'api_key' }]);
  });

  it('is retired with a preview, and the preview of its removal says why it cannot be removed', async () => {
    const sent = async (name: string) => {
      const text = await textOf('/catalogue/connection?id=sandbox-two');
      const form = text.split('<form').find((one) => one.includes(`>${name}…</button>`)) ?? '';
      return (
        await operator.post('/catalogue/preview', fieldsIn(`<form${form}`, '/catalogue/preview'))
      ).text();
    };
    expect(await sent('Retire')).toContain('<code>connections[sandbox-two].retired</code>');
    expect(await sent('Remove')).toContain('is not the id of a connection');
  });
});

describe('a publication', () => {
  it('of a form that is older than the version in force is refused until its preview is seen again', async () => {
    const text = await preview('/catalogue/type', {
      type: 'WALLET_NEW',
      category: 'WALLET',
      REDIRECT: 'on',
      DIRECT: '',
    });
    const other = await preview('/catalogue/type?id=PIX', { countries: 'BR PT' });
    await publish(other);
    const refused = await publish(text);
    const again = await refused.text();
    expect([refused.status, again.includes('is in force, published by operator-')]).toEqual([409, true]);
    expect((await publish(again)).status).toBe(303);
    expect((await publish(again)).headers.get('location')).toBe('/dashboard/catalogue?did=nothing');
  });

  it('needs a comment', async () => {
    const text = await preview('/catalogue/type?id=PIX', { countries: 'BR' });
    const before = await versions();
    expect((await publish(text, { comment: ' ' })).status).toBe(400);
    expect(await versions()).toEqual(before);
  });

  it('a read-only key may preview, and is refused to publish, even with a change of its own', async () => {
    const before = await versions();
    const text = await preview('/catalogue/route', ROUTE, reader);
    expect(text).toContain('Your key is read-only: it may preview, not publish.');
    expect(text).not.toContain('<button>Publish</button>');
    const change = toJsonString(
      UpdateCatalogueRequestSchema,
      create(UpdateCatalogueRequestSchema, { change: { case: 'removeRoute', value: 3 } }),
    );
    const version = String(before.at(-1)?.version);
    const refused = await reader.post('/catalogue/publish', { change, version, comment: 'x' });
    expect(refused.status).toBe(403);
    expect(await versions()).toEqual(before);
  });

  it('is refused without the token of the form, from another site, and with a form that is too large', async () => {
    const before = await versions();
    const fields = fieldsIn(await preview('/catalogue/route', ROUTE), '/catalogue/publish');
    const sent = { ...fields, comment: 'x' };
    const large = 'x'.repeat(300 * 1024);
    const responses = await Promise.all([
      operator.post('/catalogue/publish', { ...sent, form_token: '' }),
      operator.post('/catalogue/publish', sent, { ...OWN_FORM, cookie: reader.cookie }),
      operator.post('/catalogue/publish', sent, { origin: 'https://evil.example' }),
      operator.post('/catalogue/publish', { ...sent, change: '{' }),
      operator.post('/catalogue/publish', { ...sent, change: '{"comment":"no change"}' }),
      operator.post('/catalogue/publish', { ...sent, change: large }),
      operator.post('/catalogue/route', { condition: large }),
    ]);
    expect(responses.map(({ status }) => status)).toEqual([403, 403, 403, 400, 400, 413, 413]);
    expect(await versions()).toEqual(before);
  });

  it('hostile values that were published are shown as text on every page', async () => {
    const text = await preview('/catalogue/route', {
      ...{ ...ROUTE, before: '1', name: HOSTILE, description: HOSTILE },
      condition: `merchant_reference == ${JSON.stringify(HOSTILE)}`,
    });
    const { id } = JSON.parse(fieldsIn(text, '/catalogue/publish').change ?? '').putRoute.route;
    expect((await publish(text, { comment: HOSTILE })).status).toBe(303);
    const version = (await versions()).at(-1)?.version;
    for (const path of [
      ...['/catalogue', '/catalogue/versions', `/catalogue/versions/${version}`, '/audit'],
      ...[`/catalogue/compare?from=1&to=${version}`, `/catalogue/route?id=${id}`],
    ]) {
      const shown = await textOf(path);
      expect([path, shown.includes('<img'), shown.includes('<script>')]).toEqual([path, false, false]);
      expect([path, unescaped(shown).includes('<img src=/pwned')]).toEqual([path, true]);
    }
  });

  it('hostile values are shown as text', async () => {
    const over = { ...ROUTE, name: HOSTILE, condition: HOSTILE, description: HOSTILE };
    for (const text of [
      await preview('/catalogue/route', { ...over, t0_connection: HOSTILE, choice: HOSTILE }),
      await preview('/catalogue/type', { type: HOSTILE, countries: HOSTILE, category: HOSTILE }),
    ]) {
      expect(text).not.toContain('<img');
      expect(text).not.toContain('<script>');
      expect(unescaped(text)).toContain(HOSTILE.slice(0, 20));
    }
  });
});

describe('a catalogue of a file', () => {
  let ofFile: Awaited<ReturnType<typeof startTestServer>>;
  afterAll(() => ofFile?.close());

  it('every page says so, a change is previewed, and nothing can be published', async () => {
    ofFile = await startTestServer({ config: { catalogueFile: 'config/sandbox-catalogue.yaml' } });
    const visitor = await signIn(ofFile, SANDBOX_OPERATOR_KEY);
    for (const path of [
      ...['/catalogue', '/catalogue/route', '/catalogue/type?id=CARD', '/catalogue/versions'],
      ...['/catalogue/connection', '/catalogue/connection?id=sandbox-one'],
      ...['/catalogue/versions/1', '/catalogue/compare?from=1&to=1'],
    ]) {
      expect([path, (await textOf(path, visitor)).includes('comes from the file')]).toEqual([path, true]);
    }
    const text = await preview('/catalogue/type?id=PIX', { countries: 'BR PT' }, visitor);
    expect(text).toContain('<code>payment_method_types[PIX].countries</code>');
    expect(text).toContain('Make this change there.');
    const change = '{"removeRoute":3}';
    const refused = await visitor.post('/catalogue/publish', { change, version: '0', comment: 'x' });
    expect([refused.status, (await refused.text()).includes('CATALOGUE_FILE')]).toEqual([409, true]);
  });
});

describe('a catalogue of a thousand', () => {
  let large: Awaited<ReturnType<typeof startTestServer>>;
  afterAll(() => large?.close());

  it('has pages of bounded size, and each of its connections and routes can be opened and previewed', async () => {
    const numbers = Array.from({ length: 1_000 }, (_, i) => i + 1);
    const catalogue = {
      payment_method_types: [{ type: 'CARD', category: 'CARD', workflows: ['DIRECT'] }],
      connections: numbers.map((n) => ({
        ...{ id: `one-${n}`, provider_id: 'ONE', connector: 'sandbox' },
        settings: { base_url: n === 1_000 ? 'http://127.0.0.1:1' : '$SANDBOX_URL' },
        secrets_from_environment: { api_key: 'SANDBOX_API_KEY' },
      })),
      routes: numbers.slice(0, 999).map((n) => ({
        ...{ id: n, condition: `merchant_reference == '${n}'`, targets: [{ connection: `one-${n}` }] },
      })),
    };
    large = await startTestServer({ catalogue: JSON.stringify(catalogue) });
    const visitor = await signIn(large, SANDBOX_OPERATOR_KEY);
    const overview = await textOf('/catalogue', visitor);
    expect(overview).toContain('The first 100 of 1000.');
    const texts = [
      overview,
      await preview('/catalogue/connection?id=one-999', { name: 'x' }, visitor),
      await preview('/catalogue/route?id=999', { t1_connection: 'one-3', before: '1' }, visitor),
    ];
    expect(texts[1]).toContain('<code>connections[one-999].name</code>');
    const change = '{"removeConnection":"one-1000"}';
    const removal = await visitor.post('/catalogue/preview', { change, version: '1' });
    expect([removal.status, await removal.text()]).toEqual([
      409,
      expect.stringContaining('connection one-1000 takes payments; nothing was published; retire it'),
    ]);
    expect(texts[2]).toContain('<code>routes[999].targets</code>');
    for (const text of texts) expect(text.length).toBeLessThan(1_000_000);
  });
});
