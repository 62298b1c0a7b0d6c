import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { Payment_Status, Payment_SubStatus_Value } from '#gen/payments/v1/payment_pb.js';
import { decodeRecord, encodeRecord } from '#src/payments/stored-record.ts';
import { walletPayment } from '../support/payment-requests.ts';
import { ONE, PUBLIC_ONE } from './calls.ts';
import { cardData } from './checkout.ts';
import { call, checkout, onOwnServer, server, tables } from './own-server.ts';

const SHOP = 'https://shop.example';
const STRANGER = 'https://stranger.example';

onOwnServer();
let session: string;

beforeAll(async () => {
  await tables.query(
    `UPDATE account SET allowed_origins = '{${SHOP}}' WHERE id = '11111111-1111-4111-8111-111111111111'`,
  );
  session = await checkout.openSession();
});

const preflight = (path: string, method = 'POST') =>
  call('OPTIONS', path, undefined, {
    origin: SHOP,
    'access-control-request-method': method,
    'access-control-request-headers':
      'content-type,public-api-key,x-idempotency-key,connect-protocol-version',
  });
const CHECKOUT = '/payments.v1.CheckoutService';

describe('pages of other origins', () => {
  it.each([
    ...['', '/payment-methods', '/payment', '/payments', '/token'].map(
      (suffix) => `/v1/checkout/sessions/x${suffix}`,
    ),
    ...[
      'GetCheckoutSession',
      'ListCheckoutPaymentMethods',
      'CreateCheckoutPayment',
      'GetCheckoutPayment',
      'CloseCheckoutPayment',
    ].map((rpc) => `${CHECKOUT}/${rpc}`),
    '/payments.v1.TokenService/CreateCheckoutToken',
  ])('a preflight from another origin allows calls to %s with a public key', async (path) => {
    const { status, headers } = await preflight(path);
    expect([status, headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual([
      204,
      SHOP,
      'origin',
    ]);
    expect(headers.get('access-control-allow-methods')).toBe('GET, POST');
    const allowed = headers.get('access-control-allow-headers')?.split(', ');
    expect(allowed).toEqual(
      expect.arrayContaining([
        ...['content-type', 'public-api-key', 'x-idempotency-key'],
        ...['connect-protocol-version', 'x-grpc-web', 'grpc-timeout'],
      ]),
    );
    expect(allowed).not.toContain('private-secret-key');
    expect(headers.get('access-control-allow-credentials')).toBeNull();
  });

  it.each([
    '/v1/payments',
    '/v1/tokens',
    '/v1/customers',
    '/v1/checkout/sessions',
    `${CHECKOUT}/CreateCheckoutSession`,
  ])('a preflight from another origin is refused for %s, which only servers may call', async (path) => {
    const { status, headers } = await preflight(path);
    expect([status, headers.get('access-control-allow-origin')]).toEqual([405, null]);
  });

  it.each([
    ['REST', 'application/json'],
    ['Connect', 'application/json'],
    ['gRPC-Web', 'application/grpc-web+proto'],
  ])(
    'a page with the public key can call over %s only from an origin that the account allows',
    async (protocol, type) => {
      const read = async (origin: string, headers: Record<string, string> = PUBLIC_ONE) => {
        if (protocol === 'REST') {
          return fetch(`${server.url}/v1/checkout/sessions/${session}`, { headers: { ...headers, origin } });
        }
        const message = Buffer.concat([Buffer.from([10, 36]), Buffer.from(session)]);
        const enveloped = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
        return fetch(`${server.url}${CHECKOUT}/GetCheckoutSession`, {
          method: 'POST',
          headers: { ...headers, origin, 'content-type': type },
          body: protocol === 'Connect' ? JSON.stringify({ checkout_session: session }) : enveloped,
        });
      };
      const allowed = await read(SHOP);
      expect(allowed.headers.get('access-control-allow-origin')).toBe(SHOP);
      expect(allowed.headers.get('access-control-expose-headers')).toContain('idempotent-replayed');
      expect(await allowed.text()).toContain(session);
      const refused = await read(STRANGER);
      const told = `${await refused.text()} ${refused.headers.get('grpc-status-details-bin')} ${refused.headers.get('grpc-message')}`;
      expect(refused.headers.get('access-control-allow-origin')).toBe(STRANGER);
      expect(told).toContain('origin');
      expect(told).not.toContain(session);
      // The secret key is accepted from any origin: a server may send any header.
      expect(await (await read(STRANGER, ONE)).text()).toContain(session);
      // The service's own pages are allowed.
      expect(await (await read(new URL(server.url).origin)).text()).toContain(session);
    },
  );

  it('a page from an origin that the account does not allow cannot create a token or read a session', async () => {
    const refused = await call(
      'POST',
      `/v1/checkout/sessions/${session}/token`,
      { card_data: cardData() },
      {
        ...PUBLIC_ONE,
        origin: STRANGER,
      },
    );
    expect([refused.status, refused.json.code]).toEqual([403, 'ORIGIN_NOT_ALLOWED']);
    expect(await tables.query('SELECT 1 FROM one_time_token')).toEqual([]);
    for (const origin of [
      'null',
      'https://shop.example.stranger.example',
      'http://shop.example',
      `${SHOP}:8443`,
    ]) {
      const again = await call('GET', `/v1/checkout/sessions/${session}`, undefined, {
        ...PUBLIC_ONE,
        origin,
      });
      expect([origin, again.status]).toEqual([origin, 403]);
    }
  });
});

describe('pages with only the public key', () => {
  it('a page can repeat its request after the session’s terms change, but a different request is refused', async () => {
    const own = await checkout.openSession();
    const token = await checkout.token(own, '4000000000009995');
    const key = randomUUID();
    const declined = await checkout.payAsBrowser(own, { token }, key);
    expect(declined.json).toMatchObject({ status: 'DECLINED', amount: { currency: 'USD', value: 55.75 } });
    const terms = { merchant_order_id: 'order-78', country: 'ES', amount: { currency: 'EUR', value: 60 } };
    expect((await call('PATCH', `/v1/checkout/sessions/${own}`, terms)).status).toBe(200);
    const again = await checkout.payAsBrowser(own, { token }, key);
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([declined.text, 'true']);
    const other = await checkout.payAsBrowser(own, { token: await checkout.token(own) }, key);
    expect([other.status, other.json.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    const elsewhere = await checkout.payAsBrowser(await checkout.openSession(), { token }, key);
    expect([elsewhere.status, elsewhere.json.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    expect((await call('GET', `/v1/checkout/sessions/${own}`)).json.used).toBe(false);
  });

  it.each([
    ['USD', 'US', 55.75, '55.750', 60],
    ['JPY', 'JP', 1200, '1200.0', 1300],
    ['KWD', 'KW', 1.5, '1.500', 1.501],
  ])(
    'a page may send the displayed amount in %s, but a repeated request must not send a different amount',
    async (currency, country, value, written, later) => {
      const own = await checkout.openSession({ country, amount: { currency, value } });
      const token = await checkout.token(own, '4000000000009995');
      const key = randomUUID();
      const pay = (amount?: object) => checkout.payAsBrowser(own, { token }, key, amount && { amount });
      for (const amount of [
        { currency, value: later },
        { currency: 'EUR', value },
      ]) {
        const refused = await pay(amount);
        expect([refused.status, refused.json.errors[0].field]).toEqual([
          400,
          expect.stringMatching(/^amount/),
        ]);
      }
      const declined = await pay({ currency, value: written });
      expect(declined.json).toMatchObject({ status: 'DECLINED', amount: { currency, value } });
      const change = { amount: { currency, value: later } };
      expect((await call('PATCH', `/v1/checkout/sessions/${own}`, change)).status).toBe(200);
      for (const repeat of [undefined, { currency, value }, { currency, value: written }]) {
        const again = await pay(repeat);
        expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([declined.text, 'true']);
      }
      const other = await pay({ currency, value: later });
      expect([other.status, other.json.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    },
  );

  it('a page can pay a session by wallet, and sees no provider, merchant or customer data in the payment', async () => {
    const terms = { country: 'CO', amount: { currency: 'COP', value: 9000 } };
    const own = await checkout.openSession({ ...terms, customer_id: await checkout.customer() });
    const path = `/v1/checkout/sessions/${own}`;
    const none = await call('GET', `${path}/payment`, undefined, PUBLIC_ONE);
    expect([none.status, none.json.code]).toEqual([404, 'PAYMENT_NOT_FOUND']);
    const key = randomUUID();
    const paid = await checkout.payAsBrowser(own, { type: 'WALLET_B' }, key);
    expect(paid.json).toMatchObject({ status: 'READY_TO_PAY', type: 'WALLET_B', name: '' });
    expect(paid.json.redirect_url).toMatch(/^http/);
    expect(Object.keys(paid.json).sort()).toEqual(
      [
        ...['amount', 'callback_url', 'checkout_session', 'created_at', 'id', 'name', 'redirect_url'],
        ...['response_code', 'response_message', 'status', 'sub_status', 'type'],
      ].sort(),
    );
    const again = await checkout.payAsBrowser(own, { type: 'WALLET_B' }, key);
    expect([again.json, again.headers.get('idempotent-replayed')]).toEqual([paid.json, 'true']);
    expect((await call('GET', `${path}/payment`, undefined, PUBLIC_ONE)).json).toEqual(paid.json);
    expect((await call('GET', `/v1/payments/${paid.json.id}`, undefined, PUBLIC_ONE)).status).toBe(401);
  });

  it('a page gets no redirect URL once the payer is back, even before the provider has confirmed', async () => {
    const own = await checkout.openSession();
    const { json } = await checkout.payAsBrowser(own, { type: 'WALLET_B' });
    expect(json.redirect_url).not.toBe('');
    const [row] = await tables.query('SELECT record FROM payment WHERE id = $1', [json.id]);
    const record = decodeRecord(row?.record as Buffer);
    record.status = Payment_Status.PENDING;
    record.subStatus = Payment_SubStatus_Value.IN_PROCESS;
    await tables.query('UPDATE payment SET record = $1 WHERE id = $2', [encodeRecord(record), json.id]);
    const now = await call('GET', `/v1/checkout/sessions/${own}/payment`, undefined, PUBLIC_ONE);
    expect([now.json.sub_status, now.json.redirect_url]).toEqual(['IN_PROCESS', '']);
    record.status = Payment_Status.SUCCEEDED;
    record.subStatus = Payment_SubStatus_Value.APPROVED;
    await tables.query('UPDATE payment SET record = $1 WHERE id = $2', [encodeRecord(record), json.id]);
    const later = await call('GET', `/v1/checkout/sessions/${own}/payment`, undefined, PUBLIC_ONE);
    expect([later.json.status, later.json.redirect_url]).toEqual(['SUCCEEDED', '']);
  });

  it('a page must send an idempotency key with a payment', async () => {
    const own = await checkout.openSession();
    const path = `/v1/checkout/sessions/${own}/payments`;
    const refused = await call(
      'POST',
      path,
      { payment_method: { token: await checkout.token(own) } },
      PUBLIC_ONE,
    );
    expect([refused.status, refused.json.code]).toEqual([400, 'IDEMPOTENCY_KEY_MISSING']);
  });

  it('empty stored credentials from a page ask for nothing, as when they are absent', async () => {
    const own = await checkout.openSession();
    const card = { stored_credentials: { reason: '', network_transaction_id: null } };
    const paid = await checkout.payAsBrowser(own, { token: await checkout.token(own), detail: { card } });
    expect([paid.status, paid.json.status]).toEqual([201, 'SUCCEEDED']);
  });

  it('a redirect made with only the public key can name no customer and no session', async () => {
    const stored = [{ customer_payer: { id: await checkout.customer() } }, { checkout: { session } }];
    const headers = () => ({ ...PUBLIC_ONE, 'x-idempotency-key': randomUUID() });
    for (const named of stored) {
      const refused = await call('POST', '/v1/payments', { ...walletPayment(), ...named }, headers());
      expect([refused.status, refused.json.code]).toEqual([401, 'INVALID_CREDENTIALS']);
    }
    expect((await call('POST', '/v1/payments', walletPayment(), headers())).status).toBe(201);
  });

  it.each([
    [
      'a card number',
      { payment_method: { type: 'CARD', detail: { card: { card_data: cardData() } } } },
      'payment_method.detail.card.card_data.number',
    ],
    [
      'a customer',
      {
        payment_method: { type: 'WALLET_B' },
        customer_payer: { id: 'c0000000-0000-4000-8000-000000000001' },
      },
      'customer_payer.id',
    ],
    [
      'vaulting without a customer',
      { payment_method: { token: 't', vault_on_success: true } },
      'payment_method.vault_on_success',
    ],
    [
      'a stored card of another customer',
      { payment_method: { type: 'CARD', vaulted_token: '70ce0000-0000-4000-8000-000000000002' } },
      'payment_method.vaulted_token',
    ],
    ['no payment method', {}, 'payment_method'],
    ...Object.entries({
      capture: false,
      verify: true,
      soft_descriptor: 'ANOTHER SHOP',
      stored_credentials: { reason: 'UNSCHEDULED_CARD_ON_FILE', usage: 'USED' },
      three_d_secure: { electronic_commerce_indicator: '05', cryptogram: 'AAAA' },
    }).map(([option, value]): [string, object, string] => [
      `the merchant-only option ${option}`,
      { payment_method: { token: 't', detail: { card: { [option]: value } } } },
      `payment_method.detail.card.${option}`,
    ]),
  ])(
    'the refusal of a payment by a page with only the public key names the bad field: %s',
    async (_what, body, field) => {
      const headers = { ...PUBLIC_ONE, 'x-idempotency-key': randomUUID() };
      const refused = await call('POST', `/v1/checkout/sessions/${session}/payments`, body, headers);
      expect([refused.status, refused.json.errors[0].field]).toEqual([400, field]);
      expect(refused.text).not.toContain('41111111');
    },
  );
});
