import { afterEach, beforeEach, expect, it } from 'vitest';
import { type ApiClients, apiClients } from './support/api-clients.ts';
import { sandboxCatalogue } from './support/catalogues.ts';
import { cardPayment, headersOne } from './support/payment-requests.ts';
import { startTestServer, type TestServer } from './support/server.ts';

const CONNECTION_REFUSED = '4000000000005001';
const RESET_AFTER_CHARGE = '4000000000002008';

// One connection with a circuit that opens at the third consecutive failure, and a fallback that never fails. The
// timeout allows for a busy machine.
const CATALOGUE = sandboxCatalogue(10_000)
  .replace('- { connection: guarded-one, weight: 75 }', '- { connection: guarded-one }')
  .replace('- { connection: guarded-two, weight: 25 }', '- { connection: sandbox-two }')
  .replace('choice: SPLIT', 'choice: PRIORITY');

const PAUSE_MS = 10_000;

/** The clock of the circuit breakers, which the test advances. */
let nowMs = 0;
let server: TestServer;
let clients: ApiClients;

beforeEach(async () => {
  server = await startTestServer({ catalogue: CATALOGUE, nowMs: () => nowMs });
  clients = apiClients(server.url);
});
afterEach(async () => {
  clients?.close();
  await server?.close();
});

async function pay(cardNumber?: string) {
  const request = { ...cardPayment(cardNumber), merchant_reference: 'split-1' };
  const { record } = await clients.create('rest', request, headersOne());
  const { status, transactions_history, routing_rules } = JSON.parse(record);
  const connections = transactions_history.map(
    (transaction: { connection_data: { id: string } }) => transaction.connection_data.id,
  );
  return { status, connections, routing: routing_rules };
}

async function circuit(): Promise<string | undefined> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  return /^connection_circuit\{connection="guarded-one",state="(\w+)"\} 1$/m.exec(metrics)?.[1];
}

it.each([
  ['cannot be reached', CONNECTION_REFUSED, 'ERROR', ['guarded-one', 'sandbox-two']],
  ['returns no outcome', RESET_AFTER_CHARGE, 'PENDING', ['guarded-one']],
])(
  'a connection that %s is skipped, probed after a pause, tried by one payment, and used again',
  async (_what, card, status, connections) => {
    for (let i = 0; i < 3; i++) expect(await pay(card)).toMatchObject({ status, connections });
    expect(await circuit()).toBe('OPEN');

    const meanwhile = await pay();
    expect(meanwhile).toMatchObject({ status: 'SUCCEEDED', connections: ['sandbox-two'] });
    expect(meanwhile.routing).toMatchObject({ smart_routing: true, monitors: true });

    nowMs += PAUSE_MS - 1;
    expect(await pay()).toMatchObject({ connections: ['sandbox-two'] });
    expect(await circuit()).toBe('OPEN');
    nowMs += 1;
    // The circuit changes without a payment.
    await expect.poll(circuit).toBe('HALF_OPEN');
    // The circuit is also half open during the probe; payments use the connection only after it has succeeded.
    const tried = { status: 'SUCCEEDED', connections: ['guarded-one'] };
    await expect.poll(() => pay()).toMatchObject(tried);
    expect(await circuit()).toBe('CLOSED');
  },
);

it('a connection that declines payments keeps its circuit closed', async () => {
  for (let i = 0; i < 4; i++) expect(await pay('4000000000009987')).toMatchObject({ status: 'DECLINED' });
  expect(await circuit()).toBe('CLOSED');
});

it('the log says once why the background probes of a connection with an open circuit fail', async () => {
  const settings = 'settings: *acquirer-one';
  const at = CATALOGUE.indexOf(settings, CATALOGUE.indexOf('- id: guarded-one'));
  const gone = "settings: { base_url: 'http://127.0.0.1:1', timeout_ms: 10000, acquirer: ONE }";
  await server.close();
  server = await startTestServer({
    catalogue: CATALOGUE.slice(0, at) + gone + CATALOGUE.slice(at + settings.length),
    nowMs: () => nowMs,
  });
  clients.close();
  clients = apiClients(server.url);
  for (let i = 0; i < 3; i++)
    expect(await pay()).toMatchObject({ connections: ['guarded-one', 'sandbox-two'] });
  const lines = (text: string) =>
    server.logLines
      .map((line) => JSON.parse(line))
      .filter(({ connection, msg }) => connection && msg.includes(text));
  for (let probes = 1; probes <= 3; probes++) {
    nowMs += PAUSE_MS * 2 ** (probes - 1);
    await expect.poll(() => lines('circuit changed').length).toBe(1 + 2 * probes);
  }
  expect(lines('probe')).toEqual([
    expect.objectContaining({
      connection: 'guarded-one',
      problem: expect.stringContaining('ECONNREFUSED'),
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    }),
  ]);
});
