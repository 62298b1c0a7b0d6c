import { type Client, createClient, type Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { PaymentService } from '#gen/payments/v1/payment_service_pb.js';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_TWO, cardPayment, headersOne, headersTwo } from '../support/payment-requests.ts';
import { rpcTransports } from '../support/rpc-transports.ts';

const DECLINED_CARD = '4000000000000002';

// biome-ignore lint/suspicious/noExplicitAny: any response, for comparison with the expected one.
type Json = any;

/** The records of account one, newest first, as GetPayment returns them. */
const made: Json[] = [];
let close: () => void;
let transports: Record<string, Transport>;

onService();
beforeAll(async () => {
  for (let i = 0; i < 25; i++) {
    const order = i < 3 ? 'an order & more' : `order-${i}`;
    made.unshift(
      await pay({ ...cardPayment(i === 7 ? DECLINED_CARD : undefined), merchant_order_id: order }),
    );
  }
  await pay({ ...cardPayment(), account_id: ACCOUNT_TWO, merchant_order_id: 'order-9' }, headersTwo());
  const opened = rpcTransports(server.url);
  close = opened.close;
  const http = { baseUrl: server.url, httpVersion: '1.1' } as const;
  const connectGet = createConnectTransport({ ...http, useBinaryFormat: false, useHttpGet: true });
  transports = { ...opened.transports, connectGet };
});
afterAll(() => close?.());

async function pay(request: object, headers = headersOne()): Promise<Json> {
  const response = await fetch(`${server.url}/v1/payments`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(request),
  });
  expect(response.status).toBe(201);
  return response.json();
}

async function list(query: string, headers: Record<string, string> = headersOne()) {
  const url = query.startsWith('/') ? query : `/v1/payments${query}`;
  const response = await fetch(server.url + url, { headers });
  const link = response.headers.get('link');
  return { status: response.status, json: (await response.json()) as Json, link };
}

const nextOf = (link: string | null) => /^<(\/v1\/payments\?[^>]*)>; rel="next"$/.exec(link ?? '')?.[1];

describe('GET /v1/payments', () => {
  it('the list is an array of 20 records, newest first, with a Link header to the next page', async () => {
    const first = await list('');
    expect([first.status, first.json]).toEqual([200, made.slice(0, 20)]);
    const next = await list(nextOf(first.link) ?? '');
    expect([next.json, next.link]).toEqual([made.slice(20), null]);
    const whole = await list('?page_size=25');
    expect([whole.json, whole.link]).toEqual([made, null]);
  });

  it('filters and page size stay the same on every page, however they are encoded', async () => {
    const query = `?status=SUCCEEDED&page_size=10&created_from=2020-01-01T00:00:00%2B02:00&merchant_order_id=`;
    const pages: Json[] = [];
    for (let url: string | undefined = query; url; ) {
      const page: Awaited<ReturnType<typeof list>> = await list(url);
      expect(page.json.length).toBeLessThanOrEqual(10);
      pages.push(...page.json);
      url = nextOf(page.link);
      if (url)
        expect(url).toMatch(/status=SUCCEEDED&page_size=10&created_from=.*&merchant_order_id=&page_token=/);
    }
    expect(pages).toEqual(made.filter(({ status }) => status === 'SUCCEEDED'));
  });

  it('a list by order has the order’s payments, or none for an unknown order, and filters are combined', async () => {
    const order = await list(`?${new URLSearchParams({ merchant_order_id: 'an order & more' })}`);
    expect(order.json).toEqual(made.slice(-3));
    expect((await list('?merchant_order_id=unknown')).json).toEqual([]);
    expect((await list('?status=DECLINED')).json).toEqual([made[17]]);
    expect((await list('?status=DECLINED&merchant_order_id=order-7')).json).toEqual([made[17]]);
    expect((await list('?status=DECLINED&merchant_order_id=order-8')).json).toEqual([]);
    expect(
      (await list('?status=&merchant_order_id=&created_from=&page_token=&page_size=2')).json,
    ).toHaveLength(2);
  });

  it('created_from and created_to accept times and dates, and are inclusive', async () => {
    const { created_at: at } = made[12];
    const day = at.slice(0, 10);
    const nextDay = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
    const count = async (query: string) => (await list(`?page_size=100&${query}`)).json.length;
    expect((await list(`?created_from=${at}&created_to=${at}`)).json).toEqual([made[12]]);
    expect(await count(`created_from=${at}`)).toBe(13);
    expect(await count(`created_to=${at}`)).toBe(13);
    const offset = new Date(Date.parse(at) + 7_200_000).toISOString().slice(0, -1);
    // An unescaped plus sign arrives as a space.
    expect(await count(`created_to=${offset}${at.slice(-4, -1)}+02:00`)).toBe(13);
    expect(await count(`created_from=${day}&created_to=${nextDay}`)).toBe(25);
    expect(await count(`created_from=${nextDay}T23:59:59Z`)).toBe(0);
    expect(await count('created_to=2020-01-01')).toBe(0);
    expect(await count('created_from=0001-01-01&created_to=9999-12-31')).toBe(25);
    expect(await count('created_to=9999-12-31T23:59:59.999999999Z')).toBe(25);
  });

  it('a page contains at most 100 payments, no matter how many are requested', async () => {
    await tables.query(
      `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, merchant_order_id, created_at)
       SELECT gen_random_uuid(), account_id, 'copy ' || n, '', '', status, record, 'copy', timestamptz '2019-01-01Z' + n * interval '1 s'
       FROM payment, generate_series(1, 130) n WHERE merchant_order_id = 'order-24'`,
    );
    const page = await list('?merchant_order_id=copy&page_size=2000000000');
    expect(page.json).toHaveLength(100);
    expect((await list(nextOf(page.link) ?? '')).json).toHaveLength(30);
    await tables.query("DELETE FROM payment WHERE merchant_order_id = 'copy'");
  });

  it('an account sees only its own payments', async () => {
    const two = await list('', headersTwo());
    expect(two.json.map((payment: Json) => payment.account_id)).toEqual([ACCOUNT_TWO]);
    expect((await list('?merchant_order_id=order-9', headersTwo())).json).toHaveLength(1);
    expect((await list('?merchant_order_id=order-9')).json).toEqual([made[15]]);
    const token = nextOf((await list('?page_size=1')).link) ?? '';
    expect(await list(token, headersTwo())).toMatchObject({ status: 400, link: null });
  });

  it('listing payments requires the secret key', async () => {
    const { status, json } = await list('', { 'public-api-key': 'pk_sandbox_one' });
    expect([status, json.code]).toEqual([401, 'INVALID_CREDENTIALS']);
  });

  it.each([
    ['status=PAID', 'status'],
    ['status=STATUS_UNSPECIFIED', 'status'],
    ['status=SUCCEEDED&status=DECLINED', 'status'],
    ['created_from=yesterday', 'created_from'],
    ['created_from=2026-02-30', 'created_from'],
    ['created_to=2026-1-1', 'created_to'],
    ['created_to=2026-01-31T24:30:00Z', 'created_to'],
    ['created_to=%00', 'created_to'],
    [`created_from=${'1'.repeat(65)}`, 'created_from'],
    ['created_from=1767225600', 'created_from'],
    ['page_size=-1', 'page_size'],
    ['page_size=ten', 'page_size'],
    ['page_size=99999999999', 'page_size'],
    [`merchant_order_id=${'x'.repeat(256)}`, 'merchant_order_id'],
    ['merchant_order_id=a%00b', 'merchant_order_id'],
    ['page_token=nonsense', 'page_token'],
    [`page_token=${'A'.repeat(300)}`, 'page_token'],
    ['page_token=%27%3B+DROP+TABLE+payment', 'page_token'],
  ])('the refusal of ?%s names the invalid parameter', async (query, field) => {
    const { status, json } = await list(`?${query}`);
    expect([status, json.code]).toEqual([400, 'INVALID_PARAMETERS']);
    expect(json.errors.map((error: Json) => error.field)).toEqual([field]);
  });

  it('a page token is accepted only unchanged and with its original filters', async () => {
    const next = nextOf((await list('?page_size=2&merchant_order_id=an order %26 more')).link) ?? '';
    const token = new URLSearchParams(next.split('?')[1]).get('page_token') ?? '';
    expect((await list(next)).json).toEqual([made[24]]);
    expect((await list(next.replace('page_size=2', 'page_size=1'))).json).toEqual([made[24]]);
    const middle = token.length / 2;
    const flipped =
      token.slice(0, middle) + (token.charAt(middle) === 'A' ? 'B' : 'A') + token.slice(middle + 1);
    for (const url of [
      `?page_token=${token}`,
      next.replace('more', 'less'),
      `${next}&status=SUCCEEDED`,
      `${next}&created_to=2099-01-01`,
      next.replace(token, flipped),
      next.replace(token, token.slice(0, -1)),
      next.replace(token, `${token}=`),
    ]) {
      const { status, json } = await list(url);
      expect([status, json.errors?.[0]?.field], url).toEqual([400, 'page_token']);
    }
  });
});

describe.each(['connectJson', 'connectProto', 'connectGet', 'grpc', 'grpcWeb'])(
  'ListPayments over %s',
  (name) => {
    let client: Client<typeof PaymentService>;
    beforeAll(() => {
      client = createClient(PaymentService, transports[name] as Transport);
    });

    it('ListPayments returns each page with a token for the next, and refuses what REST refuses', async () => {
      const headers = headersOne();
      const first = await client.listPayments({ pageSize: 15 }, { headers });
      expect(first.payments.map(({ id }) => id)).toEqual(made.slice(0, 15).map(({ id }) => id));
      const rest = await client.listPayments({ pageSize: 15, pageToken: first.nextPageToken }, { headers });
      expect(rest.payments.map(({ id }) => id)).toEqual(made.slice(15).map(({ id }) => id));
      expect(rest.nextPageToken).toBe('');
      const declined = await client.listPayments({ status: Payment_Status.DECLINED }, { headers });
      expect(declined.payments).toMatchObject([{ id: made[17].id, merchantOrderId: 'order-7' }]);
      const none = await client.listPayments({ merchantOrderId: 'unknown' }, { headers });
      expect([none.payments, none.nextPageToken]).toEqual([[], '']);
      const foreign = client.listPayments({ pageToken: first.nextPageToken }, { headers: headersTwo() });
      await expect(foreign).rejects.toThrow(/invalid_argument.*page_token/);
      await expect(client.listPayments({ pageSize: -1 }, { headers })).rejects.toThrow(/page_size/);
      await expect(
        client.listPayments({}, { headers: { 'public-api-key': 'pk_sandbox_one' } }),
      ).rejects.toThrow(/unauthenticated/);
    });
  },
);
