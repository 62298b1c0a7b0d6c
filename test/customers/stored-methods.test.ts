import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { cardPayment, VAULTED_CARD } from '../support/payment-requests.ts';
import { ONE, PUBLIC_ONE, TWO, UNKNOWN } from './calls.ts';
import { cardData, sentCard } from './checkout.ts';
import { call, checkout, onOwnServer, tables } from './own-server.ts';

const CARD = '4539578763621486';
const OTHER = '5555555555554444';
const DECLINED_CARD = '4000000000000002';

onOwnServer();
let customer: string;

beforeEach(async () => {
  customer = await checkout.customer();
});

const path = (id = customer) => `/v1/customers/${id}/payment-methods`;
const enroll = (card: object = {}, headers: Record<string, string> = ONE, of = customer) =>
  call('POST', path(of), { country: 'CO', card_data: { ...cardData(CARD), ...card } }, headers);
const pay = (method: object, of?: string) =>
  call(
    'POST',
    '/v1/payments',
    {
      ...cardPayment(),
      payment_method: { type: 'CARD', ...method },
      ...(of && { customer_payer: { id: of } }),
    },
    { ...ONE, 'x-idempotency-key': randomUUID() },
  );
const rowOf = async (id: string) =>
  (await tables.query('SELECT * FROM vaulted_token WHERE id = $1', [id]))[0];

describe('enrolled cards', () => {
  it('an enrolled card is returned masked, can be listed and read, and can be used to pay by its ID', async () => {
    const made = await enroll();
    const { id, created_at, updated_at } = made.json;
    expect([made.status, made.headers.get('location')]).toEqual([201, `${path()}/${id}`]);
    expect(made.json).toMatchObject({
      ...{ vaulted_token: id, customer_id: customer, name: 'VISA ****1486', type: 'CARD', category: 'CARD' },
      ...{ country: 'CO', status: 'ENROLLED', redirect_url: '', last_successfully_used_at: null },
      card_data: { lfd: '1486', security_code_length: 0, expiration_month: 12, expiration_year: 30 },
      ...{ created_at, updated_at },
    });
    expect(made.text).not.toContain(CARD);
    expect((await call('GET', `${path()}/${id}`)).json).toEqual(made.json);
    expect((await call('GET', path())).json).toEqual({ payment_methods: [made.json] });
    expect((await pay({ vaulted_token: id }, customer)).json).toMatchObject({
      ...{ status: 'SUCCEEDED', payment_method: { vaulted_token: id } },
    });
    const used = (await call('GET', `${path()}/${id}`)).json;
    expect(used.last_successfully_used_at).toMatch(/Z$/);
    await pay({ vaulted_token: id });
    const again = (await call('GET', `${path()}/${id}`)).json;
    expect(Date.parse(again.last_successfully_used_at)).toBeGreaterThan(
      Date.parse(used.last_successfully_used_at),
    );
  });

  it('a card enrolled several times is one stored method, with the latest expiry and holder', async () => {
    const all = await Promise.all([1, 2, 3, 4].map(() => enroll()));
    expect(new Set(all.map(({ json }) => json.id)).size).toBe(1);
    const later = await enroll({ expiration_year: 2031, holder_name: 'A GOMEZ' });
    expect(later.json).toMatchObject({
      id: all[0]?.json.id,
      card_data: { expiration_year: 31, holder_name: 'A GOMEZ' },
    });
    expect((await enroll({ number: OTHER })).json.id).not.toBe(later.json.id);
    const other = await checkout.customer();
    expect((await enroll({}, ONE, other)).json.id).not.toBe(later.json.id);
    expect((await call('GET', path())).json.payment_methods.length).toBe(2);
  });

  it.each(['Ana 🎟️ Gómez', 'أحمد بن محمد', 'כרטיס\u200f אדום'])(
    'an enrolled card keeps the holder name %s unchanged',
    async (holder) => {
      const { id } = (await enroll({ holder_name: holder })).json;
      const paid = await pay({ vaulted_token: id }, customer);
      expect((await call('GET', `${path()}/${id}`)).json.card_data.holder_name).toBe(holder);
      const { card } = paid.json.payment_method.payment_method_detail;
      expect([paid.json.status, card.card_data.holder_name]).toEqual(['SUCCEEDED', holder]);
    },
  );

  it('a request repeated with the same key enrolls a card once', async () => {
    const headers = { ...ONE, 'x-idempotency-key': randomUUID() };
    const made = await enroll({}, headers);
    const again = await enroll({ security_code: '' }, headers);
    expect([again.json, again.headers.get('idempotent-replayed')]).toEqual([made.json, 'true']);
    expect((await enroll({ number: OTHER }, headers)).json.code).toBe('IDEMPOTENCY_KEY_REUSED');
  });

  it('a stored card can be used with a new security code, which is not stored', async () => {
    const { id } = (await enroll()).json;
    const paid = await pay({ vaulted_token: id, detail: { card: { card_data: { security_code: '9417' } } } });
    const { card } = paid.json.payment_method.payment_method_detail;
    expect([paid.json.status, card.card_data.security_code_length]).toEqual(['SUCCEEDED', 0]);
    const card_data = { security_code: '9417', number: CARD };
    const both = await pay({ vaulted_token: id, detail: { card: { card_data } } });
    expect(both.status).toBe(400);
  });

  it('an unenrolled card loses its ciphertext and cannot be used to pay, and unenrolling it again changes nothing', async () => {
    const { id } = (await enroll()).json;
    expect((await rowOf(id))?.card_number).toMatch(/^ey/);
    const ended = await call('POST', `${path()}/${id}/unenroll`);
    expect([ended.status, ended.json.status, ended.json.card_data.lfd]).toEqual([200, 'UNENROLLED', '1486']);
    expect((await rowOf(id))?.card_number).toBeNull();
    expect((await call('POST', `${path()}/${id}/unenroll`, {})).json).toEqual(ended.json);
    expect((await call('GET', `${path()}/${id}`)).json).toEqual(ended.json);
    expect((await call('GET', path())).json).toEqual({ payment_methods: [] });
    const refused = await pay({ vaulted_token: id }, customer);
    expect([refused.status, refused.json.code]).toEqual([400, 'VAULTED_TOKEN_NOT_FOUND']);
    expect((await enroll()).json.id).not.toBe(id);
  });

  it('deleting a customer erases the enrolled card and its ciphertext', async () => {
    const { id } = (await enroll()).json;
    await call('DELETE', `/v1/customers/${customer}`);
    expect(await rowOf(id)).toMatchObject({
      card_number: null,
      card: null,
      fingerprint: null,
      active: false,
    });
    expect((await pay({ vaulted_token: id })).json.code).toBe('VAULTED_TOKEN_NOT_FOUND');
    for (const refused of [await call('GET', path()), await enroll()]) {
      expect([refused.status, refused.json.code]).toEqual([404, 'CUSTOMER_NOT_FOUND']);
    }
    const named = `${path()}/${id}`;
    for (const refused of [await call('GET', named), await call('POST', `${named}/unenroll`)]) {
      expect([refused.status, refused.json.code]).toEqual([404, 'VAULTED_TOKEN_NOT_FOUND']);
    }
  });

  it('deleting a customer erases the card from the response to a repeated enrollment', async () => {
    const body = { country: 'US', card_data: cardData(CARD) };
    const headers = { ...ONE, 'x-idempotency-key': randomUUID() };
    const { json } = await call('POST', path(), body, headers);
    await call('DELETE', `/v1/customers/${customer}`);
    const repeat = await call('POST', path(), body, headers);
    expect([repeat.status, repeat.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
    expect(repeat.json).toEqual({ ...json, name: 'CARD', card_data: null });
  });

  it('a stored card is refused for another customer, and with another payment method type', async () => {
    const { id } = (await enroll()).json;
    const foreign = await pay({ vaulted_token: id }, await checkout.customer());
    expect([foreign.status, foreign.json.code]).toEqual([400, 'INVALID_CUSTOMER_FOR_TOKEN']);
    const body = {
      ...cardPayment(),
      country: 'CO',
      amount: { currency: 'COP', value: 9000 },
      workflow: 'REDIRECT',
    };
    const headers = { ...ONE, 'x-idempotency-key': randomUUID() };
    const wallet = { ...body, payment_method: { type: 'WALLET_B', vaulted_token: id } };
    const refused = await call('POST', '/v1/payments', wallet, headers);
    expect([refused.status, refused.json.code]).toEqual([400, 'INCORRECT_PAYMENT_METHOD_TYPE']);
    // A stored card without a customer can be used in payments of any customer.
    expect((await pay({ vaulted_token: VAULTED_CARD }, customer)).json.status).toBe('SUCCEEDED');
  });

  it('an enrolled card cannot be found by another account or customer, or with only the public key', async () => {
    const { id } = (await enroll()).json;
    const other = await checkout.customer();
    for (const [where, headers] of [
      [`${path()}/${id}`, TWO],
      [`${path(other)}/${id}`, ONE],
      [`${path()}/${UNKNOWN}`, ONE],
      [`${path()}/nothing`, ONE],
    ] as const) {
      for (const [method, suffix] of [
        ['GET', ''],
        ['POST', '/unenroll'],
      ] as const) {
        const refused = await call(method, where + suffix, undefined, headers);
        expect([refused.status, refused.json.code]).toEqual([404, 'VAULTED_TOKEN_NOT_FOUND']);
      }
    }
    expect((await enroll({}, TWO)).json.code).toBe('CUSTOMER_NOT_FOUND');
    expect((await enroll({}, PUBLIC_ONE)).json.code).toBe('INVALID_CREDENTIALS');
    expect((await call('GET', `${path()}/${id}`)).json.status).toBe('ENROLLED');
  });

  it.each([
    ['card_data', undefined],
    ['card_data.number', { ...cardData(), number: '4111111111111112' }],
    ['card_data.expiration_month', { ...cardData(), expiration_month: undefined }],
  ])(
    'a card with a bad field is not enrolled, and the error names the field: %s',
    async (field, card_data) => {
      const refused = await call('POST', path(), { card_data });
      expect([refused.status, refused.json.errors[0].field]).toEqual([400, field]);
    },
  );
});

describe('vault_on_success', () => {
  it('vault_on_success stores the card for the customer once the payment is approved', async () => {
    const declined = await pay({ ...sentCard(DECLINED_CARD), vault_on_success: true }, customer);
    expect(declined.json.payment_method.vaulted_token).toBe('');
    expect((await call('GET', path())).json).toEqual({ payment_methods: [] });
    const paid = await pay({ ...sentCard(CARD), vault_on_success: true }, customer);
    const id = paid.json.payment_method.vaulted_token;
    const { payment_methods } = (await call('GET', path())).json;
    expect(payment_methods).toMatchObject([{ id, name: 'VISA ****1486', country: 'US' }]);
    expect(payment_methods[0].last_successfully_used_at).toMatch(/Z$/);
  });

  it('vault_on_success returns the existing token if the customer already has the card', async () => {
    const { id } = (await enroll()).json;
    for (const number of [CARD, CARD]) {
      const paid = await pay({ ...sentCard(number), vault_on_success: true }, customer);
      expect(paid.json.payment_method.vaulted_token).toBe(id);
    }
    expect((await call('GET', path())).json.payment_methods.length).toBe(1);
  });

  it('vault_on_success stores no card for a customer who is deleted while the outcome is unknown', async () => {
    const paid = await pay({ ...sentCard('4000000000002008'), vault_on_success: true }, customer);
    expect(paid.json.status).toBe('PENDING');
    await call('DELETE', `/v1/customers/${customer}`);
    await expect
      .poll(async () => (await call('GET', `/v1/payments/${paid.json.id}`)).json.status)
      .toBe('SUCCEEDED');
    const rows = await tables.query('SELECT card_number, active FROM vaulted_token WHERE customer_id = $1', [
      customer,
    ]);
    expect(rows).toEqual([{ card_number: null, active: false }]);
  });
});

describe('stored methods in checkout sessions', () => {
  it('a session of a deleted customer cannot be paid until customer_id is cleared; replays still work', async () => {
    const terms = { customer_id: customer };
    const [session, other] = [await checkout.openSession(terms), await checkout.openSession(terms)];
    const key = randomUUID();
    const paid = await checkout.pay(other, sentCard(CARD), {}, key);
    await call('DELETE', `/v1/customers/${customer}`);
    const byBrowser = await checkout.payAsBrowser(session, { token: await checkout.token(session) });
    for (const { status, json } of [byBrowser, await checkout.pay(session, sentCard(CARD))]) {
      expect([status, json.code, json.errors[0].field]).toEqual([
        400,
        'CUSTOMER_NOT_FOUND',
        'checkout.session',
      ]);
    }
    expect((await checkout.pay(other, sentCard(CARD), {}, key)).text).toBe(paid.text);
    await call('PATCH', `/v1/checkout/sessions/${session}`, { customer_id: null });
    expect((await checkout.pay(session, sentCard(CARD))).json.status).toBe('SUCCEEDED');
  });

  it('a session lists its customer’s stored methods first, and accepts none of another customer', async () => {
    const { id } = (await enroll()).json;
    const session = await checkout.openSession({ customer_id: customer });
    const methods = await call(
      'GET',
      `/v1/checkout/sessions/${session}/payment-methods`,
      undefined,
      PUBLIC_ONE,
    );
    expect(methods.json[0]).toMatchObject({ vaulted_token: id, name: 'VISA ****1486', installments: true });
    const stranger = await checkout.openSession({ customer_id: await checkout.customer() });
    const refused = await checkout.payAsBrowser(stranger, { type: 'CARD', vaulted_token: id });
    expect([refused.status, refused.json.code]).toEqual([400, 'INVALID_CUSTOMER_FOR_TOKEN']);
    const detail = { card: { card_data: { security_code: '123' } } };
    const paid = await checkout.payAsBrowser(session, { type: 'CARD', vaulted_token: id, detail });
    expect(paid.json).toMatchObject({ status: 'SUCCEEDED', name: 'VISA ****1486' });
  });

  it('a used or expired session does not list its customer’s stored methods', async () => {
    await enroll();
    const [used, old] = [
      await checkout.openSession({ customer_id: customer }),
      await checkout.openSession({ customer_id: customer }),
    ];
    await checkout.payAsBrowser(used, { token: await checkout.token(used) });
    await tables.query('UPDATE checkout_session SET expires_at = now() WHERE id = $1', [old]);
    for (const session of [used, old]) {
      const methods = `/v1/checkout/sessions/${session}/payment-methods`;
      for (const keys of [PUBLIC_ONE, ONE]) {
        const refused = await call('GET', methods, undefined, keys);
        expect([refused.status, refused.json.code]).toEqual([404, 'CHECKOUT_SESSION_NOT_FOUND']);
      }
    }
  });

  it('a browser can store a card for the customer of its session', async () => {
    const session = await checkout.openSession({ customer_id: customer });
    const token = await checkout.token(session, CARD);
    await checkout.payAsBrowser(session, { token, vault_on_success: true });
    expect((await call('GET', path())).json.payment_methods).toMatchObject([{ name: 'VISA ****1486' }]);
  });
});
