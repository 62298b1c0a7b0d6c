import { randomUUID } from 'node:crypto';
import { ConnectError } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { ErrorInfoSchema } from '#gen/google/rpc/error_details_pb.js';
import { TokenService } from '#gen/payments/v1/token_service_pb.js';
import { ageOut } from '#src/server/age-out.ts';
import { openTestDatabase } from '../support/database.ts';
import { cardPayment } from '../support/payment-requests.ts';
import { ONE, PUBLIC_ONE, rpcClients, TWO, UNKNOWN } from './calls.ts';
import { cardData, sentCard } from './checkout.ts';
import { call, checkout, onOwnServer, server, tables } from './own-server.ts';

const CARD = '4539578763621486';
const CODE = '9417';
const DECLINED_CARD = '4000000000000002';
/** The sandbox declines this security code. */
const HALF_HOUR_MS = 1_800_000;

onOwnServer();

const create = (card: object = {}, headers: Record<string, string> = ONE) =>
  call('POST', '/v1/tokens', { card_data: { ...cardData(CARD), ...card } }, headers);
const pay = (method: object, change: object = {}, key: string = randomUUID()) =>
  call(
    'POST',
    '/v1/payments',
    { ...cardPayment(), payment_method: method, ...change },
    {
      ...ONE,
      'x-idempotency-key': key,
    },
  );
const sealedOf = async (token: string) =>
  (await tables.query('SELECT sealed FROM one_time_token WHERE id = $1', [token]))[0]?.sealed;

describe('one-time tokens', () => {
  it('a one-time token can be used in place of a card for half an hour, and is returned with the card masked', async () => {
    const made = await create({ security_code: CODE });
    const { token, created_at, expires_at } = made.json;
    expect(made.status).toBe(201);
    expect(made.json).toMatchObject({
      ...{ type: 'CARD', checkout_session: '' },
      card_data: { iin: CARD.slice(0, 8), lfd: CARD.slice(-4), brand: 'VISA', security_code_length: 4 },
    });
    expect(made.text).not.toContain(CARD);
    expect(made.text).not.toMatch(new RegExp(`(?<![\\w.-])${CODE}(?![\\w.-])`));
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(HALF_HOUR_MS);
    const paid = await pay({ token });
    expect(paid.json).toMatchObject({ status: 'SUCCEEDED', workflow: 'DIRECT' });
    expect(paid.json.payment_method).toMatchObject({
      ...{ type: 'CARD', token, vaulted_token: '' },
      payment_method_detail: { card: { card_data: { lfd: CARD.slice(-4), security_code_length: 4 } } },
    });
  });

  it('a session’s token can be created from a card in payment_method', async () => {
    const session = await checkout.openSession();
    const path = `/v1/checkout/sessions/${session}/token`;
    const key = { ...PUBLIC_ONE, 'x-idempotency-key': randomUUID() };
    const card = { ...cardData(CARD), security_code: CODE };
    const made = await call('POST', path, { payment_method: { type: 'CARD', card } }, key);
    expect([made.status, made.json.card_data?.lfd]).toEqual([201, CARD.slice(-4)]);
    // The request counts as the same in either form, even with another security code.
    const again = await call('POST', path, { card_data: { ...card, security_code: '' } }, key);
    expect([again.json, again.headers.get('idempotent-replayed')]).toEqual([made.json, 'true']);
    const paid = await checkout.pay(session, { token: made.json.token });
    expect(paid.json.status).toBe('SUCCEEDED');
  });

  it.each([
    ['card_data', {}, 'REQUIRED'],
    ['card_data', { payment_method: { type: 'CARD' } }, 'REQUIRED'],
    [
      'payment_method.card.number',
      { payment_method: { card: cardData('4539578763621487') } },
      'INVALID_FORMAT',
    ],
    ['payment_method.type', { payment_method: { type: 'WALLET_B', card: cardData() } }, 'NOT_ALLOWED'],
    [
      'payment_method.card.holder_name',
      { payment_method: { card: { ...cardData(), holder_name: '4111111111111111' } } },
      'NOT_ALLOWED',
    ],
    [
      'payment_method.card',
      { card_data: cardData(), payment_method: { card: cardData(CARD) } },
      'NOT_ALLOWED',
    ],
  ])(
    'a session’s token with a bad field is not created, and the error names the field: %s',
    async (field, body, code) => {
      const session = await checkout.openSession();
      const refused = await call('POST', `/v1/checkout/sessions/${session}/token`, body, PUBLIC_ONE);
      expect([refused.status, refused.json.errors[0]]).toMatchObject([400, { field, code }]);
    },
  );

  it('a payment by one-time token accepts card options, and can store the card', async () => {
    const { token } = (await create()).json;
    const method = { type: 'CARD', token, vault_on_success: true, detail: { card: { installments: 6 } } };
    const paid = await pay(method);
    expect(paid.json.payment_method.payment_method_detail.card.installments).toBe(6);
    const vaulted = { type: 'CARD', vaulted_token: paid.json.payment_method.vaulted_token };
    expect((await pay(vaulted)).json.status).toBe('SUCCEEDED');
  });

  it('a one-time token can be used once, and the payment, approved or declined, erases its ciphertext', async () => {
    for (const number of [CARD, DECLINED_CARD]) {
      const { token } = (await create({ number })).json;
      expect(await sealedOf(token)).toMatch(/^ey/);
      expect((await pay({ token })).json.status).toBe(number === CARD ? 'SUCCEEDED' : 'DECLINED');
      expect(await sealedOf(token)).toBeNull();
      const again = await pay({ token });
      expect([again.status, again.json.code]).toEqual([400, 'TOKEN_NOT_FOUND']);
      expect(again.json.errors[0].field).toBe('payment_method.token');
    }
  });

  it('a payment by one-time token is replayed under its key', async () => {
    const { token } = (await create()).json;
    const key = randomUUID();
    const [first, second] = await Promise.all([pay({ token }, {}, key), pay({ token }, {}, key)]);
    expect(second?.text).toBe(first?.text);
    const again = await pay({ token }, {}, key);
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([first?.text, 'true']);
  });

  it('one of many concurrent payments with a one-time token succeeds, and the others are refused', async () => {
    const { token } = (await create()).json;
    const paid = await Promise.all(Array.from({ length: 10 }, () => pay({ token })));
    expect(paid.filter(({ status }) => status === 201).length).toBe(1);
    for (const { status, json } of paid.filter((one) => one.status !== 201)) {
      expect([status, json.code]).toEqual([400, 'TOKEN_NOT_FOUND']);
    }
    const uses = await tables.query('SELECT payment_id FROM single_use WHERE object_id = $1', [token]);
    const made = await tables.query('SELECT id FROM payment WHERE id = $1', [uses[0]?.payment_id]);
    expect([uses.length, made.length]).toEqual([1, 1]);
  });

  it('a request repeated with the same key creates one token, even with a different security code', async () => {
    const headers = { ...ONE, 'x-idempotency-key': randomUUID() };
    const made = await create({ security_code: '123' }, headers);
    const again = await create({ security_code: '' }, headers);
    expect([again.json, again.headers.get('idempotent-replayed')]).toEqual([made.json, 'true']);
    expect((await create({ number: DECLINED_CARD }, headers)).json.code).toBe('IDEMPOTENCY_KEY_REUSED');
  });

  it('an expired one-time token is refused and deleted', async () => {
    const [old, used, young] = [await create(), await create(), await create()].map(({ json }) => json.token);
    await pay({ token: used });
    await tables.query('UPDATE one_time_token SET expires_at = now() WHERE id = ANY ($1)', [[old, used]]);
    expect((await pay({ token: old })).json.code).toBe('TOKEN_NOT_FOUND');
    const database = openTestDatabase(server.databaseUrl, 2);
    await Promise.all([ageOut(database), ageOut(database)]);
    await database.close();
    const left = await tables.query('SELECT id FROM one_time_token WHERE id = ANY ($1)', [
      [old, used, young],
    ]);
    const uses = await tables.query('SELECT 1 FROM single_use WHERE object_id = $1', [used]);
    expect([left, uses]).toEqual([[{ id: young }], []]);
    expect((await pay({ token: used })).json.code).toBe('TOKEN_NOT_FOUND');
    expect((await pay({ token: young })).status).toBe(201);
  });

  it.each([
    ['card_data', undefined],
    ['card_data.number', { ...cardData(), number: undefined }],
    ['card_data.number', { ...cardData(), number: '4111111111111112' }],
    ['card_data.number', { ...cardData(), number: '4111 1111 1111 1111' }],
    ['card_data.expiration_month', { ...cardData(), expiration_month: 13 }],
    ['card_data.expiration_month', { ...cardData(), expiration_month: undefined }],
    ['card_data.expiration_year', { ...cardData(), expiration_year: undefined }],
    ['card_data.security_code', { ...cardData(), security_code: '12' }],
  ])(
    'a token with a bad field is not created, and the error names the field without its value: %s',
    async (field, card_data) => {
      const refused = await call('POST', '/v1/tokens', { card_data });
      expect([refused.status, refused.json.code, refused.json.errors[0].field]).toEqual([
        ...[400, 'INVALID_PARAMETERS', field],
      ]);
      expect(refused.text).not.toMatch(/4111 ?1111/);
    },
  );

  it.each([
    ['payment_method.token', { token: true, detail: { card: { card_data: cardData() } } }],
    ['payment_method.token', { token: true, vaulted_token: UNKNOWN }],
    ['payment_method.token', { token: true, type: 'WALLET_B' }],
  ])('a one-time token is refused together with another payment method: %s', async (field, method) => {
    const { token } = (await create()).json;
    const refused = await pay({ ...method, token }, { country: 'US', workflow: undefined });
    expect([refused.status, refused.json.errors[0].field]).toEqual([400, field]);
    expect(await sealedOf(token)).not.toBeNull();
  });

  it('a one-time token cannot be found by another account, and tokens require the secret key', async () => {
    const { token } = (await create({}, TWO)).json;
    expect((await pay({ token })).json.code).toBe('TOKEN_NOT_FOUND');
    expect((await pay({ token: 'nothing' })).json.code).toBe('TOKEN_NOT_FOUND');
    expect((await create({}, PUBLIC_ONE)).json.code).toBe('INVALID_CREDENTIALS');
    const body = { ...cardPayment(), payment_method: { token: (await create()).json.token } };
    const open = await call('POST', '/v1/payments', body, { ...PUBLIC_ONE, 'x-idempotency-key': 'k' });
    expect([open.status, open.json.code]).toEqual([401, 'INVALID_CREDENTIALS']);
  });
});

describe('one-time tokens of a checkout session', () => {
  it('a session’s token can be used to pay that session, from the merchant’s server or from the browser', async () => {
    const byServer = await checkout.openSession();
    const paid = await checkout.pay(byServer, { token: await checkout.token(byServer) });
    expect(paid.json).toMatchObject({ status: 'SUCCEEDED', workflow: 'SDK_CHECKOUT' });
    const byBrowser = await checkout.openSession();
    const told = await checkout.payAsBrowser(byBrowser, { token: await checkout.token(byBrowser) });
    expect(told.status).toBe(201);
    expect(told.json).toMatchObject({
      ...{ status: 'SUCCEEDED', sub_status: 'APPROVED', checkout_session: byBrowser, redirect_url: '' },
      ...{ amount: { currency: 'USD', value: 55.75 }, type: 'CARD', name: 'VISA ****1111' },
      callback_url: `https://shop.example/back?payment_id=${told.json.id}&status=SUCCEEDED`,
    });
  });

  it('a session’s token cannot be used in another session, or in a payment without a session', async () => {
    const [one, two] = [await checkout.openSession(), await checkout.openSession()];
    const token = await checkout.token(one);
    for (const refused of [await checkout.pay(two, { token }), await pay({ token })]) {
      expect([refused.status, refused.json.code]).toEqual([400, 'TOKEN_NOT_FOUND']);
    }
    expect((await checkout.pay(one, { token })).status).toBe(201);
  });

  it('after a session is used, a request that created a token for it is replayed, and a new request is refused', async () => {
    const session = await checkout.openSession();
    const path = `/v1/checkout/sessions/${session}/token`;
    const headers = { ...PUBLIC_ONE, 'x-idempotency-key': randomUUID() };
    const make = (change: object = {}) =>
      call('POST', path, { card_data: { ...cardData(), ...change } }, headers);
    const made = await make();
    expect((await checkout.payAsBrowser(session, { token: made.json.token })).json.status).toBe('SUCCEEDED');
    const again = await make();
    expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([
      ...[201, made.text, 'true'],
    ]);
    expect((await make({ expiration_month: 1 })).json.code).toBe('IDEMPOTENCY_KEY_REUSED');
    headers['x-idempotency-key'] = randomUUID();
    expect((await make()).json.code).toBe('CHECKOUT_SESSION_NOT_FOUND');
  });

  it('a token cannot be created for a used or unknown session, or for one of another account', async () => {
    const session = await checkout.openSession();
    await checkout.pay(session, sentCard());
    for (const [id, headers] of [
      [session, PUBLIC_ONE],
      [UNKNOWN, PUBLIC_ONE],
      ['nothing', PUBLIC_ONE],
      [await checkout.openSession(), { 'public-api-key': 'pk_sandbox_two' }],
    ] as const) {
      const refused = await call(
        'POST',
        `/v1/checkout/sessions/${id}/token`,
        { card_data: cardData() },
        headers,
      );
      expect([refused.status, refused.json.code]).toEqual([404, 'CHECKOUT_SESSION_NOT_FOUND']);
    }
  });
});

describe('tokens over RPC', () => {
  it('tokens can be created over every RPC protocol, and with only the public key for a session', async () => {
    const { clients, close } = rpcClients(server.url, TokenService);
    const session = await checkout.openSession();
    const card = { number: CARD, expirationMonth: 12, expirationYear: 30 };
    for (const { client } of clients) {
      const made = await client.createToken({ cardData: card }, { headers: ONE });
      expect((await pay({ token: made.token })).json.status).toBe('SUCCEEDED');
      const of = await client.createCheckoutToken(
        { checkoutSession: session, cardData: card },
        { headers: PUBLIC_ONE },
      );
      expect(of).toMatchObject({ checkoutSession: session, cardData: { lfd: CARD.slice(-4) } });
      const refused = await client
        .createToken({ cardData: card }, { headers: PUBLIC_ONE })
        .catch(ConnectError.from);
      expect((refused as ConnectError).findDetails(ErrorInfoSchema)[0]?.reason).toBe('INVALID_CREDENTIALS');
    }
    close();
  });
});
