import { randomInt, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { passesLuhn } from '#src/luhn.ts';
import { type ApiClients, apiClients, PROTOCOLS, type Reply } from './support/api-clients.ts';
import { sandboxCatalogue } from './support/catalogues.ts';
import {
  ACCOUNT_TWO,
  CARD_DATA,
  cardPayment,
  headersOne,
  type RequestJson,
  withField,
} from './support/payment-requests.ts';
import { recordPrinted } from './support/printed.ts';
import { startTestServer, type TestServer } from './support/server.ts';
import { openTables, type Tables } from './support/tables.ts';
import { startTraceCollector, type TraceCollector } from './support/trace-collector.ts';
import { type Receiver, startReceiver } from './webhooks/receiver.ts';

/** Returns a number unlikely to occur elsewhere. The sandbox approves it; the cards in MAGIC have other outcomes. */
function randomCard(): string {
  const head = `4${Array.from({ length: 14 }, () => randomInt(10)).join('')}`;
  return head + [...'0123456789'].find((digit) => passesLuhn(head + digit));
}

const MAGIC = [
  ...['4000000000000002', '4000000000001000', '4000000000002008', '4000000000003006', '4000000000004004'],
  ...['4000000000005001', '4000000000007007'],
];
const APPROVED = [randomCard(), randomCard()];
const VAULTED = randomCard();
const REFUSED = randomCard();
/** Cards of one-time tokens: one that is used to pay, and one that stays unused. */
const TOKENED = [randomCard(), randomCard()];
/** Fails the Luhn check, like a number with a typo. */
const MISTYPED = `${REFUSED.slice(0, -1)}${(Number(REFUSED.at(-1)) + 1) % 10}`;
/** Enrolled for a customer. */
const STORED = randomCard();
const CARDS = [...MAGIC, ...APPROVED, ...TOKENED, STORED, VAULTED, REFUSED, MISTYPED];
/** Too short to search for, except as a separate word. */
const CODE = '9041';
/** Matches the code by itself, not as part of a number, a UUID or a time. */
const CODE_ALONE = new RegExp(`(?<![\\w.-])${CODE}(?![\\w.-])`);
const SECRET_KEYS = ['sk_sandbox_one', `sk_wrong_${randomUUID()}`];
const API_KEY = `provider-key-${randomUUID()}`;
/** Part of every wallet's token, which itself says what the sandbox does with it. */
const WALLET_SECRET = `w4${randomUUID().replaceAll('-', '')}`;
const SECRETS = [...CARDS, ...SECRET_KEYS, API_KEY, WALLET_SECRET];

let server: TestServer;
let clients: ApiClients;
let tables: Tables;
let receiver: Receiver;
let collector: TraceCollector;
let closing: Promise<void> | undefined;
const replies: Reply[] = [];
let printed: readonly string[];

beforeAll(async () => {
  printed = recordPrinted();
  collector = await startTraceCollector();
  server = await startTestServer({
    config: {
      environment: (name) => (name.startsWith('SANDBOX_') ? API_KEY : undefined),
      otlpEndpoint: collector.url,
    },
    catalogue: sandboxCatalogue(500),
  });
  clients = apiClients(server.url);
  tables = await openTables(server.databaseUrl);
  receiver = await startReceiver();
  await post('/v1/webhooks', { url: receiver.url, events: ['payment.purchase'] });
  await happenings();
});

afterAll(async () => {
  vi.restoreAllMocks();
  clients?.close();
  await tables?.close();
  await close();
  await receiver?.close();
  collector?.close();
});

/** Stops the service, which exports its remaining spans. */
function close(): Promise<void> | undefined {
  closing ??= server?.close();
  return closing;
}

const withCode = (number: string): RequestJson =>
  withField(cardPayment(number), `${CARD_DATA}.security_code`, CODE);

/** Does everything that can happen to a card, over every protocol. */
async function happenings(): Promise<void> {
  const keep = async (reply: Promise<Reply>) => void replies.push(await reply);
  for (const protocol of PROTOCOLS) {
    const create = (request: RequestJson, headers = headersOne()) =>
      keep(clients.create(protocol, request, headers));
    await Promise.all([...MAGIC, ...APPROVED].map((number) => create(withCode(number))));
    // Vaulted, used and repeated.
    const vaulting = withField(withCode(VAULTED), 'payment_method.vault_on_success', true);
    const headers = headersOne();
    await create(vaulting, headers);
    await create(vaulting, headers);
    const { vaulted_token } = JSON.parse(replies.at(-1)?.record ?? '').payment_method;
    await create({ ...cardPayment(), payment_method: { type: 'CARD', vaulted_token } });
    await create(withField(withCode(MAGIC[3] ?? ''), 'payment_method.vault_on_success', true));
    // Refused, with the card in the right and in wrong fields.
    await create(withCode(MISTYPED));
    await create(withField(withCode(REFUSED), 'amount.value', 0));
    await create(withField(withCode(REFUSED), 'country', REFUSED));
    await create(withField(withCode(REFUSED), 'payment_method.type', REFUSED));
    await create(withField(withCode(REFUSED), 'account_id', ACCOUNT_TWO));
    await create(withField(withCode(REFUSED), 'customer_payer.id', REFUSED));
    await create(withField(withCode(REFUSED), `${CARD_DATA}.security_code`, REFUSED));
    await create(withCode(REFUSED), headers);
    await create(withCode(REFUSED), { ...headersOne(), 'private-secret-key': SECRET_KEYS[1] ?? '' });
    await create(withCode(REFUSED), { ...headersOne(), 'public-api-key': REFUSED });
    await keep(clients.send(protocol, `{"number": "${REFUSED}", "security_code": ${CODE}`, headersOne()));
    await keep(clients.send(protocol, `${REFUSED}${CODE}`, headersOne()));
  }
  for (const path of [
    `/${REFUSED}`,
    `/v1/payments/${REFUSED}`,
    `/v1/%zz${REFUSED}`,
    `/v1/payments?card=${REFUSED}`,
  ]) {
    await fetch(server.url + path, { headers: headersOne() }).then((response) => response.text());
  }
  await tokens();
  await storedMethods();
  await walletTokens();
  await ownFailure();
}

/** Does everything that can happen to a card in a one-time token and to the token. */
async function tokens(): Promise<void> {
  for (const number of [...TOKENED, MAGIC[0] ?? '']) {
    const headers = headersOne();
    const { token } = await post('/v1/tokens', { card_data: card_data(number) }, headers);
    await post('/v1/tokens', { card_data: card_data(number) }, headers);
    if (number !== TOKENED[1]) await post('/v1/payments', { ...cardPayment(), payment_method: { token } });
    await post('/v1/payments', { ...cardPayment(), payment_method: { token, detail: detailOf(REFUSED) } });
  }
  const { account_id, merchant_order_id, country, amount } = cardPayment();
  const terms = { account_id, merchant_order_id, country, amount };
  const { checkout_session: session } = await post('/v1/checkout/sessions', terms);
  const path = `/v1/checkout/sessions/${session}`;
  await post(`${path}/token`, { card_data: card_data(TOKENED[1] ?? '') });
  await post(`${path}/token`, { card_data: card_data(MISTYPED) });
  await post(`${path}/payments`, { payment_method: { type: 'CARD', detail: detailOf(REFUSED) } });
  await post(`${path}/payments`, { payment_method: { token: REFUSED } });
  await post(`/v1/checkout/sessions/${REFUSED}/token`, { card_data: card_data(REFUSED) });
  await post('/v1/checkout/sessions', { ...terms, customer_id: REFUSED });
  await post('/v1/tokens', { card_data: card_data(REFUSED) }, { 'public-api-key': 'pk_sandbox_one' });
}

/** Does everything that can happen to an enrolled card and to the security code for its payments. */
async function storedMethods(): Promise<void> {
  const customer = (await post('/v1/customers', { merchant_customer_id: randomUUID() })).id;
  const path = `/v1/customers/${customer}/payment-methods`;
  const headers = headersOne();
  const { id } = await post(path, { card_data: card_data(STORED) }, headers);
  await post(path, { card_data: card_data(STORED) }, headers);
  await post(path, { card_data: card_data(REFUSED) }, headers);
  await post(path, { card_data: card_data(MISTYPED) });
  await post(path, { card_data: card_data(REFUSED), type: REFUSED });
  await post(path, { card_data: card_data(REFUSED), country: REFUSED });
  await post(`/v1/customers/${REFUSED}/payment-methods`, { card_data: card_data(REFUSED) });
  const method = (data: object) => ({
    type: 'CARD',
    vaulted_token: id,
    detail: { card: { card_data: data } },
  });
  for (const data of [{ security_code: CODE }, { number: REFUSED, security_code: CODE }]) {
    await post('/v1/payments', {
      ...cardPayment(),
      payment_method: method(data),
      customer_payer: { id: customer },
    });
  }
  await post(`${path}/${id}/unenroll`, {});
}

/** Returns a payment with the token of a wallet. @param does what the sandbox does with it. */
function walletPayment(does: string, field = 'payment_method.detail.wallet.payment_token'): RequestJson {
  const { payment_method: _card, ...payment } = cardPayment();
  const token = JSON.stringify({ signature: WALLET_SECRET, does });
  return withField({ ...payment, payment_method: { type: 'GOOGLE_PAY' } }, field, token);
}

/** Does everything that can happen to the token of a wallet. */
async function walletTokens(): Promise<void> {
  const wallet = 'payment_method.detail.wallet';
  const paid = walletPayment('sandbox');
  const troubled = (description: string) => withField(paid, 'description', description);
  const { account_id, merchant_order_id, country, amount } = cardPayment();
  for (const protocol of PROTOCOLS) {
    const headers = headersOne();
    const create = async (request: RequestJson, of = headersOne()) =>
      void replies.push(await clients.create(protocol, request, of));
    await create(paid, headers);
    await create(paid, headers);
    await create(walletPayment('sandbox-declined'), headers);
    // Declined, challenged, refused by the provider, lost, and answered too late.
    for (const does of ['sandbox-declined', 'sandbox-challenge', 'invalid'])
      await create(walletPayment(does));
    for (const trouble of ['sandbox:error_after', 'sandbox:hang_before']) await create(troubled(trouble));
    await create(withField(paid, `${wallet}.capture`, false));
    // Refused, with the token in the right and in wrong fields.
    await create(withField(paid, `${wallet}.payment_token`, WALLET_SECRET));
    await create(walletPayment('x'.repeat(16_384)));
    await create(withField(paid, 'amount.value', 0));
    await create(withField(paid, 'workflow', 'REDIRECT'));
    await create(withField(paid, 'payment_method.type', 'PIX'));
    await create(withField(paid, 'payment_method.type', 'WALLET_B'));
    await create(withField(paid, 'payment_method.vault_on_success', true));
    for (const group of ['card', 'bank_transfer', 'ticket']) {
      await create(walletPayment('sandbox', `payment_method.detail.${group}.payment_token`));
    }
  }
  for (const field of ['payment_token', 'payment_method.payment_token', `${wallet}.token`]) {
    await post('/v1/payments', walletPayment('sandbox', field));
  }
  await post('/v1/payments', withField(paid, wallet, { payment_token: { signature: WALLET_SECRET } }));
  const terms = { account_id, merchant_order_id, country, amount };
  const { checkout_session } = await post('/v1/checkout/sessions', terms);
  const { payment_method } = paid;
  await post(`/v1/checkout/sessions/${checkout_session}/payments`, { payment_method });
  await fetch(`${server.url}/v1/routes/explain`, {
    method: 'POST',
    headers: { 'operator-key': 'op_sandbox', 'content-type': 'application/json' },
    body: JSON.stringify({ payment: paid, idempotency_key: randomUUID() }),
  }).then(async (response) => replies.push({ ...NO_REPLY, raw: await response.text() }));
}

async function post(path: string, body: object, headers = headersOne()) {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const raw = await response.text();
  replies.push({ ...NO_REPLY, raw, status: response.status });
  return JSON.parse(raw);
}

const NO_REPLY: Reply = {
  ...{ status: 0, headers: new Headers(), record: '', reason: undefined, code: undefined },
  ...{ fields: [], retryAfterS: undefined, raw: '' },
};

const card_data = (number: string) => ({ ...cardDataOf(number), security_code: CODE });
const detailOf = (number: string) => ({ card: { card_data: cardDataOf(number) } });
const cardDataOf = (number: string) =>
  (withCode(number) as { payment_method: { detail: { card: { card_data: object } } } }).payment_method.detail
    .card.card_data;

/** Causes a failure of our own in the middle of a payment. */
async function ownFailure(): Promise<void> {
  await tables.query('ALTER TABLE transaction RENAME COLUMN capture TO renamed');
  for (const protocol of PROTOCOLS) {
    replies.push(await clients.create(protocol, withCode(REFUSED), headersOne()));
  }
  await tables.query('ALTER TABLE transaction RENAME COLUMN renamed TO capture');
}

/** Returns the forms in which a string might appear: plain, hex, and base64 at each of three alignments. */
function forms(text: string): string[] {
  const bytes = Buffer.from(text);
  const base64 = [0, 1, 2].flatMap((shift) => {
    const shifted = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    // The characters at both ends depend on adjacent bytes.
    return shifted.slice(shift === 0 ? 0 : shift + 1, Math.floor(((shift + bytes.length) * 8) / 6));
  });
  const urlSafe = base64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'));
  return [text, bytes.toString('hex'), ...base64, ...urlSafe];
}

function findings(haystack: string, secrets: readonly string[]): string[] {
  const lower = haystack.toLowerCase();
  return secrets.filter((secret) =>
    forms(secret).some((form) => (/^[0-9a-f]+$/.test(form) ? lower.includes(form) : haystack.includes(form))),
  );
}

/** Returns every value of every table of the database, with bytes as latin1. */
async function dump(): Promise<string> {
  const columns = await tables.query(
    `SELECT table_schema AS s, table_name AS t, column_name AS c, data_type AS d FROM information_schema.columns
     WHERE table_schema NOT IN ('pg_catalog', 'information_schema')`,
  );
  const values: string[] = [];
  for (const { s, t, c } of columns) {
    for (const { v } of await tables.query(
      `SELECT "${c}" AS v FROM "${s}"."${t}" WHERE "${c}" IS NOT NULL`,
    )) {
      values.push(
        Buffer.isBuffer(v) ? v.toString('latin1') : v instanceof Date ? v.toISOString() : JSON.stringify(v),
      );
    }
  }
  expect(columns.map(({ t }) => t)).toEqual(
    expect.arrayContaining(['payment', 'vaulted_token', 'one_time_token', 'ledger']),
  );
  return values.join('\n');
}

describe('after payments, refusals and failures with cards and wallets’ tokens', () => {
  it('the calls before the search had every expected outcome and refusal', () => {
    const records = replies.filter(({ record }) => record !== '').map(({ record }) => JSON.parse(record));
    for (const type of ['CARD', 'GOOGLE_PAY']) {
      const own = records.filter(({ payment_method }) => payment_method.type === type);
      const statuses = own.map(({ status }) => status);
      expect(new Set(statuses)).toEqual(new Set(['SUCCEEDED', 'DECLINED', 'PENDING', 'ERROR']));
    }
    const reasons = new Set(replies.map(({ reason }) => reason));
    for (const reason of [
      'INTERNAL_ERROR',
      'INVALID_PARAMETERS',
      'INVALID_REQUEST',
      'IDEMPOTENCY_KEY_REUSED',
    ]) {
      expect(reasons).toContain(reason);
    }
    expect(server.logLines.length).toBeGreaterThan(50);
  });

  it('the search finds a card number in every encoding', () => {
    const [card = ''] = APPROVED;
    for (const prefix of ['', 'a', 'ab', 'abc']) {
      const bytes = Buffer.from(`${prefix}${card}xyz`);
      for (const encoding of ['latin1', 'hex', 'base64', 'base64url'] as const) {
        expect(findings(`..${bytes.toString(encoding)}..`, [card])).toEqual([card]);
      }
    }
    expect(findings('nothing', [card])).toEqual([]);
  });

  it('no response contains a card number, a security code or a key', () => {
    const answers = replies.map(({ raw, record }) => raw + record).join('\n');
    expect(findings(answers, SECRETS)).toEqual([]);
    expect(answers.replace(/content-length: \d+/g, '')).not.toMatch(CODE_ALONE);
  });

  it('no line of the log contains a card number, a security code, a key or a name, and nothing is printed', () => {
    const lines = [...server.logLines, ...printed].join('\n');
    expect(findings(lines, SECRETS)).toEqual([]);
    expect(lines.replace(/"(time|ms|pid)":\d+/g, '')).not.toMatch(CODE_ALONE);
    expect(lines).not.toMatch(/JORDAN|WHITFIELD|security_code|card_data/);
    expect(printed).toEqual([]);
  });

  it('no metric contains a card number or a key', async () => {
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toContain('payments_total');
    expect(findings(metrics, SECRETS)).toEqual([]);
  });

  it('no column of any table, including the provider’s ledger, contains a card number, code or key', async () => {
    const stored = await dump();
    expect(stored.length).toBeGreaterThan(100_000);
    expect(findings(stored, SECRETS)).toEqual([]);
    expect(stored).not.toMatch(CODE_ALONE);
    // The permitted digits of a card are there, so the search did read the records.
    for (const card of [APPROVED[0], STORED]) expect(stored).toContain(card?.slice(0, 8));
  });

  it('no webhook contains a card number, a security code, a key or a token', async () => {
    await vi.waitFor(() => expect(receiver.received.length).toBeGreaterThan(50), 10_000);
    const messages = receiver.received.map(({ text, headers }) => text + JSON.stringify(headers)).join('\n');
    expect(messages).toContain('GOOGLE_PAY');
    expect(findings(messages, SECRETS)).toEqual([]);
  });

  it('a failure is logged with its stack', () => {
    const failures = server.logLines.filter((line) => line.includes('"42703"'));
    expect(failures.length).toBeGreaterThan(0);
    for (const line of failures) expect(line).toMatch(/"stack":\["at /);
  });

  it('no trace contains a card number, a security code, a key or a token', async () => {
    await close();
    const traces = collector.received.map(({ body }) => body).join('\n');
    expect(traces).toContain('provider call');
    expect(findings(traces, SECRETS)).toEqual([]);
  });
});
