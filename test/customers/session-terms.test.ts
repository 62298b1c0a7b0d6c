import { describe, expect, it } from 'vitest';
import { PUBLIC_ONE } from './calls.ts';
import { cardData, sentCard, TERMS } from './checkout.ts';
import { call, checkout, onOwnServer, tables } from './own-server.ts';

onOwnServer();

const create = (body: object = {}) => call('POST', '/v1/checkout/sessions', { ...TERMS, ...body });
const path = (session: string) => `/v1/checkout/sessions/${session}`;

describe('the terms of a checkout session', () => {
  it.each([
    ['expires_at', { expires_at: '2020-01-01T00:00:00Z' }, 'INVALID_PARAMETERS'],
    ['expires_at', { expires_at: '2999-01-01T00:00:00Z' }, 'INVALID_PARAMETERS'],
    ['expires_at', { expires_at: 'tomorrow' }, 'INVALID_PARAMETERS'],
    ['payment_method_types', { payment_method_types: 'CARD' }, 'INVALID_PARAMETERS'],
    ['payment_method_types[0]', { payment_method_types: [''] }, 'INVALID_PARAMETERS'],
    ['alternative_amount', { alternative_amount: { currency: 'EUR', value: 5 } }, 'NOT_SUPPORTED'],
    ['recurring_payment', { recurring_payment: true }, 'NOT_SUPPORTED'],
    ['checkout.webhook_url', { checkout: { webhook_url: 'https://shop.example/hook' } }, 'NOT_SUPPORTED'],
  ])(
    'a checkout session with a bad field is not opened, and the error names the field: %s',
    async (field, body, code) => {
      const refused = await create(body);
      expect([refused.json.code, refused.json.errors[0].field]).toEqual([code, field]);
    },
  );

  it('a checkout session expires at the time that was set when it was opened or last changed', async () => {
    const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();
    const expires_at = inMinutes(24 * 60);
    const { json } = await create({ expires_at });
    expect(Date.parse(json.expires_at)).toBe(Date.parse(expires_at));
    const session = json.checkout_session;
    const sooner = inMinutes(10);
    const changed = await call('PATCH', path(session), { expires_at: sooner });
    expect(Date.parse(changed.json.expires_at)).toBe(Date.parse(sooner));
    const same = await call('PATCH', path(session), { payment_description: 'Three tickets' });
    expect(same.json.expires_at).toBe(changed.json.expires_at);
    for (const wrong of [inMinutes(-1), inMinutes(40 * 24 * 60), null]) {
      const refused = await call('PATCH', path(session), { expires_at: wrong });
      expect([refused.status, refused.json.errors[0].field]).toEqual([400, 'expires_at']);
    }
    await tables.query(`UPDATE checkout_session SET expires_at = now() WHERE id = '${session}'`);
    const late = await checkout.pay(session, sentCard());
    expect([late.json.code, late.json.detail]).toEqual([
      'CHECKOUT_SESSION_NOT_FOUND',
      expect.stringContaining('has expired'),
    ]);
  });

  it('a checkout session limits the installments of every payment, and offers none if it allows only one', async () => {
    const session = await checkout.openSession({ max_installments: 3 });
    const inCard = (installments: number) => ({
      type: 'CARD',
      detail: { card: { installments, card_data: cardData() } },
    });
    const field = 'payment_method.detail.card.installments';
    const token = await checkout.token(session);
    for (const refused of [
      await checkout.pay(session, inCard(4)),
      await checkout.payAsBrowser(session, { token, detail: { card: { installments: 6 } } }),
    ]) {
      expect([refused.status, refused.json.errors[0]]).toMatchObject([400, { field, code: 'OUT_OF_RANGE' }]);
    }
    expect((await checkout.pay(session, inCard(3))).json.status).toBe('SUCCEEDED');
    const other = await checkout.openSession();
    const offersInstallments = async () =>
      (await call('GET', `${path(other)}/payment-methods`)).json.some(
        ({ installments }: { installments: boolean }) => installments,
      );
    expect(await offersInstallments()).toBe(true);
    const changed = await call('PATCH', path(other), { max_installments: 1 });
    expect([changed.json.max_installments, await offersInstallments()]).toEqual([1, false]);
    const cleared = await call('PATCH', path(other), { max_installments: null });
    expect([cleared.json.max_installments, await offersInstallments()]).toEqual([0, true]);
  });

  it('a checkout session can require the security code of a stored card', async () => {
    const customer_id = await checkout.customer();
    const enrolled = await call('POST', `/v1/customers/${customer_id}/payment-methods`, {
      ...{ card_data: cardData(), country: 'US' },
    });
    const session = await checkout.openSession({ customer_id, security_code_required: true });
    const seen = await call('GET', path(session), undefined, PUBLIC_ONE);
    expect(seen.json).toMatchObject({ security_code_required: true, max_installments: 0 });
    const stored = { type: 'CARD', vaulted_token: enrolled.json.id };
    for (const refused of [
      await checkout.payAsBrowser(session, stored),
      await checkout.pay(session, stored),
    ]) {
      const field = 'payment_method.detail.card.card_data.security_code';
      expect([refused.status, refused.json.errors[0]]).toMatchObject([400, { field, code: 'REQUIRED' }]);
    }
    const withCode = { ...stored, detail: { card: { card_data: { security_code: '123' } } } };
    expect((await checkout.payAsBrowser(session, withCode)).json.status).toBe('SUCCEEDED');
  });

  it('a checkout session offers and accepts only its own payment_method_types', async () => {
    const session = await checkout.openSession({ payment_method_types: ['WALLET_B', 'NOBODYS'] });
    const types = async () =>
      (await call('GET', `${path(session)}/payment-methods`)).json.map(({ type }: { type: string }) => type);
    expect(await types()).toEqual(['WALLET_B']);
    const token = await checkout.token(session);
    for (const refused of [
      await checkout.pay(session, sentCard()),
      await checkout.pay(session, { token }),
      await checkout.payAsBrowser(session, { token }),
    ]) {
      const { code, errors } = refused.json;
      expect([code, errors[0].field]).toEqual(['PAYMENT_METHOD_NOT_AVAILABLE', 'payment_method.type']);
    }
    const changed = await call('PATCH', path(session), { payment_method_types: ['CARD'] });
    expect(changed.json.payment_method_types).toEqual(['CARD']);
    expect(await types()).toEqual(['CARD']);
    const cleared = await call('PATCH', path(session), { payment_method_types: [] });
    expect(cleared.json.payment_method_types).toEqual([]);
    expect((await checkout.pay(session, { token })).json.status).toBe('SUCCEEDED');
  });

  it('an update of a session accepts unsupported fields that are null, false or empty', async () => {
    const session = await checkout.openSession();
    for (const checkoutSettings of [null, {}, { webhook_url: '' }]) {
      const body = { alternative_amount: null, recurring_payment: false, checkout: checkoutSettings };
      const changed = await call('PATCH', path(session), { ...body, country: 'CO' });
      expect([changed.status, changed.json.country]).toEqual([200, 'CO']);
    }
  });

  it.each(['CHECKOUT', 'SDK_SEAMLESS'])(
    'the workflow %s of a checkout session means SDK_CHECKOUT',
    async (workflow) => {
      const { json } = await create({ workflow });
      expect(json.workflow).toBe('SDK_CHECKOUT');
      const changed = await call('PATCH', path(json.checkout_session), { workflow });
      expect(changed.json.workflow).toBe('SDK_CHECKOUT');
      const paid = await checkout.pay(json.checkout_session, sentCard(), { workflow });
      expect(paid.json).toMatchObject({ status: 'SUCCEEDED', workflow: 'SDK_CHECKOUT' });
    },
  );

  it('a payment in a session without a customer may name one', async () => {
    const session = await checkout.openSession();
    const customer_payer = { id: await checkout.customer() };
    const paid = await checkout.pay(session, sentCard(), { customer_payer });
    expect(paid.json).toMatchObject({ status: 'SUCCEEDED', customer_payer });
  });

  it("a payment in a session may name the session's customer in capital letters, but no other customer", async () => {
    const customer_id = await checkout.customer();
    const session = await checkout.openSession({ customer_id });
    const refused = await checkout.pay(session, sentCard(), {
      customer_payer: { id: await checkout.customer() },
    });
    expect(refused.json.errors[0].field).toBe('customer_payer.id');
    const customer_payer = { id: customer_id.toUpperCase() };
    const paid = await checkout.pay(session, sentCard(), { customer_payer });
    expect(paid.json).toMatchObject({ status: 'SUCCEEDED', customer_payer: { id: customer_id } });
  });

  it('a one-time token in a session determines the payment method type, even if an unknown type is sent with it', async () => {
    const session = await checkout.openSession();
    const method = { token: await checkout.token(session), type: 'CREDIT_CARD' };
    const paid = await checkout.pay(session, method);
    expect(paid.json).toMatchObject({ status: 'SUCCEEDED', payment_method: { type: 'CARD' } });
  });
});
