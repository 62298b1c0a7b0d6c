import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { PaymentService } from '#gen/payments/v1/payment_service_pb.js';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { signIn } from '../support/dashboard.ts';
import { ACCOUNT_ONE, headersOne } from '../support/payment-requests.ts';
import { recordPrinted } from '../support/printed.ts';
import { rpcTransports } from '../support/rpc-transports.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { openTables, type Tables } from '../support/tables.ts';
import { startTraceCollector, type TraceCollector } from '../support/trace-collector.ts';

// Nobody pays with this address, so it may be nowhere after it has been searched for.
const CANARY = 'kanarienvogel.7391@canary.example';
const NUMBER = 'KANARIENVOGEL7391';
const SIGNS = /kanarienvogel|canary\.example/i;

let server: TestServer;
let tables: Tables;
let collector: TraceCollector;
let printed: readonly string[];
/** The URL and headers of every response, and the body of every refusal and of every page without its form. */
const seen: string[] = [];

let closing: Promise<void> | undefined;
/** Stops the service, which sends its remaining traces. */
function close(): Promise<void> | undefined {
  closing ??= server?.close();
  return closing;
}

beforeAll(async () => {
  printed = recordPrinted();
  collector = await startTraceCollector();
  server = await startTestServer({ config: { otlpEndpoint: collector.url } });
  tables = await openTables(server.databaseUrl);
});
afterAll(async () => {
  vi.restoreAllMocks();
  await close();
  collector?.close();
});

async function post(body: string, headers: Record<string, string> = headersOne()) {
  const response = await fetch(`${server.url}/v1/payments/search`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  });
  seen.push(response.url, JSON.stringify([...response.headers]), await response.text());
  return response.status;
}

it('a searched payer is in no response, URL, header, log, trace, metric or row, whatever happens to the search', async () => {
  const payer_document = { document_type: 'X', document_number: NUMBER };
  const statuses = [
    await post(JSON.stringify({ payer_email: CANARY, payer_document, country: 'US' })),
    await post(JSON.stringify({ payer_email: CANARY, page_token: 'AAAA' })),
    await post(
      JSON.stringify({ payer_email: `${CANARY} x@`, zone: CANARY, amount_from: CANARY, currency: 'USD' }),
    ),
    await post(JSON.stringify({ payer_document, status: CANARY })),
    await post(`{"payer_email": "${CANARY}`),
    await post(JSON.stringify({ payer_email: CANARY }), { 'public-api-key': 'pk_sandbox_one' }),
  ];
  expect(statuses).toEqual([200, 400, 400, 400, 400, 401]);
  const opened = rpcTransports(server.url);
  const connectGet = createConnectTransport({ baseUrl: server.url, httpVersion: '1.1', useHttpGet: true });
  for (const transport of [...Object.values(opened.transports), connectGet]) {
    const client = createClient(PaymentService, transport);
    const options = {
      headers: headersOne(),
      onHeader: (headers: Headers) => void seen.push(JSON.stringify([...headers])),
    };
    expect((await client.searchPayments({ payerEmail: CANARY }, options)).payments).toEqual([]);
    const refused = await client.searchPayments({ payerEmail: CANARY, zone: CANARY }, options).catch(String);
    seen.push(String(refused));
  }
  opened.close();
  const operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  for (const page of ['', 'AAAA']) {
    const form = { account: ACCOUNT_ONE, payer_email: CANARY, document_number: NUMBER, country: 'US', page };
    const response = await operator.post('/payments', form);
    // The page fills the form in again; nothing else may have it.
    const text = (await response.text()).replaceAll(/value="[^"]*"/g, '');
    seen.push(response.url, JSON.stringify([...response.headers]), text);
  }
  const ended = await fetch(`${server.url}/dashboard/payments`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams({ payer_email: CANARY }),
  });
  expect(ended.status).toBe(303);
  seen.push(JSON.stringify([...ended.headers]));
  // A failure of our own, in the middle of a search.
  await tables.query('ALTER TABLE payment RENAME COLUMN payer_email_hash TO renamed');
  const failed = await post(JSON.stringify({ payer_email: CANARY }));
  await tables.query('ALTER TABLE payment RENAME COLUMN renamed TO payer_email_hash');
  expect(failed).toBe(500);

  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const rows = JSON.stringify(await dump());
  await tables.close();
  await close();
  expect(server.logLines.join('\n')).toContain('42703');
  const traces = collector.received.map(({ body }) => body);
  expect(traces.join('\n')).toContain('SearchPayments');
  expect(metrics).toContain('SearchPayments');
  expect(rows).toContain('search-payer');
  const found = { seen, printed, log: server.logLines, traces, metrics: [metrics], rows: [rows] };
  for (const [where, texts] of Object.entries(found)) {
    expect(
      texts.filter((text) => SIGNS.test(text) || SIGNS.test(decodeURIComponent(text.replaceAll('%', '%25')))),
      where,
    ).toEqual([]);
  }
});

/** Returns the rows of every table. */
async function dump() {
  const names = await tables.query(
    "SELECT table_schema || '.' || quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema')",
  );
  const rows = [];
  for (const { name } of names) rows.push(await tables.query(`SELECT t::text FROM ${name} t`));
  return rows;
}
