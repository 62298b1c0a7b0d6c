import { randomUUID } from 'node:crypto';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServerReflection } from '#gen/grpc/reflection/v1/reflection_pb.js';
import {
  ExplainRouteResponseSchema,
  ListConnectionsResponseSchema,
} from '#gen/payments/v1/operator_service_pb.js';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';
import { sandboxCatalogue } from '../support/catalogues.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { OPERATOR, type OperatorCalls, operatorCalls, requestMessage } from '../support/operator-calls.ts';
import {
  CARD_DATA,
  cardPayment,
  ENROLLED_WALLET,
  headersOne,
  walletPayment,
  withField,
} from '../support/payment-requests.ts';
import { RPCS } from '../support/rpc-transports.ts';
import { startTestServer } from '../support/server.ts';

const CARD = '4012888888881881';
const CODE = '9041';
/** Matches the code by itself, not as part of a number, a UUID or a time. */
const CODE_ALONE = new RegExp(`(?<![\\w.-])${CODE}(?![\\w.-])`);

let calls: OperatorCalls;

onService();
beforeAll(async () => {
  calls = operatorCalls(server.url);
});

afterAll(() => calls?.close());

const splitPayment = (reference: string, number = CARD) => ({
  ...cardPayment(number),
  merchant_reference: `split-${reference}`,
});

describe('ListConnections', () => {
  it('connections are listed in the order of the catalogue, with the state of their circuits', async () => {
    const { status, json } = await calls.list();
    expect(status).toBe(200);
    expect(json).toEqual({
      connections: [
        ['sandbox-one', 'Sandbox acquirer one', 'SANDBOX_ONE', 'UNGUARDED'],
        ['sandbox-two', 'Sandbox acquirer two', 'SANDBOX_TWO', 'UNGUARDED'],
        ['guarded-one', 'Sandbox acquirer one, guarded', 'SANDBOX_ONE', 'CLOSED'],
        ['guarded-two', 'Sandbox acquirer two, guarded', 'SANDBOX_TWO', 'CLOSED'],
      ].map(([id, name, provider_id, circuit]) => ({
        ...{ id, name, provider_id, connector: 'sandbox', circuit, available: true },
        ...{ retired: false, account_ids: [], open_outcomes: 0 },
        secrets: [
          ['api_key', 'ENVIRONMENT'],
          ['notification_secret', 'ENVIRONMENT'],
          ['previous_notification_secret', 'MISSING'],
        ].map(([name, source]) => ({ name, source, set_at: null, actor: '', previous_until: null })),
      })),
    });
  });

  it('a key that may only read lists connections, and explains nothing', async () => {
    const reader = { 'operator-key': 'op_sandbox_read' };
    expect((await calls.list(reader)).status).toBe(200);
    const refused = await calls.explain(cardPayment(), { headers: reader });
    expect([refused.status, refused.json.code]).toEqual([403, 'AUTHORIZATION_REQUIRED']);
  });

  it('the list shows retired connections, and the accounts that a connection is for', async () => {
    const account = '00000000-0000-4000-8000-000000000001';
    const own = await startTestServer({
      catalogue: sandboxCatalogue(10_000).replace(
        '- id: guarded-two',
        `- id: guarded-two\n    retired: true\n    account_ids: [${account}]`,
      ),
    });
    const ofOwn = operatorCalls(own.url);
    const { json } = await ofOwn.list();
    expect(json.connections.at(-1)).toMatchObject({
      ...{ id: 'guarded-two', retired: true, account_ids: [account] },
    });
    expect(json.connections[0]).toMatchObject({ id: 'sandbox-one', retired: false, account_ids: [] });
    ofOwn.close();
    await own.close();
  });

  it('the list counts the payments whose outcome is unknown', async () => {
    const { json } = await calls.pay(cardPayment(), headersOne());
    const change = (set: string) =>
      tables.query(`UPDATE transaction SET ${set} WHERE payment_id = '${json.id}'`);
    const openAt = async () =>
      (await calls.list()).json.connections.map((one: Record<string, unknown>) => one.open_outcomes);
    expect(await openAt()).toEqual([0, 0, 0, 0]);
    await change("status = 'PENDING', check_at = now() + interval '1 day'");
    expect(await openAt()).toEqual([1, 0, 0, 0]);
    await change("status = 'SUCCEEDED', check_at = NULL");
  });

  it('the list shows stored secrets, and until when a replaced one is accepted, without any value', async () => {
    const actor = 'operator-12345678 from 127.0.0.1';
    const store = (name: string, isPrevious: boolean, ends: string) =>
      tables.query(`
        INSERT INTO connection_secret (connection_id, name, id, sealed, actor, is_previous, ends_at)
        VALUES ('sandbox-two', '${name}', gen_random_uuid(), 'sealed-canary', '${actor}', ${isPrevious}, ${ends})`);
    await store('api_key', false, 'NULL');
    await store('api_key', true, "now() + interval '1 hour'");
    const listed = await calls.list();
    await tables.query('DELETE FROM connection_secret');
    const [, { secrets }] = listed.json.connections;
    expect(secrets[0]).toEqual({
      ...{ name: 'api_key', source: 'STORED', actor },
      set_at: expect.stringMatching(/Z$/),
      previous_until: expect.stringMatching(/Z$/),
    });
    expect(Date.parse(secrets[0].previous_until)).toBeGreaterThan(Date.now());
    expect(secrets[1]).toMatchObject({ name: 'notification_secret', source: 'ENVIRONMENT', actor: '' });
    expect(listed.text).not.toContain('canary');
  });

  it.each(RPCS)('the list of connections over %s is the same as over REST', async (protocol) => {
    const answer = await calls.rpcs[protocol].listConnections({}, { headers: OPERATOR });
    expect(jsonEncoder(ListConnectionsResponseSchema)(answer)).toBe((await calls.list()).text);
  });

  it('the list of connections and an explanation show open circuits', async () => {
    const own = await startTestServer();
    const ofOwn = operatorCalls(own.url);
    for (let i = 0; i < 3; i++) {
      const { json } = await ofOwn.pay(splitPayment('down', '4000000000005001'), headersOne());
      expect(json.status).toBe('ERROR');
    }
    const { json } = await ofOwn.list();
    const seen = json.connections.map(({ circuit, available }: Record<string, unknown>) => [
      circuit,
      available,
    ]);
    expect(seen).toEqual([
      ['UNGUARDED', true],
      ['UNGUARDED', true],
      ['OPEN', false],
      ['OPEN', false],
    ]);
    const explained = await ofOwn.explain(splitPayment('down'));
    const { targets } = explained.json;
    expect(targets.map(({ connection }: { connection: { circuit: string } }) => connection.circuit)).toEqual([
      'OPEN',
      'OPEN',
    ]);
    ofOwn.close();
    await own.close();
  });
});

describe('ExplainRoute', () => {
  it('an explanation contains the facts, the reason each earlier route was skipped, and the targets', async () => {
    const { status, json } = await calls.explain(cardPayment());
    expect(status).toBe(200);
    const { facts, routes, targets, ...rule } = json;
    expect(facts).toMatchObject({
      country: 'US',
      amount: 10,
      card_brand: 'VISA',
      iin: '40128888',
      capture: true,
    });
    expect(routes[0]).toEqual({
      ...{ id: 4, name: 'Split and guarded', taken: false },
      why_not: 'merchant_reference.startsWith("split-") does not hold (merchant_reference is "")',
    });
    expect(routes[1]).toEqual({
      ...{ id: 1, name: 'Cards in Brazil', taken: false },
      why_not: 'country == "BR" does not hold (country is "US")',
    });
    expect(routes.at(-1)).toEqual({ id: 2, name: 'Cards elsewhere', taken: true, why_not: '' });
    expect(targets).toEqual(
      ['sandbox-one', 'sandbox-two'].map((id) => ({
        connection: expect.objectContaining({ id, circuit: 'UNGUARDED', available: true }),
        ...{ weight: null, approval_rate: null },
      })),
    );
    expect(rule).toMatchObject({
      ...{ choice: 'PRIORITY', max_attempts: 2, smart_routing: false, monitors: false },
      ...{ account_override: false, notes: [] },
    });
  });

  it.each(RPCS)('an explanation over %s is the same as over REST', async (protocol) => {
    const answer = await calls.rpcs[protocol].explainRoute(
      { payment: requestMessage(splitPayment('1')), idempotencyKey: 'key' },
      { headers: OPERATOR },
    );
    const untimed = (text: string) => text.replace(/"time":"[^"]+"/, '');
    const { text, json } = await calls.explain(splitPayment('1'), { key: 'key' });
    expect(untimed(jsonEncoder(ExplainRouteResponseSchema)(answer))).toBe(untimed(text));
    expect(json).toMatchObject({ choice: 'SPLIT', smart_routing: true, monitors: true, soft_declines: true });
  });

  it('an explanation names the connection that a payment with the same key then uses', async () => {
    const taken = new Set();
    for (let i = 0; i < 12; i++) {
      const key = `operator-${i}`;
      const request = splitPayment(String(i));
      const { json: explained } = await calls.explain(request, { key });
      const { json: payment } = await calls.pay(request, headersOne(key));
      expect(payment.transactions.connection_data.id).toBe(explained.targets[0].connection.id);
      expect(payment.routing_rules).toMatchObject({
        condition: { id: explained.routes.at(-1).id },
        smart_routing: explained.smart_routing,
        monitors: explained.monitors,
      });
      taken.add(explained.targets[0].connection.id);
    }
    expect([...taken].sort()).toEqual(['guarded-one', 'guarded-two']);
  });

  it('an explanation and a payment with an enrolled wallet name the same connection, wherever it is in the route', async () => {
    const catalogue = sandboxCatalogue(10_000).replace(
      /(that is not a card\n {4}targets:\n)/,
      '$1      - connection: sandbox-two\n',
    );
    const own = await startTestServer({ catalogue });
    const ofOwn = operatorCalls(own.url);
    const wallet = {
      ...walletPayment(),
      ...{ country: 'MX', amount: { currency: 'MXN', value: 5 }, workflow: 'DIRECT' },
      payment_method: { type: 'WALLET_C_ENROLLMENT', vaulted_token: ENROLLED_WALLET },
    };
    const { json: explained } = await ofOwn.explain(wallet);
    expect(explained).toMatchObject({
      ...{ targets: [{ connection: { id: 'sandbox-one' } }], max_attempts: 1 },
      passed_over: [
        { connection: { id: 'sandbox-two' }, lacks: ['this wallet, which is enrolled elsewhere'] },
      ],
    });
    const { json: payment } = await ofOwn.pay(wallet, headersOne());
    expect(payment.transactions.connection_data.id).toBe('sandbox-one');

    const unknown = withField(wallet, 'payment_method.vaulted_token', randomUUID());
    for (const { json } of [await ofOwn.explain(unknown), await ofOwn.pay(unknown, headersOne())])
      expect(json.code).toBe('VAULTED_TOKEN_NOT_FOUND');
    ofOwn.close();
    await own.close();
  });

  it('an explanation sends nothing and writes nothing', async () => {
    const before = await tables.counts();
    const vaulting = withField(cardPayment(), 'payment_method.vault_on_success', true);
    for (let i = 0; i < 3; i++) expect((await calls.explain(vaulting)).status).toBe(200);
    expect(await tables.counts()).toEqual(before);
  });

  it('an explanation is refused with the same errors as a payment', async () => {
    const country = withField(cardPayment(), 'country', 'XX');
    for (const request of [
      country,
      withField(country, 'amount.value', 10.001),
      withField(cardPayment(), `${CARD_DATA}.number`, '4012888888881882'),
      withField(cardPayment(), 'amount', undefined),
      withField(cardPayment(), 'account_id', 7),
      withField(cardPayment(), 'payment_method.type', 'PIX'),
      withField(cardPayment(), 'workflow', 'REDIRECT'),
    ]) {
      const refused = await calls.pay(request, headersOne());
      const { status, json } = await calls.explain(request);
      expect([status, json.code]).toEqual([400, refused.json.code]);
      expect(json.errors).toEqual(
        refused.json.errors.map((error: { field: string }) => ({
          ...error,
          field: `payment.${error.field}`,
        })),
      );
    }
  });

  it('ExplainRoute requires a payment, and its idempotency key may be as long as CreatePayment’s', async () => {
    expect((await calls.explain(undefined)).json.errors).toMatchObject([
      { field: 'payment', code: 'REQUIRED' },
    ]);
    expect((await calls.explain(cardPayment(), { key: 'k'.repeat(256) })).json.errors).toMatchObject([
      { field: 'idempotency_key', code: 'TOO_LONG' },
    ]);
    expect((await calls.explain(cardPayment(), { key: 'k'.repeat(255) })).status).toBe(200);
  });

  it('an explanation is not available by GET, because the URL would contain the card', async () => {
    const rpc = (name: string) =>
      fetch(
        `${server.url}/payments.v1.OperatorService/${name}?connect=v1&encoding=json&message=${encodeURIComponent('{}')}`,
        { headers: OPERATOR },
      );
    expect((await rpc('ListConnections')).status).toBe(200);
    expect((await rpc('ExplainRoute')).status).toBe(405);
  });
});

it('reflection and health list OperatorService', async () => {
  const client = createClient(ServerReflection, createGrpcTransport({ baseUrl: server.url }));
  async function* question() {
    yield { messageRequest: { case: 'listServices', value: '' } } as const;
  }
  for await (const { messageResponse } of client.serverReflectionInfo(question())) {
    expect(messageResponse.value).toMatchObject({
      service: expect.arrayContaining([expect.objectContaining({ name: 'payments.v1.OperatorService' })]),
    });
  }
  const health = await fetch(`${server.url}/grpc.health.v1.Health/Check`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"service":"payments.v1.OperatorService"}',
  });
  expect(await health.json()).toEqual({ status: 'SERVING' });
});

it('operator calls neither return nor log card numbers or security codes', async () => {
  const request = withField(cardPayment(CARD), `${CARD_DATA}.security_code`, CODE);
  await calls.explain(request);
  for (const path of ['country', 'payment_method.type', 'amount.value', `${CARD_DATA}.expiration_month`]) {
    expect((await calls.explain(withField(request, path, CARD))).status).toBe(400);
  }
  await calls.explain(request, { headers: { 'operator-key': CARD } });
  const told = [...calls.answers, ...server.logLines].join('\n');
  expect(told).toContain('40128888');
  expect(told.replaceAll('\\"', '"')).not.toMatch(CODE_ALONE);
  for (const secret of [CARD, 'JORDAN']) {
    // A payment's record contains the holder's name.
    const where = secret === CARD ? told : server.logLines.join('\n');
    expect(where).not.toContain(secret);
  }
});
