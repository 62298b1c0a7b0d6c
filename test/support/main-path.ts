import { ACCOUNT_TWO, cardPayment, headersOne, headersTwo, withField } from './payment-requests.ts';

/** Makes calls that run every statement of the main path. @param url the URL of a service with sandbox fixtures. */
export async function callMainPath(url: string): Promise<void> {
  async function call(method: string, path: string, body?: object, headers = headersOne()) {
    const { 'x-idempotency-key': _, ...keys } = headers;
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(method === 'POST' && path === '/v1/payments' ? headers : keys),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const json = (await response.json()) as { id: string; checkout_session: string; token: string };
    if (response.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(json)}`);
    return json;
  }
  const pay = (request: object, headers: Record<string, string>) =>
    call('POST', '/v1/payments', request, headers);

  const paid = await pay(cardPayment(), headersOne('held'));
  await pay(cardPayment(), headersOne('held'));
  await pay({ ...cardPayment('4000000000005001') }, headersOne());
  await pay({ ...cardPayment('4000000000006009') }, headersOne());
  for (const number of ['4111111111111111', '4000000000000002']) {
    const request = structuredClone(cardPayment(number)) as { payment_method: Record<string, unknown> };
    request.payment_method.vault_on_success = true;
    await pay(request, headersOne());
  }
  await pay(
    { ...cardPayment(), customer_payer: { id: 'c0000000-0000-4000-8000-000000000001' } },
    headersOne(),
  );
  await call('GET', `/v1/payments/${paid.id}`);
  for (const query of [
    '',
    '?status=SUCCEEDED',
    '?merchant_order_id=order-1',
    '?status=ERROR&merchant_order_id=a',
  ])
    await call('GET', `/v1/payments${query}`);
  await call('POST', `/v1/payments/${paid.id}/refund`, { merchant_reference: 'r1' });
  await call('POST', `/v1/payments/${paid.id}/refund`, { merchant_reference: 'r1' });
  const terms = { ...cardPayment(), payment_method: undefined, workflow: undefined };
  for (const number of ['4111111111111111', '4000000000000002']) {
    const { checkout_session: session } = await call('POST', '/v1/checkout/sessions', terms);
    const card_data = { number, expiration_month: 12, expiration_year: 30 };
    const { token } = await call('POST', `/v1/checkout/sessions/${session}/token`, { card_data });
    await pay({ ...terms, checkout: { session }, payment_method: { token } }, headersOne());
  }
  const held = await pay({ ...authorization(), account_id: ACCOUNT_TWO }, headersTwo());
  await call('POST', `/v1/payments/${held.id}/cancel`, {}, headersTwo());
  await call('POST', `/v1/payments/${held.id}/cancel`, {}, headersTwo());
}

const authorization = () => withField(cardPayment(), 'payment_method.detail.card.capture', false);
