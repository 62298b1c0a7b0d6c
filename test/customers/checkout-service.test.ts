import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { CheckoutService } from '#gen/payments/v1/checkout_service_pb.js';
import { ACCOUNT_ONE, ACCOUNT_TWO, CHECKOUT_SESSION, cardPayment } from '../support/payment-requests.ts';
import { ONE, PUBLIC_ONE, rpcClients, TWO, UNKNOWN } from './calls.ts';
import { sentCard, TERMS } from './checkout.ts';
import { call, checkout, onOwnServer, server, tables } from './own-server.ts';

const DECLINED_CARD = '4000000000000002';
const HANGING_CARD = '4000000000002008';

onOwnServer();

const create = (body: object = {}, headers: Record<string, string> = ONE) =>
  call('POST', '/v1/checkout/sessions', { ...TERMS, ...body }, headers);
const path = (session: string) => `/v1/checkout/sessions/${session}`;

describe('checkout sessions', () => {
  it('a checkout session is open for five hours, and a read returns it unchanged', async () => {
    const metadata = [{ key: 'cart', value: '🛒 7' }];
    const made = await create({ metadata });
    const { checkout_session: session, created_at, updated_at, expires_at } = made.json;
    expect([made.status, made.headers.get('location')]).toEqual([201, path(session)]);
    expect(made.json).toEqual({
      ...TERMS,
      metadata,
      workflow: 'SDK_CHECKOUT',
      customer_id: null,
      payment_method_types: [],
      security_code_required: false,
      max_installments: 0,
      used: false,
      ...{ checkout_session: session, created_at, updated_at, expires_at },
    });
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(5 * 3_600_000);
    expect((await call('GET', path(session))).json).toEqual(made.json);
  });

  it('a read with only the public key returns the session without its customer and metadata', async () => {
    const customer_id = await checkout.customer();
    const { json } = await create({ customer_id, metadata: [{ key: 'a', value: 'b' }] });
    const told = await call('GET', path(json.checkout_session), undefined, PUBLIC_ONE);
    expect([told.status, told.json]).toEqual([200, { ...json, customer_id: null, metadata: [] }]);
  });

  it('a request repeated with the same key opens only one checkout session', async () => {
    const headers = { ...ONE, 'x-idempotency-key': randomUUID() };
    const [one, two] = [await create({}, headers), await create({}, headers)];
    expect([two.json, two.headers.get('idempotent-replayed')]).toEqual([one.json, 'true']);
    expect((await create({ country: 'CO' }, headers)).json.code).toBe('IDEMPOTENCY_KEY_REUSED');
  });

  it.each([
    ['account_id', { account_id: null }, 'INVALID_PARAMETERS'],
    ['account_id', { account_id: ACCOUNT_TWO }, 'AUTHORIZATION_REQUIRED'],
    ['merchant_order_id', { merchant_order_id: '' }, 'INVALID_PARAMETERS'],
    ['country', { country: 'ZZ' }, 'INVALID_PARAMETERS'],
    ['amount.value', { amount: { currency: 'USD', value: 0 } }, 'INVALID_PARAMETERS'],
    ['amount.value', { amount: { currency: 'USD', value: 1.001 } }, 'INVALID_PARAMETERS'],
    ['amount.currency', { amount: { currency: 'XXX', value: 1 } }, 'INVALID_PARAMETERS'],
    ['callback_url', { callback_url: 'javascript:alert(1)' }, 'INVALID_PARAMETERS'],
    ['customer_id', { customer_id: UNKNOWN }, 'CUSTOMER_NOT_FOUND'],
    ['customer_id', { customer_id: 'nobody' }, 'CUSTOMER_NOT_FOUND'],
    ['workflow', { workflow: 'SOMEHOW' }, 'INVALID_PARAMETERS'],
  ])('the refusal of a checkout session names the bad field: %s', async (field, body, code) => {
    const refused = await create(body);
    expect([refused.json.code, refused.json.errors[0].field]).toEqual([code, field]);
  });

  it('an update changes only the fields it sends, and payments are checked against the changed session', async () => {
    const session = await checkout.openSession();
    const changes = { amount: { currency: 'USD', value: 60 }, callback_url: null, workflow: 'DIRECT' };
    const changed = await call('PATCH', path(session), changes);
    expect(changed.json).toMatchObject({ ...TERMS, ...changes });
    const cleared = await call('PATCH', path(session), { workflow: null });
    expect(cleared.json.workflow).toBe('SDK_CHECKOUT');
    expect((await call('PATCH', path(session), { country: null })).json.errors[0].field).toBe('country');
    const before = await checkout.pay(session, sentCard());
    expect([before.status, before.json.errors[0].field]).toEqual([400, 'amount.value']);
    const paid = await checkout.pay(session, sentCard(), { amount: { currency: 'USD', value: '60.00' } });
    expect(paid.json).toMatchObject({ status: 'SUCCEEDED', callback_url: null });
    const after = await call('PATCH', path(session), { country: 'CO' });
    expect([after.status, after.json.code]).toEqual([404, 'CHECKOUT_SESSION_NOT_FOUND']);
  });

  it('a checkout session with a malformed or unknown ID, or of another account, is not found', async () => {
    const session = await checkout.openSession();
    for (const [id, headers] of [
      [session, TWO],
      [UNKNOWN, ONE],
      ['nothing', ONE],
    ] as const) {
      for (const [method, suffix, body] of [
        ['GET', ''],
        ['PATCH', '', {}],
        ['GET', '/payment-methods'],
        ['GET', '/payment'],
      ] as const) {
        const refused = await call(method, path(id) + suffix, body, headers);
        expect([refused.status, refused.json.code]).toEqual([404, 'CHECKOUT_SESSION_NOT_FOUND']);
      }
    }
    const paid = await call(
      'POST',
      '/v1/payments',
      { ...cardPayment(), checkout: { session: UNKNOWN } },
      {
        ...ONE,
        'x-idempotency-key': randomUUID(),
      },
    );
    expect([paid.status, paid.json.code]).toEqual([400, 'CHECKOUT_SESSION_NOT_FOUND']);
  });

  it('a checkout session cannot be opened or changed with only the public key', async () => {
    const session = await checkout.openSession();
    expect((await create({}, PUBLIC_ONE)).json.code).toBe('INVALID_CREDENTIALS');
    expect((await call('PATCH', path(session), {}, PUBLIC_ONE)).json.code).toBe('INVALID_CREDENTIALS');
  });
});

describe('paying a checkout session', () => {
  it('a payment in a checkout session takes its terms from the session and uses the session up', async () => {
    const customer_id = await checkout.customer();
    const session = await checkout.openSession({ customer_id, metadata: [{ key: 'cart', value: '7' }] });
    const paid = await checkout.pay(session, sentCard());
    expect(paid.json).toMatchObject({
      status: 'SUCCEEDED',
      description: 'Two tickets',
      callback_url: TERMS.callback_url,
      metadata: [{ key: 'cart', value: '7' }],
      checkout: { session },
      customer_payer: { id: customer_id },
      workflow: 'SDK_CHECKOUT',
    });
    expect((await call('GET', path(session))).json.used).toBe(true);
    const again = await checkout.pay(session, sentCard());
    expect([again.status, again.json.code]).toEqual([400, 'CHECKOUT_SESSION_NOT_FOUND']);
    expect(again.json.detail).toContain('already has a payment');
  });

  it('a payment is replayed under its key after it has used up the session', async () => {
    const session = await checkout.openSession();
    const key = randomUUID();
    const paid = await checkout.pay(session, sentCard(), {}, key);
    const again = await checkout.pay(session, sentCard(), {}, key);
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([paid.text, 'true']);
  });

  it('a checkout session stays open after a decline, so that another payment can succeed', async () => {
    const session = await checkout.openSession();
    const declined = await checkout.pay(session, sentCard(DECLINED_CARD));
    expect(declined.json.status).toBe('DECLINED');
    expect((await call('GET', path(session))).json.used).toBe(false);
    expect((await checkout.pay(session, sentCard())).json.status).toBe('SUCCEEDED');
  });

  it('a checkout session allows at most twenty payments, which limits card testing', async () => {
    const session = await checkout.openSession();
    const decline = () => checkout.pay(session, sentCard(DECLINED_CARD));
    for (let tries = 1; tries <= 18; tries++) expect((await decline()).json.status).toBe('DECLINED');
    await Promise.all(Array.from({ length: 6 }, decline));
    while ((await decline()).status === 201);
    const rows = await tables.query('SELECT payments FROM checkout_session WHERE id = $1', [session]);
    expect(rows).toEqual([{ payments: 20 }]);
    const refused = await checkout.pay(session, sentCard());
    expect(refused.json).toMatchObject({
      code: 'CHECKOUT_SESSION_NOT_FOUND',
      detail: 'checkout.session: has had 20 payments, the maximum',
    });
  });

  it('a checkout session stays in use while the outcome of its payment is unknown', async () => {
    const session = await checkout.openSession();
    expect((await checkout.pay(session, sentCard(HANGING_CARD))).json.status).toBe('PENDING');
    expect((await checkout.pay(session, sentCard())).json.code).toBe('CHECKOUT_SESSION_NOT_FOUND');
  });

  it('one of many concurrent payments in a session succeeds, and the others are refused', async () => {
    const session = await checkout.openSession();
    const paid = await Promise.all(Array.from({ length: 8 }, () => checkout.pay(session, sentCard())));
    expect(paid.filter(({ status }) => status === 201).length).toBe(1);
    for (const { status, json } of paid.filter((one) => one.status !== 201)) {
      expect([status, json.code]).toEqual([400, 'CHECKOUT_SESSION_NOT_FOUND']);
    }
    const rows = await tables.query(
      `SELECT p.id FROM payment p JOIN single_use u ON u.account_id = p.account_id AND u.payment_id = p.id WHERE u.object_id = $1`,
      [session],
    );
    expect(rows.length).toBe(1);
  });

  it.each([
    ['amount.value', { amount: { currency: 'USD', value: 55.74 } }],
    ['amount.currency', { amount: { currency: 'EUR', value: 55.75 } }],
    ['country', { country: 'CO' }],
    ['customer_payer.id', { customer_payer: { id: 'c0000000-0000-4000-8000-000000000001' } }],
  ])(
    'if a payment’s %s differs from the session’s, the refusal of the payment names that field',
    async (field, change) => {
      const session = await checkout.openSession({ customer_id: await checkout.customer() });
      const refused = await checkout.pay(session, sentCard(), change);
      expect([refused.status, refused.json.code]).toEqual([400, 'INVALID_PARAMETERS']);
      expect(refused.json.errors.map((error: { field: string }) => error.field)).toContain(field);
      expect((await checkout.pay(session, sentCard())).status).toBe(201);
    },
  );

  it('a payment in an expired checkout session is refused', async () => {
    const session = await checkout.openSession();
    await tables.query('UPDATE checkout_session SET expires_at = now() WHERE id = $1', [session]);
    const refused = await checkout.pay(session, sentCard());
    expect([refused.status, refused.json.code, refused.json.detail]).toEqual([
      ...[400, 'CHECKOUT_SESSION_NOT_FOUND', 'checkout.session: has expired'],
    ]);
    const token = await call('POST', `${path(session)}/token`, { card_data: {} }, PUBLIC_ONE);
    expect(token.status).toBe(400);
  });

  it('SDK_CHECKOUT is allowed only in a session, and makes cards DIRECT and wallets REDIRECT', async () => {
    const outside = await call(
      'POST',
      '/v1/payments',
      { ...cardPayment(), workflow: 'SDK_CHECKOUT' },
      {
        ...ONE,
        'x-idempotency-key': randomUUID(),
      },
    );
    expect(outside.json.errors[0].field).toBe('workflow');
    const session = await checkout.openSession({ country: 'CO', amount: { currency: 'COP', value: 9000 } });
    const change = { country: 'CO', amount: { currency: 'COP', value: 9000 }, workflow: 'SDK_CHECKOUT' };
    const wallet = await checkout.pay(session, { type: 'WALLET_B' }, change);
    expect(wallet.json).toMatchObject({
      ...{ status: 'READY_TO_PAY', sub_status: 'CREATED', workflow: 'SDK_CHECKOUT' },
      checkout: { session, sdk_action_required: true },
    });
    expect(wallet.json.payment_method.payment_method_detail.wallet.redirect_url).toMatch(/^http/);
    const fixture = { ...cardPayment(), checkout: { session: CHECKOUT_SESSION }, workflow: 'SDK_CHECKOUT' };
    for (const _ of [1, 2]) {
      const key = { ...ONE, 'x-idempotency-key': randomUUID() };
      const paid = await call('POST', '/v1/payments', fixture, key);
      expect(paid.json).toMatchObject({ status: 'SUCCEEDED', workflow: 'SDK_CHECKOUT' });
    }
  });
});

describe('the payment methods of a checkout session', () => {
  const offered = async (terms: object) => {
    const session = await checkout.openSession(terms);
    const { status, json } = await call('GET', `${path(session)}/payment-methods`, undefined, PUBLIC_ONE);
    expect([status, Array.isArray(json)]).toEqual([200, true]);
    return json.map((method: { type: string }) => method.type);
  };

  it('a checkout session offers cards, and the redirect wallets and local methods of its country and currency', async () => {
    const inColombia = { country: 'CO', amount: { currency: 'COP', value: 9000 } };
    expect(await offered(inColombia)).toEqual([
      'CARD',
      'WALLET_A_CHECKOUT_PRO',
      'WALLET_B',
      'WALLET_D',
      'WALLET_E',
      'PSE',
      'EFECTY',
    ]);
    expect(await offered({ country: 'DE', amount: { currency: 'EUR', value: 9 } })).toEqual([
      'CARD',
      'WALLET_E',
    ]);
  });

  it('a local method is offered although the payer has yet to send what it needs, and one that needs a bank has the banks', async () => {
    const session = await checkout.openSession({ country: 'CO', amount: { currency: 'COP', value: 9000 } });
    const { json } = await call('GET', `${path(session)}/payment-methods`, undefined, PUBLIC_ONE);
    const byType = Object.fromEntries(json.map((method: { type: string }) => [method.type, method]));
    expect(byType.PSE).toMatchObject({ category: 'BANK_TRANSFER', name: 'PSE' });
    expect(byType.PSE.banks.map(({ id }: { id: string }) => id)).toEqual(['1901', '1902', '1903']);
    expect(Object.hasOwn(byType.EFECTY, 'banks')).toBe(false);
    const inBrazil = { country: 'BR', amount: { currency: 'BRL', value: 9 } };
    expect(await offered(inBrazil)).toEqual(expect.arrayContaining(['PIX', 'BOLETO']));
    // More than a boleto's barcode can say.
    const dear = { ...inBrazil, amount: { currency: 'BRL', value: 100_000_000 } };
    expect(await offered(dear)).not.toContain('BOLETO');
  });
});

describe('checkout sessions over RPC', () => {
  it('a checkout session can be opened, read, changed and listed over every RPC protocol', async () => {
    const { clients, close } = rpcClients(server.url, CheckoutService);
    for (const { client } of clients) {
      const made = await client.createCheckoutSession(
        {
          accountId: ACCOUNT_ONE,
          merchantOrderId: 'order-1',
          country: 'US',
          amount: { currency: 'USD', value: { value: '10' } },
        },
        { headers: ONE },
      );
      const { checkoutSession } = made;
      expect(await client.getCheckoutSession({ checkoutSession }, { headers: PUBLIC_ONE })).toEqual(made);
      const changed = await client.updateCheckoutSession(
        { checkoutSession, paymentDescription: 'A book' },
        { headers: ONE },
      );
      expect(changed).toMatchObject({ paymentDescription: 'A book', amount: made.amount });
      const { paymentMethods } = await client.listCheckoutPaymentMethods(
        { checkoutSession },
        { headers: PUBLIC_ONE },
      );
      expect(paymentMethods[0]).toMatchObject({ type: 'CARD', category: 'CARD', installments: true });
    }
    close();
  });
});
