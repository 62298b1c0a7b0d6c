import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { Exchange } from '#tools/openapi/exchanges.ts';
import { loadExamples, record } from '../support/examples.ts';
import { differences } from '../support/match-record.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { type Operation, readContract } from '../support/openapi-contract.ts';
import { cardPayment, headersOne, walletPayment, withField } from '../support/payment-requests.ts';
import { type Receiver, startReceiver } from '../webhooks/receiver.ts';

const contract = readContract();
const examples = loadExamples();
let receiver: Receiver;

onService();
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver?.close());
afterEach(async () => {
  const { webhooks } = await send('GET', '/v1/webhooks');
  for (const { id } of webhooks) await send('DELETE', `/v1/webhooks/${id}`);
});

const headersOf = ({ json }: Operation) =>
  json.security.some((one: object) => 'operator-key' in one)
    ? { 'operator-key': 'op_sandbox' }
    : headersOne();

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the response.
async function send(verb: string, path: string, body?: unknown): Promise<any> {
  const response = await fetch(server.url + path, {
    method: verb,
    headers: { ...headersOne(), ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  expect(response.ok, text).toBe(true);
  return text === '' ? undefined : JSON.parse(text);
}

type Given = Readonly<Record<string, string>>;

/** Functions that create the resources from which examples start, keyed by parameter name. */
const givens: Readonly<Record<string, () => Promise<Given>>> = {
  paid: () => pay('paid', {}),
  listed: async () => {
    const order = `list-${randomUUID()}`;
    await pay('listed', { merchant_order_id: order });
    return { listed: order };
  },
  searched: () => pay('searched', { 'customer_payer.email': 'ana.rojas@example.com' }),
  authorized: () => pay('authorized', { 'payment_method.detail.card.capture': false }),
  awaiting: () => pay('awaiting', {}, walletPayment()),
  customer: async () => {
    const merchantId = `shop-${randomUUID()}`;
    const body = { merchant_customer_id: merchantId, first_name: 'Valentina', gender: 'F', country: 'CO' };
    const { id } = await send('POST', '/v1/customers', body);
    return { customer: id, 'customer.merchant': merchantId };
  },
  stored: async () => {
    const customer = await send('POST', '/v1/customers', { merchant_customer_id: randomUUID() });
    const card_data = { number: '4111111111111111', expiration_month: 12, expiration_year: 30 };
    const { id } = await send('POST', `/v1/customers/${customer.id}/payment-methods`, { card_data });
    return { stored: id, 'stored.customer': customer.id };
  },
  session: async () => ({ session: await openSession() }),
  paid_session: async () => {
    const session = await openSession();
    const path = `/v1/checkout/sessions/${session}/payments`;
    const { id } = await send('POST', path, { payment_method: { type: 'WALLET_B' } });
    return { paid_session: session, 'paid_session.payment': id };
  },
  disputed: async () => {
    const { disputed } = await pay('disputed', { description: 'sandbox:dispute_after:0' });
    const [dispute] = await vi.waitFor(async () => {
      const disputes = await send('GET', `/v1/disputes?payment_id=${disputed}`);
      expect(disputes).toHaveLength(1);
      return disputes;
    });
    return { disputed: disputed ?? '', 'disputed.dispute': dispute.id };
  },
  settled: async () => {
    const paid = await pay('settled', {});
    await settle(paid.settled ?? '', paid['settled.transaction'] ?? '');
    return paid;
  },
  webhook: async () => ({ webhook: (await addWebhook()).id }),
  delivery: async () => {
    const webhook = (await addWebhook()).id;
    const { id } = await send('POST', `/v1/webhooks/${webhook}/test`);
    const list = () => send('GET', `/v1/webhooks/${webhook}/deliveries`);
    await vi.waitFor(async () => expect((await list()).deliveries[0].status).toBe('DELIVERED'));
    return { delivery: id, 'delivery.webhook': webhook };
  },
};

async function pay(
  name: string,
  over: Readonly<Record<string, unknown>>,
  by = cardPayment('4111111111111111'),
): Promise<Given> {
  let request = withField(by, 'amount.value', 100);
  for (const [path, value] of Object.entries(over)) request = withField(request, path, value);
  const { id, transactions } = await send('POST', '/v1/payments', request);
  return { [name]: id, [`${name}.transaction`]: transactions.id };
}

/** Stores what matching a report stores: a line that settles a payment. */
async function settle(payment: string, transaction: string): Promise<void> {
  await tables.query(
    `INSERT INTO settlement_match (account_id, transaction_id, connection_identity, line_key, payment_id, report, kind,
       payout_reference, gross, fee, tax, net, settlement_currency)
     VALUES ($1, $2, 'the sandbox', 'line 1', $3, '', 'payment', 'po_1', 10000, -320, -10, 9670, 'USD')`,
    ['11111111-1111-4111-8111-111111111111', transaction, payment],
  );
}

async function openSession(): Promise<string> {
  const { checkout_session } = await send('POST', '/v1/checkout/sessions', {
    account_id: '11111111-1111-4111-8111-111111111111',
    merchant_order_id: '1001',
    country: 'CO',
    amount: { currency: 'COP', value: 25_000 },
    callback_url: 'https://shop.example/back',
  });
  return checkout_session;
}

function addWebhook() {
  return send('POST', '/v1/webhooks', { url: receiver.url, events: ['payment.refund'], description: 'Shop' });
}

/** Creates the resources that an example's parameters name. @returns the parameters with their IDs. */
async function parametersOf({ parameters, given }: Exchange): Promise<Record<string, string>> {
  const wanted = [...Object.values(parameters), given].flatMap((text) => /^\{([^.}]+)/.exec(text)?.[1] ?? []);
  const made: Given = Object.assign(
    {},
    ...(await Promise.all([...new Set(wanted)].map((name) => (givens[name] as () => Promise<Given>)()))),
  );
  return Object.fromEntries(
    Object.entries(parameters).map(([name, text]) => [
      name,
      text.replace(/^\{(.+)\}$/, (_, key) => made[key] ?? ''),
    ]),
  );
}

const shown = contract.operations.filter(({ rpc }) => rpc !== 'CreatePayment');
const cases = shown.flatMap((operation) =>
  examples
    .filter(({ rpc }) => rpc === operation.rpc)
    .map((example) => ({ operation, example, id: `${operation.id} ${example.name}`.trim() })),
);

it('every rpc has an example: test/examples/<rpc>.json, with summary, parameters, body and "response": null', () => {
  const named = new Set(examples.map(({ rpc }) => rpc));
  expect(shown.filter(({ rpc }) => !named.has(rpc)).map(({ rpc }) => rpc)).toEqual([]);
});

it.each(cases)('the response of $id equals its example in test/examples', async ({ operation, example }) => {
  const parameters = await parametersOf(example);
  const rest = { ...parameters };
  const path = operation.path.replaceAll(/\{([^}]+)\}/g, (_, name) => {
    delete rest[name];
    return parameters[name] ?? '';
  });
  const hasBody = operation.json.requestBody !== undefined;
  const query = hasBody || operation.verb !== 'GET' ? '' : `?${new URLSearchParams(rest)}`;
  const body = hasBody ? { ...rest, ...(example.body as object) } : undefined;
  expect(contract.requestFaults(operation, body)).toEqual([]);

  const response = await fetch(server.url + path + query, {
    method: operation.verb,
    headers: { ...headersOf(operation), ...(hasBody && { 'content-type': 'application/json' }) },
    ...(hasBody && { body: JSON.stringify(body) }),
  });
  const seen = { status: response.status, headers: response.headers, text: await response.text() };
  expect([response.ok, ...contract.responseFaults(operation, seen)], seen.text).toEqual([true]);
  if (example.response === null && process.env.RECORD) record(example, seen.text);
  else if (example.response === undefined) expect(seen.text).toBe('');
  else expect(differences(JSON.stringify(example.response), seen.text)).toEqual([]);
});

it('a delivered event conforms to the OpenAPI document', async () => {
  const received = await receiver.has(1);
  for (const { json } of received) expect(contract.schemaFaults('Event', json)).toEqual([]);
  await send('POST', '/v1/webhooks', { url: receiver.url, events: ['payment.purchase'] });
  await pay('paid', {});
  const all = await receiver.has(received.length + 1);
  expect(all.at(-1)?.json.type_event).toBe('payment.purchase');
  expect(contract.schemaFaults('Event', all.at(-1)?.json)).toEqual([]);
});

it('a delivered event of a dispute has the dispute and its payment, and conforms to the OpenAPI document', async () => {
  await send('POST', '/v1/webhooks', { url: receiver.url, events: ['dispute.opened'] });
  const before = (await receiver.has(0)).length;
  const { disputed } = await pay('disputed', { description: 'sandbox:dispute_after:0' });
  const event = (await receiver.has(before + 1)).at(-1)?.json;
  expect(contract.schemaFaults('Event', event)).toEqual([]);
  expect(event).toMatchObject({
    ...{ type: 'dispute', type_event: 'dispute.opened', sequence: 1 },
    data: {
      dispute: { payment_id: disputed, stage: 'CHARGEBACK', status: 'NEEDS_RESPONSE' },
      payment: { id: disputed, status: 'IN_DISPUTE', transactions: { type: 'CHARGEBACK' } },
    },
  });
});

it('the check against the OpenAPI document finds the faults in a wrong response', () => {
  const operation = contract.find('GET', '/v1/payments/1');
  const seen = (status: number, text: string) => ({ status, headers: new Headers(), text });
  expect(contract.responseFaults(operation, seen(418, ''))).toEqual([
    'getPayment: status 418 is not documented',
  ]);
  const faults = contract.responseFaults(operation, seen(200, '{"status": "DONE"}'));
  expect(faults).toContain('header x-request-id is missing');
  expect(faults).toContain("/ must have required property 'id'");
  expect(faults).toContain('/status must be equal to one of the allowed values');
});
