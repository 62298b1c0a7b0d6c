import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  PaymentMethodService,
  StoredPaymentMethod_Status,
} from '#gen/payments/v1/payment_method_service_pb.js';
import { sandboxCatalogue } from '../support/catalogues.ts';
import { ENROLLED_WALLET, walletPayment } from '../support/payment-requests.ts';
import { startTestServer } from '../support/server.ts';
import { openTables } from '../support/tables.ts';
import { type Receiver, startReceiver } from '../webhooks/receiver.ts';
import { ONE, type Response, restCalls, rpcClients, TWO, UNKNOWN } from './calls.ts';
import { cardData, checkoutCalls } from './checkout.ts';
import { call, checkout, onOwnServer, server, tables } from './own-server.ts';

const TYPE = 'WALLET_C_ENROLLMENT';
const BACK = 'https://shop.example/back?a=1';

onOwnServer();
let shop: Receiver;
let customer: string;

beforeAll(async () => {
  shop = await startReceiver();
  await call('POST', '/v1/webhooks', { url: shop.url, events: ['enrollment.enroll', 'enrollment.unenroll'] });
});
afterAll(async () => {
  await shop?.close();
});
beforeEach(async () => {
  customer = await checkout.customer();
});

const path = () => `/v1/customers/${customer}/payment-methods`;
const enroll = (change: object = {}, headers: Record<string, string> = ONE) =>
  call('POST', path(), { type: TYPE, country: 'CO', callback_url: BACK, ...change }, headers);
const get = async (id: string) => (await call('GET', `${path()}/${id}`)).json;
/** Simulates the payer pressing a button on the wallet's page. */
const press = (made: Response, action: string) =>
  fetch(`${made.json.redirect_url}/${action}`, { method: 'POST', redirect: 'manual' });
const comeBack = (id: string) =>
  fetch(`${server.url}/v1/enrollments/${id}/return?sandbox_status=agreed`, { redirect: 'manual' });
/** Lets the payer's time run out while the provider cannot be called. */
const overdue = (id: string) =>
  tables.query(
    `UPDATE vaulted_token SET connection_identity = 'another account', expires_at = now() - interval '2 hours',
       check_at = now() WHERE id = $1`,
    [id],
  );
const pay = (token: string) =>
  call(
    'POST',
    '/v1/payments',
    {
      ...walletPayment(),
      ...{ country: 'CO', amount: { currency: 'COP', value: 9000 }, workflow: 'DIRECT' },
      ...{ description: 'sandbox:done_after:1', customer_payer: { id: customer } },
      payment_method: { type: TYPE, vaulted_token: token },
    },
    { ...ONE, 'x-idempotency-key': randomUUID() },
  );

it('a payer who returns before the wallet has confirmed sees a waiting page if there is no callback_url', async () => {
  const made = await enroll({ callback_url: null });
  expect(await (await comeBack(made.json.id)).text()).toContain('Almost done');
});

describe('wallet enrollments', () => {
  it('a wallet waits for its payer, is ENROLLED when the payer has agreed and returned, and can then be used to pay', async () => {
    const made = await enroll();
    const { id } = made.json;
    expect([made.status, made.headers.get('location')]).toEqual([201, `${path()}/${id}`]);
    expect(made.json).toMatchObject({
      ...{
        vaulted_token: id,
        customer_id: customer,
        type: TYPE,
        name: TYPE,
        category: 'WALLET',
        country: 'CO',
      },
      ...{ status: 'READY_TO_ENROLL', card_data: null, last_successfully_used_at: null },
    });
    expect(made.json.redirect_url).toMatch(/^http/);
    expect((await get(id)).status).toBe('READY_TO_ENROLL');
    expect((await call('GET', path())).json).toEqual({ payment_methods: [] });
    expect((await pay(id)).json.code).toBe('VAULTED_TOKEN_NOT_FOUND');
    expect(await (await fetch(made.json.redirect_url)).text()).toContain(TYPE);

    await press(made, 'pay');
    const back = await comeBack(id);
    expect([back.status, back.headers.get('location')]).toEqual([
      303,
      `${BACK}&vaulted_token=${id}&status=ENROLLED`,
    ]);
    const enrolled = await get(id);
    expect(enrolled).toMatchObject({ status: 'ENROLLED', redirect_url: '' });
    expect((await call('GET', path())).json).toEqual({ payment_methods: [enrolled] });
    const [event] = await shop.has(1);
    expect([event?.json.type_event, event?.json.data.payment_method]).toEqual([
      'enrollment.enroll',
      enrolled,
    ]);

    const paid = await pay(id);
    expect(paid.json).toMatchObject({ status: 'PENDING', payment_method: { vaulted_token: id } });
    await expect
      .poll(async () => (await call('GET', `/v1/payments/${paid.json.id}`)).json.status)
      .toBe('SUCCEEDED');
    expect((await get(id)).last_successfully_used_at).toMatch(/Z$/);
    const [row] = await tables.query('SELECT provider_token FROM vaulted_token WHERE id = $1', [id]);
    expect(row?.provider_token).toMatch(/^wt_/);
  });

  it('a wallet becomes ENROLLED through a look-up if its payer agrees but never returns', async () => {
    const made = await enroll();
    await press(made, 'pay');
    await expect.poll(async () => (await get(made.json.id)).status).toBe('ENROLLED');
  });

  it.each([
    ['decline', 'DECLINED'],
    ['leave', 'DECLINED'],
  ])('a wallet whose payer chose to %s becomes %s and cannot be used to pay', async (action, status) => {
    const made = await enroll({ callback_url: undefined });
    const { id } = made.json;
    await press(made, action);
    const back = await comeBack(id);
    expect([back.status, await back.text()]).toEqual([200, expect.stringContaining('Wallet not added')]);
    expect(await get(id)).toMatchObject({ status, redirect_url: '' });
    expect((await pay(id)).json.code).toBe('VAULTED_TOKEN_NOT_FOUND');
  });

  it('webhooks get one event for each state of an enrollment', async () => {
    const states = ['ready', 'enroll', 'declined', 'expired', 'unenroll'];
    const events = states.map((state) => `enrollment.${state}`);
    const hook = await startReceiver();
    expect((await call('POST', '/v1/webhooks', { url: hook.url, events })).status).toBe(201);
    const agreed = await enroll();
    const declined = await enroll();
    const expired = await enroll();
    const open = await enroll();
    await press(agreed, 'pay');
    await press(declined, 'decline');
    await overdue(expired.json.id);
    for (const { json } of [agreed, declined]) await comeBack(json.id);
    await expect.poll(async () => (await get(expired.json.id)).status).toBe('EXPIRED');
    await call('DELETE', `/v1/customers/${customer}`);
    const messages = await hook.has(9);
    const told = (made: Response) =>
      messages
        .map(({ json }) => json)
        .filter(({ data }) => data.payment_method.id === made.json.id)
        .map(({ type_event, data }) => `${type_event} ${data.payment_method.status}`)
        .sort();
    const ready = 'enrollment.ready READY_TO_ENROLL';
    const ended = 'enrollment.unenroll UNENROLLED';
    expect(told(agreed)).toEqual(['enrollment.enroll ENROLLED', ready, ended]);
    expect(told(declined)).toEqual(['enrollment.declined DECLINED', ready]);
    expect(told(expired)).toEqual(['enrollment.expired EXPIRED', ready]);
    expect(told(open)).toEqual([ready, ended]);
    const first = messages.find(
      ({ json }) => json.type_event === 'enrollment.ready' && json.data.payment_method.id === open.json.id,
    );
    expect(first?.json.data.payment_method).toEqual(open.json);
    await hook.close();
  });

  it('opening the return URL does not enroll a wallet, since only the provider’s report counts', async () => {
    const { id } = (await enroll()).json;
    const back = await comeBack(id);
    expect(back.headers.get('location')).toContain('status=READY_TO_ENROLL');
    expect((await comeBack(UNKNOWN)).status).toBe(404);
    expect((await comeBack('nothing')).status).toBe(404);
  });

  it('a wallet unenrolled before the payer agrees, by a call or by deleting the customer, stays unenrolled', async () => {
    const [one, two] = [await enroll(), await enroll()];
    const ended = await call('POST', `${path()}/${one.json.id}/unenroll`, {});
    expect(ended.json).toMatchObject({ status: 'UNENROLLED', redirect_url: '' });
    await call('DELETE', `/v1/customers/${customer}`);
    for (const made of [one, two]) {
      await press(made, 'pay');
      await comeBack(made.json.id);
      const rows = await tables.query(
        'SELECT status, active, provider_token, redirect_url, check_at FROM vaulted_token WHERE id = $1',
        [made.json.id],
      );
      expect(rows).toEqual([
        { status: 'UNENROLLED', active: false, provider_token: null, redirect_url: null, check_at: null },
      ]);
    }
  });

  it('a wallet becomes EXPIRED if the payer’s time has run out and its provider cannot be called', async () => {
    const { id } = (await enroll()).json;
    await overdue(id);
    await expect.poll(async () => (await get(id)).status).toBe('EXPIRED');
  });

  it('a request repeated with the same key enrolls a wallet once', async () => {
    const headers = { ...ONE, 'x-idempotency-key': randomUUID() };
    const [made, raced] = await Promise.all([enroll({}, headers), enroll({}, headers)]);
    expect(raced.json).toEqual(made.json);
    const again = await enroll({}, headers);
    expect([again.json, again.headers.get('idempotent-replayed')]).toEqual([made.json, 'true']);
    expect((await enroll({ callback_url: null }, headers)).json.code).toBe('IDEMPOTENCY_KEY_REUSED');
  });

  it('an enrollment is still replayed after its wallet has been removed from the catalogue', async () => {
    const headers = { ...ONE, 'x-idempotency-key': randomUUID() };
    const made = await enroll({}, headers);
    server.replaceCatalogue(sandboxCatalogue(10_000).replaceAll(TYPE, 'ANOTHER_WALLET'));
    try {
      const again = await enroll({}, headers);
      expect([again.json, again.headers.get('idempotent-replayed')]).toEqual([made.json, 'true']);
      expect((await enroll()).json.code).toBe('PAYMENT_METHOD_NOT_AVAILABLE');
    } finally {
      server.replaceCatalogue(sandboxCatalogue(10_000));
    }
  });

  it.each([
    ['PAYMENT_METHOD_NOT_AVAILABLE', 'type', { type: 'WALLET_B' }],
    ['PAYMENT_METHOD_NOT_AVAILABLE', 'type', { type: 'NOTHING' }],
    ['PAYMENT_METHOD_NOT_AVAILABLE', 'type', { type: 'PIX' }],
    ['OPERATION_NOT_SUPPORTED', 'type', { type: 'GOOGLE_PAY' }],
    ['PAYMENT_METHOD_NOT_AVAILABLE', 'country', { country: 'US' }],
    ['INVALID_PARAMETERS', 'country', { country: undefined }],
    ['INVALID_PARAMETERS', 'card_data', { card_data: cardData() }],
    ['INVALID_PARAMETERS', 'callback_url', { callback_url: 'https://user@shop.example' }],
    ['INVALID_PARAMETERS', 'callback_url', { type: 'CARD', card_data: cardData() }],
    ['NOT_SUPPORTED', 'verify', { type: 'CARD', callback_url: null, card_data: cardData(), verify: true }],
    ['NOT_SUPPORTED', 'provider_data', { provider_data: { id: 'provider', token: '1' } }],
  ])('an enrollment is refused as %s for the bad field %s', async (code, field, change) => {
    const refused = await enroll(change);
    expect([refused.status, refused.json.code, refused.json.errors[0].field]).toEqual([400, code, field]);
  });

  it('enrolling a wallet is refused for a customer of another account, and at the limit of methods', async () => {
    expect((await enroll({}, TWO)).json.code).toBe('CUSTOMER_NOT_FOUND');
    await tables.query(
      `INSERT INTO vaulted_token (account_id, customer_id, id, type, connection_id, active)
       SELECT account_id, id, gen_random_uuid(), 'WALLET_C_ENROLLMENT', 'sandbox-one', true FROM customer, generate_series(1, 100)
       WHERE id = $1`,
      [customer],
    );
    expect((await enroll()).json.code).toBe('STORED_METHOD_LIMIT_REACHED');
  });

  it('a wallet cannot be used at a connection other than the one at which it was enrolled', async () => {
    const made = await enroll();
    await press(made, 'pay');
    await comeBack(made.json.id);
    await tables.query(`UPDATE vaulted_token SET connection_id = 'gone' WHERE id = $1`, [made.json.id]);
    const refused = await pay(made.json.id);
    expect([refused.json.code, refused.json.errors[0].field]).toEqual([
      'OPERATION_NOT_SUPPORTED',
      'payment_method.vaulted_token',
    ]);
  });

  it('a wallet can be enrolled over every RPC protocol', async () => {
    const { clients, close } = rpcClients(server.url, PaymentMethodService);
    const options = { headers: ONE };
    for (const { client } of clients) {
      const asked = { customerId: customer, type: TYPE, country: 'CO', callbackUrl: BACK };
      const { id, status, redirectUrl } = await client.enrollPaymentMethod(asked, options);
      expect([status, redirectUrl]).toEqual([
        StoredPaymentMethod_Status.READY_TO_ENROLL,
        expect.stringMatching(/^http/),
      ]);
      await fetch(`${redirectUrl}/pay`, { method: 'POST', redirect: 'manual' });
      await comeBack(id);
      const after = await client.getPaymentMethod({ customerId: customer, id }, options);
      expect(after.status).toBe(StoredPaymentMethod_Status.ENROLLED);
    }
    close();
  });
});

it('enrolling at an unreachable provider returns 503, stores nothing and leaves the key unused', async () => {
  const catalogue = sandboxCatalogue(500).replaceAll('$SANDBOX_URL', 'http://127.0.0.1:1');
  const cut = await startTestServer({ catalogue });
  const there = restCalls(cut.url);
  const path = `/v1/customers/${await checkoutCalls(there).customer()}/payment-methods`;
  const headers = { ...ONE, 'x-idempotency-key': randomUUID() };
  for (const country of ['CO', 'MX']) {
    const refused = await there('POST', path, { type: TYPE, country }, headers);
    expect([refused.status, refused.json.code, refused.headers.get('retry-after')]).toEqual([
      503,
      'SERVICE_UNAVAILABLE',
      '5',
    ]);
  }
  const stored = await openTables(cut.databaseUrl);
  const own = 'SELECT id FROM vaulted_token WHERE customer_id IS NOT NULL AND id <> $1';
  expect(await stored.query(own, [ENROLLED_WALLET])).toEqual([]);
  await stored.close();
  await cut.close();
});
