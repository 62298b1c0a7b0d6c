import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OpenedCatalogue } from '#src/catalogue/open-catalogue.ts';
import { parseCatalogue } from '#src/catalogue/read-catalogue.ts';
import { openHere } from '#src/commands/open-here.ts';
import { readConfig } from '#src/config.ts';
import { findWay } from '#src/payments/route/choose-route.ts';
import { asRecorded } from '#src/payments/route/recorded-payment.ts';
import { routingCatalogue } from '#src/payments/route/routing-catalogue.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import type { Database } from '#src/store/engine/database.ts';
import { listRecordedPayments, type StoredRoute } from '#src/store/tables/recorded-payments.ts';
import { createTestDatabase, openTestDatabase } from '../support/database.ts';
import {
  ACCOUNT_TWO,
  cardPayment,
  headersOne,
  headersTwo,
  type RequestJson,
  VAULTED_CARD,
  withField,
} from '../support/payment-requests.ts';
import { loadScenarios } from '../support/scenario.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { openTables, type Tables } from '../support/tables.ts';

/** Routes that need every kind of fact, before those of the sandbox. */
const ROUTES = `
routes:
  - { id: 101, condition: has_airline, targets: [{ connection: sandbox-two }] }
  - { id: 102, condition: "vaulted && category == 'CARD'", targets: [{ connection: guarded-two }] }
  - { id: 103, condition: "category == 'CARD' && !capture", targets: [{ connection: guarded-one }] }
  - { id: 104, condition: installments > 1, targets: [{ connection: sandbox-two }] }
  - { id: 105, condition: "issuer_country == 'CL' && iin == '40518856' && merchant_reference == 'chile'", targets: [{ connection: sandbox-two }] }
  - { id: 106, condition: "workflow == 'REDIRECT' && has_order", targets: [{ connection: sandbox-two }] }
  - id: 107
    condition: "merchant_reference == 'by-account'"
    targets: [{ connection: sandbox-one }]
    accounts: [{ account_ids: [${ACCOUNT_TWO}], targets: [{ connection: sandbox-two }] }]
`;
const TEXT = readFileSync(join(import.meta.dirname, '../../config/sandbox-catalogue.yaml'), 'utf8').replace(
  '\nroutes:\n',
  ROUTES,
);

let server: TestServer;
let database: Database;
let tables: Tables;
let drop: () => Promise<void>;
let opened: OpenedCatalogue;
/** Every payment, in order. */
// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of a record.
const paid: any[] = [];

beforeAll(async () => {
  const own = await createTestDatabase();
  drop = own.drop;
  database = openTestDatabase(own.url, 2);
  tables = await openTables(own.url);
  server = await startTestServer({ databaseUrl: own.url, catalogue: TEXT });
  opened = openHere(
    { ...readConfig({}), hashKey: new Uint8Array(32) },
    {
      catalogue: parseCatalogue(TEXT, 'catalogue'),
      version: 1,
    },
  );
  for (const { request, keys } of loadScenarios()) await pay(JSON.parse(request), keys);
  const split = (n: number) => withField(cardPayment(), 'merchant_reference', `split-${n}`);
  for (let n = 0; n < 20; n++) await pay(split(n));
  await pay(withField(cardPayment('4051885600446623'), 'merchant_reference', 'chile'));
  // Acquirer one declines it softly, and the route fails over.
  const inMexico = { country: 'MX', amount: { currency: 'MXN', value: 100 } };
  await pay({ ...cardPayment('4000000000006009'), ...inMexico });
  await pay({ ...cardPayment(), country: 'BR', amount: { currency: 'BRL', value: 30 } });
  const stored = withField(cardPayment(), 'payment_method', { type: 'CARD', vaulted_token: VAULTED_CARD });
  await pay(stored);
  await pay(withField(cardPayment(), 'merchant_reference', 'by-account'));
  const ofTwo = { ...withField(cardPayment(), 'merchant_reference', 'by-account'), account_id: ACCOUNT_TWO };
  await pay(ofTwo, headersTwo());
}, 60_000);

afterAll(async () => {
  await opened?.close();
  await server?.close();
  await database?.close();
  await tables?.close();
  await drop?.();
});

async function pay(
  request: RequestJson,
  keys: Readonly<Record<string, string>> = headersOne(),
): Promise<void> {
  const headers = { 'content-type': 'application/json', 'x-idempotency-key': randomUUID(), ...keys };
  const init = { method: 'POST', headers, body: JSON.stringify(request) };
  const response = await fetch(`${server.url}/v1/payments`, init);
  const json = await response.json();
  expect(response.status, JSON.stringify(json)).toBe(201);
  paid.push(json);
}

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the answer.
async function patch(change: object, status = 200): Promise<any> {
  const headers = { 'content-type': 'application/json', 'operator-key': 'op_sandbox' };
  const init = { method: 'PATCH', headers, body: JSON.stringify(change) };
  const response = await fetch(`${server.url}/v1/catalogue`, init);
  const json = await response.json();
  expect(response.status, JSON.stringify(json)).toBe(status);
  return json;
}

// biome-ignore lint/suspicious/noExplicitAny: as above.
async function tryOut(change: object, options: object = {}): Promise<any> {
  const shown = await fetch(`${server.url}/v1/catalogue`, { headers: { 'operator-key': 'op_sandbox' } });
  const { version } = (await shown.json()) as { version: number };
  const dry = { dry_run_payments: 10_000, validate_only: true, expected_version: version, ...options };
  return (await patch({ ...change, ...dry })).dry_run;
}

/** Returns the payments of a route, which took their first attempt to a connection. */
const byRoute = (id: number, connection: string) =>
  paid.filter(
    ({ routing_rules, transactions_history: [first] }) =>
      routing_rules.condition.id === id && first.connection_data.id === connection,
  );

const sumOf = (payments: typeof paid, currency: string) =>
  payments
    .filter(({ amount }) => amount.currency === currency)
    .reduce((sum, { amount }) => sum + Math.round(amount.value * 100), 0) / 100;

it('every stored payment takes the route and the connection that it took when it was made', async () => {
  const payments: StoredRoute[] = [];
  let next: string | undefined;
  do {
    const page = await listRecordedPayments(database, { accountId: undefined, since: undefined }, next);
    payments.push(...page.payments);
    next = page.next;
  } while (next !== undefined);
  expect(payments.map(({ id }) => id)).toEqual(paid.map(({ id }) => id).reverse());
  const catalogue = routingCatalogue(opened.catalogue, opened.connections);
  const again = payments.map((stored) => {
    const payment = decodeRecord(stored.record);
    const way = findWay(catalogue, asRecorded({ ...stored, payment }, opened.connections)(catalogue));
    return [payment.merchantOrderId, way?.route.id, way?.targets[0]?.id];
  });
  const made = paid.map(({ merchant_order_id, routing_rules, transactions_history: [first] }) => [
    ...[merchant_order_id, routing_rules.condition.id, first.connection_data.id],
  ]);
  expect(again).toEqual(made.reverse());
  const routes = new Set(made.map(([, route]) => route));
  expect(routes).toEqual(new Set([101, 102, 103, 104, 105, 106, 107, 4, 1, 5, 2, 6, 7, 3]));
  expect(new Set(byRoute(4, 'guarded-two')).size).toBeGreaterThan(0);
  expect(paid.some(({ transactions_history }) => transactions_history.length > 1)).toBe(true);
});

describe('a dry run', () => {
  it('of the version in force against itself moves nothing', async () => {
    const nothing = { moved: [], refused_now: [], taken_now: [] };
    const counts = { examined: paid.length, unchanged: paid.length, approximate: 0 };
    expect(await tryOut({ yaml: TEXT })).toEqual({ ...counts, ...nothing });
    const renamed = TEXT.replace('name: Cards elsewhere', 'name: Others');
    expect(await tryOut({ yaml: renamed })).toEqual({ ...counts, ...nothing });
  });

  it('of a changed route moves exactly its payments, with their sums, and samples of the newest', async () => {
    const targets = [{ connection: 'sandbox-two' }, { connection: 'sandbox-one' }];
    const route = { id: 2, condition: "category == 'CARD'", targets };
    const moving = byRoute(2, 'sandbox-one');
    const { moved, ...rest } = await tryOut({ put_route: { route } });
    expect(rest).toEqual({
      ...{ examined: paid.length, unchanged: paid.length - moving.length, approximate: 0 },
      ...{ refused_now: [], taken_now: [] },
    });
    const currencies = [...new Set(moving.toReversed().map(({ amount }) => amount.currency))];
    expect(moved).toEqual([
      {
        ...{ from: 'sandbox-one', to: 'sandbox-two', payments: moving.length },
        amounts: currencies.map((currency) => ({ currency, value: sumOf(moving, currency) })),
        samples: moving
          .map(({ id }) => id)
          .reverse()
          .slice(0, 5),
      },
    ]);
  });

  it('of other weights moves payments only towards the target that gained', async () => {
    const targets = [
      { connection: 'guarded-one', weight: 25 },
      { connection: 'guarded-two', weight: 75 },
    ];
    const condition = "category == 'CARD' && merchant_reference.startsWith('split-')";
    const { moved } = await tryOut({ put_route: { route: { id: 4, condition, targets, choice: 'SPLIT' } } });
    expect(moved).toMatchObject([{ from: 'guarded-one', to: 'guarded-two' }]);
    expect(moved[0].payments).toBeLessThan(byRoute(4, 'guarded-one').length);
  });

  it('counts as approximate what chooses by approval rate, and payments whose personal data was erased', async () => {
    const targets = [{ connection: 'guarded-one' }, { connection: 'guarded-two' }];
    const condition = "category == 'CARD' && merchant_reference.startsWith('split-')";
    const route = { id: 4, condition, targets, choice: 'SUCCESS_RATE' };
    expect((await tryOut({ put_route: { route } })).approximate).toBe(20);
    await tables.query('UPDATE payment SET personal_data_erased_at = now() WHERE id = $1', [paid[0].id]);
    expect((await tryOut({ yaml: TEXT })).approximate).toBe(1);
    await tables.query('UPDATE payment SET personal_data_erased_at = NULL');
  });

  it('examines the newest payments, of one account or since a time, as asked', async () => {
    expect((await tryOut({ yaml: TEXT }, { dry_run_payments: 3 })).examined).toBe(3);
    expect((await tryOut({ yaml: TEXT }, { account_id: ACCOUNT_TWO })).examined).toBe(
      paid.filter(({ account_id }) => account_id === ACCOUNT_TWO).length,
    );
    const since = paid.at(-4).created_at;
    const { examined } = await tryOut({ yaml: TEXT }, { since });
    expect(examined).toBe(4);
    const refused = await patch({ yaml: TEXT, account_id: 'mine', dry_run_payments: 1 }, 400);
    expect(refused.errors).toMatchObject([{ field: 'account_id' }]);
    const many = await patch({ yaml: TEXT, dry_run_payments: 10_001 }, 400);
    expect(many.errors).toMatchObject([{ field: 'dry_run_payments' }]);
  });

  it('counts payments that only one of the two catalogues takes', async () => {
    const [pix] = paid.filter(({ payment_method }) => payment_method.type === 'PIX');
    const without = { remove_payment_method_type: 'PIX' };
    const group = {
      payments: 1,
      amounts: [{ currency: 'BRL', value: pix.amount.value }],
      samples: [pix.id],
    };
    const refused = await tryOut(without);
    expect(refused).toMatchObject({ moved: [], taken_now: [] });
    expect(refused.refused_now).toEqual([{ ...group, from: 'sandbox-one', to: '' }]);
    await patch({ ...without, expected_version: 1, comment: 'a test' });
    const taken = await tryOut({ yaml: TEXT });
    expect(taken).toMatchObject({ moved: [], refused_now: [] });
    expect(taken.taken_now).toEqual([{ ...group, from: '', to: 'sandbox-one' }]);
  });

  it('follows the issuers that the changed catalogue knows', async () => {
    const { moved } = await tryOut({ yaml: TEXT.replaceAll('country_code: CL', 'country_code: AR') });
    expect(moved).toMatchObject([{ from: 'sandbox-two', to: 'sandbox-one', payments: 1 }]);
  });
});
