import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { TokenService } from '#gen/payments/v1/token_service_pb.js';
import { PUBLIC_ONE, type Response, rpcClients, UNKNOWN } from './calls.ts';
import { cardData } from './checkout.ts';
import { call, checkout, onOwnServer, server, tables } from './own-server.ts';

onOwnServer();

const make = (session: string, body: object, key?: string): Promise<Response> =>
  call('POST', `/v1/checkout/sessions/${session}/token`, body, {
    ...PUBLIC_ONE,
    ...(key !== undefined && { 'x-idempotency-key': key }),
  });
const card = (change: object = {}) => ({ payment_method: { card: { ...cardData(), ...change } } });
const method = (change: object) => ({ payment_method: { card: cardData(), ...change } });
const sentTwice = (change: object) => ({
  card_data: cardData(),
  payment_method: { card: cardData() },
  ...change,
});
const cardOf = (paid: Response) => paid.json.payment_method.payment_method_detail.card;

describe('what a payer chooses with a token', () => {
  it.each([
    ['payment_method.vault_on_success', method({ vault_on_success: true })],
    ['payment_method.card.save', card({ save: true })],
    ['card_data.save', { card_data: { ...cardData(), save: true } }],
  ])('the payment stores the card if the token was made with %s', async (_field, body) => {
    const session = await checkout.openSession({ customer_id: await checkout.customer() });
    const made = await make(session, body);
    expect([made.status, made.json.vault_on_success]).toEqual([201, true]);
    const paid = await checkout.pay(session, { token: made.json.token });
    expect(paid.json.payment_method).toMatchObject({
      vault_on_success: true,
      vaulted_token: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  });

  it.each([
    ['payment_method.card.installments', card({ installments: 6 })],
    ['payment_method.card.installment.value', card({ installment: { id: null, value: 6 } })],
    ['card_data.installments', { card_data: { ...cardData(), installments: 6 } }],
    ['installment.value', { ...card(), installment: { value: 6 } }],
  ])('the payment is in the installments that the token was made with: %s', async (_field, body) => {
    const session = await checkout.openSession();
    const { token } = (await make(session, body)).json;
    expect(cardOf(await checkout.pay(session, { token })).installments).toBe(6);
    const other = await checkout.openSession();
    const chosen = (await make(other, body)).json.token;
    const sent = { token: chosen, detail: { card: { installments: 3 } } };
    expect(cardOf(await checkout.pay(other, sent)).installments).toBe(3);
  });

  it.each([
    ['three_d_secure', { ...card(), three_d_secure: { three_d_secure_setup_id: 'setup-7' } }],
    ['payment_method.card.three_d_secure', card({ three_d_secure: { three_d_secure_setup_id: 'setup-7' } })],
  ])('the provider gets the 3-D Secure setup that the token was made with: %s', async (_field, body) => {
    const session = await checkout.openSession();
    const { token } = (await make(session, body)).json;
    const paid = await checkout.payAsBrowser(session, { token });
    const charges = await tables.query('SELECT answer FROM sandbox.ledger ORDER BY created_at DESC LIMIT 1');
    expect([paid.json.status, JSON.parse(charges[0]?.answer as string)]).toMatchObject([
      ...['SUCCEEDED', { three_d_secure_setup_id: 'setup-7' }],
    ]);
  });

  it('the payer’s data completes the payment, where neither its request nor its customer says anything', async () => {
    const stored = await call('POST', '/v1/customers', {
      ...{ merchant_customer_id: randomUUID(), first_name: 'Ana', email: 'ana@example.com' },
    });
    const session = await checkout.openSession({ customer_id: stored.json.id });
    const customer = {
      ...{ id: stored.json.id, first_name: 'Eva', email: 'eva@example.com', last_name: 'Payer' },
      billing_address: { city: 'Bogota', country: 'CO' },
      browser_info: { language: 'es-CO' },
      device_fingerprints: [{ provider_id: 'a', id: 'b' }],
    };
    const made = await make(session, method({ customer }));
    expect(made.json.customer).toMatchObject({ first_name: 'Eva', billing_address: { city: 'Bogota' } });
    const paid = await checkout.pay(
      session,
      { token: made.json.token },
      { customer_payer: { last_name: 'Merchant' } },
    );
    expect(paid.json.customer_payer).toMatchObject({
      ...{ id: stored.json.id, first_name: 'Ana', email: 'ana@example.com', last_name: 'Merchant' },
      billing_address: { city: 'Bogota', country: 'CO' },
      browser_info: { language: 'es-CO' },
      device_fingerprints: [{ provider_id: 'a', id: 'b' }],
    });
  });

  it('a token is answered with the payer’s choices, without storing the payer’s data in the response', async () => {
    const session = await checkout.openSession();
    const plain = await make(session, sentTwice({ account_id: 'ignored' }));
    expect(plain.json).toMatchObject({ vault_on_success: false, customer: null, country: 'US' });
    const key = randomUUID();
    const customer = { first_name: 'Eva', device_fingerprints: [{ a: 1, b: 2 }] };
    const made = await make(session, method({ customer }), key);
    const again = await make(
      session,
      {
        card_data: cardData(),
        ...method({ customer: { ...customer, device_fingerprints: [{ b: 2, a: 1 }] } }),
      },
      key,
    );
    expect(made.json.customer.first_name).toBe('Eva');
    expect([again.json, again.headers.get('idempotent-replayed')]).toEqual([made.json, 'true']);
    const kept = await tables.query(
      "SELECT response FROM replayed_call WHERE method = 'CreateCheckoutToken'",
    );
    expect(Buffer.concat(kept.map(({ response }) => response as Buffer)).includes('Eva')).toBe(false);
    expect((await make(session, method({ customer: { first_name: 'Ida' } }), key)).json.code).toBe(
      'IDEMPOTENCY_KEY_REUSED',
    );
  });
});

describe('choices that a token call refuses', () => {
  it.each([
    ['payment_method.vault_on_success', method({ vault_on_success: true })],
    ['payment_method.customer.id', method({ customer: { id: UNKNOWN } })],
    ['payment_method.customer.country', method({ customer: { country: 'XX' } })],
    ['payment_method.card', { card_data: cardData(), ...card({ security_code: '999' }) }],
    ['installment.value', { ...card({ installments: 3 }), installment: { value: 6 } }],
    ['payment_method.card.installments', card({ installments: 100 })],
    ['payment_method.card.installment.id', card({ installment: { id: 'plan', value: 3 } })],
    ['three_d_secure', { ...card(), three_d_secure: { cryptogram: 'AAAA' } }],
    ['payment_method.card.capture', card({ capture: false })],
    ['payment_method.capture', method({ capture: false })],
    ['payment_method.card.stored_credentials', card({ stored_credentials: { usage: 'FIRST' } })],
    ['payment_method.vaulted_token', method({ vaulted_token: UNKNOWN })],
    ['payment_method.installments', method({ installments: 3 })],
    ['vault_on_success', { ...card(), vault_on_success: true }],
    ['three_d_secure_setup_id', { ...card(), three_d_secure_setup_id: 'setup' }],
    ['customer', { ...card(), customer: { first_name: 'Eva' } }],
  ])('a choice that the payment cannot honor is refused by name: %s', async (field, body) => {
    const refused = await make(await checkout.openSession(), body);
    expect([refused.status, refused.json.errors?.[0]?.field]).toEqual([400, field]);
  });

  it.each([
    ['vault_on_success', true],
    ['installment', { value: 3 }],
    ['three_d_secure', { three_d_secure_setup_id: 'setup' }],
    ['stored_credentials', { reason: 'SUBSCRIPTION' }],
    ['customer', { first_name: 'Eva' }],
    ['payment_method', { vault_on_success: true }],
  ])('a token for any payment refuses %s, which belongs in the payment', async (field, value) => {
    const refused = await call('POST', '/v1/tokens', { card_data: cardData(), [field]: value });
    expect([refused.status, refused.json.code, refused.json.errors?.[0]?.field]).toEqual([
      ...[400, 'NOT_SUPPORTED', field],
    ]);
    const nothing = await call('POST', '/v1/tokens', { card_data: cardData(), [field]: null });
    expect(nothing.status).toBe(201);
  });

  it('the choices are honored over every RPC protocol', async () => {
    const { clients, close } = rpcClients(server.url, TokenService);
    for (const { protocol, client } of clients) {
      const session = await checkout.openSession();
      const number = { number: '4111111111111111', expirationMonth: 12, expirationYear: 30 };
      const made = await client.createCheckoutToken(
        { checkoutSession: session, paymentMethod: { card: { ...number, installments: 6 } } },
        { headers: PUBLIC_ONE },
      );
      const paid = await checkout.pay(session, { token: made.token });
      expect([protocol, cardOf(paid).installments]).toEqual([protocol, 6]);
    }
    close();
  });
});
