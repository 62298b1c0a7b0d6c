import { beforeAll, describe, expect, it } from 'vitest';
import { onService, server } from '../support/on-service.ts';
import { type Call, ONE, restCalls } from './calls.ts';
import { checkoutCalls } from './checkout.ts';

let call: Call;
let checkout: ReturnType<typeof checkoutCalls>;

onService();
beforeAll(() => {
  call = restCalls(server.url);
  checkout = checkoutCalls(call);
});

const IN_BRAZIL = { country: 'BR', amount: { currency: 'BRL', value: 52 } };
const ADDED = {
  ...{ first_name: 'Payer', last_name: 'Gómez' },
  document: { document_type: 'CPF', document_number: '39053344705' },
  billing_address: {
    address_line_1: 'Rua A 1',
    city: 'São Paulo',
    state: 'SP',
    zip_code: '01310-100',
    country: 'BR',
  },
};
const recordOf = async (id: string) => (await call('GET', `/v1/payments/${id}`, undefined, ONE)).json;

describe('a payer who pays a session with a local method', () => {
  it('a payer is sent to the page of their code, and the session shows it again', async () => {
    const session = await checkout.openSession(IN_BRAZIL);
    const paid = await checkout.payAsBrowser(session, { type: 'PIX' });
    expect([paid.status, paid.json.status]).toEqual([201, 'READY_TO_PAY']);
    expect(paid.json.redirect_url).toBe(`${server.url}/v1/payments/${paid.json.id}/pay`);
    const shown = await call('GET', `/v1/checkout/sessions/${session}/payment`, undefined, ONE);
    expect(shown.json.redirect_url).toBe(paid.json.redirect_url);
  });

  it('a payer who wants to pay another way has the first code canceled at its provider', async () => {
    const session = await checkout.openSession(IN_BRAZIL);
    const first = await checkout.payAsBrowser(session, { type: 'PIX' });
    expect((await checkout.payAsBrowser(session, { type: 'PIX' })).status).toBe(400);
    const path = `/v1/checkout/sessions/${session}/payments/${first.json.id}/close`;
    expect((await call('POST', path, {}, ONE)).json.status).toBe('EXPIRED');
    expect((await recordOf(first.json.id)).transactions.provider_data.status).toBe('canceled');
    expect((await checkout.payAsBrowser(session, { type: 'PIX' })).json.status).toBe('READY_TO_PAY');
  });

  it('a code that its provider cannot cancel stays the session’s payment', async () => {
    const terms = { country: 'MX', amount: { currency: 'MXN', value: 52 } };
    const session = await checkout.openSession(terms);
    const customer_payer = { first_name: 'Ana', last_name: 'Gómez', email: 'ana@example.com' };
    const first = await checkout.payAsBrowser(session, { type: 'OXXO' }, undefined, { customer_payer });
    const path = `/v1/checkout/sessions/${session}/payments/${first.json.id}/close`;
    expect((await call('POST', path, {}, ONE)).json.status).toBe('READY_TO_PAY');
    expect((await checkout.payAsBrowser(session, { type: 'SPEI' })).status).toBe(400);
  });

  it('a payer adds what a stored customer lacks for the payment, and changes nothing that the customer has', async () => {
    const { json: customer } = await call('POST', '/v1/customers', {
      ...{ merchant_customer_id: `adds-${Date.now()}`, first_name: 'Ana' },
    });
    const session = await checkout.openSession({ ...IN_BRAZIL, customer_id: customer.id });
    const lacking = await checkout.payAsBrowser(session, { type: 'BOLETO' });
    expect(lacking.json.errors.map(({ field }: { field: string }) => field)).not.toContain(
      'customer_payer.first_name',
    );
    expect(lacking.json.errors[0]).toMatchObject({ field: 'customer_payer.last_name', code: 'REQUIRED' });
    const paid = await checkout.payAsBrowser(session, { type: 'BOLETO' }, undefined, {
      customer_payer: ADDED,
    });
    expect(paid.json.status).toBe('READY_TO_PAY');
    const { customer_payer } = await recordOf(paid.json.id);
    expect(customer_payer).toMatchObject({ id: customer.id, first_name: 'Ana', last_name: 'Gómez' });
    const { json: after } = await call('GET', `/v1/customers/${customer.id}`, undefined, ONE);
    expect([after.first_name, after.last_name]).toEqual(['Ana', null]);
  });

  it.each([
    ['capture', { capture: false }],
    ['soft_descriptor', { soft_descriptor: 'OTHER SHOP' }],
    ['stored_credentials', { stored_credentials: { reason: 'CARD_ON_FILE' } }],
  ])('a payer with a wallet’s token cannot set %s', async (name, option) => {
    const session = await checkout.openSession();
    const wallet = { payment_token: '{"signature":"sandbox"}', ...option };
    const refused = await checkout.payAsBrowser(session, { type: 'GOOGLE_PAY', detail: { wallet } });
    expect(refused.json.errors).toMatchObject([
      { field: `payment_method.detail.wallet.${name}`, code: 'NOT_ALLOWED' },
    ]);
    const paid = await checkout.payAsBrowser(session, {
      type: 'GOOGLE_PAY',
      detail: { wallet: { payment_token: '{"signature":"sandbox"}' } },
    });
    expect(paid.json.status).toBe('SUCCEEDED');
  });
});
