import { createClient } from '@connectrpc/connect';
import { beforeAll, describe, expect, it } from 'vitest';
import { Payment_SubStatus_Value } from '#gen/payments/v1/payment_pb.js';
import { PaymentService } from '#gen/payments/v1/payment_service_pb.js';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_TWO, cardPayment, headersOne, headersTwo } from '../support/payment-requests.ts';
import { RPCS, rpcTransports } from '../support/rpc-transports.ts';
import { earlier } from '../support/tables.ts';

// biome-ignore lint/suspicious/noExplicitAny: any response.
type Json = any;

const ANA = 'Ana.Buho+shop@Example.com';
const CPF = { document_type: 'CPF', document_number: '123.456.789-09' };
let twice: [Json, Json];
let declined: Json;
let byDocument: Json;
let other: Json;

onService();
beforeAll(async () => {
  const ana = { email: ANA };
  twice = [
    await pay({ ...cardPayment(), merchant_order_id: 'INV-7', customer_payer: ana }),
    await pay({ ...cardPayment(), merchant_order_id: 'INV-7', customer_payer: ana }),
  ];
  declined = await pay({
    ...cardPayment('4000000000000002'),
    merchant_order_id: 'INV-7',
    customer_payer: ana,
  });
  byDocument = await pay({
    ...cardPayment(),
    merchant_order_id: 'inv_8',
    amount: { currency: 'USD', value: 10.5 },
    customer_payer: { document: CPF },
  });
  other = await pay({ ...cardPayment(), account_id: ACCOUNT_TWO, customer_payer: ana }, headersTwo());
});

async function pay(request: object, headers = headersOne()): Promise<Json> {
  const { status, json } = await post('/v1/payments', request, headers);
  expect(status, JSON.stringify(json)).toBe(201);
  return json;
}

async function post(path: string, body: object, headers: Record<string, string> = headersOne()) {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return {
    status: response.status,
    json: (await response.json()) as Json,
    link: response.headers.get('link'),
  };
}

const search = (body: object, headers?: Record<string, string>) => post('/v1/payments/search', body, headers);
const idsOf = (payments: Json[]) => payments.map(({ id }) => id);

async function found(body: object, headers?: Record<string, string>): Promise<string[]> {
  const { status, json } = await search(body, headers);
  expect(status, JSON.stringify(json)).toBe(200);
  return idsOf(json.payments);
}

async function listed(query: string): Promise<string[]> {
  const response = await fetch(`${server.url}/v1/payments?${query}`, { headers: headersOne() });
  const json = (await response.json()) as Json;
  expect(response.status, JSON.stringify(json)).toBe(200);
  return idsOf(json);
}

const newestFirst = () => [declined.id, twice[1].id, twice[0].id];

describe('POST /v1/payments/search', () => {
  it('the search finds a payer’s payments by e-mail address in any case, and only of the caller’s account', async () => {
    expect(await found({ payer_email: ANA })).toEqual(newestFirst());
    expect(await found({ payer_email: ' ana.BUHO+shop@EXAMPLE.com. ' })).toEqual(newestFirst());
    expect(await found({ payer_email: 'anabuho@example.com' })).toEqual([]);
    expect(await found({ payer_email: ANA }, headersTwo())).toEqual([other.id]);
  });

  it('the search finds a payer’s payments by document, with or without its punctuation, in its country', async () => {
    const { country } = byDocument;
    const document = { document_type: 'cpf', document_number: '12345678909' };
    expect(await found({ country, payer_document: CPF })).toEqual([byDocument.id]);
    expect(await found({ country, payer_document: document })).toEqual([byDocument.id]);
    expect(await found({ country: 'BR', payer_document: document })).toEqual([]);
    expect(await found({ country, payer_document: { ...document, document_type: 'DNI' } })).toEqual([]);
  });

  it('payer and filters are combined, and pages continue with the same filters only', async () => {
    const first = await search({ payer_email: ANA, page_size: 2 });
    expect(idsOf(first.json.payments)).toEqual(newestFirst().slice(0, 2));
    const token = first.json.next_page_token;
    expect(await found({ payer_email: ANA, page_size: 2, page_token: token })).toEqual([twice[0].id]);
    expect(await found({ payer_email: ANA, status: 'DECLINED' })).toEqual([declined.id]);
    expect(await found({ payer_email: ANA, currency: 'USD', amount_from: '999999' })).toEqual([]);
    const refused = await search({ payer_email: 'eva@example.com', page_size: 2, page_token: token });
    expect([refused.status, refused.json.messages ?? refused.json]).toMatchObject([400, expect.anything()]);
    expect(first.link).toBeNull();
  });

  it('two payments of a payer for the same order and amount within a day are marked, without those that took nothing', async () => {
    const { json } = await search({ payer_email: ANA });
    expect(json.possible_duplicates).toEqual([
      { payment_id: twice[1].id, other_payment_ids: [twice[0].id] },
      { payment_id: twice[0].id, other_payment_ids: [twice[1].id] },
    ]);
    await tables.query(`UPDATE payment SET created_at = ${earlier('created_at', '25 hours')} WHERE id = $1`, [
      twice[0].id,
    ]);
    const later = await search({ merchant_order_id: 'INV-7' });
    await tables.query(
      `UPDATE payment SET created_at = ${earlier('created_at', '-25 hours')} WHERE id = $1`,
      [twice[0].id],
    );
    expect(later.json.possible_duplicates).toEqual([]);
  });

  it.each(RPCS)('the search works by %s', async (rpc) => {
    const opened = rpcTransports(server.url);
    const client = createClient(PaymentService, opened.transports[rpc]);
    const headers = headersOne();
    const answer = await client.searchPayments(
      { payerEmail: ANA, subStatus: Payment_SubStatus_Value.APPROVED },
      { headers },
    );
    opened.close();
    expect(answer.payments.map(({ id }) => id)).toEqual([twice[1].id, twice[0].id]);
    expect(answer.possibleDuplicates).toHaveLength(2);
    expect([answer.nextPageToken, answer.lookedAt]).toEqual(['', 0]);
  });

  it('the search needs the secret key, a possible payer, and a country with a document; no refusal quotes the payer', async () => {
    const { 'private-secret-key': _secret, ...publicOnly } = headersOne() as Record<string, string>;
    expect((await search({ payer_email: ANA }, publicOnly)).status).toBe(401);
    const cases: [object, string][] = [
      [{ payer_email: 'canary-no-address' }, 'payer_email'],
      [
        { country: 'US', payer_document: { document_type: 'CANARY', document_number: '--' } },
        'document_number',
      ],
      [{ payer_document: { document_type: 'X', document_number: 'CANARY-1' } }, 'country'],
      [{ amount_from: '1' }, 'currency'],
      [{ amount_to: '1.005', currency: 'USD' }, 'amount_to'],
      [{ amount_to: '1e3', currency: 'USD' }, 'amount_to'],
      [{ amount_from: '1', currency: 'ZZZ' }, 'currency'],
      [{ zone: 'Mars/Olympus' }, 'zone'],
      [{ customer_id: 'bob' }, 'customer_id'],
      [{ succeeded_from: 'yesterday' }, 'succeeded_from'],
    ];
    for (const [body, field] of cases) {
      const { status, json } = await search(body);
      expect([status, JSON.stringify(json)], field).toEqual([400, expect.stringContaining(field)]);
      expect(JSON.stringify(json).toLowerCase()).not.toContain('canary');
    }
  });
});

describe('the filters of GET /v1/payments', () => {
  it('every filter finds what it should, alone and with others', async () => {
    const [, connection] = [0, declined.transactions.connection_data.id as string];
    const all = [byDocument.id, ...newestFirst()];
    const { id: customer } = (await post('/v1/customers', { merchant_customer_id: 'shop-7', country: 'US' }))
      .json;
    await tables.query('UPDATE payment SET customer_id = $1 WHERE id = $2', [customer, byDocument.id]);
    const day = (ms: number) => new Date(Date.now() + ms).toISOString().slice(0, 10);
    const cases: [string, string[]][] = [
      ['merchant_order_id_prefix=INV', newestFirst()],
      ['merchant_order_id_prefix=inv', [byDocument.id]],
      ['merchant_order_id_prefix=inv%25', []],
      [`customer_id=${customer.toUpperCase()}`, [byDocument.id]],
      ['merchant_customer_id=shop-7', [byDocument.id]],
      ['merchant_customer_id=nobody', []],
      [`merchant_customer_id=shop-7&customer_id=${declined.id}`, []],
      [`connection_id=${connection}&merchant_order_id_prefix=INV&status=DECLINED`, [declined.id]],
      ['connection_id=nowhere', []],
      ['payment_method_type=CARD', all],
      ['payment_method_type=PIX', []],
      ['category=CARD&card_brand=VISA', all],
      ['category=WALLET', []],
      ['card_brand=AMEX', []],
      [`country=${byDocument.country}`, all],
      ['country=AQ', []],
      ['currency=EUR', []],
      ['currency=USD&amount_from=10.5&amount_to=10.50', [byDocument.id]],
      [`currency=USD&amount_from=${'9'.repeat(60)}`, []],
      [`currency=USD&amount_to=${'9'.repeat(60)}`, all],
      ['sub_status=DECLINED', [declined.id]],
      ['sub_status=APPROVED&merchant_order_id=INV-7', [twice[1].id, twice[0].id]],
      [`response_code=${declined.transactions.response_code}`, [declined.id]],
      ['response_code=NO_SUCH', []],
      ['unknown_outcome=true', []],
      ['disputed=true', []],
      [
        `succeeded_from=${day(-86_400_000)}&succeeded_to=${day(86_400_000)}`,
        [byDocument.id, twice[1].id, twice[0].id],
      ],
      [`succeeded_to=${day(-3 * 86_400_000)}`, []],
      [`succeeded_from=${day(-86_400_000)}&merchant_order_id_prefix=INV`, [twice[1].id, twice[0].id]],
      [`created_from=${day(-86_400_000)}&created_to=${day(2 * 86_400_000)}&zone=America/Bogota`, all],
      [`created_from=${day(3 * 86_400_000)}&zone=Asia/Tokyo`, []],
    ];
    for (const [query, ids] of cases) expect(await listed(query), query).toEqual(ids);
  });

  it('an unknown outcome, until it is known, and a dispute, be it an inquiry, are found', async () => {
    const [first] = twice;
    await tables.query(
      "UPDATE transaction SET status = 'PENDING', check_at = now() + interval '1 day' WHERE payment_id = $1",
      [first.id],
    );
    expect(await listed('unknown_outcome=true')).toEqual([first.id]);
    expect(await listed('unknown_outcome=true&country=AQ')).toEqual([]);
    await tables.query("UPDATE transaction SET status = 'SUCCEEDED', check_at = NULL WHERE payment_id = $1", [
      first.id,
    ]);
    expect(await listed('unknown_outcome=true')).toEqual([]);
    await tables.query(
      `INSERT INTO dispute (account_id, id, payment_id, connection_id, connection_identity, stage, status, reason,
         amount_minor_units, currency, sequence, opened_at, updated_at)
       SELECT account_id, gen_random_uuid(), payment_id, connection_id, connection_identity, 'INQUIRY', 'NEEDS_RESPONSE', 'OTHER', 1, 'USD', 1, now(), now()
       FROM transaction WHERE payment_id = $1`,
      [first.id],
    );
    expect(await listed('disputed=true&currency=USD')).toEqual([first.id]);
    expect(await listed('disputed=true&merchant_order_id=INV-7')).toEqual([first.id]);
    await tables.query('DELETE FROM dispute');
  });
});
